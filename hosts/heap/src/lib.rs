//! `libunisono_heap.so`: preloaded, it puts the large blocks of an unchanged program where other ranks can read them.
//!
//! It replaces `malloc` and its relatives (so C++'s `new` and Fortran's `allocate`, too). Blocks of [`LEAST`] bytes and
//! more lie in the process's [heap]; smaller ones, and those for which the heap has no room, come from the next library, as
//! before. Collectives find by its address what lies in the heap, and lend it instead of copying it.
//!
//! `UNISONO_HEAP=off` leaves all blocks to the next library.

mod next;

use core::ffi::c_int;
use core::ptr::null_mut;
use next::{Address, next};
use std::sync::OnceLock;
use unisono_posix::heap::{self, Block, Heap, Shared, Usage};

/// Bytes of the shortest block that lies in the heap: of the whole pages that it takes, at most a fifth is not asked for.
pub const LEAST: usize = 16 << 10;

/// The alignment of a type that needs the most.
const ALIGN: usize = 16;

/// A block of the heap, if this is to be one.
#[inline]
fn take(bytes: usize, align: usize) -> Option<Block> {
    if bytes < LEAST {
        return None;
    }
    heap::made()?.allocate(bytes, align)
}

fn address(block: Block) -> Address {
    block.address.as_ptr().cast()
}

/// The heap, if this memory is in it.
#[inline]
fn holder(memory: Address) -> Option<&'static Heap> {
    heap::made().filter(|heap| heap.holds(memory.cast()))
}

/// # Safety
/// As in C: it takes anything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(bytes: usize) -> Address {
    let next = next();
    // SAFETY: an integer.
    take(bytes, ALIGN).map_or_else(|| unsafe { (next.malloc)(bytes) }, address)
}

/// # Safety
/// As in C: it takes anything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, each: usize) -> Address {
    let next = next();
    let Some(bytes) = count.checked_mul(each) else {
        // SAFETY: integers; refused there.
        return unsafe { (next.calloc)(count, each) };
    };
    match take(bytes, ALIGN) {
        Some(block) => {
            if !block.zero {
                // SAFETY: a new block of so many bytes.
                unsafe { block.address.write_bytes(0, bytes) };
            }
            address(block)
        }
        // SAFETY: integers.
        None => unsafe { (next.calloc)(count, each) },
    }
}

/// # Safety
/// As in C: `memory` is null, or was allocated by one of these functions and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(memory: Address) {
    match holder(memory) {
        Some(heap) => drop(heap.release(memory.cast())),
        // SAFETY: not in the heap, so the next library's, or null.
        None => unsafe { (next().free)(memory) },
    }
}

/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(memory: Address, bytes: usize) -> Address {
    let next = next();
    if memory.is_null() {
        // SAFETY: an integer.
        return unsafe { malloc(bytes) };
    }
    let Some(heap) = holder(memory) else {
        // SAFETY: the next library's, by the caller's promise.
        let old = if bytes < LEAST { 0 } else { unsafe { (next.usable)(memory) } };
        let Some(block) = take(bytes, ALIGN).filter(|_| old > 0) else {
            // SAFETY: as above.
            return unsafe { (next.realloc)(memory, bytes) };
        };
        // SAFETY: two blocks of at least so many bytes, of which one is new.
        unsafe { address(block).copy_from_nonoverlapping(memory, old.min(bytes)) };
        // SAFETY: the next library's.
        unsafe { (next.free)(memory) };
        return address(block);
    };
    if bytes >= LEAST && heap.resize(memory.cast(), bytes) {
        return memory;
    }
    let old = heap.len_of(memory.cast()).unwrap_or(0);
    // SAFETY: an integer.
    let new = if bytes == 0 { null_mut() } else { unsafe { malloc(bytes) } };
    if !new.is_null() {
        // SAFETY: two blocks of at least so many bytes, of which one is new.
        unsafe { new.copy_from_nonoverlapping(memory, old.min(bytes)) };
    }
    if !new.is_null() || bytes == 0 {
        heap.release(memory.cast());
    }
    new
}

/// # Safety
/// As in C: `memory` points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(memory: *mut Address, align: usize, bytes: usize) -> c_int {
    let next = next();
    let fits = align.is_power_of_two() && align.is_multiple_of(size_of::<Address>());
    match if fits { take(bytes, align) } else { None } {
        Some(block) => {
            // SAFETY: the caller's promise.
            unsafe { memory.write(address(block)) };
            0
        }
        // SAFETY: the caller's promise.
        None => unsafe { (next.posix_memalign)(memory, align, bytes) },
    }
}

/// # Safety
/// As in C: it takes anything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: usize, bytes: usize) -> Address {
    let next = next();
    // SAFETY: integers.
    take(bytes, align.max(ALIGN)).map_or_else(|| unsafe { (next.memalign)(align, bytes) }, address)
}

/// # Safety
/// As in C: it takes anything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: usize, bytes: usize) -> Address {
    // SAFETY: integers.
    unsafe { memalign(align, bytes) }
}

/// # Safety
/// As in C: it takes anything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(bytes: usize) -> Address {
    // SAFETY: integers.
    unsafe { memalign(unisono_posix::page() as usize, bytes) }
}

/// # Safety
/// As in C: it takes anything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvalloc(bytes: usize) -> Address {
    let page = unisono_posix::page() as usize;
    // SAFETY: integers.
    unsafe { memalign(page, bytes.checked_next_multiple_of(page).unwrap_or(bytes)) }
}

/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(memory: Address) -> usize {
    match holder(memory) {
        Some(heap) => heap.len_of(memory.cast()).unwrap_or(0),
        // SAFETY: not in the heap, so the next library's, or null.
        None => unsafe { (next().usable)(memory) },
    }
}

/// The heap, for other copies of Unisono in this process; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_heap() -> *const Shared {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    next();
    heap::made().map_or(core::ptr::null(), |heap| SHARED.get_or_init(|| heap.shared(allocate, release, usage)))
}

extern "C" fn allocate(bytes: usize, align: usize) -> *mut u8 {
    heap::made().and_then(|heap| heap.allocate(bytes, align)).map_or(null_mut(), |block| block.address.as_ptr())
}

extern "C" fn usage() -> Usage {
    heap::made().map(Heap::usage).unwrap_or_default()
}

extern "C" fn release(memory: *mut u8) -> c_int {
    heap::made().is_some_and(|heap| heap.release(memory)).into()
}
