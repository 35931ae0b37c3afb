//! The program that the processes run: a layout and a few calls, decoded from bytes.

use super::Bytes;
use super::uneven::Uneven;
use crate::explore::{Collective, Exchange, Spread};
use crate::oracle::blocks::Direction;
use std::ffi::c_void;
use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::op::{Op, User};
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::{Base, Cico, Layout, Params};
use unisono_kernel::shm::bcast::posted;

/// A collective call, the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    /// `shape` chooses each rank's datatype.
    Bcast { algorithm: BcastAlgorithm, root: u32, bytes: u64, shape: u8 },
    /// A barrier.
    Barrier(BarrierAlgorithm),
    /// `in_place`: a bit per rank.
    Allreduce { op: Fold, bytes: u64, in_place: u8 },
    /// Paper P2's collectives.
    Spread(Spread),
    /// The collectives that exchange through lines and queues; `ordered`: the reduction does not commute.
    Exchange { exchange: Exchange, ordered: bool },
    /// Alltoallv, with a length of its own for each pair.
    Uneven(Uneven),
}

/// The collective.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fold {
    SumF64,
    SumI64,
    /// `right = 3 · left + right` on `u32`: neither commutative nor associative.
    Affine,
}

unsafe extern "C-unwind" fn affine(left: *const c_void, right: *mut c_void, count: u64, _: *mut c_void) {
    for i in 0..count as usize {
        let (left, right) = (left.cast::<u32>().wrapping_add(i), right.cast::<u32>().wrapping_add(i));
        // SAFETY: `left` holds `count` elements, aligned, by the contract of a user's operation.
        let l = unsafe { left.read() };
        // SAFETY: so does `right`.
        let r = unsafe { right.read() };
        // SAFETY: and it is writable.
        unsafe { right.write(l.wrapping_mul(3).wrapping_add(r)) };
    }
}

impl Fold {
    pub(super) fn op(self) -> Op {
        match self {
            Self::SumF64 => Op::SUM_F64,
            Self::SumI64 => Op::SUM_I64,
            // SAFETY: `affine` reads and writes `count` elements of 4 bytes, and returns.
            Self::Affine => Op::User(unsafe { User::new(affine, std::ptr::null_mut(), 4, false) }),
        }
    }

    /// The oracle's `left ∘ right`.
    pub(super) fn apply(self, left: &[u8], right: &[u8]) -> Vec<u8> {
        fn each<const N: usize>(l: &[u8], r: &[u8], f: impl Fn([u8; N], [u8; N]) -> [u8; N]) -> Vec<u8> {
            let array = |s: &[u8]| <[u8; N]>::try_from(s).expect("a whole element");
            l.chunks(N).zip(r.chunks(N)).flat_map(|(l, r)| f(array(l), array(r))).collect()
        }
        match self {
            Self::SumF64 => each(left, right, |l, r| (f64::from_le_bytes(l) + f64::from_le_bytes(r)).to_le_bytes()),
            Self::SumI64 => {
                each(left, right, |l, r| i64::from_le_bytes(l).wrapping_add(i64::from_le_bytes(r)).to_le_bytes())
            }
            Self::Affine => each(left, right, |l, r| {
                u32::from_le_bytes(l).wrapping_mul(3).wrapping_add(u32::from_le_bytes(r)).to_le_bytes()
            }),
        }
    }
}

/// The value from which all counts begin: zero, or three operations before a counter of 16 bits would wrap, and so on.
fn near(which: u8) -> Base {
    let wrap = match which % 6 {
        0 => return Base::default(),
        1 => 1 << 16,
        2 => 1 << 24,
        3 => 1 << 32,
        4 => 1 << 40,
        _ => Base::MOST,
    };
    let near = |most: u64| wrap.min(most) - 3;
    let (all, centrals) = (near(Base::MOST), near(Base::MOST_CENTRALS));
    Base { operation: all, clock: all, sets: all, centrals }
}

/// A layout and the calls on it.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) params: Params,
    /// The value from which all counts begin.
    pub(super) base: Base,
    /// What ranks lend each other, and which loans they can read; `None`: nothing.
    pub(super) lending: Option<u64>,
    pub(super) calls: Vec<Call>,
}

impl Program {
    pub(super) fn decode(bytes: &mut Bytes<'_>) -> Self {
        let ranks = 2 + bytes.below(4) as u32;
        let slots = [1, 2, 4, 6][bytes.below(4) as usize];
        let divisors: Vec<u32> = (1..=slots).filter(|q| slots % q == 0).collect();
        let sets = divisors[bytes.below(divisors.len() as u64) as usize];
        let params = Params {
            ranks,
            page: 256,
            lines: 2 << bytes.below(2),
            queue_slots: 1 << bytes.below(3),
            // At least a piece of the smallest size for each process.
            queue_fragment: (64 * (1 + bytes.below(3))).max(32 * u64::from(ranks)).next_multiple_of(64),
            cico: Some(Cico { slots, fragment: 1 + bytes.below(97), sets }),
            mailboxes: None,
            crowded: false,
        };
        let byte = bytes.byte();
        let lending = Some(bytes.byte()).filter(|seed| seed & 1 == 1).map(u64::from);
        let calls = (0..=byte % 12).map(|_| Self::call(bytes, &params)).collect();
        Self { params, base: near(byte / 12), lending, calls }
    }

    fn call(bytes: &mut Bytes<'_>, params: &Params) -> Call {
        let kind = bytes.byte();
        match kind % 9 {
            0 | 1 => {
                let len = Self::len(bytes, params);
                let algorithm = match bytes.below(8) {
                    0 => BcastAlgorithm::Auto,
                    1 if len <= posted::MOST => BcastAlgorithm::Posted,
                    2 if len <= posted::MOST => BcastAlgorithm::Groups,
                    1..=3 => BcastAlgorithm::Queue,
                    4 => BcastAlgorithm::Cico(Tree::Flat),
                    5 => BcastAlgorithm::Cico(Tree::Chain),
                    6 => BcastAlgorithm::Cico(Tree::Kary(1 + u32::from(kind >> 3) % 3)),
                    _ => BcastAlgorithm::Cico(Tree::Knomial(2 + u32::from(kind >> 3) % 3)),
                };
                let root = Self::root(bytes, params, true);
                Call::Bcast { algorithm, root, bytes: len, shape: bytes.byte() }
            }
            2 => Call::Barrier(match kind >> 3 & 7 {
                4 => BarrierAlgorithm::Doubling,
                0 => BarrierAlgorithm::Central,
                1 => BarrierAlgorithm::Combining(1 + u32::from(kind >> 5) % 3),
                2 => BarrierAlgorithm::Posted,
                _ => BarrierAlgorithm::Dissemination,
            }),
            3 => {
                let in_place = bytes.byte();
                match kind >> 3 & 3 {
                    0 => Call::Allreduce { op: Fold::Affine, bytes: 4 * bytes.below(13), in_place },
                    1 => Call::Allreduce { op: Fold::SumF64, bytes: 8 * bytes.below(7), in_place },
                    _ => Call::Allreduce { op: Fold::SumI64, bytes: 8 * bytes.below(7), in_place },
                }
            }
            4 => {
                let (direction, rooted) =
                    [(Direction::Scatter, true), (Direction::Gather, true), (Direction::Allgather, false)]
                        [usize::from(kind >> 3) % 3];
                Call::Spread(Spread {
                    direction,
                    root: Self::root(bytes, params, rooted),
                    bytes: 4 * bytes.below(33) as usize,
                })
            }
            5 => Call::Uneven(Uneven(bytes.byte())),
            _ => {
                let (collective, rooted) = Collective::ALL[usize::from(kind >> 3) % Collective::ALL.len()];
                let fragments = bytes.below(4) as usize;
                let exchange = Exchange { collective, root: Self::root(bytes, params, rooted), fragments };
                Call::Exchange { exchange, ordered: bytes.below(2) == 0 }
            }
        }
    }

    fn root(bytes: &mut Bytes<'_>, params: &Params, rooted: bool) -> u32 {
        if rooted { bytes.below(params.ranks.into()) as u32 } else { 0 }
    }

    /// Lengths at and around the edges of lines, fragments and sets.
    fn len(bytes: &mut Bytes<'_>, params: &Params) -> u64 {
        let f = params.cico.map_or(1, |c| c.fragment);
        let (choice, detail) = (bytes.byte(), bytes.below(3));
        match choice % 8 {
            0 => detail,
            1 => 8,
            2 => params.queue_fragment - 1 + detail,
            3 => f - 1 + detail,
            4 => posted::MOST - 1 + detail,
            5 => params.queue_fragment * (1 + u64::from(choice >> 3) % 9) + detail,
            6 => f * (u64::from(choice >> 3) % 13) + detail,
            _ => u64::from(choice) * 2 + detail,
        }
    }

    pub(super) fn layout(&self) -> Layout {
        Layout::new(self.params).expect("the decoder knows the bounds")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_reach_every_collective() {
        let mut names = std::collections::BTreeSet::new();
        for kind in 0..=u8::MAX {
            // Two processes, one call of this kind.
            let input = [0, 0, 0, 0, 0, 0, 0, 0, 0, kind];
            names.extend(Program::decode(&mut Bytes(&input)).calls.iter().map(|call| match call {
                Call::Exchange { exchange, .. } => format!("{:?}", exchange.collective),
                Call::Spread(spread) => format!("paper's {:?}", spread.direction),
                call => format!("{call:?}").chars().take(7).collect(),
            }));
        }
        assert_eq!(names.len(), Collective::ALL.len() + 3 + 3 + 1, "{names:?}");
    }
}
