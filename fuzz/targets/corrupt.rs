//! As `interleave`, with a peer that stores any value to any word between two polls.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    unisono_verify::chaos::corrupt(data);
});
