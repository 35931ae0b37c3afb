//! Datatypes and operations of reductions in C. Predefined ones are the kernel's numbers.

use core::ffi::{c_int, c_void};
use unisono_kernel::error::{Argument, Bound, Condition, Refusal};
use unisono_kernel::op::{Element, Op, Operation, User, UserFunction};

/// `unisono_op`: an operation of the caller's own. Predefined operations are passed as addresses that no object has,
/// from 1 on, which are their numbers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct COp {
    /// `function(left, right, count, context)` stores `left[i] op right[i]` into `right[i]`.
    pub function: Option<UserFunction>,
    /// The function's last argument.
    pub context: *mut c_void,
    /// 0: the operation is not commutative.
    pub commutative: c_int,
}

/// No object has an address below this one.
const OBJECTS: usize = 4096;

/// The refusal of a number of a predefined datatype or operation, which are those from 1 to `most`.
fn unknown(argument: Argument, number: u64, most: usize) -> Refusal {
    let bound = if number == 0 { Bound::AtLeast(1) } else { Bound::AtMost(most as u64) };
    Refusal::new(argument, number, bound)
}

/// The predefined type of this number. A refusal shows the number modulo 2³².
fn predefined(datatype: c_int) -> Result<Element, Refusal> {
    let number = u64::from(datatype as u32);
    Element::from_number(number).ok_or(unknown(Argument::Datatype, number, Element::ALL.len()))
}

/// The operation `op` on elements of `datatype`, which is a predefined type's number, or minus the bytes of an element.
///
/// # Errors
/// An unknown number of a datatype or an operation; a function that is null; a datatype on which the operation is not
/// defined.
///
/// # Safety
/// `op` is a number, or points to a struct that is not written during the call. Its function may be called with its
/// context on two arrays of elements during the call, and returns normally.
#[inline(always)]
pub unsafe fn operation(datatype: c_int, op: *const COp) -> Result<Op, Refusal> {
    let number = op.addr() as u64;
    if op.is_null() {
        return Err(Refusal::not(Argument::Operation, Condition::NotNull));
    }
    if op.addr() < OBJECTS {
        let operation =
            Operation::from_number(number).ok_or(unknown(Argument::Operation, number, Operation::ALL.len()))?;
        return Op::new(operation, predefined(datatype)?);
    }
    Refusal::check(Argument::Operation, number, Bound::MultipleOf(align_of::<COp>() as u64))?;
    // SAFETY: neither null nor a number, and aligned: a struct, by the caller's promise.
    let COp { function, context, commutative } = unsafe { op.read() };
    let element = if datatype < 0 { datatype.unsigned_abs().into() } else { predefined(datatype)?.bytes() };
    let function = function.ok_or(Refusal::not(Argument::Function, Condition::NotNull))?;
    // SAFETY: the caller's promise.
    Ok(Op::User(unsafe { User::new(function, context, element, commutative != 0) }))
}
