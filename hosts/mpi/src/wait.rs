//! What a rank does while it waits: yields if it is crowded, and moves the MPI's own pending operations.

use crate::say::{Cause, once};
use spin::relax::{RelaxStrategy, Yield};
use std::sync::{Arc, OnceLock};
use unisono_kernel::error::WaitError;
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::wait::Relax;
use unisono_kernel::region::{Counter, Word};
use unisono_posix::binding::{PuSet, affinity_of};
use unisono_posix::{Waiting, cgroup, waiting};

/// Moves the rank's own pending operations.
pub type Progress = extern "C" fn();

/// Calls between two of [`Progress`] in a long wait, where a call follows on a burst of spins.
const SPINNING: u32 = 8;
/// The same where a call is a yield, which may take long.
const CROWDED: u32 = 4;
/// Calls after which a wait is long. A short one calls [`Progress`] rarely: it costs as much as the wait, and an MPI
/// that yields when idle gives the core away once more.
const SHORT: u32 = 16;
/// Calls between two of [`Progress`] if all waits are short.
const RARELY: u32 = 256;

/// Sums over all communicators of a process.
#[derive(Debug, Default)]
pub struct Waits {
    /// Waits that were not over at once.
    pub waits: Word,
    /// Calls of [`Progress`].
    pub progressed: Word,
}

/// The waiting of one communicator's handle.
#[derive(Debug)]
pub struct Patient {
    yields: bool,
    progress: Option<Progress>,
    /// Calls of this wait, and since the last `progress`.
    calls: u32,
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

/// Does whoever waits stand in the way of whom it waits for? From where the processes of a communicator may run,
/// how many processes the job has on this node, what the control group allows, and `UNISONO_WAIT`.
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

/// The job's processes that are not in the communicator: where they may run is not known. Where those that are known
/// all share the same PUs, the others are taken to share them too; else to have others.
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
    fn the_rest_of_a_job_crowds_those_who_share_their_pus() {
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
