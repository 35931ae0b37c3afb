//! The launcher's loop: serves the bootstrap while processes run, and buries each that ends.

use super::outcome::{Exit, Outcome};
use super::serve::Service;
use crate::error::PosixError;
use crate::sys;
use rustix::event::{PollFd, PollFlags};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};
use unisono_kernel::Rank;

/// How long a rank that has hung up may take to end, so that its end can be told instead.
const HANG_UP: Duration = Duration::from_millis(100);
/// Between two looks at processes that have no descriptor.
const BLIND: Duration = Duration::from_millis(5);

struct Process {
    child: Child,
    pidfd: Option<OwnedFd>,
    exit: Option<Exit>,
    hung_up: Option<Instant>,
}

/// Runs until all processes have ended. A word on `stop`, or its end, kills them.
pub(super) fn undertake(
    children: Vec<(Child, UnixStream)>,
    stop: &UnixStream,
    grace: Duration,
) -> Result<Outcome, PosixError> {
    let (children, streams): (Vec<_>, Vec<_>) = children.into_iter().unzip();
    let mut service = Service::new(streams.into_iter());
    let process = |child: Child| {
        let pidfd = sys::pidfd_open(child.id()).ok();
        Process { child, pidfd, exit: None, hung_up: None }
    };
    let mut house = House {
        processes: children.into_iter().map(process).collect(),
        first: None,
        killed: Vec::new(),
        deadline: None,
    };
    while house.processes.iter().any(|process| process.exit.is_none()) {
        let heard = match listen(&service, &house, stop) {
            Ok(heard) => heard,
            Err(error) => {
                house.kill();
                return Err(PosixError::io("poll", &error, "serve the start-up"));
            }
        };
        for source in &heard {
            if let Source::Line(rank) = source {
                service.serve(*rank);
            }
        }
        let now = Instant::now();
        house.bury(now, grace);
        house.report(&mut service, now);
        service.settle();
        if heard.contains(&Source::Stop) || house.deadline.is_some_and(|deadline| now >= deadline) {
            house.kill();
        }
    }
    let exits = house.processes.iter().filter_map(|process| process.exit).collect();
    Ok(Outcome { exits, killed: std::mem::take(&mut house.killed), first: house.first })
}

/// What a descriptor tells of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A rank's socket.
    Line(Rank),
    /// The end of a process: of whichever.
    End,
    /// The word that all are to be killed.
    Stop,
}

/// Waits until a descriptor has something to tell, or something is to be done that none tells. A signal ends it, too.
fn listen(service: &Service, house: &House, stop: &UnixStream) -> io::Result<Vec<Source>> {
    let lines = service.interests().map(|(rank, fd)| (Source::Line(rank), fd));
    let ends = house.processes.iter().filter_map(Process::interest).map(|fd| (Source::End, fd));
    let stops = house.killed.is_empty().then(|| (Source::Stop, PollFd::new(stop, PollFlags::IN)));
    let (sources, mut fds): (Vec<_>, Vec<_>) = lines.chain(ends).chain(stops).unzip();
    match sys::poll(&mut fds, house.patience(Instant::now())) {
        Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
        // What the kernel has not filled in reads as nothing.
        _ => Ok(sources.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(at, _)| at).collect()),
    }
}

/// The processes, while they live and after.
struct House {
    processes: Vec<Process>,
    first: Option<Rank>,
    killed: Vec<Rank>,
    /// When those that still run are killed.
    deadline: Option<Instant>,
}

impl Process {
    /// Its end, while that is not known.
    fn interest(&self) -> Option<PollFd<'_>> {
        let fd = self.pidfd.as_ref().filter(|_| self.exit.is_none());
        fd.map(|fd| PollFd::new(fd, PollFlags::IN))
    }
}

impl House {
    /// How long until something is to be done that no descriptor tells; `None`: never.
    fn patience(&self, now: Instant) -> Option<Duration> {
        let running = || self.processes.iter().filter(|process| process.exit.is_none());
        let blind = running().any(|process| process.pidfd.is_none()).then_some(BLIND);
        let until = |at: Instant| at.saturating_duration_since(now);
        // A hang-up that has been told matters no more: only the first moments after it do.
        let hung =
            running().filter_map(|p| p.hung_up).map(|at| until(at + HANG_UP)).filter(|rest| !rest.is_zero()).min();
        let deadline = self.deadline.filter(|_| self.killed.is_empty()).map(until);
        [blind, hung, deadline].into_iter().flatten().min()
    }

    /// Takes the exits of those that have ended.
    ///
    /// One look may find a rank that was killed together with those that ended because of it:
    /// then the killed one was first. It may have been passed over a moment before: look twice.
    fn bury(&mut self, now: Instant, grace: Duration) {
        let mut bad = self.look();
        if !bad.is_empty() && self.first.is_none() {
            bad.extend(self.look());
            let killed = bad.iter().find(|(_, exit)| matches!(exit, Exit::Signal(_)));
            self.first = killed.or(bad.first()).map(|&(rank, _)| rank);
            self.deadline = now.checked_add(grace);
        }
    }

    /// Takes the exits of those that have ended since the last look; answers those that ended badly.
    fn look(&mut self) -> Vec<(Rank, Exit)> {
        let mut bad = Vec::new();
        for (rank, process) in (0..).zip(&mut self.processes) {
            if process.exit.is_none()
                && let Ok(Some(status)) = process.child.try_wait()
            {
                let exit = Exit::from(status);
                process.exit = Some(exit);
                if !exit.success() {
                    bad.push((rank, exit));
                }
            }
        }
        bad
    }

    /// Tells those who wait in an allgather of a rank that will not come.
    fn report(&mut self, service: &mut Service, now: Instant) {
        for (rank, process) in (0..).zip(&mut self.processes) {
            if service.hung_up(rank) && process.hung_up.is_none() {
                process.hung_up = Some(now);
            }
        }
        if !service.awaited() {
            return;
        }
        // Who ended badly is the cause; who ended well or only hung up is named if nobody did.
        let missing = |&(rank, _): &(Rank, &Process)| !service.gave(rank);
        let absent: Vec<_> = (0..).zip(&self.processes).filter(missing).collect();
        let bad = absent.iter().find(|(rank, _)| Some(*rank) == self.first);
        let over = bad.or_else(|| absent.iter().find(|(_, process)| process.exit.is_some()));
        let cause = match over {
            Some((rank, process)) => process.exit.map(|exit| (*rank, format!("{exit} in the start-up"))),
            None => {
                let silent = |process: &Process| process.hung_up.is_some_and(|at| now >= at + HANG_UP);
                let hung = absent.iter().find(|(_, process)| silent(process));
                hung.map(|(rank, _)| (*rank, "left the start-up without ending".to_owned()))
            }
        };
        if let Some((rank, cause)) = cause {
            service.fail(rank, &cause);
        }
    }

    /// Kills all that still run.
    fn kill(&mut self) {
        for (rank, process) in (0..).zip(&mut self.processes) {
            if process.exit.is_none() && !self.killed.contains(&rank) {
                self.killed.push(rank);
                // It may have ended by itself since.
                let _ = process.child.kill();
            }
        }
    }
}

impl Drop for House {
    /// Whatever ended the loop: no process is left, and none unburied.
    fn drop(&mut self) {
        for process in &mut self.processes {
            if process.exit.is_none() {
                let _ = process.child.kill();
                let _ = process.child.wait();
            }
        }
    }
}
