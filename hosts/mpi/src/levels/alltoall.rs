//! C's collectives that move a block for each pair of ranks.

use super::calls::Task;
use super::started::Started;
use super::{IN_PLACE, Levels, lists, with};
use core::ffi::{c_int, c_void};
use unisono_c::error::Failure;
use unisono_kernel::hier::{Call, Side};

/// As `unisono_alltoall`, or `unisono_ialltoall`.
///
/// # Safety
/// As [`super::unisono_mpi_levels_barrier`]; `send` is `UNISONO_IN_PLACE` or points to a block of `block` bytes for each rank, as
/// `receive` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_alltoall(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    block: u64,
    request: *mut *mut Started,
) -> c_int {
    let from = (send.addr() != IN_PLACE).then(|| send.cast_mut().cast());
    let call = Call::Alltoall { send: from, receive: receive.cast(), block };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, |_| Ok(Task::Call(call))) }
}

/// As `unisono_alltoallv`, or `unisono_ialltoallv`.
///
/// # Safety
/// As [`unisono_mpi_levels_alltoall`], with blocks as the lists say, which have a number for each rank; in place those of `send`
/// are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_alltoallv(
    levels: *const Levels,
    send: *const c_void,
    send_counts: *const u64,
    send_displacements: *const u64,
    receive: *mut c_void,
    receive_counts: *const u64,
    receive_displacements: *const u64,
    request: *mut *mut Started,
) -> c_int {
    let call = |levels: &Levels| {
        let side = |base: *const c_void, counts, displacements| -> Result<Side<'static>, Failure> {
            // SAFETY: the caller's promise.
            let blocks = unsafe { lists(counts, displacements, levels.ranks()) }?;
            Ok(Side { base: base.cast_mut().cast(), blocks })
        };
        let to = side(receive.cast_const(), receive_counts, receive_displacements)?;
        let from = match send.addr() {
            IN_PLACE => None,
            _ => Some(side(send, send_counts, send_displacements)?),
        };
        Ok(Task::Call(Call::Alltoallv { send: from, receive: to }))
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, call) }
}
