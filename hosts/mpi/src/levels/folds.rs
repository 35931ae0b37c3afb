//! C's collectives that fold.

use super::calls::{self, Task};
use super::started::Started;
use super::{Called, Communicator, IN_PLACE, Levels, elements, ended, list, unless_in_place, with};
use core::ffi::{c_int, c_void};
use std::collections::TryReserveError;
use unisono_c::error::Failure;
use unisono_c::operation::{COp, operation};
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::Refusal;
use unisono_kernel::hier::{Call, Lengths, Side, Spans};
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

/// As `unisono_reduce`, or `unisono_ireduce`.
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
    request: *mut *mut Started,
) -> c_int {
    let call = |levels: &Levels| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        let Sides { send, receive } = match levels.rank == root {
            true => sides(send, receive, count, &op)?,
            false => Sides { send: elements(send, count, &op)?, receive: Memory::NOTHING },
        };
        Ok(Task::Call(Call::Reduce { send, receive, op, root }))
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, call) }
}

/// As `unisono_allreduce`, or `unisono_iallreduce`.
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
    request: *mut *mut Started,
) -> c_int {
    let call = |_: &Levels| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        let Sides { send, receive } = sides(send, receive, count, &op)?;
        Ok(Task::Call(Call::Allreduce { send, receive, op }))
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, call) }
}

/// As `unisono_scan`, or `unisono_iscan`.
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
    request: *mut *mut Started,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { scan(levels, (send, receive, count), datatype, op, false, request) }
}

/// As `unisono_exscan`, or `unisono_iexscan`.
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
    request: *mut *mut Started,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { scan(levels, (send, receive, count), datatype, op, true, request) }
}

/// # Safety
/// As [`unisono_mpi_levels_scan`], or [`unisono_mpi_levels_exscan`].
unsafe fn scan(
    levels: *const Levels,
    (send, receive, count): (*const c_void, *mut c_void, u64),
    datatype: c_int,
    op: *const COp,
    exclusive: bool,
    request: *mut *mut Started,
) -> c_int {
    let call = |_: &Levels| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        let receive = elements(receive, count, &op)?;
        let send = unless_in_place(send, receive.len() as u64)?;
        Ok(Task::Call(Call::Scan { send, receive, op, exclusive }))
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, call) }
}

/// As `unisono_reduce_scatter`, or `unisono_ireduce_scatter`.
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
    request: *mut *mut Started,
) -> c_int {
    let call = |levels: &Levels| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        // SAFETY: the caller's promise.
        let counts = unsafe { list(counts, "counts", levels.ranks()) }?;
        let own = counts.get(levels.rank as usize).copied().unwrap_or(0);
        let all = counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        ReduceScatter::task(send, receive, Parts { own, all, counts: Some(counts) }, op)
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, call) }
}

/// As `unisono_reduce_scatter_block`, or `unisono_ireduce_scatter_block`.
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
    request: *mut *mut Started,
) -> c_int {
    let call = |levels: &Levels| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        let all = count.saturating_mul(levels.size.into());
        ReduceScatter::task(send, receive, Parts { own: count, all, counts: None }, op)
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, call) }
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

/// One call where that takes less, and is possible; else a reduction to rank 0, which then scatters the blocks.
pub(super) struct ReduceScatter {
    operand: Buf,
    /// This rank's block of the result.
    own: Buf,
    /// It is the operand's where the fold is the operand.
    in_place: bool,
    /// The blocks' lengths and starts in bytes, if they differ.
    differ: bool,
    lengths: Vec<u64>,
    starts: Vec<u64>,
    op: Op,
}

impl ReduceScatter {
    /// # Errors
    /// The blocks are too long, or there is no memory.
    fn task(send: *const c_void, receive: *mut c_void, parts: Parts<'_>, op: Op) -> Result<Task, Failure> {
        let in_place = send.addr() == IN_PLACE;
        let operand = elements(if in_place { receive } else { send }, parts.all, &op)?;
        let own = elements(receive, parts.own, &op)?;
        let lists = consecutive(parts.counts.unwrap_or_default(), op.element());
        let (lengths, starts) = lists.map_err(|_| Failure::Memory)?;
        let differ = parts.counts.is_some();
        Ok(Task::ReduceScatter(Self { operand, own, in_place, differ, lengths, starts, op }))
    }

    /// # Safety
    /// As [`Communicator::run`], or [`Communicator::start`].
    pub(super) async unsafe fn run(self, communicator: &mut Communicator, waits: bool) -> Called {
        let Self { operand, own, differ, op, .. } = self;
        if communicator.reduce_scatters(operand.len() as u64) {
            let lengths = if differ { Lengths::Each(&self.lengths) } else { Lengths::Equal(own.len() as u64) };
            let call = Call::ReduceScatter { send: operand, receive: own, lengths, op };
            // SAFETY: the caller's promise.
            return ended(unsafe { calls::run(communicator, call, waits) }.await);
        }
        let (is_root, in_place) = (communicator.rank() == 0, self.in_place);
        // The fold at rank 0; in place, that is the operand.
        let mut memory = Vec::<u8>::new();
        memory.try_reserve_exact(if is_root && !in_place { operand.len() } else { 0 }).map_err(|_| Failure::Memory)?;
        let folded = match is_root {
            true if in_place => operand,
            true => Buf::new(memory.as_mut_ptr(), operand.len()),
            false => Memory::NOTHING,
        };
        // In place rank 0's block is the first one, where it belongs.
        let receive = if is_root && in_place { None } else { Some(own) };
        let reduces = Call::Reduce { send: operand, receive: folded, op, root: 0 };
        let scatters = match differ {
            false => Call::Scatter { send: folded.ptr(), receive, block: own.len() as u64, root: 0 },
            true => {
                let blocks = Spans { lengths: &self.lengths, starts: &self.starts };
                Call::Scatterv { send: Side { base: folded.ptr(), blocks }, receive, root: 0 }
            }
        };
        // SAFETY: the caller's promise, and memory of ours.
        let reduced = unsafe { calls::run(communicator, reduces, waits) }.await;
        let end = match reduced {
            // SAFETY: as above: the blocks of the fold at rank 0.
            Ok(()) => unsafe { calls::run(communicator, scatters, waits) }.await,
            error => error,
        };
        if end.is_err() {
            // Messages may still be read there.
            core::mem::forget(memory);
        }
        ended(end)
    }
}
