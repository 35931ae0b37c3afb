//! Barrier, and the collectives that move bytes. Bytes, counts and displacements are bytes of one block.
//!
//! Safety of all: `comm` is null, or comes from `unisono_attach` and was not freed. An address is null
//! for no bytes, is `UNISONO_IN_PLACE` where the header says so, or points to its bytes, readable where they
//! are sent and writable where they are received, that nobody else uses during the call; so do
//! `counts` and `displacements` to a number for each rank, where they count.

use crate::arguments::{collective, data, data_or_in_place, equal, is_in_place, list, vary};
use crate::comm::Handle;
use core::ffi::{c_int, c_void};
type Member = unisono_kernel::driver::Communicator<crate::comm::Embedded>;
use unisono_kernel::blocks::Blocks;
use unisono_kernel::error::Refusal;
use unisono_kernel::select::BcastAlgorithm;

/// Waits until every rank has entered.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_barrier(comm: *mut Handle) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { collective(comm, |_| Ok(()), |c, ()| c.barrier()) }
}

/// `bytes` bytes at the root's `buffer` go to everyone's.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_bcast(comm: *mut Handle, buffer: *mut c_void, bytes: u64, root: u32) -> c_int {
    // SAFETY: the caller's promise.
    let check = |_: &_| unsafe { data(buffer, bytes) };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, data| c.bcast_with(data, root, BcastAlgorithm::Auto)) }
}

/// Everyone's `bytes` bytes go to its block of the root's `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_gather(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    bytes: u64,
    root: u32,
) -> c_int {
    let check = |c: &Member| {
        if c.rank() != root {
            // SAFETY: the caller's promise.
            return Ok((Some(unsafe { data(send, bytes) }?), None));
        }
        // SAFETY: the caller's promise.
        let to = unsafe { equal(receive, c.size(), bytes, 1) }?;
        // SAFETY: the caller's promise.
        Ok((unsafe { data_or_in_place(send, bytes) }?, Some(to)))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.gather(from, to, root)) }
}

/// Everyone's `bytes` bytes go to its block of the root's `receive`: `counts[r]` bytes, `displacements[r]` from there.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_gatherv(
    comm: *mut Handle,
    send: *const c_void,
    bytes: u64,
    receive: *mut c_void,
    counts: *const u64,
    displacements: *const u64,
    root: u32,
) -> c_int {
    let check = |c: &Member| {
        if c.rank() != root {
            // SAFETY: the caller's promise.
            return Ok((Some(unsafe { data(send, bytes) }?), None));
        }
        // SAFETY: the caller's promise.
        let to = unsafe { blocks(receive, counts, displacements, c.size()) }?;
        // SAFETY: the caller's promise.
        Ok((unsafe { data_or_in_place(send, bytes) }?, Some(to)))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.gatherv(from, to, root)) }
}

/// Each block of the root's `send` goes to its rank's `bytes` bytes at `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_scatter(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    bytes: u64,
    root: u32,
) -> c_int {
    let check = |c: &Member| {
        if c.rank() != root {
            // SAFETY: the caller's promise.
            return Ok((None, Some(unsafe { data(receive, bytes) }?)));
        }
        // SAFETY: the caller's promise.
        let from = unsafe { equal(send, c.size(), bytes, 1) }?;
        // SAFETY: the caller's promise.
        Ok((Some(from), unsafe { data_or_in_place(receive, bytes) }?))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.scatter(from, to, root)) }
}

/// Each block of the root's `send`, `counts[r]` bytes, `displacements[r]` from there, goes to its rank's
/// `bytes` bytes at `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_scatterv(
    comm: *mut Handle,
    send: *const c_void,
    counts: *const u64,
    displacements: *const u64,
    receive: *mut c_void,
    bytes: u64,
    root: u32,
) -> c_int {
    let check = |c: &Member| {
        if c.rank() != root {
            // SAFETY: the caller's promise.
            return Ok((None, Some(unsafe { data(receive, bytes) }?)));
        }
        // SAFETY: the caller's promise.
        let from = unsafe { blocks(send, counts, displacements, c.size()) }?;
        // SAFETY: the caller's promise.
        Ok((Some(from), unsafe { data_or_in_place(receive, bytes) }?))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.scatterv(from, to, root)) }
}

/// Everyone's `bytes` bytes at `send` go to its block of everyone's `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_allgather(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    bytes: u64,
) -> c_int {
    let check = |c: &Member| {
        // SAFETY: the caller's promise.
        let from = unsafe { data_or_in_place(send, bytes) }?;
        // SAFETY: the caller's promise.
        Ok((from, unsafe { equal(receive, c.size(), bytes, 1) }?))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.allgather(from, to)) }
}

/// Everyone's `bytes` bytes at `send` go to its block of everyone's `receive`: `counts[r]` bytes,
/// `displacements[r]` from there.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_allgatherv(
    comm: *mut Handle,
    send: *const c_void,
    bytes: u64,
    receive: *mut c_void,
    counts: *const u64,
    displacements: *const u64,
) -> c_int {
    let check = |c: &Member| {
        // SAFETY: the caller's promise.
        let from = unsafe { data_or_in_place(send, bytes) }?;
        // SAFETY: the caller's promise.
        Ok((from, unsafe { blocks(receive, counts, displacements, c.size()) }?))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.allgather(from, to)) }
}

/// Block r of everyone's `send`, `bytes` bytes, goes to rank r's `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_alltoall(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    bytes: u64,
) -> c_int {
    let check = |c: &Member| {
        // SAFETY: the caller's promise.
        let blocks = |at| unsafe { equal(at, c.size(), bytes, 1) };
        let from = if is_in_place(send) { None } else { Some(blocks(send)?) };
        Ok((from, blocks(receive)?))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.alltoall(from, to)) }
}

/// Block r of everyone's `send` goes to rank r's `receive`; each side has its own counts and displacements.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_alltoallv(
    comm: *mut Handle,
    send: *const c_void,
    send_counts: *const u64,
    send_displacements: *const u64,
    receive: *mut c_void,
    counts: *const u64,
    displacements: *const u64,
) -> c_int {
    let check = |c: &Member| {
        let from = if is_in_place(send) {
            None
        } else {
            // SAFETY: the caller's promise.
            Some(unsafe { blocks(send, send_counts, send_displacements, c.size()) }?)
        };
        // SAFETY: the caller's promise.
        Ok((from, unsafe { blocks(receive, counts, displacements, c.size()) }?))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.alltoallv(from, to)) }
}

/// A block of `counts[r]` bytes for each rank r, `displacements[r]` bytes from `address` on.
///
/// # Safety
/// See the [module](self).
#[inline(always)]
unsafe fn blocks<'a>(
    address: *const c_void,
    counts: *const u64,
    displacements: *const u64,
    ranks: u32,
) -> Result<Blocks<'a>, Refusal> {
    // SAFETY: the caller's promise.
    let counts = unsafe { list(counts, ranks) }?;
    // SAFETY: the caller's promise.
    let displacements = unsafe { list(displacements, ranks) }?;
    // SAFETY: the caller's promise.
    unsafe { vary(address, counts, displacements, 1) }
}
