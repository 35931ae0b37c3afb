//! Memory for data that ranks read where it lies.

use crate::error::PosixError;
use crate::{heap, space};
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Refusal};

/// Memory of this process that the other processes of its job may read: a collective copies data in it once, from where it
/// lies, if the message is long enough. It lies in the process's [heap](heap), on its NUMA node.
///
/// Only this process writes it. A child of fork has a copy.
#[derive(Debug)]
pub struct Allocation {
    buf: Buf,
}

// SAFETY: an address in a heap, which is mapped as long as the process lives, and that any thread may use; the type itself
// never looks at the bytes.
unsafe impl Send for Allocation {}

impl Allocation {
    /// `bytes` bytes, at least one, that are zero, on a page's start.
    ///
    /// # Errors
    /// `bytes` is 0; the machine, the control group or the pool of huge pages has not so much memory; the heap can't be made.
    pub fn new(bytes: usize) -> Result<Self, PosixError> {
        Refusal::check(Argument::Bytes, bytes as u64, Bound::AtLeast(1))?;
        let heap = heap::of_process()?;
        // A page that can't be had kills the process that touches it. The pool reserves its pages by itself.
        if !heap.is_in_pool() {
            space::check(bytes as u64)?;
        }
        let block = heap.allocate(bytes, 1).ok_or_else(|| heap.full(bytes as u64))?;
        let allocation = Self { buf: Buf::new(block.address.as_ptr(), bytes) };
        heap.reserve(block, bytes as u64)?;
        Ok(allocation)
    }

    /// Its address and length. The memory lives as long as this value; what points to it must not be used any longer.
    pub const fn buf(&self) -> Buf {
        self.buf
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Ok(heap) = heap::of_process() {
            heap.release(self.buf.ptr());
        }
    }
}
