//! The launcher's loop: serves the bootstrap while processes run, and takes the exit status of each that ends.

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

/// A rank that was killed is the first failure if its end is found so long after another one's.
const SOON: Duration = Duration::from_millis(50);
/// How long a rank that has closed its connection may take to end, so that its exit status is reported instead.
const HANG_UP: Duration = Duration::from_millis(100);
/// Time between two looks at processes that have no descriptor.
const BLIND: Duration = Duration::from_millis(5);

struct Process {
    child: Child,
    pidfd: Option<OwnedFd>,
    exit: Option<Exit>,
    hung_up: Option<Instant>,
}

/// Runs until all processes have ended. They are killed when `stop` receives a byte or its other end is closed.
pub(super) fn supervise(
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
    let mut job = Job {
        processes: children.into_iter().map(process).collect(),
        first: None,
        failed: None,
        killed: Vec::new(),
        deadline: None,
    };
    while job.processes.iter().any(|process| process.exit.is_none()) {
        let heard = match listen(&service, &job, stop) {
            Ok(heard) => heard,
            Err(error) => {
                job.kill();
                return Err(PosixError::io("poll", &error, "serve the start-up"));
            }
        };
        for source in &heard {
            if let Source::Line(rank) = source {
                service.serve(*rank);
            }
        }
        let now = Instant::now();
        job.take_exits(now, grace);
        job.report(&mut service, now);
        service.settle();
        if heard.contains(&Source::Stop) || job.deadline.is_some_and(|deadline| now >= deadline) {
            job.kill();
        }
    }
    let exits = job.processes.iter().filter_map(|process| process.exit).collect();
    Ok(Outcome { exits, killed: std::mem::take(&mut job.killed), first: job.first })
}

/// What a descriptor with an event belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A rank's connection.
    Line(Rank),
    /// Some process has ended.
    End,
    /// All processes are to be killed.
    Stop,
}

/// Waits until a descriptor has an event, or until the time of [`Job::patience`]. A signal ends the wait too.
fn listen(service: &Service, job: &Job, stop: &UnixStream) -> io::Result<Vec<Source>> {
    let lines = service.interests().map(|(rank, fd)| (Source::Line(rank), fd));
    let ends = job.processes.iter().filter_map(Process::interest).map(|fd| (Source::End, fd));
    let stops = job.killed.is_empty().then(|| (Source::Stop, PollFd::new(stop, PollFlags::IN)));
    let (sources, mut fds): (Vec<_>, Vec<_>) = lines.chain(ends).chain(stops).unzip();
    match sys::poll(&mut fds, job.patience(Instant::now())) {
        Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
        // After an interrupted call no descriptor has an event.
        _ => Ok(sources.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(at, _)| at).collect()),
    }
}

/// All processes, by rank, running or ended.
struct Job {
    processes: Vec<Process>,
    first: Option<Rank>,
    /// When the first failure was found.
    failed: Option<Instant>,
    killed: Vec<Rank>,
    /// When the processes that still run are killed.
    deadline: Option<Instant>,
}

impl Process {
    /// What to poll for: its end, if it has not ended.
    fn interest(&self) -> Option<PollFd<'_>> {
        let fd = self.pidfd.as_ref().filter(|_| self.exit.is_none());
        fd.map(|fd| PollFd::new(fd, PollFlags::IN))
    }
}

impl Job {
    /// How long until something is to be done without an event; `None`: never.
    fn patience(&self, now: Instant) -> Option<Duration> {
        let running = || self.processes.iter().filter(|process| process.exit.is_none());
        let blind = running().any(|process| process.pidfd.is_none()).then_some(BLIND);
        let until = |at: Instant| at.saturating_duration_since(now);
        // A closed connection matters until HANG_UP has passed; then it has been reported.
        let hung =
            running().filter_map(|p| p.hung_up).map(|at| until(at + HANG_UP)).filter(|rest| !rest.is_zero()).min();
        let deadline = self.deadline.filter(|_| self.killed.is_empty()).map(until);
        [blind, hung, deadline].into_iter().flatten().min()
    }

    /// Takes the exit status of processes that have ended, and finds the first that failed.
    ///
    /// One look may find a rank that was killed together with ranks that failed because of it: then the killed one was
    /// first. So it was if it is found [`SOON`] after them: others notice that its memory is gone before it has ended.
    fn take_exits(&mut self, now: Instant, grace: Duration) {
        let bad = self.look();
        if bad.is_empty() {
            return;
        }
        let begin = *self.failed.get_or_insert(now);
        if self.first.is_none() {
            self.deadline = now.checked_add(grace);
        }
        let first = self.first.and_then(|rank| self.processes.get(rank as usize)?.exit);
        let signalled = |exit: Option<Exit>| matches!(exit, Some(Exit::Signal(_)));
        if self.killed.is_empty() && !signalled(first) && now.saturating_duration_since(begin) <= SOON {
            let killed = bad.iter().find(|(_, exit)| signalled(Some(*exit))).map(|&(rank, _)| rank);
            self.first = killed.or(self.first).or(bad.first().map(|&(rank, _)| rank));
        }
    }

    /// Takes the exit status of processes that have ended since the last look; returns those that failed.
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

    /// Tells ranks that wait in an allgather of a rank that will not take part.
    fn report(&mut self, service: &mut Service, now: Instant) {
        for (rank, process) in (0..).zip(&mut self.processes) {
            if service.hung_up(rank) && process.hung_up.is_none() {
                process.hung_up = Some(now);
            }
        }
        if !service.awaited() {
            return;
        }
        // A rank that failed is the cause; otherwise a rank that ended with code 0, or closed its connection.
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

    /// Kills all processes that still run.
    fn kill(&mut self) {
        for (rank, process) in (0..).zip(&mut self.processes) {
            if process.exit.is_none() && !self.killed.contains(&rank) {
                self.killed.push(rank);
                // It may have ended meanwhile.
                let _ = process.child.kill();
            }
        }
    }
}

impl Drop for Job {
    /// However the loop ended, no process is left running or as a zombie.
    fn drop(&mut self) {
        for process in &mut self.processes {
            if process.exit.is_none() {
                let _ = process.child.kill();
                let _ = process.child.wait();
            }
        }
    }
}
