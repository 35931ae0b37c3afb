//! Whether peers live: by descriptors of processes (pidfd), looked at without blocking.
//!
//! A process that waits long looks at those that it waits for, and in turn at a few of the others: some waits name no peer. It keeps
//! the last few descriptors, and opens others when it needs them: with one for each peer a job of p processes had p². Nobody
//! watches on behalf of another process, so it does not matter which one dies. A process that has used up its descriptors sees only
//! the deaths of those whose descriptors it keeps: others tell it of the rest.
//!
//! A peer's death is an error only if the peer had not finished the operation that is waited for, as its `done` word
//! says. So a rank that did its part and ended early, such as a root, is not an error for the others.

use crate::error::PosixError;
use crate::segment::View;
use crate::sys;
use core::fmt::{self, Write as _};
use core::time::Duration;
use heapless::{String as Text, Vec as Few};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use unisono_kernel::Rank;
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::region::{Flag, Layout, Region};

/// Descriptors that a process keeps.
pub(crate) const KEPT: usize = 16;
/// Peers that are not awaited at which a wait looks each time.
const OTHERS: u32 = 2;

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
        Self { pid, start: start_time("self").unwrap_or(0), namespace: of("pid"), users: of("user") }
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

/// Field 22 of a process's `stat`; 0 if there is no such field. Field 2 is in parentheses and may contain any characters. It does
/// not allocate: a program may wait meanwhile.
fn start_time(process: impl fmt::Display) -> io::Result<u64> {
    let (mut path, mut bytes) = (Text::<32>::new(), [0; 1024]);
    write!(path, "/proc/{process}/stat").map_err(|_| io::ErrorKind::InvalidInput)?;
    let read = sys::read_start(&path, &mut bytes)?;
    let stat = bytes.get(..read).unwrap_or_default();
    let after = stat.iter().rposition(|byte| *byte == b')').and_then(|at| stat.get(at + 2..)).unwrap_or_default();
    let field = after.split(|byte| *byte == b' ').nth(19);
    Ok(field.and_then(|field| core::str::from_utf8(field).ok()?.parse().ok()).unwrap_or(0))
}

/// How a rank learns that a peer has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Liveness {
    /// Peers are watched by their descriptors.
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
    /// The kernel refused its descriptor, or the file that says whose it is, with this error number.
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
                        write!(f, "pidfd_open: {}", io::Error::from_raw_os_error(*errno))
                    }
                }
            }
        }
    }
}

/// The processes of a job, and the descriptors of those that this process looked at last: a few, however many there are.
#[derive(Debug)]
pub(crate) struct Descriptors {
    me: u32,
    processes: Box<[Process]>,
    open: Mutex<Open>,
}

/// Descriptors of some processes, each with the process's rank in the job. The next one replaces the oldest.
#[derive(Debug)]
struct Open {
    kept: [Option<(u32, OwnedFd)>; KEPT],
    oldest: usize,
}

/// The argument of `poll` that asks whether the process has ended.
fn ended(fd: &OwnedFd) -> PollFd<'_> {
    PollFd::new(fd, PollFlags::IN)
}

/// Does the process end within `most`? False if that is not known.
fn ends_within(fd: &OwnedFd, most: Duration) -> bool {
    sys::poll(&mut [ended(fd)], Some(most)).is_ok_and(|ready| ready > 0)
}

impl Descriptors {
    /// Of the processes `members`, of which `me` is this one. Each rank opens the descriptor of the next one, to see whether that can
    /// be done; so all are looked at once.
    ///
    /// # Errors
    /// The next rank has died already.
    pub(crate) fn open(me: Rank, members: &[Process]) -> Result<(Self, Liveness), PosixError> {
        let open = Mutex::new(Open { kept: [const { None }; KEPT], oldest: 0 });
        let descriptors = Self { me, processes: members.into(), open };
        let namespace = descriptors.namespace();
        let apart = (0..).zip(members).find(|(_, member)| member.namespace != namespace);
        let mut liveness = Liveness::Watched;
        let next = if me as usize + 1 < members.len() { me + 1 } else { 0 };
        match descriptors.lock().look_at(&descriptors, next) {
            Look::Ended => return Err(gone(next)),
            Look::Unknown(why) => liveness = Liveness::Unwatched { rank: next, why },
            Look::Lives => {}
        }
        if let Some((rank, _)) = apart {
            liveness = Liveness::Unwatched { rank, why: Blind::OtherNamespace };
        }
        Ok((descriptors, liveness))
    }

    /// This process's PID namespace.
    fn namespace(&self) -> u64 {
        self.processes.get(self.me as usize).map_or(0, |own| own.namespace)
    }

    /// Number of processes of the job.
    pub(crate) const fn processes(&self) -> usize {
        self.processes.len()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the process ended? False if that is not known.
    pub(crate) fn gone(&self, process: u32) -> bool {
        matches!(self.lock().look_at(self, process), Look::Ended)
    }
}

/// What a look at a process shows.
enum Look {
    Lives,
    Ended,
    Unknown(Blind),
}

impl Open {
    /// Looks at a process, whose descriptor is kept from then on.
    fn look_at(&mut self, all: &Descriptors, process: u32) -> Look {
        let look = |fd: &OwnedFd| if ends_within(fd, Duration::ZERO) { Look::Ended } else { Look::Lives };
        if let Some((_, fd)) = self.kept.iter().flatten().find(|(of, _)| *of == process) {
            return look(fd);
        }
        let Some(member) = all.processes.get(process as usize).filter(|_| process != all.me) else {
            return Look::Lives;
        };
        let fd = match pidfd(member, all.namespace()) {
            Ok(Ok(fd)) => fd,
            Ok(Err(why)) => return Look::Unknown(why),
            Err(()) => return Look::Ended,
        };
        let found = look(&fd);
        if let Some(kept) = self.kept.get_mut(self.oldest) {
            *kept = Some((process, fd));
        }
        self.oldest = (self.oldest + 1) % KEPT;
        found
    }

    /// The first kept process that has ended and for which `is` holds.
    fn first_ended<A>(&self, is: impl FnMut(u32) -> Option<A>) -> Option<A> {
        let (mut of, mut fds) = (Few::<u32, KEPT>::new(), Few::<PollFd<'_>, KEPT>::new());
        for (process, fd) in self.kept.iter().flatten() {
            let _fits = of.push(*process).is_ok() && fds.push(ended(fd)).is_ok();
        }
        // A failed call, such as an interrupted one, counts as no deaths; the next look comes soon.
        if sys::poll(&mut fds, Some(Duration::ZERO)).ok()? == 0 {
            return None;
        }
        of.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(process, _)| *process).find_map(is)
    }
}

/// Watches the peers of one communicator.
#[derive(Debug)]
pub struct Watch {
    region: View,
    layout: Layout,
    descriptors: Arc<Descriptors>,
    /// The members by rank, each by its rank in the job.
    members: Arc<[u32]>,
    /// The operation that waited when the peers were looked at last.
    operation: u64,
    /// The next of the peers that are not awaited.
    next: Rank,
}

impl Watch {
    /// Watches the processes `members`, which are ranks in the job, by rank in the communicator, for its rank `me`.
    pub(crate) fn new(
        region: View,
        layout: Layout,
        descriptors: Arc<Descriptors>,
        members: Arc<[u32]>,
        me: Rank,
    ) -> Self {
        // Those who wait begin with different peers, so that together they look at all soon.
        Self { region, layout, descriptors, members, operation: 0, next: me + 1 }
    }

    /// Number of processes of the job.
    pub(crate) fn processes(&self) -> usize {
        self.descriptors.processes()
    }

    /// Looks at the peers whose descriptors are kept; and, if the operation waited already at the last look, at those in
    /// `on` and at a few others. Returns a dead peer that had not finished the operation. It does not allocate, because it is called while a program waits.
    pub fn look(&mut self, on: &WaitSet) -> Option<Rank> {
        let operation = on.first().operation;
        let waits = core::mem::replace(&mut self.operation, operation) == operation;
        let others = self.next;
        if waits {
            let next = others.saturating_add(OTHERS);
            self.next = if (next as usize) < self.members.len() { next } else { 0 };
        }
        let Self { region, layout, descriptors, members, .. } = &*self;
        // The word is read after the peer's death was seen, so it is the peer's last value.
        let failed = |rank: Rank| (!finished(region, layout, rank, operation)).then_some(rank);
        let mut open = descriptors.lock();
        if waits {
            let awaited = on.iter().filter_map(|event| event.peer);
            for rank in awaited.chain(others..others.saturating_add(OTHERS)) {
                let Some(&process) = members.get(rank as usize) else { continue };
                if let (Look::Ended, Some(dead)) = (open.look_at(descriptors, process), failed(rank)) {
                    return Some(dead);
                }
            }
        }
        open.first_ended(|process| failed(members.iter().position(|&member| member == process)? as Rank))
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
    match start_time(member.pid) {
        _ if member.start == 0 => Ok(Ok(fd)),
        Ok(start) if start == member.start => Ok(Ok(fd)),
        Ok(_) => Err(()),
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::SRCH)) => Err(()),
        // Such as a process that has no descriptor left for the file: that says nothing about the other one.
        Err(error) => Ok(Err(Blind::Refused(sys::errno(&error)))),
    }
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
    use std::process::{Child, Command, Stdio};
    use unisono_kernel::machine::poll::{Await, Source, Until};
    use unisono_kernel::region::Params;

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

    /// Processes that sleep until this value is dropped.
    struct Sleepers(Vec<Child>);

    impl Sleepers {
        fn new(count: usize) -> Self {
            let child = || Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
            Self((0..count).map(|_| child()).collect())
        }

        /// The job of this process, rank 0, and these.
        fn job(&self) -> Vec<Process> {
            let this = Process::this();
            let process = |child: &Child| Process { pid: child.id(), start: start_time(child.id()).unwrap(), ..this };
            core::iter::once(this).chain(self.0.iter().map(process)).collect()
        }

        /// Kills `rank`, and takes its exit status if `reap`; else the process stays a zombie.
        fn kill(&mut self, rank: Rank, reap: bool) {
            let child = &mut self.0[rank as usize - 1];
            child.kill().unwrap();
            if reap {
                child.wait().unwrap();
            } else {
                let fd = sys::pidfd_open(child.id()).unwrap();
                assert!(ends_within(&fd, Duration::from_secs(10)));
            }
        }
    }

    impl Drop for Sleepers {
        fn drop(&mut self) {
            for child in &mut self.0 {
                let _ended = child.kill().and_then(|()| child.wait());
            }
        }
    }

    fn kept(descriptors: &Descriptors) -> usize {
        descriptors.lock().kept.iter().flatten().count()
    }

    #[test]
    fn a_process_keeps_a_few_descriptors_and_sees_all_deaths() {
        let mut sleepers = Sleepers::new(40);
        let job = sleepers.job();
        let (descriptors, liveness) = Descriptors::open(0, &job).unwrap();
        assert_eq!((liveness, kept(&descriptors), descriptors.processes()), (Liveness::Watched, 1, 41));
        assert!((0..41).all(|process| !descriptors.gone(process)));
        assert_eq!(kept(&descriptors), KEPT);
        for (rank, reap) in [(3, true), (4, false), (40, true), (39, false)] {
            sleepers.kill(rank, reap);
        }
        let ended: Vec<u32> = (0..50).filter(|&process| descriptors.gone(process)).collect();
        assert_eq!((ended, kept(&descriptors)), (vec![3, 4, 39, 40], KEPT));
        // Who starts later finds the dead one that it looks at.
        assert_eq!(Descriptors::open(2, &job).unwrap_err(), gone(3));
        assert!(Descriptors::open(40, &job).is_ok(), "the next one after the last is this process");
        let apart: Vec<_> =
            job.iter().map(|process| Process { namespace: 1 + process.namespace, ..*process }).collect();
        let (_, liveness) = Descriptors::open(0, &[&job[..2], &apart[2..]].concat()).unwrap();
        assert_eq!(liveness, Liveness::Unwatched { rank: 2, why: Blind::OtherNamespace });
    }

    /// A wait for a peer sees its death at the second look; one that names no peer, soon, whichever peer it is.
    #[test]
    fn a_wait_sees_the_death_of_its_peer_and_of_any_other() {
        const RANKS: u32 = 41;
        let mut sleepers = Sleepers::new(RANKS as usize - 1);
        let descriptors = Arc::new(Descriptors::open(0, &sleepers.job()).unwrap().0);
        let layout = Layout::new(Params::new(RANKS)).unwrap();
        let segment = crate::segment::Segment::create(&layout).unwrap();
        let members: Arc<[u32]> = (0..RANKS).collect();
        let watch = || Watch::new(segment.region(), layout, Arc::clone(&descriptors), Arc::clone(&members), 0);
        let on = |peer, operation| {
            let source = Source::Counter(layout.central_count(), Until::AtLeast(9));
            WaitSet::one(Await { source, peer, operation, stage: 0 })
        };
        let looks = |watch: &mut Watch, peer| (1..100).find_map(|look| Some((look, watch.look(&on(peer, 5))?)));
        assert_eq!(looks(&mut watch(), Some(7)), None);
        for (rank, reap) in [(30, true), (12, false)] {
            sleepers.kill(rank, reap);
            let (look, dead) = looks(&mut watch(), None).unwrap();
            assert!(dead == rank && look <= 2 + RANKS.div_ceil(OTHERS), "rank {dead} at look {look}");
            let (look, dead) = looks(&mut watch(), Some(rank)).unwrap();
            assert!(dead == rank && look <= 2, "rank {dead} at look {look}");
            // It had done its part of the operation: that is no error.
            segment.region().flag(layout.done(rank)).store_release(5);
            assert_eq!(looks(&mut watch(), Some(rank)), None);
        }
        let mut long = watch();
        assert_eq!((1..100).find_map(|_| long.look(&on(Some(12), 6))), Some(12), "the next operation lacks it");
    }

    #[test]
    fn a_child_that_ended_is_gone() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(pidfd(&Process { pid, start: 1, namespace: 0, users: 0 }, 0).is_err());
    }
}
