//! Which stores long copies to private memory use: those through the caches, or those past them (ours).
//!
//! A store through the caches first fetches the line that it writes, and later its cache writes the line back: a message that the
//! caches can't hold passes the memory bus three times, by non-temporal stores twice. And those leave what is sent in the caches.
//! A message that the caches can hold is received two or three times as fast through them. How long such a message is depends on
//! the machine, on how many ranks share its caches, and on what else is in them.
//!
//! So each process measures, on the program's own copies, once [`LONG`] bytes have gone to one place: by turns, some go the one way and some
//! the other, and the better one is kept for a while. What a reader of the message pays later is not measured: a way past the caches must be
//! better [by a quarter](BETTER). The first bytes of each turn don't count, since they meet the caches as the other way has left them.

use crate::copy;
use unisono_kernel::region::Word;

/// Bytes to one place, one copy's end being the next one's begin, from which on copies may go past the caches.
const LONG: u64 = 1 << 20;

/// Bytes of a copy that is not looked at: most calls have no longer ones, and a fold in pieces reads each again at once.
const SHORT: usize = 4096;

/// Bytes of a turn, and those of it that count: the last ones.
const TURN: u64 = 16 << 20;
const COUNTS: u64 = 8 << 20;

/// Turns from one trial to the next. The first two of them try the ways.
const TURNS: u64 = 64;

/// By how much a copy past the caches must be better.
const BETTER: (u64, u64) = (5, 4);

/// A cost is in processor cycles for so many bytes.
const UNIT: u64 = 1 << 16;

/// The two ways of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Through,
    Past,
}

/// The copies of a view that are one behind the other. Its words are private to the process: threads that share a view may lose an
/// update, and a copy goes the other way.
#[derive(Debug)]
pub(crate) struct Row {
    /// The address behind the last copy, and the bytes to that place in a row.
    end: Word,
    bytes: Word,
}

/// What a process has measured. Threads may lose an update, which costs a measurement.
#[derive(Debug)]
struct Choice {
    /// Which turn it is, and the bytes of it so far.
    turn: Word,
    bytes: Word,
    /// The cycles of those bytes of it that count.
    cycles: Word,
    counted: Word,
    /// What copies through the caches cost in the last trial.
    through: Word,
    /// 1: copies past the caches were better.
    past: Word,
}

/// This process's: what it depends on is the same for all its segments.
static CHOICE: Choice = Choice::new();

impl Row {
    pub(crate) const fn new() -> Self {
        Self { end: Word::zero(), bytes: Word::zero() }
    }

    /// Copies `len` bytes to private memory: as `through` does, or past the caches.
    ///
    /// # Safety
    /// `from` holds `len` mapped bytes, which no other process writes now, `to` `len` writable ones. `through` copies the same bytes.
    #[inline(always)]
    pub(crate) unsafe fn copy(&self, from: *mut u8, to: *mut u8, len: usize, through: impl FnOnce()) {
        if !copy::BYPASS || len <= SHORT || !self.is_long(to, len) || from.addr().abs_diff(to.addr()) < len {
            return through();
        }
        let (way, begin) = (CHOICE.way(), copy::cycles());
        match way {
            Way::Through => through(),
            // SAFETY: the caller's promise; the two are apart.
            Way::Past => unsafe { copy::out_of_segment_past_caches(from, to, len) },
        }
        // Cores may disagree about the time.
        CHOICE.note(len as u64, copy::cycles().saturating_sub(begin));
    }

    /// Have [`LONG`] bytes gone to one place, before or with these?
    #[inline]
    fn is_long(&self, to: *mut u8, len: usize) -> bool {
        let before = if self.end.load_payload() == to.addr() as u64 { self.bytes.load_payload() } else { 0 };
        self.end.store_payload(to.addr().wrapping_add(len) as u64);
        self.bytes.store_payload(before.saturating_add(len as u64));
        before >= LONG || len as u64 >= LONG
    }
}

impl Choice {
    const fn new() -> Self {
        Self {
            turn: Word::zero(),
            bytes: Word::zero(),
            cycles: Word::zero(),
            counted: Word::zero(),
            through: Word::zero(),
            past: Word::zero(),
        }
    }

    /// The way of copies in this turn.
    fn way(&self) -> Way {
        match (self.turn.load_payload(), self.past.load_payload()) {
            (0, _) => Way::Through,
            (1, _) => Way::Past,
            (_, 0) => Way::Through,
            _ => Way::Past,
        }
    }

    /// Takes note of what a copy took.
    #[cold]
    fn note(&self, len: u64, took: u64) {
        let bytes = self.bytes.load_payload().saturating_add(len);
        self.bytes.store_payload(bytes);
        if bytes > TURN - COUNTS {
            self.cycles.store_payload(self.cycles.load_payload().saturating_add(took));
            self.counted.store_payload(self.counted.load_payload().saturating_add(len));
        }
        if bytes >= TURN {
            self.end_turn();
        }
    }

    fn end_turn(&self) {
        let turn = self.turn.load_payload();
        let cost = self.cycles.load_payload().saturating_mul(UNIT) / self.counted.load_payload().max(1);
        match turn {
            0 => self.through.store_payload(cost),
            1 => {
                let through = self.through.load_payload();
                let better = through.saturating_mul(BETTER.1) > cost.saturating_mul(BETTER.0);
                self.past.store_payload(better.into());
            }
            _ => {}
        }
        self.turn.store_payload((turn + 1) % TURNS);
        for word in [&self.bytes, &self.cycles, &self.counted] {
            word.store_payload(0);
        }
    }
}

/// A copy of a view copies to other places.
impl Clone for Row {
    fn clone(&self) -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::{vec, vec::Vec};

    const MESSAGE: u64 = 3_000_000;

    /// Copies `count` messages, each of which takes as many cycles as `costs` says of the ways; returns how many went past the caches.
    fn past(copies: &Choice, count: u64, costs: impl Fn(u64) -> [u64; 2]) -> u64 {
        let copy = |number: &u64| {
            let way = copies.way();
            copies.note(MESSAGE, costs(*number)[usize::from(way == Way::Past)]);
            way == Way::Past
        };
        (0..count).filter(copy).count() as u64
    }

    /// Messages of the first two turns.
    const TRIAL: u64 = 2 * TURN.div_ceil(MESSAGE);

    #[test]
    fn the_better_way_is_kept_and_tried_anew() {
        let copies = Choice::new();
        past(&copies, TRIAL, |_| [1000, 500]);
        assert_eq!(past(&copies, 100, |_| [1000, 500]), 100);
        // The program's memory is in the caches now.
        past(&copies, TURNS * TRIAL, |_| [300, 500]);
        assert!(past(&copies, 1000, |_| [300, 500]) < 50);
        past(&copies, TURNS * TRIAL, |_| [1000, 500]);
        assert!(past(&copies, 1000, |_| [1000, 500]) > 950);
    }

    #[test]
    fn what_is_hardly_better_is_not_taken() {
        let copies = Choice::new();
        past(&copies, TRIAL, |_| [1000, 900]);
        assert_eq!(past(&copies, 100, |_| [1000, 900]), 0);
    }

    #[test]
    fn the_first_copies_of_a_turn_do_not_count() {
        // Through the caches, what comes after the other way takes long.
        let copies = Choice::new();
        let first = |number: u64| if number < 2 { [10_000, 500] } else { [550, 500] };
        past(&copies, TRIAL, first);
        assert_eq!(past(&copies, 100, |_| [550, 500]), 0);
    }

    #[test]
    fn copies_in_a_row_are_one_long_copy() {
        let mut memory = vec![0_u8; 3 << 20];
        let at = |offset: usize| memory.as_mut_ptr().wrapping_add(offset);
        let places: Vec<_> = (0..3 << 20).step_by(32 << 10).map(at).collect();
        let copies = Row::new();
        let long: Vec<_> = places.iter().map(|place| copies.is_long(*place, 32 << 10)).collect();
        assert_eq!(long.iter().position(|long| *long), Some(32), "after a mebibyte");
        assert!(long.iter().skip(32).all(|long| *long));
        assert!(!copies.is_long(places[0], 32 << 10), "another place");
        assert!(copies.is_long(places[7], 1 << 20), "long by itself");
    }

    #[test]
    fn all_bytes_arrive_whichever_way_they_go() {
        let message: Vec<u8> = (0..(2_u32 << 20)).map(|i| (i ^ (i >> 8)) as u8).collect();
        // More than two turns.
        let copies = Row::new();
        for (skew, len) in [(0, 1 << 20), (1, (1 << 20) + 1), (63, (2 << 20) - 64)].into_iter().cycle().take(40) {
            let mut memory = vec![0_u8; (2 << 20) + 128];
            let to = memory.as_mut_ptr().wrapping_add(skew);
            let from = message.as_ptr().cast_mut();
            // SAFETY: both hold as many bytes, and are apart.
            let through = || unsafe { core::ptr::copy_nonoverlapping(from, to, len) };
            // SAFETY: as above.
            unsafe { copies.copy(from, to, len, through) };
            assert_eq!(memory[skew..skew + len], message[..len], "{skew} {len}");
            assert!(memory[..skew].iter().chain(&memory[skew + len..]).all(|byte| *byte == 0));
        }
        assert!(!copy::BYPASS || CHOICE.turn.load_payload() > 1);
    }
}
