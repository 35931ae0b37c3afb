//! Reduce_scatter by groups (ours): ranks that follow one another are a group, in which most pieces are folded.
//!
//! Rank c of group g is in column c, and blocks are cut into pieces. Each piece takes two steps:
//!
//! | step | what every rank does | with whom |
//! |---|---|---|
//! | the first | posts the piece of every block, side by side; folds those of its own column | its group |
//! | the second | folds what those of its column have folded of its own block | its column |
//!
//! What is folded stays in the fragment that was posted in the first step, and is published again in the second: of each piece of
//! a fragment, one other rank at most reads what it holds then. [By exchange](super::exchange) each rank reads its piece of p − 1
//! fragments, most of them from far cores. Here it reads as many bytes in its group, whose cores share a cache on many machines,
//! and beyond it a piece from one rank of each group.
//!
//! The op must commute: what is folded first is a rank's own operand, and its own group's.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::{Argument, Condition, Refusal};
use crate::op::Op;
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::columns::Groups;
use crate::shm::engine::copy::Part;
use crate::shm::engine::cut::{MUTUAL, Medium, Span};
use crate::shm::engine::exchange::{Exchange, Plan};
use crate::shm::engine::fold::fold_shared;
use crate::shm::engine::loans::Origin;
use crate::shm::engine::pieces::{Pair, Pieces, Readers, take};
use crate::shm::reduce_scatter::exchange::check;

/// Steps of a piece.
const STEPS: u64 = 2;

/// One process's part of a reduce_scatter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grouped<'a> {
    me: Rank,
    groups: Groups,
    send: Blocks<'a>,
    receive: Data<'a>,
    op: Op,
    /// Those of all blocks, this process's own among them, lie side by side in a fragment.
    pieces: Pieces,
    /// Where this process's fragment of the present step lies.
    own: Extent,
}

impl<'a> Grouped<'a> {
    /// Can so many ranks be cut into groups, is there room for an element of each block, and does the op commute?
    #[inline]
    pub fn applies(me: &Member, op: &Op) -> bool {
        op.commutative()
            && Groups::of(me.size()).is_some()
            && Pieces::queued(me, op.element(), op.element(), Readers::All, MUTUAL).is_ok()
    }

    /// `receive` becomes the fold of block `me` of the `send` of all ranks. All ranks know all lengths. In place:
    /// `receive` starts where the blocks start.
    ///
    /// # Errors
    /// As of [`ReduceScatter::new`](super::exchange::ReduceScatter::new); it does not [apply](Self::applies).
    pub fn new(me: &Member, send: Blocks<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Self>, Refusal> {
        let plan = Self::plan(me, send, receive, op)?;
        let span = Span { advance: plan.steps(), bytes: plan.pieces.bytes(me) };
        Ok(Exchange::of(Medium::Queues, span, plan))
    }

    fn plan(me: &Member, send: Blocks<'a>, receive: Data<'a>, op: Op) -> Result<Self, Refusal> {
        check(me, &send, &receive, &op)?;
        let groups = Groups::of(me.size()).filter(|_| op.commutative());
        let groups = groups.ok_or(Refusal::not(Argument::Operation, Condition::Applicable))?;
        let pieces = Pieces::queued(me, send.most(), op.element(), Readers::All, MUTUAL)?;
        Ok(Self { me: me.rank(), groups, send, receive, op, pieces, own: Extent::new(0, 0) })
    }

    /// The part of `rank`'s block whose piece is in a step's fragments.
    fn part(&self, rank: Rank, step: u64) -> Part {
        self.pieces.cut.part(self.send.bytes(rank), step / STEPS)
    }

    /// The piece of `rank`'s block in a fragment.
    fn within(&self, fragment: Extent, rank: Rank, len: u64) -> Extent {
        self.pieces.of(fragment, Pair { writer: self.me, reader: rank }).part(0, len)
    }

    /// The ranks of a column.
    fn of_column(&self, column: u32) -> impl Iterator<Item = Rank> + use<> {
        let groups = self.groups;
        (0..groups.count).map(move |group| groups.rank(group, column))
    }
}

impl Plan for Grouped<'_> {
    fn kind(&self) -> Kind {
        Kind::ReduceScatter
    }

    fn steps(&self) -> u64 {
        STEPS * self.pieces.cut.steps(self.send.most())
    }

    fn announced(&self) -> u64 {
        self.send.most()
    }

    /// What it has folded in a first step is complete when it comes to the second.
    fn posts(&self, step: u64) -> Option<u64> {
        Some(if step.is_multiple_of(STEPS) { 0 } else { step })
    }

    fn slot(&self, step: u64) -> u64 {
        step / STEPS * STEPS
    }

    fn takes_any(&self) -> bool {
        true
    }

    /// Its own pieces are in its fragment when it folds those of others into them.
    fn takes(&self, step: u64, peer: Rank) -> bool {
        let Self { me, groups, .. } = *self;
        if step.is_multiple_of(STEPS) {
            // It receives the lines of all ranks from which it takes later, too.
            let any = || self.of_column(groups.column(me)).any(|rank| self.part(rank, step).len > 0);
            peer != me && (step == 0 && groups.meets(me, 0, peer) || groups.group(peer) == groups.group(me) && any())
        } else {
            groups.column(peer) == groups.column(me) && self.part(me, step).len > 0
        }
    }

    fn reads(&self, step: u64, peer: Rank) -> bool {
        !step.is_multiple_of(STEPS) || self.groups.group(peer) == self.groups.group(self.me)
    }

    fn folds_into(&mut self, own: Extent) {
        self.own = own;
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        for reader in 0..self.send.ranks() {
            let (pair, block) = (Pair { writer: self.me, reader }, self.send.block(reader));
            // SAFETY: the caller's promise.
            unsafe { self.pieces.put(region, place, pair, step / STEPS, &block) };
        }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable> {
        // Nobody lends anything here.
        let Origin::Segment(place) = origin else { return Err(Unreadable { changed: false }) };
        if step.is_multiple_of(STEPS) {
            for rank in self.of_column(self.groups.column(self.me)) {
                let len = self.part(rank, step).len;
                let (from, own) = (self.within(place, rank, len), self.within(self.own, rank, len));
                // SAFETY: the caller's promise; no other process reads this of our fragment now.
                unsafe { region.fold_within(from, own, &self.op) };
            }
            return Ok(());
        }
        let part = self.part(self.me, step);
        let from = Origin::Segment(self.within(place, self.me, part.len));
        if peer == self.me {
            // SAFETY: the caller's promise: this process has written it.
            unsafe { take(region, from, &self.receive, part) }
        } else {
            // SAFETY: the caller's promise.
            unsafe { fold_shared(region, from, &self.receive, part, &self.op) }
        }
    }

    fn is_of_loan(&self, _: u64) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datatype::Datatype;
    use crate::region::{Layout, Params};
    use std::vec::Vec;

    /// Of each piece, a rank folds those of its column in its group, and then its own of the other groups.
    #[test]
    fn each_piece_is_folded_once_and_comes_to_its_rank() {
        for ranks in [4, 6, 9, 16, 48] {
            let layout = Layout::new(Params { queue_fragment: 4096, ..Params::new(ranks) }).unwrap();
            let mut memory = std::vec![0u8; 8000 * ranks as usize];
            let mut result = std::vec![0u8; 8000];
            let send = Blocks::equal_mut(&mut memory, ranks, 8000, Datatype::BYTE).unwrap();
            let receive = Data::bytes_mut(&mut result);
            let plan = |rank| Grouped::plan(&Member::new(layout, rank).unwrap(), send, receive, Op::SUM_I64).unwrap();
            let plans: Vec<_> = (0..ranks).map(plan).collect();
            let Groups { columns, count, .. } = plans[0].groups;
            assert!(plans[0].steps() > 2 * STEPS);
            for (rank, plan) in plans.iter().enumerate() {
                let takes = |step| (0..ranks).filter(|peer| plan.takes(step, *peer)).count() as u32;
                let reads = |step| (0..ranks).filter(|peer| plan.takes(step, *peer) && plan.reads(step, *peer)).count();
                assert_eq!([takes(0), takes(1)], [columns - 1 + count - 1, count], "rank {rank} of {ranks}");
                assert_eq!([takes(2), takes(3)], [columns - 1, count], "rank {rank} of {ranks}");
                assert_eq!(reads(0) as u32, columns - 1);
                assert_eq!([0, 1, 2, 3].map(|step| plan.posts(step)), [Some(0), Some(1), Some(0), Some(3)]);
            }
        }
    }

    #[test]
    fn it_applies_where_there_are_groups() {
        let member = |queue_fragment| Member::new(Layout::new(Params { queue_fragment, ..Params::new(4) }).unwrap(), 0);
        let applies = |queue_fragment, op: &Op| Grouped::applies(&member(queue_fragment).unwrap(), op);
        assert!(applies(4096, &Op::SUM_I64) && applies(64, &Op::SUM_I64));
        assert!(!Grouped::applies(&Member::new(Layout::new(Params::new(5)).unwrap(), 0).unwrap(), &Op::SUM_I64));
    }
}
