//! What a rank does while it waits: yields if it is crowded, and moves the MPI's own pending operations.

use crate::say::{Cause, once};
use std::sync::{Arc, OnceLock};
use unisono_kernel::error::WaitError;
use unisono_kernel::region::{Counter, Word};
use unisono_kernel::step::Awaits;
use unisono_kernel::wait::Relax;
use unisono_posix::binding::{PuSet, affinity_of};
use unisono_posix::{Waiting, cgroup, waiting};

/// Moves the rank's own pending operations.
pub type Progress = extern "C" fn();

/// Calls between two of [`Progress`], where a call follows on a burst of spins.
const SPINNING: u32 = 8;
/// The same where a call is a yield, which may take long.
const CROWDED: u32 = 4;

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
    /// Calls until the next of `progress`.
    calls: u32,
    sums: Arc<Waits>,
}

impl Patient {
    /// Waiting that yields or not.
    pub const fn new(yields: bool, progress: Option<Progress>, sums: Arc<Waits>) -> Self {
        Self { yields, progress, calls: Self::stride(yields), sums }
    }

    const fn stride(yields: bool) -> u32 {
        if yields { CROWDED } else { SPINNING }
    }

    fn turn(&mut self) {
        if self.yields {
            std::thread::yield_now();
        }
        self.calls -= 1;
        if self.calls == 0 {
            self.calls = Self::stride(self.yields);
            if let Some(progress) = self.progress {
                self.sums.progressed.fetch_add(1);
                progress();
            }
        }
    }
}

impl Relax for Patient {
    fn begin(&mut self) {
        self.sums.waits.fetch_add(1);
    }

    fn relax(&mut self, _: &Awaits) -> Result<(), WaitError> {
        self.turn();
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
    fn progress_is_called_every_few_calls_and_counted() {
        static CALLS: Word = Word::zero();
        extern "C" fn progress() {
            CALLS.fetch_add(1);
        }
        for (yields, stride) in [(false, SPINNING), (true, CROWDED)] {
            let sums = Arc::new(Waits::default());
            let mut patient = Patient::new(yields, Some(progress), sums.clone());
            patient.begin();
            for _ in 0..=10 * stride {
                patient.turn();
            }
            assert!(Counter::load_acquire(&sums.waits).is(1));
            assert!(Counter::load_acquire(&sums.progressed).is(10));
        }
        assert!(Counter::load_acquire(&CALLS).is(20));
    }
}
