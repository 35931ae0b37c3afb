//! BAGDS, the block algorithm of global data distribution (paper P5): every process ends with every block.
//!
//! `data_mask[i]` is the set of blocks that process i has: its own at first. In each stage every process i without a
//! partner takes the first process j without a partner that has a block i lacks; both then have what either had. They
//! send each other only blocks that the other lacks; one direction may be empty. The stages end when all have all
//! blocks.
//!
//! The paper runs a stage "when at most one process is left unpaired": at p = 5 that never happens. Here a stage runs
//! when a scan of all processes finds no further pair.
//!
//! The stages depend on p alone. A process computes them once, in working memory of p² bits, and keeps its own
//! stages: a [`Table`].

use super::Seat;
use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use core::ops::Range;

/// Words of a set of blocks.
const fn set_words(size: u32) -> usize {
    size.div_ceil(64) as usize
}

/// Words of working memory for `size` processes.
pub const fn work_words(size: u32) -> usize {
    size as usize * (set_words(size) + 1)
}

/// Words of a table of so many stages.
pub const fn table_words(size: u32, stages: u32) -> usize {
    stages as usize * (1 + 2 * set_words(size))
}

/// Number of stages for `size` processes.
///
/// # Errors
/// `work` is shorter than [`work_words`].
pub fn stages(size: u32, work: &mut [u64]) -> Result<u32, Refusal> {
    let mut masks = Masks::new(size, work)?;
    let mut stages = 0;
    while masks.stage(|_, _| {}) {
        stages += 1;
    }
    Ok(stages)
}

/// One process's stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Table<'a> {
    size: u32,
    words: &'a [u64],
}

/// What one process does in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage<'a> {
    /// The partner.
    pub partner: Rank,
    /// Blocks that the partner lacks.
    pub give: Set<'a>,
    /// Blocks that this process lacks.
    pub take: Set<'a>,
}

impl<'a> Table<'a> {
    /// The stages of `seat`, written to `table`.
    ///
    /// # Errors
    /// `work` is shorter than [`work_words`], or `table` than [`table_words`] for all [`stages`].
    pub fn new(seat: Seat, work: &mut [u64], table: &'a mut [u64]) -> Result<Self, Refusal> {
        let size = seat.size();
        let (mut masks, set, room) = (Masks::new(size, work)?, set_words(size), table.len());
        let mut rows = table.chunks_exact_mut(1 + 2 * set);
        let mut stages = 0;
        loop {
            let mut mine = rows.next();
            if let Some([partner, ..]) = mine.as_deref_mut() {
                *partner = size.into();
            }
            let paired = masks.stage(|(i, set_i), (j, set_j)| {
                let (partner, Set(have), Set(theirs)) = match seat.rank() {
                    rank if rank == i => (j, set_i, set_j),
                    rank if rank == j => (i, set_j, set_i),
                    _ => return,
                };
                let Some([to, sets @ ..]) = mine.as_deref_mut() else { return };
                *to = partner.into();
                let (give, take) = sets.split_at_mut(set.min(sets.len()));
                for (((give, take), have), theirs) in give.iter_mut().zip(take).zip(have).zip(theirs) {
                    (*give, *take) = (have & !theirs, theirs & !have);
                }
            });
            if !paired {
                break;
            }
            stages += 1;
        }
        let needed = table_words(size, stages);
        let short = Refusal::new(Argument::Scratch, 8 * room as u64, Bound::AtLeast(8 * needed as u64));
        Ok(Self { size, words: table.get(..needed).ok_or(short)? })
    }

    /// The table that was made for `size` processes before, from its words.
    pub(crate) const fn made(size: u32, words: &'a [u64]) -> Self {
        Self { size, words }
    }

    /// Number of processes.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Number of stages; the same on all processes.
    #[inline]
    pub const fn stages(&self) -> u32 {
        (self.words.len() / table_words(self.size, 1)) as u32
    }

    /// What this process does in `stage`; `None` if it has no partner.
    #[inline]
    pub fn stage(&self, stage: u32) -> Option<Stage<'a>> {
        let begin = table_words(self.size, stage);
        let [partner, sets @ ..] = self.words.get(begin..begin + table_words(self.size, 1))? else { return None };
        let (give, take) = sets.split_at_checked(sets.len() / 2)?;
        let partner = (*partner < self.size.into()).then_some(*partner as Rank)?;
        Some(Stage { partner, give: Set(give), take: Set(take) })
    }
}

/// A set of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set<'a>(&'a [u64]);

impl<'a> Set<'a> {
    /// The blocks, in rising order.
    pub fn iter(self) -> impl Iterator<Item = Rank> + use<'a> {
        (0..).zip(self.0).flat_map(|(word, &bits)| {
            (0..u64::BITS).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * u64::BITS + bit)
        })
    }

    /// The block of this index, in rising order, from 0.
    pub fn nth(self, index: u32) -> Option<Rank> {
        let mut left = index;
        for (word, &bits) in (0..).zip(self.0) {
            if left < bits.count_ones() {
                let rest = (0..left).fold(bits, |bits, _| bits & (bits - 1));
                return Some(word * u64::BITS + rest.trailing_zeros());
            }
            left -= bits.count_ones();
        }
        None
    }

    /// Number of blocks.
    pub fn count(self) -> u32 {
        self.0.iter().map(|bits| bits.count_ones()).sum()
    }

    /// Number of blocks that are not in `other`.
    pub fn beyond(self, other: Set<'_>) -> u32 {
        self.0.iter().zip(other.0).map(|(bits, others)| (bits & !others).count_ones()).sum()
    }
}

/// The paper's masks: the blocks that every process has, stage by stage. This is for code that needs the stages of all
/// processes; the stages of one are a [`Table`].
#[derive(Debug)]
pub struct Masks<'a> {
    size: u32,
    /// A row of bits per process: the blocks that it has.
    data: &'a mut [u64],
    /// `send_mask`: partners; the size for none.
    partners: &'a mut [u64],
}

impl<'a> Masks<'a> {
    /// Before the first stage: each of `size` processes has its own block.
    ///
    /// # Errors
    /// `work` is shorter than [`work_words`].
    pub fn new(size: u32, work: &'a mut [u64]) -> Result<Self, Refusal> {
        let (room, needed) = (8 * work.len() as u64, 8 * work_words(size) as u64);
        let short = Refusal::new(Argument::Scratch, room, Bound::AtLeast(needed));
        let work = work.get_mut(..work_words(size)).ok_or(short)?;
        let (partners, data) = work.split_at_mut(size as usize);
        data.fill(0);
        for (rank, row) in data.chunks_exact_mut(set_words(size)).enumerate() {
            row.iter_mut().skip(rank / 64).take(1).for_each(|word| *word = 1 << (rank % 64));
        }
        Ok(Self { size, data, partners })
    }

    fn row(&self, rank: u32) -> Range<usize> {
        let set = set_words(self.size);
        rank as usize * set..(rank as usize + 1) * set
    }

    /// The blocks that a process has.
    fn set(&self, rank: Rank) -> Set<'_> {
        Set(self.data.get(self.row(rank)).unwrap_or_default())
    }

    fn is_free(&self, rank: u32) -> bool {
        self.partners.get(rank as usize) == Some(&self.size.into())
    }

    /// Does `peer` have a block that `rank` lacks?
    fn offers(&self, peer: u32, rank: u32) -> bool {
        self.set(peer).0.iter().zip(self.set(rank).0).any(|(theirs, mine)| theirs & !mine != 0)
    }

    /// Forms the pairs of a stage, and calls `pair` for each: first the process that takes a partner, then that
    /// partner, each with the blocks that it has before the exchange. Returns false if there is no pair: all have all
    /// blocks.
    pub fn stage(&mut self, mut pair: impl FnMut((Rank, Set<'_>), (Rank, Set<'_>))) -> bool {
        self.partners.fill(self.size.into());
        let mut any = false;
        for i in 0..self.size {
            if !self.is_free(i) || self.set(i).count() == self.size {
                continue;
            }
            let Some(j) = (0..self.size).find(|&j| j != i && self.is_free(j) && self.offers(j, i)) else { continue };
            any = true;
            for (one, other) in [(i, j), (j, i)] {
                self.partners.iter_mut().skip(one as usize).take(1).for_each(|partner| *partner = other.into());
            }
            let rows = [self.row(i), self.row(j)];
            if let Ok([mine, theirs]) = self.data.get_disjoint_mut(rows) {
                pair((i, Set(mine)), (j, Set(theirs)));
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    *mine |= *theirs;
                    *theirs = *mine;
                }
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::log2_ceil;
    use std::vec;
    use std::vec::Vec;

    fn stages_of(size: u32) -> u32 {
        stages(size, &mut vec![0; work_words(size)]).unwrap()
    }

    #[test]
    fn stage_counts() {
        let wanted = [(3, 3), (5, 5), (6, 4), (7, 4), (9, 7), (12, 5), (15, 5), (17, 9), (33, 11), (100, 10)];
        wanted.into_iter().for_each(|(size, stages)| assert_eq!(stages_of(size), stages, "p={size}"));
        for log in 0..8 {
            assert_eq!(stages_of(1 << log), log);
        }
    }

    #[test]
    fn never_fewer_than_doubling_and_often_more() {
        let more: Vec<_> = (1..=33).filter(|&size| stages_of(size) > log2_ceil(size)).collect();
        assert!((1..=33).all(|size| stages_of(size) >= log2_ceil(size)));
        assert_eq!(
            more,
            [3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 33]
        );
    }

    #[test]
    fn partners_agree_and_every_block_arrives_once() {
        for size in (1..=33).chain([63, 64, 65, 100]) {
            let stages = stages_of(size);
            let mut memory = vec![vec![0; table_words(size, stages)]; size as usize];
            let tables: Vec<_> = (0..)
                .zip(&mut memory)
                .map(|(rank, table)| Table::new(Seat { rank, size }, &mut vec![0; work_words(size)], table).unwrap())
                .collect();
            let mut have: Vec<Vec<u32>> = (0..size).map(|rank| vec![rank]).collect();
            for stage in 0..stages {
                for rank in 0..size {
                    assert_eq!(tables[rank as usize].stages(), stages);
                    let Some(mine) = tables[rank as usize].stage(stage) else { continue };
                    let theirs = tables[mine.partner as usize].stage(stage).unwrap();
                    assert_eq!((theirs.partner, theirs.give), (rank, mine.take), "p={size} stage {stage}");
                    assert!(mine.give.iter().all(|block| have[rank as usize].contains(&block)));
                    let count = mine.take.count();
                    assert!((0..count).filter_map(|index| mine.take.nth(index)).eq(mine.take.iter()));
                    assert_eq!((mine.take.iter().count() as u32, mine.take.nth(count)), (count, None));
                }
                for (have, table) in have.iter_mut().zip(&tables) {
                    have.extend(table.stage(stage).into_iter().flat_map(|stage| stage.take.iter()));
                }
            }
            for mut blocks in have {
                blocks.sort_unstable();
                assert_eq!(blocks, (0..size).collect::<Vec<_>>(), "p={size}");
            }
        }
    }

    #[test]
    fn short_memory_is_refused() {
        let seat = Seat { rank: 2, size: 9 };
        let refused = |work: usize, table: usize| {
            let refusal = Table::new(seat, &mut vec![0; work], &mut vec![0; table]).unwrap_err();
            (refusal.argument, refusal.value, refusal.bound)
        };
        assert_eq!(refused(17, 21), (Argument::Scratch, 136, Bound::AtLeast(144)));
        assert_eq!(refused(18, 20), (Argument::Scratch, 160, Bound::AtLeast(168)));
        assert!(Table::new(seat, &mut [0; 18], &mut [0; 21]).is_ok());
    }
}
