//! The fold primitive: like the copy primitive, a boundary at which a hostile peer may race
//! (docs/explanation/memory-model.md, R2).
//!
//! Predefined ops fold straight from the segment, in a function that the compiler can't look
//! into: a peer that writes at the same time causes wrong results and nothing worse. A user's function never gets
//! the segment's memory: its operands are copied out first, a block at a time.

use crate::copy;
use unisono_kernel::op::{Op, Predefined};

/// The vector instructions that folds may use. A host finds them once, with [`level!`](crate::level).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The instructions that every processor of this architecture has.
    pub const BASELINE: Self = Self(Set::Baseline);

    /// The best of these: AVX2 if `avx2`, AVX-512 (F, BW, DQ, VL) if `avx512`.
    ///
    /// # Safety
    /// The processor and the operating system support what is given as true.
    #[cfg(target_arch = "x86_64")]
    pub const unsafe fn of(avx2: bool, avx512: bool) -> Self {
        Self(match (avx2, avx512) {
            (_, true) => Set::Avx512,
            (true, false) => Set::Avx2,
            (false, false) => Set::Baseline,
        })
    }
}

/// The [`Level`] of the processor that this runs on. It needs the standard library, which detects the instructions.
#[macro_export]
macro_rules! level {
    () => {{
        #[cfg(target_arch = "x86_64")]
        {
            use ::std::arch::is_x86_feature_detected as has;
            let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
            // SAFETY: the standard library has detected them.
            unsafe { $crate::Level::of(has!("avx2"), avx512) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        $crate::Level::BASELINE
    }};
}

/// `acc[i] = segment[i] ∘ acc[i]` for the whole elements in `len` bytes.
///
/// # Safety
/// `from` holds `len` mapped bytes of a segment, `acc` `len` writable private ones, or of a segment if `op` is predefined; they
/// are apart; `op` keeps `User::new`'s promise.
pub(crate) unsafe fn from_segment(level: Level, from: *mut u8, acc: *mut u8, len: usize, op: &Op) {
    match op {
        // SAFETY: the caller's promise.
        Op::Predefined(op) => unsafe { opaque(level, *op, from, acc, len) },
        Op::User(user) => {
            let read = |to: *mut u8, at: usize, len: usize| {
                // SAFETY: `fold_with` calls it for whole elements inside `len` only, with a private block.
                unsafe { copy::out_of_segment(from.wrapping_add(at), to, len) };
            };
            // SAFETY: the caller's promise; `read` writes all bytes that it is called for.
            unsafe { user.fold_with(read, acc, op.whole(len as u64)) }
        }
    }
}

/// `acc[i] = left[i] ∘ acc[i]` for the whole elements in `len` bytes, all private.
///
/// # Safety
/// `left` holds `len` readable bytes, `acc` as many writable ones; they are the same memory or don't overlap; `op`
/// keeps `User::new`'s promise.
pub(crate) unsafe fn private(level: Level, left: *const u8, acc: *mut u8, len: usize, op: &Op) {
    match op {
        // SAFETY: the caller's promise.
        Op::Predefined(op) => unsafe { opaque(level, *op, left, acc, len) },
        // SAFETY: as above.
        Op::User(_) => unsafe { op.fold_raw(left, acc, op.whole(len as u64)) },
    }
}

/// A fold that the compiler can't look into.
#[inline(never)]
unsafe fn opaque(level: Level, op: Predefined, from: *const u8, acc: *mut u8, len: usize) {
    let (from, acc) = (core::hint::black_box(from), core::hint::black_box(acc));
    match level.0 {
        // SAFETY: the caller's promise.
        Set::Baseline => unsafe { op.fold_inline(from, acc, len) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's promise; by `Level::of`'s contract the processor has AVX2.
        Set::Avx2 => unsafe { avx2(op, from, acc, len) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above, AVX-512.
        Set::Avx512 => unsafe { avx512(op, from, acc, len) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2(op: Predefined, from: *const u8, acc: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { op.fold_inline(from, acc, len) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn avx512(op: Predefined, from: *const u8, acc: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { op.fold_inline(from, acc, len) }
}
