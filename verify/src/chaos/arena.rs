//! Memory between guard bytes.

use std::cell::UnsafeCell;

const LINE: usize = 128;
/// Guard lines on each side.
const GUARD: usize = 2;
const MARK: u8 = 0xA5;

#[repr(C, align(128))]
struct Line(UnsafeCell<[u8; LINE]>);

/// `len` bytes between guard bytes, at an address that is `skew` past a multiple of 128.
pub(super) struct Guarded {
    lines: Box<[Line]>,
    start: usize,
    len: usize,
}

impl Guarded {
    /// All bytes are `fill`.
    pub(super) fn new(len: usize, skew: usize, fill: u8) -> Self {
        let start = GUARD * LINE + skew;
        let count = (start + len).div_ceil(LINE) + GUARD;
        let lines = (0..count).map(|_| Line(UnsafeCell::new([MARK; LINE]))).collect();
        let guarded = Self { lines, start, len };
        guarded.set(&vec![fill; len]);
        guarded
    }

    fn first(&self) -> *mut u8 {
        self.lines.as_ptr().cast::<u8>().cast_mut()
    }

    /// The first byte between the guards.
    pub(super) fn base(&self) -> *mut u8 {
        self.first().wrapping_add(self.start)
    }

    /// Overwrites the bytes between the guards.
    pub(super) fn set(&self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.len);
        // SAFETY: `len` bytes lie from `base` on, in cells; no other thread runs.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base(), self.len) };
    }

    /// A copy of all bytes, guards included.
    fn all(&self) -> Vec<u8> {
        let mut all = vec![0; self.lines.len() * LINE];
        // SAFETY: as many bytes as there are lines, in cells; no other thread runs.
        unsafe { std::ptr::copy_nonoverlapping(self.first(), all.as_mut_ptr(), all.len()) };
        all
    }

    /// A copy of the bytes between the guards.
    pub(super) fn get(&self) -> Vec<u8> {
        self.all()[self.start..self.start + self.len].to_vec()
    }

    /// Is every guard byte as it was?
    pub(super) fn intact(&self) -> bool {
        let all = self.all();
        let (before, after) = (&all[..self.start], &all[self.start + self.len..]);
        before.iter().chain(after).all(|&byte| byte == MARK)
    }
}
