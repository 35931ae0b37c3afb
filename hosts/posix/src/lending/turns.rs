//! Turns (ours): ranks that read one rank's memory by the kernel, all at the same time, begin one after the other.
//!
//! `process_vm_readv` looks up each page of the lender under a lock of that part of its page table. One reader holds the lock
//! for some nanoseconds; but where many come at once, the lock's cache line goes from core to core for each page, and each
//! read takes up to ten times as long, whichever pages they read (docs/results/cores.md). Where pages are huge there is little
//! to look up, and all may come at once.
//!
//! How long a reader needs for its pages depends on the machine, the kernel and the kind of pages. So the lender says with
//! its loan which gap its readers keep, and now and then it tries each gap for a few loans, and takes the one with which all
//! have read soonest. Readers that keep different gaps would meet; so no reader chooses for itself.

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Nanoseconds for each page from the begin of one reader to that of the next.
const GAPS: [u64; 4] = [0, 64, 128, 256];

/// So many loans try a gap: their median counts. So many loans after the first one of a trial comes the next trial.
const TRIED: usize = 5;
const PERIOD: u32 = 512;

/// Fewest readers that keep a gap.
const READERS: usize = 3;

/// Bytes of a page, and the most pages that the kernel looks up at once.
const PAGE: u64 = 4096;
const BATCH: u64 = 1024;

/// The way of a loan whose readers keep a gap, above the way of one whose readers don't.
const SHIFT: u32 = 8;

/// The gap that a loan's `way` says, in nanoseconds for each page, if it is `plain`, or `plain` with a gap.
pub(super) fn gap(way: NonZeroU64, plain: NonZeroU64) -> Option<u64> {
    let index = way.get().checked_sub(plain.get())?;
    GAPS.get(usize::try_from(index >> SHIFT).ok()?).copied().filter(|_| index.trailing_zeros() >= SHIFT)
}

/// Waits for the `turn` of a reader of `bytes`, if there are `gap` nanoseconds for each page from one reader to the next. The
/// first has turn 0.
pub(super) fn wait(gap: u64, turn: u32, bytes: u64) {
    let (start, wait) = (Instant::now(), Duration::from_nanos(gap * pages(bytes) * u64::from(turn)));
    while start.elapsed() < wait {
        core::hint::spin_loop();
    }
}

/// The pages of a read that the kernel looks up at once.
const fn pages(bytes: u64) -> u64 {
    let pages = bytes.div_ceil(PAGE) + 1;
    if pages < BATCH { pages } else { BATCH }
}

/// Which gap the readers of a lender keep. Its atomics are this process's own notes: relaxed, since they order nothing.
#[derive(Debug)]
pub(super) struct Turns {
    /// When it was made: times are counted from here, in nanoseconds.
    since: Instant,
    /// Loans so far.
    loans: AtomicU32,
    /// What the loans of this trial have taken, for each gap, until all had read.
    took: [[AtomicU64; TRIED]; GAPS.len()],
    /// The index of the gap that was taken after the last trial.
    best: AtomicUsize,
    /// The loan that is out: one more than its number in its trial, and when it was made; 0: none that tries a gap.
    out: AtomicUsize,
    begun: AtomicU64,
}

impl Turns {
    pub(super) fn new() -> Self {
        let took = [const { [const { AtomicU64::new(0) }; TRIED] }; GAPS.len()];
        let (loans, best, out, begun) =
            (AtomicU32::new(0), AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(0));
        Self { since: Instant::now(), loans, took, best, out, begun }
    }

    /// The way of a loan to so many `readers` that begin at once, whose way without a gap is `plain`.
    pub(super) fn lend(&self, readers: usize, plain: NonZeroU64) -> NonZeroU64 {
        if readers < READERS {
            return plain;
        }
        plain.saturating_add((self.next() as u64) << SHIFT)
    }

    /// The index of the gap of the next loan.
    fn next(&self) -> usize {
        let loan = (self.loans.fetch_add(1, Relaxed) % PERIOD) as usize;
        let index = loan / TRIED;
        if index < GAPS.len() {
            self.out.store(1 + loan, Relaxed);
            self.begun.store(self.now(), Relaxed);
            return index;
        }
        if loan == TRIED * GAPS.len() {
            self.best.store(self.choose(), Relaxed);
        }
        self.best.load(Relaxed)
    }

    fn now(&self) -> u64 {
        self.since.elapsed().as_nanos() as u64
    }

    /// All readers of the last loan have read it.
    pub(super) fn returned(&self) {
        if let Some(loan) = self.out.swap(0, Relaxed).checked_sub(1) {
            self.note(loan, self.now().saturating_sub(self.begun.load(Relaxed)));
        }
    }

    fn note(&self, loan: usize, took: u64) {
        if let Some(place) = self.took.get(loan / TRIED).and_then(|all| all.get(loan % TRIED)) {
            place.store(took, Relaxed);
        }
    }

    /// The index of the gap whose loans took the shortest time.
    fn choose(&self) -> usize {
        let median = |all: &[AtomicU64; TRIED]| {
            let mut took = all.each_ref().map(|took| took.load(Relaxed));
            took.sort_unstable();
            took[TRIED / 2]
        };
        let medians = self.took.each_ref().map(median);
        (0..GAPS.len()).min_by_key(|index| medians[*index]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: NonZeroU64 = NonZeroU64::MIN;

    /// The gaps of a period's loans, where `took` says how long a loan with a gap takes, of a trial the how many-th.
    fn gaps(turns: &Turns, took: impl Fn(u64, usize) -> u64) -> Vec<u64> {
        let lend = |_| {
            let gap = gap(turns.lend(15, PLAIN), PLAIN).expect("a way of its own");
            if let Some(loan) = turns.out.swap(0, Relaxed).checked_sub(1) {
                turns.note(loan, took(gap, loan % TRIED));
            }
            gap
        };
        (0..PERIOD).map(lend).collect()
    }

    #[test]
    fn the_gap_with_which_all_have_read_soonest_is_kept_until_the_next_trial() {
        // Short pages, huge ones, and a machine whose lock is held longer, in microseconds: 16 ranks, 200,000 B.
        for (costs, best) in [([190, 175, 98, 180], 128), ([22, 60, 90, 180], 0), ([400, 390, 380, 200], 256)] {
            let turns = Turns::new();
            let cost = |gap: u64, at: usize| {
                // Two of five are disturbed, or had luck.
                let usual = costs[GAPS.iter().position(|it| *it == gap).unwrap()];
                if at < 2 { [1, 9999][at] } else { usual }
            };
            let (all, trial) = (gaps(&turns, cost), GAPS.len() * TRIED);
            assert_eq!(all[..trial], GAPS.map(|gap| [gap; TRIED]).concat());
            assert!(all[trial..].iter().all(|gap| *gap == best), "{costs:?}");
            // Then its pages are huge.
            assert!(gaps(&turns, |gap, _| 10 + gap)[trial..].iter().all(|gap| *gap == 0));
        }
    }

    #[test]
    fn a_way_says_its_gap_and_nothing_else_is_one() {
        let way = |way| gap(NonZeroU64::new(way).unwrap(), PLAIN);
        assert_eq!([1, 257, 513, 769].map(way), [Some(0), Some(64), Some(128), Some(256)]);
        assert_eq!([2, 3, 256, 258, 1025, u64::MAX].map(way), [None; 6]);
        assert_eq!(Turns::new().lend(READERS - 1, PLAIN), PLAIN, "few don't hinder each other");
    }

    #[test]
    fn a_turn_is_awaited_for_as_many_pages_as_are_looked_up_at_once() {
        assert_eq!([1, PAGE, PAGE + 1, 1 << 40].map(pages), [2, 2, 3, BATCH]);
        let begun = Instant::now();
        wait(256, 100, 99 * PAGE);
        assert!(begun.elapsed() >= Duration::from_nanos(256 * 100 * 100));
        let turns = Turns::new();
        turns.lend(15, PLAIN);
        turns.returned();
        assert!(turns.took[0][0].load(Relaxed) > 0 && turns.took[0][1].load(Relaxed) == 0);
        turns.returned();
        assert_eq!(turns.took[0][1].load(Relaxed), 0, "no other loan was out");
    }
}
