//! Reduce_scatter and reduce_scatter_block by exchange (ours): each rank posts a piece of each block, and
//! folds the pieces of its own block.
//!
//! In each step every rank does this:
//!
//! 1. Post the next piece of every block, side by side in one fragment.
//! 2. Copy its own piece of its own block to the result; fold those of the others into it, from the next rank on.
//!
//! If a slot has no room for an element of each block, a fragment has a piece of one block only: of rank 0's, rank
//! 1's, … in turn.
//!
//! Only one rank folds a block, so it may fold in any order if the op commutes. An op
//! that does not commute is folded from the last rank down to 0.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, Refusal};
use crate::op::Op;
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::engine::cut::Span;
use crate::shm::engine::exchange::{Exchange, Order, Plan};
use crate::shm::engine::fold::{Operand, Shares, fold_shared};
use crate::shm::engine::loans::Origin;
use crate::shm::engine::pieces::{Pair, take};

/// Checks the arguments of a reduce_scatter.
#[inline(always)]
pub(super) fn check(me: &Member, send: &Blocks<'_>, receive: &Data<'_>, op: &Op) -> Result<(), Refusal> {
    Refusal::check(Argument::Ranks, send.ranks().into(), Bound::Equals(me.size().into()))?;
    for rank in 0..me.size() {
        op.count(send.bytes(rank))?;
    }
    Operand::check(&send.block(me.rank()), Some(receive), op).map(drop)
}

/// One process's part of a reduce_scatter.
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
    /// `receive` becomes the fold of block `me` of the `send` of all ranks. All ranks know all lengths. In place:
    /// `receive` starts where the blocks start.
    ///
    /// # Errors
    /// `send` does not have one block per rank; this rank's block and `receive` differ in length; data with holes; a
    /// length that is not a whole number of elements.
    #[inline(always)]
    pub fn new(me: &Member, send: Blocks<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Self>, Refusal> {
        check(me, &send, &receive, &op)?;
        let (medium, shares) = Shares::new(me, send.most(), &op, true)?;
        let steps = shares.fragments(send.most());
        let span = Span { advance: steps, bytes: shares.pieces.bytes(me) };
        let plan = Self { me: me.rank(), size: me.size(), send, receive, op, shares, steps };
        Ok(Exchange::of(medium, span, plan))
    }

    /// The part of this rank's block whose pieces are in a step's fragments.
    #[inline]
    fn part(&self, step: u64) -> Part {
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
        // Nothing is taken for an empty block.
        self.shares.is_for(step, self.me) && self.part(step).len > 0
    }

    fn order(&self) -> Order {
        Order::of(&self.op)
    }

    const EXPECTS: bool = true;

    #[inline(always)]
    fn piece(&self, place: Extent, peer: Rank) -> Extent {
        self.shares.pieces.of(place, Pair { writer: peer, reader: self.me })
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        let piece = self.shares.piece(step);
        for reader in self.shares.readers(self.me, self.size, &self.op, step) {
            let pair = Pair { writer: self.me, reader };
            // SAFETY: the caller's promise.
            unsafe { self.shares.pieces.put(region, place, pair, piece, &self.send.block(reader)) };
        }
    }

    #[inline(always)]
    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable> {
        let part = self.part(step);
        let ordered = !self.op.commutative();
        if peer == self.me && (!ordered || self.size == 1) {
            // SAFETY: the caller's promise: both are this process's data.
            unsafe { copy_private(region, &self.send.block(self.me), &self.receive, part) };
            return Ok(());
        }
        let origin = self.shares.pieces.of_origin(origin, Pair { writer: peer, reader: self.me });
        if ordered && peer == self.size - 1 {
            // SAFETY: the caller's promise; this process has posted its own piece, too.
            return unsafe { take(region, origin, &self.receive, part) };
        }
        // SAFETY: as above.
        unsafe { fold_shared(region, origin, &self.receive, part, &self.op) }
    }

    /// In place, the first block is overwritten while others may still read theirs.
    fn lendable(&self) -> Option<Buf> {
        let memory = self.send.in_one_piece().filter(|_| self.shares.may_be_lent(&self.op))?;
        let end = memory.ptr().wrapping_add(memory.len());
        (!(memory.ptr()..end).contains(&self.receive.start())).then_some(memory)
    }

    fn offset(&self, _: Rank) -> u64 {
        (0..self.me).map(|rank| self.send.bytes(rank)).sum()
    }
}
