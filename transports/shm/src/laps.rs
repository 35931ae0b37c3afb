//! How a writer passes through its queue before it comes back to the first slot (ours).
//!
//! A slot is written again after all others of the lap. If they are few, its lines still lie in the own caches of the cores
//! that have read them last, and must be taken from there. If they are many, the lines have gone to the cache that cores share,
//! which is faster; but where a program's own data moves through the caches, too, they have gone to memory, which is
//! slower. Which of these holds depends on the program and on the machine, and shows in what a copy into a slot takes.
//!
//! So a view takes one of three laps: few slots and few lines of each, more slots and all of their lines, or all of the queue.
//! It times some of its copies. Now and then, and when what they take has changed, it tries the other laps, and stays with one
//! that is better.

use crate::copy;
use unisono_kernel::region::{Lap, Word};

/// The laps to choose from, from the one that takes the fewest lines to the one that takes the most.
const LAPS: [Lap; 3] = [Lap::narrow(16), Lap::wide(16), Lap::ALL];
const COUNT: u64 = LAPS.len() as u64;

/// Bytes that are written while a cost is measured.
const MEASURED: u64 = 1 << 20;

/// Bytes that are written before, when the lap has changed: enough for its lines to be where they will be from then on.
const BEFORE: [u64; 3] = [512 << 10, 512 << 10, 4 << 20];

/// From one copy that is timed to the next, in bytes.
const SPACING: u64 = 32 << 10;

/// A cost is the least of so many parts of what is measured, since a copy may be interrupted.
const PARTS: u64 = 4;

/// A cost is in processor cycles for so many bytes.
const UNIT: u64 = 1 << 16;

/// By how much a longer lap must be better than a shorter one to be taken: what copies into it take is not all, since readers
/// find more of a shorter one near. And by how much costs differ if the program, or its place, has changed.
const BETTER: (u64, u64) = (3, 2);
const CHANGED: (u64, u64) = (2, 1);

/// So many costs in a row that differ from the usual one show a change.
const CHANGES: u64 = 2;

/// Costs before the first trial, and from one trial to the next: the least number, also after a change; trials of all other laps
/// in vain make it longer.
const PAUSE: u64 = 16;
const LONGER: u64 = 4;
const LONGEST: u64 = 1024;

/// A view's choice. Its words are private to the process: threads that share a view may lose an update, which costs a
/// measurement.
#[derive(Debug)]
pub(crate) struct Laps {
    /// Which of [`LAPS`] is taken.
    taken: Word,
    /// How many places further on in the row the lap is that is tried, or was tried last.
    tried: Word,
    /// Bytes that are still to be written until this lap's cost is known.
    left: Word,
    /// Cycles and bytes of the copies that were timed in this part, and the least cost of a part; 0: none.
    cycles: Word,
    bytes: Word,
    least: Word,
    /// What the lap costs usually that is not tried; 0: not known.
    usual: Word,
    /// Costs in a row that differ from it.
    changes: Word,
    /// While a lap is tried: what the one that is taken has cost just before; else 0.
    rival: Word,
    /// Costs until the next trial, and those from the last one on.
    until: Word,
    pause: Word,
}

/// Is `a` more than `b`, times a ratio?
const fn exceeds(a: u64, b: u64, (more, less): (u64, u64)) -> bool {
    a.saturating_mul(less) > b.saturating_mul(more)
}

impl Laps {
    pub(crate) const fn new() -> Self {
        Self {
            taken: Word::zero(),
            tried: Word::zero(),
            left: Word::zero(),
            cycles: Word::zero(),
            bytes: Word::zero(),
            least: Word::zero(),
            usual: Word::zero(),
            changes: Word::zero(),
            rival: Word::zero(),
            until: Word::zero(),
            pause: Word::zero(),
        }
    }

    /// The lap that is in use.
    #[inline]
    pub(crate) fn lap(&self) -> Lap {
        if copy::CYCLES { LAPS[self.index()] } else { Lap::ALL }
    }

    /// Which of [`LAPS`] is in use: the one that is taken or the one that is tried.
    #[inline]
    fn index(&self) -> usize {
        let tried = if self.rival.load_payload() > 0 { self.tried.load_payload() } else { 0 };
        ((self.taken.load_payload() + tried) % COUNT) as usize
    }

    /// `len` bytes are about to be written: the processor's clock, if that is timed.
    #[inline]
    pub(crate) fn begin(&self, len: usize) -> Option<u64> {
        if !copy::CYCLES {
            return None;
        }
        let left = self.left.load_payload();
        let rest = left.saturating_sub(len as u64);
        self.left.store_payload(rest);
        (left / SPACING != rest / SPACING || rest == 0).then(copy::cycles)
    }

    /// They are written.
    #[inline]
    pub(crate) fn end(&self, begin: Option<u64>, len: usize) {
        if let Some(begin) = begin {
            // Cores may disagree about the time.
            self.note(len as u64, copy::cycles().saturating_sub(begin));
        }
    }

    /// Takes note of a copy of `len` bytes that was timed.
    #[cold]
    fn note(&self, len: u64, cycles: u64) {
        let left = self.left.load_payload();
        if left >= MEASURED {
            return;
        }
        let (cycles, bytes) = (self.cycles.load_payload() + cycles, self.bytes.load_payload() + len);
        // Where a part ends: longer copies are all timed.
        let ends = left == 0 || bytes >= MEASURED / PARTS / SPACING * len.min(SPACING);
        if !ends {
            self.cycles.store_payload(cycles);
            return self.bytes.store_payload(bytes);
        }
        let (cost, least) = ((cycles * UNIT / bytes).max(1), self.least.load_payload());
        let least = if least == 0 { cost } else { least.min(cost) };
        self.cycles.store_payload(0);
        self.bytes.store_payload(0);
        self.least.store_payload(if left == 0 { 0 } else { least });
        if left == 0 {
            self.left.store_payload(MEASURED);
            if self.rival.load_payload() > 0 { self.judge(least) } else { self.watch(least) }
        }
    }

    /// The cost of the lap that was tried is known: it is taken, or the one before again.
    #[cold]
    fn judge(&self, cost: u64) {
        let [rival, pause, taken] = [&self.rival, &self.pause, &self.taken].map(Word::load_payload);
        let tried = self.index() as u64;
        let better = if tried > taken { exceeds(rival, cost, BETTER) } else { !exceeds(cost, rival, BETTER) };
        if better {
            self.taken.store_payload(tried);
            self.tried.store_payload(0);
            self.rest(cost, PAUSE, PAUSE);
        } else if self.tried.load_payload() < COUNT - 1 {
            // The next one is tried soon.
            self.rest(rival, pause, 0);
        } else {
            self.tried.store_payload(0);
            let pause = (LONGER * pause).min(LONGEST);
            self.rest(rival, pause, pause);
        }
    }

    /// A trial is over. The lap that is taken costs so much; the next trial comes after `until` of `pause` costs.
    fn rest(&self, usual: u64, pause: u64, until: u64) {
        let before = self.index();
        self.usual.store_payload(usual);
        self.rival.store_payload(0);
        self.changes.store_payload(0);
        self.until.store_payload(until);
        self.pause.store_payload(pause);
        self.settle(before);
    }

    /// Another cost of the lap that is taken is known: is the other one tried?
    fn watch(&self, cost: u64) {
        let [usual, until, pause] = [&self.usual, &self.until, &self.pause].map(Word::load_payload);
        let changed = exceeds(cost, usual, CHANGED) || exceeds(usual, cost, CHANGED);
        let changes = if changed && usual > 0 { self.changes.load_payload() + 1 } else { 0 };
        self.changes.store_payload(changes);
        if usual == 0 {
            self.until.store_payload(PAUSE);
            self.pause.store_payload(PAUSE);
            return self.usual.store_payload(cost);
        }
        if until == 0 || changes >= CHANGES && pause - until >= PAUSE {
            return self.try_next(cost);
        }
        self.until.store_payload(until - 1);
        if !changed {
            self.usual.store_payload((3 * usual + cost) / 4);
        }
    }

    /// Tries another lap than the one that is taken, which costs so much.
    fn try_next(&self, cost: u64) {
        let before = self.index();
        self.tried.store_payload(self.tried.load_payload() % (COUNT - 1) + 1);
        self.rival.store_payload(cost);
        self.settle(before);
    }

    /// If another lap is in use now, its lines must come to rest before what it costs is measured.
    fn settle(&self, before: usize) {
        let now = self.index();
        if now != before {
            self.left.store_payload(MEASURED + BEFORE[now]);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    /// Cycles of a copy of 16 KiB into each of the laps.
    type Machine = fn(u64) -> [u64; 3];

    /// Buffers that stay in the caches, and buffers that are fetched from memory: by measurements on an AMD EPYC guest, but
    /// for those of the shortest lap.
    const WARM: Machine = |_| [3500, 3400, 1000];
    const COLD: Machine = |_| [7000, 4000, 7000];

    /// Writes so many mebibytes; returns how many per cent longer that takes than with the better lap alone.
    fn loss(laps: &Laps, mebibytes: u64, machine: impl Fn(u64) -> [u64; 3]) -> u64 {
        let (mut taken, mut all) = (0, [0; 3]);
        for number in 0..64 * mebibytes {
            let cycles = machine(number);
            let now = cycles[laps.index()];
            if laps.begin(16 << 10).is_some() {
                laps.note(16 << 10, now);
            }
            taken += now;
            all = [0, 1, 2].map(|lap| all[lap] + cycles[lap]);
        }
        let best = all.into_iter().min().unwrap_or_default();
        (100 * taken / best).saturating_sub(100)
    }

    #[test]
    fn the_better_lap_is_taken_soon_and_nearly_always() {
        for machine in [WARM, COLD] {
            let laps = Laps::new();
            let losses = [8, 100, 1000, 10_000].map(|mebibytes| loss(&laps, mebibytes, machine));
            assert!(losses.into_iter().zip([300, 50, 5, 2]).all(|(loss, most)| loss <= most), "{losses:?}");
        }
    }

    #[test]
    fn where_laps_are_alike_the_shortest_one_stays() {
        let laps = Laps::new();
        loss(&laps, 1000, |_| [1000, 950, 950]);
        assert_eq!(laps.taken.load_payload(), 0);
    }

    #[test]
    fn every_lap_is_found() {
        for best in 0..LAPS.len() {
            let machine = |_| {
                let mut cycles = [4000; LAPS.len()];
                cycles[best] = 2000;
                cycles
            };
            let laps = Laps::new();
            loss(&laps, 100, machine);
            assert_eq!(laps.taken.load_payload(), best as u64);
        }
    }

    #[test]
    fn another_program_is_noticed() {
        let laps = Laps::new();
        for machine in [COLD, WARM, COLD, WARM] {
            loss(&laps, 1000, machine);
            assert!(loss(&laps, 1000, machine) <= 5);
        }
        // Where its costs are unlike those before, soon.
        loss(&laps, 1000, |_| [1500, 1400, 1400]);
        let losses = [8, 100].map(|mebibytes| loss(&laps, mebibytes, COLD));
        assert!(losses[0] <= 80 && losses[1] <= 10, "{losses:?}");
    }

    #[test]
    fn interrupted_copies_change_nothing() {
        let laps = Laps::new();
        loss(&laps, 100, WARM);
        let interrupted = |number: u64| if number.is_multiple_of(17) { [1_000_000; 3] } else { WARM(number) };
        loss(&laps, 1000, interrupted);
        assert!(loss(&laps, 1000, WARM) <= 5);
    }

    #[test]
    fn a_program_whose_costs_never_rest_loses_little() {
        // Long and short messages in turn, so many of each.
        let restless: [Machine; 4] = [
            |number| if number / 64 % 2 == 0 { [4000, 5000, 6000] } else { [1000, 1250, 1500] },
            |number| if number / 192 % 2 == 0 { [4000, 5000, 6000] } else { [1000, 1250, 1500] },
            |number| if number / 256 % 2 == 0 { [4000, 5000, 6000] } else { [1000, 1250, 1500] },
            |number| if number / 640 % 2 == 0 { [4000, 5000, 6000] } else { [1000, 1250, 1500] },
        ];
        let losses = restless.map(|machine| loss(&Laps::new(), 10_000, machine));
        assert!(losses.iter().all(|loss| *loss <= 30), "{losses:?}");
    }
}
