//! Alltoall by Bruck's algorithm, for equal blocks: ⌈log2 p⌉ messages per process instead of p − 1; each block
//! travels as often as the distance to its receiver has ones.
//!
//! 1. Rotate: block j of the row is the one for the process j further on.
//! 2. Round k: all blocks j with bit k set go, packed, to the process 2ᵏ further on, which puts them in the same
//!    places.
//! 3. Block j of the row came from the process j further back: unpack.

use crate::msg::parts::{Parts, Row};
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::dissemination::Dissemination;
use crate::pattern::{Pattern, Seat};

/// One process's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bruck<'a> {
    hops: Dissemination,
    parts: Parts<'a>,
    block: u64,
    in_place: bool,
}

impl<'a> Bruck<'a> {
    /// Block r of the input (in place, of the result area) goes to rank r. The blocks are equal.
    pub fn new(seat: Seat, parts: Parts<'a>, in_place: bool) -> Self {
        Self { hops: Dissemination(seat), parts, block: parts.most(), in_place }
    }

    const fn size(&self) -> u32 {
        self.hops.0.size()
    }

    /// The `index`-th number below p with bit `round` set.
    fn travels(&self, round: u64, index: u32) -> Option<u64> {
        let (low, index) = (1u64 << round, u64::from(index));
        Some((index & !(low - 1)) << 1 | low | index & (low - 1)).filter(|&block| block < self.size().into())
    }

    /// Blocks that travel in `round`.
    fn count(&self, round: u64) -> u64 {
        let (low, size) = (1u64 << round, u64::from(self.size()));
        size / (2 * low) * low + (size % (2 * low)).saturating_sub(low)
    }

    /// Blocks of working memory: the row; behind it what leaves; behind that what arrives.
    fn place(&self, first: u64, count: u64) -> Place {
        Place::new(Area::Scratch, first * self.block, count * self.block)
    }

    /// Where the packed blocks of a round lie.
    fn packed(&self, arrives: bool, first: u64, count: u64) -> Place {
        let size = u64::from(self.size());
        self.place(size + if arrives { size / 2 } else { 0 } + first, count)
    }
}

impl Schedule for Bruck<'_> {
    fn rounds(&self) -> u64 {
        (self.hops.hops().count() as u64).max(1)
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let hop = self.hops.hop(round as u32).filter(|_| index == 0)?;
        Some(Message { peer: hop.to, place: self.packed(false, 0, self.count(round)) })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let hop = self.hops.hop(round as u32).filter(|_| index == 0)?;
        Some(Message { peer: hop.from, place: self.packed(true, 0, self.count(round)) })
    }

    fn work(&self, round: u64, moment: Moment, mut index: u32) -> Option<Work> {
        let row = Row { parts: self.parts, start: self.hops.0.rank() };
        match moment {
            Moment::Before => {
                if round == 0 {
                    let from = if self.in_place { Area::Receive } else { Area::Send };
                    if index < row.runs() {
                        return row.pack(from, Area::Scratch, index);
                    }
                    index -= row.runs();
                }
                let (from, to) = (self.place(self.travels(round, index)?, 1), self.packed(false, index.into(), 1));
                Some(Work::Copy { from, to })
            }
            Moment::Meanwhile => None,
            Moment::After => {
                if u64::from(index) < self.count(round) {
                    let (from, to) = (self.packed(true, index.into(), 1), self.place(self.travels(round, index)?, 1));
                    return Some(Work::Copy { from, to });
                }
                let block = u32::try_from(u64::from(index) - self.count(round)).ok()?;
                let last = round + 1 == self.rounds() && block < self.size();
                last.then(|| Work::Copy {
                    from: self.place(block.into(), 1),
                    to: self.parts.place(Area::Receive, self.hops.0.before(block)),
                })
            }
        }
    }

    fn bytes(&self) -> Bytes {
        let size = u64::from(self.size());
        let all = size * self.block;
        Bytes { send: if self.in_place { 0 } else { all }, receive: all, scratch: (size + size / 2 * 2) * self.block }
    }
}
