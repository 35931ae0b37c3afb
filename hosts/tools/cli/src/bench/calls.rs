//! Each collective with a send and a receive buffer as a call. A buffer that is not significant at a rank is left out.

use super::collectives::Sides;
use super::shape::Shape;
use unisono_kernel::Rank;
use unisono_kernel::algorithm::MoveAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::{Argument, Bound, Error, Refusal};
use unisono_kernel::op::Op;
use unisono_posix::Posix;

/// What reductions fold with.
const OP: Op = Op::SUM_F64;

impl Sides {
    /// One operation on a buffer of [`Self::room`] bytes, as in a program that knows the collective when it is
    /// compiled. (A `Call` that is built elsewhere and passed here would go through memory.)
    ///
    /// # Errors
    /// The buffer is shorter; the call's.
    #[inline]
    pub(crate) fn run(
        self,
        comm: &mut Communicator<Posix>,
        algorithm: MoveAlgorithm,
        buffer: &mut [u8],
        shape: &Shape,
        root: Rank,
    ) -> Result<(), Error> {
        let (send, receive) = self.sides(buffer, shape)?;
        let at_root = comm.rank() == root;
        match self {
            Self::Gather => {
                let receive = if at_root { Some(shape.by_one(receive)?) } else { None };
                comm.run_inlined(&Call::Gather { send: Some(Data::bytes_mut(send)), receive, root, algorithm })
            }
            Self::Gatherv => {
                let receive = if at_root { Some(shape.by_rank(receive)?) } else { None };
                comm.run_inlined(&Call::Gatherv { send: Some(Data::bytes_mut(send)), receive, root, algorithm })
            }
            Self::Scatter => {
                let send = if at_root { Some(shape.by_one(send)?) } else { None };
                comm.run_inlined(&Call::Scatter { send, receive: Some(Data::bytes_mut(receive)), root, algorithm })
            }
            Self::Scatterv => {
                let send = if at_root { Some(shape.by_rank(send)?) } else { None };
                comm.run_inlined(&Call::Scatterv { send, receive: Some(Data::bytes_mut(receive)), root, algorithm })
            }
            Self::Allgather => comm.run_inlined(&Call::Allgather {
                send: Some(Data::bytes_mut(send)),
                receive: shape.by_one(receive)?,
                algorithm,
            }),
            Self::Allgatherv => comm.run_inlined(&Call::Allgather {
                send: Some(Data::bytes_mut(send)),
                receive: shape.by_rank(receive)?,
                algorithm,
            }),
            Self::Alltoall(algorithm) => comm.run_inlined(&Call::Alltoall {
                send: Some(shape.by_one(send)?),
                receive: shape.by_one(receive)?,
                algorithm,
            }),
            Self::Alltoallv => comm
                .run_inlined(&Call::Alltoallv { send: Some(shape.by_rank(send)?), receive: shape.by_rank(receive)? }),
            Self::Alltoallw => comm
                .run_inlined(&Call::Alltoallv { send: Some(shape.by_type(send)?), receive: shape.by_type(receive)? }),
            Self::Reduce(algorithm) => {
                let receive = at_root.then_some(Data::bytes_mut(receive));
                comm.run_inlined(&Call::Reduce { send: Data::bytes_mut(send), receive, op: OP, root, algorithm })
            }
            Self::ReduceScatter(algorithm) => comm.run_inlined(&Call::ReduceScatter {
                send: shape.by_rank(send)?,
                receive: Data::bytes_mut(receive),
                op: OP,
                algorithm,
            }),
            Self::ReduceScatterBlock(algorithm) => comm.run_inlined(&Call::ReduceScatter {
                send: shape.by_one(send)?,
                receive: Data::bytes_mut(receive),
                op: OP,
                algorithm,
            }),
            Self::Scan(algorithm) => comm.run_inlined(&Call::Scan {
                send: Data::bytes_mut(send),
                receive: Data::bytes_mut(receive),
                op: OP,
                algorithm,
            }),
            Self::Exscan(algorithm) => comm.run_inlined(&Call::Exscan {
                send: Data::bytes_mut(send),
                receive: Data::bytes_mut(receive),
                op: OP,
                algorithm,
            }),
        }
        .map(drop)
    }

    /// The same operation as a `Call`.
    ///
    /// # Errors
    /// The buffer is shorter than [`Self::room`].
    pub(crate) fn describe<'b>(
        self,
        algorithm: MoveAlgorithm,
        rank: Rank,
        buffer: &'b mut [u8],
        shape: &'b Shape,
        root: Rank,
    ) -> Result<Call<'b>, Refusal> {
        let (send, receive) = self.sides(buffer, shape)?;
        let at_root = rank == root;
        Ok(match self {
            Self::Gather => {
                let receive = if at_root { Some(shape.by_one(receive)?) } else { None };
                Call::Gather { send: Some(Data::bytes_mut(send)), receive, root, algorithm }
            }
            Self::Gatherv => {
                let receive = if at_root { Some(shape.by_rank(receive)?) } else { None };
                Call::Gatherv { send: Some(Data::bytes_mut(send)), receive, root, algorithm }
            }
            Self::Scatter => {
                let send = if at_root { Some(shape.by_one(send)?) } else { None };
                Call::Scatter { send, receive: Some(Data::bytes_mut(receive)), root, algorithm }
            }
            Self::Scatterv => {
                let send = if at_root { Some(shape.by_rank(send)?) } else { None };
                Call::Scatterv { send, receive: Some(Data::bytes_mut(receive)), root, algorithm }
            }
            Self::Allgather => {
                Call::Allgather { send: Some(Data::bytes_mut(send)), receive: shape.by_one(receive)?, algorithm }
            }
            Self::Allgatherv => {
                Call::Allgather { send: Some(Data::bytes_mut(send)), receive: shape.by_rank(receive)?, algorithm }
            }
            Self::Alltoall(algorithm) => {
                Call::Alltoall { send: Some(shape.by_one(send)?), receive: shape.by_one(receive)?, algorithm }
            }
            Self::Alltoallv => Call::Alltoallv { send: Some(shape.by_rank(send)?), receive: shape.by_rank(receive)? },
            Self::Alltoallw => Call::Alltoallv { send: Some(shape.by_type(send)?), receive: shape.by_type(receive)? },
            Self::Reduce(algorithm) => {
                let receive = at_root.then_some(Data::bytes_mut(receive));
                Call::Reduce { send: Data::bytes_mut(send), receive, op: OP, root, algorithm }
            }
            Self::ReduceScatter(algorithm) => {
                Call::ReduceScatter { send: shape.by_rank(send)?, receive: Data::bytes_mut(receive), op: OP, algorithm }
            }
            Self::ReduceScatterBlock(algorithm) => {
                Call::ReduceScatter { send: shape.by_one(send)?, receive: Data::bytes_mut(receive), op: OP, algorithm }
            }
            Self::Scan(algorithm) => {
                Call::Scan { send: Data::bytes_mut(send), receive: Data::bytes_mut(receive), op: OP, algorithm }
            }
            Self::Exscan(algorithm) => {
                Call::Exscan { send: Data::bytes_mut(send), receive: Data::bytes_mut(receive), op: OP, algorithm }
            }
        })
    }

    fn sides<'b>(self, buffer: &'b mut [u8], shape: &Shape) -> Result<(&'b mut [u8], &'b mut [u8]), Refusal> {
        let short = Refusal::new(Argument::Bytes, buffer.len() as u64, Bound::AtLeast(self.room(shape)));
        self.split(buffer, shape).ok_or(short)
    }
}
