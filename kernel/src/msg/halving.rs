//! The phases of Rabenseifner's algorithms, and of recursive doubling, for any number of processes p and any
//! associative op.
//!
//! | phase | what |
//! |---|---|
//! | [`Enter`] | ranks outside the core send their operands to a neighbour inside, which folds them |
//! | [`Fold`] | inside: partners fold halves of what both hold (halving), or all of it (doubling) |
//! | [`Spread`] | a broadcast, instead of these two: halves of the root's data go out from the root |
//! | [`Unfold`] | inside: ranges grow together again, at all ranks (doubling) or only towards the root (gather) |
//! | [`Leave`] | ranks outside the core receive the result from their neighbour inside |
//!
//! The core is 2^⌊log2 p⌋ of the processes, which have numbers in the order of their ranks. In round k of `Fold` two
//! processes are partners if their numbers differ in bit k only, and each takes half of the range that both hold. So
//! the nearest ones are partners first, and the operands folded into a range are those of consecutive ranks, in rank
//! order.

use super::combine::combine;
use super::parts::Slices;
use super::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::Rank;
use crate::op::Op;
use crate::pattern::Seat;
use crate::pattern::power::{Core, Role};

/// What all phases of one process use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Halves {
    core: Core,
    bytes: u64,
    slices: Slices,
    /// The area in which the operand lies.
    source: Area,
    /// The area in which the result grows: the result area, or working memory after the `bytes` for what arrives.
    result: Area,
}

impl Halves {
    /// A vector of `bytes` bytes in elements of `element` bytes. `favourite`, which is the root where there is one,
    /// is inside the core. `keeps`: this process may use its result area; else its result grows in working memory.
    pub(super) fn new(seat: Seat, favourite: Rank, bytes: u64, element: u64, in_place: bool, keeps: bool) -> Self {
        let core = Core::new(seat, favourite);
        let source = if in_place { Area::Receive } else { Area::Send };
        let result = if keeps { Area::Receive } else { Area::Scratch };
        Self { core, bytes, slices: Slices::new(bytes, element, core.size()), source, result }
    }

    /// The place of these bytes of the vector in the growing result.
    fn mine(&self, place: Place) -> Place {
        place.moved(self.result, if self.result == Area::Scratch { self.bytes } else { 0 })
    }

    /// The whole vector.
    fn whole(&self) -> Place {
        Place::new(self.result, 0, self.bytes)
    }

    /// The slices that the process with number `number` holds before round `round` of halving.
    fn range(&self, number: u32, round: u32) -> Place {
        let first = (0..round).filter(|bit| number >> bit & 1 == 1).map(|bit| self.core.size() >> (bit + 1)).sum();
        self.slices.place(self.result, first, self.core.size() >> round)
    }

    /// This process's number inside the core; `None` outside.
    fn number(&self) -> Option<u32> {
        match self.core.role() {
            Role::Inside { number, .. } => Some(number),
            Role::Outside { .. } => None,
        }
    }

    /// The place of what arrives.
    const fn arrived(len: u64) -> Place {
        Place::new(Area::Scratch, 0, len)
    }

    /// The memory that a phase with folds needs.
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

    /// The memory that a phase without folds needs.
    fn moved(&self) -> Bytes {
        match self.result {
            Area::Scratch => self.bytes(),
            _ => Bytes { receive: self.bytes, ..Bytes::default() },
        }
    }
}

/// The way into the core: a process outside sends its operand to its neighbour inside, which folds it into its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Enter {
    pub(super) halves: Halves,
    pub(super) op: Op,
}

impl Schedule for Enter {
    /// None where there is nothing to do: all are inside, and the operand lies where the result grows.
    fn rounds(&self) -> u64 {
        let Halves { source, result, .. } = self.halves;
        (self.halves.core.is_paired() || source != result).into()
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
    /// Does each partner fold one half of the vector? Else both fold all of it.
    pub(super) halving: bool,
}

/// What a process of the core does in one round of [`Fold`].
struct Swap {
    partner: Rank,
    /// Are the partner's operands the left ones?
    is_left: bool,
    /// The part of the vector that this process folds.
    stays: Place,
    /// The part that it sends, and the partner folds.
    goes: Place,
}

impl Fold {
    /// What happens in a round; `None` outside the core.
    fn at(&self, round: u64) -> Option<Swap> {
        let (number, round) = (self.halves.number()?, round as u32);
        let partner = number ^ 1 << round;
        let stays = |number| match self.halving {
            true => self.halves.range(number, round + 1),
            false => self.halves.whole(),
        };
        Some(Swap {
            partner: self.halves.core.rank_of(partner),
            is_left: partner < number,
            stays: stays(number),
            goes: stays(partner),
        })
    }
}

impl Schedule for Fold {
    fn rounds(&self) -> u64 {
        self.halves.number().map_or(0, |_| self.halves.core.log2().into())
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let Swap { partner, goes, .. } = self.at(round).filter(|_| index == 0)?;
        Some(Message { peer: partner, place: self.halves.mine(goes) })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let Swap { partner, stays, .. } = self.at(round).filter(|_| index == 0)?;
        Some(Message { peer: partner, place: Halves::arrived(stays.len) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        if moment != Moment::After {
            return None;
        }
        let Swap { is_left, stays, .. } = self.at(round)?;
        combine(&self.op, self.halves.mine(stays), Halves::arrived(stays.len), is_left, index)
    }

    fn bytes(&self) -> Bytes {
        self.halves.bytes()
    }

    fn op(&self) -> Option<Op> {
        Some(self.op)
    }
}

/// The halves of the favourite's vector go out: in round k each process that has a range sends its partner one half
/// of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spread(pub(super) Halves);

impl Spread {
    /// The message of a round, and whether this process sends it (else it receives it); `None` where it does neither.
    fn at(&self, round: u64) -> Option<(Message, bool)> {
        let number = self.0.number()?;
        let (bit, distance) = (round as u32, number ^ self.0.core.favourite());
        let partner = number ^ 1 << bit;
        let sends = match distance >> bit {
            0 => true,
            1 => false,
            // Further from the favourite: it has no range yet.
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

/// The mirror of halving: ranges grow together again, at all processes of the core, or at the favourite only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unfold {
    pub(super) halves: Halves,
    /// Does only the favourite get the result?
    pub(super) to_favourite: bool,
}

/// What a process of the core does in one round of [`Unfold`].
struct Join {
    partner: Rank,
    /// The range that this process sends, if it does.
    sends: Option<Place>,
    /// The range that it receives, if it does.
    receives: Option<Place>,
}

impl Unfold {
    /// What happens in a round; `None` outside the core.
    fn at(&self, round: u64) -> Option<Join> {
        let number = self.halves.number()?;
        let bit = self.halves.core.log2() - 1 - round as u32;
        let partner = number ^ 1 << bit;
        let range = |number| Some(self.halves.mine(self.halves.range(number, bit + 1)));
        let distance = number ^ self.halves.core.favourite();
        let (sends, receives) = match self.to_favourite {
            false => (true, true),
            // A process further from the favourite has handed over its range before.
            true if distance >> bit > 1 => (false, false),
            true => (distance >> bit == 1, distance >> bit == 0),
        };
        Some(Join {
            partner: self.halves.core.rank_of(partner),
            sends: range(number).filter(|_| sends),
            receives: range(partner).filter(|_| receives),
        })
    }
}

impl Schedule for Unfold {
    fn rounds(&self) -> u64 {
        self.halves.number().map_or(0, |_| self.halves.core.log2().into())
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let Join { partner, sends, .. } = self.at(round).filter(|_| index == 0)?;
        Some(Message { peer: partner, place: sends? })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let Join { partner, receives, .. } = self.at(round).filter(|_| index == 0)?;
        Some(Message { peer: partner, place: receives? })
    }

    fn work(&self, _: u64, _: Moment, _: u32) -> Option<Work> {
        None
    }

    fn bytes(&self) -> Bytes {
        self.halves.moved()
    }
}

/// The way out of the core: a process inside sends the result to its neighbour outside, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leave(pub(super) Halves);

impl Schedule for Leave {
    /// None where this process has no partner.
    fn rounds(&self) -> u64 {
        self.0.core.is_paired().into()
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
