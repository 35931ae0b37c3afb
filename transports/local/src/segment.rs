//! A segment on the heap of one process.

use std::alloc::{Layout as Block, alloc_zeroed, dealloc, handle_alloc_error};
use std::num::NonZeroU64;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use unisono_kernel::Rank;
use unisono_kernel::collective::Kind;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::op::Op;
use unisono_kernel::region::{Counter, Flag, Layout, Loan, Params, Region, Unreadable, Word, header};
use unisono_shm::Mapped;

/// An alignment that allocators give without being asked.
const LEAST_ALIGN: usize = 8;

/// A segment in zeroed memory, with its header. Clones share the memory, with a view each; the last one frees it.
#[derive(Clone, Debug)]
pub struct Segment(Arc<Heap>, Mapped);

#[derive(Debug)]
struct Heap {
    /// What was allocated; the segment begins on its first page.
    memory: NonNull<u8>,
    block: Block,
    layout: Layout,
    /// Messages of so many bytes are lent. Relaxed: a rank that sees another value lends, or not, which it may.
    lend_from: AtomicUsize,
    /// Number of ranks that have left.
    left: Word,
    /// By rank: 1 if it has left.
    has_left: Box<[Word]>,
    /// The segment after a renewal, made by the first rank that asks for it.
    next: OnceLock<Result<Segment, Refusal>>,
}

// SAFETY: the segment's bytes are only reached through `Mapped`, which is Sync.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

impl Segment {
    /// A segment for `params`.
    ///
    /// # Errors
    /// `params` does not describe a segment, or one with more bytes than this machine can address.
    pub fn new(params: Params) -> Result<Self, Refusal> {
        let layout = Layout::new(params)?;
        let bytes = layout.bytes();
        let too_long = Refusal::new(Argument::SegmentBytes, bytes, Bound::AtMost(isize::MAX as u64 - params.page));
        let size = usize::try_from(bytes).map_err(|_| too_long)?;
        // A block that has to begin on a page would be overwritten with zeros: then all its pages would exist, those of pairs of
        // ranks that exchange no messages, too. So the block is a page longer.
        let page = params.page as usize;
        let block =
            size.checked_add(page).and_then(|size| Block::from_size_align(size, LEAST_ALIGN).ok()).ok_or(too_long)?;
        // SAFETY: a layout has a header, so the size is not zero.
        let memory = unsafe { alloc_zeroed(block) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(block) };
        let first = memory.as_ptr().map_addr(|address| address.next_multiple_of(page));
        // SAFETY: allocated and zeroed above, `bytes` from the first page's start on, and freed in drop; nothing else knows the
        // address.
        let region = unsafe { Mapped::new(first, bytes) }?.with_level(unisono_shm::level!());
        header::create(&region, &layout);
        let has_left = (0..layout.ranks()).map(|_| Word::zero()).collect();
        let lend_from = AtomicUsize::new(usize::MAX);
        let left = Word::zero();
        let heap = Heap { memory, block, layout, lend_from, left, has_left, next: OnceLock::new() };
        Ok(Self(Arc::new(heap), region))
    }

    /// The same segment, in which ranks lend each other messages of at least `bytes` bytes (and at least one): others copy
    /// them from where they lie. Then a rank that sends such a message waits until others have it. Ranks need not agree.
    #[must_use]
    pub fn lend_from(self, bytes: usize) -> Self {
        self.0.lend_from.store(bytes.max(1), Relaxed);
        self
    }

    /// A fresh segment with the same parameters, the same one for all callers. It lives as long as this segment or a
    /// clone of the fresh one.
    pub(crate) fn next(&self) -> Result<Self, Refusal> {
        let make = || Ok(Self::new(*self.0.layout.params())?.lend_from(self.0.lend_from.load(Relaxed)));
        self.0.next.get_or_init(make).clone()
    }

    /// Notes that a rank has left: it does nothing on this segment any more.
    pub(crate) fn leave(&self, rank: Rank) {
        if let Some(word) = self.0.has_left.get(rank as usize) {
            // publishes: all that the rank has done, to ranks that see that it has left
            Flag::store_release(word, 1);
            self.0.left.fetch_add(1);
        }
    }

    /// A rank that has left before it finished `operation`, if there is one.
    pub(crate) fn left_before(&self, operation: u64) -> Option<Rank> {
        if Counter::load_acquire(&self.0.left).is(0) {
            return None;
        }
        // pairs with: leave. The rank's `done` is loaded afterwards, so that it shows all that the rank finished
        // before it left.
        let left =
            |rank: &Rank| self.0.has_left.get(*rank as usize).is_some_and(|word| !Flag::load_acquire(word).is(0));
        let done = |rank| Flag::load_acquire(self.flag(self.0.layout.done(rank))).at_least(operation);
        (0..self.0.layout.ranks()).find(|rank| left(rank) && !done(*rank))
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }
}

/// How a loan is reached here: at its address, since all ranks are threads of one process.
const ADDRESS: NonZeroU64 = NonZeroU64::MIN;

// SAFETY: forwards to the only view of this memory, which keeps the contract; the memory lives as long as any clone. What is
// lent is memory of this process, and lies where the lender says: the segment's words are reached by its threads only.
unsafe impl Region for Segment {
    unisono_kernel::forward_region!(Mapped, |segment| &segment.1; own loans);

    #[inline]
    fn lend(&self, memory: Buf, _: Kind) -> Option<Loan> {
        let lends = memory.len() >= self.0.lend_from.load(Relaxed);
        lends.then(|| Loan { way: ADDRESS, at: memory.ptr().expose_provenance() as u64 })
    }

    #[inline]
    fn borrows(&self) -> bool {
        self.0.lend_from.load(Relaxed) < usize::MAX
    }

    #[inline]
    fn is_mapped(&self, _: Rank, loan: Loan, from: u64, _: u64) -> bool {
        self.source(loan, from).is_ok()
    }

    #[inline]
    unsafe fn fetch(&self, _: Rank, loan: Loan, from: u64, dst: Buf) -> Result<(), Unreadable> {
        let source = self.source(loan, from)?;
        // SAFETY: the lender's memory is readable until this rank acknowledges it; `dst` by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(source, dst.ptr(), dst.len()) };
        Ok(())
    }

    #[inline]
    unsafe fn fold_loan(&self, _: Rank, loan: Loan, from: u64, acc: Buf, op: &Op) -> Result<(), Unreadable> {
        let left = Buf::new(self.source(loan, from)?.cast_mut(), acc.len());
        // SAFETY: as above; nothing writes the lender's memory meanwhile.
        unsafe { self.fold_private(left, acc, op) };
        Ok(())
    }
}

impl Segment {
    /// The address of a byte that another rank lends.
    fn source(&self, loan: Loan, from: u64) -> Result<*const u8, Unreadable> {
        if loan.way != ADDRESS || !self.borrows() {
            return Err(Unreadable { changed: false });
        }
        Ok(std::ptr::with_exposed_provenance(loan.at.wrapping_add(from) as usize))
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this block; every view of it was reached through the Arc, whose last clone
        // is dropped.
        unsafe { dealloc(self.memory.as_ptr(), self.block) }
    }
}
