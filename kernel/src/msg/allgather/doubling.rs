//! Allgather by recursive doubling: in each round partners send each other all blocks that they have. The number of
//! processes is a power of two.
//!
//! Equal blocks are gathered in the result area; blocks of different lengths in a row in working memory, which is
//! unpacked at the end.

use crate::msg::parts::{Parts, Row};
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::doubling::Doubling as Pairs;
use crate::pattern::{Pattern, Seat};

/// One process's part of an allgather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Doubling<'a> {
    pairs: Pairs,
    parts: Parts<'a>,
    in_place: bool,
}

impl<'a> Doubling<'a> {
    /// The blocks of all ranks go to the result areas of all ranks. In place, this rank's block is there already. The
    /// size is a power of two.
    pub const fn new(seat: Seat, parts: Parts<'a>, in_place: bool) -> Self {
        Self { pairs: Pairs(seat), parts, in_place }
    }

    const fn row(&self) -> Row<'a> {
        Row { parts: self.parts, start: 0 }
    }

    const fn area(&self) -> Area {
        if self.parts.is_equal() { Area::Receive } else { Area::Scratch }
    }

    /// The blocks that `rank` has before `round`.
    fn has(&self, rank: u32, round: u64) -> Place {
        self.row().place(self.area(), rank >> round << round, 1 << round)
    }
}

impl Schedule for Doubling<'_> {
    fn rounds(&self) -> u64 {
        u64::from(self.pairs.0.size().ilog2()).max(1)
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let hop = self.pairs.hop(round as u32).filter(|_| index == 0)?;
        Some(Message { peer: hop.to, place: self.has(self.pairs.0.rank(), round) })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let hop = self.pairs.hop(round as u32).filter(|_| index == 0)?;
        Some(Message { peer: hop.from, place: self.has(hop.from, round) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let (rank, area) = (self.pairs.0.rank(), self.area());
        match moment {
            Moment::Before if (round, index) == (0, 0) => {
                let (own, to) = (self.parts.place(Area::Receive, rank), self.row().place(area, rank, 1));
                let from = if self.in_place { own } else { Place::new(Area::Send, 0, own.len) };
                Some(Work::Copy { from, to }).filter(|_| from != to)
            }
            Moment::After if round + 1 == self.rounds() && area == Area::Scratch => {
                self.row().unpack(Area::Scratch, Area::Receive, index)
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let own = self.parts.len(self.pairs.0.rank());
        let send = if self.in_place { 0 } else { own };
        let scratch = if self.area() == Area::Scratch { self.parts.total() } else { 0 };
        Bytes { send, receive: self.parts.reach(), scratch }
    }
}
