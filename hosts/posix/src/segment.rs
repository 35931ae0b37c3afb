//! The segment: a sealed file in memory, made by rank 0 and mapped by every rank.

use crate::communicator::Tenancy;
use crate::error::PosixError;
use crate::lending::Lenders;
use crate::pages::{self, Kind, Mapped as InPages};
use crate::policy::Policy;
use crate::sealed::{Map, Sealed};
use crate::sys;
use memmap2::Advice;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::region::{Extent, Layout, Region, Word, header};
use unisono_shm::Mapped;

pub use crate::sealed::{Handle, SEALS};

/// A mapped segment. Clones share the map; the last one unmaps it.
#[derive(Clone, Debug)]
pub struct Segment(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    map: Map,
    file: Sealed,
    mapped: Mapped,
    layout: Layout,
}

/// The region of a segment: a view that keeps the map alive. The view of an arena's slice also keeps this process's
/// lease.
#[derive(Clone, Debug)]
pub struct View {
    mapped: Mapped,
    _hold: Hold,
    /// Alive as long as `mapped`, which points to it.
    _lenders: Option<Arc<Lenders>>,
}

/// What keeps a view's map alive. It is never read.
#[derive(Clone, Debug)]
enum Hold {
    Segment(#[expect(dead_code, reason = "kept alive")] Arc<Shared>),
    Slice(#[expect(dead_code, reason = "kept alive")] Arc<Tenancy>),
}

impl View {
    /// The view without its hold on the map, for a caller that keeps this one beside it.
    ///
    /// # Safety
    /// This view or a clone of it lives as long as the other one or a copy of it is used.
    pub unsafe fn mapped(&self) -> Mapped {
        self.mapped.clone()
    }

    /// The view of an arena's slice.
    pub(crate) fn of(tenancy: &Arc<Tenancy>) -> Self {
        // SAFETY: the view holds the slice, which holds its map.
        let mapped = unsafe { tenancy.slice().segment() };
        Self { mapped, _hold: Hold::Slice(Arc::clone(tenancy)), _lenders: None }
    }

    /// The same view, whose members read each other's memory.
    pub(crate) fn with_lenders(self, lenders: Arc<Lenders>) -> Self {
        let pointer = NonNull::from_ref(&*lenders as &dyn unisono_shm::Lenders);
        // SAFETY: each view keeps them, and copies of `mapped` are used as long as a view lives (`Self::mapped`).
        let mapped = unsafe { self.mapped.with_lenders(pointer) };
        Self { mapped, _lenders: Some(lenders), ..self }
    }

    /// Is this the same memory?
    pub(crate) fn is(&self, other: &Self) -> bool {
        core::ptr::eq(self.mapped.base(), other.mapped.base())
    }
}

impl Segment {
    /// Makes a segment: file, size, seals, map, header. Only the header's page exists then.
    ///
    /// # Errors
    /// The layout's page size is not a multiple of this machine's; the system calls' errors.
    pub fn create(layout: &Layout) -> Result<Self, PosixError> {
        Self::create_in(layout, Kind::Ordinary)
    }

    /// The same, in pages of this kind.
    ///
    /// # Errors
    /// As [`Self::create`]; areas of the layout that do not start on such pages.
    pub fn create_in(layout: &Layout, kind: Kind) -> Result<Self, PosixError> {
        check_page(layout, kind)?;
        let segment = Self::map(Sealed::create_in(layout.bytes(), kind)?, *layout)?;
        segment
            .reserve_bytes(0, kind.page())
            .map_err(|e| PosixError::io("fallocate", &e, "reserve the segment's first page"))?;
        header::create(&segment.0.mapped, layout);
        Ok(segment)
    }

    /// Opens and maps a segment that another process has made, after checking that it is the one
    /// announced, that it is sealed, and that it has the size and the header of `expected`.
    ///
    /// # Errors
    /// What differs from the announced segment; the system calls' errors.
    pub fn attach(handle: &Handle, expected: &Layout) -> Result<Self, PosixError> {
        Self::attach_in(handle, expected, Kind::Ordinary)
    }

    /// The same, where the segment was made in pages of this kind.
    ///
    /// # Errors
    /// As [`Self::attach`]; the file lies in other pages.
    pub fn attach_in(handle: &Handle, expected: &Layout, kind: Kind) -> Result<Self, PosixError> {
        check_page(expected, kind)?;
        let segment = Self::map(Sealed::open_in(handle, expected.bytes(), kind)?, *expected)?;
        header::attach_expecting(&segment.0.mapped, expected.bytes(), expected)?;
        Ok(segment)
    }

    fn map(file: Sealed, layout: Layout) -> Result<Self, PosixError> {
        let map = file.map()?;
        // SAFETY: `map` maps these bytes, readable and writable, as long as the Arc lives that every
        // view holds; nothing else uses its address; a fresh file reads as zeros, and its size is sealed.
        let mapped = unsafe { Mapped::new(map.base(), map.bytes()) }?.with_level(unisono_shm::level!());
        Ok(Self(Arc::new(Shared { map, file, mapped, layout })))
    }

    /// How other processes find the file while this process keeps the segment.
    ///
    /// # Errors
    /// The system calls' errors.
    pub fn handle(&self) -> Result<Handle, PosixError> {
        self.0.file.handle()
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// Bytes of the segment.
    pub fn bytes(&self) -> u64 {
        self.0.layout.bytes()
    }

    /// The seals that the file has now.
    ///
    /// # Errors
    /// The system calls' errors.
    pub fn seals(&self) -> Result<u32, PosixError> {
        self.0.file.seals()
    }

    /// The region.
    pub fn region(&self) -> View {
        View { mapped: self.0.mapped.clone(), _hold: Hold::Segment(Arc::clone(&self.0)), _lenders: None }
    }

    /// The region without its hold on the map, for a caller that keeps the segment beside it.
    ///
    /// # Safety
    /// The segment, a clone or a region of it lives as long as this view or a copy of it is used.
    pub unsafe fn mapped(&self) -> Mapped {
        self.0.mapped.clone()
    }

    /// Maps every page that ranks place in the start-up, where the kernel can, so that no later access to them faults. To be
    /// called after all ranks have placed their pages: a page that does not exist yet would be placed by this call.
    pub fn populate(&self) {
        let layout = self.layout();
        if layout.first_bytes() == layout.bytes() {
            return self.0.map.populate(0, layout.bytes());
        }
        let first = (0..layout.ranks()).map(|rank| layout.first_pages(rank));
        for extent in core::iter::once(layout.shared_pages()).chain(first) {
            self.0.map.populate(extent.offset(), extent.len());
        }
    }

    /// The kind of its pages.
    pub fn kind(&self) -> Kind {
        self.0.file.kind()
    }

    /// How many of its bytes this process has mapped, and how many of them in huge pages; `None` if the kernel does not
    /// say.
    pub fn mapped_pages(&self) -> Option<InPages> {
        pages::look(self.0.map.base() as u64, self.bytes())
    }

    /// Sets the memory policy of an extent, so that its pages lie on `node` whichever process touches them first. To be
    /// called before the extent is reserved.
    pub(crate) fn bind(&self, at: Extent, policy: Policy, node: u32) -> io::Result<()> {
        let base = self.0.map.base().wrapping_add(at.offset() as usize);
        policy.mode().map_or(Ok(()), |mode| sys::mbind(base, at.len(), mode, node))
    }

    /// Reserves memory for an extent, on the caller's NUMA node.
    pub(crate) fn reserve(&self, at: Extent) -> io::Result<()> {
        self.reserve_bytes(at.offset(), at.len())
    }

    fn reserve_bytes(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.file.reserve(&self.0.map, offset, len)
    }

    /// Tells the kernel how an extent will be accessed. With `Random` a fault brings one page and no neighbours.
    pub(crate) fn advise(&self, at: Extent, advice: Advice) -> Result<(), PosixError> {
        let (offset, len) = (at.offset() as usize, at.len() as usize);
        let done = self.0.map.raw().advise_range(advice, offset, len);
        done.map_err(|e| PosixError::io("madvise", &e, "say how the segment is accessed"))
    }

    /// The first word of each page in an extent, in order.
    pub(crate) fn page_words(&self, at: Extent) -> impl Iterator<Item = &Word> {
        let page = self.kind().page();
        let end = (at.offset() + at.len()).min(self.bytes());
        (at.offset()..end).step_by(page as usize).map(|offset| {
            let address = self.0.map.base().wrapping_add(offset as usize);
            // SAFETY: inside the map and on a page's start (R1); in a start-up only atomics touch it (R4).
            unsafe { Word::at(address.cast()) }
        })
    }
}

fn check_page(layout: &Layout, kind: Kind) -> Result<(), Refusal> {
    Refusal::check(Argument::Page, layout.params().page, Bound::MultipleOf(kind.area())).map(drop)
}

// SAFETY: forwards to a view of the one file that every member maps (inode, size and header are
// checked) or of one slice of it, where it lies; the map lives as long as the view.
unsafe impl Region for View {
    unisono_kernel::forward_region!(Mapped, |view| &view.mapped);
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_kernel::region::{Counter, Params};

    #[test]
    fn who_attaches_has_the_same_memory() {
        let layout = Layout::new(Params::new(2)).unwrap();
        let segment = Segment::create(&layout).unwrap();
        let handle = segment.handle().unwrap();
        let attached = Segment::attach(&handle, &layout).unwrap();
        attached.region().counter(layout.state()).fetch_add(7);
        assert!(segment.region().counter(layout.state()).load_acquire().is(7));
    }

    #[test]
    fn a_view_keeps_the_map() {
        let layout = Layout::new(Params::new(1)).unwrap();
        let view = Segment::create(&layout).unwrap().region();
        assert_eq!(header::attach(&view, layout.bytes()), Ok(layout));
    }
}
