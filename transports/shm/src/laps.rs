//! How many slots of its queue a writer passes through before it comes back to the first one (ours).
//!
//! A slot is written again after all others of the lap. If they are few, its lines still lie in the own caches of the cores
//! that have read them last, and must be taken from there. If they are many, the lines have gone to the cache that cores share,
//! which is faster; but where a program's own data moves through the caches, too, they have gone to memory, which is
//! slower. Which of these holds depends on the program and on the machine, and shows in what a copy into a slot takes.
//!
//! So a view takes one of two laps, a short one or all of the queue, and times some of its copies. Now and then, and when
//! what they take has changed, it tries the other lap, and stays with it if it is better.

use crate::copy;
use unisono_kernel::region::Word;

/// Slots of a short lap.
const SHORT: u64 = 16;

/// Bytes that are written while a cost is measured.
const MEASURED: u64 = 1 << 20;

/// Bytes that are written before, when the lap has changed: enough for the lines of a short lap, or of all of a queue, to be
/// where they will be from then on.
const BEFORE: [u64; 2] = [512 << 10, 4 << 20];

/// From one copy that is timed to the next, in bytes.
const SPACING: u64 = 32 << 10;

/// A cost is the least of so many parts of what is measured, since a copy may be interrupted.
const PARTS: u64 = 4;

/// A cost is in processor cycles for so many bytes.
const UNIT: u64 = 1 << 16;

/// By how much another lap must be better to be taken, and by how much costs differ if the program, or its place, has
/// changed.
const BETTER: (u64, u64) = (9, 8);
const CHANGED: (u64, u64) = (3, 2);

/// So many costs in a row that differ from the usual one show a change.
const CHANGES: u64 = 2;

/// Costs from one trial to the next: the least number, also after a change; trials in vain make it longer.
const PAUSE: u64 = 16;
const LONGER: u64 = 4;
const LONGEST: u64 = 256;

/// A view's choice. Its words are private to the process: threads that share a view may lose an update, which costs a
/// measurement.
#[derive(Debug)]
pub(crate) struct Laps {
    /// 1: the lap is all of the queue; 0: it is short.
    whole: Word,
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
    /// While a lap is tried: what the other one has cost just before; else 0.
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
            whole: Word::zero(),
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

    /// The slots of a lap.
    #[inline]
    pub(crate) fn slots(&self) -> u64 {
        if copy::CYCLES && self.whole.load_payload() == 0 { SHORT } else { u64::MAX }
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

    /// The cost of the lap that was tried is known: it is taken, or the other one again.
    #[cold]
    fn judge(&self, cost: u64) {
        let rival = self.rival.load_payload();
        let better = exceeds(rival, cost, BETTER);
        if !better {
            self.turn();
        }
        let pause = if better { PAUSE } else { (LONGER * self.pause.load_payload()).clamp(PAUSE, LONGEST) };
        self.usual.store_payload(if better { cost } else { rival });
        self.rival.store_payload(0);
        self.changes.store_payload(0);
        self.until.store_payload(pause);
        self.pause.store_payload(pause);
    }

    /// Another cost of the lap that is taken is known: is the other one tried?
    fn watch(&self, cost: u64) {
        let [usual, until, pause] = [&self.usual, &self.until, &self.pause].map(Word::load_payload);
        let changed = exceeds(cost, usual, CHANGED) || exceeds(usual, cost, CHANGED);
        let changes = if changed && usual > 0 { self.changes.load_payload() + 1 } else { 0 };
        self.changes.store_payload(changes);
        if usual == 0 {
            return self.usual.store_payload(cost);
        }
        if until == 0 || changes >= CHANGES && pause - until >= PAUSE {
            self.rival.store_payload(cost);
            return self.turn();
        }
        self.until.store_payload(until - 1);
        if !changed {
            self.usual.store_payload((3 * usual + cost) / 4);
        }
    }

    /// Takes the other lap.
    fn turn(&self) {
        let whole = 1 - self.whole.load_payload();
        self.whole.store_payload(whole);
        self.left.store_payload(MEASURED + BEFORE[whole as usize]);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    /// Cycles of a copy of 16 KiB into a short lap, and into all of a queue.
    type Machine = fn(u64) -> [u64; 2];

    /// Buffers that stay in the caches, and buffers that are fetched from memory: by measurements on an AMD EPYC guest.
    const WARM: Machine = |_| [3500, 1000];
    const COLD: Machine = |_| [4000, 7000];

    /// Writes so many mebibytes; returns how many per cent longer that takes than with the better lap alone.
    fn loss(laps: &Laps, mebibytes: u64, machine: Machine) -> u64 {
        let (mut taken, mut all) = (0, [0; 2]);
        for number in 0..64 * mebibytes {
            let (cycles, whole) = (machine(number), laps.slots() == u64::MAX);
            let now = cycles[usize::from(whole)];
            if laps.begin(16 << 10).is_some() {
                laps.note(16 << 10, now);
            }
            taken += now;
            all = [all[0] + cycles[0], all[1] + cycles[1]];
        }
        let [short, whole] = all;
        (100 * taken / short.min(whole)).saturating_sub(100)
    }

    #[test]
    fn the_better_lap_is_taken_soon_and_nearly_always() {
        for machine in [WARM, COLD] {
            let laps = Laps::new();
            let losses = [8, 100, 1000, 10_000].map(|mebibytes| loss(&laps, mebibytes, machine));
            assert!(losses.into_iter().zip([170, 15, 5, 2]).all(|(loss, most)| loss <= most), "{losses:?}");
        }
    }

    #[test]
    fn where_laps_are_alike_the_short_one_stays() {
        let laps = Laps::new();
        loss(&laps, 1000, |_| [1000, 950]);
        assert_eq!(laps.slots(), SHORT);
    }

    #[test]
    fn another_program_is_noticed() {
        let laps = Laps::new();
        for machine in [COLD, WARM, COLD, WARM] {
            loss(&laps, 1000, machine);
            assert!(loss(&laps, 1000, machine) <= 5);
        }
        // Where its costs are unlike those before, soon.
        loss(&laps, 1000, |_| [1500, 1400]);
        let losses = [8, 100].map(|mebibytes| loss(&laps, mebibytes, COLD));
        assert!(losses[0] <= 80 && losses[1] <= 10, "{losses:?}");
    }

    #[test]
    fn interrupted_copies_change_nothing() {
        let laps = Laps::new();
        loss(&laps, 100, WARM);
        let interrupted = |number: u64| if number.is_multiple_of(17) { [1_000_000; 2] } else { WARM(number) };
        loss(&laps, 1000, interrupted);
        assert!(loss(&laps, 1000, WARM) <= 5);
    }

    #[test]
    fn a_program_whose_costs_never_rest_loses_little() {
        // Long and short messages in turn, so many of each.
        let restless: [Machine; 4] = [
            |number| if number / 64 % 2 == 0 { [4000, 6000] } else { [1000, 1500] },
            |number| if number / 192 % 2 == 0 { [4000, 6000] } else { [1000, 1500] },
            |number| if number / 256 % 2 == 0 { [4000, 6000] } else { [1000, 1500] },
            |number| if number / 640 % 2 == 0 { [4000, 6000] } else { [1000, 1500] },
        ];
        let losses = restless.map(|machine| loss(&Laps::new(), 10_000, machine));
        assert!(losses.iter().all(|loss| *loss <= 30), "{losses:?}");
    }
}
