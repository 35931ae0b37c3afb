//! Brooks' butterfly: in each round pairs of partners send each other an empty message. Where the number of processes
//! is not a power of two, some processes also take the part of a missing one.

use crate::msg::schedule::{Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::butterfly::Butterfly as Pairs;

/// One process's part of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Butterfly(pub Pairs);

impl Butterfly {
    fn message(&self, round: u64, index: u32) -> Option<Message> {
        let peer = self.0.partners(round as u32).nth(index as usize)?;
        Some(Message { peer, place: Place::NOTHING })
    }
}

impl Schedule for Butterfly {
    fn rounds(&self) -> u64 {
        self.0.rounds().into()
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        self.message(round, index)
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        self.message(round, index)
    }

    fn work(&self, _: u64, _: Moment, _: u32) -> Option<Work> {
        None
    }

    fn bytes(&self) -> Bytes {
        Bytes::default()
    }
}
