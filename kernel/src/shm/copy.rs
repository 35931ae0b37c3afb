//! Copies between users' data and the segment, block by block.

use crate::datatype::Data;
use crate::region::{Extent, Region};

/// Copies packed bytes `from .. from + at.len()` of `data` into the segment, block by block.
///
/// # Safety
/// The extent is free for this writer; `data`'s memory is readable.
#[inline]
pub(crate) unsafe fn copy_in<R: Region>(region: &R, at: Extent, data: &Data<'_>, from: u64) {
    for (packed, run) in data.runs(from, at.len()) {
        // SAFETY: the caller's promise, for a part of the extent.
        unsafe { region.write(at.part(packed - from, run.len() as u64), run) };
    }
}

/// [`copy_out`] past the caches.
///
/// # Safety
/// As [`copy_out`].
#[inline]
pub(crate) unsafe fn copy_out_past_caches<R: Region>(region: &R, at: Extent, data: &Data<'_>, from: u64) {
    for (packed, run) in data.runs(from, at.len()) {
        // SAFETY: the caller's promise, for a part of the extent.
        unsafe { region.read_past_caches(at.part(packed - from, run.len() as u64), run) };
    }
}

/// Copies the segment's bytes to packed bytes `from .. from + at.len()` of `data`, block by block.
///
/// # Safety
/// The extent's writer has published it and does not write it now; `data`'s memory is writable and exclusive.
#[inline]
pub(crate) unsafe fn copy_out<R: Region>(region: &R, at: Extent, data: &Data<'_>, from: u64) {
    for (packed, run) in data.runs(from, at.len()) {
        // SAFETY: the caller's promise, for a part of the extent.
        unsafe { region.read(at.part(packed - from, run.len() as u64), run) };
    }
}

/// Copies packed bytes of `from` to packed bytes of `to`, private to private, block by block: bytes
/// `at .. at + len` of both.
///
/// # Safety
/// `from`'s memory is readable, `to`'s writable and exclusive. Equal memory is left alone.
pub(crate) unsafe fn copy_private(from: &Data<'_>, to: &Data<'_>, (at, len): (u64, u64)) {
    for (packed, source) in from.runs(at, len) {
        for (target_at, target) in to.runs(packed, source.len() as u64) {
            let source = source.ptr().wrapping_add((target_at - packed) as usize);
            if source != target.ptr() {
                // SAFETY: the caller's promise; runs lie inside their data, and equal data was left alone.
                unsafe { core::ptr::copy(source, target.ptr(), target.len()) };
            }
        }
    }
}
