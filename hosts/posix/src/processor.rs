//! What this machine's processor can do.

use unisono_shm::Level;

/// The instructions that folds may use here.
#[cfg(target_arch = "x86_64")]
pub fn level() -> Level {
    use std::arch::is_x86_feature_detected as has;
    let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
    // SAFETY: just asked.
    unsafe { Level::of(has!("avx2"), avx512) }
}

/// The instructions that folds may use here.
#[cfg(not(target_arch = "x86_64"))]
pub fn level() -> Level {
    Level::BASELINE
}
