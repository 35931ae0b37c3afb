//! Reduce_scatter and reduce_scatter_block by exchange (ours): everyone posts a piece of each block, and
//! folds the pieces of its own.
//!
//! | who | per tick |
//! |---|---|
//! | all | post the next piece of every block, side by side in one fragment |
//! | all | begin with the own piece of the own block, fold everyone else's, from the next rank on |
//!
//! A result is folded by one process alone, so that its order is its own affair; an operation
//! that does not commute is folded from the last rank down to 0.

use crate::Rank;
use crate::blocks::Blocks;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::op::Op;
use crate::region::{Extent, Region};
use crate::shm::copy::copy_private;
use crate::shm::exchange::{Exchange, Plan};
use crate::shm::fold::{Operand, fold_readers, fold_shared, fold_turn};
use crate::shm::line::Kind;
use crate::shm::pieces::{Pieces, get};

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceScatter<'a> {
    me: Rank,
    size: u32,
    send: Blocks<'a>,
    receive: Data<'a>,
    op: Op,
    pieces: Pieces,
    ticks: u64,
}

impl<'a> ReduceScatter<'a> {
    /// `receive` becomes the fold of everyone's block `me` of `send`. All know all lengths. In place: `receive`
    /// lies where the blocks begin.
    ///
    /// # Errors
    /// Not one block per rank; the own block and `receive` differ in length; data with holes, or no whole number of elements.
    #[inline(always)]
    pub fn new(me: &mut Member, send: Blocks<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Self>, Refusal> {
        Refusal::check(Argument::Ranks, send.ranks().into(), Bound::Equals(me.size().into()))?;
        for rank in 0..me.size() {
            op.count(send.bytes(rank))?;
        }
        Operand::new(send.block(me.rank()), Some(receive), op)?;
        let (way, pieces) = Pieces::known(me, send.most(), op.element(), fold_readers(&op))?;
        let ticks = pieces.cut.ticks(send.most());
        let plan = Self { me: me.rank(), size: me.size(), send, receive, op, pieces, ticks };
        Ok(Exchange::new(me, way, ticks, plan))
    }
}

impl Plan for ReduceScatter<'_> {
    fn kind(&self) -> Kind {
        Kind::ReduceScatter
    }

    fn ticks(&self) -> u64 {
        self.ticks
    }

    fn announced(&self) -> u64 {
        self.send.most()
    }

    fn posts(&self, _: u64) -> bool {
        self.size > 1
    }

    fn takes_any(&self) -> bool {
        true
    }

    fn takes(&self, tick: u64, _: Rank) -> bool {
        // An empty block needs nobody.
        self.pieces.cut.part(self.receive.len(), tick).1 > 0
    }

    fn turn(&self, me: Rank, size: u32, index: u32) -> Rank {
        fold_turn(&self.op, me, size, index)
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, tick: u64) {
        for reader in (0..self.size).filter(|&reader| reader != self.me || !self.op.commutative()) {
            // SAFETY: the caller's promise.
            unsafe { self.pieces.put(region, place, (self.me, reader), tick, &self.send.block(reader)) };
        }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, place: Extent, tick: u64, peer: Rank) -> Result<(), PollError> {
        let part = self.pieces.cut.part(self.receive.len(), tick);
        let ordered = !self.op.commutative();
        if peer == self.me && (!ordered || self.size == 1) {
            // SAFETY: the caller's promise: both are this process's data.
            unsafe { copy_private(&self.send.block(self.me), &self.receive, part) };
            return Ok(());
        }
        let place = self.pieces.of(place, (peer, self.me));
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
