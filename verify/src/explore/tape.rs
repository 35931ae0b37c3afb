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
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::op::Op;
use unisono_kernel::region::{Counter, CounterId, Extent, Flag, FlagId, MailId, Mailword, Region, Untrusted};

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

/// A segment of probes.
#[derive(Clone, Debug)]
pub(crate) struct Probes {
    tape: Rc<Tape>,
    begin: u64,
    words: Vec<Probe>,
    beyond: Probe,
}

impl Probes {
    /// A segment of `bytes` bytes at offset `begin` from the first one, whose accesses go to `tape`.
    pub(crate) fn new(tape: Rc<Tape>, begin: u64, bytes: u64) -> Self {
        let probe = |offset| Probe { offset: begin + offset, tape: Rc::clone(&tape) };
        let (words, beyond) = ((0..bytes / 8).map(|index| probe(8 * index)).collect(), probe(bytes));
        Self { tape, begin, words, beyond }
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
        let at = at.part(0, src.len() as u64);
        if at.is_empty() {
            return;
        }
        self.tape.access(|| Access::BeginWrite(Span::of(self.begin, at)));
        self.tape.access(|| {
            // SAFETY: the caller's promise: `src` is readable, and the extent is cut to its length.
            let bytes = unsafe { core::slice::from_raw_parts(src.ptr(), at.len() as usize) };
            Access::EndWrite(Span::of(self.begin, at), self.tape.payloads.borrow_mut().token(bytes))
        });
    }

    unsafe fn read(&self, at: Extent, dst: Buf) {
        let at = at.part(0, dst.len() as u64);
        if at.is_empty() {
            return;
        }
        self.tape.access(|| Access::BeginRead(Span::of(self.begin, at)));
        let token = self.tape.access(|| Access::EndRead(Span::of(self.begin, at)));
        let payloads = self.tape.payloads.borrow();
        let bytes = token.map_or(&[][..], |token| payloads.bytes(Token(token)));
        let len = bytes.len().min(at.len() as usize);
        // SAFETY: the caller's promise: `dst` is writable, and `at` is cut to its length; payloads lie elsewhere.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), dst.ptr(), len) };
        // The machine may take the bytes for initialised even in a poll that is thrown away.
        // SAFETY: as above, for what no payload has filled.
        unsafe { core::ptr::write_bytes(dst.ptr().wrapping_add(len), 0, at.len() as usize - len) };
    }

    unsafe fn fold(&self, at: Extent, acc: Buf, op: &Op) {
        let count = op.whole(at.len().min(acc.len() as u64));
        let at = at.part(0, count * op.element());
        if at.is_empty() {
            return;
        }
        self.tape.access(|| Access::BeginRead(Span::of(self.begin, at)));
        let Some(token) = self.tape.access(|| Access::EndRead(Span::of(self.begin, at))) else {
            return;
        };
        let payloads = self.tape.payloads.borrow();
        let bytes = payloads.bytes(Token(token));
        let count = count.min(op.whole(bytes.len() as u64));
        // SAFETY: the caller's promise: `acc` is writable, and `at` is cut to its length; payloads lie elsewhere.
        unsafe { op.fold_raw(bytes.as_ptr(), acc.ptr(), count) };
    }
}
