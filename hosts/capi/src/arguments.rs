//! Checks arguments from C: addresses, bytes, one block per rank.

use crate::forms::Numbers;
use core::ffi::c_void;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{Argument, Bound, Condition, Refusal};

/// `UNISONO_IN_PLACE`: an address that no object has.
const IN_PLACE: usize = usize::MAX;

pub(crate) fn is_in_place(address: *const c_void) -> bool {
    address.addr() == IN_PLACE
}

/// `bytes` bytes at `address`. Refuses `UNISONO_IN_PLACE`, and null unless `bytes` is 0.
#[inline(always)]
pub(crate) fn memory(address: *const c_void, bytes: u64) -> Result<Buf, Refusal> {
    if is_in_place(address) {
        return Err(Refusal::not(Argument::Buffer, Condition::InPlaceAllowed));
    }
    if bytes > 0 && address.is_null() {
        return Err(Refusal::not(Argument::Buffer, Condition::NotNull));
    }
    Refusal::check(Argument::Bytes, bytes, Bound::AtMost(isize::MAX as u64))?;
    Ok(Buf::new(address.cast_mut().cast(), bytes as usize))
}

/// `bytes` bytes of the caller's memory.
///
/// # Safety
/// As [`Data::from_raw`], where `address` is not refused.
#[inline(always)]
pub(crate) unsafe fn data<'a>(address: *const c_void, bytes: u64) -> Result<Data<'a>, Refusal> {
    let memory = memory(address, bytes)?;
    // SAFETY: the caller's promise.
    unsafe { Data::from_raw(memory, bytes, Datatype::BYTE) }
}

/// As [`data`], unless it is in place.
///
/// # Safety
/// As [`data`].
#[inline(always)]
pub(crate) unsafe fn data_or_in_place<'a>(address: *const c_void, bytes: u64) -> Result<Option<Data<'a>>, Refusal> {
    // SAFETY: the caller's promise.
    if is_in_place(address) { Ok(None) } else { unsafe { data(address, bytes) }.map(Some) }
}

/// `ranks` blocks of `count` elements of `element` bytes, one after the other.
///
/// # Safety
/// As [`data`], for all blocks.
#[inline(always)]
pub(crate) unsafe fn equal<'a>(
    address: *const c_void,
    ranks: u32,
    count: u64,
    element: u64,
) -> Result<Blocks<'a>, Refusal> {
    let bytes = count.saturating_mul(element);
    let memory = memory(address, bytes.saturating_mul(ranks.into()))?;
    // SAFETY: the caller's promise.
    unsafe { Blocks::equal(memory, ranks, count, Datatype::Contiguous { bytes: element }) }
}

/// A block of `counts[r]` elements of `element` bytes for each rank r, `displacements[r]` elements from `address` on.
///
/// # Safety
/// As [`data`], for all blocks.
#[inline(always)]
pub(crate) unsafe fn vary<'a>(
    address: *const c_void,
    counts: &'a [u64],
    displacements: &'a [u64],
    element: u64,
) -> Result<Blocks<'a>, Refusal> {
    let blocks = counts.iter().zip(displacements).filter(|(count, _)| **count > 0);
    let reach = blocks.map(|(count, displacement)| count.saturating_add(*displacement)).max().unwrap_or(0);
    let memory = memory(address, reach.saturating_mul(element))?;
    // SAFETY: the caller's promise.
    unsafe { Blocks::vary(memory, counts, displacements, Datatype::Contiguous { bytes: element }) }
}

/// Room for `len` numbers. Refused if memory is short.
#[inline(always)]
pub(crate) fn reserve(numbers: &mut Numbers, len: usize) -> Result<(), Refusal> {
    numbers.try_reserve_exact(len).map_err(|_| Refusal::not(Argument::List, Condition::Memory))
}

/// An item for each rank: counts, displacements or types.
///
/// # Safety
/// As [`array()`].
#[inline(always)]
pub(crate) unsafe fn list<'a, T>(address: *const T, ranks: u32) -> Result<&'a [T], Refusal> {
    // SAFETY: the caller's promise.
    unsafe { array(address, ranks as usize) }
}

/// `len` items, of at most `isize::MAX` bytes.
///
/// # Safety
/// `address` is null, or points to `len` items that are not written during the call.
#[inline(always)]
pub(crate) unsafe fn array<'a, T>(address: *const T, len: usize) -> Result<&'a [T], Refusal> {
    if address.is_null() {
        return Err(Refusal::not(Argument::List, Condition::NotNull));
    }
    Refusal::check(Argument::Buffer, address.addr() as u64, Bound::MultipleOf(align_of::<T>() as u64))?;
    // SAFETY: not null, aligned; the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(address, len) })
}
