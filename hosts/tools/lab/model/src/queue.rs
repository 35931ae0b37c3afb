//! Paper P1's model of a broadcast through a queue of slots (its sections 5.2 and 5.3), and the paper's rules for f and
//! s.
//!
//! A message of m bytes goes through s slots of f bytes, b = f·s, split into q sets. t: copying one byte; t_WO: a
//! reader's wait until a set is opened; t_A: its atomic decrement; t_W: its wait for the notification of a slot. t_WO
//! and t_W grow with p, linearly for flat trees and chains, logarithmically for k-ary and k-nomial ones.
//!
//! | queue | time |
//! |---|---|
//! | one slot | ⌈m/f⌉(t_WO + t_A) + ⌈m/f⌉·t_W + 2mt |
//! | s slots | ⌈m/b⌉(t_WO + t_A + t_C) + ⌈m/f⌉·t_W + mt, t_C = min(m, f)·t |
//! | q ≥ 2 sets | ⌈qm/b⌉(t_WO + t_A) + t_C + ⌈m/f⌉·t_W + mt |
//!
//! The paper's three regimes of s slots (m ≤ f, m ≤ b, m > b) are the second row at ⌈m/b⌉ = 1 and above.
//!
//! **Sets, derived.** While the root refills set k, the readers empty set k+1, so the wait for copies that are still
//! going on, t_C at each reuse of the queue, is gone; once, at the start, a reader waits for the first fragment. Each
//! set of b/q bytes costs its opening and its decrement. Our text of the paper has lost the formula's parentheses; with the
//! whole bracket multiplied by q, q⌈m/b⌉(t_WO + t_A + t_C) and so on, sets would cost time always, against the paper's own figure 3 and text
//! ([`Times::sets_printed`]). Where m is not a multiple of b, its q⌈m/b⌉ counts sets that are never opened; ⌈qm/b⌉ does
//! not.

use crate::{Bound, ModelError};

/// Measured times, all in one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    byte: f64,
    open: f64,
    release: f64,
    notify: f64,
}

/// The bound of the number of slots, of a slot's bytes and of a page's: 2⁴⁰. More is absurd.
const MOST: f64 = (1u64 << 40) as f64;

/// A message, and the queue that it goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Queue {
    /// m: bytes of the message.
    pub message: u64,
    /// f: bytes of a slot.
    pub fragment: u64,
    /// s: slots of a queue.
    pub slots: u64,
    /// q: sets.
    pub sets: u64,
}

impl Queue {
    /// b = f·s.
    fn bytes(&self) -> f64 {
        self.fragment as f64 * self.slots as f64
    }

    /// Bytes of all queues of a segment: w + w·q + p·s·(w + ⌈f⌉), ⌈f⌉ in whole pages, with w bytes per page and
    /// ⌈4p/w⌉ pages instead of the first w where `leaders` needs more than one.
    ///
    /// # Errors
    /// [`Self::check`] refuses, or the number of processes or the page is 0.
    pub fn segment_bytes(&self, ranks: u32, page: u64) -> Result<u128, ModelError> {
        self.check()?;
        ModelError::count("ranks (p)", ranks.into(), 1)?;
        page_bytes(page)?;
        let [page, ranks, sets, slots, fragment] =
            [page, ranks.into(), self.sets, self.slots, self.fragment].map(u128::from);
        let leaders = (4 * ranks).div_ceil(page) * page;
        Ok(leaders + page * sets + ranks * slots * (page + fragment.next_multiple_of(page)))
    }

    /// Checks that the queue has slots, that slots have bytes, and that the sets have equal numbers of slots.
    ///
    /// # Errors
    /// No bytes in a slot, no slots, more than 2⁴⁰ of them, no sets, or sets of different size.
    pub fn check(&self) -> Result<(), ModelError> {
        for (argument, value) in [("fragment (f)", self.fragment), ("slots (s)", self.slots)] {
            ModelError::count(argument, value, 1)?;
            ModelError::check(argument, value as f64, Bound::AtMost(MOST))?;
        }
        ModelError::check("sets (q)", self.sets as f64, Bound::Divides(self.slots as f64)).map(|_| ())
    }
}

/// The terms of a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Openings and decrements: (t_WO + t_A) for each use of a set.
    pub overhead: f64,
    /// Copies for which a reader waits and which overlap with nothing.
    pub wait: f64,
    /// ⌈m/f⌉·t_W.
    pub notices: f64,
    /// m·t.
    pub copy: f64,
}

impl Terms {
    /// The whole time.
    pub fn total(&self) -> f64 {
        self.overhead + self.wait + self.notices + self.copy
    }
}

fn up(bytes: u64, by: f64) -> f64 {
    (bytes as f64 / by).ceil()
}

impl Times {
    /// The parameters of the paper's figures 4, 6 and 8, in nanoseconds: t = 1, t_WO = 100t, t_A = 10t, t_W = 50t.
    pub const PAPER: Self = Self { byte: 1.0, open: 100.0, release: 10.0, notify: 50.0 };

    /// t, t_WO, t_A and t_W.
    ///
    /// # Errors
    /// One of them is negative, absurd or not a number; t or t_W is 0 (the best fragment depends on t_W/t).
    pub fn new(byte: f64, open: f64, release: f64, notify: f64) -> Result<Self, ModelError> {
        ModelError::positive("time per byte (t)", byte)?;
        ModelError::time("wait for a set (t_WO)", open)?;
        ModelError::time("decrement (t_A)", release)?;
        ModelError::positive("wait for a slot (t_W)", notify)?;
        Ok(Self { byte, open, release, notify })
    }

    /// The opening and the decrement of one use of a queue or set.
    fn base(&self, message: u64, fragment: u64) -> Terms {
        Terms {
            overhead: self.open + self.release,
            wait: message.min(fragment) as f64 * self.byte,
            notices: up(message, fragment as f64) * self.notify,
            copy: message as f64 * self.byte,
        }
    }

    /// t(m): one slot of `fragment` bytes.
    ///
    /// # Errors
    /// The slot has no bytes.
    pub fn one_slot(&self, message: u64, fragment: u64) -> Result<f64, ModelError> {
        ModelError::count("fragment (f)", fragment, 1)?;
        let terms = self.base(message, fragment);
        Ok(up(message, fragment as f64) * terms.overhead + terms.notices + 2.0 * terms.copy)
    }

    /// t(m, s); the queue's sets are ignored.
    ///
    /// # Errors
    /// [`Queue::check`] refuses.
    pub fn slots(&self, queue: Queue) -> Result<Terms, ModelError> {
        queue.check()?;
        Ok(self.within(queue.message, queue.fragment, queue.bytes()))
    }

    /// t(m, s) where b is given instead of s, whether it is a multiple of f or not: the paper's figure 4.
    ///
    /// # Errors
    /// No bytes in a slot or in the queue.
    pub fn bytes(&self, message: u64, fragment: u64, queue: u64) -> Result<Terms, ModelError> {
        ModelError::count("fragment (f)", fragment, 1)?;
        ModelError::count("queue (b)", queue, 1)?;
        Ok(self.within(message, fragment, queue as f64))
    }

    fn within(&self, message: u64, fragment: u64, queue: f64) -> Terms {
        let (terms, uses) = (self.base(message, fragment), up(message, queue));
        Terms { overhead: uses * terms.overhead, wait: uses * terms.wait, ..terms }
    }

    /// t(m, s, q): as derived above; with one set, t(m, s).
    ///
    /// # Errors
    /// [`Queue::check`] refuses.
    pub fn sets(&self, queue: Queue) -> Result<Terms, ModelError> {
        if queue.sets == 1 {
            return self.slots(queue);
        }
        queue.check()?;
        let terms = self.base(queue.message, queue.fragment);
        Ok(Terms { overhead: up(queue.message, queue.bytes() / queue.sets as f64) * terms.overhead, ..terms })
    }

    /// t(m, s, q) with the whole bracket multiplied by q, as the paper may print it.
    ///
    /// # Errors
    /// [`Queue::check`] refuses.
    pub fn sets_printed(&self, queue: Queue) -> Result<Terms, ModelError> {
        let (terms, sets) = (self.slots(queue)?, queue.sets as f64);
        Ok(Terms { overhead: sets * terms.overhead, wait: sets * terms.wait, ..terms })
    }

    /// f* = √(m/⌈m/b⌉ · t_W/t): the best fragment of a queue of `queue` bytes if fragments need not be whole.
    ///
    /// # Errors
    /// The message or the queue has no bytes.
    pub fn best_fragment_for(&self, message: u64, queue: u64) -> Result<f64, ModelError> {
        ModelError::count("message (m)", message, 1)?;
        ModelError::count("queue (b)", queue, 1)?;
        Ok((message as f64 / up(message, queue as f64) * self.notify / self.byte).sqrt())
    }

    /// f* ≈ √(b·t_W/t) and s* = b/f* = √(b·t/t_W), for messages well above b.
    ///
    /// # Errors
    /// The queue has no bytes.
    pub fn best(&self, queue: u64) -> Result<(f64, f64), ModelError> {
        ModelError::count("queue (b)", queue, 1)?;
        let (bytes, ratio) = (queue as f64, self.notify / self.byte);
        Ok(((bytes * ratio).sqrt(), (bytes / ratio).sqrt()))
    }
}

/// The fragment and the slots that a rule recommends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// f, in bytes.
    pub fragment: u64,
    /// s.
    pub slots: u64,
}

fn page_bytes(page: u64) -> Result<(), ModelError> {
    ModelError::count("page (w)", page, 1)?;
    ModelError::check("page (w)", page as f64, Bound::AtMost(MOST)).map(|_| ())
}

/// √bytes, rounded up to whole pages.
fn root_in_pages(argument: &'static str, bytes: u64, page: u64) -> Result<u64, ModelError> {
    ModelError::count(argument, bytes, 1)?;
    ModelError::check(argument, bytes as f64, Bound::AtMost(2f64.powi(53)))?;
    page_bytes(page)?;
    let root = bytes.isqrt();
    Ok((root + u64::from(root * root < bytes)).next_multiple_of(page))
}

/// For a memory budget of `queue` bytes, without measurements: f = √b up to pages, s = b/f, at least one slot.
///
/// # Errors
/// No bytes, or more than 2⁵³; no page.
pub fn for_budget(queue: u64, page: u64) -> Result<Shape, ModelError> {
    let fragment = root_in_pages("queue (b)", queue, page)?;
    Ok(Shape { fragment, slots: (queue / fragment).max(1) })
}

/// Rule 1, the message's size is known: f = √m up to pages, s = m/f, rounded up so that the message fits.
///
/// # Errors
/// No bytes, or more than 2⁵³; no page.
pub fn for_message(message: u64, page: u64) -> Result<Shape, ModelError> {
    let fragment = root_in_pages("message (m)", message, page)?;
    Ok(Shape { fragment, slots: message.div_ceil(fragment) })
}

/// Rule 2, f is fixed and no message is longer than `longest`: s = ⌈m_max/f⌉.
///
/// # Errors
/// No bytes.
pub fn for_fragment(longest: u64, fragment: u64) -> Result<Shape, ModelError> {
    ModelError::count("longest message (m_max)", longest, 1)?;
    ModelError::count("fragment (f)", fragment, 1)?;
    Ok(Shape { fragment, slots: longest.div_ceil(fragment) })
}

/// Rule 3, s is fixed: b = m_max, f by the formula for b, √m_max up to pages. f·s is then not b: the rule takes the
/// best fragment of a queue that the s given does not make.
///
/// # Errors
/// No bytes, or more than 2⁵³; no page; no slots.
pub fn for_slots(longest: u64, slots: u64, page: u64) -> Result<Shape, ModelError> {
    ModelError::count("slots (s)", slots, 1)?;
    Ok(Shape { fragment: root_in_pages("longest message (m_max)", longest, page)?, slots })
}

/// The paper's table 1.
pub mod table1 {
    /// f: 4 to 64 KiB by pages of 4 KiB.
    pub fn fragments() -> impl Iterator<Item = u64> {
        (1..=16).map(|pages| pages * 4096)
    }

    /// The columns s = f/k. They are the best queues for t_W/t = k.
    pub const DIVISORS: [u64; 9] = [2, 4, 8, 16, 32, 64, 128, 256, 512];

    /// The paper's colours.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Class {
        /// Below 10 MB: 0.1 to 1 % of a core's memory.
        Small,
        /// 10 to 100 MB.
        Middling,
        /// Above 100 MB.
        Large,
    }

    /// b = f·(f/k) in MiB (the paper's MB).
    pub fn mebibytes(fragment: u64, divisor: u64) -> f64 {
        let f = fragment as f64;
        f * f / divisor as f64 / f64::from(1 << 20)
    }

    /// The class of so many MB.
    pub fn class(mebibytes: f64) -> Class {
        match mebibytes {
            b if b < 10.0 => Class::Small,
            b if b <= 100.0 => Class::Middling,
            _ => Class::Large,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    /// In units of t: t = 1, t_WO = 100, t_A = 10, t_W = 50.
    fn times() -> Times {
        Times::new(1.0, 100.0, 10.0, 50.0).unwrap()
    }

    fn queue(message: u64, fragment: u64, slots: u64, sets: u64) -> Queue {
        Queue { message, fragment, slots, sets }
    }

    #[test]
    fn one_slot_by_hand() {
        // 4 fragments: 4 · (100 + 10) + 4 · 50 + 2 · 4000.
        assert_eq!(times().one_slot(4000, 1000), Ok(8640.0));
        // 4001 bytes: 5 · 110 + 5 · 50 + 8002.
        assert_eq!(times().one_slot(4001, 1000), Ok(8802.0));
        assert_eq!(times().one_slot(0, 1000), Ok(0.0));
    }

    #[test]
    fn the_three_regimes_by_hand() {
        let of = |message| times().slots(queue(message, 1000, 4, 1)).unwrap().total();
        // m ≤ f: 100 + 10 + 50 + 2 · 700.
        assert_eq!(of(700), 1560.0);
        // f < m ≤ b: 100 + 10 + 1000 + 3 · 50 + 2500.
        assert_eq!(of(2500), 3760.0);
        // m > b, ⌈9500/4000⌉ = 3: 3 · (110 + 1000) + 10 · 50 + 9500.
        assert_eq!(of(9500), 13_330.0);
    }

    #[test]
    fn sets_by_hand() {
        // 8000 bytes, 4 slots in 2 sets of 2000: 4 · 110 + 1000 + 8 · 50 + 8000.
        assert_eq!(times().sets(queue(8000, 1000, 4, 2)).unwrap().total(), 9840.0);
        // 4500 bytes use 3 sets, where q⌈m/b⌉ counts 4: 3 · 110 + 1000 + 5 · 50 + 4500.
        assert_eq!(times().sets(queue(4500, 1000, 4, 2)).unwrap().total(), 6080.0);
        // One set: 2 · (110 + 1000) + 8 · 50 + 8000.
        assert_eq!(times().sets(queue(8000, 1000, 4, 1)).unwrap().total(), 10_620.0);
        // The whole bracket: 2 · 2 · (110 + 1000) + 8 · 50 + 8000.
        assert_eq!(times().sets_printed(queue(8000, 1000, 4, 2)).unwrap().total(), 12_840.0);
    }

    /// Two sets pay from m > b on, if one fragment takes longer than two openings; with the whole bracket multiplied they
    /// never do.
    #[test]
    fn sets_pay_above_b() {
        let gain = |message| {
            let of = |sets| times().sets(queue(message, 1000, 4, sets)).unwrap().total();
            of(1) - of(2)
        };
        assert!(gain(4000) < 0.0 && gain(4001) > 0.0 && gain(100_000) > gain(4001));
        for sets in [2, 4] {
            let printed = times().sets_printed(queue(100_000, 1000, 4, sets)).unwrap().total();
            assert!(printed > times().slots(queue(100_000, 1000, 4, 1)).unwrap().total());
        }
    }

    /// "With zero overheads s slots give at most 2×": (2mt) / (f·t·⌈m/b⌉ + mt).
    #[test]
    fn slots_give_at_most_twice() {
        let free = Times::new(1.0, 0.0, 0.0, 1e-9).unwrap();
        let gain = |slots| {
            let many = free.slots(queue(16 * MIB, 8192, slots, 1)).unwrap().total();
            free.one_slot(16 * MIB, 8192).unwrap() / many
        };
        assert!((gain(1) - 1.0).abs() < 1e-6);
        assert!((gain(2) - 4.0 / 3.0).abs() < 1e-6); // 2 / (1/2 + 1)
        assert!((gain(4) - 1.6).abs() < 1e-6); // 2 / (1/4 + 1)
        assert!((gain(64) - 2.0 / (1.0 + 1.0 / 64.0)).abs() < 1e-6);
        assert!(gain(2048) < 2.0 && gain(2048) > 1.99);
    }

    /// The paper's figure 7 measures 30 % less time with two slots at 16 KiB, 40 to 46 % with four at 32 KiB. Its
    /// model, with the parameters of its other figures: 1 − (110 + 8192 + 2·50 + 16384)/(2·110 + 2·50 + 2·16384) = 1 −
    /// 24786/33088, and 1 − (110 + 8192 + 4·50 + 32768)/(4·110 + 4·50 + 2·32768) = 1 − 41270/66176.
    #[test]
    fn gains_of_figure_7() {
        let gain = |message, slots| {
            let many = Times::PAPER.slots(queue(message, 8192, slots, 1)).unwrap().total();
            1.0 - many / Times::PAPER.one_slot(message, 8192).unwrap()
        };
        assert!((gain(16 << 10, 2) - 0.2509).abs() < 1e-4);
        assert!((gain(32 << 10, 4) - 0.3764).abs() < 1e-4);
        // 16 MiB: 48.6 % with 32 slots, 49.4 % with 64.
        assert!((gain(16 * MIB, 64) - gain(16 * MIB, 32) - 0.0078).abs() < 1e-4);
    }

    /// Messages of 16 to 64 KiB through a queue of 4 MiB: 8 and 12 KiB, which measured best, are f* = √(m·t_W/t) for t_W/t =
    /// 8192²/2¹⁶ = 1024 and 12288²/2¹⁴ = 9216.
    #[test]
    fn figure_5_has_messages_shorter_than_the_queue() {
        for (message, ratio, best) in [(64 << 10, 1024.0, 8192.0), (16 << 10, 9216.0, 12_288.0)] {
            let times = Times::new(1.0, 0.0, 0.0, ratio).unwrap();
            assert_eq!(times.best_fragment_for(message, 4 * MIB).unwrap(), best);
        }
    }

    #[test]
    fn the_best_fragment_of_figure_4() {
        // √(16 MiB/4 · 50) = √209715200 = 14481.5; s* = √(4 MiB/50) = 289.63.
        let best = Times::PAPER.best_fragment_for(16 * MIB, 4 * MIB).unwrap();
        assert!((best - 14_481.55).abs() < 0.01, "{best}");
        let (fragment, slots) = Times::PAPER.best(4 * MIB).unwrap();
        assert!((fragment - best).abs() < 1e-6 && (slots - 289.631).abs() < 1e-3);
        assert!((fragment * slots / (4 * MIB) as f64 - 1.0).abs() < 1e-12);
    }

    /// The kernel's slots for a budget of bytes follow from f* of a typical machine, rounded down to a power of two.
    #[test]
    fn a_segments_queue_is_the_models() {
        let typical = Times::new(1.0, 0.0, 0.0, 4096.0).unwrap();
        for bytes in [16u64 << 10, 512 << 10, 3 << 20, 1 << 30] {
            let params = unisono_kernel::region::Params::new(2).with_queue_bytes(bytes);
            let (fragment, slots) = typical.best(bytes).unwrap();
            let (f, s) = (params.queue_fragment as f64, f64::from(params.queue_slots));
            assert!(f <= fragment && fragment < 2.0 * f, "{bytes}: f = {f}, f* = {fragment}");
            assert!(slots / 2.0 <= s && s <= 2.0 * slots, "{bytes}: s = {s}, s* = {slots}");
        }
    }

    #[test]
    fn rules() {
        let of = |fragment, slots| Ok(Shape { fragment, slots });
        // √(4 MiB) = 2048: one page, 1024 slots; √(16 MiB) = 4096.
        assert_eq!(for_budget(4 * MIB, 4096), of(4096, 1024));
        assert_eq!(for_budget(16 * MIB + 1, 4096), of(8192, 2048));
        assert_eq!(for_budget(100, 4096), of(4096, 1));
        assert_eq!(for_message(64 * MIB, 4096), of(8192, 8192));
        assert_eq!(for_message(20_000, 4096), of(4096, 5));
        assert_eq!(for_fragment(100_000, 8192), of(8192, 13));
        assert_eq!(for_slots(16 * MIB, 8, 4096), of(4096, 8));
        assert_eq!(for_slots(16 * MIB, 0, 4096).unwrap_err().to_string(), "slots (s) is 0, must be at least 1");
        assert_eq!(for_message(0, 4096).unwrap_err().to_string(), "message (m) is 0, must be at least 1");
        assert_eq!(for_budget(u64::MAX, 4096).unwrap_err().argument, "queue (b)");
        assert_eq!(for_budget(1, 0).unwrap_err().to_string(), "page (w) is 0, must be at least 1");
    }

    /// p = 8, s = 8, f = 8 KiB, q = 2: 4096 + 2 · 4096 + 8 · 8 · (4096 + 8192) = 798720 = 780 KiB, as the paper says.
    /// p = 64, s = 1024, f = 8192 is 768 MiB and a few pages, where the paper says 384 MB.
    #[test]
    fn segments() {
        assert_eq!(queue(0, 8192, 8, 2).segment_bytes(8, 4096), Ok(780 << 10));
        assert_eq!(queue(0, 8192, 1024, 1).segment_bytes(64, 4096), Ok((768 << 20) + 2 * 4096));
        // 1025 ints of leaders take two pages.
        assert_eq!(queue(0, 1, 1, 1).segment_bytes(1025, 4096), Ok((2 + 1 + 1025 * 2) * 4096));
    }

    /// Every cell of the paper's table 1, to the digits that it prints.
    #[test]
    fn table_1() {
        const PRINTED: [[f64; 9]; 16] = [
            [8.0, 4.0, 2.0, 1.0, 0.5, 0.3, 0.1, 0.1, 0.03],
            [32.0, 16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.3, 0.1],
            [72.0, 36.0, 18.0, 9.0, 5.0, 2.0, 1.1, 0.6, 0.3],
            [128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0, 0.5],
            [200.0, 100.0, 50.0, 25.0, 13.0, 6.0, 3.1, 1.6, 0.8],
            [288.0, 144.0, 72.0, 36.0, 18.0, 9.0, 4.5, 2.3, 1.1],
            [392.0, 196.0, 98.0, 49.0, 25.0, 12.0, 6.1, 3.1, 1.5],
            [512.0, 256.0, 128.0, 64.0, 32.0, 16.0, 8.0, 4.0, 2.0],
            [648.0, 324.0, 162.0, 81.0, 41.0, 20.0, 10.1, 5.1, 2.5],
            [800.0, 400.0, 200.0, 100.0, 50.0, 25.0, 12.5, 6.3, 3.1],
            [968.0, 484.0, 242.0, 121.0, 61.0, 30.0, 15.1, 7.6, 3.8],
            [1152.0, 576.0, 288.0, 144.0, 72.0, 36.0, 18.0, 9.0, 4.5],
            [1352.0, 676.0, 338.0, 169.0, 85.0, 42.0, 21.1, 10.6, 5.3],
            [1568.0, 784.0, 392.0, 196.0, 98.0, 49.0, 24.5, 12.3, 6.1],
            [1800.0, 900.0, 450.0, 225.0, 113.0, 56.0, 28.1, 14.1, 7.0],
            [2048.0, 1024.0, 512.0, 256.0, 128.0, 64.0, 32.0, 16.0, 8.0],
        ];
        for (row, fragment) in PRINTED.iter().zip(table1::fragments()) {
            for (column, (printed, divisor)) in row.iter().zip(table1::DIVISORS).enumerate() {
                let unit: f64 = match column {
                    8 if fragment == 4096 => 0.01,
                    6.. => 0.1,
                    _ if *printed < 1.0 => 0.1,
                    _ => 1.0,
                };
                let found = table1::mebibytes(fragment, divisor);
                assert!((found - printed).abs() <= unit / 2.0 + 1e-9, "{fragment}/{divisor}: {found}");
            }
        }
        use table1::Class::{Large, Middling, Small};
        assert_eq!([9.9, 10.0, 100.0, 100.1].map(table1::class), [Small, Middling, Middling, Large]);
    }

    /// A column s = f/k is the best queue of its memory for t_W/t = k.
    #[test]
    fn columns_of_table_1_are_optima() {
        for (fragment, k) in table1::fragments().flat_map(|f| table1::DIVISORS.map(|k| (f, k))) {
            let (best, slots) = Times::new(1.0, 0.0, 0.0, k as f64).unwrap().best(fragment * fragment / k).unwrap();
            assert!((best - fragment as f64).abs() < 1e-6 && (slots - fragment as f64 / k as f64).abs() < 1e-6);
        }
    }

    #[test]
    fn absurd_parameters_are_named() {
        let of = |t, wo, a, w| Times::new(t, wo, a, w).unwrap_err().to_string();
        assert_eq!(of(0.0, 1.0, 1.0, 1.0), "time per byte (t) is 0, must be above 0");
        assert_eq!(of(1.0, -2.0, 1.0, 1.0), "wait for a set (t_WO) is -2, must be at least 0");
        assert_eq!(of(1.0, 1.0, f64::NAN, 1.0), "decrement (t_A) is NaN, must be at least 0");
        assert_eq!(
            of(1.0, 1.0, 1.0, 1e16),
            "wait for a slot (t_W) is 10000000000000000, must be at most 1000000000000000"
        );
        let refused = |queue: Queue| times().sets(queue).unwrap_err().to_string();
        assert_eq!(refused(queue(1, 0, 1, 1)), "fragment (f) is 0, must be at least 1");
        assert_eq!(refused(queue(1, 1, 0, 1)), "slots (s) is 0, must be at least 1");
        assert_eq!(
            refused(queue(1, 1, u64::MAX, 1)),
            "slots (s) is 18446744073709552000, must be at most 1099511627776"
        );
        assert_eq!(queue(0, 1 << 40, 1 << 40, 1).segment_bytes(u32::MAX, 1 << 41).unwrap_err().argument, "page (w)");
        assert!(queue(0, 1 << 40, 1 << 40, 1).segment_bytes(u32::MAX, 1 << 40).is_ok());
        assert_eq!(refused(queue(1, 1, 8, 3)), "sets (q) is 3, must divide 8");
        assert_eq!(refused(queue(1, 1, 8, 0)), "sets (q) is 0, must divide 8");
    }

    proptest! {
        /// No other fragment of the same queue does better, fragments of any size taken for whole.
        #[test]
        fn the_optimum_is_one(
            message in 1u64..1 << 30, bytes in 1u64..1 << 26, notify in 0.1..1e4, other in 0.01..100.0,
        ) {
            let times = Times::new(1.0, 100.0, 10.0, notify).unwrap();
            let uses = (message as f64 / bytes as f64).ceil();
            let relaxed = |f: f64| uses * (110.0 + f) + message as f64 / f * notify + message as f64;
            let best = times.best_fragment_for(message, bytes).unwrap();
            prop_assert!(relaxed(best) <= relaxed(best * other) * (1.0 + 1e-12));
        }

        #[test]
        fn longer_queues_and_shorter_messages_never_take_longer(
            message in 0u64..1 << 26, fragment in 1u64..1 << 18, slots in 1u64..256,
        ) {
            let of = |message, slots| times().slots(queue(message, fragment, slots, 1)).unwrap().total();
            prop_assert!(of(message, slots + 1) <= of(message, slots));
            prop_assert!(of(message, slots) <= of(message + 1, slots));
        }

        #[test]
        fn rules_hold_what_they_promise(message in 1u64..1 << 40, slots in 1u64..1000) {
            let shape = for_message(message, 4096).unwrap();
            prop_assert!(shape.fragment.is_multiple_of(4096) && shape.fragment * shape.slots >= message);
            prop_assert!(shape.fragment * shape.fragment >= message);
            prop_assert!((shape.fragment - 4096).pow(2) < message);
            prop_assert_eq!(for_slots(message, slots, 4096).unwrap().fragment, shape.fragment);
            let shape = for_fragment(message, 8192).unwrap();
            prop_assert!(8192 * shape.slots >= message && 8192 * (shape.slots - 1) < message);
        }
    }
}
