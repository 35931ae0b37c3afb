//! Heap memory that may be refused: if memory is short, a C caller gets an error number instead of an abort.

use crate::error::Failure;
use std::alloc::{Layout, alloc};

/// Puts `value` on the heap with a box's layout: [`Box::from_raw`] takes it over.
pub(crate) fn allocate<T>(value: T) -> Result<*mut T, Failure> {
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: the layout's size is not zero.
    let place = unsafe { alloc(Layout::new::<T>()) }.cast::<T>();
    if place.is_null() {
        return Err(Failure::Memory);
    }
    // SAFETY: allocated above with this size and alignment.
    unsafe { place.write(value) };
    Ok(place)
}

/// An empty list with room for `len` items, if there is memory.
pub(crate) fn reserved<T>(len: usize) -> Option<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).ok()?;
    Some(list)
}
