//! The phases of Rabenseifner's algorithms, and of recursive doubling, for any number of processes and any
//! associative operation: into the core, halving, then gathering to the root or doubling. A broadcast has halves of the
//! root's data instead of halves that are folded.
//!
//! Who is outside the core lends its operand to its neighbour inside. Inside, in round k partners whose
//! numbers differ in bit k each take half of the range that both hold: nearest ones first, so that the operands of a
//! range stay in rank order. The way back is the mirror.

use super::combine::combine;
use super::parts::Slices;
use super::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::Rank;
use crate::op::Op;
use crate::pattern::Seat;
use crate::pattern::power::{Core, Role};

/// What the phases of one process have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Halves {
    core: Core,
    bytes: u64,
    slices: Slices,
    /// Where the operand lies.
    source: Area,
    /// Where the result grows: the result area, or working memory behind what arrives.
    result: Area,
}

impl Halves {
    /// Of whole elements of `element` bytes. `favourite` is inside the core; `keeps` says whether the result area may be
    /// used.
    pub(super) fn new(seat: Seat, favourite: Rank, bytes: u64, element: u64, in_place: bool, keeps: bool) -> Self {
        let core = Core::new(seat, favourite);
        let source = if in_place { Area::Receive } else { Area::Send };
        let result = if keeps { Area::Receive } else { Area::Scratch };
        Self { core, bytes, slices: Slices::new(bytes, element, core.size()), source, result }
    }

    /// A place of the operand, in the growing result.
    fn mine(&self, place: Place) -> Place {
        place.moved(self.result, if self.result == Area::Scratch { self.bytes } else { 0 })
    }

    fn whole(&self) -> Place {
        Place::new(self.result, 0, self.bytes)
    }

    /// The slices that number `number` holds before round `round`.
    fn range(&self, number: u32, round: u32) -> Place {
        let first = (0..round).filter(|bit| number >> bit & 1 == 1).map(|bit| self.core.size() >> (bit + 1)).sum();
        self.slices.place(self.result, first, self.core.size() >> round)
    }

    /// The number inside; none outside.
    fn number(&self) -> Option<u32> {
        match self.core.role() {
            Role::Inside { number, .. } => Some(number),
            Role::Outside { .. } => None,
        }
    }

    /// Where what arrives lies.
    const fn arrived(len: u64) -> Place {
        Place::new(Area::Scratch, 0, len)
    }

    /// What folding needs.
    fn bytes(&self) -> Bytes {
        let at = |area, place| if area == place { self.bytes } else { 0 };
        let scratch = match (self.number(), self.result) {
            (None, _) => 0,
            (Some(_), Area::Scratch) => 2 * self.bytes,
            (Some(_), _) => self.bytes,
        };
        let receive = at(self.source, Area::Receive).max(at(self.result, Area::Receive));
        Bytes { send: at(self.source, Area::Send), receive, scratch }
    }

    /// What ranges need that are passed on as they are.
    fn moved(&self) -> Bytes {
        match self.result {
            Area::Scratch => self.bytes(),
            _ => Bytes { receive: self.bytes, ..Bytes::default() },
        }
    }
}

/// Into the core: operands from outside are folded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Enter {
    pub(super) halves: Halves,
    pub(super) op: Op,
}

impl Schedule for Enter {
    fn rounds(&self) -> u64 {
        1
    }

    fn send(&self, _: u64, index: u32) -> Option<Message> {
        match self.halves.core.role() {
            Role::Outside { partner } if index == 0 => {
                Some(Message { peer: partner, place: Place { area: self.halves.source, ..self.halves.whole() } })
            }
            _ => None,
        }
    }

    fn receive(&self, _: u64, index: u32) -> Option<Message> {
        match self.halves.core.role() {
            Role::Inside { partner: Some(peer), .. } if index == 0 => {
                Some(Message { peer, place: Halves::arrived(self.halves.bytes) })
            }
            _ => None,
        }
    }

    fn work(&self, _: u64, moment: Moment, index: u32) -> Option<Work> {
        let Role::Inside { number, partner } = self.halves.core.role() else { return None };
        let mine = self.halves.mine(self.halves.whole());
        match moment {
            Moment::Meanwhile if index == 0 && self.halves.source != self.halves.result => {
                Some(Work::Copy { from: Place { area: self.halves.source, ..self.halves.whole() }, to: mine })
            }
            Moment::After => {
                let is_left = partner? < self.halves.core.rank_of(number);
                combine(&self.op, mine, Halves::arrived(self.halves.bytes), is_left, index)
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        self.halves.bytes()
    }

    fn op(&self) -> Option<Op> {
        Some(self.op)
    }
}

/// Reduce_scatter inside the core, by vector halving; or, by recursive doubling, an allreduce of whole operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fold {
    pub(super) halves: Halves,
    pub(super) op: Op,
    /// Do partners halve what they fold?
    pub(super) halving: bool,
}

impl Fold {
    /// The partner of a round, whether its operands come first, what stays here, and what goes there.
    fn at(&self, round: u64) -> Option<(Rank, bool, Place, Place)> {
        let (number, round) = (self.halves.number()?, round as u32);
        let partner = number ^ 1 << round;
        let stays = |number| match self.halving {
            true => self.halves.range(number, round + 1),
            false => self.halves.whole(),
        };
        Some((self.halves.core.rank_of(partner), partner < number, stays(number), stays(partner)))
    }
}

impl Schedule for Fold {
    fn rounds(&self) -> u64 {
        self.halves.number().map_or(0, |_| self.halves.core.log2().into())
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let (peer, _, _, goes) = self.at(round).filter(|_| index == 0)?;
        Some(Message { peer, place: self.halves.mine(goes) })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let (peer, _, stays, _) = self.at(round).filter(|_| index == 0)?;
        Some(Message { peer, place: Halves::arrived(stays.len) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let (_, is_left, stays, _) = self.at(round).filter(|_| moment == Moment::After)?;
        combine(&self.op, self.halves.mine(stays), Halves::arrived(stays.len), is_left, index)
    }

    fn bytes(&self) -> Bytes {
        self.halves.bytes()
    }

    fn op(&self) -> Option<Op> {
        Some(self.op)
    }
}

/// Halves of the favourite's range: in round k who has a range already gives its partner one half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spread(pub(super) Halves);

impl Spread {
    /// The partner of a round, and the half that goes from the one to the other; which of both this is.
    fn at(&self, round: u64) -> Option<(Message, bool)> {
        let number = self.0.number()?;
        let (bit, distance) = (round as u32, number ^ self.0.core.favourite());
        let partner = number ^ 1 << bit;
        let sends = match distance >> bit {
            0 => true,
            1 => false,
            // Further away: its turn has not come.
            _ => return None,
        };
        let place = self.0.range(if sends { partner } else { number }, bit + 1);
        Some((Message { peer: self.0.core.rank_of(partner), place: self.0.mine(place) }, sends))
    }
}

impl Schedule for Spread {
    fn rounds(&self) -> u64 {
        self.0.number().map_or(0, |_| self.0.core.log2().into())
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        self.at(round).filter(|&(_, sends)| sends && index == 0).map(|(message, _)| message)
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        self.at(round).filter(|&(_, sends)| !sends && index == 0).map(|(message, _)| message)
    }

    fn work(&self, _: u64, _: Moment, _: u32) -> Option<Work> {
        None
    }

    fn bytes(&self) -> Bytes {
        self.0.moved()
    }
}

/// The mirror of halving: ranges grow together again, everywhere or towards the favourite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unfold {
    pub(super) halves: Halves,
    /// Only the favourite wants the result.
    pub(super) to_favourite: bool,
}

impl Unfold {
    /// The partner of a round, what is sent, and what arrives.
    fn at(&self, round: u64) -> Option<(Rank, Option<Place>, Option<Place>)> {
        let number = self.halves.number()?;
        let bit = self.halves.core.log2() - 1 - round as u32;
        let partner = number ^ 1 << bit;
        let range = |number| Some(self.halves.mine(self.halves.range(number, bit + 1)));
        let distance = number ^ self.halves.core.favourite();
        let (sends, receives) = match self.to_favourite {
            false => (true, true),
            // Who is further from the favourite has handed its range over.
            true if distance >> bit > 1 => (false, false),
            true => (distance >> bit == 1, distance >> bit == 0),
        };
        let peer = self.halves.core.rank_of(partner);
        Some((peer, range(number).filter(|_| sends), range(partner).filter(|_| receives)))
    }
}

impl Schedule for Unfold {
    fn rounds(&self) -> u64 {
        self.halves.number().map_or(0, |_| self.halves.core.log2().into())
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let (peer, place, _) = self.at(round).filter(|_| index == 0)?;
        Some(Message { peer, place: place? })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let (peer, _, place) = self.at(round).filter(|_| index == 0)?;
        Some(Message { peer, place: place? })
    }

    fn work(&self, _: u64, _: Moment, _: u32) -> Option<Work> {
        None
    }

    fn bytes(&self) -> Bytes {
        self.halves.moved()
    }
}

/// Out of the core: who is outside is told the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leave(pub(super) Halves);

impl Schedule for Leave {
    fn rounds(&self) -> u64 {
        1
    }

    fn send(&self, _: u64, index: u32) -> Option<Message> {
        match self.0.core.role() {
            Role::Inside { partner: Some(peer), .. } if index == 0 => {
                Some(Message { peer, place: self.0.mine(self.0.whole()) })
            }
            _ => None,
        }
    }

    fn receive(&self, _: u64, index: u32) -> Option<Message> {
        match self.0.core.role() {
            Role::Outside { partner } if index == 0 => Some(Message { peer: partner, place: self.0.whole() }),
            _ => None,
        }
    }

    fn work(&self, _: u64, _: Moment, _: u32) -> Option<Work> {
        None
    }

    fn bytes(&self) -> Bytes {
        self.0.moved()
    }
}
