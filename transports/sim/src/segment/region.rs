//! The segment as a rank sees it: each access is charged to the rank's clock.

use super::turns::{At, Clock};
use unisono_kernel::Rank;
use unisono_kernel::collective::Kind;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::op::Op;
use unisono_kernel::region::{
    Counter, CounterId, Extent, Flag, FlagId, Loan, MailId, Mailword, Region, Unreadable, Untrusted, Word,
};
use unisono_local::Segment;

/// A rank's view of the segment.
#[derive(Clone, Debug)]
pub struct View {
    segment: Segment,
    clock: Clock,
}

impl View {
    pub(super) const fn new(segment: Segment, clock: Clock) -> Self {
        Self { segment, clock }
    }

    /// This rank's core has these bytes in its cache: nothing is charged.
    pub(super) fn has(&self, at: Extent, bytes: &[u8]) {
        let at = at.part(0, bytes.len() as u64);
        // SAFETY: the caller's algorithm excludes that another rank uses the extent now, and one rank runs at a time.
        self.clock.has(at.offset(), at.len(), || unsafe { self.segment.write(at, Buf::of(bytes)) });
    }

    /// Bytes that this rank uses where they lie: nothing is charged.
    pub(super) fn look(&self, at: Extent, bytes: &mut [u8]) {
        // SAFETY: as above; `bytes` is a mutable borrow.
        unsafe { self.segment.read(at, Buf::of_mut(bytes)) }
    }
}

/// A word of the segment. The rank whose thread accesses it is charged.
#[repr(transparent)]
#[derive(Debug)]
pub struct SimWord(Word);

impl SimWord {
    const fn of(word: &Word) -> &Self {
        // SAFETY: a transparent wrapper.
        unsafe { &*std::ptr::from_ref(word).cast::<Self>() }
    }

    fn at(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn load<A>(&self, access: impl FnOnce() -> A) -> A {
        match Clock::mine() {
            Some(clock) => clock.load(self.at(), access),
            None => access(),
        }
    }

    fn store(&self, value: u64, access: impl FnOnce()) {
        match Clock::mine() {
            Some(clock) => clock.store(self.at(), value, access),
            None => access(),
        }
    }

    fn exchange<A>(&self, access: impl FnOnce() -> (A, u64)) -> A {
        match Clock::mine() {
            Some(clock) => clock.exchange(self.at(), access),
            None => access().0,
        }
    }
}

impl Flag for SimWord {
    fn load_acquire(&self) -> Untrusted<u64> {
        self.load(|| Flag::load_acquire(&self.0))
    }

    fn store_release(&self, value: u64) {
        self.store(value, || Flag::store_release(&self.0, value));
    }
}

impl Mailword for SimWord {
    fn peek_acquire(&self) -> Untrusted<u64> {
        self.load(|| self.0.peek_acquire())
    }

    fn put_release(&self, value: u64) {
        self.store(value, || self.0.put_release(value));
    }

    fn clear(&self) {
        self.store(0, || self.0.clear());
    }
}

impl Counter for SimWord {
    fn load_acquire(&self) -> Untrusted<u64> {
        self.load(|| Counter::load_acquire(&self.0))
    }

    fn store_release(&self, value: u64) {
        self.store(value, || Counter::store_release(&self.0, value));
    }

    fn fetch_add(&self, n: u64) -> Untrusted<u64> {
        self.exchange(|| {
            let before = self.0.fetch_add(n);
            (before, before.unchecked().wrapping_add(n))
        })
    }

    fn fetch_sub(&self, n: u64) -> Untrusted<u64> {
        self.exchange(|| {
            let before = self.0.fetch_sub(n);
            (before, before.unchecked().wrapping_sub(n))
        })
    }

    fn claim(&self, from: u64, to: u64) -> Untrusted<u64> {
        self.exchange(|| {
            let before = self.0.claim(from, to);
            (before, if before.is(from) { to } else { before.unchecked() })
        })
    }
}

// SAFETY: forwards to a segment that keeps the contract; what it adds changes no bytes.
unsafe impl Region for View {
    type Flag = SimWord;
    type Mailword = SimWord;
    type Counter = SimWord;

    fn flag(&self, id: FlagId) -> &SimWord {
        SimWord::of(self.segment.flag(id))
    }

    fn mail(&self, id: MailId) -> &SimWord {
        SimWord::of(self.segment.mail(id))
    }

    fn counter(&self, id: CounterId) -> &SimWord {
        SimWord::of(self.segment.counter(id))
    }

    fn claim(&self, at: Extent) {
        if !at.is_empty() {
            self.clock.claim(at.offset(), at.len());
        }
    }

    unsafe fn write(&self, at: Extent, src: Buf) {
        let at = at.part(0, src.len() as u64);
        // SAFETY: the caller's promise, passed on.
        self.clock.write(at.offset(), at.len(), src.ptr().addr(), || unsafe { self.segment.write(at, src) });
    }

    unsafe fn read(&self, at: Extent, dst: Buf) {
        let at = at.part(0, dst.len() as u64);
        // SAFETY: the caller's promise, passed on.
        let access = || unsafe { self.segment.read(at, dst) };
        self.clock.read(At::Segment(at.offset()), at.len(), dst.ptr().addr(), false, access);
    }

    unsafe fn fold(&self, at: Extent, acc: Buf, op: &Op) {
        let at = at.part(0, acc.len() as u64);
        // SAFETY: the caller's promise, passed on.
        let access = || unsafe { self.segment.fold(at, acc, op) };
        self.clock.read(At::Segment(at.offset()), at.len(), acc.ptr().addr(), true, access);
    }

    unsafe fn fold_within(&self, at: Extent, acc: Extent, op: &Op) {
        let at = at.part(0, acc.len());
        // SAFETY: the caller's promise, passed on.
        let access = || unsafe { self.segment.fold_within(at, acc, op) };
        self.clock.stream_within(at.offset(), acc.offset(), at.len(), access);
    }

    unsafe fn fold_private(&self, left: Buf, acc: Buf, op: &Op) {
        self.clock.fold(left.ptr().addr(), acc.ptr().addr(), left.len().min(acc.len()) as u64);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.segment.fold_private(left, acc, op) }
    }

    unsafe fn copy_private(&self, src: Buf, dst: Buf) {
        self.clock.copy(src.ptr().addr(), dst.ptr().addr(), dst.len() as u64);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.segment.copy_private(src, dst) }
    }

    fn lend(&self, memory: Buf, kind: Kind) -> Option<Loan> {
        let loan = self.segment.lend(memory, kind)?;
        self.clock.lend(memory.ptr().addr(), memory.len() as u64);
        Some(loan)
    }

    fn borrows(&self) -> bool {
        self.segment.borrows()
    }

    unsafe fn fetch(&self, lender: Rank, loan: Loan, from: u64, dst: Buf) -> Result<(), Unreadable> {
        let at = At::Lent { lender, address: loan.at.wrapping_add(from) as usize };
        // SAFETY: the caller's promise, passed on.
        let access = || unsafe { self.segment.fetch(lender, loan, from, dst) };
        self.clock.read(at, dst.len() as u64, dst.ptr().addr(), false, access)
    }

    unsafe fn fold_loan(&self, lender: Rank, loan: Loan, from: u64, acc: Buf, op: &Op) -> Result<(), Unreadable> {
        let at = At::Lent { lender, address: loan.at.wrapping_add(from) as usize };
        // SAFETY: the caller's promise, passed on.
        let access = || unsafe { self.segment.fold_loan(lender, loan, from, acc, op) };
        self.clock.read(at, acc.len() as u64, acc.ptr().addr(), true, access)
    }
}
