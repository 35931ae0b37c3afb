//! Scan and exscan along the chain of ranks, in segments: a segment of a partial result arrives from the rank before,
//! the process folds its operand into it, and sends the result to the next rank while the next segment arrives. Each
//! process sends one vector.

use crate::error::{Argument, Bound, Refusal};
use crate::msg::parts::{Segments, check_operand};
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::op::Op;
use crate::pattern::Seat;

/// One process's part of a scan or exscan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chain {
    seat: Seat,
    bytes: u64,
    segments: Segments,
    op: Op,
    in_place: bool,
    exclusive: bool,
}

impl Chain {
    /// As [`super::doubling::Doubling::new`], in segments of `segment` bytes.
    ///
    /// # Errors
    /// The operand is not a whole number of elements, or too long, or a segment has no bytes.
    pub fn new(seat: Seat, bytes: u64, op: Op, in_place: bool, exclusive: bool, segment: u64) -> Result<Self, Refusal> {
        check_operand(bytes, &op)?;
        Refusal::check(Argument::Fragment, segment, Bound::AtLeast(1))?;
        Ok(Self { seat, bytes, segments: Segments::new(bytes, segment, op.element()), op, in_place, exclusive })
    }

    /// A segment of this process's operand.
    fn operand(&self, segment: u64) -> Option<Place> {
        self.segments.place(if self.in_place { Area::Receive } else { Area::Send }, segment)
    }

    /// A segment of what this process sends on: the fold up to and with its own operand. In an exscan it lies in the
    /// second half of working memory, since what arrived is this process's result.
    fn onward(&self, segment: u64) -> Option<Place> {
        match (self.seat.rank(), self.exclusive) {
            (0, true) => self.operand(segment),
            (_, false) => self.segments.place(Area::Receive, segment),
            (_, true) => Some(self.segments.place(Area::Scratch, segment)?.moved(Area::Scratch, self.bytes)),
        }
    }

    const fn is_last(&self) -> bool {
        self.seat.rank() + 1 == self.seat.size()
    }
}

impl Schedule for Chain {
    fn rounds(&self) -> u64 {
        self.segments.count() + u64::from(self.seat.rank() > 0 && !self.is_last())
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let segment = round.checked_sub((self.seat.rank() > 0).into())?;
        let place = self.onward(segment).filter(|_| index == 0 && !self.is_last())?;
        Some(Message { peer: self.seat.rank() + 1, place })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let peer = self.seat.rank().checked_sub(1).filter(|_| index == 0)?;
        Some(Message { peer, place: self.segments.place(Area::Scratch, round)? })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let (arrived, result) =
            (self.segments.place(Area::Scratch, round)?, self.segments.place(Area::Receive, round)?);
        let (operand, onward) = (self.operand(round)?, self.onward(round)?);
        let (first, last) = (self.seat.rank() == 0, self.is_last());
        match (moment, index) {
            // In an exscan no rank needs the last rank's operand.
            (Moment::Before, 0) if operand != onward && !(self.exclusive && last) => {
                Some(Work::Copy { from: operand, to: onward })
            }
            (Moment::After, 0) if !first && self.exclusive => Some(Work::Copy { from: arrived, to: result }),
            (Moment::After, 1) if !first && self.exclusive && !last => {
                Some(Work::Fold { left: arrived, right: onward })
            }
            (Moment::After, 0) if !first => Some(Work::Fold { left: arrived, right: onward }),
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let scratch = match (self.seat.rank(), self.exclusive) {
            (0, _) => 0,
            (_, exclusive) if !exclusive || self.is_last() => self.bytes,
            _ => 2 * self.bytes,
        };
        let unused = self.exclusive && self.seat.rank() == 0 && !self.in_place;
        Bytes {
            send: if self.in_place { 0 } else { self.bytes },
            receive: if unused { 0 } else { self.bytes },
            scratch,
        }
    }

    fn op(&self) -> Option<Op> {
        Some(self.op)
    }
}
