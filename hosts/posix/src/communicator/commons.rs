//! What a process keeps for all its communicators: its arena, the maps of everyone's, everyone's descriptors.

use super::announcements::Ring;
use crate::arena::{Arena, World};
use crate::host::Host;
use crate::sealed::Map;
use crate::watch::{Descriptors, Watch};
use spin::relax::{RelaxStrategy, Spin, Yield};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use unisono_kernel::Rank;
use unisono_kernel::error::{Cause, Error, Poison};

/// Between two looks at who is gone.
const LOOK: Duration = Duration::from_millis(1);

/// The process in its job.
#[derive(Debug)]
pub(crate) struct Commons {
    pub(super) me: World,
    /// By rank in the job: the arenas, mapped for good.
    pub(super) maps: Vec<Arc<Map>>,
    pub(super) descriptors: Arc<Descriptors>,
    yields: bool,
    own: Mutex<Own>,
}

/// What is its owner's alone.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) arena: Arena,
    pub(super) announcements: Ring,
}

impl Commons {
    pub(crate) fn new(
        me: World,
        arena: Arena,
        maps: Vec<Arc<Map>>,
        descriptors: Arc<Descriptors>,
        yields: bool,
    ) -> Self {
        let own = Mutex::new(Own { arena, announcements: Ring::default() });
        Self { me, maps, descriptors, yields, own }
    }

    /// Nothing that panics runs under the lock; if it did, the state is one between two whole steps.
    pub(super) fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is a process of the job gone? Where it can't be seen, no.
    pub(super) fn gone(&self, process: World) -> bool {
        process != self.me && self.descriptors.gone(process)
    }

    /// Does whoever waits yield at once?
    pub(super) const fn yields(&self) -> bool {
        self.yields
    }

    /// How a rank of a communicator waits.
    pub(super) fn host(&self, timeout: Option<Duration>, watch: Watch) -> Host {
        Host::new(self.yields, timeout, watch)
    }

    /// Waits until `ready` answers, which one of `members` must bring about: `whom`, ranks among them.
    ///
    /// # Errors
    /// One of those is gone, or the bound on one wait is over.
    pub(super) fn wait<A>(
        &self,
        members: &[World],
        whom: &[Rank],
        timeout: Option<Duration>,
        mut ready: impl FnMut() -> Option<A>,
    ) -> Result<A, Error> {
        const SPINS: u32 = 256;
        let over = |rank, cause| Error::Poisoned(Poison { rank, operation: 0, cause });
        let begin = Instant::now();
        let mut look = begin;
        loop {
            for _ in 0..if self.yields { 1 } else { SPINS } {
                if let Some(answer) = ready() {
                    return Ok(answer);
                }
                Spin::relax();
            }
            Yield::relax();
            let now = Instant::now();
            if now >= look {
                look = now + LOOK;
                let gone = |rank: &&Rank| members.get(**rank as usize).is_some_and(|&process| self.gone(process));
                if let Some(&rank) = whom.iter().find(gone) {
                    // What it did before it went counts.
                    return ready().ok_or(over(rank, Cause::Died));
                }
            }
            if timeout.is_some_and(|bound| now - begin > bound) {
                return Err(over(whom.first().copied().unwrap_or(0), Cause::Late));
            }
        }
    }
}
