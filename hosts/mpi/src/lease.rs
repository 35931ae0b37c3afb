//! A communicator's slice of an arena.
//!
//! ```text
//! lease pages: a word per rank, `left`        | segment, as kernel/src/region/layout.rs plans it
//! ```
//!
//! | word | writer | readers | value | what it publishes |
//! |---|---|---|---|---|
//! | `left` of rank r | r | the owner of the arena | 0, then 1 | all that r ever did in the slice |
//!
//! All ranks plan the same slice, from the number of ranks and one bit of the offer. Fresh memory is zero, and zero
//! words are a fresh segment: so nothing is written to set a communicator up, and no header is needed.

use std::sync::Arc;
use unisono_kernel::Rank;
use unisono_kernel::region::{Flag, Layout, Params, Word};
use unisono_posix::sealed::Map;
use unisono_shm::Mapped;

/// Bytes of a queue's slot where room is short.
const SMALL_FRAGMENT: u64 = 4096;

/// What a slice looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    layout: Layout,
    /// Bytes of the lease pages.
    head: u64,
    /// Bytes of all.
    bytes: u64,
}

impl Plan {
    /// For a communicator of `ranks`; `small`: with small slots. `None` where no segment has so many.
    pub fn new(ranks: u32, small: bool) -> Option<Self> {
        let params = Params { page: page(), ..Params::new(ranks) };
        let params = if small { Params { queue_fragment: SMALL_FRAGMENT, ..params } } else { params };
        let layout = Layout::new(params).ok()?;
        let head = (8 * u64::from(ranks)).checked_next_multiple_of(params.page)?;
        let bytes = head.checked_add(layout.bytes())?;
        Some(Self { layout, head, bytes })
    }

    /// Bytes of the slice, a multiple of the page.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of processes.
    pub const fn ranks(&self) -> u32 {
        self.layout.ranks()
    }

    /// The segment's layout.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// Bytes of a page: what is leased begins and ends on one.
pub fn page() -> u64 {
    unisono_posix::page().max(Params::new(1).page)
}

/// A slice of a mapped arena: it lies inside.
#[derive(Clone, Debug)]
pub struct Slice {
    map: Arc<Map>,
    offset: u64,
    plan: Plan,
}

impl Slice {
    /// The slice at `offset`; `None` where it does not lie inside the map, on a page's start.
    pub fn new(map: Arc<Map>, offset: u64, plan: Plan) -> Option<Self> {
        let end = offset.checked_add(plan.bytes)?;
        (end <= map.bytes() && offset.is_multiple_of(page())).then_some(Self { map, offset, plan })
    }

    /// Where it begins in the arena.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// What it looks like.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The word at `offset` of the slice, if it has one.
    fn word(&self, offset: u64) -> Option<&Word> {
        if offset >= self.plan.bytes || !offset.is_multiple_of(8) {
            return None;
        }
        let address = self.map.base().wrapping_add((self.offset + offset) as usize);
        // SAFETY: inside the slice, which lies inside the map (`new`), and aligned; the map lives as long as
        // the slice (R1); lease pages are accessed as words alone (R4).
        Some(unsafe { Word::at(address.cast()) })
    }

    fn left(&self, rank: Rank) -> Option<&Word> {
        if rank < self.plan.ranks() { self.word(8 * u64::from(rank)) } else { None }
    }

    /// Says that `rank` does nothing here any more.
    pub fn leave(&self, rank: Rank) {
        if let Some(left) = self.left(rank) {
            // publishes: all accesses of this rank to the slice, to the owner that reuses it
            Flag::store_release(left, 1);
        }
    }

    /// The first rank from `first` on that has not left.
    pub fn first_present(&self, first: Rank) -> Option<Rank> {
        // pairs with: leave
        let has_left = |rank| self.left(rank).is_none_or(|left| Flag::load_acquire(left).at_least(1));
        (first..self.plan.ranks()).find(|&rank| !has_left(rank))
    }

    /// Makes all words zero, where the system does not.
    pub fn clear(&self) {
        for offset in (0..self.plan.bytes).step_by(8) {
            if let Some(word) = self.word(offset) {
                word.store_payload(0);
            }
        }
    }

    /// The segment: a view without a hold on the map.
    ///
    /// # Safety
    /// This slice or a clone of it lives as long as the view or a copy of it is used.
    pub unsafe fn segment(&self) -> Option<Mapped> {
        let base = self.map.base().wrapping_add((self.offset + self.plan.head) as usize);
        // SAFETY: the segment lies inside the slice, the slice inside the map (`new`), which lives by the caller's
        // promise; this process uses the bytes through such views and words alone; a slice is zero when it is leased.
        let mapped = unsafe { Mapped::new(base, self.plan.layout.bytes()) };
        mapped.ok().map(|mapped| mapped.with_level(unisono_shm::level!()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_kernel::region::{Counter, Region};
    use unisono_posix::sealed::Sealed;

    fn arena(bytes: u64) -> Arc<Map> {
        Arc::new(Sealed::create(bytes).unwrap().map().unwrap())
    }

    #[test]
    fn plans_are_whole_pages_and_small_ones_are_smaller() {
        for ranks in [1, 2, 3, 8, 511, 512, 513, 4096] {
            let [plan, small] = [false, true].map(|small| Plan::new(ranks, small).unwrap());
            assert!(small.bytes() < plan.bytes());
            for plan in [plan, small] {
                assert!(plan.bytes().is_multiple_of(page()) && plan.head >= 8 * u64::from(ranks));
                assert_eq!(plan.bytes(), plan.head + plan.layout().bytes());
            }
        }
        assert_eq!(Plan::new(0, false), None);
        assert_eq!(Plan::new(u32::MAX, true), None);
    }

    #[test]
    fn slices_lie_inside() {
        let plan = Plan::new(2, true).unwrap();
        let map = arena(plan.bytes() + page());
        for offset in [0, page()] {
            assert!(Slice::new(map.clone(), offset, plan).is_some());
        }
        for offset in [1, 8, 2 * page(), plan.bytes(), u64::MAX, u64::MAX - page() + 1] {
            assert!(Slice::new(map.clone(), offset, plan).is_none(), "{offset}");
        }
    }

    #[test]
    fn ranks_leave_in_any_order_and_the_segment_is_beside_their_words() {
        let plan = Plan::new(3, true).unwrap();
        let slice = Slice::new(arena(plan.bytes()), 0, plan).unwrap();
        assert_eq!(slice.first_present(0), Some(0));
        slice.leave(1);
        assert_eq!(slice.first_present(0), Some(0));
        slice.leave(0);
        assert_eq!(slice.first_present(0), Some(2));
        slice.leave(3);
        slice.leave(2);
        assert_eq!(slice.first_present(0), None);
        // SAFETY: the slice lives to the end.
        let segment = unsafe { slice.segment() }.unwrap();
        let state = segment.counter(plan.layout().state());
        assert!(state.fetch_add(5).is(0));
        slice.clear();
        assert!(Counter::load_acquire(state).is(0));
        assert_eq!(slice.first_present(0), Some(0));
    }
}
