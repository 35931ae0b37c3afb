//! What a rank does while it waits: it yields if ranks are crowded, and makes the underlying MPI progress its own
//! pending operations.

use crate::say::{Cause, once};
use spin::relax::{RelaxStrategy, Yield};
use std::sync::{Arc, OnceLock};
use unisono_kernel::error::WaitError;
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::wait::Relax;
use unisono_kernel::region::{Counter, Word};
use unisono_posix::binding::{PuSet, affinity_of};
use unisono_posix::{Waiting, cgroup, waiting};

/// Makes progress on the rank's pending operations of the underlying MPI.
pub type Progress = extern "C" fn();

/// In a long wait, number of pauses between two calls of [`Progress`] if each pause is a burst of spins.
const SPINNING: u32 = 8;
/// The same if each pause is a yield, which may take long.
const CROWDED: u32 = 4;
/// Number of pauses after which a wait is long. Short waits call [`Progress`] rarely: it takes as long as the wait
/// itself, and an MPI that yields when idle gives the core away once more.
const SHORT: u32 = 16;
/// Number of pauses between two calls of [`Progress`] if all waits are short.
const RARELY: u32 = 256;

/// Sums over all communicators of a process.
#[derive(Debug, Default)]
pub struct Waits {
    /// Number of waits that did not end at once.
    pub waits: Word,
    /// Number of calls of [`Progress`].
    pub progressed: Word,
}

/// The waiting of one communicator's handle.
#[derive(Debug)]
pub struct Patient {
    yields: bool,
    progress: Option<Progress>,
    /// Pauses in this wait.
    calls: u32,
    /// Pauses since the last call of `progress`.
    since: u32,
    sums: Arc<Waits>,
}

impl Patient {
    /// Waiting that yields or not.
    pub const fn new(yields: bool, progress: Option<Progress>, sums: Arc<Waits>) -> Self {
        Self { yields, progress, calls: 0, since: 0, sums }
    }

    fn pause(&mut self) {
        if self.yields {
            Yield::relax();
        }
        self.calls = self.calls.saturating_add(1);
        self.since += 1;
        let stride = if self.yields { CROWDED } else { SPINNING };
        if self.since >= RARELY || self.calls > SHORT && self.since >= stride {
            self.since = 0;
            if let Some(progress) = self.progress {
                self.sums.progressed.fetch_add(1);
                progress();
            }
        }
    }
}

impl Relax for Patient {
    fn begin(&mut self) {
        self.calls = 0;
        self.sums.waits.fetch_add(1);
    }

    fn relax(&mut self, _: &WaitSet) -> Result<(), WaitError> {
        self.pause();
        Ok(())
    }
}

/// Should ranks yield while they wait? `pids` are the processes of a communicator, `local_ranks` the number of the
/// job's processes on this node. Decided from where the processes may run, what the control group allows, and
/// `UNISONO_WAIT`.
pub fn crowded(pids: impl Iterator<Item = u32>, local_ranks: u32) -> bool {
    let mut sets: Vec<_> = pids.filter_map(|pid| affinity_of(pid).ok()).collect();
    pad(&mut sets, local_ranks as usize);
    static QUOTA: OnceLock<Option<u64>> = OnceLock::new();
    let choice = waiting::choose(&sets, *QUOTA.get_or_init(cgroup::processors));
    let yields = choice.yields;
    waiting::decide(Waiting::Auto, choice).map_or_else(
        |error| {
            once(Cause::Setting, error);
            yields
        },
        |choice| choice.yields,
    )
}

/// Adds sets for the job's processes that are not in the communicator, whose PUs are not known. If all known processes
/// have the same PUs, the others are assumed to have them too; otherwise to have different ones.
fn pad(sets: &mut Vec<PuSet>, local_ranks: usize) {
    if let [first, rest @ ..] = sets.as_slice()
        && rest.iter().all(|set| set == first)
    {
        let first = first.clone();
        sets.resize(local_ranks.max(sets.len()), first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(lists: &[&str]) -> Vec<PuSet> {
        lists.iter().map(|list| PuSet::from_list(list).unwrap()).collect()
    }

    #[test]
    fn the_rest_of_a_job_crowds_ranks_that_share_their_pus() {
        let yields = |lists: &[&str], local| {
            let mut sets = sets(lists);
            pad(&mut sets, local);
            waiting::choose(&sets, None).yields
        };
        assert!(yields(&["0-3", "0-3"], 8));
        assert!(!yields(&["0-3", "0-3"], 4));
        assert!(!yields(&["0", "1"], 8));
        assert!(!yields(&["0-3", "0-3", "0-3"], 0));
    }

    #[test]
    fn a_crowd_yields_and_one_process_with_a_pu_does_not() {
        let me = std::process::id();
        assert!(crowded(core::iter::repeat_n(me, 2), 1 << 12));
        if cgroup::processors().is_none_or(|processors| processors >= 1000) {
            assert!(!crowded(core::iter::once(me), 1));
        }
    }

    #[test]
    fn progress_is_called_every_few_calls_of_a_long_wait_and_rarely_in_short_ones() {
        static CALLS: Word = Word::zero();
        extern "C" fn progress() {
            CALLS.fetch_add(1);
        }
        for (yields, stride) in [(false, SPINNING), (true, CROWDED)] {
            let sums = Arc::new(Waits::default());
            let mut patient = Patient::new(yields, Some(progress), sums.clone());
            patient.begin();
            (0..SHORT + 10 * stride).for_each(|_| patient.pause());
            let long = Counter::load_acquire(&sums.progressed);
            assert!(long.at_least(10) && !long.at_least(12), "{long:?}");
            for _ in 0..2 * RARELY {
                patient.begin();
                patient.pause();
            }
            assert!(Counter::load_acquire(&sums.waits).is(1 + u64::from(2 * RARELY)));
            let all = Counter::load_acquire(&sums.progressed).unchecked() - long.unchecked();
            assert!(all == 2, "{all}");
        }
        assert!(Counter::load_acquire(&CALLS).at_least(24));
    }
}
