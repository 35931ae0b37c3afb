//! What a process keeps for all its communicators: its arena, the map of all processes' arenas, and
//! descriptors of processes.

use super::announcements::Ring;
use crate::arena::{Arena, Arenas, Slice, WorldRank};
use crate::heap;
use crate::host::Host;
use crate::lending::{LendFrom, Lenders, Log, Peer};
use crate::placement;
use crate::policy::Policy;
use crate::watch::{Descriptors, Watch};
use spin::relax::{RelaxStrategy, Spin, Yield};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};
use unisono_kernel::Rank;
use unisono_kernel::error::{Cause, Error, Poison};

/// Time between two looks at whether processes have ended.
const LOOK: Duration = Duration::from_millis(1);

/// The process's state that all its communicators share.
#[derive(Debug)]
pub(crate) struct Commons {
    pub(super) me: WorldRank,
    /// All processes' arenas; they stay mapped.
    pub(super) arenas: Arenas,
    pub(super) descriptors: Arc<Descriptors>,
    /// Each process's NUMA node, by rank in the job, and how its part of a communicator is placed there.
    nodes: (Box<[u32]>, Policy),
    /// How each process's memory is reached, by rank in the job.
    processes: Box<[Arc<Peer>]>,
    lend_from: LendFrom,
    log: Option<Log>,
    yields: bool,
    /// Do ranks of the job share cores? The same on all of them.
    pub(super) crowded: bool,
    /// The log knows that memory can't be placed by policy.
    refused: Once,
    own: Mutex<Own>,
}

/// The parts that one thread at a time may use.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) arena: Arena,
    pub(super) announcements: Ring,
}

impl Commons {
    pub(crate) fn new(
        me: WorldRank,
        (arena, arenas): (Arena, Arenas),
        descriptors: Arc<Descriptors>,
        nodes: (Box<[u32]>, Policy),
        processes: Box<[Arc<Peer>]>,
        (lend_from, log): (LendFrom, Option<Log>),
        (yields, crowded): (bool, bool),
    ) -> Self {
        let own = Mutex::new(Own { arena, announcements: Ring::default() });
        Self { me, arenas, descriptors, nodes, processes, lend_from, log, yields, crowded, refused: Once::new(), own }
    }

    /// Locks the process's own arena. Code under the lock does not panic; if it did, the state would still be
    /// consistent.
    pub(super) fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a process of the job ended? False if that can't be seen.
    pub(super) fn gone(&self, process: WorldRank) -> bool {
        process != self.me && self.descriptors.gone(process)
    }

    /// A process's NUMA node.
    pub(super) fn node(&self, process: WorldRank) -> u32 {
        self.nodes.0.get(process as usize).copied().unwrap_or(0)
    }

    /// The [digest](placement::digest) of these processes' nodes.
    pub(super) fn digest(&self, members: &[WorldRank]) -> u32 {
        placement::digest(members.iter().map(|&member| self.node(member)))
    }

    /// Places a new communicator's memory on its members' nodes, before this process, its rank `me`, accesses it. If the
    /// system refuses, the log is told once.
    pub(super) fn place(&self, slice: &Slice, members: &[WorldRank], me: Rank) {
        let nodes = members.iter().map(|&member| Some(self.node(member)));
        if let (Err(error), Some(log)) = (placement::of_slice(slice, me, nodes, self.nodes.1), self.log)
            && self.me == 0
        {
            self.refused.call_once(|| log(format_args!("{error}; each rank touches its part first")));
        }
    }

    /// Does a rank that waits yield at once?
    pub(super) const fn yields(&self) -> bool {
        self.yields
    }

    /// The loans among these members.
    pub(super) fn lenders(&self, members: &Arc<[WorldRank]>) -> Arc<Lenders> {
        let peers = members.iter().filter_map(|member| self.processes.get(*member as usize)).cloned().collect();
        Arc::new(Lenders::new(peers, heap::made(), self.lend_from, self.yields, self.log))
    }

    /// What a rank of a communicator does while it waits.
    pub(super) fn host(&self, timeout: Option<Duration>, watch: Watch) -> Host {
        Host::new(self.yields, timeout, watch)
    }

    /// Waits until `ready` returns a value. `awaited` are the ranks in `members` on which that depends.
    ///
    /// # Errors
    /// A process in `awaited` has ended, or the wait took longer than `timeout`.
    pub(super) fn wait<A>(
        &self,
        members: &[WorldRank],
        awaited: &[Rank],
        timeout: Option<Duration>,
        mut ready: impl FnMut() -> Option<A>,
    ) -> Result<A, Error> {
        const SPINS: u32 = 256;
        let over = |rank, cause| Error::Poisoned(Poison { rank, operation: 0, cause });
        let begin = Instant::now();
        let mut look = begin;
        loop {
            for _ in 0..if self.yields { 1 } else { SPINS } {
                if let Some(value) = ready() {
                    return Ok(value);
                }
                Spin::relax();
            }
            Yield::relax();
            let now = Instant::now();
            if now >= look {
                look = now + LOOK;
                let gone = |rank: &&Rank| members.get(**rank as usize).is_some_and(|&process| self.gone(process));
                if let Some(&rank) = awaited.iter().find(gone) {
                    // It may have done its part before it ended.
                    return ready().ok_or(over(rank, Cause::Died));
                }
            }
            if timeout.is_some_and(|bound| now - begin > bound) {
                return Err(over(awaited.first().copied().unwrap_or(0), Cause::Late));
            }
        }
    }
}
