//! What a poll returns: done, or what the machine waits for.

use crate::Rank;
use crate::error::{PollError, WaitError};
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
    /// Does `value` satisfy the wait? The value may come from a faulty peer: a wrong one costs a spurious poll.
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

/// What is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A flag of the region.
    Flag(FlagId, Until),
    /// A mailword of the region.
    Mail(MailId, Until),
    /// A counter of the region.
    Counter(CounterId, Until),
    /// The completion of a point-to-point request.
    Message(Slot),
}

/// One awaited event, with the peer that must bring it about and the operation that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Await {
    /// The event.
    pub source: Source,
    /// The rank that must bring it about: an error names it if it is late. `None`: any member (a shared counter).
    pub peer: Option<Rank>,
    /// The number of the operation that waits, on its communicator.
    pub operation: u64,
    /// Tells this wait from the operation's other waits for the same event: 0 for words that only grow.
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

    /// Waits for either of two events, such as a receive and a send.
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

    /// The first event, which reports name.
    #[inline]
    pub const fn first(&self) -> &Await {
        &self.first
    }

    /// The error of a wait that took too long. It names the awaited peer, or rank 0 if the event has none: then the
    /// wait policy replaces it ([`Observe::late`](crate::machine::transport::Observe::late)).
    #[inline]
    pub const fn late(&self) -> WaitError {
        WaitError::Late(match self.first.peer {
            Some(peer) => peer,
            None => 0,
        })
    }
}

/// What a poll returns.
#[must_use = "a machine that waits must be polled again"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Poll {
    /// The operation is complete on this process; further polls return the same.
    Done,
    /// Nothing more can be done before one of these events; a poll in between changes nothing.
    Wait(WaitSet),
}
/// Why a step of a machine does not get to its end. As an error it is copied only where it happens: what a step returns
/// else is small.
#[derive(Debug)]
pub enum Halt {
    /// It has to wait for this.
    Wait(WaitSet),
    /// The operation failed.
    Failed(PollError),
}

impl From<PollError> for Halt {
    #[inline(always)]
    fn from(error: PollError) -> Self {
        Self::Failed(error)
    }
}

impl From<WaitSet> for Halt {
    #[inline(always)]
    fn from(on: WaitSet) -> Self {
        Self::Wait(on)
    }
}

impl From<Halt> for Result<Poll, PollError> {
    #[inline(always)]
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Wait(on) => Ok(Poll::Wait(on)),
            Halt::Failed(error) => Err(error),
        }
    }
}
