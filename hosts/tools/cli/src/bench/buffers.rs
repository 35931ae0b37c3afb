//! Buffers that rotate over more memory than the private cache holds.

use unisono_posix::{Allocation, Intracomm, PosixError};

/// More than the private caches of today's cores (2 MiB); the shared one may be hundreds of megabytes.
const POOL: usize = 16 << 20;
/// The least number of buffers, unless warm.
const LEAST: usize = 4;
/// The largest number of buffers: each lies on lines of its own.
const MOST: usize = 4096;

/// What buffers lie in.
#[derive(Debug)]
enum Memory {
    Own(Vec<u8>),
    /// Which all processes have mapped.
    Lent(Allocation),
}

impl Memory {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Own(memory) => memory,
            Self::Lent(allocation) => {
                let memory = allocation.buf();
                // SAFETY: this value's, as long as it lives; zeroed. The other processes are of this program, and write
                // to no memory that is lent to them.
                unsafe { std::slice::from_raw_parts_mut(memory.ptr(), memory.len()) }
            }
        }
    }
}

/// A rank's buffers for one row.
#[derive(Debug)]
pub(crate) struct Buffers {
    memory: Memory,
    /// The first byte on a line.
    first: usize,
    bytes: usize,
    stride: usize,
    /// A power of two: finding a buffer must cost next to nothing.
    count: usize,
}

impl Buffers {
    /// Buffers of `bytes`; one alone if `warm`.
    pub(crate) fn new(bytes: u64, warm: bool) -> Self {
        let shape = Self::shape(bytes, warm);
        Self::lay(bytes, shape, Memory::Own(vec![0; room(shape)]))
    }

    /// The same in memory that all processes of `lent` have mapped, if there is one.
    pub(crate) fn of(bytes: u64, warm: bool, lent: Option<&Intracomm>) -> Result<Self, PosixError> {
        let Some(comm) = lent else { return Ok(Self::new(bytes, warm)) };
        let shape = Self::shape(bytes, warm);
        Ok(Self::lay(bytes, shape, Memory::Lent(comm.allocate(room(shape))?)))
    }

    /// Bytes from one buffer to the next, and their number.
    fn shape(bytes: u64, warm: bool) -> (usize, usize) {
        let stride = (bytes as usize + 64).next_multiple_of(64);
        let fitting = if warm { 1 } else { (POOL / stride).clamp(LEAST, MOST) };
        (stride, 1 << fitting.ilog2())
    }

    fn lay(bytes: u64, (stride, count): (usize, usize), mut memory: Memory) -> Self {
        memory.bytes().iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        let first = memory.bytes().as_ptr().align_offset(64);
        Self { memory, first, bytes: bytes as usize, stride, count }
    }

    /// Number of buffers.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Buffer `i`, modulo their number; 64-byte aligned.
    #[inline]
    pub(crate) fn get(&mut self, i: usize) -> &mut [u8] {
        let at = self.first + (i & (self.count - 1)) * self.stride;
        &mut self.memory.bytes()[at..at + self.bytes]
    }

    /// Fills all buffers with the pattern of `seed`: dirty in this core's cache, as far as they fit.
    pub(crate) fn fill(&mut self, seed: u64) {
        for i in 0..self.count {
            fill(self.get(i), seed + i as u64);
        }
    }

    /// Do all buffers below `used` hold the pattern of `seed`?
    pub(crate) fn hold(&mut self, seed: u64, used: usize) -> bool {
        (0..used.min(self.count)).all(|i| holds(self.get(i), seed + i as u64))
    }
}

/// Bytes for buffers of this shape, wherever they start.
const fn room((stride, count): (usize, usize)) -> usize {
    stride * count + 64
}

/// Block number `block`, of 256 bytes, of pattern `seed`. By blocks, a fill is as fast as memory is.
#[inline]
fn pattern(seed: u64, block: usize) -> [u8; 256] {
    let first = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8;
    std::array::from_fn(|at| first ^ (at as u8).wrapping_add(block as u8))
}

pub(crate) fn fill(bytes: &mut [u8], seed: u64) {
    for (block, bytes) in bytes.chunks_mut(256).enumerate() {
        bytes.copy_from_slice(&pattern(seed, block)[..bytes.len()]);
    }
}

pub(crate) fn holds(bytes: &[u8], seed: u64) -> bool {
    bytes.chunks(256).enumerate().all(|(block, bytes)| *bytes == pattern(seed, block)[..bytes.len()])
}
