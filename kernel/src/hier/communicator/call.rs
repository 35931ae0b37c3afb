//! A call on a communicator over several nodes, as one value.

use crate::Rank;
use crate::data::buffer::Buf;
use crate::hier::Spans;
use crate::op::Op;

/// A caller's blocks, one for each rank.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The memory in which they lie.
    pub base: *mut u8,
    /// Where.
    pub blocks: Spans<'a>,
}

/// Bytes of each rank's block.
#[derive(Clone, Copy, Debug)]
pub enum Lengths<'a> {
    /// The same of all.
    Equal(u64),
    /// One for each rank.
    Each(&'a [u64]),
}

impl Lengths<'_> {
    /// Those of a rank's; 0 where there is none.
    pub(super) fn of(self, rank: Rank) -> u64 {
        match self {
            Self::Equal(block) => block,
            Self::Each(list) => list.get(rank as usize).copied().unwrap_or(0),
        }
    }
}

/// A collective call: the same on all ranks, with each rank's own buffers.
///
/// Who makes it run ([`Communicator::run`](super::Communicator::run), [`start`](super::Communicator::start)) promises this of its
/// buffers:
///
/// * What is sent is readable, what is received is writable, nothing else uses either during the call, and the two are apart
///   unless the call allows them to be the same. Lists of blocks do not change meanwhile.
/// * After an error, these buffers and the memory of [`Host::Scratch`](super::Host::Scratch) and
///   [`Host::Places`](super::Host::Places) stay where they are until the communicator is dropped: messages that were sent may still
///   be read there. A message layer may ask for more.
/// * A user's operation is as it promised.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// Waits until all ranks have come.
    Barrier,
    /// `buffer` goes from rank `root`, where it is sent, to everyone, where it is received.
    Bcast {
        /// The message.
        buffer: Buf,
        /// Who sends it.
        root: Rank,
    },
    /// The fold of everyone's `send` with `op`, in rank order, goes to the root's `receive`. In place at the root: the same buffer
    /// twice.
    Reduce {
        /// This rank's operand.
        send: Buf,
        /// The result; not used on other ranks.
        receive: Buf,
        /// How two operands are folded.
        op: Op,
        /// Who receives the result.
        root: Rank,
    },
    /// The same to everyone's `receive`: the same bits on all ranks.
    Allreduce {
        /// This rank's operand.
        send: Buf,
        /// The result. In place: the same buffer.
        receive: Buf,
        /// How two operands are folded.
        op: Op,
    },
    /// The fold of the `send` of ranks 0 to this one, in rank order, goes to `receive`.
    Scan {
        /// This rank's operand; `None` in place: it is in `receive`.
        send: Option<Buf>,
        /// The result, as long as the operand.
        receive: Buf,
        /// How two operands are folded.
        op: Op,
        /// Of the ranks below this one: rank 0's `receive` stays as it is.
        exclusive: bool,
    },
    /// Everyone's `send`, of `block` bytes, goes to everyone's `receive`.
    Allgather {
        /// This rank's block; `None` in place: it is in `receive`.
        send: Option<Buf>,
        /// A block for each rank, in a row.
        receive: *mut u8,
        /// Bytes of each block.
        block: u64,
    },
    /// The same with blocks of any lengths: of everyone's `send`, rank r's has `blocks.lengths[r]` bytes.
    Allgatherv {
        /// This rank's block; `None` in place.
        send: Option<Buf>,
        /// The blocks of all ranks.
        receive: Side<'a>,
    },
    /// Everyone's `send`, of `block` bytes, goes to the root's `receive`.
    Gather {
        /// This rank's block; `None` in place at the root.
        send: Option<Buf>,
        /// At the root, a block for each rank, in a row; not used on other ranks.
        receive: *mut u8,
        /// Bytes of each block.
        block: u64,
        /// Who receives.
        root: Rank,
    },
    /// The same with blocks of any lengths.
    Gatherv {
        /// This rank's block; `None` in place at the root.
        send: Option<Buf>,
        /// At the root, the blocks of all ranks; other ranks' lists are not read.
        receive: Side<'a>,
        /// Who receives.
        root: Rank,
    },
    /// Each rank's block, of `block` bytes, of the root's `send` goes to its `receive`.
    Scatter {
        /// At the root, a block for each rank, in a row; not used on other ranks.
        send: *mut u8,
        /// This rank's block; `None` in place at the root: it stays where it is.
        receive: Option<Buf>,
        /// Bytes of each block.
        block: u64,
        /// Who sends.
        root: Rank,
    },
    /// The same with blocks of any lengths.
    Scatterv {
        /// At the root, the blocks of all ranks; other ranks' lists are not read.
        send: Side<'a>,
        /// This rank's block; `None` in place at the root.
        receive: Option<Buf>,
        /// Who sends.
        root: Rank,
    },
    /// The fold of everyone's `send` with `op`, in rank order: block r of it goes to rank r's `receive`. The ranks of each node follow
    /// one another ([`Communicator::reduce_scatters`](super::Communicator::reduce_scatters)).
    ReduceScatter {
        /// This rank's operand: a block for each rank, in a row by rank.
        send: Buf,
        /// This rank's block of the result. It may lie in `send`.
        receive: Buf,
        /// Bytes of the blocks: whole elements.
        lengths: Lengths<'a>,
        /// How two operands are folded.
        op: Op,
    },
    /// Block r of everyone's `send` goes to rank r's `receive`. All blocks of all ranks have `block` bytes, and lie in a row.
    Alltoall {
        /// A block for each rank; `None` in place.
        send: Option<*mut u8>,
        /// A block for each rank.
        receive: *mut u8,
        /// Bytes of each block.
        block: u64,
    },
    /// The same with blocks of any lengths: as long at the sender as at the receiver.
    Alltoallv {
        /// The blocks for all ranks; `None` in place: two ranks send each other as much as they receive.
        send: Option<Side<'a>>,
        /// The blocks of all ranks; those from ranks of this node don't overlap.
        receive: Side<'a>,
    },
}
