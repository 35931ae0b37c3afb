//! C's collectives that move a block for each pair of ranks.

use super::{Communicator, IN_PLACE, Levels, ended, lists, with};
use core::ffi::{c_int, c_void};
use unisono_c::error::Failure;
use unisono_kernel::hier::Side;

/// As `unisono_alltoall`.
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
) -> c_int {
    let from = (send.addr() != IN_PLACE).then(|| send.cast_mut().cast());
    let call = |communicator: &mut Communicator| {
        // SAFETY: the caller's promise.
        ended(unsafe { communicator.alltoall(from, receive.cast(), block) })
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_alltoallv`.
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
) -> c_int {
    let call = |communicator: &mut Communicator| {
        let ranks = communicator.size() as usize;
        let side = |base: *const c_void, counts, displacements| -> Result<Side<'_>, Failure> {
            // SAFETY: the caller's promise.
            let blocks = unsafe { lists(counts, displacements, ranks) }?;
            Ok(Side { base: base.cast_mut().cast(), blocks })
        };
        let to = side(receive.cast_const(), receive_counts, receive_displacements)?;
        let from = match send.addr() {
            IN_PLACE => None,
            _ => Some(side(send, send_counts, send_displacements)?),
        };
        // SAFETY: the caller's promise.
        ended(unsafe { communicator.alltoallv(from, to) })
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}
