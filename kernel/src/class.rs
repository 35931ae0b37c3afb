//! Every error belongs to one of a few classes. Here is the one table of them, with their numbers in `unisono.h` and
//! MPI's error classes; tests compare the other lists with it (the header, docs/reference/errors.md, the preload's
//! `errors.c`).
//!
//! No match here has a wildcard: an error without a class does not compile.

use crate::error::{Argument, Cause, Error, Poison, PollError, Refusal, WaitError};
use crate::machine::p2p::P2pError;
use core::ffi::CStr;

macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident = $number:literal, $name:literal, $mpi:literal, $text:literal;)*) => {
        /// The class of an error. Its number never changes: new classes go to the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(i32)]
        pub enum Class {
            $($(#[$doc])* $class = $number,)*
        }

        impl Class {
            /// Every class.
            pub const ALL: &[Self] = &[$(Self::$class),*];

            /// Its name in `unisono.h`.
            pub const fn name(self) -> &'static CStr {
                match self { $(Self::$class => $name,)* }
            }

            /// The name of MPI's error class (MPI 4.1, 9.4) for it.
            pub const fn mpi(self) -> &'static str {
                match self { $(Self::$class => $mpi,)* }
            }

            /// A short text for the class.
            pub const fn text(self) -> &'static CStr {
                match self { $(Self::$class => $text,)* }
            }
        }
    };
}

classes! {
    /// A pointer that must not be null is null. C alone.
    Null = -1, c"UNISONO_ERR_NULL", "MPI_ERR_BUFFER", c"a pointer is null";
    /// An argument of this call, or a setting, was refused.
    Argument = -2, c"UNISONO_ERR_ARGUMENT", "MPI_ERR_ARG", c"an argument was refused";
    /// The handle is in use by another call. C alone.
    Busy = -3, c"UNISONO_ERR_BUSY", "MPI_ERR_OTHER", c"the communicator is in use by another call";
    /// The memory holds no segment yet. C alone.
    NotReady = -4, c"UNISONO_ERR_NOT_READY", "MPI_ERR_OTHER", c"the segment was not created yet";
    /// The memory holds something other than a segment, or a segment of another version or layout.
    Segment = -5, c"UNISONO_ERR_SEGMENT", "MPI_ERR_INTERN", c"the memory holds no segment that this version understands";
    /// This rank's arguments do not fit those of another.
    Mismatch = -6, c"UNISONO_ERR_MISMATCH", "MPI_ERR_TRUNCATE", c"the ranks' arguments disagree";
    /// Another rank refused its arguments, at this or an earlier operation.
    Peer = -7, c"UNISONO_ERR_PEER", "MPI_ERR_OTHER", c"another rank refused its arguments";
    /// A rank died.
    Died = -8, c"UNISONO_ERR_DIED", "MPI_ERR_OTHER", c"a rank died";
    /// A rank was waited for longer than its bound of time.
    Late = -9, c"UNISONO_ERR_LATE", "MPI_ERR_OTHER", c"a rank was late";
    /// The segment holds words that no member writes.
    Corrupt = -10, c"UNISONO_ERR_CORRUPT", "MPI_ERR_INTERN", c"the segment is corrupt";
    /// No memory for a handle, or for a segment.
    Memory = -11, c"UNISONO_ERR_MEMORY", "MPI_ERR_NO_MEM", c"out of memory";
    /// Any other error.
    Other = -12, c"UNISONO_ERR_OTHER", "MPI_ERR_OTHER", c"another error";
    /// The processes could not be connected at start-up.
    Host = -13, c"UNISONO_ERR_HOST", "MPI_ERR_OTHER", c"the processes could not be joined";
    /// A request is active, or can't be started. C alone.
    Request = -14, c"UNISONO_ERR_REQUEST", "MPI_ERR_REQUEST", c"a request is in the way";
}

impl Class {
    /// Its number in `unisono.h`: negative.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The class of a number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.iter().copied().find(|class| class.number() == number)
    }
}

impl Refusal {
    /// Its class. Magic, version, hash, base and `crowded` come from the segment, not from the caller.
    pub const fn class(&self) -> Class {
        match self.argument {
            Argument::Magic | Argument::Version | Argument::Hash | Argument::Base | Argument::Crowded => Class::Segment,
            Argument::Ranks
            | Argument::Rank
            | Argument::Root
            | Argument::Bytes
            | Argument::Count
            | Argument::Extent
            | Argument::Page
            | Argument::Lines
            | Argument::QueueSlots
            | Argument::QueueFragment
            | Argument::Slots
            | Argument::Fragment
            | Argument::Sets
            | Argument::Arity
            | Argument::SegmentBytes
            | Argument::Collective
            | Argument::EarlierCollective
            | Argument::Requests
            | Argument::Address
            | Argument::Buffer
            | Argument::Datatype
            | Argument::Operation
            | Argument::Displacements
            | Argument::Element
            | Argument::Scratch
            | Argument::Messages
            | Argument::MailboxSlots
            | Argument::MailboxFragment
            | Argument::Failures
            | Argument::Function
            | Argument::List => Class::Argument,
        }
    }
}

impl Poison {
    /// Its class. A refusal counts as another rank's: the call that refused returns [`Error::Refused`] or [`Error::Poll`]
    /// instead; later calls, also of the rank that refused, have this class.
    pub const fn class(&self) -> Class {
        match self.cause {
            Cause::Died => Class::Died,
            Cause::Refused(_) => Class::Peer,
            Cause::Fault => Class::Corrupt,
            Cause::Messages(code) if code == P2pError::LENGTH.0 => Class::Peer,
            Cause::Messages(_) => Class::Other,
            Cause::Late => Class::Late,
        }
    }
}

impl PollError {
    /// Its class.
    pub const fn class(&self) -> Class {
        match self {
            Self::Mismatch { .. } => Class::Mismatch,
            Self::Overrun { .. } => Class::Corrupt,
            Self::Messages { code, .. } if *code == P2pError::LENGTH.0 => Class::Mismatch,
            Self::Messages { .. } | Self::Unreadable { .. } => Class::Other,
            Self::NotStarted => Class::Request,
        }
    }
}

impl WaitError {
    /// Its class.
    pub const fn class(&self) -> Class {
        match self {
            Self::Poisoned(poison) => poison.class(),
            Self::Died(_) => Class::Died,
            Self::Late(_) => Class::Late,
            Self::Diverged { .. } => Class::Mismatch,
            Self::Abandoned => Class::Other,
        }
    }
}

impl Error {
    /// Its class.
    pub const fn class(&self) -> Class {
        match self {
            Self::Refused(refusal) => refusal.class(),
            Self::Poisoned(poison) => poison.class(),
            Self::Poll(error) => error.class(),
            Self::Abandoned => Class::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Bound;

    #[test]
    fn numbers_are_those_of_the_first_release_and_differ() {
        let numbers: std::vec::Vec<_> = Class::ALL.iter().map(|class| class.number()).collect();
        assert!(numbers.iter().copied().eq((1..=14).map(|number: i32| -number)));
        for class in Class::ALL {
            assert_eq!(Class::from_number(class.number()), Some(*class));
            assert!(class.mpi().starts_with("MPI_ERR_"), "{class:?}");
        }
        assert_eq!((Class::from_number(0), Class::from_number(-15)), (None, None));
    }

    #[test]
    fn a_wait_and_a_call_report_the_same_class() {
        let refusal = Refusal::new(Argument::Root, 9, Bound::Below(4));
        let poison = |cause| Poison { rank: 1, operation: 7, cause };
        for (cause, class) in [
            (Cause::Died, Class::Died),
            (Cause::Late, Class::Late),
            (Cause::Fault, Class::Corrupt),
            (Cause::Refused(refusal), Class::Peer),
        ] {
            assert_eq!(Error::Poisoned(poison(cause)).class(), class);
            assert_eq!(WaitError::Poisoned(poison(cause)).class(), class);
        }
        assert_eq!((WaitError::Died(1).class(), WaitError::Late(1).class()), (Class::Died, Class::Late));
        assert_eq!(Error::Refused(refusal).class(), Class::Argument);
        assert_eq!(Refusal { argument: Argument::Hash, ..refusal }.class(), Class::Segment);
        let diverged = WaitError::Diverged { peer: 1, refusal };
        assert_eq!(
            (diverged.class(), Error::Poll(PollError::Mismatch { peer: 1, refusal }).class()),
            (Class::Mismatch, Class::Mismatch)
        );
        assert_eq!(Error::Poll(PollError::Overrun { peer: 1, expected: 2, found: 3 }).class(), Class::Corrupt);
        let messages = |code| Error::Poll(PollError::Messages { peer: 1, code });
        assert_eq!((messages(2).class(), messages(P2pError::LENGTH.0).class()), (Class::Other, Class::Mismatch));
    }
}
