//! Allgather by Bruck's algorithm: ⌈log2 p⌉ rounds for any p. A process gathers the blocks in working memory, in a
//! row that starts with its own, and unpacks them at the end. Blocks of different lengths cost p additions per round,
//! and p² / 2 at the end: use it then for few processes, or small blocks.

use crate::msg::parts::{Parts, Row};
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::bruck::Bruck;
use crate::pattern::{Hop, Pattern, Seat};

/// One process's part of an allgather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Concatenation<'a> {
    bruck: Bruck,
    parts: Parts<'a>,
    in_place: bool,
}

impl<'a> Concatenation<'a> {
    /// The blocks of all ranks go to the result areas of all ranks. In place, this rank's block is there already.
    pub const fn new(seat: Seat, parts: Parts<'a>, in_place: bool) -> Self {
        Self { bruck: Bruck(seat), parts, in_place }
    }

    const fn row(&self) -> Row<'a> {
        Row { parts: self.parts, start: self.bruck.0.rank() }
    }

    fn hop(&self, round: u64, index: u32) -> Option<(Hop, u32)> {
        Some((self.bruck.hop(round as u32).filter(|_| index == 0)?, round as u32))
    }
}

impl Schedule for Concatenation<'_> {
    fn rounds(&self) -> u64 {
        u64::from(self.bruck.rounds()).max(1)
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let (hop, round) = self.hop(round, index)?;
        Some(Message { peer: hop.to, place: self.row().place(Area::Scratch, 0, self.bruck.blocks(round)) })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let (hop, round) = self.hop(round, index)?;
        Some(Message { peer: hop.from, place: self.row().place(Area::Scratch, 1 << round, self.bruck.blocks(round)) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let rank = self.bruck.0.rank();
        match moment {
            Moment::Before if (round, index) == (0, 0) => {
                let own = self.parts.place(Area::Receive, rank);
                let from = if self.in_place { own } else { Place::new(Area::Send, 0, own.len) };
                Some(Work::Copy { from, to: Place::new(Area::Scratch, 0, own.len) })
            }
            Moment::After if round + 1 == self.rounds() => self.row().unpack(Area::Scratch, Area::Receive, index),
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let own = self.parts.len(self.bruck.0.rank());
        let send = if self.in_place { 0 } else { own };
        Bytes { send, receive: self.parts.reach(), scratch: self.parts.total() }
    }
}
