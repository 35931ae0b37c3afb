//! Fork: a child must never write to its parent's heap, and finds its own data there.
//!
//! A map of a heap is not inherited. In the child, before `fork` returns, each used block is mapped anew, as private memory
//! at the same address, and its pages are copied from the file; the parent's thread waits for that. The child's heap is
//! closed then: it frees blocks, but its next ones come from the C library.
//!
//! | call | a child's blocks |
//! |---|---|
//! | `fork` | copies |
//! | `vfork`, `posix_spawn`, `system`, `popen` | the parent's, until exec, as with any memory: the parent waits |
//! | `clone` and `_Fork` by the program itself, which call no handlers | none: touching them is an error of segmentation |
//!
//! The handlers run in the thread that forks, with the blocks' lock held.

use super::{Heap, Own, Range, Source, made};
use crate::error::PosixError;
use crate::heap::blocks::Blocks;
use crate::sys;
use core::cell::UnsafeCell;
use std::os::fd::OwnedFd;
use std::sync::MutexGuard;

/// What lies between a fork's handlers.
struct Forking {
    blocks: MutexGuard<'static, Blocks>,
    /// The parent reads until all writers have closed it: the child has its copies, or has ended. `None`: there is nothing
    /// to copy, or no descriptors; then the child has no blocks.
    pipe: Option<(OwnedFd, OwnedFd)>,
}

struct Slot(UnsafeCell<Option<Forking>>);

// SAFETY: only the thread that holds the blocks' lock uses it, and it holds that from `before` to `in_parent` or `in_child`.
unsafe impl Sync for Slot {}

static FORKING: Slot = Slot(UnsafeCell::new(None));

/// Registers the handlers.
pub(super) fn prepare() -> Result<(), PosixError> {
    sys::at_fork(before, in_parent, in_child)
        .map_err(|error| PosixError::io("pthread_atfork", &error, "keep the heap from children"))
}

fn own() -> Option<(&'static Heap, &'static Own)> {
    let heap = made()?;
    let Source::Own(own) = &heap.source else { return None };
    Some((heap, own))
}

extern "C" fn before() {
    let Some((_, own)) = own() else { return };
    let blocks = own.lock();
    let copies = !blocks.is_closed() && blocks.iter().next().is_some();
    let pipe = if copies { sys::pipe().ok() } else { None };
    // SAFETY: under the lock, as `Slot` says.
    unsafe { *FORKING.0.get() = Some(Forking { blocks, pipe }) };
}

/// # Safety
/// `before` ran in this thread, which forks.
unsafe fn take() -> Option<Forking> {
    // SAFETY: under the lock, if there is something.
    unsafe { (*FORKING.0.get()).take() }
}

extern "C" fn in_parent() {
    // SAFETY: the handlers are called in pairs.
    let Some(Forking { blocks, pipe }) = (unsafe { take() }) else { return };
    if let Some((read, write)) = pipe {
        drop(write);
        // Nothing is written: it ends when the child, if there is one, has closed its end.
        sys::read_to_end(&read);
    }
    drop(blocks);
}

extern "C" fn in_child() {
    // SAFETY: the handlers are called in pairs.
    let Some(Forking { mut blocks, pipe }) = (unsafe { take() }) else { return };
    let Some((heap, own)) = own().filter(|_| !blocks.is_closed()) else { return };
    blocks.close();
    // Nothing else is mapped where the heap was: what lies there is known by its address.
    // SAFETY: nothing is mapped there in a child.
    let empty = unsafe { sys::map_private(heap.base, heap.place.bytes, false) };
    let (Ok(()), Some((read, write))) = (empty, pipe) else { return };
    drop(read);
    for Range { offset, len } in blocks.iter() {
        let at = heap.at(offset);
        // SAFETY: nothing but the reservation above is there. A block that can't be copied stays so.
        if unsafe { sys::map_private(at, len, true) }.is_ok() && own.file.copy_to(offset, at, len).is_err() {
            heap.forget(offset, len);
        }
    }
    // The parent goes on.
    drop(write);
}
