//! A collective call as plain data: the collective, its buffers, root, op and algorithm.
//!
//! All forms take the same description: [`Communicator::run`](crate::comm::Communicator::run) is the blocking call,
//! [`Scope::start`](scope::Scope::start) the nonblocking one, [`Scope::init`](scope::Scope::init) the persistent one.
//!
//! | file | what |
//! |---|---|
//! | `visit` | from a call to the machine that runs it |
//! | `any` | one type for the machines of all calls |
//! | `blocking` | calls that return when they are complete |
//! | `in_flight` | operations that were started and are not complete, in the order of their starts |
//! | `scope` | nonblocking and persistent calls |
//! | `progress` | moves one operation, and those of other communicators while it waits |
//!
//! A buffer that MPI calls not significant is `None`, and so is a send buffer in place.

pub mod any;
mod blocking;
pub mod in_flight;
pub mod progress;
pub mod scope;
pub mod visit;

use crate::Rank;
use crate::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm, ReduceAlgorithm,
    ReduceScatterAlgorithm, ScanAlgorithm,
};
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::op::Op;

/// A call of any collective by any algorithm.
#[derive(Clone, Copy, Debug)]
pub enum Call<'buf> {
    /// Waits until all ranks have called it. What any rank did before happens before what any rank does after (MPI 4.1,
    /// 7.3).
    Barrier {
        /// The algorithm.
        algorithm: BarrierAlgorithm,
    },
    /// Broadcasts `data` from `root` to all ranks. Datatypes may differ between ranks, packed bytes must not (MPI 4.1,
    /// 7.4).
    Bcast {
        /// What the root sends and the others receive.
        data: Data<'buf>,
        /// The rank that sends.
        root: Rank,
        /// The algorithm.
        algorithm: BcastAlgorithm,
    },
    /// Each rank's `send` goes to its block of the root's `receive`. All blocks have one length (MPI 4.1, 7.5).
    Gather {
        /// This process's block.
        send: Option<Data<'buf>>,
        /// A block from each rank; significant at the root.
        receive: Option<Blocks<'buf>>,
        /// The rank that receives.
        root: Rank,
        /// The algorithm.
        algorithm: MoveAlgorithm,
    },
    /// [`Self::Gather`] of blocks of different lengths; only the root knows all of them (MPI 4.1, 7.5).
    Gatherv {
        /// This process's block.
        send: Option<Data<'buf>>,
        /// A block from each rank; significant at the root.
        receive: Option<Blocks<'buf>>,
        /// The rank that receives.
        root: Rank,
        /// The algorithm.
        algorithm: MoveAlgorithm,
    },
    /// Each block of the root's `send` goes to its rank's `receive`. All blocks have one length (MPI 4.1, 7.6).
    Scatter {
        /// A block for each rank; significant at the root.
        send: Option<Blocks<'buf>>,
        /// This process's block.
        receive: Option<Data<'buf>>,
        /// The rank that sends.
        root: Rank,
        /// The algorithm.
        algorithm: MoveAlgorithm,
    },
    /// [`Self::Scatter`] of blocks of different lengths; only the root knows all of them (MPI 4.1, 7.6).
    Scatterv {
        /// A block for each rank; significant at the root.
        send: Option<Blocks<'buf>>,
        /// This process's block.
        receive: Option<Data<'buf>>,
        /// The rank that sends.
        root: Rank,
        /// The algorithm.
        algorithm: MoveAlgorithm,
    },
    /// Each rank's `send` goes to its block of every rank's `receive`. All ranks know all lengths, equal or not (MPI
    /// 4.1, 7.7).
    Allgather {
        /// This process's block.
        send: Option<Data<'buf>>,
        /// A block from each rank.
        receive: Blocks<'buf>,
        /// The algorithm.
        algorithm: MoveAlgorithm,
    },
    /// Block r of each rank's `send` goes to rank r's `receive`. All blocks of all ranks have one length (MPI 4.1,
    /// 7.8).
    Alltoall {
        /// A block for each rank.
        send: Option<Blocks<'buf>>,
        /// A block from each rank.
        receive: Blocks<'buf>,
        /// The algorithm.
        algorithm: AlltoallAlgorithm,
    },
    /// [`Self::Alltoall`] of blocks of different lengths; only a block's sender and receiver know its length.
    /// Alltoallw, too (MPI 4.1, 7.8).
    Alltoallv {
        /// A block for each rank.
        send: Option<Blocks<'buf>>,
        /// A block from each rank.
        receive: Blocks<'buf>,
    },
    /// The fold of all ranks' `send` with `op`, in rank order, goes to the root's `receive`. In place at the root:
    /// `send` and `receive` are the same data (MPI 4.1, 7.9.1).
    Reduce {
        /// This process's operand.
        send: Data<'buf>,
        /// The result; significant at the root.
        receive: Option<Data<'buf>>,
        /// The op.
        op: Op,
        /// The rank that receives.
        root: Rank,
        /// The algorithm.
        algorithm: ReduceAlgorithm,
    },
    /// The fold of all ranks' `send` with `op`, in rank order, goes to every rank's `receive`: the same bits on all
    /// ranks. In place: `send` and `receive` are the same data (MPI 4.1, 7.9.6).
    Allreduce {
        /// This process's operand.
        send: Data<'buf>,
        /// The result.
        receive: Data<'buf>,
        /// The op.
        op: Op,
        /// The algorithm.
        algorithm: AllreduceAlgorithm,
    },
    /// The fold of all ranks' block r goes to rank r's `receive`. All ranks know all lengths, equal or not. In place:
    /// `receive` is at the address of the first block (MPI 4.1, 7.10).
    ReduceScatter {
        /// An operand for each rank.
        send: Blocks<'buf>,
        /// This process's result.
        receive: Data<'buf>,
        /// The op.
        op: Op,
        /// The algorithm.
        algorithm: ReduceScatterAlgorithm,
    },
    /// The fold of the `send` of ranks 0 … r goes to rank r's `receive`. In place: `send` and `receive` are the same
    /// data (MPI 4.1, 7.11.1).
    Scan {
        /// This process's operand.
        send: Data<'buf>,
        /// The result.
        receive: Data<'buf>,
        /// The op.
        op: Op,
        /// The algorithm.
        algorithm: ScanAlgorithm,
    },
    /// The fold of the `send` of the ranks below r goes to rank r's `receive`; rank 0's is not written. In place:
    /// `send` and `receive` are the same data (MPI 4.1, 7.11.2).
    Exscan {
        /// This process's operand.
        send: Data<'buf>,
        /// The result; rank 0's is not written.
        receive: Data<'buf>,
        /// The op.
        op: Op,
        /// The algorithm.
        algorithm: ScanAlgorithm,
    },
}

impl<'buf> Call<'buf> {
    /// An allreduce of bytes, by the default algorithm.
    pub const fn allreduce(send: &'buf [u8], receive: &'buf mut [u8], op: Op) -> Self {
        let (send, receive) = (Data::bytes(send), Data::bytes_mut(receive));
        Self::Allreduce { send, receive, op, algorithm: AllreduceAlgorithm::Auto }
    }
}
