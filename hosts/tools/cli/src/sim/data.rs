//! What a rank's memory holds before a call, and what it must hold after it.
//!
//! Bytes are bench's: one block of gather, scatter, allgather and alltoall; else the whole vector of one rank, which a
//! reduce_scatter cuts into equal blocks of one element at least. Reductions are sums of `i32`, which wrap: an element
//! has four bytes, and any order gives the same bits.

use crate::args::Collective;
use crate::bench::{fill, holds};
use unisono_kernel::Rank;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::op::Op;

/// What reductions fold with.
pub(crate) const OP: Op = Op::SUM_I32;
/// Bytes of an element.
const ELEMENT: usize = 4;
/// Most bytes of all ranks' inputs and results together.
const MOST: u64 = 8 << 30;
/// Seed of what receive buffers hold before the call.
const JUNK: u64 = 1_000_003;

/// A call, as all ranks make it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) collective: Collective,
    pub(crate) ranks: u32,
    pub(crate) bytes: u64,
    pub(crate) root: Rank,
}

/// One rank's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) send: Vec<u8>,
    pub(crate) receive: Vec<u8>,
    pub(crate) scratch: Vec<u8>,
}

impl Case {
    /// Does the root's start open the window?
    pub(crate) const fn rooted(&self) -> bool {
        matches!(self.collective, Collective::Bcast | Collective::Gather | Collective::Scatter | Collective::Reduce)
    }

    /// Checks the root, and that all memory can be had.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        Refusal::check(Argument::Root, self.root.into(), Bound::Below(self.ranks.into()))?;
        Refusal::check(Argument::Bytes, self.bytes, Bound::AtMost(MOST / self.buffers())).map(|_| ())
    }

    /// All ranks' inputs and results together, as a multiple of the case's bytes.
    pub(crate) fn buffers(&self) -> u64 {
        let ranks = u64::from(self.ranks);
        match self.collective {
            Collective::Allgather => ranks * (ranks + 1),
            Collective::Alltoall => 2 * ranks * ranks,
            Collective::Bcast => ranks,
            _ => 2 * ranks,
        }
    }

    /// Bytes of a rank's block of a reduce_scatter.
    pub(crate) const fn slice(&self) -> u64 {
        let elements = self.bytes / ELEMENT as u64 / self.ranks as u64;
        ELEMENT as u64 * if self.bytes > 0 && elements == 0 { 1 } else { elements }
    }

    /// Bytes that `rank` sends and receives.
    fn lengths(&self, rank: Rank) -> (usize, usize) {
        let (one, all) = (self.bytes as usize, self.bytes as usize * self.ranks as usize);
        let at_root = |bytes: usize| if rank == self.root { bytes } else { 0 };
        match self.collective {
            Collective::Bcast => (0, one),
            Collective::Gather => (one, at_root(all)),
            Collective::Scatter => (at_root(all), one),
            Collective::Allgather => (one, all),
            Collective::Alltoall => (all, all),
            Collective::Reduce => (one, at_root(one)),
            Collective::ReduceScatter => (self.slice() as usize * self.ranks as usize, self.slice() as usize),
            Collective::Allreduce | Collective::Scan | Collective::Exscan => (one, one),
            // A barrier, and collectives that are not simulated.
            _ => (0, 0),
        }
    }

    /// Fills a rank's memory: its data to send, and junk where it receives.
    pub(crate) fn prepare(&self, rank: Rank, memory: &mut Memory) {
        let (send, receive) = self.lengths(rank);
        memory.send.resize(send, 0);
        memory.receive.resize(receive, 0);
        match self.collective {
            Collective::Bcast if rank == self.root => fill(&mut memory.receive, block(self.root, 0)),
            _ => fill(&mut memory.receive, JUNK),
        }
        match self.collective {
            Collective::Gather | Collective::Scatter | Collective::Allgather | Collective::Alltoall => {
                let blocks = memory.send.chunks_mut((self.bytes as usize).max(1));
                blocks.zip(0..).for_each(|(bytes, to)| fill(bytes, block(rank, to)));
            }
            _ => words(&mut memory.send, rank.wrapping_add(1), 0),
        }
    }

    /// Does the rank's memory hold the right result?
    pub(crate) fn right(&self, rank: Rank, Memory { receive, .. }: &Memory) -> bool {
        let sums = |ranks: u32, first: usize| {
            let mut wanted = vec![0; receive.len()];
            // 1 + 2 + … + ranks.
            words(&mut wanted, (u64::from(ranks) * (u64::from(ranks) + 1) / 2) as u32, first);
            *receive == wanted
        };
        match self.collective {
            Collective::Barrier => true,
            Collective::Exscan if rank == 0 => holds(receive, JUNK),
            Collective::Bcast => holds(receive, block(self.root, 0)),
            Collective::Scatter => holds(receive, block(self.root, rank)),
            Collective::Gather | Collective::Allgather | Collective::Alltoall => {
                let to = if self.collective == Collective::Alltoall { rank } else { 0 };
                receive.chunks((self.bytes as usize).max(1)).zip(0..).all(|(bytes, from)| holds(bytes, block(from, to)))
            }
            Collective::Reduce | Collective::Allreduce => sums(self.ranks, 0),
            Collective::ReduceScatter => sums(self.ranks, rank as usize * receive.len() / ELEMENT),
            Collective::Scan => sums(rank + 1, 0),
            Collective::Exscan => sums(rank, 0),
            // Not simulated.
            _ => false,
        }
    }
}

/// Seed of the data that goes from one rank to another.
const fn block(from: Rank, to: Rank) -> u64 {
    from as u64 * 65_537 + to as u64
}

/// Fills bytes with elements: `factor` times a number that depends on the place, counted from element `first`.
fn words(bytes: &mut [u8], factor: u32, first: usize) {
    let elements = bytes.as_chunks_mut().0.iter_mut().zip(first..);
    elements.for_each(|(word, at)| *word = factor.wrapping_mul((at % 1009 + 1) as u32).to_ne_bytes());
}
