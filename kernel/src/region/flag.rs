//! The words of a segment, and the one home of memory orderings.
//!
//! | word | writers | store | load | what the pair publishes |
//! |---|---|---|---|---|
//! | [`Flag`] | one, only grows | release | acquire | all that the writer did before |
//! | [`Mailword`] | one puts, the other clears | put: release, clear: relaxed | acquire | the fragment named by the value; the clear is published by the counter that retires the set |
//! | [`Counter`] | several | add, sub, claim: acquire + release | acquire | the arrivals before it, through the chain of read-modify-writes |
//!
//! Each ordering has a mutant in `verify` that loom must catch.

use core::sync::atomic::{AtomicU64, Ordering};

/// A value read from the segment: a peer's word, not to be used before it is checked against a private one.
#[derive(Clone, Copy, Debug)]
pub struct Untrusted<T>(T);

impl Untrusted<u64> {
    /// Marks a value as read from the segment.
    #[inline]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// Where the value stands against a private one.
    #[inline]
    pub fn against(self, private: u64) -> core::cmp::Ordering {
        self.0.cmp(&private)
    }

    /// At least `bound`?
    #[inline]
    pub const fn at_least(self, bound: u64) -> bool {
        self.0 >= bound
    }

    /// Exactly `private`?
    #[inline]
    pub const fn is(self, private: u64) -> bool {
        self.0 == private
    }

    /// The value, cut to a private bound: safe to use as a count.
    #[inline]
    pub const fn capped(self, bound: u64) -> u64 {
        if self.0 < bound { self.0 } else { bound }
    }

    /// The raw value: for reports, and for decoders that check each field.
    #[inline]
    pub const fn unchecked(self) -> u64 {
        self.0
    }
}

/// A word with one writer; it only grows.
pub trait Flag {
    /// Loads; what the writer did before the store is visible afterwards.
    fn load_acquire(&self) -> Untrusted<u64>;
    /// Stores; all that this process did before is visible to who loads the value.
    fn store_release(&self, value: u64);
}

/// A control word of the papers: one process puts a nonzero value, the other takes and clears it.
pub trait Mailword {
    /// Loads; what the writer did before `put_release` is visible when the value is not zero.
    fn peek_acquire(&self) -> Untrusted<u64>;
    /// Puts a value.
    fn put_release(&self, value: u64);
    /// Clears the word. Not a publication: a later release (the counter that retires the set) orders it.
    fn clear(&self);
}

/// A word with several writers.
pub trait Counter {
    /// Loads; what was done before the adds and subs seen is visible afterwards.
    fn load_acquire(&self) -> Untrusted<u64>;
    /// Stores, by the one process that the protocol lets store now.
    fn store_release(&self, value: u64);
    /// Adds, wrapping; answers the value before.
    fn fetch_add(&self, n: u64) -> Untrusted<u64>;
    /// Subtracts, wrapping; answers the value before.
    fn fetch_sub(&self, n: u64) -> Untrusted<u64>;
    /// Stores `to` if the word is `from`: the first writer wins. The value before is the answer.
    fn claim(&self, from: u64, to: u64) -> Untrusted<u64>;
}

/// A word in mapped bytes (docs/explanation/memory-model.md, R1: the only reference to a segment's bytes).
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Word(AtomicU64);

impl Word {
    /// A private word, for ids beyond the segment.
    pub const fn zero() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The word at `ptr`.
    ///
    /// # Safety
    /// `ptr` is aligned to 8, stays mapped for `'a`, and is only accessed as 64-bit atomics during it (R1, R4).
    #[inline]
    pub const unsafe fn at<'a>(ptr: *mut u64) -> &'a Self {
        // SAFETY: the caller's promise; Word is a transparent AtomicU64.
        unsafe { &*ptr.cast::<Self>() }
    }

    /// Loads payload: ordered by the flag that published it, atomic so that a hostile writer is no data race.
    #[inline]
    pub fn load_payload(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Stores payload, to be published by a flag.
    #[inline]
    pub fn store_payload(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl Flag for Word {
    #[inline]
    fn load_acquire(&self) -> Untrusted<u64> {
        Untrusted(self.0.load(Ordering::Acquire))
    }
    #[inline]
    fn store_release(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }
}

impl Mailword for Word {
    #[inline]
    fn peek_acquire(&self) -> Untrusted<u64> {
        Untrusted(self.0.load(Ordering::Acquire))
    }
    #[inline]
    fn put_release(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }
    #[inline]
    fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Counter for Word {
    #[inline]
    fn load_acquire(&self) -> Untrusted<u64> {
        Untrusted(self.0.load(Ordering::Acquire))
    }
    #[inline]
    fn store_release(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }
    #[inline]
    fn fetch_add(&self, n: u64) -> Untrusted<u64> {
        Untrusted(self.0.fetch_add(n, Ordering::AcqRel))
    }
    #[inline]
    fn fetch_sub(&self, n: u64) -> Untrusted<u64> {
        Untrusted(self.0.fetch_sub(n, Ordering::AcqRel))
    }
    #[inline]
    fn claim(&self, from: u64, to: u64) -> Untrusted<u64> {
        match self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire) {
            Ok(before) | Err(before) => Untrusted(before),
        }
    }
}
