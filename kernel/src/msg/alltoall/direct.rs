//! Alltoall in p − 1 messages per process: each block goes straight to its receiver.
//!
//! **Linear**: all messages are posted in one round, a window at a time; each process starts with its neighbours.
//! **Pairwise**: in each round a process sends one message and receives one.

use crate::error::{Argument, Bound, Refusal};
use crate::msg::parts::Parts;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::pairwise::Pairwise;
use crate::pattern::{Pattern, Seat};

/// One process's part of an alltoall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Direct<'a> {
    seat: Seat,
    send: Parts<'a>,
    receive: Parts<'a>,
    in_place: bool,
    pairwise: bool,
}

impl<'a> Direct<'a> {
    /// Block r of `send` goes to rank r, which puts it into the sender's block of its `receive`. `send` is `None` in
    /// place: then the blocks of `receive` are sent, as they were before, and two ranks' blocks for each other must
    /// be equally long.
    ///
    /// # Errors
    /// This rank's blocks for itself differ in length.
    pub fn new(seat: Seat, send: Option<Parts<'a>>, receive: Parts<'a>, pairwise: bool) -> Result<Self, Refusal> {
        let (in_place, send) = (send.is_none(), send.unwrap_or(receive));
        let (own, kept) = (send.len(seat.rank()), receive.len(seat.rank()));
        Refusal::check(Argument::Bytes, own, Bound::Equals(kept))?;
        Ok(Self { seat, send, receive, in_place, pairwise })
    }

    /// The block for `peer`; in place it is in a copy in working memory.
    fn outgoing(&self, peer: u32) -> Place {
        self.send.place(if self.in_place { Area::Scratch } else { Area::Send }, peer)
    }

    /// Are there more than `index` other processes?
    fn is_other(&self, index: u32) -> bool {
        index + 1 < self.seat.size()
    }
}

impl Schedule for Direct<'_> {
    fn rounds(&self) -> u64 {
        if self.pairwise { u64::from(self.seat.size() - 1).max(1) } else { 1 }
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let peer = match self.pairwise {
            true => Pairwise(self.seat).hop(round as u32).filter(|_| index == 0)?.to,
            false => Some(index).filter(|&index| self.is_other(index)).map(|index| self.seat.after(index + 1))?,
        };
        Some(Message { peer, place: self.outgoing(peer) })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let peer = match self.pairwise {
            true => Pairwise(self.seat).hop(round as u32).filter(|_| index == 0)?.from,
            false => Some(index).filter(|&index| self.is_other(index)).map(|index| self.seat.before(index + 1))?,
        };
        Some(Message { peer, place: self.receive.place(Area::Receive, peer) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        if (round, index) != (0, 0) {
            return None;
        }
        let all = |area| Place::new(area, 0, self.receive.reach());
        let rank = self.seat.rank();
        match moment {
            Moment::Before if self.in_place => Some(Work::Copy { from: all(Area::Receive), to: all(Area::Scratch) }),
            Moment::Meanwhile if !self.in_place => {
                Some(Work::Copy { from: self.outgoing(rank), to: self.receive.place(Area::Receive, rank) })
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let (send, receive) = (self.send.reach(), self.receive.reach());
        if self.in_place { Bytes { send: 0, receive, scratch: receive } } else { Bytes { send, receive, scratch: 0 } }
    }
}
