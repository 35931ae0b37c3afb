//! Folds and copies whose result lies in the segment: block by block, through private memory.

use super::{Extent, Region};
use crate::data::buffer::Buf;
use crate::op::{Op, USER_MOST};
use core::mem::MaybeUninit;

/// Private memory for a block of whole elements, aligned for a user's function.
#[repr(C, align(16))]
struct Block(MaybeUninit<[u8; USER_MOST]>);

/// Calls `act` for each block of `len` bytes, which are elements of `element` bytes: with where it begins, its bytes and
/// private memory of as many.
#[inline]
fn blocks(len: u64, element: u64, act: impl Fn(u64, u64, Buf)) {
    let mut block = Block(MaybeUninit::uninit());
    let most = USER_MOST as u64;
    // Longer elements are not folded anywhere.
    let step = most - most.checked_rem(element).unwrap_or(most);
    let mut at = 0;
    while step > 0 && at < len {
        let bytes = step.min(len - at);
        act(at, bytes, Buf::new(block.0.as_mut_ptr().cast(), bytes as usize));
        at += bytes;
    }
}

/// What [`Region::fold_within`] does, with the region's other methods.
///
/// # Safety
/// As there.
pub unsafe fn fold_within<R: Region + ?Sized>(region: &R, at: Extent, acc: Extent, op: &Op) {
    blocks(at.len().min(acc.len()), op.element(), |from, bytes, block| {
        let (left, right) = (at.part(from, bytes), acc.part(from, bytes));
        // SAFETY: nobody else writes it, by the caller's promise; the block is ours.
        unsafe { region.read(right, block) };
        // SAFETY: the same.
        unsafe { region.fold(left, block, op) };
        // SAFETY: nobody else reads or writes it, by the caller's promise.
        unsafe { region.write(right, block) };
    });
}

/// Folds private elements into the segment's, from the left: `acc[i] = left[i] ∘ acc[i]`.
///
/// # Safety
/// `left` is readable; the protocol excludes that another member reads or writes `acc` now.
pub(crate) unsafe fn fold_private_within<R: Region>(region: &R, left: Buf, acc: Extent, op: &Op) {
    blocks(acc.len().min(left.len() as u64), op.element(), |from, bytes, block| {
        let (left, right) = (Buf::new(left.ptr().wrapping_add(from as usize), bytes as usize), acc.part(from, bytes));
        // SAFETY: nobody else writes it, by the caller's promise; the block is ours.
        unsafe { region.read(right, block) };
        // SAFETY: readable, by the caller's promise, and apart from the block.
        unsafe { region.fold_private(left, block, op) };
        // SAFETY: nobody else reads or writes it, by the caller's promise.
        unsafe { region.write(right, block) };
    });
}

/// Copies the segment's bytes from one extent to another. It reads a word of the latter first: so one who watches can tell what a
/// process does within its own fragment from a fragment that it posts too early.
///
/// # Safety
/// The protocol excludes that another member writes `from`, or reads or writes `to` now.
pub(crate) unsafe fn copy_within<R: Region>(region: &R, from: Extent, to: Extent) {
    blocks(from.len().min(to.len()), 1, |at, bytes, block| {
        let word = Buf::new(block.ptr(), bytes.min(8) as usize);
        // SAFETY: nobody else writes it, by the caller's promise; the block is ours.
        unsafe { region.read(to.part(at, bytes.min(8)), word) };
        // SAFETY: nobody else writes it, by the caller's promise; the block is ours.
        unsafe { region.read(from.part(at, bytes), block) };
        // SAFETY: nobody else reads or writes it, by the caller's promise.
        unsafe { region.write(to.part(at, bytes), block) };
    });
}
