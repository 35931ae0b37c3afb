//! Shared memory as the kernel sees it: words and extents, by index.
//!
//! No reference to payload bytes is ever made. A word is an atomic behind a trait, an extent
//! is a pair of numbers, and all ids come from a [`layout::Layout`].

pub mod announcement;
pub mod flag;
pub mod header;
mod lap;
pub mod layout;
pub mod lease;
pub mod mailboxes;
mod params;
pub mod state;
pub mod within;
#[cfg(test)]
pub(crate) mod words;

use crate::Rank;
use crate::collective::Kind;
use crate::data::buffer::Buf;
use crate::op::Op;
use core::num::NonZeroU64;
pub use flag::{Counter, Flag, Mailword, Untrusted, Word};
pub use lap::Lap;
pub use layout::Layout;
pub use lease::{Base, Term};
pub use mailboxes::{Mailboxes, Pair};
pub use params::{Cico, Params};

/// Bytes of a line, which has one writer: two cache lines of 64 bytes, which x86 prefetches as a pair.
pub const LINE: u64 = 128;

/// The byte offset of a shared 64-bit word that one process writes and that only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlagId(pub(crate) u64);

/// The byte offset of a mailword: a control word of the papers, which one process sets and another clears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MailId(pub(crate) u64);

/// The byte offset of a shared 64-bit word that several processes write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CounterId(pub(crate) u64);

macro_rules! offset {
    ($($id:ident),*) => {$(
        impl $id {
            /// Byte offset in the segment, a multiple of 8.
            #[inline]
            pub const fn offset(self) -> u64 {
                self.0
            }
        }
    )*};
}
offset!(FlagId, MailId, CounterId);

/// A range of payload bytes of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    offset: u64,
    len: u64,
}

impl Extent {
    pub(crate) const fn new(offset: u64, len: u64) -> Self {
        Self { offset, len }
    }

    /// Byte offset in the segment.
    #[inline]
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// Number of bytes.
    #[inline]
    pub const fn len(self) -> u64 {
        self.len
    }

    /// No bytes?
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// `len` bytes from `at` on, cut off at the extent's end.
    #[inline]
    #[must_use]
    pub const fn part(self, at: u64, len: u64) -> Self {
        let at = if at < self.len { at } else { self.len };
        let room = self.len - at;
        Self { offset: self.offset + at, len: if len < room { len } else { room } }
    }
}

/// What a process tells others about memory that it lends them: how to reach it, and where it is. The two words mean
/// something to regions only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Loan {
    /// How the memory is reached; 0 is never one: no memory is lent.
    pub way: NonZeroU64,
    /// Where it is.
    pub at: u64,
}

/// Memory that another process lends can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unreadable {
    /// Has a fold changed its result before the memory became unreadable?
    pub changed: bool,
}

/// A segment that several processes map, and the memory that they lend each other.
///
/// A process may lend private memory while an operation runs: others read it where it lies, and it is not copied into
/// the segment. A region that can't do that keeps the last seven methods as they are here.
///
/// # Safety
/// An id or extent names the same memory in every member. Words start at zero, and each is one
/// atomic with the orderings of [`flag`]. `write` and `read` copy exactly
/// `min(extent, buffer)` bytes, and `fold` folds the whole elements among them. None of them leaves the
/// segment, whatever the extent, or touches anything else. `fetch` and `fold_loan` write only to `dst` or `acc`; they
/// read only memory of the rank that they are given, whatever the loan.
pub unsafe trait Region {
    /// Words with one writer.
    type Flag: Flag;
    /// Words that one process sets and another clears.
    type Mailword: Mailword;
    /// Words with several writers.
    type Counter: Counter;

    /// The flag at `id`. An id beyond the segment yields a word that no other member sees.
    fn flag(&self, id: FlagId) -> &Self::Flag;
    /// The mailword at `id`, likewise.
    fn mail(&self, id: MailId) -> &Self::Mailword;
    /// The counter at `id`, likewise.
    fn counter(&self, id: CounterId) -> &Self::Counter;

    /// Stores `value` with release order. A host that puts waiting processes to sleep wakes them here.
    #[inline]
    fn publish(&self, id: FlagId, value: u64) {
        self.flag(id).store_release(value);
    }

    /// This process will probably write these bytes next: a host may bring them into its own cache before. A hint, which
    /// changes nothing.
    #[inline]
    fn claim(&self, at: Extent) {
        let _ = at;
    }

    /// This process will probably read these bytes next: a host may begin to bring them into its own cache. A hint, which changes
    /// nothing.
    #[inline]
    fn expect(&self, at: Extent) {
        let _ = at;
    }

    /// Is it worth looking for what to [expect](Self::expect)?
    #[inline]
    fn expects(&self) -> bool {
        false
    }

    /// How this process had best pass through its queue, if it has so many slots. Asked once in an operation whose number is
    /// `operation`. A hint: any lap is right.
    #[inline]
    fn lap(&self, operation: u64) -> Lap {
        let _ = operation;
        Lap::ALL
    }

    /// Copies `src` into the segment.
    ///
    /// # Safety
    /// `src` is readable; the protocol's sequence and done words exclude that another member reads or writes the extent
    /// now (a faulty member may do it all the same: then the bytes are wrong, see docs/explanation/memory-model.md).
    unsafe fn write(&self, at: Extent, src: Buf);

    /// Copies bytes of the segment to `dst`.
    ///
    /// # Safety
    /// `dst` is writable and exclusive; the protocol's sequence words exclude that another member writes the extent
    /// now.
    unsafe fn read(&self, at: Extent, dst: Buf);

    /// The same for bytes that are not read again soon: past the caches, if the host can.
    ///
    /// # Safety
    /// As [`Self::read`].
    #[inline]
    unsafe fn read_past_caches(&self, at: Extent, dst: Buf) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.read(at, dst) }
    }

    /// Folds the segment's elements into `acc`, from the left: `acc[i] = segment[i] ∘ acc[i]`. A user's
    /// function sees a private copy.
    ///
    /// # Safety
    /// `acc` is readable, writable and exclusive; the protocol's sequence words exclude that another member writes the
    /// extent now.
    unsafe fn fold(&self, at: Extent, acc: Buf, op: &Op);

    /// The same where `acc` lies in the segment, too. A user's function sees private copies of both.
    ///
    /// # Safety
    /// The protocol's sequence words exclude that another member writes `at` now, or reads or writes `acc`; they are apart.
    #[inline]
    unsafe fn fold_within(&self, at: Extent, acc: Extent, op: &Op) {
        // SAFETY: the caller's promise, passed on.
        unsafe { within::fold_within(self, at, acc, op) }
    }

    /// The same for private elements: `acc[i] = left[i] ∘ acc[i]`. A host may use its best instructions.
    ///
    /// # Safety
    /// `left` is readable; `acc` is readable, writable and exclusive; they are the same memory or don't overlap.
    #[inline]
    unsafe fn fold_private(&self, left: Buf, acc: Buf, op: &Op) {
        let count = op.whole(left.len().min(acc.len()) as u64);
        // SAFETY: the caller's promise; both hold `count` elements.
        unsafe { op.fold_raw(left.ptr(), acc.ptr(), count) }
    }

    /// Copies private bytes to as many other ones, which may overlap them.
    ///
    /// # Safety
    /// `src` is readable; `dst` is as long, writable and exclusive.
    #[inline]
    unsafe fn copy_private(&self, src: Buf, dst: Buf) {
        // SAFETY: the caller's promise.
        unsafe { core::ptr::copy(src.ptr(), dst.ptr(), dst.len()) }
    }

    /// Lends this process's `memory` to the other members, in a collective of this `kind`; `None`: copies through the segment serve
    /// them better, or they can't read it. A member that can read one of its loans in an operation can read all that go the same way.
    /// A loan that no line announces ends with the operation: a process may ask like this whether it can lend.
    #[inline]
    fn lend(&self, memory: Buf, kind: Kind) -> Option<Loan> {
        let _ = (memory, kind);
        None
    }

    /// Takes note of what the readers of a loan have answered: all could read it, or one wants fragments. A region may lend
    /// less then.
    #[inline]
    fn answered(&self, accepted: bool) {
        let _ = accepted;
    }

    /// Can this process read what others lend? If not, it wants fragments before it has tried.
    #[inline]
    fn borrows(&self) -> bool {
        false
    }

    /// This process is about to [fetch](Self::fetch) `bytes` of `loan`, and other members other parts of it at the same time: it is
    /// the `turn`-th of them, from 0. A region in which such reads hinder each other may wait for its turn, for as long as reads take.
    #[inline]
    fn await_turn(&self, loan: Loan, turn: u32, bytes: u64) {
        let _ = (loan, turn, bytes);
    }

    /// Do `bytes` of `loan`, from byte `from` on, lie where this process reads them without a call of the operating system? Then short
    /// [fetches](Self::fetch) cost no more than long ones. A hint.
    #[inline]
    fn is_mapped(&self, lender: Rank, loan: Loan, from: u64, bytes: u64) -> bool {
        let _ = (lender, loan, from, bytes);
        false
    }

    /// Copies the bytes from `from` on of what `lender` lends to `dst`.
    ///
    /// # Errors
    /// Not all of them could be read; `dst` holds anything then.
    ///
    /// # Safety
    /// `dst` is writable and exclusive; the protocol excludes that `lender` writes the memory now.
    #[inline]
    unsafe fn fetch(&self, lender: Rank, loan: Loan, from: u64, dst: Buf) -> Result<(), Unreadable> {
        let _ = (lender, loan, from, dst);
        Err(Unreadable { changed: false })
    }

    /// Folds what `lender` lends, from byte `from` on, into `acc`, from the left. Whole elements are folded.
    ///
    /// # Errors
    /// Not all of it could be read; the error says whether `acc` is unchanged.
    ///
    /// # Safety
    /// `acc` is readable, writable and exclusive; the protocol excludes that `lender` writes the memory now.
    #[inline]
    unsafe fn fold_loan(&self, lender: Rank, loan: Loan, from: u64, acc: Buf, op: &Op) -> Result<(), Unreadable> {
        let _ = (lender, loan, from, acc, op);
        Err(Unreadable { changed: false })
    }
}

/// All items of a [`Region`] that passes every call on to another one, of type `$to`:
/// `forward_region!(Inner, |outer| &outer.inner);` in an `unsafe impl Region for Outer`. With `; own loans` or
/// `; own publish`, `; own loans, laps and publish` or `; own claims` at the end, those items are left out.
#[macro_export]
macro_rules! forward_region {
    ($to:ty, |$this:ident| $region:expr) => {
        $crate::forward_region!(@lap $to, |$this| $region);
        $crate::forward_region!(@base $to, |$this| $region);
        $crate::forward_region!(@publish $to, |$this| $region);
        $crate::forward_region!(@claim $to, |$this| $region);
        $crate::forward_region!(@loans $to, |$this| $region);
    };
    ($to:ty, |$this:ident| $region:expr; own loans) => {
        $crate::forward_region!(@lap $to, |$this| $region);
        $crate::forward_region!(@base $to, |$this| $region);
        $crate::forward_region!(@publish $to, |$this| $region);
        $crate::forward_region!(@claim $to, |$this| $region);
    };
    ($to:ty, |$this:ident| $region:expr; own publish) => {
        $crate::forward_region!(@lap $to, |$this| $region);
        $crate::forward_region!(@base $to, |$this| $region);
        $crate::forward_region!(@claim $to, |$this| $region);
        $crate::forward_region!(@loans $to, |$this| $region);
    };
    ($to:ty, |$this:ident| $region:expr; own loans, laps and publish) => {
        $crate::forward_region!(@base $to, |$this| $region);
        $crate::forward_region!(@claim $to, |$this| $region);
    };
    ($to:ty, |$this:ident| $region:expr; own claims) => {
        $crate::forward_region!(@lap $to, |$this| $region);
        $crate::forward_region!(@base $to, |$this| $region);
        $crate::forward_region!(@publish $to, |$this| $region);
        $crate::forward_region!(@loans $to, |$this| $region);
    };
    (@loans $to:ty, |$this:ident| $region:expr) => {
        #[inline]
        fn lend(
            &self,
            memory: $crate::data::buffer::Buf,
            kind: $crate::collective::Kind,
        ) -> Option<$crate::region::Loan> {
            let $this = self;
            $crate::region::Region::lend($region, memory, kind)
        }
        #[inline]
        fn answered(&self, accepted: bool) {
            let $this = self;
            $crate::region::Region::answered($region, accepted);
        }
        #[inline]
        fn borrows(&self) -> bool {
            let $this = self;
            $crate::region::Region::borrows($region)
        }
        #[inline]
        fn await_turn(&self, loan: $crate::region::Loan, turn: u32, bytes: u64) {
            let $this = self;
            $crate::region::Region::await_turn($region, loan, turn, bytes);
        }
        #[inline]
        fn is_mapped(&self, lender: $crate::Rank, loan: $crate::region::Loan, from: u64, bytes: u64) -> bool {
            let $this = self;
            $crate::region::Region::is_mapped($region, lender, loan, from, bytes)
        }
        #[inline]
        unsafe fn fetch(
            &self,
            lender: $crate::Rank,
            loan: $crate::region::Loan,
            from: u64,
            dst: $crate::data::buffer::Buf,
        ) -> Result<(), $crate::region::Unreadable> {
            let $this = self;
            let region: &$to = $region;
            // SAFETY: the caller's promise, passed on.
            unsafe { $crate::region::Region::fetch(region, lender, loan, from, dst) }
        }
        #[inline]
        unsafe fn fold_loan(
            &self,
            lender: $crate::Rank,
            loan: $crate::region::Loan,
            from: u64,
            acc: $crate::data::buffer::Buf,
            op: &$crate::op::Op,
        ) -> Result<(), $crate::region::Unreadable> {
            let $this = self;
            let region: &$to = $region;
            // SAFETY: the caller's promise, passed on.
            unsafe { $crate::region::Region::fold_loan(region, lender, loan, from, acc, op) }
        }
    };
    (@publish $to:ty, |$this:ident| $region:expr) => {
        #[inline]
        fn publish(&self, id: $crate::region::FlagId, value: u64) {
            let $this = self;
            $crate::region::Region::publish($region, id, value);
        }
    };
    (@lap $to:ty, |$this:ident| $region:expr) => {
        #[inline]
        fn lap(&self, operation: u64) -> $crate::region::Lap {
            let $this = self;
            let region: &$to = $region;
            $crate::region::Region::lap(region, operation)
        }
    };
    (@claim $to:ty, |$this:ident| $region:expr) => {
        #[inline]
        fn claim(&self, at: $crate::region::Extent) {
            let $this = self;
            let region: &$to = $region;
            $crate::region::Region::claim(region, at);
        }
        #[inline]
        fn expect(&self, at: $crate::region::Extent) {
            let $this = self;
            let region: &$to = $region;
            $crate::region::Region::expect(region, at);
        }
        #[inline]
        fn expects(&self) -> bool {
            let $this = self;
            $crate::region::Region::expects($region)
        }
    };
    (@base $to:ty, |$this:ident| $region:expr) => {
        type Flag = <$to as $crate::region::Region>::Flag;
        type Mailword = <$to as $crate::region::Region>::Mailword;
        type Counter = <$to as $crate::region::Region>::Counter;

        #[inline]
        fn flag(&self, id: $crate::region::FlagId) -> &Self::Flag {
            let $this = self;
            $crate::region::Region::flag($region, id)
        }
        #[inline]
        fn mail(&self, id: $crate::region::MailId) -> &Self::Mailword {
            let $this = self;
            $crate::region::Region::mail($region, id)
        }
        #[inline]
        fn counter(&self, id: $crate::region::CounterId) -> &Self::Counter {
            let $this = self;
            $crate::region::Region::counter($region, id)
        }
        #[inline]
        unsafe fn write(&self, at: $crate::region::Extent, src: $crate::data::buffer::Buf) {
            let $this = self;
            let region: &$to = $region;
            // SAFETY: the caller's promise, passed on.
            unsafe { $crate::region::Region::write(region, at, src) }
        }
        #[inline]
        unsafe fn read(&self, at: $crate::region::Extent, dst: $crate::data::buffer::Buf) {
            let $this = self;
            let region: &$to = $region;
            // SAFETY: the caller's promise, passed on.
            unsafe { $crate::region::Region::read(region, at, dst) }
        }
        #[inline]
        unsafe fn read_past_caches(&self, at: $crate::region::Extent, dst: $crate::data::buffer::Buf) {
            let $this = self;
            let region: &$to = $region;
            // SAFETY: the caller's promise, passed on.
            unsafe { $crate::region::Region::read_past_caches(region, at, dst) }
        }
        #[inline]
        unsafe fn fold(&self, at: $crate::region::Extent, acc: $crate::data::buffer::Buf, op: &$crate::op::Op) {
            let $this = self;
            let region: &$to = $region;
            // SAFETY: the caller's promise, passed on.
            unsafe { $crate::region::Region::fold(region, at, acc, op) }
        }
        #[inline]
        unsafe fn fold_within(
            &self,
            at: $crate::region::Extent,
            acc: $crate::region::Extent,
            op: &$crate::op::Op,
        ) {
            let $this = self;
            let region: &$to = $region;
            // SAFETY: the caller's promise, passed on.
            unsafe { $crate::region::Region::fold_within(region, at, acc, op) }
        }
        #[inline]
        unsafe fn copy_private(&self, src: $crate::data::buffer::Buf, dst: $crate::data::buffer::Buf) {
            let $this = self;
            let region: &$to = $region;
            // SAFETY: the caller's promise, passed on.
            unsafe { $crate::region::Region::copy_private(region, src, dst) }
        }
        #[inline]
        unsafe fn fold_private(
            &self,
            left: $crate::data::buffer::Buf,
            acc: $crate::data::buffer::Buf,
            op: &$crate::op::Op,
        ) {
            let $this = self;
            let region: &$to = $region;
            // SAFETY: the caller's promise, passed on.
            unsafe { $crate::region::Region::fold_private(region, left, acc, op) }
        }
    };
}

// SAFETY: forwards to an implementation that keeps the contract.
unsafe impl<R: Region + ?Sized> Region for &R {
    forward_region!(R, |this| &**this);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_cut_at_the_extents_end() {
        let part = |at, len| {
            let part = Extent::new(100, 10).part(at, len);
            (part.offset(), part.len(), part.is_empty())
        };
        assert_eq!([part(0, 10), part(3, 4)], [(100, 10, false), (103, 4, false)]);
        assert_eq!([part(3, 7), part(3, 8), part(10, 1), part(11, 1)].map(|(at, len, _)| at + len), [110; 4]);
        assert_eq!([part(3, 0), part(10, 1), part(99, 1)].map(|(_, _, is_empty)| is_empty), [true; 3]);
    }
}
