//! A collective call as plain data: which one, its buffers, root, operation and algorithm.
//!
//! One description serves all forms: [`Communicator::run`] blocks, [`Scope::start`](crate::request::Scope::start) does
//! not, [`Scope::init`](crate::request::Scope::init) prepares what is started again and again.
//!
//! A side that MPI calls not significant is `None`, and so is a send side in place, as in the blocking calls.

use crate::Rank;
use crate::blocks::{Blocks, longest};
use crate::comm::{Comm, Member};
use crate::datatype::Data;
use crate::driver::Communicator;
use crate::error::{Error, Refusal};
use crate::op::Op;
use crate::select::{AllreduceAlgorithm, Any, Barrier, BarrierAlgorithm, Bcast, BcastAlgorithm, MoveAlgorithm};
use crate::shm::alltoall::exchange::Alltoall;
use crate::shm::gather::exchange::Gather;
use crate::shm::reduce::exchange::Reduce;
use crate::shm::reduce_scatter::exchange::ReduceScatter;
use crate::shm::scatter::exchange::Scatter;
use crate::shm::{allgather, gather, scatter};
use crate::table::Collective;
use crate::transport::{Transport, Wait};

/// A call of any collective by any algorithm.
#[derive(Clone, Copy, Debug)]
pub enum Call<'buf> {
    /// [`Communicator::barrier_with`] (MPI 4.1, 7.3).
    Barrier {
        /// How.
        algorithm: BarrierAlgorithm,
    },
    /// [`Communicator::bcast_with`] (MPI 4.1, 7.4).
    Bcast {
        /// What the root sends and the others receive.
        data: Data<'buf>,
        /// Who sends.
        root: Rank,
        /// How.
        algorithm: BcastAlgorithm,
    },
    /// [`Communicator::gather_with`] (MPI 4.1, 7.5).
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
    /// [`Communicator::gatherv_with`] (MPI 4.1, 7.5).
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
    /// [`Communicator::scatter_with`] (MPI 4.1, 7.6).
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
    /// [`Communicator::scatterv_with`] (MPI 4.1, 7.6).
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
    /// [`Communicator::allgather_with`], of equal blocks or not (MPI 4.1, 7.7).
    Allgather {
        /// This process's block.
        send: Option<Data<'buf>>,
        /// Everyone's.
        receive: Blocks<'buf>,
        /// How.
        algorithm: MoveAlgorithm,
    },
    /// [`Communicator::alltoall`] (MPI 4.1, 7.8).
    Alltoall {
        /// A block for each.
        send: Option<Blocks<'buf>>,
        /// A block from each.
        receive: Blocks<'buf>,
    },
    /// [`Communicator::alltoallv`], alltoallw too (MPI 4.1, 7.8).
    Alltoallv {
        /// A block for each.
        send: Option<Blocks<'buf>>,
        /// A block from each.
        receive: Blocks<'buf>,
    },
    /// [`Communicator::reduce`] (MPI 4.1, 7.9.1).
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
    /// [`Communicator::allreduce_with`] (MPI 4.1, 7.9.6).
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
    /// [`Communicator::reduce_scatter`], in equal blocks or not (MPI 4.1, 7.10).
    ReduceScatter {
        /// An operand for each.
        send: Blocks<'buf>,
        /// This process's result.
        receive: Data<'buf>,
        /// What folds.
        op: Op,
    },
    /// [`Communicator::scan`] (MPI 4.1, 7.11.1).
    Scan {
        /// This process's operand.
        send: Data<'buf>,
        /// The result.
        receive: Data<'buf>,
        /// What folds.
        op: Op,
    },
    /// [`Communicator::exscan`] (MPI 4.1, 7.11.2).
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

    /// Its machine: the next operation of `me`.
    ///
    /// # Errors
    /// An argument is refused, as by the blocking call. No number is taken then.
    pub fn make(&self, me: &mut Member) -> Result<Any<'buf>, Refusal> {
        use MoveAlgorithm::Cico;
        Ok(match *self {
            Self::Barrier { algorithm } => Barrier::new(me, algorithm)?.into(),
            Self::Bcast { data, root, algorithm } => Bcast::new(me, data, root, algorithm)?.into(),
            Self::Gather { send, receive, root, algorithm }
                if me.chooser().move_by(algorithm, Collective::Gather, || longest(send, receive)) == Cico =>
            {
                gather::cico::Cico::new(me, send, receive, root)?.into()
            }
            Self::Gatherv { send, receive, root, algorithm }
                if me.chooser().move_by(algorithm, Collective::Gatherv, || 0) == Cico =>
            {
                gather::cico::Cico::new(me, send, receive, root)?.into()
            }
            Self::Gather { send, receive, root, .. } => Gather::equal(me, send, receive, root)?.into(),
            Self::Gatherv { send, receive, root, .. } => Gather::vary(me, send, receive, root)?.into(),
            Self::Scatter { send, receive, root, algorithm }
                if me.chooser().move_by(algorithm, Collective::Scatter, || longest(receive, send)) == Cico =>
            {
                scatter::cico::Cico::new(me, send, receive, root)?.into()
            }
            Self::Scatterv { send, receive, root, algorithm }
                if me.chooser().move_by(algorithm, Collective::Scatterv, || 0) == Cico =>
            {
                scatter::cico::Cico::new(me, send, receive, root)?.into()
            }
            Self::Scatter { send, receive, root, .. } => Scatter::equal(me, send, receive, root)?.into(),
            Self::Scatterv { send, receive, root, .. } => Scatter::vary(me, send, receive, root)?.into(),
            Self::Allgather { send, receive, algorithm }
                if me.chooser().move_by(algorithm, Collective::Allgather, || receive.most()) == Cico =>
            {
                allgather::cico::Cico::new(me, send, receive)?.into()
            }
            Self::Allgather { send, receive, .. } => allgather::exchange::allgather(me, send, receive)?.into(),
            Self::Alltoall { send, receive } => Alltoall::equal(me, send, receive)?.into(),
            Self::Alltoallv { send, receive } => Alltoall::vary(me, send, receive)?.into(),
            Self::Reduce { send, receive, op, root } => Reduce::to_root(me, send, receive, op, root)?.into(),
            Self::Allreduce { send, receive, op, algorithm } => Any::allreduce(me, send, receive, op, algorithm)?,
            Self::ReduceScatter { send, receive, op } => ReduceScatter::new(me, send, receive, op)?.into(),
            Self::Scan { send, receive, op } => Reduce::scan(me, send, receive, op)?.into(),
            Self::Exscan { send, receive, op } => Reduce::exscan(me, send, receive, op)?.into(),
        })
    }
}

impl<T: Transport> Communicator<T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// The blocking call. [`Self::run_among`] moves operations of other communicators meanwhile.
    ///
    /// # Errors
    /// As the method that each variant of [`Call`] names.
    pub fn run(&mut self, call: &Call<'_>) -> Result<(), Error> {
        match *call {
            Call::Barrier { algorithm } => self.barrier_with(algorithm),
            Call::Bcast { data, root, algorithm } => self.bcast_with(data, root, algorithm),
            Call::Gather { send, receive, root, algorithm } => self.gather_with(send, receive, root, algorithm),
            Call::Gatherv { send, receive, root, algorithm } => self.gatherv_with(send, receive, root, algorithm),
            Call::Scatter { send, receive, root, algorithm } => self.scatter_with(send, receive, root, algorithm),
            Call::Scatterv { send, receive, root, algorithm } => self.scatterv_with(send, receive, root, algorithm),
            Call::Allgather { send, receive, algorithm } => self.allgather_with(send, receive, algorithm),
            Call::Alltoall { send, receive } => self.alltoall(send, receive),
            Call::Alltoallv { send, receive } => self.alltoallv(send, receive),
            Call::Reduce { send, receive, op, root } => self.reduce(send, receive, op, root),
            Call::Allreduce { send, receive, op, algorithm } => self.allreduce_with(send, receive, op, algorithm),
            Call::ReduceScatter { send, receive, op } => self.reduce_scatter(send, receive, op),
            Call::Scan { send, receive, op } => self.scan(send, receive, op),
            Call::Exscan { send, receive, op } => self.exscan(send, receive, op),
        }
    }
}
