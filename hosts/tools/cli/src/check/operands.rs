//! What reductions are checked with: operations, operands, and their fold in rank order.

use std::ffi::c_void;
use unisono_kernel::error::Refusal;
use unisono_kernel::op::{Element, Op, Operation, User};

/// An operation whose result is checked to the last bit, whatever the order of its brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    SumI64,
    /// Doubles that are whole numbers: sums are exact.
    SumF64,
    MaxF64,
    /// Pairs of a double and its index, many of them equal.
    Minloc,
    /// Composition of affine maps `x ↦ a·x + b`, modulo 2⁶⁴: associative, not commutative.
    Maps,
}

impl Fold {
    pub(super) const ALL: [Self; 5] = [Self::SumI64, Self::SumF64, Self::MaxF64, Self::Minloc, Self::Maps];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::SumI64 => "sum of i64",
            Self::SumF64 => "sum of f64",
            Self::MaxF64 => "max of f64",
            Self::Minloc => "minloc of double_int",
            Self::Maps => "user's, not commutative",
        }
    }

    pub(super) fn op(self) -> Result<Op, Refusal> {
        match self {
            Self::SumI64 => Ok(Op::SUM_I64),
            Self::SumF64 => Ok(Op::SUM_F64),
            Self::MaxF64 => Ok(Op::MAX_F64),
            Self::Minloc => Op::new(Operation::Minloc, Element::DoubleInt),
            // SAFETY: `compose` reads and writes `count` elements of 16 bytes and nothing else.
            Self::Maps => Ok(Op::User(unsafe { User::new(compose, std::ptr::null_mut(), 16, false) })),
        }
    }

    /// Words of 8 bytes in one element.
    pub(super) const fn words(self) -> usize {
        match self {
            Self::SumI64 | Self::SumF64 | Self::MaxF64 => 1,
            Self::Minloc | Self::Maps => 2,
        }
    }

    /// The operand of `rank` in case `seed`: `words` words.
    pub(super) fn operand(self, seed: usize, rank: usize, words: usize) -> Vec<u8> {
        let word = |at: usize| {
            let mixed = (seed as u64 * 31 + rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (at as u64) << 7;
            match self {
                Self::SumI64 | Self::Maps => mixed,
                Self::SumF64 | Self::MaxF64 => f64::from((mixed >> 40) as i32 - (1 << 23)).to_bits(),
                Self::Minloc if at.is_multiple_of(2) => f64::from((mixed >> 60) as u32).to_bits(),
                Self::Minloc => index(rank as i32),
            }
        };
        (0..words).flat_map(|at| word(at).to_ne_bytes()).collect()
    }

    /// x₀ ∘ x₁ ∘ … of `ranks` ranks, at least one.
    pub(super) fn result(self, seed: usize, ranks: usize, words: usize) -> Vec<u8> {
        let read = |rank| -> Vec<u64> {
            let bytes = self.operand(seed, rank, words);
            bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
        };
        let mut sum = read(0);
        for rank in 1..ranks {
            for (l, r) in sum.chunks_mut(self.words()).zip(read(rank).chunks(self.words())) {
                match self {
                    Self::SumI64 => l[0] = l[0].wrapping_add(r[0]),
                    Self::SumF64 => l[0] = (f64::from_bits(l[0]) + f64::from_bits(r[0])).to_bits(),
                    Self::MaxF64 => l[0] = f64::from_bits(l[0]).max(f64::from_bits(r[0])).to_bits(),
                    // Ranks are folded in order: of equal values the first one stays.
                    Self::Minloc if f64::from_bits(r[0]) < f64::from_bits(l[0]) => l.copy_from_slice(r),
                    Self::Minloc => {}
                    Self::Maps => l.copy_from_slice(&affine([l[0], l[1]], [r[0], r[1]])),
                }
            }
        }
        sum.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

/// An index as it lies in memory, with its padding.
fn index(of: i32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&of.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

const fn affine(l: [u64; 2], r: [u64; 2]) -> [u64; 2] {
    [l[0].wrapping_mul(r[0]), l[0].wrapping_mul(r[1]).wrapping_add(l[1])]
}

unsafe extern "C-unwind" fn compose(left: *const c_void, right: *mut c_void, count: u64, _: *mut c_void) {
    let (left, right) = (left.cast::<[u64; 2]>(), right.cast::<[u64; 2]>());
    for i in 0..count as usize {
        // SAFETY: the kernel passes `count` elements of two aligned words.
        let l = unsafe { left.wrapping_add(i).read() };
        // SAFETY: as above, and nothing else uses them during the call.
        let r = unsafe { &mut *right.wrapping_add(i) };
        *r = affine(l, *r);
    }
}
