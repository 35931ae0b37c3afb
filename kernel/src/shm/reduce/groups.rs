//! Reduce by groups (ours): ranks that follow one another are a group, in which most operands are folded.
//!
//! The vector is cut into columns (`shm::engine::columns`), one per rank of a group, these into pieces, and a piece into
//! shares, one per group. Each piece takes four steps:
//!
//! | step | rank | what | with whom |
//! |---|---|---|---|
//! | the first | each | posts the piece of every column; folds those of its own column | its group |
//! | the second | each | folds its own share of that piece | the ranks of its column in all groups |
//! | the third | those of the root's group | copy the other shares of their piece; the root, to the result | the same |
//! | the fourth | root | copies the other columns' pieces | its group |
//!
//! What is folded and copied stays in the fragment that was posted in the first step, and is published again in each step after it:
//! of each part of a fragment, one other rank at most reads what it holds then. [By slices](super::slices) each rank reads
//! pieces of p − 1 fragments, most of them from far cores. Here it reads most bytes in its group, whose cores share a cache on many
//! machines, and beyond it one column's worth at most.
//!
//! The op must commute: what is folded first is a rank's own operand, and its own group's.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::absent;
use crate::data::datatype::Data;
use crate::error::{Argument, Condition, Refusal};
use crate::op::Op;
use crate::region::within::copy_within;
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::columns::{Columns, Groups};
use crate::shm::engine::copy::Part;
use crate::shm::engine::cut::{Medium, Span};
use crate::shm::engine::exchange::{Exchange, Plan};
use crate::shm::engine::fold::Operand;
use crate::shm::engine::loans::Origin;
use crate::shm::engine::pieces::{put, take};

/// One process's part of a reduce.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grouped<'a> {
    me: Rank,
    root: Rank,
    columns: Columns,
    send: Data<'a>,
    /// Where the root receives; `None` elsewhere.
    receive: Option<Data<'a>>,
    op: Op,
    /// Where this process's fragment of the present step lies.
    own: Extent,
}

/// Steps of a piece.
const STEPS: u64 = 4;

/// What happens in a step; with the index of the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// The pieces of the process's column are folded in its group.
    Fold(u64),
    /// The shares of the process are folded among groups.
    FoldShares(u64),
    /// The shares of other groups are copied.
    CopyShares(u64),
    /// The pieces of other columns are copied.
    Copy(u64),
}

impl Act {
    const fn of(step: u64) -> Self {
        let piece = step / STEPS;
        match step % STEPS {
            0 => Self::Fold(piece),
            1 => Self::FoldShares(piece),
            2 => Self::CopyShares(piece),
            _ => Self::Copy(piece),
        }
    }
}

impl<'a> Grouped<'a> {
    /// Can so many ranks be cut into groups of one size?
    pub fn divides(ranks: u32) -> bool {
        Groups::of(ranks).is_some()
    }

    /// Can so many ranks be cut into groups, is there room for the op's elements, and does it commute?
    #[inline]
    pub fn applies(me: &Member, op: &Op) -> bool {
        op.commutative() && Groups::of(me.size()).is_some_and(|groups| groups.piece(me, op.element()) > 0)
    }

    /// The fold of the `send` of all ranks into the root's `receive`, which is significant only there. In place: `receive` is
    /// `send`.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; the root's `receive` is missing; data with holes; a length that is not a whole
    /// number of elements; `send` and `receive` differ in length; it does not [apply](Self::applies).
    pub fn new(
        me: &Member,
        send: Data<'a>,
        receive: Option<Data<'a>>,
        op: Op,
        root: Rank,
    ) -> Result<Exchange<Self>, Refusal> {
        let plan = Self::plan(me, send, receive, op, root)?;
        let span = Span { advance: plan.steps(), bytes: plan.columns.bytes() };
        Ok(Exchange::of(Medium::Queues, span, plan))
    }

    fn plan(me: &Member, send: Data<'a>, receive: Option<Data<'a>>, op: Op, root: Rank) -> Result<Self, Refusal> {
        me.check_root(root)?;
        let receive = if me.rank() == root { Some(receive.ok_or_else(absent)?) } else { None };
        Operand::check(&send, receive.as_ref(), &op)?;
        if !op.commutative() {
            return Err(Refusal::not(Argument::Operation, Condition::Applicable));
        }
        let columns = Columns::new(me, send.len(), &op)?;
        Ok(Self { me: me.rank(), root, columns, send, receive, op, own: Extent::new(0, 0) })
    }

    /// The column of `rank`.
    const fn column(&self, rank: Rank) -> u32 {
        self.columns.groups.column(rank)
    }

    /// Are the two ranks in one group?
    const fn beside(&self, one: Rank, other: Rank) -> bool {
        self.columns.groups.group(one) == self.columns.groups.group(other)
    }

    /// The share that `rank` folds of a piece of its column; and how far from the piece's begin it is.
    fn share(&self, rank: Rank, piece: u64) -> (Part, u64) {
        let Groups { count, .. } = self.columns.groups;
        self.columns.share(self.columns.part(self.column(rank), piece), self.columns.groups.group(rank), count)
    }
}

impl Plan for Grouped<'_> {
    fn kind(&self) -> Kind {
        Kind::Reduce
    }

    fn steps(&self) -> u64 {
        STEPS * self.columns.pieces
    }

    fn announced(&self) -> u64 {
        self.send.len()
    }

    fn posts(&self, step: u64) -> Option<u64> {
        match Act::of(step) {
            Act::Fold(_) => Some(0),
            // What it has done in the step before is complete.
            Act::FoldShares(_) | Act::CopyShares(_) => Some(step),
            Act::Copy(_) => self.beside(self.me, self.root).then_some(step),
        }
    }

    fn slot(&self, step: u64) -> u64 {
        step / STEPS * STEPS
    }

    fn takes_any(&self) -> bool {
        true
    }

    fn takes(&self, step: u64, peer: Rank) -> bool {
        let (own, beside) = (peer == self.me, self.beside(peer, self.me));
        let across = self.column(peer) == self.column(self.me);
        match Act::of(step) {
            // It receives the lines of all ranks from which it takes later, too.
            Act::Fold(piece) => {
                !own && (step == 0 && across
                    || beside && (step == 0 || self.columns.part(self.column(self.me), piece).len > 0))
            }
            Act::FoldShares(piece) => !own && across && self.share(self.me, piece).0.len > 0,
            Act::CopyShares(piece) => {
                let here = if own { self.me == self.root } else { self.beside(self.me, self.root) };
                here && across && self.share(peer, piece).0.len > 0
            }
            Act::Copy(piece) => {
                let columns = self.me == self.root && beside && !own;
                columns && self.columns.part(self.column(peer), piece).len > 0
            }
        }
    }

    fn reads(&self, step: u64, peer: Rank) -> bool {
        !matches!(Act::of(step), Act::Fold(_)) || self.beside(peer, self.me)
    }

    fn folds_into(&mut self, own: Extent) {
        self.own = own;
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        for column in 0..self.columns.groups.columns {
            let part = self.columns.part(column, step / STEPS);
            // SAFETY: the caller's promise.
            unsafe { put(region, self.columns.within(place, column, 0, part.len), &self.send, part) };
        }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable> {
        // Nobody lends anything here.
        let Origin::Segment(place) = origin else { return Err(Unreadable { changed: false }) };
        let act = Act::of(step);
        let (part, at) = match act {
            Act::Fold(piece) => (self.columns.part(self.column(self.me), piece), 0),
            Act::FoldShares(piece) => self.share(self.me, piece),
            Act::CopyShares(piece) => self.share(peer, piece),
            Act::Copy(piece) => (self.columns.part(self.column(peer), piece), 0),
        };
        let column = if matches!(act, Act::Copy(_)) { self.column(peer) } else { self.column(self.me) };
        let within = |fragment| self.columns.within(fragment, column, at, part.len);
        let (from, own) = (within(place), within(self.own));
        match (act, &self.receive) {
            // SAFETY: the caller's promise; no other process reads this of our fragment now.
            (Act::Fold(_) | Act::FoldShares(_), _) => unsafe { region.fold_within(from, own, &self.op) },
            // SAFETY: the caller's promise.
            (_, Some(receive)) => return unsafe { take(region, Origin::Segment(from), receive, part) },
            // SAFETY: the caller's promise; `peer` alone has read this of our fragment, before it published its share.
            (_, None) => unsafe { copy_within(region, from, own) },
        }
        Ok(())
    }

    fn is_of_loan(&self, _: u64) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{Layout, Params};
    use std::vec::Vec;

    /// What each rank takes of each piece: its column in its group, its share of it in the other groups; then the ranks of the
    /// root's group the other shares of their columns, and the root the other columns of its group.
    #[test]
    fn each_part_is_folded_once_and_comes_to_the_root() {
        for (ranks, root) in [(4, 0), (6, 5), (9, 4), (16, 9), (48, 17)] {
            let layout = Layout::new(Params { queue_fragment: 4096, ..Params::new(ranks) }).unwrap();
            let members: Vec<_> = (0..ranks).map(|rank| Member::new(layout, rank).unwrap()).collect();
            let mut memory = std::vec![0; 8 * 9001];
            let data = Data::bytes_mut(&mut memory);
            let plans: Vec<_> =
                members.iter().map(|me| Grouped::plan(me, data, Some(data), Op::SUM_I64, root).unwrap()).collect();
            let Groups { columns, count, .. } = plans[0].columns.groups;
            let takes =
                |rank: Rank, step| (0..ranks).filter(|peer| plans[rank as usize].takes(step, *peer)).count() as u32;
            for first in (STEPS..plans[0].steps() - STEPS).step_by(STEPS as usize) {
                for rank in 0..ranks {
                    let (collects, is_root) = (plans[0].beside(rank, root), rank == root);
                    let copies = if collects { count - u32::from(!is_root) } else { 0 };
                    let wanted = [columns - 1, count - 1, copies, if is_root { columns - 1 } else { 0 }];
                    assert_eq!([0, 1, 2, 3].map(|act| takes(rank, first + act)), wanted, "rank {rank} of {ranks}");
                    let posts = [0, 1, 2, 3].map(|act| plans[rank as usize].posts(first + act));
                    assert_eq!(posts, [Some(0), Some(first + 1), Some(first + 2), collects.then_some(first + 3)]);
                }
            }
        }
    }

    #[test]
    fn it_applies_to_ops_that_commute() {
        let me = Member::new(Layout::new(Params::new(4)).unwrap(), 0).unwrap();
        let mut memory = [0; 8];
        let data = Data::bytes_mut(&mut memory);
        assert!(Grouped::applies(&me, &Op::SUM_I64));
        assert!(Grouped::new(&me, data, Some(data), Op::SUM_I64, 4).is_err(), "no such root");
        assert!(Grouped::new(&me, data, None, Op::SUM_I64, 0).is_err(), "nowhere to receive");
        assert!(Grouped::new(&me, data, None, Op::SUM_I64, 1).is_ok());
    }
}
