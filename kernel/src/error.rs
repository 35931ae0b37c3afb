//! Errors are values: small, `Copy`, without strings; each names its argument, the value, the bound.

use crate::Rank;
use crate::collective::Kind;
use core::fmt;

/// What a refused value was meant for.
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
    /// Extent of a datatype in bytes, against the memory given.
    Extent,
    /// Page size of the segment in bytes.
    Page,
    /// Posted lines per rank.
    Lines,
    /// Slots of a monotone queue.
    QueueSlots,
    /// Bytes in one slot of a monotone queue.
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
    /// Kind of collective that a peer runs.
    Collective,
    /// Kind of a collective that a peer ran before; 0: the peers' collectives differ, it is not known how.
    EarlierCollective,
    /// Requests in flight.
    Requests,
    /// Address of the segment.
    Address,
    /// Address of a caller's buffer.
    Buffer,
    /// A datatype's number.
    Datatype,
    /// An operation's number or address.
    Operation,
    /// Displacements of blocks, in extents; or how many of them there are.
    Displacements,
    /// Bytes of an operation's element.
    Element,
    /// Bytes of working memory that the caller gives.
    Scratch,
    /// Messages of a mailbox that may be under way.
    Messages,
    /// Slots of a mailbox's message.
    MailboxSlots,
    /// Bytes in one slot of a mailbox.
    MailboxFragment,
    /// Failures of the communicator.
    Failures,
    /// A count at which a communicator begins on memory that was used before.
    Base,
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
        }
    }

    const ALL: [Self; 33] = [
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
    ];

    /// A number for the segment, where enums must not be read from bytes.
    pub(crate) const fn code(self) -> u64 {
        self as u64
    }

    pub(crate) fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.code() == code)
    }
}

/// How a value missed its bound.
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
    /// The value must be a multiple (or power) of this.
    MultipleOf(u64),
    /// The value must divide this.
    Divides(u64),
    /// The argument must be so; the value is 1 if it is.
    Is(Condition),
}

/// What an argument must be, where no number says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Data in one piece: an operation's elements have no holes.
    Contiguous,
    /// A communicator that has failed: a healthy one is not renewed.
    Failed,
    /// A request that was made, and was not freed.
    Known,
    /// A request that is not active.
    Inactive,
}

impl Condition {
    /// All of them. What a segment says of one is its place here: new ones go to the end.
    pub(crate) const ALL: [Self; 4] = [Self::Contiguous, Self::Failed, Self::Known, Self::Inactive];

    /// What is said of an argument that is not so.
    const fn text(self) -> &'static str {
        match self {
            Self::Contiguous => "the data has holes, must be contiguous",
            Self::Failed => "the communicator has not failed: there is nothing to renew",
            Self::Known => "no such request: it was freed, or never made",
            Self::Inactive => "the request is active: wait for it first",
        }
    }
}

/// A refused argument: its name, its value, the bound that it broke.
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
    /// A refusal of `value` for `argument`.
    pub const fn new(argument: Argument, value: u64, bound: Bound) -> Self {
        Self { argument, value, bound }
    }

    /// Is the address `at` a multiple of `align`?
    ///
    /// # Errors
    /// It is not; the argument named is the segment's address.
    pub fn check_aligned(at: u64, align: u64) -> Result<(), Self> {
        Self::check(Argument::Address, at, Bound::MultipleOf(align))?;
        Ok(())
    }

    /// An argument that is not what it must be.
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
            Bound::Is(condition) => f.write_str(condition.text()),
        }
    }
}

impl core::error::Error for Refusal {}

/// The error number of a point-to-point layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct P2pError(pub i32);

impl P2pError {
    /// A message and its receive differ in length: the one number that all layers share.
    pub const LENGTH: Self = Self(-1);
}

/// Why a communicator can't go on, agreed by all its members: the first writer's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Poison {
    /// The rank at fault; from the segment's number of ranks on one of another node ([`crate::hier::Levels`]).
    pub rank: Rank,
    /// The operation (number on this communicator, the first is 1; modulo 2³⁰ where a peer wrote it).
    pub operation: u64,
    /// What happened there.
    pub cause: Cause,
}

impl Poison {
    /// Are all its ranks there, to go on together on a communicator of the same ranks? Not where one died.
    pub const fn is_renewable(&self) -> bool {
        !matches!(self.cause, Cause::Died)
    }
}

/// What a [`Poison`] tells of its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The process is gone.
    Died,
    /// It refused an argument of its own, or what a peer's argument said.
    Refused(Refusal),
    /// It found words in the segment that no member writes.
    Fault,
    /// A message of its failed: the layer's error number.
    Messages(i32),
    /// It was waited for longer than the bound of time.
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
                write!(f, "rank {rank} was late: the bound on waiting for it is over (operation {operation})")
            }
        }
    }
}

/// Why a poll failed. The operation is over; the communicator must be poisoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PollError {
    /// A peer's argument does not fit ours: `value` is ours, the bound is the peer's.
    Mismatch {
        /// The peer.
        peer: Rank,
        /// Our value against its bound.
        refusal: Refusal,
    },
    /// A word of `peer` is ahead of where any member can be: line overrun or corrupt segment.
    Overrun {
        /// The peer.
        peer: Rank,
        /// The largest value that a member can have written.
        expected: u64,
        /// The value found.
        found: u64,
    },
    /// The point-to-point layer failed; its own number.
    Messages {
        /// The peer.
        peer: Rank,
        /// The layer's error number.
        code: i32,
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
            Self::NotStarted => f.write_str("the operation was not started"),
        }
    }
}

impl core::error::Error for PollError {}

/// Why a wait ended without what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitError {
    /// The communicator is poisoned.
    Poisoned(Poison),
    /// The peer that was waited for is gone.
    Died(Rank),
    /// The bound of time (or of polls) is over; the peer that was waited for.
    Late(Rank),
    /// The peer makes another collective at this place: its number, where this process's stands.
    Diverged {
        /// Who.
        peer: Rank,
        /// What is refused: this process's collective, against the peer's.
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
    /// The communicator is poisoned, by this call or an earlier one, here or elsewhere. Where no rank died ([`Poison::is_renewable`])
    /// all renew it and go on (`Intracomm::renew`, `unisono_comm_renew`, `unisono_local::renew`); else the others make a group.
    Poisoned(Poison),
    /// The machine failed; the communicator is poisoned from now on.
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
