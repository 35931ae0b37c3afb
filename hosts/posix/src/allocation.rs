//! Memory for data that ranks read where it lies.

use crate::arena::page;
use crate::communicator::Commons;
use crate::error::PosixError;
use std::sync::Arc;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Refusal};

/// Memory of this process that the other processes of its job have mapped, too: a collective copies data in it once, from
/// where it lies, if the message is long enough. It lies in the process's arena, on its NUMA node, and goes back to the
/// system when it is dropped.
///
/// Others may write it, if they are faulty: there is no reference to its bytes, only an address. A child of `fork` does not
/// have it.
#[derive(Debug)]
pub struct Allocation {
    commons: Arc<Commons>,
    offset: u64,
    /// Whole pages.
    reserved: u64,
    buf: Buf,
}

// SAFETY: an address in a map that `commons` keeps, and that any thread may use; the type itself never looks at the bytes.
unsafe impl Send for Allocation {}

impl Allocation {
    /// `bytes` bytes, at least one, that are zero, on a page's start.
    pub(crate) fn new(commons: &Arc<Commons>, bytes: usize) -> Result<Self, PosixError> {
        Refusal::check(Argument::Bytes, bytes as u64, Bound::AtLeast(1))?;
        Refusal::check(Argument::Bytes, bytes as u64, Bound::AtMost(isize::MAX as u64 - page()))?;
        let reserved = (bytes as u64).next_multiple_of(page());
        let (offset, address) = commons.allocate(reserved)?;
        Ok(Self { commons: Arc::clone(commons), offset, reserved, buf: Buf::new(address, bytes) })
    }

    /// Its address and length. The memory lives as long as this value; what points to it must not be used any longer.
    pub const fn buf(&self) -> Buf {
        self.buf
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.commons.release(self.offset, self.reserved);
    }
}
