//! The region that wraps another one and keeps its shadow.

use super::bytes::{Bytes, Clock, Event, Race, join};
use super::loans::Loans;
use super::promises::{Breach, Promises};
use crate::explore::{Names, Span};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use unisono_kernel::Rank;
use unisono_kernel::collective::Kind;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::op::Op;
use unisono_kernel::region::LINE;
use unisono_kernel::region::{
    Base, Counter, CounterId, Extent, Flag, FlagId, Lap, Layout, Loan, MailId, Mailword, Region, Unreadable, Untrusted,
};

/// The shadow of a segment, for all of its members.
#[derive(Clone)]
pub struct Shadow(Arc<Mutex<Books>>);

struct Books {
    layout: Layout,
    /// By rank: its vector clock. A rank's own component counts its releases, and is 1 at first.
    clocks: Vec<Vec<u32>>,
    /// By offset of a word: the clock that was released with its value, if there is one.
    words: HashMap<u64, Vec<u32>>,
    bytes: Bytes,
    /// By rank: what it lends.
    loans: Vec<Loans>,
    promises: Promises,
    cells: Vec<u64>,
}

impl fmt::Debug for Shadow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shadow").finish_non_exhaustive()
    }
}

impl Shadow {
    /// The shadow of a segment on which all members begin at `base`.
    pub fn new(layout: Layout, base: Base) -> Self {
        let ranks = layout.ranks() as usize;
        let promises = Promises::new(layout);
        let mut cells = vec![0; promises.cells()];
        promises.begin(&mut cells, base);
        let clock = |rank| (0..ranks).map(|other| u32::from(other == rank)).collect();
        let clocks = (0..ranks).map(clock).collect();
        let (words, bytes, loans) = (HashMap::new(), Bytes::default(), vec![Loans::default(); ranks]);
        Self(Arc::new(Mutex::new(Books { layout, clocks, words, bytes, loans, promises, cells })))
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // A thread that breaks a rule panics, and the records stay consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    /// `rank` loads the word: what happened before the store happens before the load.
    fn acquire(&mut self, rank: Rank, offset: u64) {
        if let Some(carried) = self.words.get(&offset) {
            join(&mut self.clocks[rank as usize], carried);
        }
    }

    /// `rank` stores to the word.
    fn release(&mut self, rank: Rank, offset: u64) {
        let own = &mut self.clocks[rank as usize];
        self.words.insert(offset, own.clone());
        own[rank as usize] += 1;
    }

    /// `rank` reads or writes an extent: the rule that it breaks, if it does.
    fn touch(&mut self, rank: Rank, at: Extent, writes: bool) -> Result<(), String> {
        let (event, clock) = now(&self.clocks, rank);
        let raced = self.bytes.touch(event, clock, Span::of(0, at), writes);
        let kept = self.promises.touch(&mut self.cells, rank, at.offset(), writes);
        both(kept, raced).map_err(|fault| {
            let (verb, place) =
                (if writes { "writes" } else { "reads" }, Names::new(&self.layout).span(Span::of(0, at)));
            format!("rank {rank} {verb} {place}: {fault}")
        })
    }

    /// `rank` lends memory.
    fn lend(&mut self, rank: Rank, loan: Loan, memory: Buf) -> Result<(), String> {
        let (event, clock) = now(&self.clocks, rank);
        let raced = self.loans[rank as usize].add(event, clock, loan, memory);
        both(self.promises.write_loan(&mut self.cells, rank, rank), raced)
            .map_err(|fault| format!("rank {rank} lends {} bytes: {fault}", memory.len()))
    }

    /// `rank` reads `len` bytes, from byte `from` on, of what `lender` lends.
    fn borrow(&mut self, rank: Rank, lender: Rank, loan: Loan, (from, len): (u64, u64)) -> Result<(), String> {
        let (event, clock) = now(&self.clocks, rank);
        let raced = self.loans.get_mut(lender as usize).and_then(|lent| lent.read(event, clock, loan, (from, len)));
        let kept = match raced {
            Some(_) => self.promises.read_loan(&mut self.cells, rank, lender),
            None => Err(Breach::Unlent),
        };
        both(kept, raced.unwrap_or(Ok(()))).map_err(|fault| {
            format!("rank {rank} reads [{from}..{}] of what rank {lender} lends: {fault}", from.saturating_add(len))
        })
    }

    /// `rank` writes to private memory, which it may have lent.
    fn write_private(&mut self, rank: Rank, memory: Buf) -> Result<(), String> {
        let (event, clock) = now(&self.clocks, rank);
        for (lender, lent) in (0..).zip(&mut self.loans) {
            let kept = if lender != rank && lent.lends(memory) { Err(Breach::Lent(lender)) } else { Ok(()) };
            both(kept, lent.write(event, clock, memory)).map_err(|fault| {
                format!("rank {rank} writes {} bytes where rank {lender} lends: {fault}", memory.len())
            })?;
        }
        Ok(())
    }

    /// `rank` has ended its operation, and its memory is its own again.
    fn end_loans(&mut self, rank: Rank) -> Result<(), String> {
        let lent = std::mem::take(&mut self.loans[rank as usize]);
        if lent.is_empty() {
            return Ok(());
        }
        let (event, clock) = now(&self.clocks, rank);
        both(self.promises.write_loan(&mut self.cells, rank, rank), lent.end(event, clock))
            .map_err(|fault| format!("rank {rank} ends its operation, in which it lends: {fault}"))
    }

    /// Panics if `rank`'s access to the word breaks a rule.
    fn keep(&self, rank: Rank, offset: u64, kept: Result<(), Breach>) {
        kept.unwrap_or_else(|breach| panic!("rank {rank} at {}: {breach}", Names::new(&self.layout).at(offset)));
    }
}

/// The present point of a process.
fn now(clocks: &[Vec<u32>], rank: Rank) -> (Event, &Clock) {
    let clock = &clocks[rank as usize];
    (Event { rank, number: clock[rank as usize] }, clock)
}

/// The rule that is broken: S2 or S3, or else S1.
fn both(kept: Result<(), Breach>, raced: Result<(), Race>) -> Result<(), String> {
    kept.map_err(|breach| breach.to_string())?;
    raced.map_err(|race| format!("S1: {race}"))
}

/// One member's view of a region that has a shadow.
///
/// A rule that is broken is a panic in the access that breaks it.
#[derive(Debug)]
pub struct Shadowed<R> {
    view: Arc<View<R>>,
    flags: Table<R, FlagId>,
    mails: Table<R, MailId>,
    counters: Table<R, CounterId>,
}

#[derive(Debug)]
struct View<R> {
    region: R,
    shadow: Shadow,
    rank: Rank,
}

impl<R: Region> Shadowed<R> {
    /// `rank`'s view of `region`, which is as long as `layout` says.
    pub fn new(region: R, shadow: &Shadow, layout: &Layout, rank: Rank) -> Self {
        let view = Arc::new(View { region, shadow: shadow.clone(), rank });
        let (flags, mails, counters) = (Table::new(layout), Table::new(layout), Table::new(layout));
        Self { view, flags, mails, counters }
    }

    fn touch(&self, at: Extent, len: usize, writes: bool) {
        let View { shadow, rank, .. } = &*self.view;
        let at = at.part(0, len as u64);
        if !at.is_empty() {
            let touched = shadow.books().touch(*rank, at, writes);
            touched.unwrap_or_else(|fault| panic!("{fault}"));
        }
    }

    /// This process writes to the first `most` bytes of private memory.
    fn fills(&self, memory: Buf, most: u64) {
        let View { shadow, rank, .. } = &*self.view;
        let memory = Buf::new(memory.ptr(), memory.len().min(most as usize));
        let written = shadow.books().write_private(*rank, memory);
        written.unwrap_or_else(|fault| panic!("{fault}"));
    }

    fn borrow(&self, lender: Rank, loan: Loan, from: u64, len: usize) {
        let View { shadow, rank, .. } = &*self.view;
        let borrowed = shadow.books().borrow(*rank, lender, loan, (from, len as u64));
        borrowed.unwrap_or_else(|fault| panic!("{fault}"));
    }
}

/// The words of one kind, by line and place in it; each is made when it is used for the first time.
#[derive(Debug)]
struct Table<R, I> {
    lines: Box<[OnceLock<Line<R, I>>]>,
    beyond: OnceLock<Watched<R, I>>,
}

const WORDS: usize = LINE as usize / 8;
type Line<R, I> = Box<[OnceLock<Watched<R, I>>; WORDS]>;

impl<R, I: Copy> Table<R, I> {
    fn new(layout: &Layout) -> Self {
        let lines = (0..layout.bytes().div_ceil(LINE)).map(|_| OnceLock::new()).collect();
        Self { lines, beyond: OnceLock::new() }
    }

    fn word(&self, view: &Arc<View<R>>, id: I, offset: u64) -> &Watched<R, I> {
        let index = (offset / 8) as usize;
        let place = match self.lines.get(index / WORDS) {
            Some(line) => &line.get_or_init(|| Box::new([const { OnceLock::new() }; WORDS]))[index % WORDS],
            None => &self.beyond,
        };
        place.get_or_init(|| Watched { view: Arc::clone(view), id })
    }
}

/// A word whose loads and stores are recorded as order.
#[derive(Debug)]
pub struct Watched<R, I> {
    view: Arc<View<R>>,
    id: I,
}

impl<R, I> Watched<R, I> {
    /// Makes an access and records it, with no other process's access between the two.
    fn entered<A>(&self, access: impl FnOnce(&R) -> A, enter: impl FnOnce(&mut Books, Rank, &A)) -> A {
        let View { region, shadow, rank } = &*self.view;
        let mut books = shadow.books();
        let answer = access(region);
        enter(&mut books, *rank, &answer);
        answer
    }
}

impl<R: Region> Watched<R, FlagId> {
    fn publish(&self, value: u64, store: impl FnOnce(&R)) {
        let offset = self.id.offset();
        self.entered(store, |books, rank, ()| {
            let kept = books.promises.store(&mut books.cells, rank, offset, value);
            books.keep(rank, offset, kept);
            if offset == books.layout.done(rank).offset() {
                books.end_loans(rank).unwrap_or_else(|fault| panic!("{fault}"));
            }
            books.release(rank, offset);
        });
    }
}

impl<R: Region> Flag for Watched<R, FlagId> {
    fn load_acquire(&self) -> Untrusted<u64> {
        let load = |region: &R| region.flag(self.id).load_acquire();
        self.entered(load, |books, rank, _| books.acquire(rank, self.id.offset()))
    }
    fn store_release(&self, value: u64) {
        self.publish(value, |region| region.flag(self.id).store_release(value));
    }
}

impl<R: Region> Watched<R, MailId> {
    /// Puts `value`, or clears the word.
    fn put(&self, value: u64, put: impl FnOnce(&R::Mailword), order: impl FnOnce(&mut Books, Rank, u64)) {
        let put = |region: &R| {
            let word = region.mail(self.id);
            let before = word.peek_acquire().unchecked();
            put(word);
            (before, value)
        };
        self.entered(put, |books, rank, &change| {
            let offset = self.id.offset();
            let kept = books.promises.put(&mut books.cells, rank, offset, change);
            books.keep(rank, offset, kept);
            order(books, rank, offset);
        });
    }
}

impl<R: Region> Mailword for Watched<R, MailId> {
    fn peek_acquire(&self) -> Untrusted<u64> {
        let load = |region: &R| region.mail(self.id).peek_acquire();
        self.entered(load, |books, rank, _| books.acquire(rank, self.id.offset()))
    }
    fn put_release(&self, value: u64) {
        self.put(value, |word| word.put_release(value), Books::release);
    }
    fn clear(&self) {
        // Relaxed: it orders nothing for a process that sees it.
        self.put(0, |word| word.clear(), |books, _, offset| drop(books.words.remove(&offset)));
    }
}

impl<R: Region> Watched<R, CounterId> {
    /// A read-modify-write: the clock that the word carried is kept and joined.
    fn change(&self, change: impl FnOnce(&R) -> Untrusted<u64>, stores: impl FnOnce(u64) -> bool) -> Untrusted<u64> {
        self.entered(change, |books, rank, before| {
            books.acquire(rank, self.id.offset());
            if stores(before.unchecked()) {
                books.release(rank, self.id.offset());
            }
        })
    }
}

impl<R: Region> Counter for Watched<R, CounterId> {
    fn load_acquire(&self) -> Untrusted<u64> {
        let load = |region: &R| region.counter(self.id).load_acquire();
        self.entered(load, |books, rank, _| {
            let offset = self.id.offset();
            let kept = books.promises.touch(&mut books.cells, rank, offset, false);
            books.keep(rank, offset, kept);
            books.acquire(rank, offset);
        })
    }
    fn store_release(&self, value: u64) {
        let store = |region: &R| region.counter(self.id).store_release(value);
        self.entered(store, |books, rank, ()| {
            let offset = self.id.offset();
            let kept = books.promises.count(&mut books.cells, rank, offset, value);
            books.keep(rank, offset, kept);
            books.release(rank, offset);
        });
    }
    fn fetch_add(&self, n: u64) -> Untrusted<u64> {
        self.change(|region| region.counter(self.id).fetch_add(n), |_| true)
    }
    fn fetch_sub(&self, n: u64) -> Untrusted<u64> {
        let sub = |region: &R| region.counter(self.id).fetch_sub(n);
        self.entered(sub, |books, rank, _| {
            let offset = self.id.offset();
            books.promises.leave(&mut books.cells, rank, offset);
            books.acquire(rank, offset);
            books.release(rank, offset);
        })
    }
    fn claim(&self, from: u64, to: u64) -> Untrusted<u64> {
        self.change(|region| region.counter(self.id).claim(from, to), |before| before == from)
    }
}

// SAFETY: words and extents are those of a region that keeps the contract.
unsafe impl<R: Region> Region for Shadowed<R> {
    type Flag = Watched<R, FlagId>;
    type Mailword = Watched<R, MailId>;
    type Counter = Watched<R, CounterId>;

    fn flag(&self, id: FlagId) -> &Self::Flag {
        self.flags.word(&self.view, id, id.offset())
    }
    fn mail(&self, id: MailId) -> &Self::Mailword {
        self.mails.word(&self.view, id, id.offset())
    }
    fn counter(&self, id: CounterId) -> &Self::Counter {
        self.counters.word(&self.view, id, id.offset())
    }

    fn publish(&self, id: FlagId, value: u64) {
        self.flag(id).publish(value, |region| region.publish(id, value));
    }

    unsafe fn write(&self, at: Extent, src: Buf) {
        self.touch(at, src.len(), true);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.view.region.write(at, src) }
    }
    unsafe fn read(&self, at: Extent, dst: Buf) {
        self.touch(at, dst.len(), false);
        self.fills(dst, at.len());
        // SAFETY: the caller's promise, passed on.
        unsafe { self.view.region.read(at, dst) }
    }
    unsafe fn read_past_caches(&self, at: Extent, dst: Buf) {
        self.touch(at, dst.len(), false);
        self.fills(dst, at.len());
        // SAFETY: the caller's promise, passed on.
        unsafe { self.view.region.read_past_caches(at, dst) }
    }
    unsafe fn fold(&self, at: Extent, acc: Buf, op: &Op) {
        self.touch(at, acc.len(), false);
        self.fills(acc, at.len());
        // SAFETY: the caller's promise, passed on.
        unsafe { self.view.region.fold(at, acc, op) }
    }
    unsafe fn fold_within(&self, at: Extent, acc: Extent, op: &Op) {
        self.touch(at, acc.len() as usize, false);
        self.touch(acc, at.len() as usize, false);
        self.touch(acc, at.len() as usize, true);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.view.region.fold_within(at, acc, op) }
    }
    unsafe fn copy_private(&self, src: Buf, dst: Buf) {
        self.fills(dst, src.len() as u64);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.view.region.copy_private(src, dst) }
    }
    unsafe fn fold_private(&self, left: Buf, acc: Buf, op: &Op) {
        self.fills(acc, left.len() as u64);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.view.region.fold_private(left, acc, op) }
    }

    fn lap(&self, operation: u64) -> Lap {
        self.view.region.lap(operation)
    }

    fn lend(&self, memory: Buf, kind: Kind) -> Option<Loan> {
        let View { region, shadow, rank } = &*self.view;
        let loan = region.lend(memory, kind)?;
        let lent = shadow.books().lend(*rank, loan, memory);
        lent.unwrap_or_else(|fault| panic!("{fault}"));
        Some(loan)
    }
    fn answered(&self, accepted: bool) {
        self.view.region.answered(accepted);
    }
    fn borrows(&self) -> bool {
        self.view.region.borrows()
    }
    unsafe fn fetch(&self, lender: Rank, loan: Loan, from: u64, dst: Buf) -> Result<(), Unreadable> {
        self.borrow(lender, loan, from, dst.len());
        self.fills(dst, u64::MAX);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.view.region.fetch(lender, loan, from, dst) }
    }
    unsafe fn fold_loan(&self, lender: Rank, loan: Loan, from: u64, acc: Buf, op: &Op) -> Result<(), Unreadable> {
        self.borrow(lender, loan, from, acc.len());
        self.fills(acc, u64::MAX);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.view.region.fold_loan(lender, loan, from, acc, op) }
    }
}
