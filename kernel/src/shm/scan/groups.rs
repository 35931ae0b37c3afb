//! Scan and exscan by groups (ours; the network of Sklansky 1960): two ranks are a group, two groups a group of the next level, and
//! so on. The upper half of a group needs nothing of the lower half but its fold, which the last rank there has.
//!
//! | level | what a rank does |
//! |---|---|
//! | 0 | posts its operand; folds the operands of its group of two up to its own (scan) or below it (exscan) |
//! | i | posts its result so far, if its half ends with it; in the upper half of a group of 2ⁱ⁺¹: folds, from the left, what the lower half's last rank has posted |
//!
//! So a rank reads a vector on each of ⌈log2 p⌉ levels at most, and posts two; by [exchange](super::exchange) the last rank reads
//! p − 1. A long vector is cut into pieces, which are processed in batches of up to eight: a batch of k pieces takes k steps on
//! each level.
//!
//! In an exscan a rank has the result that the rank before it has in a scan, and takes its part.
//! Operands are folded in rank order, the nearer ones first.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::datatype::Data;
use crate::error::Refusal;
use crate::op::Op;
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::copy::copy_private;
use crate::shm::engine::cut::{Cut, MUTUAL, Medium, Span};
use crate::shm::engine::exchange::{Exchange, Order, Plan};
use crate::shm::engine::fold::{Operand, fold_shared};
use crate::shm::engine::loans::Origin;
use crate::shm::engine::pieces::{put, take};

/// Most pieces of a batch.
const BATCH: u64 = 8;

/// One process's part of a scan or an exscan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grouped<'a> {
    kind: Kind,
    me: Rank,
    size: u32,
    /// The highest rank whose operand is folded here; `None` if this rank gets no result.
    highest: Option<Rank>,
    send: Data<'a>,
    receive: Data<'a>,
    op: Op,
    cut: Cut,
    /// Number of pieces of the vector.
    pieces: u64,
}

/// The fold of the `send` of ranks 0 … this one into `receive`.
///
/// # Errors
/// Data with holes; a length that is not a whole number of elements; `send` and `receive` differ in length; an element is longer
/// than a slot.
pub fn scan<'a>(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Grouped<'a>>, Refusal> {
    Grouped::plan(Kind::Scan, me, send, receive, op, Some(me.rank()))
}

/// The fold of the `send` of the ranks below this one into `receive`. Rank 0's `receive` stays as it is.
///
/// # Errors
/// As of [`scan`].
pub fn exscan<'a>(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Grouped<'a>>, Refusal> {
    Grouped::plan(Kind::Exscan, me, send, receive, op, me.rank().checked_sub(1))
}

impl<'a> Grouped<'a> {
    fn plan(
        kind: Kind,
        me: &Member,
        send: Data<'a>,
        receive: Data<'a>,
        op: Op,
        highest: Option<Rank>,
    ) -> Result<Exchange<Self>, Refusal> {
        Operand::check(&send, Some(&receive), &op)?;
        let cut = Cut::whole(send.len(), Medium::Queues.room(me), op.element(), MUTUAL)?;
        let Span { advance: pieces, bytes } = cut.span(send.len());
        let plan = Self { kind, me: me.rank(), size: me.size(), highest, send, receive, op, cut, pieces };
        Ok(Exchange::of(Medium::Queues, Span { advance: plan.steps(), bytes }, plan))
    }

    /// Number of levels: ⌈log2 p⌉, one at least.
    fn levels(&self) -> u32 {
        self.size.next_power_of_two().ilog2().max(1)
    }

    /// The level of `step`, the index of the piece, and the number of pieces of its batch.
    fn act(&self, step: u64) -> (u32, u64, u64) {
        let each = BATCH * u64::from(self.levels());
        let (first, at) = (step / each * BATCH, step % each);
        let batch = BATCH.min(self.pieces - first);
        ((at / batch) as u32, first + at % batch, batch)
    }

    /// The rank whose operand, or whose fold of the lower half, is folded here on this level.
    fn source(&self, level: u32) -> Option<Rank> {
        let highest = self.highest?;
        if highest >> level & 1 == 0 {
            return None;
        }
        // The last rank of the lower half. In an exscan the next one has its fold.
        let last = (highest >> level << level) - 1;
        Some(if level == 0 { last } else { last + (self.me - highest) })
    }
}

impl Plan for Grouped<'_> {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn steps(&self) -> u64 {
        u64::from(self.levels()) * self.pieces
    }

    fn announced(&self) -> u64 {
        self.send.len()
    }

    /// A fold of a group is complete when this process has done the step of the level below with the same piece.
    fn posts(&self, step: u64) -> Option<u64> {
        if self.me + 1 == self.size {
            return None;
        }
        match self.act(step) {
            (0, ..) => Some(0),
            (level, _, batch) => (self.highest?.trailing_ones() == level).then_some(step - batch + 1),
        }
    }

    fn takes_any(&self) -> bool {
        self.highest.is_some()
    }

    /// In the first step it receives the lines of all ranks from which it takes later, too.
    fn takes(&self, step: u64, peer: Rank) -> bool {
        let (level, ..) = self.act(step);
        self.source(level) == Some(peer)
            || level == 0 && self.highest == Some(peer)
            || step == 0 && (1..self.levels()).any(|level| self.source(level) == Some(peer))
    }

    fn reads(&self, step: u64, peer: Rank) -> bool {
        let (level, ..) = self.act(step);
        self.source(level) == Some(peer) || level == 0 && self.highest == Some(peer)
    }

    fn order(&self) -> Order {
        Order::Falling
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        let (level, piece, _) = self.act(step);
        let data = if level == 0 { &self.send } else { &self.receive };
        // SAFETY: the caller's promise.
        unsafe { put(region, place, data, self.cut.part(data.len(), piece)) }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable> {
        let (level, piece, _) = self.act(step);
        let part = self.cut.part(self.send.len(), piece);
        match (level == 0 && self.highest == Some(peer), self.source(level) == Some(peer)) {
            // SAFETY: the caller's promise: both are this process's data; in place they are the same.
            (true, _) if peer == self.me => unsafe { copy_private(region, &self.send, &self.receive, part) },
            // SAFETY: the caller's promise; in place this process has posted its own operand.
            (true, _) => return unsafe { take(region, origin, &self.receive, part) },
            // SAFETY: as above.
            (_, true) => return unsafe { fold_shared(region, origin, &self.receive, part, &self.op) },
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{Layout, Params};
    use std::vec::Vec;

    /// Each rank's fold is complete and in order on each level, by what others have then: a rank has the operands from `0` on.
    #[test]
    fn every_rank_folds_what_is_left_of_it_once() {
        for (size, exclusive) in (1..=70).flat_map(|size| [false, true].map(|exclusive| (size, exclusive))) {
            let layout = Layout::new(Params::new(size)).unwrap();
            let mut memory = [0; 8];
            let data = Data::bytes_mut(&mut memory);
            let plans: Vec<_> = (0..size)
                .map(|rank| {
                    let highest = rank.checked_sub(exclusive.into());
                    let (me, op) = (Member::new(layout, rank).unwrap(), Op::SUM_I64);
                    let kind = if exclusive { Kind::Exscan } else { Kind::Scan };
                    let cut = Cut::whole(8, 64, 8, MUTUAL).unwrap();
                    let (send, receive) = (data, data);
                    Grouped { kind, me: me.rank(), size, highest, send, receive, op, cut, pieces: 1 }
                })
                .collect();
            // The ranks whose operands each one has folded: from the first up to its highest.
            let mut has: Vec<_> = plans.iter().map(|plan| plan.highest).collect();
            for level in 0..plans[0].levels() {
                let before = has.clone();
                for plan in &plans {
                    let Some(source) = plan.source(level) else { continue };
                    let from = &plans[source as usize];
                    assert!(from.posts(level.into()).is_some() && source < plan.me, "{plan:?}, level {level}");
                    let first = has[plan.me as usize].unwrap();
                    let (left, last) = match level {
                        0 => (source, source),
                        _ => (before[source as usize].unwrap(), from.highest.unwrap()),
                    };
                    assert_eq!(last + 1, first, "{plan:?}, level {level}");
                    has[plan.me as usize] = Some(left);
                }
            }
            assert!(has.into_iter().flatten().all(|first| first == 0), "{size} ranks, exclusive {exclusive}");
        }
    }
}
