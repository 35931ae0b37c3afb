//! The same with a peer that stores anything anywhere between two polls.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    unisono_verify::chaos::corrupt(data);
});
