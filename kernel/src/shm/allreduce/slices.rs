//! Allreduce by slices (ours): each rank folds one slice of the vector, so that all cores work.
//!
//! The vector is cut into one slice per rank, and each slice into pieces. Pieces are processed in batches of
//! up to eight. A batch of k pieces takes 2k steps:
//!
//! | steps | what every rank does |
//! |---|---|
//! | the first k | post the next piece of every slice; fold all ranks' pieces of its own slice |
//! | the other k | post the next result piece of its own slice; copy those of the other ranks |
//!
//! Only one rank folds a slice, so all ranks get the same bits. If a slot has no room for an element of each slice, a
//! fragment has a piece of one slice only: then the first part of a batch takes k·p steps instead of k.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::Refusal;
use crate::op::Op;
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::engine::cut::{Medium, Span};
use crate::shm::engine::exchange::{Exchange, Order, Plan};
use crate::shm::engine::fold::{Operand, Shares, fold_shared};
use crate::shm::engine::loans::Origin;
use crate::shm::engine::pieces::{Pair, put, take};

/// Most pieces of a batch: half a queue of the default length, so that a batch can be posted at once.
const BATCH: u64 = 8;

/// What happens in a step.
enum Act {
    /// The pieces in the fragment of this index are folded.
    Fold(u64),
    /// The result pieces of this index are copied.
    Copy(u64),
}

/// One process's part of an allreduce.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slices<'a> {
    me: Rank,
    size: u32,
    send: Data<'a>,
    receive: Data<'a>,
    op: Op,
    /// Bytes of a slice; the last slices may be shorter, or empty.
    slice: u64,
    shares: Shares,
    /// Number of pieces of a slice.
    pieces: u64,
}

impl<'a> Slices<'a> {
    /// The fold of the `send` of all ranks into the `receive` of all ranks. In place: `receive` is `send`.
    ///
    /// # Errors
    /// Data with holes; a length that is not a whole number of elements; `send` and `receive` differ in length; an
    /// element is longer than a slot.
    pub fn new(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Self>, Refusal> {
        Operand::check(&send, Some(&receive), &op)?;
        let slice = op.count(send.len())?.div_ceil(me.size().into()) * op.element();
        let (_, shares) = Shares::new(me, slice, &op, false)?;
        let pieces = shares.pieces.cut.steps(slice);
        let plan = Self { me: me.rank(), size: me.size(), send, receive, op, slice, shares, pieces };
        let span = Span { advance: plan.steps(), bytes: plan.shares.pieces.bytes(me) };
        Ok(Exchange::of(Medium::Queues, span, plan))
    }

    /// The part of the vector that is the piece of this index of `rank`'s slice.
    fn part(&self, rank: Rank, piece: u64) -> Part {
        let all = self.send.len();
        let begin = (u64::from(rank) * self.slice).min(all);
        let Part { from, len } = self.shares.pieces.cut.part(self.slice.min(all - begin), piece);
        Part { from: begin + from, len }
    }

    /// What happens in `step`; and before it, the number of steps of its batch in which pieces are folded.
    fn act(&self, step: u64) -> (u64, Act) {
        let cycle = self.shares.cycle();
        let (first, at) = match cycle {
            // The same as below, with a divisor that the compiler knows.
            1 => (step / (2 * BATCH) * BATCH, step % (2 * BATCH)),
            _ => (step / (BATCH * (cycle + 1)) * BATCH, step % (BATCH * (cycle + 1))),
        };
        let folds = BATCH.min(self.pieces - first) * cycle;
        (folds, if at < folds { Act::Fold(first * cycle + at) } else { Act::Copy(first + at - folds) })
    }
}

impl Plan for Slices<'_> {
    fn kind(&self) -> Kind {
        Kind::Allreduce
    }

    fn steps(&self) -> u64 {
        self.pieces * (self.shares.cycle() + 1)
    }

    fn announced(&self) -> u64 {
        self.send.len()
    }

    fn posts(&self, step: u64) -> Option<u64> {
        let after = match self.act(step) {
            (_, Act::Fold(_)) => 0,
            // A result piece is posted when it is complete: when all pieces of its index are folded.
            (folds, Act::Copy(piece)) => {
                let (at, cycle) = (piece % BATCH, self.shares.cycle());
                step - at - folds + (at + 1) * cycle
            }
        };
        (self.size > 1).then_some(after)
    }

    fn takes_any(&self) -> bool {
        true
    }

    fn takes(&self, step: u64, peer: Rank) -> bool {
        match self.act(step).1 {
            Act::Fold(at) => self.shares.is_for(at, self.me) && self.part(self.me, self.shares.piece(at)).len > 0,
            Act::Copy(piece) => peer != self.me && self.part(peer, piece).len > 0,
        }
    }

    fn order(&self) -> Order {
        Order::of(&self.op)
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        let at = match self.act(step).1 {
            Act::Fold(at) => at,
            // SAFETY: the caller's promise.
            Act::Copy(piece) => return unsafe { put(region, place, &self.receive, self.part(self.me, piece)) },
        };
        for reader in self.shares.readers(self.me, self.size, &self.op, at) {
            let (part, pair) = (self.part(reader, self.shares.piece(at)), Pair { writer: self.me, reader });
            // SAFETY: the caller's promise.
            unsafe { put(region, self.shares.pieces.of(place, pair), &self.send, part) };
        }
    }

    #[inline(always)]
    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable> {
        let piece = match self.act(step).1 {
            Act::Fold(at) => self.shares.piece(at),
            // SAFETY: the caller's promise.
            Act::Copy(piece) => return unsafe { take(region, origin, &self.receive, self.part(peer, piece)) },
        };
        let (part, ordered) = (self.part(self.me, piece), !self.op.commutative());
        let origin = self.shares.pieces.of_origin(origin, Pair { writer: peer, reader: self.me });
        match (ordered, peer == self.me, peer == self.size - 1) {
            // SAFETY: the caller's promise: both are this process's data; in place they are the same.
            (false, true, _) | (true, true, true) => unsafe { copy_private(region, &self.send, &self.receive, part) },
            // SAFETY: the caller's promise.
            (true, false, true) => return unsafe { take(region, origin, &self.receive, part) },
            // SAFETY: the caller's promise; for an op that does not commute this process has posted its own piece, too.
            _ => return unsafe { fold_shared(region, origin, &self.receive, part, &self.op) },
        }
        Ok(())
    }

    /// In place, too: a process overwrites another one's slice only with that one's result, for which that one has
    /// taken what it needs.
    fn lendable(&self) -> Option<Buf> {
        if self.shares.may_be_lent(&self.op) { self.send.as_contiguous() } else { None }
    }

    /// Where every rank has a slice: one without has not seen whether it can read loans.
    fn results(&self) -> Option<Buf> {
        let last = u64::from(self.size - 1) * self.slice;
        if last < self.send.len() { self.receive.as_contiguous() } else { None }
    }

    fn is_of_loan(&self, step: u64) -> bool {
        matches!(self.act(step).1, Act::Fold(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{Layout, Params};

    /// Batches of up to eight pieces: first all fragments of a batch are folded, then each result piece is copied,
    /// once it is complete.
    #[test]
    fn a_batch_is_folded_and_then_copied() {
        // Two pieces of 32 bytes side by side in a slot; then one piece of 64 bytes in a slot, for each rank in turn.
        for (slot, cycle, room) in [(64, 1, 32), (64, 3, 64)] {
            for pieces in [1, 7, 8, 9, 20] {
                let layout = Layout::new(Params { queue_fragment: slot, ..Params::new(3) }).unwrap();
                let me = Member::new(layout, 0).unwrap();
                let (op, slice) = (Op::SUM_I64, pieces * room);
                let mut memory = std::vec![0; 3 * slice as usize];
                let data = Data::bytes_mut(&mut memory);
                let shares = match cycle {
                    1 => Shares::new(&me, slice, &op, false).unwrap().1,
                    _ => Shares::one_at_a_time(&me, slice, &op).unwrap(),
                };
                let plan = Slices { me: 0, size: 3, send: data, receive: data, op, slice, shares, pieces };
                let mut step = 0;
                for first in (0..pieces).step_by(8) {
                    let (batch, begin) = (8.min(pieces - first), step);
                    for at in 0..batch * cycle {
                        assert!(matches!(plan.act(step), (folds, Act::Fold(found))
                            if folds == batch * cycle && found == first * cycle + at));
                        assert_eq!(plan.posts(step), Some(0));
                        step += 1;
                    }
                    for at in 0..batch {
                        assert!(matches!(plan.act(step).1, Act::Copy(found) if found == first + at));
                        assert_eq!(plan.posts(step), Some(begin + (at + 1) * cycle));
                        step += 1;
                    }
                }
                assert_eq!((plan.steps(), plan.announced()), (step, 3 * slice));
                let end = Part { from: 2 * slice, len: 0 };
                assert_eq!(plan.part(1, pieces), end, "no piece after the last");
            }
        }
    }
}
