//! What a rank does while it waits: it yields if ranks are crowded, and makes the underlying MPI progress its own
//! pending operations.

use crate::say::{Cause, once};
use spin::relax::{RelaxStrategy, Yield};
use std::ffi::c_int;
use std::sync::{Arc, OnceLock};
use unisono_kernel::error::WaitError;
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::wait::Relax;
use unisono_kernel::region::{Counter, Word};
use unisono_posix::binding::{PuSet, affinity_of};
use unisono_posix::{Waiting, cgroup, waiting};

/// Makes progress on the rank's pending operations of the underlying MPI, if it is time: called after every few bursts of spins, or
/// yields. Not 0: the wait is long.
pub type Progress = extern "C" fn(c_int);

/// Number of pauses after which a wait is long.
const SHORT: u32 = 16;
/// [`Progress`] is called after every so many pauses: to look at the time takes a part of a yield's.
const STRIDE: u32 = 4;

/// The waiting of one communicator's handle.
#[derive(Debug)]
pub struct Patient {
    yields: bool,
    progress: Option<Progress>,
    /// Pauses in this wait.
    pauses: u32,
    /// Pauses in all.
    all: u32,
    /// Number of waits that did not end at once, of all communicators of a process.
    waits: Arc<Word>,
}

impl Patient {
    /// Waiting that yields or not.
    pub const fn new(yields: bool, progress: Option<Progress>, waits: Arc<Word>) -> Self {
        Self { yields, progress, pauses: 0, all: 0, waits }
    }

    fn pause(&mut self) {
        if self.yields {
            Yield::relax();
        }
        self.pauses = self.pauses.saturating_add(1);
        self.all = self.all.wrapping_add(1);
        if let Some(progress) = self.progress
            && self.all.is_multiple_of(STRIDE)
        {
            progress((self.pauses > SHORT).into());
        }
    }
}

impl Relax for Patient {
    fn begin(&mut self) {
        self.pauses = 0;
        self.waits.fetch_add(1);
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

/// How many ranks this machine can run at the same time.
pub fn cores() -> u32 {
    static CORES: OnceLock<u32> = OnceLock::new();
    *CORES.get_or_init(waiting::cores)
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
    fn pauses_ask_for_progress_and_say_when_the_wait_is_long() {
        static CALLS: Word = Word::zero();
        static LONG: Word = Word::zero();
        extern "C" fn progress(waits_long: c_int) {
            CALLS.fetch_add(1);
            LONG.fetch_add(waits_long as u64);
        }
        for (times, yields) in [(1, false), (2, true)] {
            let waits = Arc::new(Word::zero());
            let mut patient = Patient::new(yields, Some(progress), waits.clone());
            for _ in 0..2 {
                patient.begin();
                (0..SHORT + 2 * STRIDE).for_each(|_| patient.pause());
            }
            assert!(Counter::load_acquire(&*waits).is(2));
            assert!(Counter::load_acquire(&CALLS).is(times * 2 * u64::from(SHORT / STRIDE + 2)));
            assert!(Counter::load_acquire(&LONG).is(times * 2 * 2));
        }
    }
}
