//! Two phases round a ring of all ranks: reduce_scatter and allgather.

use super::parts::{Parts, Segments};
use super::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::Rank;
use crate::op::Op;
use crate::pattern::ring::Ring;
use crate::pattern::{Hop, Pattern, Seat, rotated};

/// Allgather round a ring: in round 0 a process sends its own block to the next rank, in round k the block that it
/// received in round k − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Allgather<'a> {
    ring: Ring,
    /// The rank of vertex 0.
    first: Rank,
    parts: Parts<'a>,
    /// The area from which this process's block is copied to its place; `None`: it is there already.
    own: Option<Area>,
}

impl<'a> Allgather<'a> {
    /// The blocks of all ranks go to all ranks. This process's block is at the start of `own`; `None`: in its place.
    pub const fn new(seat: Seat, parts: Parts<'a>, own: Option<Area>) -> Self {
        Self { ring: Ring(seat), first: 0, parts, own }
    }

    /// The same with vertices instead of ranks: vertex 0 is rank `first`. This process's block is in its place.
    pub const fn rotated(vertex: Seat, first: Rank, parts: Parts<'a>) -> Self {
        Self { ring: Ring(vertex), first, parts, own: None }
    }

    /// The hop of a round, with the round as 32 bits; `None` past the last message.
    fn hop(&self, round: u64, index: u32) -> Option<(Hop, u32)> {
        let round = u32::try_from(round).ok().filter(|_| index == 0)?;
        Some((self.ring.hop(round)?, round))
    }

    fn message(&self, vertex: u32, block: u32) -> Message {
        let peer = rotated(vertex, self.first, self.ring.0.size());
        Message { peer, place: self.parts.place(Area::Receive, block) }
    }
}

impl Schedule for Allgather<'_> {
    #[inline]
    fn rounds(&self) -> u64 {
        u64::from(self.ring.0.size() - 1).max(1)
    }

    #[inline]
    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let (hop, round) = self.hop(round, index)?;
        Some(self.message(hop.to, self.ring.sent(round)))
    }

    #[inline]
    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let (hop, round) = self.hop(round, index)?;
        Some(self.message(hop.from, self.ring.received(round)))
    }

    #[inline]
    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let from = self.own.filter(|_| (round, moment, index) == (0, Moment::Before, 0))?;
        let to = self.parts.place(Area::Receive, self.ring.0.rank());
        Some(Work::Copy { from: Place { area: from, at: 0, len: to.len }, to })
    }

    fn bytes(&self) -> Bytes {
        let (seat, own) = (self.ring.0, |area| self.own == Some(area));
        let send = if own(Area::Send) { self.parts.len(seat.rank()) } else { 0 };
        Bytes { send, receive: self.parts.reach(), scratch: 0 }
    }
}

/// Reduce_scatter round a ring: partial results go round, and each process folds its operand into them. Rank r ends
/// with the result of block r.
///
/// Blocks travel in segments. In round (step, segment) a segment of block r − step − 2 arrives at rank r, which folds
/// its own operand into it; if there are at least two segments, while the next one travels. The ranks fold a block in
/// turn, from the rank after its owner on: for ops that commute only. Each block is folded once, so all ranks see the
/// same bits.
///
/// ```text
/// step 0        step 1              step p − 2
/// own ──►  x ∘ arrived ──►  …  ──►  x ∘ arrived = block r
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReduceScatter<'a> {
    seat: Seat,
    parts: Parts<'a>,
    op: Op,
    /// The area in which the operand lies.
    source: Area,
    /// The first byte of the result in the result area.
    result: u64,
    segments: Segments,
}

impl<'a> ReduceScatter<'a> {
    /// Block r of the `source` of all ranks is folded to byte `result` of rank r's result area, in segments of
    /// `segment` bytes.
    pub(super) fn new(seat: Seat, parts: Parts<'a>, op: Op, source: Area, result: u64, segment: u64) -> Self {
        let segments = Segments::new(parts.most(), segment, op.element());
        Self { seat, parts, op, source, result, segments }
    }

    /// The step and the segment of a round; `None` past the last.
    fn at(&self, round: u64) -> Option<(u32, u64)> {
        let (step, segment) = (round / self.segments.count(), round % self.segments.count());
        Some((step as u32, segment)).filter(|_| step + 1 < self.seat.size().into())
    }

    /// A segment of this process's operand for the rank `back` ranks before it. With `back` = 1 it is sent in step 0;
    /// else it is folded into what arrives in step `back` − 2.
    fn operand(&self, back: u32, segment: u64) -> Place {
        self.segments.of(self.parts.place(self.source, self.seat.before(back)), segment)
    }

    /// The place in working memory of a segment that arrives in a step.
    fn arrived(&self, step: u32, segment: u64) -> Place {
        let most = self.parts.most();
        let block = Place::new(Area::Scratch, u64::from(step % 2) * most, self.parts.len(self.seat.before(step + 2)));
        self.segments.of(block, segment)
    }

    /// Folds this process's operand into what has arrived in `round`.
    fn fold(&self, round: u64) -> Option<Work> {
        let (step, segment) = self.at(round)?;
        Some(Work::Fold { left: self.operand(step + 2, segment), right: self.arrived(step, segment) })
    }
}

impl Schedule for ReduceScatter<'_> {
    fn rounds(&self) -> u64 {
        (u64::from(self.seat.size() - 1) * self.segments.count()).max(1)
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let (step, segment) = self.at(round).filter(|_| index == 0)?;
        let place = match step.checked_sub(1) {
            None => self.operand(1, segment),
            Some(before) => self.arrived(before, segment),
        };
        Some(Message { peer: self.seat.after(1), place })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let (step, segment) = self.at(round).filter(|_| index == 0)?;
        Some(Message { peer: self.seat.before(1), place: self.arrived(step, segment) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let last = round + 1 == self.rounds();
        // With one segment, the fold is done before the next round's send; with more, while the next segment travels.
        let overlaps = self.segments.count() > 1;
        match (moment, index) {
            (Moment::Meanwhile, 0) if overlaps => self.fold(round.checked_sub(1)?),
            (Moment::After, 0) if self.seat.size() == 1 => {
                let to = Place::new(Area::Receive, self.result, self.parts.len(0));
                Some(Work::Copy { from: self.parts.place(self.source, 0), to }).filter(|_| self.source != Area::Receive)
            }
            (Moment::After, 0) if last || !overlaps => self.fold(round),
            (Moment::After, 1) if last && self.seat.size() > 1 => {
                let len = self.parts.len(self.seat.rank());
                let step = self.seat.size() - 2;
                let from = Place::new(Area::Scratch, u64::from(step % 2) * self.parts.most(), len);
                Some(Work::Copy { from, to: Place::new(Area::Receive, self.result, len) })
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let (size, operand) = (self.seat.size(), self.parts.reach());
        let (send, receive) = if self.source == Area::Send { (operand, 0) } else { (0, operand) };
        let result = self.result + self.parts.len(self.seat.rank());
        let scratch = if size == 1 { 0 } else { 2 * self.parts.most() };
        Bytes { send, receive: receive.max(result), scratch }
    }

    fn op(&self) -> Option<Op> {
        Some(self.op)
    }
}
