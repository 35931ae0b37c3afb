//! Allgather in p − 1 messages per process: each block goes straight from its owner to every other process. The direct
//! exchange with which paper P5 compares its BAGDS.
//!
//! All messages are posted in one round, a window at a time; each process starts with its neighbours.

use crate::msg::parts::Parts;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::Seat;

/// One process's part of an allgather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Linear<'a> {
    seat: Seat,
    parts: Parts<'a>,
    in_place: bool,
}

impl<'a> Linear<'a> {
    /// The blocks of all ranks go to all ranks. In place, this process's block is in its place; else at the start of its
    /// send area.
    pub const fn new(seat: Seat, parts: Parts<'a>, in_place: bool) -> Self {
        Self { seat, parts, in_place }
    }

    /// This process's block, before it is copied to its place.
    fn own(&self) -> Place {
        let kept = self.parts.place(Area::Receive, self.seat.rank());
        if self.in_place { kept } else { Place { area: Area::Send, at: 0, len: kept.len } }
    }

    /// `index`, if there are more other processes than that.
    fn other(&self, round: u64, index: u32) -> Option<u32> {
        Some(index).filter(|&index| round == 0 && index + 1 < self.seat.size())
    }
}

impl Schedule for Linear<'_> {
    fn rounds(&self) -> u64 {
        1
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let peer = self.seat.after(self.other(round, index)? + 1);
        Some(Message { peer, place: self.own() })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let peer = self.seat.before(self.other(round, index)? + 1);
        Some(Message { peer, place: self.parts.place(Area::Receive, peer) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        if self.in_place || (round, moment, index) != (0, Moment::Meanwhile, 0) {
            return None;
        }
        Some(Work::Copy { from: self.own(), to: self.parts.place(Area::Receive, self.seat.rank()) })
    }

    fn bytes(&self) -> Bytes {
        let send = if self.in_place { 0 } else { self.own().len };
        Bytes { send, receive: self.parts.reach(), scratch: 0 }
    }
}
