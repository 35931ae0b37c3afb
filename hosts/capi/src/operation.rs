//! Datatypes and operations of reductions, as C names them: numbers for what is predefined, the kernel's own.

use core::ffi::{c_int, c_void};
use unisono_kernel::error::{Argument, Bound, Condition, Refusal};
use unisono_kernel::op::{Element, Op, Operation, User, UserFunction};

/// `unisono_op`: an operation of the caller's. Addresses that no object has, from 1 on, are
/// the numbers of predefined ones.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct COp {
    /// `function(left, right, count, context)` stores `left[i] op right[i]` into `right[i]`.
    pub function: Option<UserFunction>,
    /// What the function gets besides.
    pub context: *mut c_void,
    /// May operands be exchanged? 0: no.
    pub commutative: c_int,
}

/// No object lies below this address.
const OBJECTS: usize = 4096;

/// The refusal of a number of a predefined datatype or operation, which are those from 1 to `most`.
fn unknown(argument: Argument, number: u64, most: usize) -> Refusal {
    let bound = if number == 0 { Bound::AtLeast(1) } else { Bound::AtMost(most as u64) };
    Refusal::new(argument, number, bound)
}

/// The predefined type of this number. Numbers are named as the caller wrote them, modulo 2³².
fn predefined(datatype: c_int) -> Result<Element, Refusal> {
    let number = u64::from(datatype as u32);
    Element::from_number(number).ok_or(unknown(Argument::Datatype, number, Element::ALL.len()))
}

/// The operation at `op` on elements of `datatype`: a predefined type's number, or minus the bytes of an element.
///
/// # Errors
/// Neither is one of those numbers; a function that is null, an element of no bytes.
///
/// # Safety
/// `op` is a number, or points to its struct, that nobody writes during the call; a function there may be
/// called with its context on two arrays of elements during the call, and returns normally.
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
