//! A process's heap: memory of the process that others may read where it lies.
//!
//! It is an anonymous, sealed file in memory, as long as the machine's memory, of which only the pages that are used
//! exist. Its owner allocates blocks of whole pages in it (`heap/blocks.rs`) and has it mapped; the other processes map it
//! when they are lent something in it for the first time, and can only read there: none can damage the owner's data.
//!
//! It has transparent huge pages where the system allows them, and on request ([`pages`]) those of the kernel's pool. The
//! latter are promised to no file in advance: each block's are reserved when it is allocated, and without them it is not.
//!
//! A process has one heap. It is that of the library `libunisono_heap.so`, if that is preloaded: then the program's own
//! large blocks, from `malloc` and its relatives, lie in it. Otherwise it has what is allocated by [`crate::Allocation`]
//! and `MPI_Alloc_mem`.
//!
//! A child of fork gets copies of all blocks, as if the heap were private (`heap/fork.rs`).

mod blocks;
mod fork;

use crate::arena::Range;
use crate::error::{Limit, PosixError};
use crate::pages::{self, HUGE, Kind, Pages};
use crate::sealed::{Handle, Map, Sealed};
use crate::sys;
use blocks::{Blocks, Taken};
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Environment variable: `shared` puts the program's large blocks into the heap, `off` does not.
pub const VARIABLE: &str = "UNISONO_HEAP";

/// What the [variable](VARIABLE) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Blocks of `malloc` come from the C library.
    Off,
    /// Large blocks lie in the heap.
    Shared,
}

impl Setting {
    /// By its name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Off, Self::Shared].into_iter().find(|setting| setting.name() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Shared => "shared",
        }
    }

    /// That of the environment; `None`: it says nothing.
    ///
    /// # Errors
    /// The variable has another value.
    pub fn from_env() -> Result<Option<Self>, PosixError> {
        sys::setting(VARIABLE, "shared or off", Self::from_name)
    }
}

/// Is the library that puts blocks of `malloc` into the heap loaded?
pub fn is_preloaded() -> bool {
    sys::symbol(c"unisono_heap").is_some()
}

/// Bytes of the largest heap: that of 256 processes can be mapped in one address space.
const MOST: u64 = 256 << 30;

/// How other processes find a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its file.
    pub handle: Handle,
    /// Its bytes.
    pub bytes: u64,
    /// Its pages.
    pub kind: Kind,
}

/// A block that was allocated.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Its address.
    pub address: NonNull<u8>,
    /// It reads as zeros.
    pub zero: bool,
}

/// What a heap holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Usage {
    /// Bytes of blocks that are used.
    pub used: u64,
    /// Bytes of freed blocks whose pages are kept.
    pub kept: u64,
    /// Bytes of the pages that exist.
    pub touched: u64,
}

/// The heap of this process.
#[derive(Debug)]
pub struct Heap {
    place: Place,
    /// Its address here.
    base: *mut u8,
    /// The pages that were asked for.
    asked: Pages,
    /// Why it does not have better pages.
    why: Cow<'static, str>,
    source: Source,
}

// SAFETY: an address of memory that is mapped as long as the process lives; all else is safe to send and to share.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

#[derive(Debug)]
enum Source {
    /// This copy of the code manages it.
    Own(Own),
    /// The preloaded library does.
    Library(&'static Shared),
}

#[derive(Debug)]
struct Own {
    file: Sealed,
    map: Map,
    blocks: Mutex<Blocks>,
}

/// What `libunisono_heap.so` tells other copies of this code in its process: the result of its function `unisono_heap`.
#[derive(Debug)]
#[repr(C)]
pub struct Shared {
    version: u64,
    device: u64,
    inode: u64,
    base: *mut u8,
    bytes: u64,
    fd: c_int,
    kind: u64,
    why: *const u8,
    why_bytes: usize,
    allocate: extern "C" fn(usize, usize) -> *mut u8,
    release: extern "C" fn(*mut u8) -> c_int,
    usage: extern "C" fn() -> Usage,
}

// SAFETY: numbers, functions, and addresses of memory that any thread may use.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// The version of [`Shared`].
const VERSION: u64 = 3;

static HEAP: OnceLock<Result<Heap, PosixError>> = OnceLock::new();

/// The heap of this process, if it was made.
#[inline]
pub fn made() -> Option<&'static Heap> {
    HEAP.get()?.as_ref().ok()
}

/// The heap of this process: the preloaded library's, if there is one, else its own; made at the first call.
///
/// # Errors
/// The system calls' errors.
pub fn of_process() -> Result<&'static Heap, PosixError> {
    of_process_in(Pages::Default)
}

/// The same; if this call makes it, in pages as asked for, unless the environment asks for others.
///
/// # Errors
/// As [`of_process`].
pub fn of_process_in(pages: Pages) -> Result<&'static Heap, PosixError> {
    let library = || {
        // SAFETY: the library's function has this type.
        let ask = unsafe { core::mem::transmute::<NonNull<c_void>, Offered>(sys::symbol(c"unisono_heap")?) };
        // SAFETY: null, or what lives as long as the process.
        unsafe { ask().as_ref() }
    };
    let heap = HEAP.get_or_init(|| match library() {
        Some(shared) if shared.version == VERSION => Ok(Heap::of_library(shared)),
        _ => Heap::create(pages),
    });
    heap.as_ref().map_err(Clone::clone)
}

/// The type of the library's function `unisono_heap`.
type Offered = extern "C" fn() -> *const Shared;

/// The heap that this copy of the code manages, whatever library is loaded; made at the first call.
///
/// # Errors
/// As [`of_process`].
pub fn own() -> Result<&'static Heap, PosixError> {
    HEAP.get_or_init(|| Heap::create(Pages::Default)).as_ref().map_err(Clone::clone)
}

impl Own {
    /// Locks the blocks. Code under the lock does not panic; if it did, the state would still be consistent.
    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the pages of a range back, and then the range. If the system refuses that, nobody gets it: it would not read
    /// as zeros.
    fn give_back(&self, range: Range) {
        if range.len == 0 {
            return;
        }
        if self.file.kind() == Kind::Hugetlb {
            // Only whole huge pages go back: one of which several blocks had parts, with the last of them. Nobody may take it
            // meanwhile. What stays is not taken to read as zeros.
            let mut blocks = self.lock();
            let free = blocks.give(range);
            let from = (range.offset / HUGE * HUGE).max(free.offset.next_multiple_of(HUGE));
            let to = (range.offset + range.len).next_multiple_of(HUGE).min((free.offset + free.len) / HUGE * HUGE);
            drop((to > from).then(|| self.file.punch(from, to - from)));
        } else if self.file.punch(range.offset, range.len).is_ok() {
            self.lock().give(range);
        }
    }
}

impl Heap {
    fn create(pages: Pages) -> Result<Self, PosixError> {
        // A wrong value is the start-up's to name.
        let asked = pages.decide().unwrap_or(pages);
        // A limit on address space holds for the program's own memory, too.
        let bytes = sys::memory().min(MOST).min(sys::file_limit()).min(sys::address_limit() / 8);
        let ((file, map), kind, why) = pages::first(asked.kinds_of_heap(), |kind| {
            let file = Sealed::create_in(bytes - bytes % kind.page(), kind);
            (HUGE, file.and_then(|file| Self::map(&file).map(|map| (file, map))))
        })?;
        let (handle, bytes, base) = (file.handle()?, file.bytes(), map.base());
        map.keep_from_children()?;
        fork::prepare()?;
        let blocks = Mutex::new(Blocks::new(base.addr() as u64, bytes, sys::page()));
        let source = Source::Own(Own { file, map, blocks });
        Ok(Self { place: Place { handle, bytes, kind }, base, asked, why: why.into(), source })
    }

    /// Maps a heap's file. Pages of the pool count as available if there is one.
    fn map(file: &Sealed) -> Result<Map, PosixError> {
        let map = file.map_unreserved()?;
        if file.kind() == Kind::Hugetlb {
            let reserved = file.reserve(&map, 0, HUGE);
            reserved.map_err(|error| PosixError::io("fallocate", &error, "reserve a page of the heap"))?;
            file.punch(0, HUGE)?;
        }
        Ok(map)
    }

    fn of_library(shared: &'static Shared) -> Self {
        let &Shared { device, inode, base, bytes, fd, kind, why, why_bytes, .. } = shared;
        let handle = Handle { pid: std::process::id(), fd, device, inode };
        let place = Place { handle, bytes, kind: Kind::from_code(kind).unwrap_or_default() };
        // SAFETY: the library's text of so many bytes, which lives as long as the process.
        let why = String::from_utf8_lossy(unsafe { core::slice::from_raw_parts(why, why_bytes) });
        let asked = Pages::Default.decide().unwrap_or_default();
        Self { place, base, asked, why, source: Source::Library(shared) }
    }

    /// What the library's function `unisono_heap` returns for its heap.
    pub fn shared(
        &'static self,
        allocate: extern "C" fn(usize, usize) -> *mut u8,
        release: extern "C" fn(*mut u8) -> c_int,
        usage: extern "C" fn() -> Usage,
    ) -> Shared {
        let Self { place: Place { handle: Handle { fd, device, inode, .. }, bytes, kind }, base, .. } = *self;
        let (version, kind, why, why_bytes) = (VERSION, kind.code(), self.why.as_ptr(), self.why.len());
        Shared { version, device, inode, base, bytes, fd, kind, why, why_bytes, allocate, release, usage }
    }

    /// How other processes find it.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// The pages that were asked for when it was made.
    pub const fn asked(&self) -> Pages {
        self.asked
    }

    /// Why it does not have better pages; empty if it has the best ones that were tried.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Does this address lie in it?
    #[inline]
    pub fn holds(&self, address: *const u8) -> bool {
        (address.addr().wrapping_sub(self.base.addr()) as u64) < self.place.bytes
    }

    /// Where `len` bytes at this address lie in its file, if they do.
    #[inline]
    pub fn offset_of(&self, address: *const u8, len: usize) -> Option<u64> {
        let offset = address.addr().wrapping_sub(self.base.addr()) as u64;
        (offset < self.place.bytes && len as u64 <= self.place.bytes - offset).then_some(offset)
    }

    /// Allocates `bytes` bytes, in whole pages, at a multiple of `align`. `None`: there is no room, or the pool has no huge
    /// pages left for a heap that has such, or `align` is no power of two, or this is a child of fork.
    pub fn allocate(&self, bytes: usize, align: usize) -> Option<Block> {
        if !align.is_power_of_two() {
            return None;
        }
        match &self.source {
            Source::Own(own) => {
                let Taken { offset, mut zero } = own.lock().take(bytes as u64, align as u64)?;
                if zero && self.is_in_pool() {
                    if own.file.reserve(&own.map, offset, bytes.max(1) as u64).is_err() {
                        let unused = own.lock().untake(offset)?;
                        own.give_back(unused);
                        return None;
                    }
                    zero = false;
                }
                Some(Block { address: NonNull::new(self.at(offset))?, zero })
            }
            Source::Library(shared) => {
                Some(Block { address: NonNull::new((shared.allocate)(bytes, align))?, zero: false })
            }
        }
    }

    /// Frees the block at this address; false if there is none.
    pub fn release(&self, address: *mut u8) -> bool {
        let own = match &self.source {
            Source::Own(own) => own,
            Source::Library(shared) => return (shared.release)(address) != 0,
        };
        let Some(offset) = self.offset_of(address, 0) else { return false };
        let mut blocks = own.lock();
        let Some(len) = blocks.free(offset) else { return false };
        if blocks.is_closed() {
            self.forget(offset, len);
            return true;
        }
        while let Some(range) = blocks.surplus() {
            drop(blocks);
            own.give_back(range);
            blocks = own.lock();
        }
        true
    }

    /// Bytes of the block at this address; `None` if there is none.
    pub fn len_of(&self, address: *const u8) -> Option<usize> {
        let Source::Own(own) = &self.source else { return None };
        own.lock().len(self.offset_of(address, 0)?).map(|len| len as usize)
    }

    /// Makes the block at this address long enough for `bytes` bytes, where it lies; false if that can't be.
    pub fn resize(&self, address: *mut u8, bytes: usize) -> bool {
        let (Source::Own(own), Some(offset)) = (&self.source, self.offset_of(address, 0)) else { return false };
        let mut blocks = own.lock();
        let Some(old) = blocks.len(offset) else { return false };
        let Some(left) = blocks.resize(offset, bytes as u64) else { return false };
        let closed = blocks.is_closed();
        drop(blocks);
        let more = left.offset.saturating_sub(offset + old);
        if more > 0 && self.is_in_pool() && own.file.reserve(&own.map, offset + old, more).is_err() {
            let unused = own.lock().resize(offset, old);
            unused.into_iter().for_each(|unused| own.give_back(unused));
            return false;
        }
        if closed {
            self.forget(left.offset, left.len);
        } else {
            own.give_back(left);
        }
        true
    }

    /// Makes the pages of a new block now, on this thread's NUMA node; they read as zeros.
    ///
    /// # Errors
    /// The system has no memory.
    pub(crate) fn reserve(&self, block: Block, bytes: u64) -> Result<(), PosixError> {
        let Block { address, zero } = block;
        if let (Source::Own(own), Some(offset), true) = (&self.source, self.offset_of(address.as_ptr(), 0), zero) {
            let reserved = own.file.reserve(&own.map, offset, bytes);
            return reserved.map_err(|error| PosixError::io("fallocate", &error, "reserve memory in the heap"));
        }
        // SAFETY: a new block of at least as many bytes, which only the caller knows.
        unsafe { address.write_bytes(0, bytes as usize) };
        Ok(())
    }

    /// The error of [`Self::allocate`].
    pub(crate) fn full(&self, needed: u64) -> PosixError {
        let (room, pool) = (self.place.bytes.saturating_sub(self.usage().used), pages::free());
        let (available, limit) =
            if self.is_in_pool() && pool < room { (pool, Limit::Pool) } else { (room, Limit::Heap) };
        PosixError::Space { needed, available, limit }
    }

    /// Does it have huge pages of the kernel's pool?
    pub(crate) fn is_in_pool(&self) -> bool {
        self.place.kind == Kind::Hugetlb
    }

    /// What it holds.
    pub fn usage(&self) -> Usage {
        match &self.source {
            Source::Own(own) => {
                let blocks = own.lock();
                Usage { used: blocks.used(), kept: blocks.kept(), touched: own.file.touched() }
            }
            Source::Library(shared) => (shared.usage)(),
        }
    }

    /// Gives a child's copy of a freed block back; its addresses stay this heap's.
    fn forget(&self, offset: u64, len: u64) {
        if len > 0 {
            // SAFETY: a freed block. If the system refuses, its pages stay.
            drop(unsafe { sys::map_private(self.at(offset), len, false) });
        }
    }

    const fn at(&self, offset: u64) -> *mut u8 {
        self.base.wrapping_add(offset as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_memory_that_others_can_only_read() {
        let heap = of_process().unwrap();
        let Block { address, zero } = heap.allocate(100_000, 1 << 16).unwrap();
        assert!(zero && address.addr().get().is_multiple_of(1 << 16) && heap.holds(address.as_ptr()));
        assert_eq!(heap.len_of(address.as_ptr()), Some(25 * 4096));
        // SAFETY: inside the block.
        unsafe { address.as_ptr().wrapping_add(99_999).write_volatile(7) };
        let Place { handle, bytes, kind } = *heap.place();
        let theirs = Sealed::open_to_read(&handle, bytes, kind).unwrap();
        let offset = heap.offset_of(address.as_ptr(), 100_000).unwrap() as usize;
        // SAFETY: inside the map.
        assert_eq!(unsafe { theirs.base().wrapping_add(offset + 99_999).read_volatile() }, 7);
        assert_eq!(heap.offset_of(heap.base.wrapping_sub(1), 1), None);
        assert_eq!(heap.offset_of(heap.at(bytes - 8), 9), None);
        assert_eq!(heap.offset_of(heap.at(bytes - 8), 8), Some(bytes - 8));
        assert!(heap.resize(address.as_ptr(), 5000));
        assert_eq!(heap.len_of(address.as_ptr()), Some(8192));
        assert!(heap.release(address.as_ptr()) && !heap.release(address.as_ptr()));
    }
}
