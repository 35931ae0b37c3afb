//! Scan and exscan by doubling (Hillis and Steele 1986), for any associative op: in round k a process receives the
//! partial result of the rank 2ᵏ below it, which covers 2ᵏ ranks, and folds it into its own. ⌈log2 p⌉ rounds; an
//! exscan first moves all operands up by one rank, in one more round.

use crate::error::Refusal;
use crate::msg::parts::check_operand;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::op::Op;
use crate::pattern::{Seat, log2_ceil};

/// One process's part of a scan or exscan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Doubling {
    seat: Seat,
    bytes: u64,
    op: Op,
    in_place: bool,
    /// Is it an exscan? Then operands move up by one rank first, and rank 0 has none.
    exclusive: bool,
}

impl Doubling {
    /// Rank r's result area becomes the fold of the operands of ranks 0 … r. If `exclusive`, it is that of ranks 0 …
    /// r − 1, and rank 0's result area stays as it is.
    ///
    /// # Errors
    /// The operand is not a whole number of elements, or too long.
    pub fn new(seat: Seat, bytes: u64, op: Op, in_place: bool, exclusive: bool) -> Result<Self, Refusal> {
        check_operand(bytes, &op)?;
        Ok(Self { seat, bytes, op, in_place, exclusive })
    }

    const fn place(&self, area: Area) -> Place {
        Place::new(area, 0, self.bytes)
    }

    const fn operand(&self) -> Place {
        self.place(if self.in_place { Area::Receive } else { Area::Send })
    }

    /// Is this the round in which operands move up?
    const fn shifts(&self, round: u64) -> bool {
        self.exclusive && round == 0
    }

    /// The distance in ranks that messages go in `round`, and the lowest rank that has something to send.
    const fn distance(&self, round: u64) -> (u32, u32) {
        match (self.exclusive, round.checked_sub(1)) {
            (false, _) => (1 << round, 0),
            (true, None) => (1, 0),
            (true, Some(round)) => (1 << round, 1),
        }
    }
}

impl Schedule for Doubling {
    fn rounds(&self) -> u64 {
        let ranks = self.seat.size() - u32::from(self.exclusive);
        (u64::from(log2_ceil(ranks)) + u64::from(self.exclusive)).max(1)
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let (distance, first) = self.distance(round);
        let (rank, size) = (self.seat.rank(), self.seat.size());
        let sends = index == 0 && rank >= first && distance < size - rank;
        let place = if self.shifts(round) { self.operand() } else { self.place(Area::Receive) };
        sends.then(|| Message { peer: rank + distance, place })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let (distance, first) = self.distance(round);
        let peer = self.seat.rank().checked_sub(distance).filter(|&peer| index == 0 && peer >= first)?;
        let area = if self.shifts(round) && !self.in_place { Area::Receive } else { Area::Scratch };
        Some(Message { peer, place: self.place(area) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let (arrived, result) = (self.place(Area::Scratch), self.place(Area::Receive));
        match moment {
            Moment::Before if (round, index) == (0, 0) && !self.exclusive && !self.in_place => {
                Some(Work::Copy { from: self.operand(), to: result })
            }
            Moment::After if index == 0 => {
                let from = self.receive(round, 0)?;
                match self.shifts(round) {
                    true => Some(Work::Copy { from: arrived, to: result }).filter(|_| from.place == arrived),
                    false => Some(Work::Fold { left: arrived, right: result }),
                }
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let unused = self.exclusive && self.seat.rank() == 0 && !self.in_place;
        Bytes {
            send: if self.in_place { 0 } else { self.bytes },
            receive: if unused { 0 } else { self.bytes },
            scratch: self.bytes,
        }
    }

    fn op(&self) -> Option<Op> {
        Some(self.op)
    }
}
