//! Whether peers live: by a descriptor (pidfd) per peer, looked at without blocking.
//!
//! A peer's death is an error only if the peer had not finished the operation that is waited for, as its `done` word
//! says. So a rank that did its part and ended early, such as a root, is not an error for the others.

use crate::error::PosixError;
use crate::segment::View;
use crate::sys;
use core::fmt;
use core::ops::Range;
use core::time::Duration;
use heapless::Vec as Few;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use unisono_kernel::Rank;
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::region::{Flag, Layout, Region};

/// Number of peers that one call looks at.
const WINDOW: usize = 64;

/// A process, identified so that a later process with the same number is not taken for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started: field 22 of `/proc/PID/stat`; 0 if unknown.
    pub start: u64,
    /// Its PID namespace; 0 if unknown.
    pub namespace: u64,
    /// Its user namespace; 0 if unknown.
    pub users: u64,
}

impl Process {
    /// This process.
    pub fn this() -> Self {
        use std::os::unix::fs::MetadataExt;
        let pid = std::process::id();
        let of = |name: &str| std::fs::metadata(format!("/proc/self/ns/{name}")).map_or(0, |meta| meta.ino());
        Self { pid, start: start_time("self"), namespace: of("pid"), users: of("user") }
    }

    /// The kind of namespace in which another process is not, so that processes can't open each other's files: in another PID
    /// namespace it has another number, and who is in a user namespace may look at no process outside it.
    pub(crate) fn apart_from(&self, other: &Self) -> Option<&'static str> {
        match (self.namespace == other.namespace, self.users == other.users) {
            (false, _) => Some("PID"),
            (true, false) => Some("user"),
            (true, true) => None,
        }
    }
}

/// Field 22 of a process's `stat`. Field 2 is in parentheses and may contain any characters.
fn start_time(process: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
    after.split(' ').nth(19).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// How a rank learns that a peer has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Liveness {
    /// All peers are watched by their descriptors.
    Watched,
    /// At least one peer's death shows only by the communicator's poison.
    Unwatched {
        /// The first such peer.
        rank: Rank,
        /// Why.
        why: Blind,
    },
}

/// Why a peer can't be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blind {
    /// It is in another PID namespace.
    OtherNamespace,
    /// The kernel refused a descriptor, with this error number.
    Refused(i32),
}

impl fmt::Display for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Watched => f.write_str("peers are watched by pidfd"),
            Self::Unwatched { rank, why } => {
                write!(f, "rank {rank} is not watched, only the launcher or a timeout shows its death: ")?;
                match why {
                    Blind::OtherNamespace => f.write_str("it is in another PID namespace"),
                    Blind::Refused(errno) => {
                        write!(f, "pidfd_open: {}", std::io::Error::from_raw_os_error(*errno))
                    }
                }
            }
        }
    }
}

/// Descriptors of the processes of a job; `None` for this process and for those that can't be watched.
#[derive(Debug)]
pub(crate) struct Descriptors(Vec<Option<OwnedFd>>);

/// The argument of `poll` that asks whether the process has ended.
fn ended(fd: &OwnedFd) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::IN)
}

/// Does the process end within `most`? False if that is not known.
fn ends_within(fd: &OwnedFd, most: Duration) -> bool {
    sys::poll(&mut [ended(fd)], Some(most)).is_ok_and(|ready| ready > 0)
}

impl Descriptors {
    /// Opens the peers' descriptors.
    ///
    /// # Errors
    /// A peer has died already.
    pub(crate) fn open(me: Rank, members: &[Process]) -> Result<(Self, Liveness), PosixError> {
        let mut liveness = Liveness::Watched;
        let mut open = Vec::with_capacity(members.len());
        let namespace = members.get(me as usize).map_or(0, |own| own.namespace);
        for (rank, member) in (0..).zip(members) {
            let fd = if rank == me {
                None
            } else {
                match pidfd(member, namespace).map_err(|()| gone(rank))? {
                    Ok(fd) => Some(fd),
                    Err(why) => {
                        if liveness == Liveness::Watched {
                            liveness = Liveness::Unwatched { rank, why };
                        }
                        None
                    }
                }
            };
            open.push(fd);
        }
        Ok((Self(open), liveness))
    }

    fn of(&self, process: u32) -> Option<&OwnedFd> {
        self.0.get(process as usize)?.as_ref()
    }

    /// Has the process ended? False if that is not known.
    pub(crate) fn gone(&self, process: u32) -> bool {
        self.of(process).is_some_and(|fd| ends_within(fd, Duration::ZERO))
    }
}

/// Watches the peers of one communicator.
#[derive(Debug)]
pub struct Watch {
    region: View,
    layout: Layout,
    descriptors: Arc<Descriptors>,
    /// The members by rank, each by its rank in the job.
    members: Vec<u32>,
    /// The first rank of the next window.
    next: usize,
}

impl Watch {
    /// Watches the processes `members`, which are ranks in the job, by rank in the communicator.
    pub(crate) fn new(region: View, layout: Layout, descriptors: Arc<Descriptors>, members: &[u32]) -> Self {
        Self { region, layout, descriptors, members: members.to_vec(), next: 0 }
    }

    /// Looks at the peers in `on` and at a window of the others. Returns a dead peer that had not finished the
    /// operation.
    pub fn look(&mut self, on: &WaitSet) -> Option<Rank> {
        let operation = on.first().operation;
        for peer in on.iter().filter_map(|event| event.peer) {
            let at = peer as usize;
            if let Some(dead) = self.first_dead(at..at + 1, operation) {
                return Some(dead);
            }
        }
        let from = if self.next < self.members.len() { self.next } else { 0 };
        self.next = from + WINDOW;
        self.first_dead(from..self.next, operation)
    }

    /// The first of these ranks (at most a window) that has died and had not finished the operation. It does not
    /// allocate, because it is called while a program waits.
    fn first_dead(&self, ranks: Range<usize>, operation: u64) -> Option<Rank> {
        let members = (0..).zip(&self.members).take(ranks.end).skip(ranks.start);
        let (mut watched, mut fds) = (Few::<Rank, WINDOW>::new(), Few::<PollFd<'_>, WINDOW>::new());
        for (rank, fd) in members.filter_map(|(rank, &process)| Some((rank, self.descriptors.of(process)?))) {
            if watched.push(rank).and(fds.push(ended(fd)).map_err(|_| rank)).is_err() {
                break;
            }
        }
        // A failed call, such as an interrupted one, counts as no deaths; the next look comes soon.
        if sys::poll(&mut fds, Some(Duration::ZERO)).ok()? == 0 {
            return None;
        }
        let gone = watched.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(rank, _)| *rank);
        // The word is read after the peer's death was seen, so it is the peer's last value.
        gone.into_iter().find(|&rank| !finished(&self.region, &self.layout, rank, operation))
    }
}

fn finished(region: &View, layout: &Layout, rank: Rank, operation: u64) -> bool {
    region.flag(layout.done(rank)).load_acquire().at_least(operation)
}

/// The error for a peer that was found dead in the start-up.
pub(crate) fn gone(rank: Rank) -> PosixError {
    PosixError::Peer { rank, cause: "died in the start-up".to_owned() }
}

/// A descriptor of a process. The outer error: the process has ended.
fn pidfd(member: &Process, namespace: u64) -> Result<Result<OwnedFd, Blind>, ()> {
    if member.namespace != namespace {
        return Ok(Err(Blind::OtherNamespace));
    }
    let fd = match sys::pidfd_open(member.pid) {
        Ok(fd) => fd,
        Err(error) if Errno::from_io_error(&error) == Some(Errno::SRCH) => return Err(()),
        Err(error) => return Ok(Err(Blind::Refused(sys::errno(&error)))),
    };
    // Read after opening: if the number belongs to the announced process now, it did so when it was opened.
    let start = start_time(&member.pid.to_string());
    if start == member.start || member.start == 0 { Ok(Ok(fd)) } else { Err(()) }
}

/// Has the process ended, or does it end within `most`? False if that is not known.
pub(crate) fn ends(member: &Process, most: Duration) -> bool {
    match pidfd(member, Process::this().namespace) {
        Err(()) => true,
        Ok(Err(_)) => false,
        Ok(Ok(fd)) => ends_within(&fd, most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_itself_and_a_reused_number_is_not() {
        let this = Process::this();
        assert_ne!(this.start, 0);
        assert!(pidfd(&this, this.namespace).unwrap().is_ok());
        assert!(!ends(&this, Duration::from_millis(1)));
        let reused = Process { start: this.start + 1, ..this };
        assert!(pidfd(&reused, this.namespace).is_err());
        assert!(ends(&reused, Duration::from_millis(1)));
        assert_eq!(pidfd(&this, 1).unwrap().err(), Some(Blind::OtherNamespace));
    }

    #[test]
    fn a_child_that_ended_is_gone() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(pidfd(&Process { pid, start: 1, namespace: 0, users: 0 }, 0).is_err());
    }
}
