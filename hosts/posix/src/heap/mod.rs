//! A process's heap: memory of the process that others may read where it lies.
//!
//! It is an anonymous, sealed file in memory, as long as the machine's memory, of which only the pages that are used
//! exist. Its owner allocates blocks of whole pages in it (`heap/blocks.rs`) and has it mapped; the other processes map it
//! when they are lent something in it for the first time, and can only read there: none can damage the owner's data.
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
use crate::pages::Kind;
use crate::sealed::{Handle, Map, Sealed};
use crate::sys;
use blocks::{Blocks, Taken};
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
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
    _map: Map,
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
    allocate: extern "C" fn(usize, usize) -> *mut u8,
    release: extern "C" fn(*mut u8) -> c_int,
    usage: extern "C" fn() -> Usage,
}

// SAFETY: numbers, an address and functions.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// The version of [`Shared`].
const VERSION: u64 = 2;

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
    let library = || {
        // SAFETY: the library's function has this type.
        let ask = unsafe { core::mem::transmute::<NonNull<c_void>, Offered>(sys::symbol(c"unisono_heap")?) };
        // SAFETY: null, or what lives as long as the process.
        unsafe { ask().as_ref() }
    };
    let heap = HEAP.get_or_init(|| match library() {
        Some(shared) if shared.version == VERSION => Ok(Heap::of_library(shared)),
        _ => Heap::create(),
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
    HEAP.get_or_init(Heap::create).as_ref().map_err(Clone::clone)
}

impl Own {
    /// Locks the blocks. Code under the lock does not panic; if it did, the state would still be consistent.
    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the pages of a range back, and then the range. If the system refuses that, nobody gets it: it would not read
    /// as zeros.
    fn give_back(&self, range: Range) {
        if range.len > 0 && self.file.punch(range.offset, range.len).is_ok() {
            self.lock().give(range);
        }
    }
}

impl Heap {
    fn create() -> Result<Self, PosixError> {
        // A limit on address space holds for the program's own memory, too.
        let bytes = sys::memory().min(MOST).min(sys::file_limit()).min(sys::address_limit() / 8);
        let bytes = bytes - bytes % sys::page();
        let kind = if Kind::Transparent.check().is_ok() { Kind::Transparent } else { Kind::Ordinary };
        let file = Sealed::create_in(bytes, kind)?;
        let (handle, map) = (file.handle()?, file.map()?);
        map.keep_from_children()?;
        fork::prepare()?;
        let base = map.base();
        let blocks = Mutex::new(Blocks::new(base.addr() as u64, bytes, sys::page()));
        let source = Source::Own(Own { file, _map: map, blocks });
        Ok(Self { place: Place { handle, bytes }, base, source })
    }

    fn of_library(shared: &'static Shared) -> Self {
        let &Shared { device, inode, base, bytes, fd, .. } = shared;
        let handle = Handle { pid: std::process::id(), fd, device, inode };
        Self { place: Place { handle, bytes }, base, source: Source::Library(shared) }
    }

    /// What the library's function `unisono_heap` returns for its heap.
    pub fn shared(
        &self,
        allocate: extern "C" fn(usize, usize) -> *mut u8,
        release: extern "C" fn(*mut u8) -> c_int,
        usage: extern "C" fn() -> Usage,
    ) -> Shared {
        let Self { place: Place { handle: Handle { fd, device, inode, .. }, bytes }, base, .. } = *self;
        Shared { version: VERSION, device, inode, base, bytes, fd, allocate, release, usage }
    }

    /// How other processes find it.
    pub const fn place(&self) -> &Place {
        &self.place
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

    /// Allocates `bytes` bytes, in whole pages, at a multiple of `align`. `None`: there is no room, or `align` is no power of
    /// two, or this is a child of fork.
    pub fn allocate(&self, bytes: usize, align: usize) -> Option<Block> {
        if !align.is_power_of_two() {
            return None;
        }
        match &self.source {
            Source::Own(own) => {
                let Taken { offset, zero } = own.lock().take(bytes as u64, align as u64)?;
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
        let Some(left) = blocks.resize(offset, bytes as u64) else { return false };
        let closed = blocks.is_closed();
        drop(blocks);
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
            let reserved = own.file.reserve(offset, bytes);
            return reserved.map_err(|error| PosixError::io("fallocate", &error, "reserve memory in the heap"));
        }
        // SAFETY: a new block of at least as many bytes, which only the caller knows.
        unsafe { address.write_bytes(0, bytes as usize) };
        Ok(())
    }

    /// The error of [`Self::allocate`].
    pub(crate) fn full(&self, needed: u64) -> PosixError {
        let available = self.place.bytes.saturating_sub(self.usage().used);
        PosixError::Space { needed, available, limit: Limit::Heap }
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
        let Place { handle, bytes } = *heap.place();
        let theirs = Sealed::open_to_read(&handle, bytes).unwrap();
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
