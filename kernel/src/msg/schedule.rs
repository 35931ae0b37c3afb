//! An algorithm over messages is a schedule: a pure function of rank, size, root and bytes.
//!
//! A schedule says, for one process, what it sends, receives, copies and folds in each round. It contains no address: a
//! [`Place`] names bytes by their offset in an [`Area`]. So the same schedule can be run by a machine
//! ([`super::rounds`]), checked by a test without memory, and priced by a cost model.

use crate::Rank;
use crate::op::Op;
use core::hash::Hash;

/// A part of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Area {
    /// The user's input. It is only read; in place it is not used.
    Send,
    /// The user's result; in place also the input.
    Receive,
    /// Working memory that the caller gives.
    Scratch,
}

/// Bytes `at .. at + len` of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The area.
    pub area: Area,
    /// Offset of the first byte in the area.
    pub at: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Place {
    /// No bytes: for a message without data, as in a barrier.
    pub const NOTHING: Self = Self::new(Area::Scratch, 0, 0);

    /// Bytes `at .. at + len` of `area`.
    #[inline]
    pub const fn new(area: Area, at: u64, len: u64) -> Self {
        Self { area, at, len }
    }

    /// This place in another area, in which byte 0 of this place's area lies at `at`.
    #[inline]
    #[must_use]
    pub const fn moved(self, area: Area, at: u64) -> Self {
        Self { area, at: at + self.at, len: self.len }
    }
}

/// A message of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// The rank to which or from which it goes.
    pub peer: Rank,
    /// The bytes that are sent, or the place for the received ones.
    pub place: Place,
}

/// A piece of local work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Copies `from` to `to`. The places are equally long and don't overlap.
    Copy {
        /// Source.
        from: Place,
        /// Target.
        to: Place,
    },
    /// `right = left ∘ right`. The places are equally long and don't overlap.
    Fold {
        /// The left operand, which is only read.
        left: Place,
        /// The right operand, which becomes the result.
        right: Place,
    },
}

/// When a piece of work is done in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// Before the round's messages are posted.
    Before,
    /// While they are in flight. Such work accesses none of their places.
    Meanwhile,
    /// After all of them are complete.
    After,
}

/// How many bytes of each area a schedule needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytes {
    /// Bytes of the user's input.
    pub send: u64,
    /// Bytes of the user's result.
    pub receive: u64,
    /// Bytes of working memory.
    pub scratch: u64,
}

impl Bytes {
    /// The larger number for each area: enough for two schedules that run one after the other.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            send: self.send.max(other.send),
            receive: self.receive.max(other.receive),
            scratch: self.scratch.max(other.scratch),
        }
    }
}

/// One process's part of a collective.
///
/// The messages of a round may be in flight together, and are posted in order of their index. For any two processes,
/// the messages that one sends to the other are, round by round, those that the other receives from it, in the same
/// order. The place of a received message overlaps no other place of the round. The functions are never called with a
/// round past the last.
pub trait Schedule: Clone + PartialEq + Eq + Hash {
    /// Number of rounds of this process; another process's may differ.
    fn rounds(&self) -> u64;

    /// The message of this index that is sent in `round`; `None` past the last.
    fn send(&self, round: u64, index: u32) -> Option<Message>;

    /// The message of this index that is received in `round`; `None` past the last.
    fn receive(&self, round: u64, index: u32) -> Option<Message>;

    /// The piece of work of this index at this moment of `round`; `None` past the last.
    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work>;

    /// How much memory it needs.
    fn bytes(&self) -> Bytes;

    /// The op that [`Work::Fold`] applies.
    fn op(&self) -> Option<Op> {
        None
    }
}

/// First all rounds of `A`, then those of `B`; both see the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence<A, B> {
    first: A,
    second: B,
}

impl<A: Schedule, B: Schedule> Sequence<A, B> {
    /// `first`, then `second`.
    pub const fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A: Schedule, B: Schedule> Schedule for Sequence<A, B> {
    fn rounds(&self) -> u64 {
        self.first.rounds() + self.second.rounds()
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        match round.checked_sub(self.first.rounds()) {
            None => self.first.send(round, index),
            Some(round) => self.second.send(round, index),
        }
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        match round.checked_sub(self.first.rounds()) {
            None => self.first.receive(round, index),
            Some(round) => self.second.receive(round, index),
        }
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        match round.checked_sub(self.first.rounds()) {
            None => self.first.work(round, moment, index),
            Some(round) => self.second.work(round, moment, index),
        }
    }

    fn bytes(&self) -> Bytes {
        self.first.bytes().max(self.second.bytes())
    }

    fn op(&self) -> Option<Op> {
        self.first.op().or(self.second.op())
    }
}

/// Defines an enum of schedules. It implements `From` each of them, and [`Schedule`] by the one that it holds.
macro_rules! either {
    ($(#[$outer:meta])* $name:ident { $($variants:tt)* }) => {
        either!(@ $(#[$outer])* $name [] { $($variants)* });
    };
    ($(#[$outer:meta])* $name:ident<$life:lifetime> { $($variants:tt)* }) => {
        either!(@ $(#[$outer])* $name [<$life>] { $($variants)* });
    };
    (@ $(#[$outer:meta])* $name:ident $generic:tt { $($(#[$doc:meta])* $variant:ident($schedule:ty),)* }) => {
        either!(@enum $(#[$outer])* $name $generic { $($(#[$doc])* $variant($schedule),)* });
        $(either!(@from $name $generic $variant $schedule);)*
    };
    (@from $name:ident [$($generic:tt)*] $variant:ident $schedule:ty) => {
        impl $($generic)* From<$schedule> for $name $($generic)* {
            fn from(schedule: $schedule) -> Self {
                Self::$variant(schedule)
            }
        }
    };
    (@enum $(#[$outer:meta])* $name:ident [$($generic:tt)*] { $($(#[$doc:meta])* $variant:ident($schedule:ty),)* }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name $($generic)* {
            $($(#[$doc])* $variant($schedule),)*
        }

        impl $($generic)* $crate::msg::schedule::Schedule for $name $($generic)* {
            #[inline]
            fn rounds(&self) -> u64 {
                match self { $(Self::$variant(schedule) => schedule.rounds(),)* }
            }

            #[inline]
            fn send(&self, round: u64, index: u32) -> Option<$crate::msg::schedule::Message> {
                match self { $(Self::$variant(schedule) => schedule.send(round, index),)* }
            }

            #[inline]
            fn receive(&self, round: u64, index: u32) -> Option<$crate::msg::schedule::Message> {
                match self { $(Self::$variant(schedule) => schedule.receive(round, index),)* }
            }

            #[inline]
            fn work(
                &self,
                round: u64,
                moment: $crate::msg::schedule::Moment,
                index: u32,
            ) -> Option<$crate::msg::schedule::Work> {
                match self { $(Self::$variant(schedule) => schedule.work(round, moment, index),)* }
            }

            #[inline]
            fn bytes(&self) -> $crate::msg::schedule::Bytes {
                match self { $(Self::$variant(schedule) => schedule.bytes(),)* }
            }

            #[inline]
            fn op(&self) -> Option<$crate::op::Op> {
                match self { $(Self::$variant(schedule) => schedule.op(),)* }
            }
        }
    };
}
pub(crate) use either;
