//! A segment on the heap of one process.

use std::alloc::{Layout as Block, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use unisono_kernel::Rank;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::region::{Counter, Flag, Layout, Params, Region, Word, header};
use unisono_shm::Mapped;

/// A segment in zeroed memory, with its header. Clones share the memory; the last one frees it.
#[derive(Clone, Debug)]
pub struct Segment(Arc<Heap>);

#[derive(Debug)]
struct Heap {
    memory: NonNull<u8>,
    block: Block,
    region: Mapped,
    layout: Layout,
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
        let block = Block::from_size_align(size, params.page as usize).map_err(|_| too_long)?;
        // SAFETY: a layout has a header, so the size is not zero.
        let memory = unsafe { alloc_zeroed(block) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(block) };
        // SAFETY: allocated and zeroed above, freed in drop; nothing else knows the address.
        let region = unsafe { Mapped::new(memory.as_ptr(), bytes) }?.with_level(unisono_shm::level!());
        header::create(&region, &layout);
        let has_left = (0..layout.ranks()).map(|_| Word::zero()).collect();
        Ok(Self(Arc::new(Heap { memory, block, region, layout, left: Word::zero(), has_left, next: OnceLock::new() })))
    }

    /// A fresh segment with the same parameters, the same one for all callers. It lives as long as this segment or a
    /// clone of the fresh one.
    pub(crate) fn next(&self) -> Result<Self, Refusal> {
        self.0.next.get_or_init(|| Self::new(*self.0.layout.params())).clone()
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

// SAFETY: forwards to the only view of this memory, which keeps the contract; the memory lives as long as any clone.
unsafe impl Region for Segment {
    unisono_kernel::forward_region!(Mapped, |segment| &segment.0.region);
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this block; every view of it was reached through the Arc, whose last clone
        // is dropped.
        unsafe { dealloc(self.memory.as_ptr(), self.block) }
    }
}
