//! The launcher: N copies of a program, bound, with a bootstrap between them.
//!
//! A thread of its own starts the processes, serves their allgathers and buries them; each process
//! is killed by the kernel when that thread ends, however it ends. A rank that dies while others
//! wait in the start-up is named to them; after the first rank that ends badly the others have a
//! grace to say so and end by themselves, then they are killed.
//!
//! The environment of a rank: `UNISONO_RANK`, `UNISONO_SIZE` and `UNISONO_BOOTSTRAP_FD`, its end of
//! a socket to the launcher; see [`crate::bootstrap::Launched`]. Standard streams are inherited.

mod outcome;
mod serve;
mod spawn;
mod undertake;

pub use outcome::{Exit, Outcome};

use crate::error::PosixError;
use crate::sys;
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::region::layout::MAX_RANKS;

/// Where ranks may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bind {
    /// Wherever the launcher may.
    #[default]
    None,
    /// One PU each, round-robin over the PUs that the launcher may use, a core's first PU before its second.
    Core,
    /// One NUMA node each, round-robin.
    Numa,
}

/// What to start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Number of processes.
    pub ranks: u32,
    /// Where they may run.
    pub bind: Bind,
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables beside the launcher's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// From the first rank that ends badly to the killing of the others.
    pub grace: Duration,
}

impl Launch {
    /// Starts the processes and waits for all of them.
    ///
    /// # Errors
    /// A process could not be started: then none is left.
    pub fn run(self) -> Result<Outcome, PosixError> {
        self.spawn()?.wait()
    }

    /// Starts the processes.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn spawn(self) -> Result<Running, PosixError> {
        Refusal::check(Argument::Ranks, self.ranks.into(), Bound::AtLeast(1))?;
        Refusal::check(Argument::Ranks, self.ranks.into(), Bound::AtMost(MAX_RANKS.into()))?;
        let (stop, stopped) = UnixStream::pair().map_err(|e| PosixError::io("socketpair", &e, "reach the launcher"))?;
        let (tell, told) = mpsc::channel();
        let body = move || {
            let children = match spawn::spawn(&self) {
                Ok(children) => children,
                Err(error) => {
                    let _ = tell.send(Err(error.clone()));
                    return Err(error);
                }
            };
            let _ = tell.send(Ok(children.iter().map(|(child, _)| child.id()).collect()));
            undertake::undertake(children, &stopped, self.grace)
        };
        let thread = std::thread::Builder::new().name("unisono-launch".to_owned()).spawn(body);
        let thread = thread.map_err(|e| PosixError::io("clone", &e, "start the launcher's thread"))?;
        match told.recv() {
            Ok(Ok(pids)) => Ok(Running { pids, stop, thread: Some(thread) }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(PosixError::bootstrap("the launcher's thread ended early")),
        }
    }
}

/// Processes that run. Dropping it kills them.
#[derive(Debug)]
pub struct Running {
    pids: Vec<u32>,
    stop: UnixStream,
    thread: Option<JoinHandle<Result<Outcome, PosixError>>>,
}

impl Running {
    /// The processes, by rank. A number is a rank's only until that rank has ended.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// Waits until all have ended.
    ///
    /// # Errors
    /// The launcher itself failed; no process is left.
    pub fn wait(mut self) -> Result<Outcome, PosixError> {
        self.join()
    }

    /// Kills all that still run.
    pub fn kill(&self) {
        // A launcher that does not listen any more has nothing left to kill.
        let _ = sys::send(&self.stop, &[1]);
    }

    fn join(&mut self) -> Result<Outcome, PosixError> {
        let ended = || PosixError::bootstrap("the launcher's thread ended early");
        self.thread.take().ok_or_else(ended)?.join().map_err(|_| ended())?
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.kill();
            let _ = self.join();
        }
    }
}
