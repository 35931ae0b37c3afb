//! A segment on the heap of one process.

use std::alloc::{Layout as Block, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use unisono_kernel::Rank;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::region::{Counter, Flag, Layout, Params, Region, Word, header};
use unisono_shm::Mapped;

/// Zeroed memory with a header. Clones share it; the last one frees it.
#[derive(Clone, Debug)]
pub struct Segment(Arc<Heap>);

#[derive(Debug)]
struct Heap {
    memory: NonNull<u8>,
    block: Block,
    region: Mapped,
    layout: Layout,
    /// How many ranks have gone, and which: 1.
    gone: Word,
    by_rank: Box<[Word]>,
    /// What comes after this one: made by the rank that asks first.
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
    /// Parameters that do not fit, or more bytes than this machine can address.
    pub fn new(params: Params) -> Result<Self, Refusal> {
        let layout = Layout::new(params)?;
        let bytes = layout.bytes();
        let beyond = Refusal::new(Argument::SegmentBytes, bytes, Bound::AtMost(isize::MAX as u64 - params.page));
        let size = usize::try_from(bytes).map_err(|_| beyond)?;
        let block = Block::from_size_align(size, params.page as usize).map_err(|_| beyond)?;
        // SAFETY: a layout has a header, so the size is not zero.
        let memory = unsafe { alloc_zeroed(block) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(block) };
        // SAFETY: allocated and zeroed above, freed in drop; nobody else knows the address.
        let region = unsafe { Mapped::new(memory.as_ptr(), bytes) }?.with_level(unisono_shm::level!());
        header::create(&region, &layout);
        let by_rank = (0..layout.ranks()).map(|_| Word::zero()).collect();
        Ok(Self(Arc::new(Heap { memory, block, region, layout, gone: Word::zero(), by_rank, next: OnceLock::new() })))
    }

    /// A fresh segment of the same parameters, the same for all who ask. It lives as long as this one, or clones of its own.
    pub(crate) fn next(&self) -> Result<Self, Refusal> {
        self.0.next.get_or_init(|| Self::new(*self.0.layout.params())).clone()
    }

    /// A rank does nothing here any more.
    pub(crate) fn leave(&self, rank: Rank) {
        if let Some(word) = self.0.by_rank.get(rank as usize) {
            // publishes: all that the rank has done, to who sees that it has gone
            Flag::store_release(word, 1);
            self.0.gone.fetch_add(1);
        }
    }

    /// A rank that has gone before it finished `operation`.
    pub(crate) fn gone_before(&self, operation: u64) -> Option<Rank> {
        if Counter::load_acquire(&self.0.gone).is(0) {
            return None;
        }
        // pairs with: leave. What the rank did before it went counts, so its progress is read behind.
        let gone = |rank: &Rank| self.0.by_rank.get(*rank as usize).is_some_and(|word| !Flag::load_acquire(word).is(0));
        let done = |rank| Flag::load_acquire(self.flag(self.0.layout.done(rank))).at_least(operation);
        (0..self.0.layout.ranks()).find(|rank| gone(rank) && !done(*rank))
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }
}

// SAFETY: forwards to the one view of this memory, which keeps the contract; the memory lives as long as any clone.
unsafe impl Region for Segment {
    unisono_kernel::forward_region!(Mapped, |segment| &segment.0.region);
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this block; every view of it is reached through the Arc that is gone now.
        unsafe { dealloc(self.memory.as_ptr(), self.block) }
    }
}
