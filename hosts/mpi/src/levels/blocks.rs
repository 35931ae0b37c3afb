//! C's collectives that move a block for each rank, to or from a root or all.

use super::calls::Task;
use super::started::Started;
use super::{Levels, lists, unless_in_place, with};
use core::ffi::{c_int, c_void};
use unisono_c::error::Failure;
use unisono_kernel::Rank;
use unisono_kernel::hier::{Call, Side, Spans};

/// A gatherv's or scatterv's blocks, whose lists the root has.
///
/// # Safety
/// As [`lists`], at the root.
unsafe fn side_at(
    root: Rank,
    levels: &Levels,
    base: *const c_void,
    counts: *const u64,
    displacements: *const u64,
) -> Result<Side<'static>, Failure> {
    let blocks = match levels.rank == root {
        // SAFETY: the caller's promise.
        true => unsafe { lists(counts, displacements, levels.ranks()) }?,
        false => Spans { lengths: &[], starts: &[] },
    };
    Ok(Side { base: base.cast_mut().cast(), blocks })
}

/// As `unisono_allgather`, or `unisono_iallgather`.
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
    request: *mut *mut Started,
) -> c_int {
    let call = |_: &Levels| {
        let send = unless_in_place(send, block)?;
        Ok(Task::Call(Call::Allgather { send, receive: receive.cast(), block }))
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, call) }
}

/// As `unisono_allgatherv`, or `unisono_iallgatherv`.
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
    request: *mut *mut Started,
) -> c_int {
    let call = |levels: &Levels| {
        // SAFETY: the caller's promise.
        let blocks = unsafe { lists(counts, displacements, levels.ranks()) }?;
        let send = unless_in_place(send, sent)?;
        Ok(Task::Call(Call::Allgatherv { send, receive: Side { base: receive.cast(), blocks } }))
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, call) }
}

/// As `unisono_gather`, or `unisono_igather`.
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
    request: *mut *mut Started,
) -> c_int {
    let call = |_: &Levels| {
        let send = unless_in_place(send, block)?;
        Ok(Task::Call(Call::Gather { send, receive: receive.cast(), block, root }))
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, call) }
}

/// As `unisono_gatherv`, or `unisono_igatherv`.
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
    request: *mut *mut Started,
) -> c_int {
    let call = |levels: &Levels| {
        // SAFETY: the caller's promise.
        let receive = unsafe { side_at(root, levels, receive, counts, displacements) }?;
        let send = unless_in_place(send, sent)?;
        Ok(Task::Call(Call::Gatherv { send, receive, root }))
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, call) }
}

/// As `unisono_scatter`, or `unisono_iscatter`.
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
    request: *mut *mut Started,
) -> c_int {
    let call = |_: &Levels| {
        let receive = unless_in_place(receive, block)?;
        Ok(Task::Call(Call::Scatter { send: send.cast_mut().cast(), receive, block, root }))
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, call) }
}

/// As `unisono_scatterv`, or `unisono_iscatterv`.
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
    request: *mut *mut Started,
) -> c_int {
    let call = |levels: &Levels| {
        // SAFETY: the caller's promise.
        let send = unsafe { side_at(root, levels, send, counts, displacements) }?;
        let receive = unless_in_place(receive, received)?;
        Ok(Task::Call(Call::Scatterv { send, receive, root }))
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, call) }
}
