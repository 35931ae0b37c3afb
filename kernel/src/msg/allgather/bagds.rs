//! Allgather by BAGDS (paper P5). In each stage of the table, the partners of a pair send each other exactly the
//! blocks that the other lacks, packed into one message. One round is one stage:
//!
//! 1. In the first stage, copy this process's block to its place in the result area.
//! 2. Pack the blocks that the table says to give.
//! 3. Send them to the stage's partner; receive those to take.
//! 4. Unpack these into the result area.

use crate::error::{Argument, Bound, Refusal};
use crate::msg::parts::Parts;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::Seat;
use crate::pattern::bagds::{Set, Stage, Table};

/// One process's part of an allgather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bagds<'a> {
    seat: Seat,
    table: Table<'a>,
    parts: Parts<'a>,
    in_place: bool,
    /// Most bytes that are sent in a stage. Received bytes lie after so many in working memory.
    gives: u64,
}

impl<'a> Bagds<'a> {
    /// The blocks of all ranks go to the result areas of all ranks. In place, this rank's block is there already.
    /// `table` has the stages of this process.
    ///
    /// # Errors
    /// The table is for another number of processes.
    pub fn new(seat: Seat, parts: Parts<'a>, in_place: bool, table: Table<'a>) -> Result<Self, Refusal> {
        Refusal::check(Argument::Ranks, table.size().into(), Bound::Equals(seat.size().into()))?;
        let gives = Self { seat, table, parts, in_place, gives: 0 }.most(|stage| stage.give);
        Ok(Self { seat, table, parts, in_place, gives })
    }

    /// Bytes of all blocks of a set.
    fn packed(&self, set: Set<'_>) -> u64 {
        match self.parts.equally() {
            Some(bytes) => bytes * u64::from(set.count()),
            None => set.iter().map(|block| self.parts.len(block)).sum(),
        }
    }

    /// Most bytes of a set, over all stages.
    fn most(&self, set: impl Fn(Stage<'a>) -> Set<'a>) -> u64 {
        let sets = (0..self.table.stages()).filter_map(|stage| self.table.stage(stage).map(&set));
        sets.map(|set| self.packed(set)).max().unwrap_or(0)
    }

    /// The message that carries a set, which is packed in working memory from `at` on; `None` for an empty set.
    fn message(&self, peer: u32, set: Set<'_>, at: u64) -> Option<Message> {
        (set.count() > 0).then(|| Message { peer, place: Place::new(Area::Scratch, at, self.packed(set)) })
    }

    /// The `index`-th block of a set: its place in the set, which is packed from `at` on, and its place in the result
    /// area.
    fn block(&self, set: Set<'_>, at: u64, index: u32) -> Option<(Place, Place)> {
        let block = set.nth(index)?;
        let before: u64 = match self.parts.equally() {
            Some(bytes) => bytes * u64::from(index),
            None => set.iter().take(index as usize).map(|block| self.parts.len(block)).sum(),
        };
        let place = self.parts.place(Area::Receive, block);
        Some((Place::new(Area::Scratch, at + before, place.len), place))
    }
}

impl Schedule for Bagds<'_> {
    fn rounds(&self) -> u64 {
        u64::from(self.table.stages()).max(1)
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let stage = self.table.stage(round as u32).filter(|_| index == 0)?;
        self.message(stage.partner, stage.give, 0)
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let stage = self.table.stage(round as u32).filter(|_| index == 0)?;
        self.message(stage.partner, stage.take, self.gives)
    }

    fn work(&self, round: u64, moment: Moment, mut index: u32) -> Option<Work> {
        if moment == Moment::Before && round == 0 && !self.in_place {
            if index == 0 {
                let to = self.parts.place(Area::Receive, self.seat.rank());
                return Some(Work::Copy { from: Place::new(Area::Send, 0, to.len), to });
            }
            index -= 1;
        }
        let stage = self.table.stage(round as u32)?;
        match moment {
            Moment::Before => self.block(stage.give, 0, index).map(|(to, from)| Work::Copy { from, to }),
            Moment::Meanwhile => None,
            Moment::After => self.block(stage.take, self.gives, index).map(|(from, to)| Work::Copy { from, to }),
        }
    }

    fn bytes(&self) -> Bytes {
        let send = if self.in_place { 0 } else { self.parts.len(self.seat.rank()) };
        let scratch = self.gives + self.most(|stage| stage.take);
        Bytes { send, receive: self.parts.reach(), scratch }
    }
}
