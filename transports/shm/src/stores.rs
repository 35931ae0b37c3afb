//! Which stores a writer's copies into a segment use: those through its caches, or those past them (ours).
//!
//! A copy through the caches must first get each line of the slot from the caches of those who have read it last. Where
//! they are near (threads of one core, cores with a common cache), nothing is faster, and the readers find the bytes in a
//! cache again. Where they are far (another socket, another group of cores), it can take ten times as long. A copy past
//! the caches, by non-temporal stores, needs no line: it leaves the bytes in memory, which costs the same wherever the
//! readers run.
//!
//! Nobody says where they run: a communicator may have readers of both kinds, and a host moves its virtual cores. So each
//! view measures. What a copy through the caches costs depends on how the lines were written before; so a few lines of
//! the segment, the *probes*, are always written through the caches, whichever way the others go, and timed. Their lines
//! are not [claimed](copy::claim_for) first: then what they take tells near readers from far ones best.

use crate::copy;
use crate::laps::Laps;
use unisono_kernel::region::{Lap, Word};

/// Bytes of a probe, and from one to the next: from one place of the segment to another, and what is written from one that is
/// timed to another. Shorter copies go through the caches.
///
/// Near and far readers could not be told apart by half of it, and where they are far each probe is a loss.
const PROBE: usize = 2048;
const SPACING: u64 = 256 << 10;

/// If so many bytes are written without a probe, copies pass over other places now, and there will be other probes.
const LOST: u64 = 1 << 20;

/// Of so many probes one is written past the caches, to know what that takes; at first, of fewer. It depends on what else goes to
/// memory: after messages of 3 MB, others would long be compared with what it took then, if these probes were rare.
const ASIDE: u64 = 8;
const ASIDE_FIRST: u64 = 4;

/// Of so many probes one is timed as long as none of them is slow, one of them just after one past the caches: the clock waits for the
/// stores before.
const SELDOM: u64 = 4;

/// A probe is slow if it takes this much longer than one past the caches. While the other copies go through the caches, so that one past
/// them must first take its lines from the readers, too, the difference is small where readers are far.
const SLOWER: (u64, u64) = (9, 8);
/// The same while the other copies go past the caches. A probe for near readers takes about as long as one past the caches then: its
/// lines stay in the caches of the cores themselves.
const STILL_SLOWER: (u64, u64) = (4, 3);

/// By how many the slow probes must outnumber the others for copies to go past the caches, and the most that counts.
const ENOUGH: u64 = 4;
const MOST: u64 = 8;

/// A view's choice. Its words are private to the process: threads that share a view may lose an update, which costs a
/// measurement.
#[derive(Debug)]
pub(crate) struct Stores {
    /// Probes written, but for those that are too soon after another.
    probes: Word,
    /// The byte of the segment at which one of them begins.
    place: Word,
    /// Bytes written since the last one.
    since: Word,
    /// Slow ones, less others.
    slow: Word,
    /// What a probe past the caches takes, in cycles of the processor's clock; 0: not known.
    past: Word,
    laps: Laps,
}

/// After so many probes the evidence is forgotten, so that a choice that confirms itself does not last: near readers may look
/// far while copies go past the caches. Where they are far this costs a hundredth: until the fourth slow probe.
const FORGOTTEN: u64 = 1024;

/// The two ways of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Through,
    Past,
}

impl Stores {
    pub(crate) const fn new() -> Self {
        Self {
            probes: Word::zero(),
            place: Word::zero(),
            since: Word::zero(),
            slow: Word::zero(),
            past: Word::zero(),
            laps: Laps::new(),
        }
    }

    /// Copies `len` private bytes to `to`, which lies at `offset` in the segment.
    ///
    /// # Safety
    /// As [`copy::into_segment`].
    #[inline]
    pub(crate) unsafe fn copy(&self, offset: u64, to: *mut u8, from: *const u8, len: usize) {
        if !copy::BYPASS || len < PROBE {
            copy::claim_for(to, len);
            // SAFETY: the caller's promise.
            return unsafe { copy::into_segment(to, from, len) };
        }
        let begin = self.laps.begin(len);
        let (way, since) = (self.way(), self.since.load_payload().wrapping_add(len as u64));
        let probe = self.place.load_payload().wrapping_sub(offset) % SPACING;
        let lost = since >= LOST;
        self.since.store_payload(if lost { 0 } else { since });
        if lost {
            self.place.store_payload(offset);
        }
        if probe <= (len - PROBE) as u64 && (way == Way::Past || since >= SPACING) {
            // SAFETY: the caller's promise; the probe ends inside.
            unsafe { self.with_probe(probe as usize, since, to, from, len) }
        } else {
            if way == Way::Through {
                copy::claim_for(to, len);
            }
            // SAFETY: the caller's promise.
            unsafe { way.copy(to, from, len) }
        }
        self.laps.end(begin, len);
    }

    /// How copies had best pass through a queue.
    #[inline]
    pub(crate) fn lap(&self) -> Lap {
        self.laps.lap()
    }

    /// The same, with a probe at byte `at`, which is timed if so many bytes have been written since the last one.
    #[cold]
    unsafe fn with_probe(&self, at: usize, since: u64, to: *mut u8, from: *const u8, len: usize) {
        let (way, end) = (self.way(), at + PROBE);
        let part = |way: Way, at: usize, len: usize| {
            // SAFETY: the caller's promise, for a part.
            unsafe { way.copy(to.wrapping_add(at), from.wrapping_add(at), len) }
        };
        part(way, 0, at);
        let (probe, timed) = if since >= SPACING { self.next() } else { (Way::Through, false) };
        if since >= SPACING {
            self.since.store_payload(0);
        }
        if timed {
            let start = copy::settled_cycles();
            part(probe, at, PROBE);
            // Cores may disagree about the time.
            self.note(probe, copy::settled_cycles().saturating_sub(start));
        } else {
            part(probe, at, PROBE);
        }
        part(way, end, len - end);
    }

    /// The way of most copies now.
    #[inline]
    fn way(&self) -> Way {
        if self.slow.load_payload() < ENOUGH { Way::Through } else { Way::Past }
    }

    /// The way of the next probe, and whether it is timed.
    fn next(&self) -> (Way, bool) {
        let number = self.probes.load_payload();
        self.probes.store_payload(number.wrapping_add(1));
        if number.is_multiple_of(FORGOTTEN) {
            self.slow.store_payload(0);
        }
        if number.is_multiple_of(if number < ASIDE { ASIDE_FIRST } else { ASIDE }) {
            (Way::Past, true)
        } else {
            (Way::Through, self.slow.load_payload() > 0 || number % SELDOM == 1 || number < ASIDE)
        }
    }

    /// Takes note of what a probe took.
    fn note(&self, probe: Way, cycles: u64) {
        let (past, slow) = (self.past.load_payload(), self.slow.load_payload());
        let (more, less) = if self.way() == Way::Past { STILL_SLOWER } else { SLOWER };
        let slower = |cycles: u64, past: u64| less.saturating_mul(cycles) > more.saturating_mul(past);
        match probe {
            Way::Through if slower(cycles, past) => self.slow.store_payload((slow + 1).min(MOST)),
            Way::Through => self.slow.store_payload(slow.saturating_sub(1)),
            Way::Past if past == 0 => self.past.store_payload(cycles),
            // What interrupts a copy makes it longer: so the estimate falls fast and grows slowly.
            Way::Past if cycles < past => self.past.store_payload(cycles.midpoint(past)),
            Way::Past => self.past.store_payload(cycles.min(past.saturating_add(past / 8))),
        }
    }
}

impl Way {
    /// [`Stores::copy`], in this way.
    ///
    /// # Safety
    /// As [`copy::into_segment`].
    #[inline]
    unsafe fn copy(self, to: *mut u8, from: *const u8, len: usize) {
        match self {
            // SAFETY: the caller's promise.
            Self::Through => unsafe { copy::into_segment(to, from, len) },
            // SAFETY: the caller's promise.
            Self::Past => unsafe { copy::into_segment_past_caches(to, from, len) },
        }
    }
}

/// A copy of a view measures for itself.
impl Clone for Stores {
    fn clone(&self) -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::{vec, vec::Vec};

    /// Cycles of a probe through the caches of near readers, while other copies go the same way and while they don't; past
    /// the caches; and through the caches of far readers: medians of an AMD EPYC guest, whose virtual cores are near or far
    /// in turn.
    const NEAR: [u64; 2] = [208, 850];
    const MEMORY: u64 = 800;
    const FAR: u64 = 1400;

    fn near(stores: &Stores) -> u64 {
        NEAR[usize::from(stores.way() == Way::Past)]
    }

    /// Writes `count` probes that take as long as `through` says; returns how many of them found copies go past the caches.
    fn past(stores: &Stores, count: u64, through: impl Fn(u64) -> u64) -> u64 {
        let write = |number: &u64| {
            let (probe, timed) = stores.next();
            if timed {
                stores.note(probe, if probe == Way::Past { MEMORY } else { through(*number) });
            }
            stores.way() == Way::Past
        };
        (0..count).filter(write).count() as u64
    }

    /// Probes in two mebibytes.
    const SOON: u64 = (2 << 20) / SPACING;

    #[test]
    fn far_readers_are_noticed_within_two_mebibytes_and_so_are_near_ones_again() {
        let stores = Stores::new();
        past(&stores, SOON, |_| FAR);
        assert_eq!(past(&stores, 500, |_| FAR), 500);
        past(&stores, SOON, |_| near(&stores));
        assert_eq!(past(&stores, 10_000, |_| near(&stores)), 0);
    }

    #[test]
    fn far_readers_are_noticed_soon_though_a_probe_past_the_caches_takes_little_less() {
        // By measurements there, while the other copies go through the caches, and while they don't.
        let far = |stores: &Stores| if stores.way() == Way::Past { FAR } else { MEMORY * 6 / 5 };
        let stores = Stores::new();
        past(&stores, SOON, |_| far(&stores));
        assert_eq!(past(&stores, 500, |_| far(&stores)), 500);
        // What was written before went to memory, which was busy.
        let stores = Stores::new();
        past(&stores, 10 * ASIDE, |_| MEMORY);
        stores.past.store_payload(7 * MEMORY / 4);
        past(&stores, 2 * SOON, |_| FAR);
        assert_eq!(past(&stores, 500, |_| FAR), 500);
    }

    #[test]
    fn near_readers_are_noticed_though_a_probe_takes_a_little_more_than_one_past_the_caches() {
        let near = |stores: &Stores| if stores.way() == Way::Past { MEMORY * 6 / 5 } else { NEAR[0] };
        let stores = Stores::new();
        past(&stores, SOON, |_| FAR);
        assert_eq!(stores.way(), Way::Past);
        past(&stores, SOON, |_| near(&stores));
        assert_eq!(past(&stores, 500, |_| near(&stores)), 0);
    }

    #[test]
    fn near_one_probe_of_four_is_timed_and_the_one_after_each_past_the_caches() {
        let stores = Stores::new();
        past(&stores, ASIDE, |_| near(&stores));
        let probes: Vec<_> = (0..10 * ASIDE).map(|_| stores.next()).collect();
        let timed = probes.iter().filter(|(way, timed)| *way == Way::Through && *timed).count() as u64;
        assert_eq!(timed, 10 * ASIDE / SELDOM);
        for pair in probes.windows(2).filter(|pair| pair[0].0 == Way::Past) {
            assert_eq!(pair, [(Way::Past, true), (Way::Through, true)]);
        }
    }

    #[test]
    fn a_few_interrupted_probes_change_nothing() {
        let stores = Stores::new();
        assert_eq!(past(&stores, 10_000, |n| if n % 5 == 1 { 50_000 } else { near(&stores) }), 0);
        past(&stores, SOON, |_| FAR);
        assert!(past(&stores, 10_000, |n| if n % 5 == 1 { near(&stores) } else { FAR }) > 9800);
    }

    #[test]
    fn near_readers_that_look_far_past_the_caches_are_noticed_in_the_end() {
        let stores = Stores::new();
        let disguised = |_| if stores.way() == Way::Past { FAR } else { near(&stores) };
        stores.slow.store_payload(MOST);
        stores.past.store_payload(MEMORY);
        stores.probes.store_payload(1);
        assert_eq!(past(&stores, FORGOTTEN - 1, disguised), FORGOTTEN - 1);
        assert_eq!(past(&stores, 10_000, disguised), 0);
    }

    #[test]
    fn a_first_probe_past_the_caches_that_was_interrupted_is_forgotten() {
        let stores = Stores::new();
        assert_eq!(stores.next(), (Way::Past, true));
        stores.note(Way::Past, 100 * MEMORY);
        past(&stores, 16 * SOON, |_| FAR);
        assert_eq!(past(&stores, 500, |_| FAR), 500);
    }

    #[test]
    fn probes_are_found_wherever_copies_pass_again_and_again() {
        // Eight slots of which a part is used, pieces beside each other, and all of a queue.
        let patterns: [fn(u64) -> u64; 3] =
            [|n| 12_352 + n % 8 * (32 << 10), |n| 8192 + n % 16 * 4096, |n| 4096 + n % 1024 * 4096];
        let (mut memory, message) = (vec![0_u8; 5 << 20], vec![1_u8; 3000]);
        let stores = Stores::new();
        for offset in patterns {
            let mut before = stores.probes.load_payload();
            for round in 0..4 {
                for number in 0..700 {
                    let at = offset(number);
                    // SAFETY: inside the memory.
                    unsafe { stores.copy(at, memory.as_mut_ptr().wrapping_add(at as usize), message.as_ptr(), 3000) };
                }
                let probes = stores.probes.load_payload() - before;
                assert!((if round == 0 { 1 } else { 5 }..=9).contains(&probes), "{round}: {probes}");
                before += probes;
            }
        }
    }

    #[test]
    fn all_bytes_arrive_whichever_way_they_go() {
        let message: Vec<u8> = (0..(SPACING as u32 * 2)).map(|i| (i ^ (i >> 8)) as u8).collect();
        for slow in [0, MOST] {
            for (offset, len) in [(0, 2048), (0, 2047), (64, 300_000), (SPACING - 1000, 3048), (SPACING - 1000, 3047)] {
                let (mut memory, stores) = (vec![0_u8; message.len() + 64], Stores::new());
                stores.slow.store_payload(slow);
                stores.since.store_payload(SPACING);
                let at = memory.as_ptr().align_offset(64);
                // SAFETY: `len` bytes of either, which is at most 300 000.
                unsafe { stores.copy(offset, memory.as_mut_ptr().wrapping_add(at), message.as_ptr(), len) };
                assert_eq!(memory[at..at + len], message[..len], "{offset} {len}");
                assert!(memory[at + len..].iter().all(|byte| *byte == 0), "{offset} {len}");
            }
        }
    }
}
