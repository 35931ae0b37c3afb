//! The reductions. Counts are numbers of elements of `datatype`.
//!
//! Safety of all functions: `comm` is null, or comes from `unisono_attach` and was not freed. `receive` points to
//! writable elements. `send` is `UNISONO_IN_PLACE` where the header allows it, equal to `receive`, or points to
//! readable elements that do not overlap `receive`. `counts` is null or points to a number for each rank. `op` is a
//! predefined operation's number, or points to a struct whose function may be called with its context during the call,
//! and returns normally.

use crate::arguments::{data, equal, is_in_place, list, reserve, vary};
use crate::forms::{Lists, Numbers, forms};
use crate::operation::{COp, operation};
use core::ffi::{c_int, c_void};
use unisono_kernel::algorithm::{AllreduceAlgorithm, ReduceAlgorithm, ReduceScatterAlgorithm, ScanAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Member;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::op::Op;

type Built<'a> = Result<Call<'a>, Refusal>;

forms! {
    /// The fold of all ranks' `send` goes to the root's `receive`.
    unisono_reduce, unisono_ireduce, unisono_reduce_init: reduce(
        send: *const c_void, receive: *mut c_void, count: u64, datatype: c_int, op: *const COp, root: u32,
    );
    /// The fold of all ranks' `send` goes to every rank's `receive`.
    unisono_allreduce, unisono_iallreduce, unisono_allreduce_init:
        allreduce(send: *const c_void, receive: *mut c_void, count: u64, datatype: c_int, op: *const COp);
    /// The fold of all ranks' block r, `counts[r]` elements after block r - 1, goes to rank r's `receive`.
    unisono_reduce_scatter, unisono_ireduce_scatter, unisono_reduce_scatter_init: reduce_scatter(
        send: *const c_void, receive: *mut c_void, counts: *const u64, datatype: c_int, op: *const COp,
    );
    /// The fold of all ranks' block r, `count` elements, goes to rank r's `receive`.
    unisono_reduce_scatter_block, unisono_ireduce_scatter_block, unisono_reduce_scatter_block_init: reduce_scatter_block(
        send: *const c_void, receive: *mut c_void, count: u64, datatype: c_int, op: *const COp,
    );
    /// The fold of the `send` of ranks 0 … r goes to rank r's `receive`.
    unisono_scan, unisono_iscan, unisono_scan_init:
        scan(send: *const c_void, receive: *mut c_void, count: u64, datatype: c_int, op: *const COp);
    /// The fold of the `send` of the ranks below r goes to rank r's `receive`; rank 0's is not written.
    unisono_exscan, unisono_iexscan, unisono_exscan_init:
        exscan(send: *const c_void, receive: *mut c_void, count: u64, datatype: c_int, op: *const COp);
}

/// # Safety
/// See the [module](self), for this and all functions below.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "what MPI passes")]
unsafe fn reduce<'a>(
    me: &Member,
    _: Lists<'a>,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
    root: u32,
) -> Built<'a> {
    if me.rank() == root {
        // SAFETY: the caller's promise.
        let (send, receive, op) = unsafe { operands(send, receive, count, datatype, op) }?;
        return Ok(Call::Reduce { send, receive: Some(receive), op, root, algorithm: ReduceAlgorithm::Auto });
    }
    // SAFETY: the caller's promise.
    let op = unsafe { operation(datatype, op) }?;
    // SAFETY: the caller's promise.
    let send = unsafe { data(send, bytes(count, op)?) }?;
    Ok(Call::Reduce { send, receive: None, op, root, algorithm: ReduceAlgorithm::Auto })
}

#[inline(always)]
unsafe fn allreduce<'a>(
    _: &Member,
    _: Lists<'a>,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> Built<'a> {
    // SAFETY: the caller's promise.
    let (send, receive, op) = unsafe { operands(send, receive, count, datatype, op) }?;
    Ok(Call::Allreduce { send, receive, op, algorithm: AllreduceAlgorithm::Auto })
}

#[inline(always)]
unsafe fn scan<'a>(
    _: &Member,
    _: Lists<'a>,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> Built<'a> {
    // SAFETY: the caller's promise.
    let (send, receive, op) = unsafe { operands(send, receive, count, datatype, op) }?;
    Ok(Call::Scan { send, receive, op, algorithm: ScanAlgorithm::Auto })
}

#[inline(always)]
unsafe fn exscan<'a>(
    _: &Member,
    _: Lists<'a>,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> Built<'a> {
    // SAFETY: the caller's promise.
    let (send, receive, op) = unsafe { operands(send, receive, count, datatype, op) }?;
    Ok(Call::Exscan { send, receive, op, algorithm: ScanAlgorithm::Auto })
}

#[inline(always)]
unsafe fn reduce_scatter<'a>(
    me: &Member,
    lists: Lists<'a>,
    send: *const c_void,
    receive: *mut c_void,
    counts: *const u64,
    datatype: c_int,
    op: *const COp,
) -> Built<'a> {
    // SAFETY: the caller's promise.
    let op = unsafe { operation(datatype, op) }?;
    // SAFETY: the caller's promise.
    let counts = unsafe { list(counts, me.size()) }?;
    let displacements = consecutive(counts, lists.numbers)?;
    let from = if is_in_place(send) { receive } else { send };
    // SAFETY: the caller's promise.
    let send = unsafe { vary(from, counts, displacements, op.element()) }?;
    // SAFETY: the caller's promise.
    let receive = unsafe { data(receive, send.bytes(me.rank())) }?;
    Ok(Call::ReduceScatter { send, receive, op, algorithm: ReduceScatterAlgorithm::Auto })
}

#[inline(always)]
unsafe fn reduce_scatter_block<'a>(
    me: &Member,
    _: Lists<'a>,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> Built<'a> {
    // SAFETY: the caller's promise.
    let op = unsafe { operation(datatype, op) }?;
    let from = if is_in_place(send) { receive } else { send };
    // SAFETY: the caller's promise.
    let send = unsafe { equal(from, me.size(), count, op.element()) }?;
    // SAFETY: the caller's promise.
    let receive = unsafe { data(receive, bytes(count, op)?) }?;
    Ok(Call::ReduceScatter { send, receive, op, algorithm: ReduceScatterAlgorithm::Auto })
}

/// Bytes of `count` elements.
#[inline(always)]
fn bytes(count: u64, op: Op) -> Result<u64, Refusal> {
    let element = Refusal::check(Argument::Element, op.element(), Bound::AtLeast(1))?;
    match count.checked_mul(element) {
        Some(bytes) if bytes <= isize::MAX as u64 => Ok(bytes),
        _ => Err(Refusal::new(Argument::Count, count, Bound::AtMost(isize::MAX as u64 / element))),
    }
}

/// What is sent and what is received, `count` elements each, and the operation.
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

/// The displacements of blocks of `counts` elements, one after the other.
fn consecutive<'a>(counts: &[u64], displacements: &'a mut Numbers) -> Result<&'a [u64], Refusal> {
    reserve(displacements, counts.len())?;
    let mut end = 0_u64;
    for &count in counts {
        displacements.push(end);
        let over = Refusal::new(Argument::Count, count, Bound::AtMost(u64::MAX - end));
        end = end.checked_add(count).ok_or(over)?;
    }
    Ok(displacements)
}
