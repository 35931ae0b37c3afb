//! Among all ranks alike, or over levels: what a table chooses between, and the schedule that follows.

use crate::msg::schedule::{Bytes, Message, Moment, Schedule, Work};
use crate::op::Op;

/// Either of two algorithms, or of the two schedules that they make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way<F, L> {
    /// Among all ranks alike.
    Flat(F),
    /// Over levels.
    Levels(L),
}

impl<F: Schedule, L: Schedule> Schedule for Way<F, L> {
    #[inline]
    fn rounds(&self) -> u64 {
        match self {
            Self::Flat(flat) => flat.rounds(),
            Self::Levels(levels) => levels.rounds(),
        }
    }

    #[inline]
    fn send(&self, round: u64, index: u32) -> Option<Message> {
        match self {
            Self::Flat(flat) => flat.send(round, index),
            Self::Levels(levels) => levels.send(round, index),
        }
    }

    #[inline]
    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        match self {
            Self::Flat(flat) => flat.receive(round, index),
            Self::Levels(levels) => levels.receive(round, index),
        }
    }

    #[inline]
    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        match self {
            Self::Flat(flat) => flat.work(round, moment, index),
            Self::Levels(levels) => levels.work(round, moment, index),
        }
    }

    #[inline]
    fn bytes(&self) -> Bytes {
        match self {
            Self::Flat(flat) => flat.bytes(),
            Self::Levels(levels) => levels.bytes(),
        }
    }

    #[inline]
    fn op(&self) -> Option<Op> {
        match self {
            Self::Flat(flat) => flat.op(),
            Self::Levels(levels) => levels.op(),
        }
    }
}
