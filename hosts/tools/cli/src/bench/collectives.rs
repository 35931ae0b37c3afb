//! The collectives with a send and a receive buffer ("two sides"): what a rank's buffers hold before a call, and what
//! they must hold after it. One piece of memory has both: first the send buffer, then the receive buffer.
//!
//! Bytes are those of docs/reference/measures.md: one block of gather(v), scatter(v), allgather(v) and alltoall(v, w),
//! or the mean of unequal ones; else the whole vector of one rank, which a reduce_scatter cuts into blocks of one
//! element at least.

use super::buffers::{fill, holds};
use super::shape::Shape;
use crate::args::{Blocks, Collective};
use unisono_kernel::Rank;
use unisono_kernel::algorithm::{AlltoallAlgorithm, ReduceAlgorithm, ReduceScatterAlgorithm, ScanAlgorithm};

/// A collective with a send and a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sides {
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall(AlltoallAlgorithm),
    Alltoallv,
    Alltoallw,
    Reduce(ReduceAlgorithm),
    ReduceScatter(ReduceScatterAlgorithm),
    ReduceScatterBlock(ReduceScatterAlgorithm),
    Scan(ScanAlgorithm),
    Exscan(ScanAlgorithm),
}

/// Seed of what receive buffers hold before a call.
const JUNK: u64 = 1_000_003;
/// Bytes of a double.
const DOUBLE: u64 = 8;

impl Sides {
    /// The collective, if it has a send and a receive buffer.
    pub(crate) const fn of(collective: Collective) -> Option<Self> {
        Some(match collective {
            Collective::Bcast
            | Collective::Barrier
            | Collective::Allreduce
            | Collective::Overlap
            | Collective::Comm => return None,
            Collective::Gather => Self::Gather,
            Collective::Gatherv => Self::Gatherv,
            Collective::Scatter => Self::Scatter,
            Collective::Scatterv => Self::Scatterv,
            Collective::Allgather => Self::Allgather,
            Collective::Allgatherv => Self::Allgatherv,
            Collective::Alltoall => Self::Alltoall(AlltoallAlgorithm::Auto),
            Collective::Alltoallv => Self::Alltoallv,
            Collective::Alltoallw => Self::Alltoallw,
            Collective::Reduce => Self::Reduce(ReduceAlgorithm::Auto),
            Collective::ReduceScatter => Self::ReduceScatter(ReduceScatterAlgorithm::Auto),
            Collective::ReduceScatterBlock => Self::ReduceScatterBlock(ReduceScatterAlgorithm::Auto),
            Collective::Scan => Self::Scan(ScanAlgorithm::Auto),
            Collective::Exscan => Self::Exscan(ScanAlgorithm::Auto),
        })
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::Gatherv => "gatherv",
            Self::Scatter => "scatter",
            Self::Scatterv => "scatterv",
            Self::Allgather => "allgather",
            Self::Allgatherv => "allgatherv",
            Self::Alltoall(_) => "alltoall",
            Self::Alltoallv => "alltoallv",
            Self::Alltoallw => "alltoallw",
            Self::Reduce(_) => "reduce",
            Self::ReduceScatter(_) => "reduce_scatter",
            Self::ReduceScatterBlock(_) => "reduce_scatter_block",
            Self::Scan(_) => "scan",
            Self::Exscan(_) => "exscan",
        }
    }

    /// Is there a root?
    pub(crate) const fn rooted(self) -> bool {
        matches!(self, Self::Gather | Self::Gatherv | Self::Scatter | Self::Scatterv | Self::Reduce(_))
    }

    /// Does it only move bytes (and reduce nothing)?
    pub(crate) const fn moves(self) -> bool {
        !matches!(
            self,
            Self::Reduce(_) | Self::ReduceScatter(_) | Self::ReduceScatterBlock(_) | Self::Scan(_) | Self::Exscan(_)
        )
    }

    /// May its blocks be unequal?
    pub(crate) const fn varies(self) -> bool {
        self.to_each_other_varies()
            || matches!(self, Self::Gatherv | Self::Scatterv | Self::Allgatherv | Self::ReduceScatter(_))
    }

    /// Does each rank have a block of its own length for each other rank?
    const fn to_each_other_varies(self) -> bool {
        matches!(self, Self::Alltoallv | Self::Alltoallw)
    }

    /// The blocks of `rank` among `ranks`, where the command line says `bytes`.
    pub(crate) fn shape(self, blocks: Blocks, bytes: u64, rank: Rank, ranks: u32) -> Shape {
        let (unit, block) = if matches!(self, Self::ReduceScatter(_) | Self::ReduceScatterBlock(_)) {
            let elements = bytes / DOUBLE / u64::from(ranks.max(1));
            (DOUBLE, DOUBLE * if bytes > 0 { elements.max(1) } else { 0 })
        } else {
            (1, bytes)
        };
        match blocks {
            Blocks::Equal => Shape::equal(block, rank, ranks),
            Blocks::Unequal => {
                let first = if self.to_each_other_varies() { rank } else { 0 };
                Shape::unequal(block, unit, first, rank, ranks)
            }
        }
    }

    /// Bytes that a rank sends and receives, where its own block has `own` bytes, and all blocks together have `all`.
    const fn lengths(self, own: usize, all: usize) -> (usize, usize) {
        match self {
            Self::Gather | Self::Gatherv | Self::Allgather | Self::Allgatherv => (own, all),
            Self::Scatter | Self::Scatterv | Self::ReduceScatter(_) | Self::ReduceScatterBlock(_) => (all, own),
            Self::Alltoall(_) | Self::Alltoallv | Self::Alltoallw => (all, all),
            Self::Reduce(_) | Self::Scan(_) | Self::Exscan(_) => (own, own),
        }
    }

    /// Bytes of memory for both buffers, the same on all ranks.
    pub(crate) const fn room(self, shape: &Shape) -> u64 {
        let (send, receive) = self.lengths(shape.most, shape.all);
        (send.next_multiple_of(64) + receive) as u64
    }

    /// The send and the receive buffer in `buffer`; nothing where it is shorter than [`Self::room`].
    #[inline]
    pub(super) fn split<'b>(self, buffer: &'b mut [u8], shape: &Shape) -> Option<(&'b mut [u8], &'b mut [u8])> {
        let (send, receive) = self.lengths(shape.own, shape.all);
        let (from, to) = buffer.split_at_mut_checked(send.next_multiple_of(64))?;
        Some((from.get_mut(..send)?, to.get_mut(..receive)?))
    }

    /// Fills the send buffer with this rank's data, and the receive buffer with junk.
    pub(crate) fn prepare(self, buffer: &mut [u8], shape: &Shape, rank: Rank) {
        let Some((send, receive)) = self.split(buffer, shape) else { return };
        fill(receive, JUNK);
        match self {
            Self::Gather | Self::Gatherv | Self::Allgather | Self::Allgatherv => fill(send, seed(rank, 0)),
            _ if self.moves() => shape.parts(send).zip(0..).for_each(|(block, to)| fill(block, seed(rank, to))),
            _ => double(send, |at| operand(rank, at)),
        }
    }

    /// Does a buffer that was prepared hold the right result after the operation?
    pub(crate) fn right(self, buffer: &mut [u8], shape: &Shape, rank: Rank, ranks: u32, root: Rank) -> bool {
        let Some((_, receive)) = self.split(buffer, shape) else { return false };
        let sums = |receive: &mut [u8], folded: u32, first: usize| {
            let mut wanted = vec![0; receive.len()];
            double(&mut wanted, |at| (0..folded).map(|rank| operand(rank, first + at)).sum());
            receive == wanted
        };
        let from_each = |receive, to| shape.parts(receive).zip(0..).all(|(block, from)| holds(block, seed(from, to)));
        match self {
            Self::Gather | Self::Gatherv | Self::Reduce(_) if rank != root => holds(receive, JUNK),
            Self::Exscan(_) if rank == 0 => holds(receive, JUNK),
            Self::Scatter | Self::Scatterv => holds(receive, seed(root, rank)),
            Self::Gather | Self::Gatherv | Self::Allgather | Self::Allgatherv => from_each(receive, 0),
            Self::Alltoall(_) | Self::Alltoallv | Self::Alltoallw => from_each(receive, rank),
            Self::Reduce(_) => sums(receive, ranks, 0),
            Self::ReduceScatter(_) | Self::ReduceScatterBlock(_) => {
                sums(receive, ranks, shape.begin(rank) / DOUBLE as usize)
            }
            Self::Scan(_) => sums(receive, rank + 1, 0),
            Self::Exscan(_) => sums(receive, rank, 0),
        }
    }
}

/// Seed of the data that goes from one rank to another.
const fn seed(from: Rank, to: Rank) -> u64 {
    from as u64 * 65_537 + to as u64
}

/// Element `at` of a rank's operand: a whole number, so that sums are exact.
fn operand(rank: Rank, at: usize) -> f64 {
    f64::from(rank + 1) * (at % 1009 + 1) as f64
}

/// Fills bytes with doubles.
fn double(bytes: &mut [u8], value: impl Fn(usize) -> f64) {
    bytes.as_chunks_mut().0.iter_mut().enumerate().for_each(|(at, to)| *to = value(at).to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer that was prepared and not used in a call is found wrong, and so is one with a single wrong byte.
    #[test]
    fn what_did_not_arrive_is_wrong() {
        for sides in [
            Sides::Gatherv,
            Sides::Scatterv,
            Sides::Allgatherv,
            Sides::Alltoallv,
            Sides::Alltoallw,
            Sides::ReduceScatter(ReduceScatterAlgorithm::Auto),
            Sides::ReduceScatterBlock(ReduceScatterAlgorithm::Auto),
        ] {
            let blocks = if sides.varies() { Blocks::Unequal } else { Blocks::Equal };
            let shape = sides.shape(blocks, 240, 1, 3);
            let mut buffer = vec![0; sides.room(&shape) as usize];
            sides.prepare(&mut buffer, &shape, 1);
            assert!(!sides.right(&mut buffer, &shape, 1, 3, 1), "{sides:?}");
            let (_, receive) = sides.split(&mut buffer, &shape).expect("room for both");
            match sides {
                Sides::Scatterv => fill(receive, seed(1, 1)),
                _ if !sides.moves() => double(receive, |at| 6.0 * operand(0, shape.begin(1) / 8 + at)),
                Sides::Gatherv | Sides::Allgatherv => {
                    shape.parts(receive).zip(0..).for_each(|(block, from)| fill(block, seed(from, 0)));
                }
                _ => shape.parts(receive).zip(0..).for_each(|(block, from)| fill(block, seed(from, 1))),
            }
            assert!(sides.right(&mut buffer, &shape, 1, 3, 1), "{sides:?}");
            let (_, receive) = sides.split(&mut buffer, &shape).expect("room for both");
            if let Some(byte) = receive.last_mut() {
                *byte ^= 1;
            }
            assert!(!sides.right(&mut buffer, &shape, 1, 3, 1), "{sides:?}");
        }
    }
}
