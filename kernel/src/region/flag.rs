//! The words of a segment. No other file of the kernel names a memory ordering.
//!
//! | word | writers | store | load | what the pair publishes |
//! |---|---|---|---|---|
//! | [`Flag`] | one, only grows | release | acquire | all that the writer did before |
//! | [`Mailword`] | one process sets it, another clears it | put: release, clear: relaxed | acquire | the fragment named by the value; the clear is published by the counter that retires the set |
//! | [`Counter`] | several | add, sub, claim: acquire + release | acquire | the arrivals before it, through the chain of read-modify-writes |
//!
//! For each ordering, `verify` has a mutant with a weaker one, which loom must catch.

use core::sync::atomic::{AtomicU64, Ordering};

/// A value read from the segment: a peer's word, which must be checked against a private value before use.
#[derive(Clone, Copy, Debug)]
pub struct Untrusted<T>(T);

impl Untrusted<u64> {
    /// Marks a value as read from the segment.
    #[inline]
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// Compares the value with a private one.
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

    /// The value, but `bound` at most: safe to use as a count.
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

/// A word that one process writes and that only grows.
pub trait Flag {
    /// Loads; what the writer did before the store is visible afterwards.
    fn load_acquire(&self) -> Untrusted<u64>;
    /// Stores; all that this process did before is visible to a process that loads the value.
    fn store_release(&self, value: u64);
}

/// A control word of the papers: one process stores a nonzero value, another reads and clears it.
pub trait Mailword {
    /// Loads; what the writer did before `put_release` is visible if the value is not zero.
    fn peek_acquire(&self) -> Untrusted<u64>;
    /// Stores a value.
    fn put_release(&self, value: u64);
    /// Clears the word. This publishes nothing: a later release (the counter that retires the set) orders it.
    fn clear(&self);
}

/// A word that several processes write.
pub trait Counter {
    /// Loads; what other processes did before the additions and subtractions in the value is visible afterwards.
    fn load_acquire(&self) -> Untrusted<u64>;
    /// Stores. Only the one process that the protocol lets store now may call it.
    fn store_release(&self, value: u64);
    /// Adds, wrapping; returns the value before.
    fn fetch_add(&self, n: u64) -> Untrusted<u64>;
    /// Subtracts, wrapping; returns the value before.
    fn fetch_sub(&self, n: u64) -> Untrusted<u64>;
    /// Stores `to` if the word is `from`: the first writer wins. Returns the value before.
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

    /// Loads payload. The flag that published it orders the load; it is atomic, so that a faulty writer makes no data
    /// race.
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
