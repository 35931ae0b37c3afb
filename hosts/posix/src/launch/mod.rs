//! The launcher: starts N copies of a program, binds them, and serves a bootstrap between them.
//!
//! A separate thread starts the processes, serves their allgathers and waits for their ends; the kernel kills each
//! process when that thread ends, in whichever way. If a rank dies while others wait in the start-up, they learn which
//! one. After the first rank has failed (ended with another code than 0, or by a signal), the others have a grace
//! period to end by themselves; then they are killed.
//!
//! The environment of a rank: `UNISONO_RANK`, `UNISONO_SIZE` and `UNISONO_BOOTSTRAP_FD`, its end of
//! a socket to the launcher; see [`crate::bootstrap::Launched`]. Standard streams are inherited.

mod outcome;
mod serve;
mod spawn;
mod supervise;

pub use outcome::{Exit, Outcome};

use crate::binding::PuSet;
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
    /// Wherever the launcher may run.
    #[default]
    None,
    /// One PU each, round-robin over the PUs that the launcher may use, a core's first PU before its second.
    Core,
    /// One NUMA node each, round-robin.
    Numa,
}

impl Bind {
    /// The places to which ranks are bound round-robin, on a machine of these cores and NUMA nodes of which the PUs
    /// `allowed` may be used. Empty: ranks are not bound.
    pub fn places(self, cores: &[PuSet], nodes: &[PuSet], allowed: &PuSet) -> Vec<PuSet> {
        match self {
            Self::None => Vec::new(),
            Self::Numa => {
                let nodes = nodes.iter().map(|pus| pus.intersection(allowed));
                let nodes: Vec<_> = nodes.filter(|pus| !pus.is_empty()).collect();
                if nodes.is_empty() { vec![allowed.clone()] } else { nodes }
            }
            Self::Core => {
                // A PU's index in its core: the first PUs of all cores come before all second ones.
                let sibling = |pu: u32| {
                    let core = cores.iter().find(|core| core.contains(pu));
                    core.map_or(0, |core| core.iter().take_while(|&other| other != pu).count())
                };
                let mut pus: Vec<u32> = allowed.iter().collect();
                pus.sort_by_cached_key(|&pu| sibling(pu));
                pus.into_iter().map(|pu| core::iter::once(pu).collect()).collect()
            }
        }
    }
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
    /// Variables that are added to the launcher's environment.
    pub env: Vec<(OsString, OsString)>,
    /// Time from the first rank's failure to the killing of the others.
    pub grace: Duration,
}

impl Launch {
    /// Starts the processes and waits for all of them.
    ///
    /// # Errors
    /// A process could not be started; those that were started are killed then.
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
            supervise::supervise(children, &stopped, self.grace)
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
    /// The process numbers, by rank. A number may be reused after its rank has ended.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// Waits until all processes have ended.
    ///
    /// # Errors
    /// The launcher itself failed; no process is left.
    pub fn wait(mut self) -> Result<Outcome, PosixError> {
        self.join()
    }

    /// Kills all processes that still run.
    pub fn kill(&self) {
        // If the launcher's thread does not listen any more, no process is left.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_take_places_round_robin() {
        let set = |list| PuSet::from_list(list).unwrap();
        let (cores, nodes) = (["0,4", "1,5", "2,6", "3,7"].map(set), ["0-1,4-5", "2-3,6-7"].map(set));
        let places = |bind: Bind, allowed| {
            bind.places(&cores, &nodes, &set(allowed)).iter().map(PuSet::to_string).collect::<Vec<_>>()
        };
        assert_eq!(places(Bind::Core, "0-7"), ["0", "1", "2", "3", "4", "5", "6", "7"]);
        assert_eq!(places(Bind::Core, "0,2-4"), ["0", "2", "3", "4"]);
        assert_eq!(places(Bind::Numa, "0-7"), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!(places(Bind::Numa, "2"), ["2"]);
        assert_eq!(places(Bind::Numa, "9"), ["9"]);
        assert!(places(Bind::None, "0-7").is_empty());
    }
}
