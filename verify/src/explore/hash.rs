//! Hashing: a fast hasher for the tables, and 128-bit fingerprints of states.
//!
//! A state's fingerprint is the exclusive or of one mix per cell, so that a transition updates it
//! in a few steps. Two states among N collide with a probability of about N²/2¹²⁹: 10⁻²⁰ for 10⁹
//! states. Then one of them is not explored.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table with the fast hasher.
pub(crate) type Table<K, V> = HashMap<K, V, BuildHasherDefault<Multiply>>;
/// Fingerprints, which are hashes already.
pub(crate) type Fingerprints = HashSet<u128, BuildHasherDefault<Identity>>;

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiply and rotate, word by word: for private keys, not against an adversary.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Multiply(u64);

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(ODD);
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}

/// A hasher that returns the fingerprint itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }
    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The finalizer of splitmix64: a bijection that spreads every bit.
pub(crate) const fn spread(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// One cell's part of a fingerprint; an empty cell has none, so tables may be of any length.
pub(crate) fn mix(cell: usize, value: u64) -> u128 {
    if value == 0 {
        return 0;
    }
    let place = spread(cell as u64 + 1);
    let low = spread(value.wrapping_mul(ODD) ^ place);
    let high = spread(value.rotate_left(32).wrapping_add(place.wrapping_mul(ODD)) ^ 0x5851_f42d_4c95_7f2d);
    u128::from(high) << 64 | u128::from(low)
}
