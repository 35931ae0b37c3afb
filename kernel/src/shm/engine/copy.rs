//! Copies between users' data and the segment: as one copy where the data has no holes, else block by block.

use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::region::{Extent, Region};

/// Bytes `from .. from + len` of a message's packed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    pub(crate) from: u64,
    pub(crate) len: u64,
}

impl Part {
    /// The first `len` bytes.
    #[inline(always)]
    pub(crate) const fn first(len: u64) -> Self {
        Self { from: 0, len }
    }
}

/// A root's block for itself, of which it copies a part where it would wait for others, and the rest when it needs nothing more of
/// them: so nobody waits for these copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Apart {
    /// Bytes that are copied.
    copied: u64,
}

impl Apart {
    /// Bytes of a part; and of the shortest block that is copied so.
    const PART: u64 = 32 << 10;

    /// Nothing is copied.
    pub(crate) const NONE: Self = Self { copied: 0 };

    /// Is a block of so many bytes copied apart?
    #[inline(always)]
    pub(crate) const fn has(bytes: u64) -> bool {
        bytes >= Self::PART
    }

    /// Copies the next part of `own` to `to`, or `all` that is left. `false`: nothing was left, or the block is not copied apart.
    ///
    /// # Safety
    /// As [`copy_private`].
    #[inline(always)]
    pub(crate) unsafe fn copy<R: Region>(&mut self, region: &R, own: &Data<'_>, to: &Data<'_>, all: bool) -> bool {
        let left = own.len() - self.copied;
        if left == 0 || !Self::has(own.len()) {
            return false;
        }
        let part = Part { from: self.copied, len: if all { left } else { left.min(Self::PART) } };
        // SAFETY: the caller's promise.
        unsafe { copy_private(region, own, to, part) };
        self.copied += part.len;
        true
    }
}

/// Copies packed bytes `from .. from + at.len()` of `data` into the segment.
///
/// # Safety
/// The extent is free for this writer; `data`'s memory is readable.
#[inline(always)]
pub(crate) unsafe fn copy_in<R: Region>(region: &R, at: Extent, data: &Data<'_>, from: u64) {
    // SAFETY: the caller's promise, for a part of the extent.
    stretches(at, data, from, |part, run| unsafe { region.write(part, run) });
}

/// Copies the segment's bytes to packed bytes `from .. from + at.len()` of `data`.
///
/// # Safety
/// The extent's writer has published it and does not write it now; `data`'s memory is writable and exclusive.
#[inline(always)]
pub(crate) unsafe fn copy_out<R: Region>(region: &R, at: Extent, data: &Data<'_>, from: u64) {
    // SAFETY: the caller's promise, for a part of the extent.
    stretches(at, data, from, |part, run| unsafe { region.read(part, run) });
}

/// [`copy_out`] with stores that bypass the caches.
///
/// # Safety
/// As [`copy_out`].
#[inline(always)]
pub(crate) unsafe fn copy_out_past_caches<R: Region>(region: &R, at: Extent, data: &Data<'_>, from: u64) {
    // SAFETY: the caller's promise, for a part of the extent.
    stretches(at, data, from, |part, run| unsafe { region.read_past_caches(part, run) });
}

/// Calls `copy` for each contiguous run of packed bytes `from .. from + at.len()` of `data`, with the part of the
/// extent that belongs to it.
#[inline(always)]
fn stretches(at: Extent, data: &Data<'_>, from: u64, copy: impl Fn(Extent, Buf)) {
    if let Some(run) = data.stretch(from, at.len()) {
        return copy(at.part(0, run.len() as u64), run);
    }
    for (packed, run) in data.runs(from, at.len()) {
        copy(at.part(packed - from, run.len() as u64), run);
    }
}

/// Copies a part of `from`'s packed bytes to the same part of `to`'s. Both are this process's private memory. Where
/// both are the same memory nothing is copied.
///
/// # Safety
/// `from`'s memory is readable, `to`'s writable and exclusive.
#[inline(always)]
pub(crate) unsafe fn copy_private<R: Region>(region: &R, from: &Data<'_>, to: &Data<'_>, part: Part) {
    match (from.stretch(part.from, part.len), to.stretch(part.from, part.len)) {
        // SAFETY: the caller's promise.
        (Some(from), Some(to)) => unsafe { copy_stretch(region, from, to) },
        // SAFETY: the caller's promise.
        _ => unsafe { copy_blocks(region, from, to, part) },
    }
}

/// [`copy_private`], block by block.
///
/// # Safety
/// As [`copy_private`].
unsafe fn copy_blocks<R: Region>(region: &R, from: &Data<'_>, to: &Data<'_>, part: Part) {
    for (packed, source) in from.runs(part.from, part.len) {
        for (target_at, target) in to.runs(packed, source.len() as u64) {
            // SAFETY: runs lie inside their data, which is as the caller promised.
            unsafe {
                copy_stretch(
                    region,
                    Buf::new(source.ptr().wrapping_add((target_at - packed) as usize), target.len()),
                    target,
                )
            };
        }
    }
}

/// Copies `from` to `to`, which has as many bytes, unless both are at the same address.
///
/// # Safety
/// `from` is readable, `to` writable and exclusive.
#[inline(always)]
unsafe fn copy_stretch<R: Region>(region: &R, from: Buf, to: Buf) {
    if from.ptr() != to.ptr() {
        // SAFETY: the caller's promise.
        unsafe { region.copy_private(from, to) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::words::Words;
    use crate::region::{Layout, Params};
    use std::vec;

    #[test]
    fn a_block_is_copied_in_parts_once() {
        let region = Words::new(&Layout::new(Params::new(1)).unwrap());
        let (own, mut copy) = (vec![1; 70_000], vec![0; 70_000]);
        let (from, to) = (Data::bytes(&own), Data::bytes_mut(&mut copy));
        let mut apart = Apart::NONE;
        // SAFETY: both are memory of this test's, and apart.
        let copies = [false, true, true].map(|all| (unsafe { apart.copy(&region, &from, &to, all) }, apart.copied));
        assert_eq!(copies, [(true, 32 << 10), (true, 70_000), (false, 70_000)]);
        assert_eq!(copy, own);
        let (from, to) = (Data::bytes(&own[..32_767]), Data::bytes_mut(&mut copy));
        apart = Apart::NONE;
        // SAFETY: as above.
        assert!(!unsafe { apart.copy(&region, &from, &to, true) }, "a short one is copied in step 0");
    }
}
