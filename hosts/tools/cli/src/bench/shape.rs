//! How long the blocks of a call are, and where they lie.
//!
//! The sum of unequal blocks is that of equal ones. Rank r's block is in proportion to r, but each fourth one is empty:
//! for five ranks and a mean of 40 bytes the blocks have 0, 33, 67, 100 and 0 bytes.

use unisono_kernel::Rank;
use unisono_kernel::data::blocks::{Block, Blocks};
use unisono_kernel::data::datatype::Datatype;
use unisono_kernel::error::Refusal;

/// The blocks of one rank: one for each rank, one after the other in memory.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Bytes of this rank's own block.
    pub(crate) own: usize,
    /// Bytes of the longest block.
    pub(crate) most: usize,
    /// Bytes of all blocks together.
    pub(crate) all: usize,
    /// By rank: the block's bytes.
    counts: Vec<u64>,
    /// By rank: the offset of the block's first byte.
    begins: Vec<u64>,
    /// The same as blocks with a datatype each.
    each: Vec<Block<'static>>,
}

impl Shape {
    /// A block of `block` bytes for each rank.
    pub(crate) fn equal(block: u64, rank: Rank, ranks: u32) -> Self {
        Self::of(vec![block; ranks as usize], rank)
    }

    /// Unequal blocks with the same sum, each of whole units of `unit` bytes. Block 0 has the length of number `first`,
    /// and so on round the ranks.
    pub(crate) fn unequal(block: u64, unit: u64, first: Rank, rank: Rank, ranks: u32) -> Self {
        let mut counts = lengths(block / unit, ranks);
        counts.iter_mut().for_each(|count| *count *= unit);
        let first = first as usize % counts.len().max(1);
        counts.rotate_left(first);
        Self::of(counts, rank)
    }

    fn of(counts: Vec<u64>, rank: Rank) -> Self {
        let begin = |end: &mut u64, &count: &u64| Some(std::mem::replace(end, *end + count));
        let begins: Vec<u64> = counts.iter().scan(0, begin).collect();
        let one = |(&count, &displacement)| Block { displacement, count, datatype: Datatype::BYTE };
        Self {
            own: counts.get(rank as usize).copied().unwrap_or(0) as usize,
            most: counts.iter().copied().max().unwrap_or(0) as usize,
            all: counts.iter().sum::<u64>() as usize,
            each: counts.iter().zip(&begins).map(one).collect(),
            counts,
            begins,
        }
    }

    /// The offset of a rank's block.
    pub(crate) fn begin(&self, rank: Rank) -> usize {
        self.begins.get(rank as usize).copied().unwrap_or(0) as usize
    }

    /// The blocks in memory of [`Self::all`] bytes, by rank.
    pub(crate) fn parts<'m>(&self, mut memory: &'m mut [u8]) -> impl Iterator<Item = &'m mut [u8]> {
        self.counts.iter().map_while(move |&count| memory.split_off_mut(..count as usize))
    }

    /// The blocks, which are equal, as [`Blocks`] of one count. It is called in what is measured: nothing is divided.
    #[inline(always)]
    pub(crate) fn by_one<'a>(&self, memory: &'a mut [u8]) -> Result<Blocks<'a>, Refusal> {
        Blocks::equal_mut(memory, self.counts.len() as u32, self.most as u64, Datatype::BYTE)
    }

    /// The blocks as [`Blocks`] of a count and a displacement for each rank.
    #[inline]
    pub(crate) fn by_rank<'a>(&'a self, memory: &'a mut [u8]) -> Result<Blocks<'a>, Refusal> {
        Blocks::vary_mut(memory, &self.counts, &self.begins, Datatype::BYTE)
    }

    /// The blocks as [`Blocks`] of a datatype for each rank.
    #[inline]
    pub(crate) fn by_type<'a>(&'a self, memory: &'a mut [u8]) -> Result<Blocks<'a>, Refusal> {
        Blocks::each_mut(memory, &self.each)
    }
}

/// Unequal lengths whose mean is `mean`.
fn lengths(mean: u64, ranks: u32) -> Vec<u64> {
    let weight = |rank: u32| if rank.is_multiple_of(4) { 0 } else { u128::from(rank) };
    let (all, weights) = (u128::from(mean) * u128::from(ranks), (0..ranks).map(weight).sum::<u128>());
    if weights == 0 {
        return vec![mean; ranks as usize];
    }
    // Rounding keeps the sum: a block ends where the weights so far say.
    let mut before = 0;
    let length = |rank| {
        let begin = all * before / weights;
        before += weight(rank);
        (all * before / weights - begin) as u64
    };
    (0..ranks).map(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn unequal_blocks_are_as_long_together_as_equal_ones() {
        assert_eq!(lengths(40, 5), [0, 33, 67, 100, 0]);
        assert_eq!(lengths(7, 1), [7]);
        assert_eq!(lengths(7, 2), [0, 14]);
        for ranks in 1..40 {
            for mean in [0, 1, 8, 1000, 1 << 40] {
                let lengths = lengths(mean, ranks);
                assert_eq!(lengths.iter().sum::<u64>(), mean * u64::from(ranks), "{ranks} ranks, {mean}");
                if ranks > 1 && mean >= 1000 {
                    let full: Vec<_> = lengths.iter().filter(|&&length| length > 0).collect();
                    assert_eq!(full.len(), ranks as usize - (ranks as usize).div_ceil(4), "each fourth one is empty");
                    assert_eq!(full.iter().collect::<BTreeSet<_>>().len(), full.len(), "no two are alike");
                }
            }
        }
    }

    /// What rank i has for rank j is what rank j expects from rank i, in whole units.
    #[test]
    fn ranks_agree_about_each_block() {
        for ranks in [1, 2, 3, 8, 13] {
            let shapes: Vec<_> = (0..ranks).map(|rank| Shape::unequal(24, 8, rank, rank, ranks)).collect();
            for (i, shape) in shapes.iter().enumerate() {
                assert_eq!(shape.all, 24 * ranks as usize);
                assert!(shape.counts.iter().all(|count| count.is_multiple_of(8)), "{:?}", shape.counts);
                for (j, other) in shapes.iter().enumerate() {
                    assert_eq!(shape.counts[j], other.counts[i]);
                }
            }
        }
    }

    #[test]
    fn blocks_lie_one_after_the_other() {
        let shape = Shape::unequal(40, 1, 0, 2, 5);
        assert_eq!((shape.own, shape.most, shape.all, shape.begin(3)), (67, 100, 200, 100));
        let mut memory = vec![0; 200];
        assert_eq!(shape.parts(&mut memory).map(|part| part.len()).collect::<Vec<_>>(), [0, 33, 67, 100, 0]);
        for rank in 0..5 {
            let bytes = [
                shape.by_rank(&mut memory).map(|blocks| blocks.bytes(rank)),
                shape.by_type(&mut memory).map(|blocks| blocks.bytes(rank)),
            ];
            assert_eq!(bytes, [Ok(shape.counts[rank as usize]); 2]);
        }
        assert_eq!(Shape::equal(40, 2, 5).by_one(&mut memory).map(|blocks| blocks.bytes(4)), Ok(40));
    }
}
