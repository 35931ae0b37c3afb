//! Scatter, gather and allgather: one block per rank on one side, a rank's own block on the other.
//!
//! The memory of a rank holds all ranks' blocks, where it has them, then its own block, unless that is in
//! place. The two sides have different datatypes, and all ranks differ.

use super::{Shape, mix};
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};

/// The direction of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the root's blocks.
    Scatter,
    /// To the root's blocks.
    Gather,
    /// To the blocks of all ranks.
    Allgather,
}

/// A collective on blocks, as all ranks make it.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The collective.
    pub direction: Direction,
    /// The root; ignored in an allgather.
    pub root: u32,
    /// The root's own block stays in place; in an allgather every rank's own block.
    pub in_place: bool,
    /// Packed bytes of the longest block that is possible.
    pub most: usize,
    /// All blocks have the same length and follow one another.
    pub equal: bool,
    /// Chooses lengths, displacements and datatypes.
    pub seed: u64,
}

/// One rank's arguments of a [`Spread`].
#[derive(Clone, Debug)]
pub struct Part {
    equal: bool,
    rank: u32,
    /// Packed bytes of an element of the blocks, and its kind.
    unit: usize,
    kind: u64,
    counts: Vec<u64>,
    displacements: Vec<u64>,
    own: Option<Shape>,
    /// Bytes before the own block: all ranks' blocks.
    area: usize,
}

/// Displacements of an element whose bytes lie in reverse order, in every other byte.
const BACKWARDS: [u64; 12] = [22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0];

impl Spread {
    fn unit(&self) -> usize {
        [1, 3, 12][self.seed as usize % 3]
    }

    /// Elements of `rank`'s block: one block in four is empty.
    fn count(&self, rank: u32) -> u64 {
        let most = (self.most / self.unit()) as u64;
        let random = mix(self.seed ^ if self.equal { 0 } else { u64::from(rank) << 20 });
        match random % 4 {
            0 if !self.equal => 0,
            1 => most,
            _ => (random >> 8) % (most + 1),
        }
    }

    /// Does `rank` have all ranks' blocks?
    fn central(&self, rank: u32) -> bool {
        self.direction == Direction::Allgather || rank == self.root
    }

    /// The arguments of `rank` among `ranks`.
    pub fn of(&self, ranks: u32, rank: u32) -> Part {
        let (unit, kind) = (self.unit(), mix(self.seed ^ u64::from(rank) << 8) % 3);
        let (mut counts, mut displacements) = (Vec::new(), Vec::new());
        let mut elements = 0;
        if self.central(rank) {
            counts = (0..ranks).map(|rank| self.count(rank)).collect();
            displacements = vec![77; ranks as usize];
            let mut order: Vec<u32> = (0..ranks).collect();
            if !self.equal {
                order.sort_by_key(|&peer| mix(self.seed ^ u64::from(rank) << 30 ^ u64::from(peer)));
            }
            for peer in order {
                let gap = if self.equal { 0 } else { mix(self.seed ^ u64::from(peer)) % 2 };
                // An empty block may lie anywhere.
                if counts[peer as usize] > 0 || self.equal {
                    displacements[peer as usize] = elements + gap;
                    elements += gap + counts[peer as usize];
                }
            }
        }
        let mut part = Part {
            equal: self.equal,
            rank,
            unit,
            kind,
            counts,
            displacements,
            own: (!self.in_place || !self.central(rank))
                .then(|| Shape::of(self.seed, rank, self.count(rank) as usize * unit)),
            area: 0,
        };
        part.area = elements as usize * part.extent();
        part
    }
}

impl Part {
    fn datatype(&self) -> Datatype<'static> {
        let unit = self.unit as u64;
        match self.kind {
            0 => Datatype::Contiguous { bytes: unit },
            1 => Datatype::Vector { blocks: unit, block: 1, stride: 2 },
            _ => Datatype::Indexed { block: 1, displacements: &BACKWARDS[BACKWARDS.len() - self.unit..] },
        }
    }

    fn extent(&self) -> usize {
        if self.kind == 0 { self.unit } else { 2 * self.unit - 1 }
    }

    /// Bytes of memory, with a guard at the end.
    pub fn memory(&self) -> usize {
        self.area + self.own.as_ref().map_or(0, Shape::memory) + 3
    }

    /// All ranks' blocks, where this rank has them.
    ///
    /// # Panics
    /// When the memory is too small.
    pub fn blocks(&self, memory: &mut [u8]) -> Option<Blocks<'_>> {
        let area = Buf::of_mut(&mut memory[..self.area]);
        let count = self.counts.first().copied()?;
        let ranks = self.counts.len() as u32;
        let blocks = if self.equal {
            // SAFETY: the caller keeps the memory for as long as the operation runs.
            unsafe { Blocks::equal(area, ranks, count, self.datatype()) }
        } else {
            // SAFETY: as above.
            unsafe { Blocks::vary(area, &self.counts, &self.displacements, self.datatype()) }
        };
        Some(blocks.expect("the blocks lie in the memory"))
    }

    /// The own block, unless it is in place.
    ///
    /// # Panics
    /// When the memory is too small.
    pub fn data(&self, memory: &mut [u8]) -> Option<Data<'_>> {
        let own = self.own.as_ref()?;
        let memory = Buf::of_mut(&mut memory[self.area..]);
        // SAFETY: the caller keeps the memory for as long as the operation runs.
        let data = unsafe { Data::from_raw(memory, own.count as u64, own.datatype()) };
        Some(data.expect("the block lies in the memory"))
    }

    /// The offset of each packed byte of `peer`'s block.
    fn block_places(&self, peer: u32) -> Vec<usize> {
        let byte = |within: usize| match self.kind {
            0 => within,
            1 => 2 * within,
            _ => 2 * (self.unit - 1 - within),
        };
        let first = self.displacements[peer as usize] as usize * self.extent();
        let elements = 0..self.counts[peer as usize] as usize;
        elements.flat_map(|at| (0..self.unit).map(move |within| first + at * self.extent() + byte(within))).collect()
    }

    /// The offset of each packed byte of the own block.
    fn own_places(&self) -> Vec<usize> {
        match &self.own {
            Some(own) => own.places().map(|at| self.area + at).collect(),
            None => self.block_places(self.rank),
        }
    }
}

/// The memory of `rank` after the operation, given all ranks' memory before it.
pub(super) fn after(spread: &Spread, ranks: u32, rank: u32, before: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let (mut memory, own) = (before(rank), spread.of(ranks, rank));
    let mut take = |to: Vec<usize>, from: Vec<usize>, bytes: &[u8]| {
        assert_eq!(to.len(), from.len());
        to.into_iter().zip(from).for_each(|(to, from)| memory[to] = bytes[from]);
    };
    match spread.direction {
        Direction::Scatter => {
            let root = spread.of(ranks, spread.root);
            take(own.own_places(), root.block_places(rank), &before(spread.root));
        }
        Direction::Gather if rank != spread.root => {}
        Direction::Gather | Direction::Allgather => {
            for peer in 0..ranks {
                take(own.block_places(peer), spread.of(ranks, peer).own_places(), &before(peer));
            }
        }
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_apart_and_some_are_empty() {
        let mut empty = 0;
        for seed in 0..200 {
            for direction in [Direction::Scatter, Direction::Gather, Direction::Allgather] {
                let spread =
                    Spread { direction, root: 2, in_place: seed % 2 == 0, most: 40, equal: seed % 5 == 0, seed };
                let part = spread.of(5, 2);
                let mut places: Vec<usize> = (0..5).flat_map(|peer| part.block_places(peer)).collect();
                empty += usize::from(part.counts.contains(&0));
                assert!(places.iter().all(|&at| at < part.area));
                places.extend(part.own.iter().flat_map(|_| part.own_places()));
                let all = places.len();
                places.sort_unstable();
                places.dedup();
                assert_eq!(places.len(), all);
                assert_eq!(spread.of(5, 3).counts.is_empty(), direction != Direction::Allgather);
                assert!(part.blocks(&mut vec![0; part.memory()]).unwrap().apart().is_ok());
            }
        }
        assert!(empty > 100);
    }
}
