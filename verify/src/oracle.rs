//! Sequential oracle: the contents of every rank's memory after a sequence of collectives, computed
//! with plain arrays and without the kernel's packing, trees or queues.
//!
//! A [`Plan`] is a list of operations that all ranks make. Every rank has one block of memory per
//! operation, filled with bytes that differ from rank to rank; the holes of its datatype and the
//! send half of a reduction must keep their bytes.

pub mod blocks;

use blocks::Spread;
use core::ffi::c_void;
use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::data::datatype::Datatype;
use unisono_kernel::op::{Op, User};

/// One collective, as all ranks make it.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// A broadcast of `bytes` packed bytes; rank r's datatype is [`Shape::of`] `(seed, r, bytes)`.
    Bcast {
        /// The root.
        root: u32,
        /// The algorithm.
        algorithm: BcastAlgorithm,
        /// Packed bytes.
        bytes: usize,
        /// Chooses the datatypes.
        seed: u64,
    },
    /// A barrier.
    Barrier(BarrierAlgorithm),
    /// An allreduce; memory holds the send half, then the receive half (one half if in place).
    Allreduce {
        /// The operation and its elements.
        fold: Fold,
        /// Elements.
        count: usize,
        /// One buffer for both.
        in_place: bool,
    },
    /// A scatter, gather or allgather, by the papers' queues.
    Spread(Spread),
}

/// What a reduction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Sums of `f64` whose exponents differ widely: the order shows in the bits.
    SumF64,
    /// Sums of `i64`.
    SumI64,
    /// Composition of affine maps x → a·x + b modulo 2⁶⁴: not commutative.
    Affine,
}

impl Fold {
    /// Bytes of an element.
    pub const fn element(self) -> usize {
        match self {
            Self::SumF64 | Self::SumI64 => 8,
            Self::Affine => 16,
        }
    }

    /// The kernel's operation.
    pub const fn op(self) -> Op {
        match self {
            Self::SumF64 => Op::SUM_F64,
            Self::SumI64 => Op::SUM_I64,
            // SAFETY: `affine` reads and writes `count` elements of its arrays and nothing else.
            Self::Affine => Op::User(unsafe { User::new(affine, core::ptr::null_mut(), 16, false) }),
        }
    }

    /// `left = left ∘ right`, word by word.
    pub fn apply(self, left: &mut [u64], right: &[u64]) {
        match self {
            Self::SumF64 => {
                for (l, r) in left.iter_mut().zip(right) {
                    *l = (f64::from_bits(*l) + f64::from_bits(*r)).to_bits();
                }
            }
            Self::SumI64 => {
                for (l, r) in left.iter_mut().zip(right) {
                    *l = l.wrapping_add(*r);
                }
            }
            Self::Affine => {
                for (l, r) in left.chunks_exact_mut(2).zip(right.chunks_exact(2)) {
                    let composed = compose([l[0], l[1]], [r[0], r[1]]);
                    l.copy_from_slice(&composed);
                }
            }
        }
    }
}

/// `x → l₀·(r₀·x + r₁) + l₁`.
const fn compose(l: [u64; 2], r: [u64; 2]) -> [u64; 2] {
    [l[0].wrapping_mul(r[0]), l[0].wrapping_mul(r[1]).wrapping_add(l[1])]
}

unsafe extern "C-unwind" fn affine(left: *const c_void, right: *mut c_void, count: u64, _: *mut c_void) {
    let (left, right) = (left.cast::<[u64; 2]>(), right.cast::<[u64; 2]>());
    for i in 0..count as usize {
        // SAFETY: the kernel's contract: `count` aligned elements.
        let l = unsafe { left.wrapping_add(i).read() };
        // SAFETY: as above.
        let r = unsafe { right.wrapping_add(i).read() };
        // SAFETY: as above, writable.
        unsafe { right.wrapping_add(i).write(compose(l, r)) };
    }
}

/// A rank's datatype for a message: `count` elements of `displacements.len()` blocks.
#[derive(Clone, Debug)]
pub struct Shape {
    kind: Kind,
    /// Elements.
    pub count: usize,
    block: usize,
    stride: usize,
    displacements: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Contiguous,
    Vector,
    Indexed,
}

impl Shape {
    /// A datatype for `bytes` packed bytes, chosen by `seed` and `rank`.
    pub fn of(seed: u64, rank: u32, bytes: usize) -> Self {
        let r = mix(seed ^ u64::from(rank) << 32);
        let divisors: Vec<usize> = (1..=bytes.min(40)).filter(|&d| bytes.is_multiple_of(d)).collect();
        let block = divisors.get(r as usize % divisors.len().max(1)).copied().unwrap_or(1);
        let blocks = bytes / block;
        let count = if blocks > 0 && blocks.is_multiple_of(2) { 2 } else { 1 };
        let blocks = blocks / count;
        let stride = block + (r >> 8) as usize % 5;
        let kind = match (r >> 16) % 3 {
            _ if blocks == 0 => Kind::Contiguous,
            0 => Kind::Contiguous,
            1 => Kind::Vector,
            _ => Kind::Indexed,
        };
        let mut displacements: Vec<u64> = (0..blocks as u64).map(|i| i * stride as u64).collect();
        if matches!(kind, Kind::Indexed) {
            displacements.sort_by_key(|&d| mix(r ^ d));
        }
        let (block, stride) = if matches!(kind, Kind::Contiguous) { (bytes / count, 0) } else { (block, stride) };
        if matches!(kind, Kind::Contiguous) {
            displacements = vec![0];
        }
        Self { kind, count, block, stride, displacements }
    }

    /// The kernel's datatype.
    pub fn datatype(&self) -> Datatype<'_> {
        let (block, blocks) = (self.block as u64, self.displacements.len() as u64);
        match self.kind {
            Kind::Contiguous => Datatype::Contiguous { bytes: block },
            Kind::Vector => Datatype::Vector { blocks, block, stride: self.stride as u64 },
            Kind::Indexed => Datatype::Indexed { block, displacements: &self.displacements },
        }
    }

    /// The offset in memory of each packed byte.
    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let extent = self.extent();
        (0..self.count).flat_map(move |element| {
            let blocks = self.displacements.iter().map(|&d| d as usize);
            blocks.flat_map(move |d| (0..self.block).map(move |byte| element * extent + d + byte))
        })
    }

    fn extent(&self) -> usize {
        (self.displacements.len() - 1) * self.stride + self.block
    }

    /// Bytes of memory, with a guard after the last element.
    fn memory(&self) -> usize {
        self.count * self.extent() + 3
    }
}

/// The operations that all ranks make.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of ranks.
    pub ranks: u32,
    /// The operations, in order.
    pub operations: Vec<Operation>,
}

impl Plan {
    /// The memory of `rank` for operation `index`, before it.
    pub fn before(&self, rank: u32, index: usize) -> Vec<u8> {
        let random = |at: usize| mix(mix(index as u64) ^ u64::from(rank) << 40 ^ at as u64);
        match self.operations[index] {
            Operation::Barrier(_) => Vec::new(),
            Operation::Spread(spread) => (0..spread.of(self.ranks, rank).memory()).map(|at| random(at) as u8).collect(),
            Operation::Bcast { bytes, seed, .. } => {
                (0..Shape::of(seed, rank, bytes).memory()).map(|at| random(at) as u8).collect()
            }
            Operation::Allreduce { fold, count, in_place } => {
                let words = count * fold.element() / 8 * if in_place { 1 } else { 2 };
                let word = |at| match fold {
                    Fold::SumF64 => {
                        let r = random(at);
                        (f64::from(r as i32) * 2f64.powi((r >> 32) as i32 % 60)).to_bits()
                    }
                    _ => random(at),
                };
                (0..words).flat_map(|at| word(at).to_le_bytes()).collect()
            }
        }
    }

    /// The memory of `rank` for operation `index`, after it.
    pub fn after(&self, rank: u32, index: usize) -> Vec<u8> {
        let mut memory = self.before(rank, index);
        match self.operations[index] {
            Operation::Barrier(_) => {}
            Operation::Spread(spread) => {
                return blocks::after(&spread, self.ranks, rank, |rank| self.before(rank, index));
            }
            Operation::Bcast { root, bytes, seed, .. } => {
                let (from, to) = (Shape::of(seed, root, bytes), Shape::of(seed, rank, bytes));
                let sent = self.before(root, index);
                for (from, to) in from.places().zip(to.places()) {
                    memory[to] = sent[from];
                }
            }
            Operation::Allreduce { fold, count, in_place } => {
                let half = count * fold.element();
                let words = |rank| -> Vec<u64> {
                    let bytes = self.before(rank, index);
                    bytes[..half].chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap_or([0; 8]))).collect()
                };
                let mut sum = words(0);
                for peer in 1..self.ranks {
                    fold.apply(&mut sum, &words(peer));
                }
                let at = if in_place { 0 } else { half };
                for (to, byte) in memory[at..].iter_mut().zip(sum.iter().flat_map(|w| w.to_le_bytes())) {
                    *to = byte;
                }
            }
        }
        memory
    }
}

/// A well-mixed function of `x` (SplitMix64).
pub const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_hold_their_bytes_at_distinct_places() {
        for bytes in 0..60 {
            for seed in 0..40 {
                let shape = Shape::of(seed, 3, bytes);
                let mut places: Vec<_> = shape.places().collect();
                assert_eq!(places.len(), bytes);
                assert!(places.iter().all(|&at| at < shape.memory()));
                places.sort_unstable();
                places.dedup();
                assert_eq!(places.len(), bytes);
                assert_eq!(shape.datatype().size(), Some((bytes / shape.count) as u64));
            }
        }
    }

    #[test]
    fn the_order_of_operands_shows() {
        assert_ne!(compose([2, 1], [3, 5]), compose([3, 5], [2, 1]));
        let plan =
            Plan { ranks: 9, operations: vec![Operation::Allreduce { fold: Fold::SumF64, count: 6, in_place: true }] };
        let forward = plan.after(0, 0);
        let words = |rank| -> Vec<f64> {
            plan.before(rank, 0).chunks_exact(8).map(|w| f64::from_le_bytes(w.try_into().unwrap())).collect()
        };
        let backward: Vec<u8> = (0..6)
            .flat_map(|i| (0..9).rev().map(|r| words(r)[i]).reduce(|a, b| a + b).unwrap().to_le_bytes())
            .collect();
        assert_ne!(forward, backward);
    }
}
