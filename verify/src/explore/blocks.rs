//! Paper P2's operations: one block per rank, of different lengths, one of them empty.

use super::payload::forever;
use crate::oracle::blocks::Direction;
use unisono_kernel::Rank;
use unisono_kernel::call::any::Any;
use unisono_kernel::comm::Member;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::Refusal;
use unisono_kernel::shm::papers::allgather::P2Allgather;
use unisono_kernel::shm::papers::gather::P2Gather;
use unisono_kernel::shm::papers::scatter::P2Scatter;

/// Bytes of an element.
const ELEMENT: usize = 4;
/// What user memory holds where nothing has been received yet.
const BLANK: u8 = 0xEE;

/// A scatterv, gatherv or allgatherv.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The collective.
    pub direction: Direction,
    /// The root, 0 in an allgatherv.
    pub root: Rank,
    /// Bytes of the longest block that goes through a queue, a multiple of four.
    pub bytes: usize,
}

impl Spread {
    /// Bytes of a rank's block. The rank after the root has the longest one that is sent, the next rank
    /// an empty one, the others one element; the root's own block, which is not sent, is the longest of all.
    fn len(&self, ranks: u32, rank: Rank) -> usize {
        match ((rank + ranks - self.root) % ranks, self.direction) {
            (0, Direction::Scatter | Direction::Gather) => self.bytes + ELEMENT,
            (1, _) => self.bytes,
            (2, _) => 0,
            _ => ELEMENT,
        }
    }

    fn total(&self, ranks: u32) -> usize {
        (0..ranks).map(|rank| self.len(ranks, rank)).sum()
    }

    /// Bytes of user memory of one process: all ranks' blocks, then its own.
    pub(crate) fn memory(&self, ranks: u32) -> usize {
        self.total(ranks) + self.bytes + ELEMENT
    }

    fn central(&self, rank: Rank) -> bool {
        self.direction == Direction::Allgather || rank == self.root
    }

    /// A process's user memory before or after the operation; `data` are the first bytes of a rank's block.
    pub(crate) fn fill(&self, ranks: u32, rank: Rank, done: bool, data: impl Fn(Rank, usize) -> Vec<u8>) -> Vec<u8> {
        let scatter = self.direction == Direction::Scatter;
        let block = |rank| data(rank, self.len(ranks, rank));
        let mut memory = match self.central(rank) && (scatter || done) {
            true => (0..ranks).flat_map(block).collect(),
            false => vec![BLANK; self.total(ranks)],
        };
        if !scatter || done {
            memory.extend(block(rank));
        }
        memory.resize(self.memory(ranks), BLANK);
        memory
    }

    /// The process's machine, on user memory at `memory`.
    pub(crate) fn machine(&self, me: &Member, memory: *mut u8) -> Result<Any<'static>, Refusal> {
        let (ranks, rank) = (me.size(), me.rank());
        let total = self.total(ranks);
        let own = Buf::new(memory.wrapping_add(total), self.len(ranks, rank));
        // SAFETY: the memory is as long as `memory`, lives as long as the model, and one poll at a time touches it.
        let own = Some(unsafe { Data::from_raw(own, own.len() as u64, Datatype::BYTE) }?);
        let counts: Vec<u64> = (0..ranks).map(|rank| (self.len(ranks, rank) / ELEMENT) as u64).collect();
        let displacements = (0..ranks as usize).map(|rank| counts[..rank].iter().sum()).collect();
        let element = Datatype::Contiguous { bytes: ELEMENT as u64 };
        let (counts, displacements) = (forever(counts), forever(displacements));
        // SAFETY: as above.
        let blocks = unsafe { Blocks::vary(Buf::new(memory, total), counts, displacements, element) }?;
        Ok(match self.direction {
            Direction::Scatter => P2Scatter::new(me, Some(blocks), own, self.root)?.into(),
            Direction::Gather => P2Gather::new(me, own, Some(blocks), self.root)?.into(),
            Direction::Allgather => P2Allgather::new(me, own, blocks)?.into(),
        })
    }

    /// The operation's name, a part of the program's name.
    pub(crate) const fn name(&self) -> &'static str {
        match self.direction {
            Direction::Scatter => "scatterv",
            Direction::Gather => "gatherv",
            Direction::Allgather => "allgatherv",
        }
    }
}
