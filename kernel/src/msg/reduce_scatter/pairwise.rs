//! Reduce_scatter by pairwise messages, for any associative op. In round k = 1 … p − 1 rank r sends block r + k of
//! its operand to rank r + k, and folds what rank r − k sends for block r, all modulo p.
//!
//! The operands of the ranks below r arrive first, from r − 1 down to 0; then those of the ranks above, from p − 1
//! down to r + 1. Each group is folded from the left into a partial result of its own; the last round folds both
//! together.

use crate::error::Refusal;
use crate::msg::parts::Parts;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::op::Op;
use crate::pattern::Seat;

/// One process's part of a reduce_scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pairwise<'a> {
    seat: Seat,
    parts: Parts<'a>,
    op: Op,
    source: Area,
}

/// The three blocks of working memory.
#[derive(Clone, Copy)]
enum Room {
    /// The fold of ranks 0 … r: x₀ ∘ … ∘ xᵣ.
    Lower,
    /// The fold of ranks r + 1 … p − 1: xᵣ₊₁ ∘ … ∘ xₚ₋₁.
    Higher,
    /// The operand that arrives.
    Arrived,
}

impl<'a> Pairwise<'a> {
    /// Block r of the operands of all ranks is folded to the start of rank r's result area.
    ///
    /// # Errors
    /// There is not one block per rank; a block is not a whole number of elements.
    pub fn new(seat: Seat, parts: Parts<'a>, op: Op, in_place: bool) -> Result<Self, Refusal> {
        super::check(seat, parts, op)?;
        Ok(Self { seat, parts, op, source: if in_place { Area::Receive } else { Area::Send } })
    }

    /// The place of one of the blocks of working memory; each is as long as this rank's block.
    fn own(&self, room: Room) -> Place {
        let len = self.parts.len(self.seat.rank());
        Place::new(Area::Scratch, room as u64 * len, len)
    }

    /// k of a round, which counts from 0; `None` past the last.
    fn distance(&self, round: u64) -> Option<u32> {
        u32::try_from(round + 1).ok().filter(|distance| *distance < self.seat.size())
    }

    /// The place of the operand that arrives from `distance` ranks before this one: that of rank p − 1 is the first
    /// of the fold of the higher ranks, and goes there; all others are folded afterwards.
    fn arrives(&self, distance: u32) -> Place {
        self.own(if distance == self.seat.rank() + 1 { Room::Higher } else { Room::Arrived })
    }
}

impl Schedule for Pairwise<'_> {
    fn rounds(&self) -> u64 {
        u64::from(self.seat.size() - 1).max(1)
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let peer = self.seat.after(self.distance(round).filter(|_| index == 0)?);
        Some(Message { peer, place: self.parts.place(self.source, peer) })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let distance = self.distance(round).filter(|_| index == 0)?;
        Some(Message { peer: self.seat.before(distance), place: self.arrives(distance) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let rank = self.seat.rank();
        let (last, highest) = (round + 1 == self.rounds(), rank + 1 == self.seat.size());
        let arrived = match self.distance(round) {
            Some(distance) if distance <= rank => Some(Room::Lower),
            Some(distance) if distance > rank + 1 => Some(Room::Higher),
            _ => None,
        };
        let fold = arrived.map(|room| Work::Fold { left: self.own(Room::Arrived), right: self.own(room) });
        let join =
            (last && !highest).then(|| Work::Fold { left: self.own(Room::Lower), right: self.own(Room::Higher) });
        let result = last.then(|| {
            let from = self.own(if highest { Room::Lower } else { Room::Higher });
            Work::Copy { from, to: Place { area: Area::Receive, at: 0, ..from } }
        });
        match moment {
            Moment::Before if (round, index) == (0, 0) => {
                Some(Work::Copy { from: self.parts.place(self.source, rank), to: self.own(Room::Lower) })
            }
            Moment::After => [fold, join, result].into_iter().flatten().nth(index as usize),
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        super::bytes(self.seat, self.parts, self.source, 3 * self.parts.len(self.seat.rank()))
    }

    fn op(&self) -> Option<Op> {
        Some(self.op)
    }
}
