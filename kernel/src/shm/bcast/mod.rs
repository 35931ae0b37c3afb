//! Broadcast over a region (MPI 4.1, 7.4).

pub mod cico;
pub mod posted;
pub mod queue;

use crate::datatype::Data;
use crate::region::{Extent, Region};

/// Copies packed bytes `from .. from + at.len()` of `data` into the segment, block by block.
///
/// # Safety
/// The extent is free for this writer; `data`'s memory is readable.
#[inline]
unsafe fn copy_in<R: Region>(region: &R, at: Extent, data: &Data<'_>, from: u64) {
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
unsafe fn copy_out_past_caches<R: Region>(region: &R, at: Extent, data: &Data<'_>, from: u64) {
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
unsafe fn copy_out<R: Region>(region: &R, at: Extent, data: &Data<'_>, from: u64) {
    for (packed, run) in data.runs(from, at.len()) {
        // SAFETY: the caller's promise, for a part of the extent.
        unsafe { region.read(at.part(packed - from, run.len() as u64), run) };
    }
}
