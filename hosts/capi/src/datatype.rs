//! Datatypes with holes, as opaque handles: the kernel's, each with the lists that it is made of.
//!
//! A type never changes, so any number of calls may use it at a time. Safety of all functions: `datatype` is null or
//! points to a pointer that may be written; lists are null or have the length that is passed, and are not written
//! during the call.

use crate::arguments::array;
use crate::error::{Failure, answer};
use crate::heap::{allocate, reserved};
use core::ffi::c_int;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype, Field};
use unisono_kernel::error::{Argument, Bound, Condition, Refusal};

/// `unisono_type`, opaque in C: how the bytes of one element lie in memory.
#[derive(Debug)]
pub struct Type(Description);

/// The kernel's datatype, with lists of its own.
#[derive(Debug)]
enum Description {
    Contiguous { bytes: u64 },
    Vector { blocks: u64, block: u64, stride: u64 },
    Indexed { block: u64, displacements: Vec<u64> },
    Struct { fields: Vec<Field>, extent: u64 },
}

impl Description {
    #[inline(always)]
    fn datatype(&self) -> Datatype<'_> {
        match *self {
            Self::Contiguous { bytes } => Datatype::Contiguous { bytes },
            Self::Vector { blocks, block, stride } => Datatype::Vector { blocks, block, stride },
            Self::Indexed { block, ref displacements } => Datatype::Indexed { block, displacements },
            Self::Struct { ref fields, extent } => Datatype::Struct { fields, extent },
        }
    }
}

/// The datatype of a handle that was passed to a collective.
///
/// # Safety
/// `handle` is null, or comes from a function of this module and is not freed during `'a`.
#[inline(always)]
pub(crate) unsafe fn resolve<'a>(handle: *const Type) -> Result<Datatype<'a>, Refusal> {
    if handle.is_null() {
        return Err(Refusal::not(Argument::Datatype, Condition::NotNull));
    }
    Refusal::check(Argument::Datatype, handle.addr() as u64, Bound::MultipleOf(align_of::<Type>() as u64))?;
    // SAFETY: not null, aligned; the caller's promise.
    Ok(unsafe { &*handle }.0.datatype())
}

/// Makes a type of the description that `describe` returns, and writes its handle to `datatype`; null on an error.
///
/// # Safety
/// See the [module](self).
unsafe fn create(datatype: *mut *mut Type, describe: impl FnOnce() -> Result<Description, Failure>) -> c_int {
    answer((|| {
        if datatype.is_null() {
            return Err(Failure::Null("type"));
        }
        // SAFETY: not null, writable by the caller's promise.
        unsafe { datatype.write(core::ptr::null_mut()) };
        let description = describe()?;
        // Checks one element against the largest possible memory: refuses a type that can't lie in any.
        let memory = Buf::new(core::ptr::null_mut(), isize::MAX as usize);
        // SAFETY: the data is dropped here, and its memory is never accessed.
        unsafe { Data::from_raw(memory, 1, description.datatype()) }?;
        let handle = allocate(Type(description))?;
        // SAFETY: as the first write.
        unsafe { datatype.write(handle) };
        Ok(())
    })())
}

/// The `len` numbers at `address`; `name` is the argument's name for an error.
///
/// # Safety
/// See the [module](self).
unsafe fn numbers<'a>(name: &'static str, address: *const u64, len: u64) -> Result<&'a [u64], Failure> {
    if len > 0 && address.is_null() {
        return Err(Failure::Null(name));
    }
    Refusal::check(Argument::Count, len, Bound::AtMost(isize::MAX as u64 / size_of::<u64>() as u64))?;
    // SAFETY: the caller's promise; the length fits memory.
    Ok(if len == 0 { &[] } else { unsafe { array(address, len as usize) }? })
}

/// A type of `bytes` bytes without holes.
///
/// # Safety
/// See the [module](self).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_type_contiguous(bytes: u64, datatype: *mut *mut Type) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { create(datatype, || Ok(Description::Contiguous { bytes })) }
}

/// A type of `blocks` blocks of `block` bytes, `stride` bytes from the start of one to the start of the next.
///
/// # Safety
/// See the [module](self).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_type_vector(blocks: u64, block: u64, stride: u64, datatype: *mut *mut Type) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { create(datatype, || Ok(Description::Vector { blocks, block, stride })) }
}

/// A type of a block of `block` bytes at each of `blocks` displacements.
///
/// # Safety
/// See the [module](self).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_type_indexed(
    blocks: u64,
    block: u64,
    displacements: *const u64,
    datatype: *mut *mut Type,
) -> c_int {
    let describe = || {
        // SAFETY: the caller's promise.
        let given = unsafe { numbers("displacements", displacements, blocks) }?;
        let mut displacements = reserved(given.len()).ok_or(Failure::Memory)?;
        displacements.extend_from_slice(given);
        Ok(Description::Indexed { block, displacements })
    };
    // SAFETY: the caller's promise.
    unsafe { create(datatype, describe) }
}

/// A type of `fields` fields: field i has `bytes[i]` bytes and starts `displacements[i]` bytes after the element's
/// start; elements are `extent` bytes apart.
///
/// # Safety
/// See the [module](self).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_type_struct(
    fields: u64,
    bytes: *const u64,
    displacements: *const u64,
    extent: u64,
    datatype: *mut *mut Type,
) -> c_int {
    let describe = || {
        // SAFETY: the caller's promise.
        let bytes = unsafe { numbers("bytes", bytes, fields) }?;
        // SAFETY: the caller's promise.
        let displacements = unsafe { numbers("displacements", displacements, fields) }?;
        let mut fields = reserved(bytes.len()).ok_or(Failure::Memory)?;
        let given = bytes.iter().zip(displacements);
        fields.extend(given.map(|(&bytes, &displacement)| Field { displacement, bytes }));
        Ok(Description::Struct { fields, extent })
    };
    // SAFETY: the caller's promise.
    unsafe { create(datatype, describe) }
}

/// Frees a type; null is allowed.
///
/// # Safety
/// `datatype` is null, or comes from a function of this module, was not freed, and no call uses it.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_type_free(datatype: *mut Type) -> c_int {
    if !datatype.is_null() {
        // SAFETY: allocated with a box's layout, and freed once, by the caller's promise.
        drop(unsafe { Box::from_raw(datatype) });
    }
    answer(Ok(()))
}
