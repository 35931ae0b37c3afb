//! A collective one level after the other, with any algorithm in each group: paper P3's composition as it is printed.
//!
//! A schedule for a whole communicator runs among the members of a group: its ranks are positions in the group, which
//! are translated to ranks of the communicator; its areas are translated to places in the memory of the composition.

use super::LEVELS;
use super::circle::Circle;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::op::Op;

/// The place of byte 0 of a schedule's area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Base {
    pub(super) area: Area,
    pub(super) at: u64,
}

impl Base {
    pub(super) const fn start(area: Area) -> Self {
        Self { area, at: 0 }
    }

    pub(super) const fn scratch(at: u64) -> Self {
        Self { area: Area::Scratch, at }
    }
}

/// The places of a schedule's three areas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Areas {
    pub(super) send: Base,
    pub(super) receive: Base,
    pub(super) scratch: Base,
}

impl Areas {
    /// The translation of a schedule's place.
    pub(super) const fn place(&self, place: Place) -> Place {
        let base = match place.area {
            Area::Send => self.send,
            Area::Receive => self.receive,
            Area::Scratch => self.scratch,
        };
        place.moved(base.area, base.at)
    }

    /// The memory of the composition that a schedule needs which itself needs `needed`.
    pub(super) fn bytes(&self, needed: Bytes) -> Bytes {
        let mut all = Bytes::default();
        for (base, bytes) in [(self.send, needed.send), (self.receive, needed.receive), (self.scratch, needed.scratch)]
        {
            let room = match base.area {
                Area::Send => &mut all.send,
                Area::Receive => &mut all.receive,
                Area::Scratch => &mut all.scratch,
            };
            *room = if bytes == 0 { *room } else { (*room).max(base.at + bytes) };
        }
        all
    }
}

/// A translated schedule: its ranks are positions in a circle, if there is one, and its areas lie at other places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stage<'s, S> {
    pub(super) circle: Option<Circle<'s>>,
    pub(super) areas: Areas,
    pub(super) plan: S,
}

impl<S> Stage<'_, S> {
    /// The translation of a schedule's message.
    fn message(&self, Message { peer, place }: Message) -> Message {
        let peer = self.circle.map_or(peer, |circle| circle.rank(peer));
        Message { peer, place: self.areas.place(place) }
    }
}

impl<S: Schedule> Schedule for Stage<'_, S> {
    fn rounds(&self) -> u64 {
        self.plan.rounds()
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        self.plan.send(round, index).map(|message| self.message(message))
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        self.plan.receive(round, index).map(|message| self.message(message))
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let place = |place| self.areas.place(place);
        Some(match self.plan.work(round, moment, index)? {
            Work::Copy { from, to } => Work::Copy { from: place(from), to: place(to) },
            Work::Fold { left, right } => Work::Fold { left: place(left), right: place(right) },
        })
    }

    fn bytes(&self) -> Bytes {
        self.areas.bytes(self.plan.bytes())
    }

    fn op(&self) -> Option<Op> {
        self.plan.op()
    }
}

/// Stages, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stages<'s, S>(pub(super) [Option<Stage<'s, S>>; LEVELS]);

impl<'s, S: Schedule> Stages<'s, S> {
    /// The stage of a round, and the round in it.
    fn at(&self, mut round: u64) -> Option<(&Stage<'s, S>, u64)> {
        for stage in self.0.iter().flatten() {
            match round.checked_sub(stage.rounds()) {
                None => return Some((stage, round)),
                Some(rest) => round = rest,
            }
        }
        None
    }
}

impl<S: Schedule> Schedule for Stages<'_, S> {
    fn rounds(&self) -> u64 {
        self.0.iter().flatten().map(Schedule::rounds).sum()
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        self.at(round).and_then(|(stage, round)| stage.send(round, index))
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        self.at(round).and_then(|(stage, round)| stage.receive(round, index))
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        self.at(round).and_then(|(stage, round)| stage.work(round, moment, index))
    }

    fn bytes(&self) -> Bytes {
        self.0.iter().flatten().map(Schedule::bytes).fold(Bytes::default(), Bytes::max)
    }

    fn op(&self) -> Option<Op> {
        self.0.iter().flatten().find_map(Schedule::op)
    }
}
