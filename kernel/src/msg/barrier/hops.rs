//! Barriers in which a process sends one message and receives one in each round: dissemination, and Bruck's, which
//! sends in the other direction round the ring.

use crate::msg::schedule::{Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::Pattern;
use core::hash::Hash;

/// One process's part of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hops<P>(pub P);

impl<P: Pattern + Eq + Hash> Schedule for Hops<P> {
    fn rounds(&self) -> u64 {
        self.0.rounds().into()
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let hop = self.0.hop(round as u32).filter(|_| index == 0)?;
        Some(Message { peer: hop.to, place: Place::NOTHING })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let hop = self.0.hop(round as u32).filter(|_| index == 0)?;
        Some(Message { peer: hop.from, place: Place::NOTHING })
    }

    fn work(&self, _: u64, _: Moment, _: u32) -> Option<Work> {
        None
    }

    fn bytes(&self) -> Bytes {
        Bytes::default()
    }
}
