//! A communicator's slice of an arena: a segment, as kernel/src/region/layout.rs plans it, without a header.
//!
//! All ranks plan the same slice, from the number of ranks and what the offer says of its [`Queues`]. Fresh memory is zero, and zeros
//! are a valid fresh segment; on a slice that all ranks have left, the counts continue (`kernel/src/region/lease.rs`).
//! So nothing is written to set up a communicator.

use crate::sealed::Map;
use std::sync::Arc;
use unisono_kernel::Rank;
use unisono_kernel::region::{Base, Layout, Params, Word, lease};
use unisono_shm::Mapped;

/// Slots of a queue when memory is short, and the bytes of one.
const SMALL: (u32, u64) = (16, 4096);

/// Which queues a slice has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queues {
    /// Those of a segment.
    #[default]
    Large,
    /// With small slots, for when memory is short.
    Small,
    /// Those of a segment, and the ones of papers P1 and P2, for decision tables that use them.
    Papers,
}

impl Queues {
    const ALL: [Self; 3] = [Self::Large, Self::Small, Self::Papers];

    /// What stands for it in an offer.
    pub const fn code(self) -> u64 {
        self as u64
    }

    /// The one that a code stands for.
    pub fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|queues| queues.code() == code)
    }
}

/// The layout of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    layout: Layout,
}

impl Plan {
    /// For a communicator of `ranks` ranks. `None` if a segment can't have so many ranks.
    pub fn new(ranks: u32, queues: Queues) -> Option<Self> {
        let (queue_slots, queue_fragment) = SMALL;
        let params = Params { page: page(), ..Params::new(ranks) };
        let params = match queues {
            Queues::Large => params,
            Queues::Small => Params { queue_slots, queue_fragment, ..params },
            Queues::Papers => params.with_cico(),
        };
        Some(Self { layout: Layout::new(params).ok()? })
    }

    /// The same, of ranks that share cores or don't.
    #[must_use]
    pub fn with_crowded(self, crowded: bool) -> Self {
        // What a layout could be made of still makes one.
        Layout::new(self.layout.params().with_crowded(crowded)).map_or(self, |layout| Self { layout })
    }

    /// Bytes that suffice for any number of ranks up to `ranks`: more than for `ranks` themselves where fewer have longer
    /// queues.
    pub fn most_bytes(ranks: u32, queues: Queues) -> u64 {
        let bytes = |ranks| Self::new(ranks, queues).map(|plan| plan.bytes());
        (1..=ranks.min(4)).chain([ranks]).filter_map(bytes).max().unwrap_or(0)
    }

    /// Bytes of the slice, a multiple of the page.
    pub const fn bytes(&self) -> u64 {
        self.layout.bytes()
    }

    /// Number of processes.
    pub const fn ranks(&self) -> u32 {
        self.layout.ranks()
    }

    /// Its queues.
    pub const fn queues(&self) -> Queues {
        let Params { cico, queue_fragment, .. } = *self.layout.params();
        if cico.is_some() {
            Queues::Papers
        } else if queue_fragment == SMALL.1 {
            Queues::Small
        } else {
            Queues::Large
        }
    }

    /// The segment's layout.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// Bytes of a page: slices start and end on page boundaries.
pub fn page() -> u64 {
    crate::page().max(Params::new(1).page)
}

/// A slice of a mapped arena, checked to lie inside it.
#[derive(Clone, Debug)]
pub struct Slice {
    map: Arc<Map>,
    offset: u64,
    plan: Plan,
    mapped: Mapped,
}

impl Slice {
    /// The slice at `offset`; `None` if it does not lie inside the map or does not start on a page.
    pub fn new(map: Arc<Map>, offset: u64, plan: Plan) -> Option<Self> {
        let end = offset.checked_add(plan.bytes())?;
        if end > map.bytes() || !offset.is_multiple_of(page()) {
            return None;
        }
        let base = map.base().wrapping_add(offset as usize);
        // SAFETY: the slice lies inside the map, which lives as long as this value and, by the promise made to
        // `segment`, as long as any copy of the view; this process uses the bytes through such views and words alone; they
        // were zero before the first term.
        let mapped = unsafe { Mapped::new(base, plan.bytes()) }.ok()?.with_level(unisono_shm::level!());
        Some(Self { map, offset, plan, mapped })
    }

    /// The same, of ranks that share cores or don't.
    #[must_use]
    pub fn with_crowded(self, crowded: bool) -> Self {
        Self { plan: self.plan.with_crowded(crowded), ..self }
    }

    /// Its offset in the arena.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Its plan.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The map that it lies in.
    pub const fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// Is this the same slice, in the same map?
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.map, &other.map) && self.offset == other.offset
    }

    /// Makes the pages of `rank`'s own area exist.
    pub fn populate(&self, rank: Rank) {
        let own = self.plan.layout().own_pages(rank);
        self.map.populate(self.offset + own.offset(), own.len());
    }

    /// Writes that `rank` has left this term, and its counts at the end.
    pub fn leave(&self, rank: Rank, epoch: u32, end: Option<Base>) {
        if rank < self.plan.ranks() {
            lease::leave(&self.mapped, self.plan.layout(), rank, epoch, end);
        }
    }

    /// The lowest rank, `first` or higher, that has not left this term.
    pub fn first_present(&self, epoch: u32, first: Rank) -> Option<Rank> {
        lease::first_present(&self.mapped, self.plan.layout(), epoch, first)
    }

    /// Have all ranks left this term with the counts `end`, and is the communicator not poisoned?
    pub fn ended_alike(&self, epoch: u32, end: Base) -> bool {
        lease::ended_alike(&self.mapped, self.plan.layout(), epoch, end)
    }

    /// Writes zeros to all words, for a system that can't give the pages back.
    pub fn clear(&self) {
        for offset in (0..self.plan.bytes()).step_by(8) {
            let address = self.mapped.base().wrapping_add(offset as usize);
            // SAFETY: inside the slice and aligned; the map lives as long as the slice (R1). No other process uses the
            // slice now, so no access is of another size (R4).
            unsafe { Word::at(address.cast()) }.store_payload(0);
        }
    }

    /// The segment: a view without a hold on the map.
    ///
    /// # Safety
    /// This slice, a clone of it or its map lives as long as the view or a copy of it is used.
    pub unsafe fn segment(&self) -> Mapped {
        self.mapped.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealed::Sealed;
    use unisono_kernel::region::{Counter, Region};

    fn arena(bytes: u64) -> Arc<Map> {
        Arc::new(Sealed::create(bytes).unwrap().map().unwrap())
    }

    #[test]
    fn plans_are_whole_pages_and_differ_by_their_queues() {
        for ranks in [1, 2, 3, 8, 511, 512, 513, 4096] {
            let plans = Queues::ALL.map(|queues| Plan::new(ranks, queues).unwrap());
            let [large, small, papers] = plans.map(|plan| plan.bytes());
            assert!(small < large && large < papers);
            assert_eq!(plans.map(|plan| plan.queues()), Queues::ALL);
            assert!(plans.iter().all(|plan| plan.bytes().is_multiple_of(page())));
        }
        for queues in Queues::ALL {
            for ranks in 1..200 {
                let most = Plan::most_bytes(ranks, queues);
                assert!(
                    (1..=ranks).all(|ranks| Plan::new(ranks, queues).unwrap().bytes() <= most),
                    "{ranks} {queues:?}"
                );
            }
        }
        assert_eq!(Plan::most_bytes(0, Queues::Large), 0);
        assert_eq!(Plan::new(0, Queues::Large), None);
        assert_eq!(Plan::new(u32::MAX, Queues::Small), None);
        assert_eq!(Queues::from_code(3), None);
        assert_eq!(Queues::ALL.map(|queues| Queues::from_code(queues.code())), Queues::ALL.map(Some));
    }

    #[test]
    fn slices_lie_inside() {
        let plan = Plan::new(2, Queues::Small).unwrap();
        let map = arena(plan.bytes() + page());
        for offset in [0, page()] {
            assert!(Slice::new(map.clone(), offset, plan).is_some());
        }
        for offset in [1, 8, 2 * page(), plan.bytes(), u64::MAX, u64::MAX - page() + 1] {
            assert!(Slice::new(map.clone(), offset, plan).is_none(), "{offset}");
        }
    }

    #[test]
    fn ranks_leave_in_any_order_term_by_term() {
        let plan = Plan::new(3, Queues::Small).unwrap();
        let slice = Slice::new(arena(plan.bytes()), 0, plan).unwrap();
        let end = Base { operation: 9, ..Base::default() };
        for epoch in 1..4 {
            assert_eq!(slice.first_present(epoch, 0), Some(0));
            slice.leave(1, epoch, Some(end));
            assert_eq!(slice.first_present(epoch, 0), Some(0));
            slice.leave(0, epoch, Some(end));
            assert_eq!(slice.first_present(epoch, 0), Some(2));
            slice.leave(3, epoch, Some(end));
            slice.leave(2, epoch, (epoch < 3).then_some(end));
            assert_eq!(slice.first_present(epoch, 0), None);
            assert_eq!(slice.ended_alike(epoch, end), epoch < 3);
            assert!(!slice.ended_alike(epoch, Base::default()));
        }
        // SAFETY: the slice lives to the end.
        let segment = unsafe { slice.segment() };
        slice.leave(2, 3, Some(end));
        assert!(slice.ended_alike(3, end));
        assert!(segment.counter(plan.layout().state()).fetch_add(5).is(0));
        assert!(!slice.ended_alike(3, end), "poisoned");
        slice.clear();
        assert!(Counter::load_acquire(segment.counter(plan.layout().state())).is(0));
        assert_eq!(slice.first_present(1, 0), Some(0));
    }
}
