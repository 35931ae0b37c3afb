//! Allreduce by slices (ours): everyone folds its share of every fragment, so that all cores work.
//!
//! The vector is cut into one slice per process. Ticks come in pairs:
//!
//! | tick | who | what |
//! |---|---|---|
//! | 2j | all | post the j-th piece of every slice; fold everyone's piece of the own slice |
//! | 2j + 1 | all | post the result's piece; copy everyone else's |
//!
//! A slice is folded by one process alone: all get the same bits.

use crate::Rank;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{PollError, Refusal};
use crate::op::Op;
use crate::region::{Extent, Region};
use crate::shm::copy::copy_private;
use crate::shm::exchange::{Exchange, Pieces, Plan, get, put};
use crate::shm::fold::{Operand, fold_shared, fold_turn};
use crate::shm::line::Kind;

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slices<'a> {
    me: Rank,
    size: u32,
    send: Data<'a>,
    receive: Data<'a>,
    op: Op,
    /// Bytes of a slice; the last ones may be shorter, or empty.
    slice: u64,
    pieces: Pieces,
    ticks: u64,
}

impl<'a> Slices<'a> {
    /// The fold of everyone's `send` into everyone's `receive`. In place: the same data twice.
    ///
    /// # Errors
    /// Data with holes, no whole number of elements, two lengths; an element does not fit a process's share of a slot.
    pub fn new(me: &mut Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Self>, Refusal> {
        Operand::new(send, Some(receive), op)?;
        let slice = op.count(send.len())?.div_ceil(me.size().into()) * op.element();
        let (way, pieces) = Pieces::queued(me, slice, op.element(), !op.commutative())?;
        let ticks = 2 * pieces.cut.ticks(slice);
        let plan = Self { me: me.rank(), size: me.size(), send, receive, op, slice, pieces, ticks };
        Ok(Exchange::new(me, way, ticks, plan))
    }

    /// The piece of `rank`'s slice in a pair of ticks: first byte and length, in the whole vector.
    fn part(&self, rank: Rank, pair: u64) -> (u64, u64) {
        let all = self.send.len();
        let begin = (u64::from(rank) * self.slice).min(all);
        let (from, len) = self.pieces.cut.part(self.slice.min(all - begin), pair);
        (begin + from, len)
    }
}

impl Plan for Slices<'_> {
    fn kind(&self) -> Kind {
        Kind::Allreduce
    }

    fn ticks(&self) -> u64 {
        self.ticks
    }

    fn announced(&self) -> u64 {
        self.send.len()
    }

    fn posts(&self, _: u64) -> bool {
        self.size > 1
    }

    fn takes_any(&self) -> bool {
        true
    }

    fn takes(&self, tick: u64, peer: Rank) -> bool {
        tick == 0
            || if tick.is_multiple_of(2) {
                self.part(self.me, tick / 2).1 > 0
            } else {
                peer != self.me && self.part(peer, tick / 2).1 > 0
            }
    }

    fn turn(&self, me: Rank, size: u32, index: u32) -> Rank {
        fold_turn(&self.op, me, size, index)
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, tick: u64) {
        let pair = tick / 2;
        if tick % 2 == 1 {
            // SAFETY: the caller's promise.
            return unsafe { put(region, place, &self.receive, self.part(self.me, pair)) };
        }
        for reader in (0..self.size).filter(|&reader| reader != self.me || !self.op.commutative()) {
            let part = self.part(reader, pair);
            // SAFETY: the caller's promise.
            unsafe { put(region, self.pieces.of(place, (self.me, reader)), &self.send, part) };
        }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, place: Extent, tick: u64, peer: Rank) -> Result<(), PollError> {
        let pair = tick / 2;
        if tick % 2 == 1 {
            // SAFETY: the caller's promise.
            unsafe { get(region, place, &self.receive, self.part(peer, pair)) };
            return Ok(());
        }
        let (part, ordered) = (self.part(self.me, pair), !self.op.commutative());
        let piece = self.pieces.of(place, (peer, self.me));
        match (ordered, peer == self.me, peer == self.size - 1) {
            // SAFETY: the caller's promise: both are this process's data; in place they are the same.
            (false, true, _) | (true, true, true) => unsafe { copy_private(&self.send, &self.receive, part) },
            // SAFETY: the caller's promise.
            (true, false, true) => unsafe { get(region, piece, &self.receive, part) },
            // SAFETY: the caller's promise; this process has posted its own piece where order counts.
            _ => unsafe { fold_shared(region, piece, &self.receive, part, &self.op) },
        }
        Ok(())
    }
}
