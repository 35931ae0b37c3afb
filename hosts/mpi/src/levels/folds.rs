//! C's collectives that fold.

use super::{Called, Communicator, IN_PLACE, Levels, elements, ended, list, unless_in_place, with};
use core::ffi::{c_int, c_void};
use std::collections::TryReserveError;
use unisono_c::error::Failure;
use unisono_c::operation::{COp, operation};
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Cause, Refusal};
use unisono_kernel::hier::Spans;
use unisono_kernel::msg::Memory;
use unisono_kernel::op::Op;

/// A reduction's operand and its result: in place the same.
struct Sides {
    send: Buf,
    receive: Buf,
}

fn sides(send: *const c_void, receive: *mut c_void, count: u64, op: &Op) -> Result<Sides, Refusal> {
    let receive = elements(receive, count, op)?;
    Ok(Sides { send: if send.addr() == IN_PLACE { receive } else { elements(send, count, op)? }, receive })
}

/// As `unisono_reduce`.
///
/// # Safety
/// As [`super::unisono_mpi_levels_barrier`]; `send` is `UNISONO_IN_PLACE` or points to `count` elements; at the root `receive` does,
/// writable, apart from `send`. `op` is a number, or as `unisono.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_reduce(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
    root: u32,
) -> c_int {
    let call = |communicator: &mut Communicator| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        let Sides { send, receive } = match communicator.rank() == root {
            true => sides(send, receive, count, &op)?,
            false => Sides { send: elements(send, count, &op)?, receive: Memory::NOTHING },
        };
        // SAFETY: the caller's promise.
        ended(unsafe { communicator.reduce(send, receive, op, root) })
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_allreduce`.
///
/// # Safety
/// As [`unisono_mpi_levels_reduce`], on every rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_allreduce(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> c_int {
    let call = |communicator: &mut Communicator| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        let Sides { send, receive } = sides(send, receive, count, &op)?;
        // SAFETY: the caller's promise.
        ended(unsafe { communicator.allreduce(send, receive, op) })
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_scan`.
///
/// # Safety
/// As [`unisono_mpi_levels_allreduce`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_scan(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { scan(levels, (send, receive, count), datatype, op, false) }
}

/// As `unisono_exscan`.
///
/// # Safety
/// As [`unisono_mpi_levels_allreduce`]; rank 0's `receive` may be its `send`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_exscan(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { scan(levels, (send, receive, count), datatype, op, true) }
}

/// # Safety
/// As [`unisono_mpi_levels_scan`], or [`unisono_mpi_levels_exscan`].
unsafe fn scan(
    levels: *const Levels,
    (send, receive, count): (*const c_void, *mut c_void, u64),
    datatype: c_int,
    op: *const COp,
    exclusive: bool,
) -> c_int {
    let call = |communicator: &mut Communicator| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        let receive = elements(receive, count, &op)?;
        let send = unless_in_place(send, receive.len() as u64)?;
        // SAFETY: the caller's promise.
        ended(unsafe { communicator.scan(send, receive, op, exclusive) })
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_reduce_scatter`.
///
/// # Safety
/// As [`unisono_mpi_levels_allreduce`], with as many elements as all `counts`, one for each rank; without in place, `receive`
/// points to those of this rank's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_reduce_scatter(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    counts: *const u64,
    datatype: c_int,
    op: *const COp,
) -> c_int {
    let call = |communicator: &mut Communicator| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        // SAFETY: the caller's promise.
        let counts = unsafe { list(counts, "counts", communicator.size() as usize) }?;
        let own = counts.get(communicator.rank() as usize).copied().unwrap_or(0);
        let all = counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        // SAFETY: the caller's promise.
        unsafe { reduce_scatter(communicator, send, receive, Parts { own, all, counts: Some(counts) }, op) }
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_reduce_scatter_block`.
///
/// # Safety
/// As [`unisono_mpi_levels_reduce_scatter`], with `count` elements for each rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_reduce_scatter_block(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> c_int {
    let call = |communicator: &mut Communicator| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        let all = count.saturating_mul(communicator.size().into());
        // SAFETY: the caller's promise.
        unsafe { reduce_scatter(communicator, send, receive, Parts { own: count, all, counts: None }, op) }
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// Elements of a reduce_scatter: of this rank's block, of all, and of each where they differ.
#[derive(Clone, Copy)]
struct Parts<'l> {
    own: u64,
    all: u64,
    counts: Option<&'l [u64]>,
}

/// Lengths and starts in bytes of consecutive blocks of so many elements.
fn consecutive(counts: &[u64], element: u64) -> Result<(Vec<u64>, Vec<u64>), TryReserveError> {
    let (mut lengths, mut starts, mut end) = (Vec::new(), Vec::new(), 0);
    lengths.try_reserve_exact(counts.len())?;
    starts.try_reserve_exact(counts.len())?;
    for count in counts {
        lengths.push(count * element);
        starts.push(end);
        end += count * element;
    }
    Ok((lengths, starts))
}

/// A reduction to rank 0, which then scatters the blocks.
///
/// # Safety
/// As [`unisono_mpi_levels_reduce_scatter`].
unsafe fn reduce_scatter(
    communicator: &mut Communicator,
    send: *const c_void,
    receive: *mut c_void,
    parts: Parts<'_>,
    op: Op,
) -> Called {
    let (in_place, is_root) = (send.addr() == IN_PLACE, communicator.rank() == 0);
    let operand = elements(if in_place { receive } else { send }, parts.all, &op)?;
    let own = elements(receive, parts.own, &op)?;
    let mut memory = Vec::<u8>::new();
    let room = if is_root && !in_place { operand.len() } else { 0 };
    let counts = parts.counts.filter(|_| is_root).unwrap_or_default();
    let reserved = memory.try_reserve_exact(room).and_then(|()| consecutive(counts, op.element()));
    let Ok((lengths, starts)) = reserved else {
        // The others must not wait for this rank.
        communicator.poison(Cause::Died);
        return Err(Failure::Memory);
    };
    let folded = match is_root {
        true if in_place => operand,
        true => Buf::new(memory.as_mut_ptr(), room),
        false => Memory::NOTHING,
    };
    // In place rank 0's block is the first one, where it belongs.
    let result = if is_root && in_place { None } else { Some(own) };
    // SAFETY: the caller's promise, and memory of ours.
    let reduced = unsafe { communicator.reduce(operand, folded, op, 0) };
    let ended_so = reduced.and_then(|()| match parts.counts {
        // SAFETY: as above: the blocks of the fold at rank 0.
        None => unsafe { communicator.scatter(folded.ptr(), result, own.len() as u64, 0) },
        Some(_) => {
            let blocks = Spans { lengths: &lengths, starts: &starts };
            // SAFETY: as above.
            unsafe { communicator.scatterv(folded.ptr(), blocks, result, 0) }
        }
    });
    if ended_so.is_err() {
        // Messages may still be read there.
        core::mem::forget(memory);
    }
    ended(ended_so)
}
