//! A collective call as plain data: which one, its buffers, root, operation and algorithm.
//!
//! One description serves all forms: [`Communicator::run`](crate::comm::Communicator::run) blocks,
//! [`Scope::start`](scope::Scope::start) does not, [`Scope::init`](scope::Scope::init) prepares what is started again and
//! again.
//!
//! | file | what |
//! |---|---|
//! | `visit` | from a call to the machine that runs it |
//! | `any` | machines of any type in one |
//! | `blocking` | calls that return when they are complete |
//! | `in_flight` | operations that were started and are not complete, in their order |
//! | `scope` | nonblocking and persistent calls |
//! | `progress` | moving one operation, and those of other communicators while waiting |
//!
//! A side that MPI calls not significant is `None`, and so is a send side in place.

pub mod any;
mod blocking;
pub mod in_flight;
pub mod progress;
pub mod scope;
pub mod visit;

use crate::Rank;
use crate::algorithm::{AllreduceAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm};
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::op::Op;

/// A call of any collective by any algorithm.
#[derive(Clone, Copy, Debug)]
pub enum Call<'buf> {
    /// Waits until everyone has entered. What anyone did before happens before what anyone does after (MPI 4.1, 7.3).
    Barrier {
        /// How.
        algorithm: BarrierAlgorithm,
    },
    /// Broadcasts `data` from `root` to everyone. Types may differ between ranks, packed bytes must not (MPI 4.1, 7.4).
    Bcast {
        /// What the root sends and the others receive.
        data: Data<'buf>,
        /// Who sends.
        root: Rank,
        /// How.
        algorithm: BcastAlgorithm,
    },
    /// Everyone's `send` goes to its block of the root's `receive`. All blocks have one length (MPI 4.1, 7.5).
    Gather {
        /// This process's block.
        send: Option<Data<'buf>>,
        /// Everyone's, at the root.
        receive: Option<Blocks<'buf>>,
        /// Who receives.
        root: Rank,
        /// How.
        algorithm: MoveAlgorithm,
    },
    /// [`Self::Gather`] of blocks whose lengths only the root knows all of (MPI 4.1, 7.5).
    Gatherv {
        /// This process's block.
        send: Option<Data<'buf>>,
        /// Everyone's, at the root.
        receive: Option<Blocks<'buf>>,
        /// Who receives.
        root: Rank,
        /// How.
        algorithm: MoveAlgorithm,
    },
    /// Each block of the root's `send` goes to its rank's `receive`. All blocks have one length (MPI 4.1, 7.6).
    Scatter {
        /// Everyone's blocks, at the root.
        send: Option<Blocks<'buf>>,
        /// This process's.
        receive: Option<Data<'buf>>,
        /// Who sends.
        root: Rank,
        /// How.
        algorithm: MoveAlgorithm,
    },
    /// [`Self::Scatter`] of blocks whose lengths only the root knows all of (MPI 4.1, 7.6).
    Scatterv {
        /// Everyone's blocks, at the root.
        send: Option<Blocks<'buf>>,
        /// This process's.
        receive: Option<Data<'buf>>,
        /// Who sends.
        root: Rank,
        /// How.
        algorithm: MoveAlgorithm,
    },
    /// Everyone's `send` goes to its block of everyone's `receive`. All know all lengths, equal or not (MPI 4.1, 7.7).
    Allgather {
        /// This process's block.
        send: Option<Data<'buf>>,
        /// Everyone's.
        receive: Blocks<'buf>,
        /// How.
        algorithm: MoveAlgorithm,
    },
    /// Block r of everyone's `send` goes to rank r's `receive`. All blocks of all ranks have one length (MPI 4.1, 7.8).
    Alltoall {
        /// A block for each.
        send: Option<Blocks<'buf>>,
        /// A block from each.
        receive: Blocks<'buf>,
    },
    /// [`Self::Alltoall`] of blocks whose lengths only sender and receiver know; alltoallw, too (MPI 4.1, 7.8).
    Alltoallv {
        /// A block for each.
        send: Option<Blocks<'buf>>,
        /// A block from each.
        receive: Blocks<'buf>,
    },
    /// The fold of everyone's `send` with `op`, in rank order, goes to the root's `receive`. In place at the root: the
    /// same data twice (MPI 4.1, 7.9.1).
    Reduce {
        /// This process's operand.
        send: Data<'buf>,
        /// The result, at the root.
        receive: Option<Data<'buf>>,
        /// What folds.
        op: Op,
        /// Who receives.
        root: Rank,
    },
    /// The fold of everyone's `send` with `op`, in rank order, goes to everyone's `receive`: the same bits on all ranks.
    /// In place: the same data twice (MPI 4.1, 7.9.6).
    Allreduce {
        /// This process's operand.
        send: Data<'buf>,
        /// The result.
        receive: Data<'buf>,
        /// What folds.
        op: Op,
        /// How.
        algorithm: AllreduceAlgorithm,
    },
    /// The fold of everyone's block r goes to rank r's `receive`. All know all lengths, equal or not. In place: `receive`
    /// lies where the blocks begin (MPI 4.1, 7.10).
    ReduceScatter {
        /// An operand for each.
        send: Blocks<'buf>,
        /// This process's result.
        receive: Data<'buf>,
        /// What folds.
        op: Op,
    },
    /// The fold of the `send` of ranks 0 … r goes to rank r's `receive`. In place: the same data twice (MPI 4.1, 7.11.1).
    Scan {
        /// This process's operand.
        send: Data<'buf>,
        /// The result.
        receive: Data<'buf>,
        /// What folds.
        op: Op,
    },
    /// The fold of the `send` of the ranks below r goes to rank r's `receive`; rank 0's is left alone. In place: the same
    /// data twice (MPI 4.1, 7.11.2).
    Exscan {
        /// This process's operand.
        send: Data<'buf>,
        /// The result; rank 0's is left alone.
        receive: Data<'buf>,
        /// What folds.
        op: Op,
    },
}

impl<'buf> Call<'buf> {
    /// An allreduce of bytes, by the default algorithm.
    pub const fn allreduce(send: &'buf [u8], receive: &'buf mut [u8], op: Op) -> Self {
        let (send, receive) = (Data::bytes(send), Data::bytes_mut(receive));
        Self::Allreduce { send, receive, op, algorithm: AllreduceAlgorithm::Auto }
    }
}
