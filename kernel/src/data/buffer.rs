//! Raw user buffers.

/// A user's contiguous bytes: address and length.
///
/// It is not a reference: a point-to-point layer may keep the address between polls, and an operation in place has
/// two equal `Buf`s. Making one is safe; the unsafe functions that take one say how they use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buf {
    ptr: *mut u8,
    len: usize,
}

// SAFETY: a Buf is an address and a length; code that dereferences it must have its own reason why it may.
unsafe impl Send for Buf {}

impl Buf {
    /// `len` bytes at `ptr`.
    #[inline]
    pub const fn new(ptr: *mut u8, len: usize) -> Self {
        Self { ptr, len }
    }

    /// The bytes of a slice that will be written.
    #[inline]
    pub const fn of_mut(bytes: &mut [u8]) -> Self {
        Self { ptr: bytes.as_mut_ptr(), len: bytes.len() }
    }

    /// The bytes of a slice that will only be read.
    #[inline]
    pub const fn of(bytes: &[u8]) -> Self {
        Self { ptr: bytes.as_ptr().cast_mut(), len: bytes.len() }
    }

    /// First byte.
    #[inline]
    pub const fn ptr(self) -> *mut u8 {
        self.ptr
    }

    /// Number of bytes.
    #[inline]
    pub const fn len(self) -> usize {
        self.len
    }

    /// No bytes?
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The first `len` bytes, and the rest; `None` if there are fewer.
    #[inline]
    pub fn split(self, len: u64) -> Option<(Self, Self)> {
        let len = usize::try_from(len).ok().filter(|&len| len <= self.len)?;
        Some((Self::new(self.ptr, len), Self::new(self.ptr.wrapping_add(len), self.len - len)))
    }
}
