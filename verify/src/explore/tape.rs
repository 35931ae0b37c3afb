//! The explorer's region: it replays the values that a poll has seen so far, records the next access, and ignores all
//! later ones.
//!
//! A poll is deterministic, given the values that its accesses returned (their answers). So a process in the middle of
//! a poll is the machine at the poll's start and the *log* of answers. To find the next access, the poll is run again:
//! accesses in the log return its answers and do nothing, the first one after the log is recorded, and all that follow
//! are ignored and return 0 and empty bytes. The result of such a poll and its changes of private memory are thrown
//! away. 0 ends every poll: machines go on only where a word says so.

use super::access::{Access, Class, Span, Word};
use super::payload::{Payloads, Token};
use super::process::Segment;
use std::cell::{Cell, RefCell};
use std::num::NonZeroU64;
use std::rc::Rc;
use unisono_kernel::Rank;
use unisono_kernel::collective::Kind;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::op::Op;
use unisono_kernel::region::{
    Counter, CounterId, Extent, Flag, FlagId, Lap, Loan, MailId, Mailword, Region, Unreadable, Untrusted,
};

/// The log that is replayed and the access that follows it.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    log: RefCell<Vec<u64>>,
    at: Cell<usize>,
    next: Cell<Option<Access>>,
    pub(crate) payloads: RefCell<Payloads>,
}

impl Tape {
    /// Rewinds to the start of a poll whose accesses return `log`.
    pub(crate) fn rewind(&self, log: &[u64]) {
        let mut own = self.log.borrow_mut();
        own.clear();
        own.extend_from_slice(log);
        self.at.set(0);
        self.next.set(None);
    }

    /// The first access after the log, if the poll made one.
    pub(crate) fn next(&self) -> Option<Access> {
        self.next.get()
    }

    /// Makes one access; returns its answer, if the log has it.
    fn access(&self, make: impl FnOnce() -> Access) -> Option<u64> {
        let log = self.log.borrow();
        let at = self.at.get();
        self.at.set(at + 1);
        if at == log.len() {
            self.next.set(Some(make()));
        }
        log.get(at).copied()
    }

    fn answer(&self, access: Access) -> Untrusted<u64> {
        Untrusted::new(self.access(|| access).unwrap_or(0))
    }
}

/// A word as a machine sees it: every access goes to the tape.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    offset: u64,
    tape: Rc<Tape>,
}

impl Probe {
    const fn word(&self, class: Class) -> Word {
        Word { class, offset: self.offset }
    }
}

impl Flag for Probe {
    fn load_acquire(&self) -> Untrusted<u64> {
        self.tape.answer(Access::Load(self.word(Class::Flag)))
    }
    fn store_release(&self, value: u64) {
        self.tape.answer(Access::Store(self.word(Class::Flag), value));
    }
}

impl Mailword for Probe {
    fn peek_acquire(&self) -> Untrusted<u64> {
        self.tape.answer(Access::Load(self.word(Class::Mail)))
    }
    fn put_release(&self, value: u64) {
        self.tape.answer(Access::Store(self.word(Class::Mail), value));
    }
    fn clear(&self) {
        self.tape.answer(Access::Store(self.word(Class::Mail), 0));
    }
}

impl Counter for Probe {
    fn load_acquire(&self) -> Untrusted<u64> {
        self.tape.answer(Access::Load(self.word(Class::Counter)))
    }
    fn store_release(&self, value: u64) {
        self.tape.answer(Access::Store(self.word(Class::Counter), value));
    }
    fn fetch_add(&self, n: u64) -> Untrusted<u64> {
        self.tape.answer(Access::Add(self.word(Class::Counter), n))
    }
    fn fetch_sub(&self, n: u64) -> Untrusted<u64> {
        self.tape.answer(Access::Add(self.word(Class::Counter), n.wrapping_neg()))
    }
    fn claim(&self, from: u64, to: u64) -> Untrusted<u64> {
        self.tape.answer(Access::Claim(self.word(Class::Counter), from, to))
    }
}

/// Does a rank lend its messages, can it read what others lend, but for one of them, and do laps of its queue have one slot and two in turn?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) rank: Rank,
    pub(crate) lends: bool,
    pub(crate) reads: bool,
    pub(crate) reads_not: Option<Rank>,
    pub(crate) laps: bool,
}

/// A segment of probes, and what its members lend each other: bytes behind the segment, which a member writes when it
/// lends its message, and again when its operation has ended ([`Self::take_back`]).
#[derive(Clone, Debug)]
pub(crate) struct Probes {
    tape: Rc<Tape>,
    begin: u64,
    words: Vec<Probe>,
    beyond: Probe,
    /// Bytes of the layout, and those that each member can lend.
    bytes: u64,
    lent: u64,
    /// The member whose poll goes on, and whether it has lent something in it.
    seat: Cell<(Seat, bool)>,
}

impl Probes {
    /// A segment at offset `begin` from the first one, whose accesses go to `tape`.
    pub(crate) fn new(tape: Rc<Tape>, begin: u64, segment: &Segment) -> Self {
        let probe = |offset| Probe { offset: begin + offset, tape: Rc::clone(&tape) };
        let bytes = segment.layout.bytes();
        let (words, beyond) = ((0..bytes / 8).map(|index| probe(8 * index)).collect(), probe(bytes));
        Self { tape, begin, words, beyond, bytes, lent: segment.lent, seat: Cell::default() }
    }

    /// A poll of this member begins.
    pub(crate) fn sit(&self, seat: Seat) {
        self.seat.set((seat, false));
    }

    /// Has the member lent something in this poll?
    pub(crate) fn has_lent(&self) -> bool {
        self.seat.get().1
    }

    /// The member writes all that it lends: its operation has ended.
    pub(crate) fn take_back(&self) {
        let at = self.loan(self.seat.get().0.rank, 0, self.lent);
        // SAFETY: the bytes are a local variable; that no member reads what they replace is what the explorer checks.
        unsafe { self.put(at, Buf::of(&vec![0x99; at.len as usize])) };
    }

    /// Bytes `from .. from + len` of what `rank` lends, as far as it can.
    fn loan(&self, rank: Rank, from: u64, len: u64) -> Span {
        let from = from.min(self.lent);
        let offset = self.begin + self.bytes + u64::from(rank) * self.lent + from;
        Span { offset, len: len.min(self.lent - from) }
    }

    fn reads(&self, lender: Rank) -> bool {
        let (seat, _) = self.seat.get();
        seat.reads && seat.reads_not != Some(lender)
    }

    /// Copies `src`, which is as long as `at` at least.
    ///
    /// # Safety
    /// `src` is readable.
    unsafe fn put(&self, at: Span, src: Buf) {
        if at.len == 0 {
            return;
        }
        self.tape.access(|| Access::BeginWrite(at));
        self.tape.access(|| {
            // SAFETY: the caller's promise; `at` is no longer than `src`.
            let bytes = unsafe { core::slice::from_raw_parts(src.ptr(), at.len as usize) };
            Access::EndWrite(at, self.tape.payloads.borrow_mut().token(bytes))
        });
    }

    /// Copies to `dst`, which is as long as `at` at least.
    ///
    /// # Safety
    /// `dst` is writable.
    unsafe fn get(&self, at: Span, dst: Buf) {
        if at.len == 0 {
            return;
        }
        self.tape.access(|| Access::BeginRead(at));
        let token = self.tape.access(|| Access::EndRead(at));
        let payloads = self.tape.payloads.borrow();
        let bytes = token.map_or(&[][..], |token| payloads.bytes(Token(token)));
        let len = bytes.len().min(at.len as usize);
        // SAFETY: the caller's promise: `dst` is writable, and as long as `at`; payloads lie elsewhere.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), dst.ptr(), len) };
        // The machine may take the bytes for initialised even in a poll that is thrown away.
        // SAFETY: as above, for what no payload has filled.
        unsafe { core::ptr::write_bytes(dst.ptr().wrapping_add(len), 0, at.len as usize - len) };
    }

    /// Folds the whole elements of `at` into `acc`, which is as long at least.
    ///
    /// # Safety
    /// `acc` is writable.
    unsafe fn fold_from(&self, at: Span, acc: Buf, op: &Op) {
        let at = Span { len: op.whole(at.len) * op.element(), ..at };
        if at.len == 0 {
            return;
        }
        self.tape.access(|| Access::BeginRead(at));
        let Some(token) = self.tape.access(|| Access::EndRead(at)) else {
            return;
        };
        let payloads = self.tape.payloads.borrow();
        let bytes = payloads.bytes(Token(token));
        let count = op.whole(at.len.min(bytes.len() as u64));
        // SAFETY: the caller's promise: `acc` is writable, and as long as `at`; payloads lie elsewhere.
        unsafe { op.fold_raw(bytes.as_ptr(), acc.ptr(), count) };
    }

    fn word(&self, offset: u64) -> &Probe {
        self.words.get((offset / 8) as usize).unwrap_or(&self.beyond)
    }
}

// SAFETY: an id is one word of the explored world in every member, and words start at zero there;
// `write` and `read` touch exactly min(extent, buffer) bytes of the caller's buffer, `fold` the whole
// elements among them, and no memory of a segment.
unsafe impl Region for Probes {
    type Flag = Probe;
    type Mailword = Probe;
    type Counter = Probe;

    fn flag(&self, id: FlagId) -> &Probe {
        self.word(id.offset())
    }
    fn mail(&self, id: MailId) -> &Probe {
        self.word(id.offset())
    }
    fn counter(&self, id: CounterId) -> &Probe {
        self.word(id.offset())
    }

    unsafe fn write(&self, at: Extent, src: Buf) {
        // SAFETY: the caller's promise.
        unsafe { self.put(Span::of(self.begin, at.part(0, src.len() as u64)), src) }
    }

    unsafe fn read(&self, at: Extent, dst: Buf) {
        // SAFETY: the caller's promise.
        unsafe { self.get(Span::of(self.begin, at.part(0, dst.len() as u64)), dst) }
    }

    unsafe fn fold(&self, at: Extent, acc: Buf, op: &Op) {
        // SAFETY: the caller's promise.
        unsafe { self.fold_from(Span::of(self.begin, at.part(0, acc.len() as u64)), acc, op) }
    }

    fn lap(&self, operation: u64) -> Lap {
        let seat = self.seat.get().0;
        if seat.laps { Lap::wide(1 << ((operation + u64::from(seat.rank)) % 2)) } else { Lap::ALL }
    }

    /// One loan in a poll: results, which are asked for after the message, change while they are lent, and are not.
    fn lend(&self, memory: Buf, _: Kind) -> Option<Loan> {
        let (seat, lent) = self.seat.get();
        if !seat.lends || lent || memory.is_empty() || memory.len() as u64 > self.lent {
            return None;
        }
        self.seat.set((seat, true));
        // SAFETY: the caller's promise for the memory, and the explorer checks the rest.
        unsafe { self.put(self.loan(seat.rank, 0, memory.len() as u64), memory) };
        Some(Loan { way: NonZeroU64::MIN, at: 0 })
    }

    fn borrows(&self) -> bool {
        self.seat.get().0.reads
    }

    unsafe fn fetch(&self, lender: Rank, _: Loan, from: u64, dst: Buf) -> Result<(), Unreadable> {
        if !self.reads(lender) {
            return Err(Unreadable { changed: false });
        }
        // SAFETY: the caller's promise.
        unsafe { self.get(self.loan(lender, from, dst.len() as u64), dst) };
        Ok(())
    }

    unsafe fn fold_loan(&self, lender: Rank, _: Loan, from: u64, acc: Buf, op: &Op) -> Result<(), Unreadable> {
        if !self.reads(lender) {
            return Err(Unreadable { changed: false });
        }
        // SAFETY: the caller's promise.
        unsafe { self.fold_from(self.loan(lender, from, acc.len() as u64), acc, op) };
        Ok(())
    }
}
