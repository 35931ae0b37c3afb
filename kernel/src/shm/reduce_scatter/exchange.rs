//! Reduce_scatter and reduce_scatter_block by exchange (ours): everyone posts a piece of each block, and
//! folds the pieces of its own.
//!
//! | who | per step |
//! |---|---|
//! | all | post the next piece of every block, side by side in one fragment |
//! | all | begin with the own piece of the own block, fold everyone else's, from the next rank on |
//!
//! Where a slot has not room for an element for each process, a fragment has a piece of one block, of each rank in its order.
//!
//! A result is folded by one process alone, so that its order is its own affair; an operation
//! that does not commute is folded from the last rank down to 0.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::op::Op;
use crate::region::{Extent, Region};
use crate::shm::engine::copy::copy_private;
use crate::shm::engine::exchange::{Exchange, Order, Plan};
use crate::shm::engine::fold::{Operand, Shares, fold_shared};
use crate::shm::engine::pieces::get;

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceScatter<'a> {
    me: Rank,
    size: u32,
    send: Blocks<'a>,
    receive: Data<'a>,
    op: Op,
    shares: Shares,
    steps: u64,
}

impl<'a> ReduceScatter<'a> {
    /// `receive` becomes the fold of everyone's block `me` of `send`. All know all lengths. In place: `receive`
    /// lies where the blocks begin.
    ///
    /// # Errors
    /// Not one block per rank; the own block and `receive` differ in length; data with holes, or no whole number of elements.
    #[inline(always)]
    pub fn new(me: &Member, send: Blocks<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Self>, Refusal> {
        Refusal::check(Argument::Ranks, send.ranks().into(), Bound::Equals(me.size().into()))?;
        for rank in 0..me.size() {
            op.count(send.bytes(rank))?;
        }
        Operand::new(send.block(me.rank()), Some(receive), op)?;
        let (medium, shares) = Shares::new(me, send.most(), &op, true)?;
        let steps = shares.fragments(send.most());
        let plan = Self { me: me.rank(), size: me.size(), send, receive, op, shares, steps };
        Ok(Exchange::of(medium, steps, plan))
    }

    /// The part of the own block whose pieces are in a step's fragments.
    #[inline]
    fn part(&self, step: u64) -> (u64, u64) {
        self.shares.pieces.cut.part(self.receive.len(), self.shares.piece(step))
    }
}

impl Plan for ReduceScatter<'_> {
    fn kind(&self) -> Kind {
        Kind::ReduceScatter
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn announced(&self) -> u64 {
        self.send.most()
    }

    fn posts(&self, _: u64) -> Option<u64> {
        (self.size > 1).then_some(0)
    }

    fn takes_any(&self) -> bool {
        true
    }

    fn takes(&self, step: u64, _: Rank) -> bool {
        // An empty block needs nobody.
        self.shares.is_for(step, self.me) && self.part(step).1 > 0
    }

    fn order(&self) -> Order {
        Order::of(&self.op)
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        let piece = self.shares.piece(step);
        for reader in self.shares.readers((self.me, self.size), &self.op, step) {
            // SAFETY: the caller's promise.
            unsafe { self.shares.pieces.put(region, place, (self.me, reader), piece, &self.send.block(reader)) };
        }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, place: Extent, step: u64, peer: Rank) -> Result<(), PollError> {
        let part = self.part(step);
        let ordered = !self.op.commutative();
        if peer == self.me && (!ordered || self.size == 1) {
            // SAFETY: the caller's promise: both are this process's data.
            unsafe { copy_private(&self.send.block(self.me), &self.receive, part) };
            return Ok(());
        }
        let place = self.shares.pieces.of(place, (peer, self.me));
        if ordered && peer == self.size - 1 {
            // SAFETY: the caller's promise; this process has posted its own piece too.
            unsafe { get(region, place, &self.receive, part) };
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { fold_shared(region, place, &self.receive, part, &self.op) };
        Ok(())
    }
}
