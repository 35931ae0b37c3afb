//! The parameters of a segment, from which its [layout](super::layout) follows.

use super::{LINE, Mailboxes};

/// The shape of the queues of papers P1 and P2, which share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cico {
    /// `s`: slots in one process's queue.
    pub slots: u32,
    /// `f`: bytes in one slot.
    pub fragment: u64,
    /// `q`: sets that a queue is split into; divides `s`.
    pub sets: u32,
}

impl Cico {
    /// The shape that P1's model finds best (f* and s*) for a queue of at most so many bytes, but a page at least. It
    /// has two sets, which pay if messages are longer than a queue.
    #[must_use]
    pub const fn of_bytes(bytes: u64) -> Self {
        let (slots, fragment) = queue_of(bytes);
        Self { slots, fragment, sets: if slots > 1 { 2 } else { 1 } }
    }

    /// Queues of 512 KiB.
    pub const DEFAULT: Self = Self::of_bytes(QUEUE);

    /// Bytes of P1's own segment, its section 4.1: `⌈4p/w⌉·w + w·q + p·s·(w + ⌈f⌉)`.
    /// `None` if that is beyond 2⁶⁴.
    pub fn bytes(self, ranks: u32, page: u64) -> Option<u64> {
        let shared = pages(4 * u64::from(ranks), page)?.checked_add(page.checked_mul(self.sets.into())?)?;
        let slot = page.checked_add(pages(self.fragment, page)?)?;
        let own = slot.checked_mul(self.slots.into())?;
        own.checked_mul(ranks.into())?.checked_add(shared)
    }

    /// Bytes that P2 adds to it: `q·(⌈8 + 8p⌉ + ⌈128·p⌉)` for its rooted operations and the
    /// [`pairs`](Self::pairs) of all ranks. `None` if that is beyond 2⁶⁴.
    pub fn bytes_of_p2(self, ranks: u32, page: u64) -> Option<u64> {
        let told = told(ranks, page)?.checked_mul(self.sets.into())?;
        self.pairs(ranks, page)?.checked_mul(ranks.into())?.checked_add(told)
    }

    /// Bytes of one rank's `ctrlall[s·p]`, `⌈p·⟨8s⟩⌉`: those of p ranks are the O(p²) memory of P2's allgatherv.
    /// `None` if that is beyond 2⁶⁴.
    pub fn pairs(self, ranks: u32, page: u64) -> Option<u64> {
        pages(self.pair().checked_mul(ranks.into())?, page)
    }

    /// Bytes of the words of one pair of ranks: a word for each slot, on lines of their own.
    pub(super) const fn pair(self) -> u64 {
        (8 * self.slots as u64).next_multiple_of(LINE)
    }
}

/// The parameters of a segment. One rank plans; all compare the hash of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Params {
    /// Number of processes.
    pub ranks: u32,
    /// Bytes of a page: a power of two, 256 at least (two lines). Each rank's area starts at a page.
    pub page: u64,
    /// `K`: posted lines per rank, a power of two, 2 at least.
    pub lines: u32,
    /// Slots of a rank's queue, a power of two.
    pub queue_slots: u32,
    /// Bytes in one slot of a queue, a multiple of 64.
    pub queue_fragment: u64,
    /// The queues of papers P1 and P2, in addition to those above, if wanted.
    pub cico: Option<Cico>,
    /// Mailboxes for point-to-point messages, if wanted.
    pub mailboxes: Option<Mailboxes>,
    /// Do processes share cores? An estimate of who makes the segment: the built-in rules then choose algorithms whose processes
    /// wait for one another less often.
    pub crowded: bool,
}

impl Params {
    /// Parameters for `ranks` processes that were good in measurements (docs/explanation/parameters.md): queues of 512 KiB,
    /// or longer ones for up to 4 ranks; without the papers' queues and without mailboxes.
    pub const fn new(ranks: u32) -> Self {
        let (slots, queue_fragment) = queue_of(QUEUE);
        let queue_slots = match ranks {
            2 => 8 * slots,
            3 | 4 => 2 * slots,
            _ => slots,
        };
        Self { ranks, page: 4096, lines: 64, queue_slots, queue_fragment, cico: None, mailboxes: None, crowded: false }
    }

    /// The same with at most `bytes` for each rank's queue, but a page at least: its slots are those that paper
    /// P1's model finds best (f* and s*).
    #[must_use]
    pub const fn with_queue_bytes(self, bytes: u64) -> Self {
        let (queue_slots, queue_fragment) = queue_of(bytes);
        Self { queue_slots, queue_fragment, ..self }
    }

    /// Bytes of a rank's queue.
    pub const fn queue_bytes(&self) -> u64 {
        self.queue_fragment.saturating_mul(self.queue_slots as u64)
    }

    /// The same with the papers' queues, of 512 KiB each.
    #[must_use]
    pub const fn with_cico(self) -> Self {
        Self { cico: Some(Cico::DEFAULT), ..self }
    }

    /// The same, of processes that share cores or don't.
    #[must_use]
    pub const fn with_crowded(self, crowded: bool) -> Self {
        Self { crowded, ..self }
    }

    /// The same with mailboxes.
    #[must_use]
    pub const fn with_mailboxes(self) -> Self {
        Self { mailboxes: Some(Mailboxes::DEFAULT), ..self }
    }
}

/// Default bytes of a rank's queue, the papers' or the other.
pub(super) const QUEUE: u64 = 512 << 10;

/// Bytes that are copied in the time in which a core sees another core's store: t_W/t of paper P1's model, typical of
/// servers (`unisono measure queue`). f* takes its square root: if it is wrong by a factor of four, f is by two, and
/// time by little.
const NOTICE: u64 = 4096;

/// Slots and bytes of a slot of a queue of `bytes` (b): f* = √(b·t_W/t), down to a power of two of a page at least, and b/f
/// slots, down to a power of two.
const fn queue_of(bytes: u64) -> (u32, u64) {
    const MOST: u64 = 1 << 42;
    let bytes = if bytes > MOST { MOST } else { bytes };
    let best = (bytes * NOTICE).isqrt();
    let fragment = if best < 4096 { 4096 } else { 1 << best.ilog2() };
    let slots = if bytes < fragment { 1 } else { 1 << (bytes / fragment).ilog2() };
    (slots, fragment)
}

/// Rounded up to pages. `None` if that is beyond 2⁶⁴.
pub(super) const fn pages(bytes: u64, page: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(page)
}

/// Bytes of a set's `typesize`, `counts` and `rootready`: words that ranks only read lie side by side, and the word
/// that a rank clears has a line of its own.
pub(super) fn told(ranks: u32, page: u64) -> Option<u64> {
    pages(8 * (1 + u64::from(ranks)), page)?.checked_add(pages(LINE * u64::from(ranks), page)?)
}
