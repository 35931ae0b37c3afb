//! C's collectives that move a block for each rank, to or from a root or all.

use super::{Communicator, Levels, ended, lists, unless_in_place, with};
use core::ffi::{c_int, c_void};
use unisono_c::error::Failure;
use unisono_kernel::Rank;
use unisono_kernel::hier::Spans;

/// A gatherv's or scatterv's lists, which the root has.
///
/// # Safety
/// As [`lists`], at the root.
unsafe fn lists_at<'l>(
    root: Rank,
    communicator: &Communicator,
    counts: *const u64,
    displacements: *const u64,
) -> Result<Spans<'l>, Failure> {
    match communicator.rank() == root {
        // SAFETY: the caller's promise.
        true => unsafe { lists(counts, displacements, communicator.size() as usize) },
        false => Ok(Spans { lengths: &[], starts: &[] }),
    }
}

/// As `unisono_allgather`.
///
/// # Safety
/// As [`super::unisono_mpi_levels_barrier`]; `send` is `UNISONO_IN_PLACE` or `block` bytes, `receive` one such block per rank: here,
/// and of all below, on those ranks and with those lengths that the call says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_allgather(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    block: u64,
) -> c_int {
    let call = |communicator: &mut Communicator| {
        let send = unless_in_place(send, block)?;
        // SAFETY: the caller's promise.
        ended(unsafe { communicator.allgather(send, receive.cast(), block) })
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_allgatherv`.
///
/// # Safety
/// As [`unisono_mpi_levels_allgather`]; `counts` and `displacements` have a number per rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_allgatherv(
    levels: *const Levels,
    send: *const c_void,
    sent: u64,
    receive: *mut c_void,
    counts: *const u64,
    displacements: *const u64,
) -> c_int {
    let call = |communicator: &mut Communicator| {
        // SAFETY: the caller's promise.
        let blocks = unsafe { lists(counts, displacements, communicator.size() as usize) }?;
        let send = unless_in_place(send, sent)?;
        // SAFETY: the caller's promise.
        ended(unsafe { communicator.allgatherv(send, receive.cast(), blocks) })
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_gather`.
///
/// # Safety
/// As [`unisono_mpi_levels_allgather`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_gather(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    block: u64,
    root: u32,
) -> c_int {
    let call = |communicator: &mut Communicator| {
        let send = unless_in_place(send, block)?;
        // SAFETY: the caller's promise.
        ended(unsafe { communicator.gather(send, receive.cast(), block, root) })
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_gatherv`.
///
/// # Safety
/// As [`unisono_mpi_levels_allgatherv`], of `receive` and its lists at the root alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_gatherv(
    levels: *const Levels,
    send: *const c_void,
    sent: u64,
    receive: *mut c_void,
    counts: *const u64,
    displacements: *const u64,
    root: u32,
) -> c_int {
    let call = |communicator: &mut Communicator| {
        // SAFETY: the caller's promise.
        let blocks = unsafe { lists_at(root, communicator, counts, displacements) }?;
        let send = unless_in_place(send, sent)?;
        // SAFETY: the caller's promise.
        ended(unsafe { communicator.gatherv(send, receive.cast(), blocks, root) })
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_scatter`.
///
/// # Safety
/// As [`unisono_mpi_levels_allgather`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_scatter(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    block: u64,
    root: u32,
) -> c_int {
    let call = |communicator: &mut Communicator| {
        let receive = unless_in_place(receive, block)?;
        // SAFETY: the caller's promise.
        ended(unsafe { communicator.scatter(send.cast_mut().cast(), receive, block, root) })
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_scatterv`.
///
/// # Safety
/// As [`unisono_mpi_levels_allgatherv`], of `send` and its lists at the root alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_scatterv(
    levels: *const Levels,
    send: *const c_void,
    counts: *const u64,
    displacements: *const u64,
    receive: *mut c_void,
    received: u64,
    root: u32,
) -> c_int {
    let call = |communicator: &mut Communicator| {
        // SAFETY: the caller's promise.
        let blocks = unsafe { lists_at(root, communicator, counts, displacements) }?;
        let receive = unless_in_place(receive, received)?;
        // SAFETY: the caller's promise.
        ended(unsafe { communicator.scatterv(send.cast_mut().cast(), blocks, receive, root) })
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}
