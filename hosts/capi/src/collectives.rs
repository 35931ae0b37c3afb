//! Broadcast, barrier, allreduce.
//!
//! An argument that is refused here is refused as a collective is: the other ranks get an error
//! too, at this or their next call, and none is left waiting.

use crate::comm::{Embedded, Handle, with};
use crate::error::Failure;
use core::ffi::{c_int, c_void};
use unisono_kernel::buffer::Buf;
use unisono_kernel::datatype::{Data, Datatype};
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::op::{Op, User, UserFunction};
use unisono_kernel::select::{Bcast, BcastAlgorithm};
use unisono_kernel::shm::allreduce::posted::{MOST, Posted};

/// `UNISONO_F64`: IEEE 754 binary64, C's `double`.
pub const UNISONO_F64: c_int = 1;
/// `UNISONO_I64`: C's `int64_t`.
pub const UNISONO_I64: c_int = 2;
/// `UNISONO_SUM`: the sum; integers wrap.
pub const UNISONO_SUM: c_int = 1;
/// Most bytes of an operand.
pub const UNISONO_ALLREDUCE_MOST: u64 = MOST;

/// `UNISONO_IN_PLACE`: an address that no object has.
fn is_in_place(send: *const c_void) -> bool {
    send.addr() == usize::MAX
}

/// `bytes` bytes at `address` of the caller's.
///
/// # Safety
/// As [`Data::from_raw`], where `address` is not null.
unsafe fn data<'a>(address: *const c_void, bytes: u64) -> Result<Data<'a>, Refusal> {
    if bytes > 0 {
        Refusal::check(Argument::Buffer, address.addr() as u64, Bound::AtLeast(1))?;
    }
    Refusal::check(Argument::Bytes, bytes, Bound::AtMost(isize::MAX as u64))?;
    let memory = Buf::new(address.cast_mut().cast(), bytes as usize);
    // SAFETY: the caller's promise.
    unsafe { Data::from_raw(memory, bytes, Datatype::BYTE) }
}

/// Broadcasts `bytes` bytes at `buffer` from `root` to every rank's `buffer`.
///
/// # Safety
/// `comm` is null, or comes from `unisono_attach` and was not freed; `buffer` points to `bytes`
/// bytes, readable at the root, writable elsewhere, that nobody else uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_bcast(comm: *mut Handle, buffer: *mut c_void, bytes: u64, root: u32) -> c_int {
    let run = |c: &mut Communicator<Embedded>| {
        // SAFETY: the caller's promise.
        let make = |me: &mut _| Bcast::new(me, unsafe { data(buffer, bytes) }?, root, BcastAlgorithm::Auto);
        Ok(c.call(make)?)
    };
    // SAFETY: the caller's promise.
    unsafe { with(comm, run) }
}

/// Waits until every rank has entered.
///
/// # Safety
/// `comm` is null, or comes from `unisono_attach` and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_barrier(comm: *mut Handle) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(comm, |c| Ok(c.barrier()?)) }
}

/// Folds every rank's `count` elements at `send` with `op` into every rank's `receive`.
///
/// # Safety
/// `comm` as in [`unisono_bcast`]. `send` is `UNISONO_IN_PLACE`, equal to `receive`, or points to
/// `count` readable elements apart from `receive`; `receive` points to `count` writable ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_allreduce(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: c_int,
) -> c_int {
    // Numbers are named as the caller wrote them, modulo 2³².
    let unknown = |argument, value: c_int, most| Refusal::new(argument, u64::from(value as u32), Bound::AtMost(most));
    let op = match (op, datatype) {
        (UNISONO_SUM, UNISONO_F64) => Ok(Op::SumF64),
        (UNISONO_SUM, UNISONO_I64) => Ok(Op::SumI64),
        (UNISONO_SUM, _) => Err(unknown(Argument::Datatype, datatype, UNISONO_I64 as u64)),
        _ => Err(unknown(Argument::Operation, op, UNISONO_SUM as u64)),
    };
    // SAFETY: the caller's promise.
    unsafe { fold(comm, send, receive, count, op) }
}

/// [`unisono_allreduce`] with the caller's operation on elements of `element` bytes:
/// `function(left, right, count, context)` stores `left[i] op right[i]` into `right[i]`.
///
/// # Safety
/// As [`unisono_allreduce`]; `function` is null, or may be called with `context` on two arrays of
/// up to `count` elements during the call, and returns normally.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_allreduce_user(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    element: u64,
    function: Option<UserFunction>,
    context: *mut c_void,
    commutative: c_int,
) -> c_int {
    let op = match function {
        // SAFETY: the caller's promise.
        Some(function) => Ok(Op::User(unsafe { User::new(function, context, element, commutative != 0) })),
        None => Err(Refusal::new(Argument::Operation, 0, Bound::AtLeast(1))),
    };
    // SAFETY: the caller's promise.
    unsafe { fold(comm, send, receive, count, op) }
}

/// # Safety
/// As [`unisono_allreduce`].
unsafe fn fold(
    comm: *mut Handle,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    op: Result<Op, Refusal>,
) -> c_int {
    let run = |c: &mut Communicator<Embedded>| -> Result<(), Failure> {
        let make = |me: &mut _| {
            let op = op?;
            let element = Refusal::check(Argument::Extent, op.element(), Bound::AtLeast(1))?;
            let count = Refusal::check(Argument::Count, count, Bound::AtMost(MOST / element))?;
            // SAFETY: the caller's promise.
            let into = unsafe { data(receive, count * element) }?;
            // SAFETY: the caller's promise.
            let from = if is_in_place(send) { into } else { unsafe { data(send, count * element) }? };
            Posted::new(me, from, into, op)
        };
        Ok(c.call(make)?)
    };
    // SAFETY: the caller's promise.
    unsafe { with(comm, run) }
}
