//! [`Region`] over raw mapped bytes: one segment that several processes have mapped, each at its own address.
//!
//! Only this crate accesses a segment's bytes. Words become references to atomics. Payload is copied by one
//! primitive (`copy.rs`); there is never a reference to it (docs/explanation/memory-model.md, R1).
//!
//! [`mailbox`] has point-to-point messages through the mailboxes of any region.
#![no_std]

mod copy;
mod fold;
mod laps;
mod long_copies;
pub mod mailbox;
mod stores;

pub use copy::out_of_shared;
pub use fold::Level;
pub use mailbox::{Mailbox, Peer, Post};

use core::mem::MaybeUninit;
use core::ptr::NonNull;
use unisono_kernel::Rank;
use unisono_kernel::collective::Kind;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Condition, Refusal};
use unisono_kernel::op::Op;
use unisono_kernel::region::{CounterId, Extent, FlagId, Lap, Loan, MailId, Region, Unreadable, Word, within};

/// A host's way to let the members of a segment read each other's memory, for the loans of [`Region`].
///
/// # Safety
/// `read` writes to `dst` only, and reads no memory but the lender's, whatever the loan. `mapped` returns memory of `len`
/// mapped bytes.
pub unsafe trait Lenders: Sync {
    /// [`Region::lend`].
    fn lend(&self, memory: Buf, kind: Kind) -> Option<Loan>;

    /// [`Region::answered`].
    fn answered(&self, accepted: bool);

    /// [`Region::borrows`].
    fn borrows(&self) -> bool;

    /// [`Region::await_turn`].
    fn await_turn(&self, loan: Loan, turn: u32, bytes: u64) {
        let _ = (loan, turn, bytes);
    }

    /// Where the `len` bytes from `from` on of what `lender` lends lie in this process; `None` if they are not mapped here.
    /// They stay mapped, and readable, as long as the segment is used.
    fn mapped(&self, lender: Rank, loan: Loan, from: u64, len: usize) -> Option<NonNull<u8>>;

    /// Copies the bytes from `from` on of what `lender` lends, which are not mapped here, to `dst`, all or an error.
    ///
    /// # Errors
    /// Not all of them could be read; `dst` holds anything then.
    ///
    /// # Safety
    /// `dst` is writable and exclusive.
    unsafe fn read(&self, lender: Rank, loan: Loan, from: u64, dst: Buf) -> Result<(), Unreadable>;
}

/// Bytes of lent memory that are folded at a time, from a copy on the stack.
const FOLDED: usize = 16 << 10;

/// A copy of lent elements, aligned for vector instructions.
#[repr(align(64))]
struct Copied([MaybeUninit<u8>; FOLDED]);

/// A view of a mapped segment. It neither maps nor unmaps the memory. A clone is a view of the same segment, which measures
/// for itself how its copies go: each rank should have its own.
#[derive(Clone, Debug)]
pub struct Mapped {
    base: NonNull<u8>,
    bytes: u64,
    level: Level,
    /// `None`: no memory is lent.
    lenders: Option<NonNull<dyn Lenders>>,
    stores: stores::Stores,
    row: long_copies::Row,
}

// SAFETY: an address, a length and atomics; all access, from any thread, goes through atomics and the copy primitive.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

/// The word that ids outside the segment refer to. Only callers with such an id store to it.
static BEYOND: Word = Word::zero();

impl Mapped {
    /// A view of `bytes` mapped bytes at `base`.
    ///
    /// # Errors
    /// `base` is null or not aligned to 64 bytes.
    ///
    /// # Safety
    /// The bytes stay mapped, readable and writable, as long as this view or a copy of it is used.
    /// This process accesses them only through such views. The memory
    /// was zero before its first use as a segment.
    pub unsafe fn new(base: *mut u8, bytes: u64) -> Result<Self, Refusal> {
        Refusal::check_aligned(base as u64, 64)?;
        let base = NonNull::new(base).ok_or(Refusal::not(Argument::Address, Condition::NotNull))?;
        let (stores, row) = (stores::Stores::new(), long_copies::Row::new());
        Ok(Self { base, bytes, level: Level::BASELINE, lenders: None, stores, row })
    }

    /// The same view, which folds with these instructions.
    #[must_use]
    pub const fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// The same view, whose members lend each other memory.
    ///
    /// # Safety
    /// `lenders` lives as long as this view or a copy of it is used.
    #[must_use]
    pub const unsafe fn with_lenders(self, lenders: NonNull<dyn Lenders>) -> Self {
        Self { lenders: Some(lenders), ..self }
    }

    #[inline]
    fn lenders(&self) -> Option<&dyn Lenders> {
        // SAFETY: alive, by `with_lenders`'s contract; it is only read, and `Sync`.
        self.lenders.map(|lenders| unsafe { lenders.as_ref() })
    }

    /// Bytes of the segment.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The address of the first byte.
    pub const fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    #[inline]
    fn word(&self, offset: u64) -> &Word {
        if offset & 7 == 0 && offset < self.bytes & !7 {
            let at = self.base.as_ptr().wrapping_add(offset as usize);
            // SAFETY: inside the segment and aligned by the test above, mapped by `new`'s contract; R1, R4.
            unsafe { Word::at(at.cast()) }
        } else {
            &BEYOND
        }
    }

    /// The address of an extent; `None` if it is not wholly inside the segment.
    #[inline]
    fn inside(&self, at: Extent) -> Option<*mut u8> {
        let end = at.offset().checked_add(at.len())?;
        (end <= self.bytes).then(|| self.base.as_ptr().wrapping_add(at.offset() as usize))
    }
}

// SAFETY: a word or extent is an offset into one segment, which all views map (`new`);
// atomics are `Word`s; copies are cut to both lengths and stay inside the segment (`inside`).
unsafe impl Region for Mapped {
    type Flag = Word;
    type Mailword = Word;
    type Counter = Word;

    #[inline]
    fn flag(&self, id: FlagId) -> &Word {
        self.word(id.offset())
    }
    #[inline]
    fn mail(&self, id: MailId) -> &Word {
        self.word(id.offset())
    }
    #[inline]
    fn counter(&self, id: CounterId) -> &Word {
        self.word(id.offset())
    }

    #[inline]
    fn claim(&self, at: Extent) {
        if let Some(from) = self.inside(at) {
            copy::claim(from, at.len() as usize);
        }
    }

    #[inline]
    fn expect(&self, at: Extent) {
        if let Some(from) = self.inside(at) {
            copy::expect(from, at.len() as usize);
        }
    }

    #[inline]
    fn expects(&self) -> bool {
        copy::EXPECTS
    }

    #[inline]
    fn lap(&self, _: u64) -> Lap {
        self.stores.lap()
    }

    #[inline]
    unsafe fn write(&self, at: Extent, src: Buf) {
        if let Some(to) = self.inside(at) {
            let len = src.len().min(at.len() as usize);
            // SAFETY: `to` holds `len` mapped bytes; `src` by the caller's promise.
            unsafe { self.stores.copy(at.offset(), to, src.ptr(), len) }
        }
    }

    #[inline]
    unsafe fn read_past_caches(&self, at: Extent, dst: Buf) {
        if let Some(from) = self.inside(at) {
            let len = dst.len().min(at.len() as usize);
            // SAFETY: `from` holds `len` mapped bytes; `dst` by the caller's promise.
            unsafe { copy::out_of_segment_past_caches(from, dst.ptr(), len) }
        }
    }

    #[inline]
    unsafe fn read(&self, at: Extent, dst: Buf) {
        if let Some(from) = self.inside(at) {
            let len = dst.len().min(at.len() as usize);
            // SAFETY: `from` holds `len` mapped bytes; `dst` by the caller's promise.
            let through = || unsafe { copy::out_of_segment(from, dst.ptr(), len) };
            // SAFETY: as above.
            unsafe { self.row.copy(from, dst.ptr(), len, through) }
        }
    }

    #[inline]
    unsafe fn fold(&self, at: Extent, acc: Buf, op: &Op) {
        if let Some(from) = self.inside(at) {
            let len = acc.len().min(at.len() as usize);
            // SAFETY: `from` holds `len` mapped bytes; `acc` by the caller's promise.
            unsafe { fold::from_segment(self.level, from, acc.ptr(), len, op) }
        }
    }

    #[inline]
    unsafe fn fold_within(&self, at: Extent, acc: Extent, op: &Op) {
        match (op, self.inside(at), self.inside(acc)) {
            (Op::Predefined(_), Some(from), Some(to)) => {
                let len = at.len().min(acc.len()) as usize;
                // SAFETY: both hold `len` mapped bytes, apart from each other by the caller's promise; a predefined op's fold is
                // a primitive behind which a peer may race.
                unsafe { fold::from_segment(self.level, from, to, len, op) }
            }
            // SAFETY: the caller's promise, passed on.
            _ => unsafe { within::fold_within(self, at, acc, op) },
        }
    }

    #[inline]
    unsafe fn fold_private(&self, left: Buf, acc: Buf, op: &Op) {
        let len = left.len().min(acc.len());
        // SAFETY: both hold `len` bytes, by the caller's promise.
        unsafe { fold::private(self.level, left.ptr(), acc.ptr(), len, op) }
    }

    #[inline]
    unsafe fn copy_private(&self, src: Buf, dst: Buf) {
        // SAFETY: the caller's promise.
        let through = || unsafe { core::ptr::copy(src.ptr(), dst.ptr(), dst.len()) };
        // SAFETY: as above; what overlaps goes through the caches.
        unsafe { self.row.copy(src.ptr(), dst.ptr(), dst.len(), through) }
    }

    #[inline]
    fn lend(&self, memory: Buf, kind: Kind) -> Option<Loan> {
        self.lenders()?.lend(memory, kind)
    }

    #[inline]
    fn answered(&self, accepted: bool) {
        if let Some(lenders) = self.lenders() {
            lenders.answered(accepted);
        }
    }

    #[inline]
    fn borrows(&self) -> bool {
        self.lenders().is_some_and(Lenders::borrows)
    }

    #[inline]
    fn await_turn(&self, loan: Loan, turn: u32, bytes: u64) {
        if let Some(lenders) = self.lenders() {
            lenders.await_turn(loan, turn, bytes);
        }
    }

    #[inline]
    fn is_mapped(&self, lender: Rank, loan: Loan, from: u64, bytes: u64) -> bool {
        self.lenders().is_some_and(|lenders| lenders.mapped(lender, loan, from, bytes as usize).is_some())
    }

    #[inline]
    unsafe fn fetch(&self, lender: Rank, loan: Loan, from: u64, dst: Buf) -> Result<(), Unreadable> {
        let lenders = self.lenders().ok_or(Unreadable { changed: false })?;
        if let Some(place) = lenders.mapped(lender, loan, from, dst.len()) {
            // SAFETY: `place` holds as many mapped bytes, which another process may write, as those of a segment.
            let through = || unsafe { copy::out_of_segment(place.as_ptr(), dst.ptr(), dst.len()) };
            // SAFETY: as above.
            unsafe { self.row.copy(place.as_ptr(), dst.ptr(), dst.len(), through) };
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { lenders.read(lender, loan, from, dst) }
    }

    unsafe fn fold_loan(&self, lender: Rank, loan: Loan, from: u64, acc: Buf, op: &Op) -> Result<(), Unreadable> {
        let lenders = self.lenders().ok_or(Unreadable { changed: false })?;
        if let Some(place) = lenders.mapped(lender, loan, from, acc.len()) {
            // SAFETY: as in `fetch`; `acc` by the caller's promise.
            unsafe { fold::from_segment(self.level, place.as_ptr(), acc.ptr(), acc.len(), op) };
            return Ok(());
        }
        let mut copy = Copied([MaybeUninit::uninit(); FOLDED]);
        let copy = copy.0.as_mut_ptr().cast::<u8>();
        // Whole elements. Longer ones than this are not folded anywhere.
        let step = op.whole(FOLDED as u64) * op.element();
        let mut at = 0;
        while step > 0 && at < acc.len() as u64 {
            let len = step.min(acc.len() as u64 - at) as usize;
            let (left, part) = (Buf::new(copy, len), Buf::new(acc.ptr().wrapping_add(at as usize), len));
            // SAFETY: the array is ours.
            unsafe { lenders.read(lender, loan, from.wrapping_add(at), left) }
                .map_err(|_| Unreadable { changed: at > 0 })?;
            // SAFETY: read above; a part of `acc`, which is as the caller promised.
            unsafe { self.fold_private(left, part, op) };
            at += step;
        }
        Ok(())
    }
}
