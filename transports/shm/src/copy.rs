//! The copy primitive: the documented boundary at which a hostile peer may race (R2).
//!
//! A line's worth of words goes by relaxed atomics: no race, whatever the peer does. More goes by
//! `memcpy`, ordered by the flags among members that keep the protocol; it is behind a call that
//! the compiler can't see through, so a racing writer yields wrong bytes and no more.

use unisono_kernel::region::Word;

/// Most bytes that go word by word: what a posted line holds.
const WORDWISE: usize = 120;

#[inline(always)]
fn wordwise(segment: *const u8, len: usize) -> bool {
    len <= WORDWISE && (segment as usize | len).is_multiple_of(8)
}

/// Copies `len` private bytes into the segment.
///
/// # Safety
/// `to` holds `len` mapped bytes of a segment, `from` `len` readable private ones.
#[inline(always)]
pub(crate) unsafe fn into_segment(to: *mut u8, from: *const u8, len: usize) {
    if wordwise(to, len) {
        let (to, from) = (to.cast::<u64>(), from.cast::<u64>());
        for i in 0..len / 8 {
            // SAFETY: word `i` lies inside `len` readable bytes.
            let value = unsafe { from.wrapping_add(i).read_unaligned() };
            // SAFETY: aligned (the test) and mapped (the caller's promise).
            unsafe { Word::at(to.wrapping_add(i)) }.store_payload(value);
        }
    } else {
        // SAFETY: the caller's promise; private memory does not overlap the segment.
        unsafe { opaque(to, from, len) }
    }
}

/// Copies `len` bytes of the segment to private memory.
///
/// # Safety
/// `from` holds `len` mapped bytes of a segment, `to` `len` writable private ones.
#[inline(always)]
pub(crate) unsafe fn out_of_segment(from: *mut u8, to: *mut u8, len: usize) {
    if wordwise(from, len) {
        let (to, from) = (to.cast::<u64>(), from.cast::<u64>());
        for i in 0..len / 8 {
            // SAFETY: aligned (the test) and mapped (the caller's promise).
            let value = unsafe { Word::at(from.wrapping_add(i)) }.load_payload();
            // SAFETY: word `i` lies inside `len` writable bytes.
            unsafe { to.wrapping_add(i).write_unaligned(value) };
        }
    } else {
        // SAFETY: the caller's promise; private memory does not overlap the segment.
        unsafe { opaque(to, from, len) }
    }
}

/// `memcpy` that the compiler can't look into.
#[inline(never)]
unsafe fn opaque(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { core::ptr::copy_nonoverlapping(core::hint::black_box(from), core::hint::black_box(to), len) }
}
