//! The collectives that reduce. Counts are elements of `datatype`.
//!
//! Safety of all: `comm` is null, or comes from `unisono_attach` and was not freed. `send` is
//! `UNISONO_IN_PLACE` where the header says so, equal to `receive`, or points to its elements, readable and apart
//! from `receive`, which points to writable ones; `op` is a predefined operation's number, or points to
//! a struct whose function may be called with its context during the call, and returns normally.

use crate::arguments::{collective, data, equal, is_in_place, list, scratch, vary};
use crate::comm::{Embedded, Handle};
use crate::operation::{COp, operation};
use core::cell::OnceCell;
use core::ffi::{c_int, c_void};
use unisono_kernel::datatype::Data;
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::op::Op;
use unisono_kernel::select::AllreduceAlgorithm;

/// The fold of everyone's `send` goes to the root's `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn unisono_reduce(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
    root: u32,
) -> c_int {
    let check = |c: &Communicator<Embedded>| {
        if c.rank() == root {
            // SAFETY: the caller's promise.
            let (from, to, op) = unsafe { operands(send, receive, count, datatype, op) }?;
            return Ok((from, Some(to), op));
        }
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        // SAFETY: the caller's promise.
        Ok((unsafe { data(send, bytes(count, op)?) }?, None, op))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to, op)| c.reduce(from, to, op, root)) }
}

/// The fold of everyone's `send` goes to everyone's `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn unisono_allreduce(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> c_int {
    // SAFETY: the caller's promise.
    let check = |_: &_| unsafe { operands(send, receive, count, datatype, op) };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to, op)| c.allreduce_with(from, to, op, AllreduceAlgorithm::Auto)) }
}

/// The fold of the `send` of ranks 0 … r goes to rank r's `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn unisono_scan(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> c_int {
    // SAFETY: the caller's promise.
    let check = |_: &_| unsafe { operands(send, receive, count, datatype, op) };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to, op)| c.scan(from, to, op)) }
}

/// The fold of the `send` of the ranks below r goes to rank r's `receive`; rank 0's is left alone.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn unisono_exscan(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> c_int {
    // SAFETY: the caller's promise.
    let check = |_: &_| unsafe { operands(send, receive, count, datatype, op) };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to, op)| c.exscan(from, to, op)) }
}

/// The fold of everyone's block r, `counts[r]` elements behind block r - 1, goes to rank r's `receive`.
///
/// # Safety
/// See the [module](self); `counts` is null or points to a number for each rank.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn unisono_reduce_scatter(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    counts: *const u64,
    datatype: c_int,
    op: *const COp,
) -> c_int {
    // Outlives the blocks that are made with it.
    let displacements = OnceCell::new();
    let check = |c: &Communicator<Embedded>| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        // SAFETY: the caller's promise.
        let counts = unsafe { list(counts, c.size()) }?;
        let starts = consecutive(counts)?;
        let displacements = displacements.get_or_init(|| starts);
        let from = if is_in_place(send) { receive } else { send };
        // SAFETY: the caller's promise.
        let from = unsafe { vary(from, counts, displacements, op.element()) }?;
        // SAFETY: the caller's promise.
        let to = unsafe { data(receive, from.bytes(c.rank())) }?;
        Ok((from, to, op))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to, op)| c.reduce_scatter(from, to, op)) }
}

/// The fold of everyone's block r, `count` elements, goes to rank r's `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn unisono_reduce_scatter_block(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> c_int {
    let check = |c: &Communicator<Embedded>| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        let from = if is_in_place(send) { receive } else { send };
        // SAFETY: the caller's promise.
        let from = unsafe { equal(from, c.size(), count, op.element()) }?;
        // SAFETY: the caller's promise.
        let to = unsafe { data(receive, bytes(count, op)?) }?;
        Ok((from, to, op))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to, op)| c.reduce_scatter(from, to, op)) }
}

/// Bytes of `count` elements.
#[inline(always)]
fn bytes(count: u64, op: Op) -> Result<u64, Refusal> {
    let element = Refusal::check(Argument::Element, op.element(), Bound::AtLeast(1))?;
    Ok(Refusal::check(Argument::Count, count, Bound::AtMost(isize::MAX as u64 / element))? * element)
}

/// Both sides, `count` elements each, and the operation.
///
/// # Safety
/// See the [module](self).
#[inline(always)]
unsafe fn operands<'a>(
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> Result<(Data<'a>, Data<'a>, Op), Refusal> {
    // SAFETY: the caller's promise.
    let op = unsafe { operation(datatype, op) }?;
    let bytes = bytes(count, op)?;
    // SAFETY: the caller's promise.
    let to = unsafe { data(receive, bytes) }?;
    // SAFETY: the caller's promise.
    let from = if is_in_place(send) { to } else { unsafe { data(send, bytes) }? };
    Ok((from, to, op))
}

/// Where blocks of `counts` elements begin that lie one behind the other.
fn consecutive(counts: &[u64]) -> Result<Vec<u64>, Refusal> {
    let mut displacements = scratch(counts.len())?;
    let mut end = 0_u64;
    for &count in counts {
        displacements.push(end);
        let over = Refusal::new(Argument::Count, count, Bound::AtMost(u64::MAX - end));
        end = end.checked_add(count).ok_or(over)?;
    }
    Ok(displacements)
}
