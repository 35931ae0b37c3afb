//! What an algorithm over messages is: a schedule, a pure function of who is where and of how many bytes.
//!
//! A schedule answers, for one process, what it sends, receives and does in each round. It holds no address: bytes
//! are named by [`Place`]s. So the same schedule is run by a machine ([`super::rounds`]), read on paper, and priced.

use crate::Rank;
use crate::op::Op;
use core::hash::Hash;

/// A part of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Area {
    /// The user's input. Only read; not used in place.
    Send,
    /// The user's result; in place also the input.
    Receive,
    /// Working memory that the caller gives.
    Scratch,
}

/// Bytes `at .. at + len` of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Which memory.
    pub area: Area,
    /// First byte.
    pub at: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Place {
    /// Nothing: the content of a message that only says that it came.
    pub const NOTHING: Self = Self::new(Area::Scratch, 0, 0);

    /// Bytes `at .. at + len` of `area`.
    #[inline]
    pub const fn new(area: Area, at: u64, len: u64) -> Self {
        Self { area, at, len }
    }

    /// The same bytes of another memory: `at` is where byte 0 of this place's area would lie.
    #[inline]
    #[must_use]
    pub const fn moved(self, area: Area, at: u64) -> Self {
        Self { area, at: at + self.at, len: self.len }
    }
}

/// A message of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// The other side.
    pub peer: Rank,
    /// What is sent, or where what is received goes.
    pub place: Place,
}

/// A piece of local work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Copies; the places are equally long, and apart.
    Copy {
        /// Source.
        from: Place,
        /// Target.
        to: Place,
    },
    /// `right = left ∘ right`; the places are equally long, and apart.
    Fold {
        /// The left operand, which stays.
        left: Place,
        /// The right operand, which becomes the result.
        right: Place,
    },
}

/// When in a round work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// Before its messages are posted.
    Before,
    /// While they travel: touches nothing that they touch.
    Meanwhile,
    /// After all are complete.
    After,
}

/// Bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytes {
    /// Of the user's input.
    pub send: u64,
    /// Of the user's result.
    pub receive: u64,
    /// Of working memory.
    pub scratch: u64,
}

impl Bytes {
    /// As much as either.
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
/// The messages of a round may travel at once, and are posted in order of their index. Between two processes
/// the messages that one sends, round by round, are those that the other receives, in the same order. What is
/// received in a round overlaps nothing else of the round. Rounds past the last are never asked for.
pub trait Schedule: Clone + PartialEq + Eq + Hash {
    /// Rounds of this process; they need not be as many as another one's.
    fn rounds(&self) -> u64;

    /// The message of this index that is sent in `round`; none past the last.
    fn send(&self, round: u64, index: u32) -> Option<Message>;

    /// The message of this index that is received in `round`; none past the last.
    fn receive(&self, round: u64, index: u32) -> Option<Message>;

    /// The piece of work of this index in `round`; none past the last.
    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work>;

    /// What memory it needs.
    fn bytes(&self) -> Bytes;

    /// The operation of [`Work::Fold`].
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

/// An enum of schedules, one of which runs: `From` each, and [`Schedule`] by whichever it is.
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
