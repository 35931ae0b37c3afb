//! Errors: small values, `Copy`, without strings. A refusal names the argument, its value and the bound, or the
//! condition that it does not meet.

use crate::Rank;
use crate::collective::Kind;
use core::fmt;

/// The argument that a refusal names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Argument {
    /// Number of processes.
    Ranks,
    /// Rank of the caller.
    Rank,
    /// Root of a rooted operation.
    Root,
    /// Bytes of a message.
    Bytes,
    /// Number of elements.
    Count,
    /// Extent of all elements of a datatype, in bytes.
    Extent,
    /// Page size of the segment in bytes.
    Page,
    /// Posted lines per rank.
    Lines,
    /// Slots of a rank's queue.
    QueueSlots,
    /// Bytes in one slot of a rank's queue.
    QueueFragment,
    /// Paper P1's `s`: slots per process.
    Slots,
    /// Paper P1's `f`: bytes in one slot.
    Fragment,
    /// Paper P1's `q`: sets that a queue is split into.
    Sets,
    /// Children per vertex of a tree.
    Arity,
    /// Bytes of the segment.
    SegmentBytes,
    /// First word of the segment.
    Magic,
    /// Version of the segment's layout.
    Version,
    /// Hash of the segment's layout.
    Hash,
    /// The collective, by its number ([`Kind`]).
    Collective,
    /// A collective before this one, by its number ([`Kind`]); 0: earlier collectives differ, and it is not known
    /// which.
    EarlierCollective,
    /// Requests in flight.
    Requests,
    /// Address of the segment.
    Address,
    /// Address of a caller's buffer.
    Buffer,
    /// A datatype's number or address.
    Datatype,
    /// An op's number or address.
    Operation,
    /// Displacements of blocks, or how many displacements there are.
    Displacements,
    /// Bytes of an op's element.
    Element,
    /// Bytes of working memory that the caller gives.
    Scratch,
    /// Messages that may be in flight in a mailbox.
    Messages,
    /// Slots for each message of a mailbox.
    MailboxSlots,
    /// Bytes in one slot of a mailbox.
    MailboxFragment,
    /// Failures of the communicator.
    Failures,
    /// A count at which a communicator starts on memory that was used before.
    Base,
    /// The function of an op that the caller defines.
    Function,
    /// Address of a list of a number or a datatype for each rank.
    List,
    /// Whether processes share cores.
    Crowded,
}

impl Argument {
    /// The argument's name as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ranks => "ranks",
            Self::Rank => "rank",
            Self::Root => "root",
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::Extent => "extent",
            Self::Page => "page",
            Self::Lines => "lines",
            Self::QueueSlots => "queue slots",
            Self::QueueFragment => "queue fragment",
            Self::Slots => "slots (s)",
            Self::Fragment => "fragment (f)",
            Self::Sets => "sets (q)",
            Self::Arity => "arity",
            Self::SegmentBytes => "segment bytes",
            Self::Magic => "magic",
            Self::Version => "version",
            Self::Hash => "layout hash",
            Self::Collective => "collective",
            Self::EarlierCollective => "an earlier collective",
            Self::Requests => "requests",
            Self::Address => "segment address",
            Self::Buffer => "buffer address",
            Self::Datatype => "datatype",
            Self::Operation => "operation",
            Self::Displacements => "displacements",
            Self::Element => "element",
            Self::Scratch => "scratch bytes",
            Self::Messages => "mailbox messages",
            Self::MailboxSlots => "mailbox slots",
            Self::MailboxFragment => "mailbox fragment",
            Self::Failures => "failures",
            Self::Base => "base",
            Self::Function => "function of the operation",
            Self::List => "list of counts, displacements or datatypes",
            Self::Crowded => "crowded",
        }
    }

    /// All of them. A segment has their numbers: new ones go to the end.
    const ALL: [Self; 36] = [
        Self::Ranks,
        Self::Rank,
        Self::Root,
        Self::Bytes,
        Self::Count,
        Self::Extent,
        Self::Page,
        Self::Lines,
        Self::QueueSlots,
        Self::QueueFragment,
        Self::Slots,
        Self::Fragment,
        Self::Sets,
        Self::Arity,
        Self::SegmentBytes,
        Self::Magic,
        Self::Version,
        Self::Hash,
        Self::Collective,
        Self::EarlierCollective,
        Self::Requests,
        Self::Address,
        Self::Buffer,
        Self::Datatype,
        Self::Operation,
        Self::Displacements,
        Self::Element,
        Self::Scratch,
        Self::Messages,
        Self::MailboxSlots,
        Self::MailboxFragment,
        Self::Failures,
        Self::Base,
        Self::Function,
        Self::List,
        Self::Crowded,
    ];

    /// Its number in the segment: a peer's word is never read as an enum.
    pub(crate) const fn code(self) -> u64 {
        self as u64
    }

    pub(crate) fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.code() == code)
    }
}

/// The bound that a value must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// The value must be below this.
    Below(u64),
    /// The value must be at most this.
    AtMost(u64),
    /// The value must be at least this.
    AtLeast(u64),
    /// The value must equal this.
    Equals(u64),
    /// The value must be a multiple of this.
    MultipleOf(u64),
    /// The value must divide this.
    Divides(u64),
    /// The argument must meet this condition; the value is 1 if it does.
    Is(Condition),
    /// Blocks that are received must not overlap: the value is the rank of one block, this is the rank of the other.
    Apart(u64),
}

/// What an argument must be, where a number can't express it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Data in one piece: an operation's elements have no holes.
    Contiguous,
    /// A communicator that has failed: a healthy one is not renewed.
    Failed,
    /// A request that exists: it was made, and was not freed.
    Known,
    /// A request that is not active.
    Inactive,
    /// An address other than null.
    NotNull,
    /// A buffer, or blocks, that this rank needs for its part of the collective.
    Given,
    /// A segment that has the queues of papers P1 and P2.
    PaperQueues,
    /// A segment that has mailboxes, for messages through it.
    Mailboxes,
    /// An algorithm that applies to the call: to its operation, and to its number of ranks.
    Applicable,
    /// A place where MPI allows `MPI_IN_PLACE`.
    InPlaceAllowed,
    /// Memory for a list that the call needs.
    Memory,
    /// Memory that was allocated here, and not released.
    Allocated,
}

impl Condition {
    /// All of them. A segment has a condition as its index here: new ones go to the end.
    pub(crate) const ALL: [Self; 12] = [
        Self::Contiguous,
        Self::Failed,
        Self::Known,
        Self::Inactive,
        Self::NotNull,
        Self::Given,
        Self::PaperQueues,
        Self::Mailboxes,
        Self::Applicable,
        Self::InPlaceAllowed,
        Self::Memory,
        Self::Allocated,
    ];

    /// The error text for an argument that does not meet the condition.
    const fn text(self) -> &'static str {
        match self {
            Self::Contiguous => "the data has holes, must be contiguous",
            Self::Failed => "the communicator has not failed: there is nothing to renew",
            Self::Known => "no such request: it was freed, or never made",
            Self::Inactive => "the request is active: wait for it first",
            Self::NotNull => "an address is null",
            Self::Given => "this rank needs a buffer that was not given",
            Self::PaperQueues => "the segment has no queues of papers P1 and P2: make it with `with_cico`",
            Self::Mailboxes => "the segment has no mailboxes: make it with `with_mailboxes`",
            Self::Applicable => "the algorithm does not apply to this call",
            Self::InPlaceAllowed => "the address is UNISONO_IN_PLACE where MPI does not allow it",
            Self::Memory => "there is no memory for a list of the call",
            Self::Allocated => "the memory was not allocated by unisono_alloc, or was released",
        }
    }
}

/// A refused argument: which one, its value, and the bound that the value breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// Which argument.
    pub argument: Argument,
    /// Its value.
    pub value: u64,
    /// The bound.
    pub bound: Bound,
}

impl Refusal {
    /// The refusal of this value of this argument.
    pub const fn new(argument: Argument, value: u64, bound: Bound) -> Self {
        Self { argument, value, bound }
    }

    /// Is the address `at` a multiple of `align`?
    ///
    /// # Errors
    /// It is not. The refusal names the segment's address.
    pub fn check_aligned(at: u64, align: u64) -> Result<(), Self> {
        Self::check(Argument::Address, at, Bound::MultipleOf(align))?;
        Ok(())
    }

    /// The refusal of an argument that does not meet a condition.
    pub const fn not(argument: Argument, condition: Condition) -> Self {
        Self::new(argument, 0, Bound::Is(condition))
    }

    /// Is `value` acceptable under `bound`?
    ///
    /// # Errors
    /// It is not.
    #[inline(always)]
    pub fn check(argument: Argument, value: u64, bound: Bound) -> Result<u64, Self> {
        let ok = match bound {
            Bound::Below(b) => value < b,
            Bound::AtMost(b) => value <= b,
            Bound::AtLeast(b) => value >= b,
            Bound::Equals(b) => value == b,
            Bound::MultipleOf(b) => b != 0 && value.is_multiple_of(b),
            Bound::Divides(b) => value != 0 && b.is_multiple_of(value),
            Bound::Is(_) => value != 0,
            // Two ranks don't say where their blocks lie: this bound is made by the check that compares them.
            Bound::Apart(_) => false,
        };
        if ok { Ok(value) } else { Err(Self::new(argument, value, bound)) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value) = (self.argument.name(), self.value);
        match self.bound {
            Bound::Equals(0) if self.argument == Argument::EarlierCollective => {
                f.write_str("earlier collectives differ")
            }
            Bound::Equals(b) if matches!(self.argument, Argument::Collective | Argument::EarlierCollective) => {
                write!(f, "{name} is {}, must be {}", Kind::name(value), Kind::name(b))
            }
            Bound::Below(b) => write!(f, "{name} is {value}, must be below {b}"),
            Bound::AtMost(b) => write!(f, "{name} is {value}, must be at most {b}"),
            Bound::AtLeast(b) => write!(f, "{name} is {value}, must be at least {b}"),
            Bound::Equals(b) => write!(f, "{name} is {value}, must be {b}"),
            Bound::MultipleOf(b) => write!(f, "{name} is {value}, must be a multiple of {b}"),
            Bound::Divides(b) => write!(f, "{name} is {value}, must divide {b}"),
            Bound::Is(Condition::NotNull) => write!(f, "{name} is null"),
            Bound::Is(condition) => f.write_str(condition.text()),
            Bound::Apart(other) => write!(f, "blocks {value} and {other} overlap"),
        }
    }
}

impl core::error::Error for Refusal {}

/// The error number of a point-to-point layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct P2pError(pub i32);

impl P2pError {
    /// A message and its receive differ in length. All layers use this number for it; other numbers are a layer's own.
    pub const LENGTH: Self = Self(-1);
}

/// Why a communicator has failed. The first poison that a member writes counts; all members return that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Poison {
    /// The rank at fault. A rank that is not below the segment's number of ranks is one of another node
    /// ([`crate::hier::Levels`]).
    pub rank: Rank,
    /// The operation's number on this communicator; the first is 1. Modulo 2³⁰ if another rank wrote the poison.
    pub operation: u64,
    /// What happened there.
    pub cause: Cause,
}

impl Poison {
    /// Can all ranks go on together on a renewed communicator? Not if one died.
    pub const fn is_renewable(&self) -> bool {
        !matches!(self.cause, Cause::Died)
    }
}

/// What happened at the rank of a [`Poison`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The process died.
    Died,
    /// It refused an argument of its own, or a peer's argument that does not fit its own.
    Refused(Refusal),
    /// It found words in the segment that no member writes.
    Fault,
    /// One of its messages failed; the error number of the point-to-point layer.
    Messages(i32),
    /// Another rank waited for it longer than the bound of time.
    Late,
}

impl fmt::Display for Poison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, operation, cause } = self;
        match cause {
            Cause::Died => write!(f, "rank {rank} died (seen in operation {operation})"),
            Cause::Refused(r) => write!(f, "rank {rank} refused operation {operation}: {r}"),
            Cause::Fault => write!(f, "rank {rank} found a corrupt segment in operation {operation}"),
            Cause::Messages(code) if *code == P2pError::LENGTH.0 => {
                write!(f, "a message of rank {rank} has another length than its receive (operation {operation})")
            }
            Cause::Messages(code) => {
                write!(f, "a message of rank {rank} failed in operation {operation}: error {code}")
            }
            Cause::Late => {
                write!(
                    f,
                    "rank {rank} was late: a rank waited for it longer than its bound of time (operation {operation})"
                )
            }
        }
    }
}

/// Why a poll failed. The operation has failed, and the communicator must be poisoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PollError {
    /// A peer's argument does not fit this rank's: the refusal's value is this rank's, its bound the peer's.
    Mismatch {
        /// The peer.
        peer: Rank,
        /// This rank's value, and the peer's as the bound.
        refusal: Refusal,
    },
    /// A word of `peer` is larger than any member can have written: the segment is corrupt.
    Overrun {
        /// The peer.
        peer: Rank,
        /// The largest value that a member can have written.
        expected: u64,
        /// The value found.
        found: u64,
    },
    /// The point-to-point layer failed.
    Messages {
        /// The peer.
        peer: Rank,
        /// The layer's error number.
        code: i32,
    },
    /// Memory that `peer` lent in this operation can't be read any more, though its first bytes could. A call returns it as
    /// the death of that rank.
    Unreadable {
        /// The peer.
        peer: Rank,
    },
    /// An operation was built and polled, but not started.
    NotStarted,
}

impl fmt::Display for PollError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch { peer, refusal } => write!(f, "disagreement with rank {peer}: {refusal}"),
            Self::Overrun { peer, expected, found } => {
                write!(f, "corrupt word of rank {peer}: {found}, no member writes above {expected}")
            }
            Self::Messages { peer, code } if *code == P2pError::LENGTH.0 => {
                write!(f, "a message to or from rank {peer} has another length than its receive")
            }
            Self::Messages { peer, code } => write!(f, "message to or from rank {peer} failed: error {code}"),
            Self::Unreadable { peer } => write!(f, "memory that rank {peer} lent can't be read any more"),
            Self::NotStarted => f.write_str("the operation was not started"),
        }
    }
}

impl core::error::Error for PollError {}

/// Why a wait failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitError {
    /// The communicator is poisoned.
    Poisoned(Poison),
    /// The awaited peer died.
    Died(Rank),
    /// The wait took longer than its bound; the awaited peer.
    Late(Rank),
    /// The peer calls another collective than this process in the same place.
    Diverged {
        /// The peer.
        peer: Rank,
        /// This process's collective, and the peer's as the bound.
        refusal: Refusal,
    },
    /// A checker gave this execution up: not a failure.
    Abandoned,
}

/// Why a collective call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// An argument of this call was refused here.
    Refused(Refusal),
    /// The communicator is poisoned, by this call or an earlier one, on this or another rank. If no rank died
    /// ([`Poison::is_renewable`]), all ranks may renew it and go on (`Intracomm::renew`, `unisono_comm_renew`,
    /// `unisono_local::renew`); else the living ranks may make a communicator of their own.
    Poisoned(Poison),
    /// A poll failed; the communicator is poisoned from now on.
    Poll(PollError),
    /// A checker gave this execution up: not a failure.
    Abandoned,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(e) => e.fmt(f),
            Self::Poisoned(e) => e.fmt(f),
            Self::Poll(e) => e.fmt(f),
            Self::Abandoned => f.write_str("abandoned by the checker"),
        }
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_argument_has_one_number_and_is_found_by_it() {
        for (at, argument) in (0..).zip(Argument::ALL) {
            assert_eq!((argument.code(), Argument::from_code(at)), (at, Some(argument)));
        }
        assert_eq!(Argument::from_code(Argument::ALL.len() as u64), None);
        for (at, condition) in Condition::ALL.into_iter().enumerate() {
            assert_eq!(condition as usize, at);
        }
    }

    #[test]
    fn what_no_number_says_is_said_in_words() {
        let null = |argument| Refusal::not(argument, Condition::NotNull).to_string();
        assert_eq!(null(Argument::Buffer), "buffer address is null");
        assert_eq!(null(Argument::Function), "function of the operation is null");
        let missing = Refusal::not(Argument::Buffer, Condition::Given);
        assert_eq!(missing.to_string(), "this rank needs a buffer that was not given");
        let queues = Refusal::not(Argument::Slots, Condition::PaperQueues).to_string();
        assert_eq!(queues, "the segment has no queues of papers P1 and P2: make it with `with_cico`");
        let overlap = Refusal::new(Argument::Displacements, 1, Bound::Apart(3));
        assert_eq!(overlap.to_string(), "blocks 1 and 3 overlap");
        assert_eq!(Refusal::check(Argument::Displacements, 1, Bound::Apart(3)), Err(overlap));
    }
}
