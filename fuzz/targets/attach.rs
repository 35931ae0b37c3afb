//! A header of arbitrary bytes; a state word and records of arbitrary words.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    unisono_verify::chaos::attach(data);
    unisono_verify::chaos::poison(data);
});
