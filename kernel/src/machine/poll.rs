//! What a poll answers: done, or what it waits for.

use crate::Rank;
use crate::error::WaitError;
use crate::region::{CounterId, FlagId, MailId};

/// The value that an awaited word must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Until {
    /// At least this (monotone flags and counters).
    AtLeast(u64),
    /// Exactly this.
    Equals(u64),
    /// Anything but zero (mailwords).
    Nonzero,
}

impl Until {
    /// Does `value` satisfy the wait? The value may come from a hostile peer: a lie costs a spurious poll.
    #[inline]
    pub fn holds(self, value: u64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::Equals(wanted) => value == wanted,
            Self::Nonzero => value != 0,
        }
    }
}

/// A request posted on the point-to-point layer: an index into the context's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

/// Where the awaited thing happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A flag of the region.
    Flag(FlagId, Until),
    /// A mailword of the region.
    Mail(MailId, Until),
    /// A counter of the region.
    Counter(CounterId, Until),
    /// A point-to-point request.
    Message(Slot),
}

/// One awaited event, with the peer that must bring it about and the operation that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Await {
    /// Where it happens.
    pub source: Source,
    /// Whose doing it is: who is late has a name. `None`: any member's (a shared counter).
    pub peer: Option<Rank>,
    /// The operation that waits, by its number on the communicator.
    pub operation: u64,
    /// What tells it from other waits of the operation for the same event: 0 where a word only grows.
    pub stage: u64,
}

/// A small bounded set of awaited events; any of them is worth a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaitSet {
    first: Await,
    second: Option<Await>,
}

impl WaitSet {
    /// Waits for one event.
    #[inline]
    pub const fn one(first: Await) -> Self {
        Self { first, second: None }
    }

    /// Waits for either of two events: a message that comes and one that goes.
    #[inline]
    pub const fn either(first: Await, second: Await) -> Self {
        Self { first, second: Some(second) }
    }

    /// Waits for `flag`, written by `peer`.
    #[inline]
    pub(crate) const fn flag(flag: FlagId, until: Until, peer: Rank, operation: u64) -> Self {
        Self::one(Await { source: Source::Flag(flag, until), peer: Some(peer), operation, stage: 0 })
    }

    /// The events.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Await> {
        core::iter::once(&self.first).chain(&self.second)
    }

    /// The first event: what a report names.
    #[inline]
    pub const fn first(&self) -> &Await {
        &self.first
    }

    /// The time is over. Where nobody in particular is awaited, the wait policy names who is furthest behind.
    #[inline]
    pub const fn late(&self) -> WaitError {
        WaitError::Late(match self.first.peer {
            Some(peer) => peer,
            None => 0,
        })
    }
}

/// The answer of a poll.
#[must_use = "a machine that waits must be polled again"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Poll {
    /// The operation is complete here; further polls answer the same.
    Done,
    /// Nothing more can be done until one of these happens. The answer may change after any event
    /// of the set and after nothing else; a poll in between is a no-op.
    Wait(WaitSet),
}
