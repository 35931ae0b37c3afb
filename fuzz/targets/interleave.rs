//! The bytes choose the interleaving of real machines over raw memory.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    unisono_verify::chaos::interleave(data);
});
