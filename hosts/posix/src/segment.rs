//! The segment: an anonymous file in memory, sealed, mapped by every rank.
//!
//! Rank 0 makes it; the others open it through the maker's process (`/proc/PID/fd/FD`, or
//! `pidfd_getfd` where that is refused). So it has no name: when the last process that maps it is
//! gone, however it went, the memory is free. It is sealed against shrinking, growing and further
//! seals before anyone learns of it: no peer can take the pages away under a reader.

use crate::error::PosixError;
use crate::sys;
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::Arc;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::region::{Extent, Layout, Region, Word, header};
use unisono_shm::Mapped;

/// What a segment's file is sealed against.
pub const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Where a segment's file is to be found, for as long as its maker keeps it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The maker's process.
    pub pid: u32,
    /// Its descriptor there.
    pub fd: i32,
    /// The file system's device.
    pub device: u64,
    /// The file's inode.
    pub inode: u64,
}

/// A mapped segment. Clones share the map; the last one unmaps it.
#[derive(Clone, Debug)]
pub struct Segment(Arc<Map>);

#[derive(Debug)]
struct Map {
    raw: MmapRaw,
    file: File,
    mapped: Mapped,
    layout: Layout,
}

/// The region of a segment: a view that keeps the map alive.
#[derive(Clone, Debug)]
pub struct View {
    mapped: Mapped,
    _map: Arc<Map>,
}

impl Segment {
    /// Makes a segment: file, size, seals, map, header. No page but the header's is there yet.
    ///
    /// # Errors
    /// A page size that this machine has not; the kernel's refusals.
    pub fn create(layout: &Layout) -> Result<Self, PosixError> {
        check_page(layout)?;
        let file = sys::memfd().map_err(|e| PosixError::io("memfd_create", &e, "make the segment"))?;
        let bytes = layout.bytes();
        file.set_len(bytes)
            .map_err(|e| PosixError::io("ftruncate", &e, format!("size the segment to {bytes} bytes")))?;
        sys::add_seals(&file, SEALS).map_err(|e| PosixError::io("fcntl", &e, "seal the segment"))?;
        let segment = Self::map(file, *layout)?;
        header::create(&segment.0.mapped, layout);
        Ok(segment)
    }

    /// Opens and maps a segment that another process has made, after checking that it is the one
    /// announced, that it is sealed, and that it has the size and the header of `expected`.
    ///
    /// # Errors
    /// What does not fit, or the kernel's refusals.
    pub fn attach(handle: &Handle, expected: &Layout) -> Result<Self, PosixError> {
        check_page(expected)?;
        let file = open(handle)?;
        let meta = file.metadata().map_err(|e| PosixError::io("fstat", &e, "look at the segment"))?;
        same("inode", meta.ino(), handle.inode)?;
        same("device", meta.dev(), handle.device)?;
        let seals = sys::seals(&file).map_err(|e| PosixError::io("fcntl", &e, "read the segment's seals"))?;
        same("seals", (seals & SEALS) as u64, SEALS as u64)?;
        Refusal::check(Argument::SegmentBytes, meta.len(), Bound::Equals(expected.bytes()))?;
        let segment = Self::map(file, *expected)?;
        header::attach_expecting(&segment.0.mapped, meta.len(), expected)?;
        Ok(segment)
    }

    fn map(file: File, layout: Layout) -> Result<Self, PosixError> {
        let bytes = layout.bytes();
        let most = Refusal::new(Argument::SegmentBytes, bytes, Bound::AtMost(isize::MAX as u64));
        let len = usize::try_from(bytes).map_err(|_| most)?;
        let raw = MmapOptions::new().len(len).map_raw(&file);
        let raw = raw.map_err(|e| PosixError::io("mmap", &e, format!("map the segment's {bytes} bytes")))?;
        // SAFETY: `raw` maps these bytes, readable and writable, as long as the Arc lives that every
        // view holds; nobody else uses its address; a fresh file reads as zeros, and its size is sealed.
        let mapped = unsafe { Mapped::new(raw.as_mut_ptr(), bytes) }?.with_level(unisono_shm::level!());
        Ok(Self(Arc::new(Map { raw, file, mapped, layout })))
    }

    /// Where others find the file while this process keeps the segment.
    ///
    /// # Errors
    /// The file can't be looked at.
    pub fn handle(&self) -> Result<Handle, PosixError> {
        let file = &self.0.file;
        let meta = file.metadata().map_err(|e| PosixError::io("fstat", &e, "look at the segment"))?;
        Ok(Handle { pid: std::process::id(), fd: file.as_raw_fd(), device: meta.dev(), inode: meta.ino() })
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
    /// The file can't be looked at.
    pub fn seals(&self) -> Result<i32, PosixError> {
        sys::seals(&self.0.file).map_err(|e| PosixError::io("fcntl", &e, "read the segment's seals"))
    }

    /// The region.
    pub fn region(&self) -> View {
        View { mapped: self.0.mapped, _map: Arc::clone(&self.0) }
    }

    /// The region without its hold on the map: for who keeps the segment beside it.
    ///
    /// # Safety
    /// The segment, a clone or a region of it lives as long as this view or a copy of it is used.
    pub unsafe fn mapped(&self) -> Mapped {
        self.0.mapped
    }

    /// Maps every page now, where the kernel can: no later access faults. Once all ranks have placed theirs: it
    /// would place what is not there yet.
    pub fn populate(&self) {
        drop(self.0.raw.advise(Advice::PopulateWrite));
    }

    /// Reserves memory for an extent, on the caller's NUMA node.
    pub(crate) fn reserve(&self, at: Extent) -> io::Result<()> {
        sys::reserve(&self.0.file, at.offset(), at.len())
    }

    /// Tells the kernel how an extent will be accessed. Random: a fault brings one page and no neighbours.
    pub(crate) fn advise(&self, at: Extent, advice: Advice) -> Result<(), PosixError> {
        let (offset, len) = (at.offset() as usize, at.len() as usize);
        let done = self.0.raw.advise_range(advice, offset, len);
        done.map_err(|e| PosixError::io("madvise", &e, "say how the segment is accessed"))
    }

    /// The first word of each of the machine's pages in an extent, in order.
    pub(crate) fn page_words(&self, at: Extent) -> impl Iterator<Item = &Word> {
        let page = sys::page();
        let end = (at.offset() + at.len()).min(self.bytes());
        (at.offset()..end).step_by(page as usize).map(|offset| {
            let address = self.0.raw.as_mut_ptr().wrapping_add(offset as usize);
            // SAFETY: inside the map and on a page's start (R1); in a start-up only atomics touch it (R4).
            unsafe { Word::at(address.cast()) }
        })
    }
}

fn check_page(layout: &Layout) -> Result<(), Refusal> {
    Refusal::check(Argument::Page, layout.params().page, Bound::MultipleOf(sys::page())).map(drop)
}

fn same(property: &'static str, found: u64, expected: u64) -> Result<(), PosixError> {
    if found == expected { Ok(()) } else { Err(PosixError::Handle { property, found, expected }) }
}

/// Opens the maker's file: by its name in `/proc`, else by a copy of the descriptor.
fn open(handle: &Handle) -> Result<File, PosixError> {
    let path = format!("/proc/{}/fd/{}", handle.pid, handle.fd);
    // Not to block, should the number stand for another process's pipe by now.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path);
    opened.or_else(|error| {
        copy(handle).map(File::from).map_err(|_| PosixError::io("open", &error, format!("open the segment {path}")))
    })
}

fn copy(handle: &Handle) -> io::Result<OwnedFd> {
    sys::pidfd_getfd(&sys::pidfd_open(handle.pid)?, handle.fd)
}

// SAFETY: forwards to a view of the one file that every member maps (inode, size and header are
// checked); the map lives as long as the view.
unsafe impl Region for View {
    unisono_kernel::forward_region!(Mapped, |view| &view.mapped);
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_kernel::region::{Counter, Params};

    #[test]
    fn both_ways_lead_to_the_same_memory() {
        let layout = Layout::new(Params::new(2)).unwrap();
        let segment = Segment::create(&layout).unwrap();
        let handle = segment.handle().unwrap();
        let attached = Segment::attach(&handle, &layout).unwrap();
        attached.region().counter(layout.state()).fetch_add(7);
        assert!(segment.region().counter(layout.state()).load_acquire().is(7));
        let copy = File::from(copy(&handle).unwrap()).metadata().unwrap();
        assert_eq!((copy.ino(), copy.len()), (handle.inode, layout.bytes()));
    }

    #[test]
    fn a_view_keeps_the_map() {
        let layout = Layout::new(Params::new(1)).unwrap();
        let view = Segment::create(&layout).unwrap().region();
        assert_eq!(header::attach(&view, layout.bytes()), Ok(layout));
    }
}
