//! The copy primitive: the documented boundary at which a hostile peer may race (docs/explanation/memory-model.md, R2).
//!
//! Up to a line's worth of words is copied by relaxed atomics: there is no data race, whatever the peer does. Longer
//! copies use `memcpy`, or non-temporal stores and a fence. Among members that keep the protocol, the flags order them.
//! They are in functions that the compiler can't look into, so a peer that writes at the same time causes wrong bytes and
//! nothing worse.

use core::ops::RangeInclusive;
use unisono_kernel::region::Word;

/// Most bytes that are copied word by word: those of a posted line.
const WORDWISE: usize = 120;

/// Are these bytes copied word by word?
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
            // SAFETY: aligned (`wordwise`) and mapped (the caller's promise).
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
            // SAFETY: aligned (`wordwise`) and mapped (the caller's promise).
            let value = unsafe { Word::at(from.wrapping_add(i)) }.load_payload();
            // SAFETY: word `i` lies inside `len` writable bytes.
            unsafe { to.wrapping_add(i).write_unaligned(value) };
        }
    } else {
        // SAFETY: the caller's promise; private memory does not overlap the segment.
        unsafe { opaque(to, from, len) }
    }
}

/// Does [`expect`] do anything?
pub(crate) const EXPECTS: bool = cfg!(all(target_arch = "x86_64", not(miri)));

/// Bytes of a line of a cache.
const LINE: usize = 64;

/// Runs an instruction for each line of `$len` bytes from `$at` on, four in a round: a line's is not worth a round of its own.
#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! each_line {
    ($instruction:literal, $at:expr, $len:expr) => {
        let (mut at, end) = ($at, $at.wrapping_add($len.next_multiple_of(LINE)));
        while end.addr().wrapping_sub(at.addr()) >= 4 * LINE {
            // SAFETY: a prefetch changes no memory and never faults. A processor without this one takes it for no operation.
            unsafe {
                core::arch::asm!(
                    concat!($instruction, " [{at}]"),
                    concat!($instruction, " [{at} + 64]"),
                    concat!($instruction, " [{at} + 128]"),
                    concat!($instruction, " [{at} + 192]"),
                    at = in(reg) at,
                    options(nostack, preserves_flags),
                );
            }
            at = at.wrapping_add(4 * LINE);
        }
        while at != end {
            // SAFETY: as above.
            unsafe { core::arch::asm!(concat!($instruction, " [{}]"), in(reg) at, options(nostack, preserves_flags)) };
            at = at.wrapping_add(LINE);
        }
    };
}

/// Begins to bring `len` bytes into this core's cache, to write them: other caches lose them. Nothing, where there is no
/// instruction for that.
#[inline]
pub(crate) fn claim(at: *const u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    each_line!("prefetchw", at, len);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (at, len);
}

/// Begins to bring `len` bytes into this core's cache, to read them. Nothing, where there is no instruction for that.
#[inline]
pub(crate) fn expect(at: *const u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    each_line!("prefetcht0", at, len);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (at, len);
}

/// Bytes of copies whose lines are all claimed first: a store waits for the one before it, and so for each line, but claims
/// do not wait for each other. Longer ones gain nothing: the processor fetches ahead by then
/// (docs/explanation/parameters.md).
const CLAIMED: RangeInclusive<usize> = 256..=4096;

/// Claims the lines of a copy of `len` bytes, if that pays, where others have them in their caches.
#[inline(always)]
pub(crate) fn claim_for(to: *mut u8, len: usize) {
    if CLAIMED.contains(&len) {
        claim(to, len);
    }
}

/// Are there stores that bypass the caches? Not where they don't exist, in Miri, and on targets for operating-system
/// kernels, which don't use vector registers.
pub(crate) const BYPASS: bool = cfg!(all(target_arch = "x86_64", target_feature = "sse2", not(miri)));

/// Bytes of the shortest copy that bypasses the caches: in a shorter one, the start and the end cost more than it
/// saves.
const STREAM: usize = 1024;

/// [`into_segment`] with stores that bypass the caches: so the slot's lines are not fetched from where they are. The bytes are
/// visible before anything that the caller stores next.
///
/// # Safety
/// As [`into_segment`].
pub(crate) unsafe fn into_segment_past_caches(to: *mut u8, from: *const u8, len: usize) {
    if BYPASS && len >= STREAM {
        // SAFETY: the caller's promise.
        unsafe { stream(to, from, len) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { into_segment(to, from, len) }
    }
}

/// [`out_of_segment`] likewise, to private memory that will not be read soon: so its old contents are not fetched, and other
/// cache lines are not evicted.
///
/// # Safety
/// As [`out_of_segment`].
pub(crate) unsafe fn out_of_segment_past_caches(from: *mut u8, to: *mut u8, len: usize) {
    if BYPASS && len >= STREAM {
        // SAFETY: the caller's promise.
        unsafe { stream(to, from, len) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { out_of_segment(from, to, len) }
    }
}

/// `memcpy` by non-temporal stores, a cache line of 64 bytes at a time.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
#[inline(never)]
unsafe fn stream(to: *mut u8, from: *const u8, len: usize) {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    let (to, from) = (core::hint::black_box(to), core::hint::black_box(from));
    let head = to.align_offset(64).min(len);
    let lines = (len - head) / 64;
    let tail = head + 64 * lines;
    // SAFETY: the first `head` of `len` bytes.
    unsafe { core::ptr::copy_nonoverlapping(from, to, head) };
    let (source, target) = (from.wrapping_add(head).cast::<__m128i>(), to.wrapping_add(head).cast::<__m128i>());
    for at in (0..4 * lines).step_by(4) {
        // SAFETY: `at .. at + 4` lies inside `lines` lines; this load needs no alignment.
        let line = [0, 1, 2, 3].map(|i| unsafe { _mm_loadu_si128(source.wrapping_add(at + i)) });
        for (i, part) in line.into_iter().enumerate() {
            // SAFETY: inside, and aligned: `head` ends on a line's start.
            unsafe { _mm_stream_si128(target.wrapping_add(at + i), part) };
        }
    }
    // SAFETY: the bytes from `tail` to `len`.
    unsafe { core::ptr::copy_nonoverlapping(from.wrapping_add(tail), to.wrapping_add(tail), len - tail) };
    // The streamed bytes become visible before anything that the caller stores next.
    // SAFETY: SSE is part of x86-64.
    unsafe { _mm_sfence() };
}

/// `memcpy`, where nothing bypasses the caches.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
unsafe fn stream(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise; private memory does not overlap the segment.
    unsafe { opaque(to, from, len) }
}

/// Has the processor a clock that counts cycles?
pub(crate) const CYCLES: bool = BYPASS;

/// The processor's time-stamp counter; 0 where there is none.
#[inline]
pub(crate) fn cycles() -> u64 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
    // SAFETY: part of x86-64.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
    0
}

/// The processor's time-stamp counter once all stores before are done; 0 where no copy bypasses the caches.
pub(crate) fn settled_cycles() -> u64 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
    {
        use core::arch::x86_64::{_mm_lfence, _mm_mfence, _rdtsc};
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_mfence() };
        // SAFETY: as above. The counter is not read before the fence.
        unsafe { _mm_lfence() };
        // SAFETY: part of x86-64.
        unsafe { _rdtsc() }
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
    0
}

/// Copies `len` bytes of memory outside the segment that other processes may write, such as a window of an MPI, to `to`. A
/// program may have passed the same memory on two ranks, so the two may overlap.
///
/// # Safety
/// `from` holds `len` mapped bytes, `to` `len` writable ones.
#[inline(never)]
pub unsafe fn out_of_shared(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { core::ptr::copy(core::hint::black_box(from), core::hint::black_box(to), len) }
}

/// `memcpy` that the compiler can't look into.
#[inline(never)]
unsafe fn opaque(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { core::ptr::copy_nonoverlapping(core::hint::black_box(from), core::hint::black_box(to), len) }
}
