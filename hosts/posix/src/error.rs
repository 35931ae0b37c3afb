//! Errors of the start-up, the launcher, and the machine.

use core::fmt;
use unisono_kernel::Rank;
use unisono_kernel::class::Class;
use unisono_kernel::error::{Error, Refusal};

/// Which limit on memory was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// `MemAvailable` of the machine.
    Machine,
    /// A control group's limit.
    Cgroup,
    /// The kernel refused to reserve pages.
    Reserve,
    /// The arenas of a communicator's members.
    Arena,
    /// This process's heap.
    Heap,
    /// The kernel's pool of huge pages.
    Pool,
}

/// Why a start-up, a launch or a reading of the machine failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PosixError {
    /// An argument was refused.
    Refused(Refusal),
    /// An environment variable or an option has a wrong value.
    Setting {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        bound: &'static str,
    },
    /// A decision table is refused.
    Table {
        /// Where and why.
        cause: String,
    },
    /// A system call failed.
    System {
        /// The call.
        call: &'static str,
        /// Its error number.
        errno: i32,
        /// What it was for.
        purpose: String,
    },
    /// Not enough memory for the segment.
    Space {
        /// Bytes that were asked for.
        needed: u64,
        /// Bytes that are available.
        available: u64,
        /// Whose limit it is.
        limit: Limit,
    },
    /// A file that should be the segment differs from what was announced.
    Handle {
        /// The property.
        property: &'static str,
        /// Its value.
        found: u64,
        /// What it must be.
        expected: u64,
    },
    /// Another rank failed in the start-up, so it failed on all ranks.
    Peer {
        /// The rank that failed.
        rank: Rank,
        /// The cause, as that rank or the launcher reports it.
        cause: String,
    },
    /// A collective inside the call failed.
    Call(Error),
    /// The bootstrap itself failed.
    Bootstrap {
        /// What happened.
        cause: String,
    },
}

impl PosixError {
    /// The error of a system call `call`, from an error of the standard library; `purpose`: what the call was for.
    pub fn io(call: &'static str, error: &std::io::Error, purpose: impl Into<String>) -> Self {
        match error.raw_os_error() {
            Some(errno) => Self::System { call, errno, purpose: purpose.into() },
            None => Self::Bootstrap { cause: format!("{call}: {error} ({})", purpose.into()) },
        }
    }

    /// The bootstrap failed.
    pub(crate) fn bootstrap(cause: impl Into<String>) -> Self {
        Self::Bootstrap { cause: cause.into() }
    }
}

impl PosixError {
    /// The error's class. The match has no wildcard, so that an error without a class does not compile.
    pub const fn class(&self) -> Class {
        match self {
            Self::Refused(refusal) => refusal.class(),
            Self::Setting { .. } | Self::Table { .. } => Class::Argument,
            Self::Space { .. } => Class::Memory,
            Self::Handle { .. } => Class::Segment,
            Self::Call(error) => error.class(),
            Self::System { .. } | Self::Peer { .. } | Self::Bootstrap { .. } => Class::Host,
        }
    }
}

impl From<Refusal> for PosixError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for PosixError {
    fn from(error: Error) -> Self {
        Self::Call(error)
    }
}

impl fmt::Display for PosixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Table { cause } => f.write_str(cause),
            Self::Setting { name, value, bound } => write!(f, "{name} is {value:?}, must be {bound}"),
            Self::System { call, errno, purpose } => {
                write!(f, "{call} failed to {purpose}: {}", std::io::Error::from_raw_os_error(*errno))
            }
            Self::Space { needed, available, limit } => {
                let limit = match limit {
                    Limit::Machine => "the machine's available memory",
                    Limit::Cgroup => "the control group's memory limit",
                    Limit::Reserve => "available when the kernel refused to reserve",
                    Limit::Arena => "the most that one member's arena has",
                    Limit::Pool => "the kernel's pool of huge pages, which this process's heap has by request",
                    Limit::Heap => {
                        "this process's heap, as long as the machine's memory or an eighth of the limit on address space"
                    }
                };
                write!(f, "{needed} bytes of memory are needed, {available} are available ({limit})")
            }
            Self::Handle { property, found, expected } => {
                write!(f, "the segment's {property} is {found:#x}, must be {expected:#x}")
            }
            Self::Peer { rank, cause } => write!(f, "rank {rank}: {cause}"),
            Self::Call(error) => error.fmt(f),
            Self::Bootstrap { cause } => write!(f, "bootstrap: {cause}"),
        }
    }
}

impl core::error::Error for PosixError {}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_kernel::error::{Argument, Bound};

    #[test]
    fn every_failure_has_a_class() {
        let refused = PosixError::Refused(Refusal::new(Argument::Ranks, 0, Bound::AtLeast(1)));
        let space = PosixError::Space { needed: 2, available: 1, limit: Limit::Machine };
        let handle = PosixError::Handle { property: "inode", found: 1, expected: 2 };
        let setting = PosixError::Setting { name: "UNISONO_PAGES", value: "x".into(), bound: "default or huge" };
        let peer = PosixError::Peer { rank: 1, cause: space.to_string() };
        let call = PosixError::Call(Error::Abandoned);
        let classes = [refused, setting, space, handle, peer, call].map(|error| error.class());
        let [argument, memory] = [Class::Argument, Class::Memory];
        assert_eq!(classes, [argument, argument, memory, Class::Segment, Class::Host, Class::Other]);
    }
}
