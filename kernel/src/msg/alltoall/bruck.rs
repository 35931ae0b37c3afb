//! Alltoall by Bruck's algorithm, for equal blocks: ⌈log2 p⌉ messages per process instead of p − 1. A block is sent
//! once for each bit that is set in the distance to its receiver.
//!
//! 1. Pack the blocks of rank r into a row: its block j is the one for rank r + j, modulo p.
//! 2. In round k, send all blocks j with bit k set, packed, to rank r + 2ᵏ, which puts them into the same places of its
//!    row.
//! 3. Now block j of the row came from rank r − j: unpack.

use crate::msg::parts::{Parts, Row};
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::dissemination::Dissemination;
use crate::pattern::{Pattern, Seat};

/// One process's part of an alltoall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bruck<'a> {
    hops: Dissemination,
    parts: Parts<'a>,
    block: u64,
    in_place: bool,
}

impl<'a> Bruck<'a> {
    /// Block r of the input, or in place of the result area, goes to rank r. The blocks are equal.
    pub fn new(seat: Seat, parts: Parts<'a>, in_place: bool) -> Self {
        Self { hops: Dissemination(seat), parts, block: parts.most(), in_place }
    }

    const fn size(&self) -> u32 {
        self.hops.0.size()
    }

    /// The `index`-th block that is sent in `round`: the `index`-th number below p with bit `round` set.
    fn travels(&self, round: u64, index: u32) -> Option<u64> {
        let (low, index) = (1u64 << round, u64::from(index));
        Some((index & !(low - 1)) << 1 | low | index & (low - 1)).filter(|&block| block < self.size().into())
    }

    /// Number of blocks that are sent in `round`.
    fn count(&self, round: u64) -> u64 {
        let (low, size) = (1u64 << round, u64::from(self.size()));
        size / (2 * low) * low + (size % (2 * low)).saturating_sub(low)
    }

    /// Blocks of working memory: first the row, then the packed blocks to send, then the received ones.
    fn place(&self, first: u64, count: u64) -> Place {
        Place::new(Area::Scratch, first * self.block, count * self.block)
    }

    /// The packed blocks of a round: the received ones if `arrives`, else those to send.
    fn packed(&self, arrives: bool, first: u64, count: u64) -> Place {
        let size = u64::from(self.size());
        self.place(size + if arrives { size / 2 } else { 0 } + first, count)
    }
}

impl Schedule for Bruck<'_> {
    fn rounds(&self) -> u64 {
        u64::from(self.hops.rounds()).max(1)
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
