//! The rule for the bytes that are sent, and so for those that are received.
//!
//! ```text
//! uint32 x = seed ^ (call·0x9E3779B1 + round·0x85EBCA77 + from·0xC2B2AE3D + to·0x27D4EB2F + index·0x165667B1)
//! x ^= x >> 15;  x *= 0x2C1B3C6D;  x ^= x >> 12;  x *= 0x297A2D39;  x ^= x >> 15;  byte = x & 255
//! ```
//! all modulo 2³². `call` is the call's number; `round` counts its starts on this rank from 0, blocking runs too; `from` and
//! `to` are ranks of the communicator, `to` being 0 where a rank sends the same to all (bcast, gather, gatherv,
//! allgather, allgatherv, reduce, allreduce, scan, exscan); `index` counts packed bytes of that block from 0. For the
//! operation `affine` a byte at an even place of its element is made odd (`byte | 1`), so that maps can be told apart.
//! Before each start every byte of a buffer that is not to be sent is [`BLANK`]: holes, gaps, and bytes that are not
//! received must still be so when the call is complete.

use crate::program::{Call, Name, Op};

/// The value of bytes that were not received.
pub const BLANK: u8 = 0xA5;

/// The parameters of a block's bytes: all but the index.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    seed: u32,
    sum: u32,
    /// For `affine`: the bytes of an element, whose bytes at even places are made odd; else 0.
    affine: u64,
}

impl Source {
    /// The block that `from` sends to `to` in a round of call `number`.
    pub fn new(seed: u32, (number, call): (usize, &Call), round: u32, (from, to): (u32, u32)) -> Self {
        let to = if one_for_all(call.name) { 0 } else { to };
        let parts = [(number as u32, 0x9E37_79B1_u32), (round, 0x85EB_CA77), (from, 0xC2B2_AE3D), (to, 0x27D4_EB2F)];
        let sum = parts.iter().fold(0u32, |sum, (value, factor)| sum.wrapping_add(value.wrapping_mul(*factor)));
        Self { seed, sum, affine: if call.op == Op::Affine { call.element } else { 0 } }
    }

    /// Packed byte `index`.
    pub const fn byte(self, index: u64) -> u8 {
        let mut x = self.seed ^ self.sum.wrapping_add((index as u32).wrapping_mul(0x1656_67B1));
        x ^= x >> 15;
        x = x.wrapping_mul(0x2C1B_3C6D);
        x ^= x >> 12;
        x = x.wrapping_mul(0x297A_2D39);
        x ^= x >> 15;
        let odd = self.affine > 0 && (index % self.affine).is_multiple_of(2);
        x as u8 | odd as u8
    }

    /// All `count` elements, packed.
    pub fn bytes(self, bytes: u64) -> Vec<u8> {
        (0..bytes).map(|index| self.byte(index)).collect()
    }
}

/// Does a rank send the same to all ranks?
const fn one_for_all(name: Name) -> bool {
    use Name::*;
    matches!(name, Bcast | Gather | Gatherv | Allgather | Allgatherv | Reduce | Allreduce | Scan | Exscan)
}

/// The packed bytes that `rank` of `size` must have in the block of `peer` when a round is complete; `None`: the block
/// is unchanged. A call whose result is one block has it as that of peer 0.
pub fn arrives(seed: u32, call: (usize, &Call), round: u32, size: u32, rank: u32, peer: u32) -> Option<Vec<u8>> {
    use Name::*;
    let (_, what) = call;
    let sent = |from, to| Source::new(seed, call, round, (from, to)).bytes(what.count(size, from, to) * what.element);
    let folded = |ranks: u32| {
        let mut all = sent(0, rank);
        for from in 1..ranks {
            let element = what.element as usize;
            for (left, right) in all.chunks_mut(element).zip(sent(from, rank).chunks(element)) {
                what.op.fold(left, right);
            }
        }
        all
    };
    match what.name {
        Barrier | Dup | Split | Free => None,
        Bcast => Some(sent(what.root, 0)),
        Gather | Gatherv => (rank == what.root).then(|| sent(peer, rank)),
        Scatter | Scatterv => Some(sent(what.root, rank)),
        Allgather | Allgatherv | Alltoall | Alltoallv | Alltoallw => Some(sent(peer, rank)),
        Reduce => (rank == what.root).then(|| folded(size)),
        Allreduce | ReduceScatter | ReduceScatterBlock => Some(folded(size)),
        Scan => Some(folded(rank + 1)),
        Exscan => (rank > 0).then(|| folded(rank)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: Name, op: Op, element: u64, numbers: &[i64]) -> Call {
        let (algorithm, numbers) = ("auto".into(), numbers.to_vec());
        Call { comm: 0, name, algorithm, root: 0, in_place: false, op, element, order: 0, numbers, shapes: Vec::new() }
    }

    /// Computed in another language from the rule's text.
    #[test]
    fn bytes_are_as_the_rule_says() {
        let plain = call(Name::Alltoall, Op::None, 1, &[9]);
        assert_eq!(Source::new(7, (3, &plain), 2, (1, 4)).bytes(8), [73, 33, 102, 133, 169, 125, 185, 252]);
        let affine = call(Name::Allreduce, Op::Affine, 3, &[2]);
        let bytes = Source::new(7, (3, &affine), 2, (1, 4)).bytes(6);
        assert!([0, 2, 3, 5].iter().all(|&at| bytes[at] % 2 == 1), "{bytes:?}");
    }

    #[test]
    fn the_order_of_affine_maps_shows() {
        let fold = |one: [u8; 2], other: [u8; 2]| {
            let mut left = one;
            Op::Affine.fold(&mut left, &other);
            left
        };
        assert_eq!(fold([3, 1], [5, 7]), [15, 22]);
        assert_eq!(fold([5, 7], [3, 1]), [15, 12]);
    }

    #[test]
    fn words_wrap() {
        let mut left = u64::MAX.to_le_bytes();
        Op::Sum64.fold(&mut left, &2u64.to_le_bytes());
        assert_eq!(left, 1u64.to_le_bytes());
    }
}
