//! Calls that return when they are complete on this process.
//!
//! Each collective has a method for the default algorithm; [`Communicator::run`] takes any [`Call`]. A buffer that MPI
//! calls not significant is `None`, and so is a send buffer in place. Lengths are packed bytes; datatypes may differ
//! between the sides.

use super::Call;
use super::any::Any;
use super::visit::Visit;
use crate::Rank;
use crate::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm, ReduceAlgorithm,
    ReduceScatterAlgorithm, ScanAlgorithm,
};
use crate::comm::{Comm, Communicator, Member};
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::{Error, Refusal};
use crate::machine::Operation;
use crate::machine::transport::{Transport, Wait};
use crate::op::Op;
use crate::table::Choice;

/// Runs the machine in the place where it was built.
struct Run<'c, T: Transport>(&'c mut Communicator<T>);

impl<'buf, T: Transport> Visit<'buf> for Run<'_, T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    type Output = Result<Choice, Error>;

    #[inline(always)]
    fn member(&self) -> &Member {
        self.0.comm().member()
    }

    #[inline(always)]
    fn visit<O: Operation + Into<Any<'buf>>>(self, ran: Choice, operation: Result<O, Refusal>) -> Self::Output {
        self.0.operate(operation).map(|()| ran)
    }
}

/// Blocking calls. Every call may return these errors: an argument was refused, on this or another rank; arguments
/// don't agree with another rank's (lengths, the collective itself); a process died, or was late where waits are
/// bounded. Each of them poisons the communicator.
impl<T: Transport> Communicator<T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// Runs a call until it is complete, and returns which algorithm ran.
    /// [`Self::run_among`](Communicator::run_among) moves operations of other communicators meanwhile.
    ///
    /// # Errors
    /// `root` is not a rank; the number of blocks is not that of ranks, or blocks overlap where they are received;
    /// lengths differ; operands have holes, or are not a whole number of elements; the named algorithm can't carry this
    /// length, or needs queues that the segment does not have; and as for all calls.
    pub fn run(&mut self, call: &Call<'_>) -> Result<Choice, Error> {
        self.run_inlined(call)
    }

    /// [`Self::run`] for a caller whose collective is known at compile time: only that one's machines are compiled in.
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn run_inlined(&mut self, call: &Call<'_>) -> Result<Choice, Error> {
        self.enter()?;
        call.visit(Run(self))
    }

    /// [`Call::Barrier`].
    ///
    /// # Errors
    /// As all calls.
    #[inline]
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.run_inlined(&Call::Barrier { algorithm: BarrierAlgorithm::Auto }).map(drop)
    }

    /// [`Call::Bcast`] of bytes.
    ///
    /// # Errors
    /// `root` is not a rank; and as all calls.
    #[inline]
    pub fn bcast(&mut self, bytes: &mut [u8], root: Rank) -> Result<(), Error> {
        let data = Data::bytes_mut(bytes);
        self.run_inlined(&Call::Bcast { data, root, algorithm: BcastAlgorithm::Auto }).map(drop)
    }

    /// [`Call::Gather`].
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn gather(&mut self, send: Option<Data<'_>>, receive: Option<Blocks<'_>>, root: Rank) -> Result<(), Error> {
        self.run_inlined(&Call::Gather { send, receive, root, algorithm: MoveAlgorithm::Auto }).map(drop)
    }

    /// [`Call::Gatherv`].
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn gatherv(&mut self, send: Option<Data<'_>>, receive: Option<Blocks<'_>>, root: Rank) -> Result<(), Error> {
        self.run_inlined(&Call::Gatherv { send, receive, root, algorithm: MoveAlgorithm::Auto }).map(drop)
    }

    /// [`Call::Scatter`].
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn scatter(&mut self, send: Option<Blocks<'_>>, receive: Option<Data<'_>>, root: Rank) -> Result<(), Error> {
        self.run_inlined(&Call::Scatter { send, receive, root, algorithm: MoveAlgorithm::Auto }).map(drop)
    }

    /// [`Call::Scatterv`].
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn scatterv(&mut self, send: Option<Blocks<'_>>, receive: Option<Data<'_>>, root: Rank) -> Result<(), Error> {
        self.run_inlined(&Call::Scatterv { send, receive, root, algorithm: MoveAlgorithm::Auto }).map(drop)
    }

    /// [`Call::Allgather`].
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn allgather(&mut self, send: Option<Data<'_>>, receive: Blocks<'_>) -> Result<(), Error> {
        self.run_inlined(&Call::Allgather { send, receive, algorithm: MoveAlgorithm::Auto }).map(drop)
    }

    /// [`Call::Alltoall`].
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn alltoall(&mut self, send: Option<Blocks<'_>>, receive: Blocks<'_>) -> Result<(), Error> {
        self.run_inlined(&Call::Alltoall { send, receive, algorithm: AlltoallAlgorithm::Auto }).map(drop)
    }

    /// [`Call::Alltoallv`].
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn alltoallv(&mut self, send: Option<Blocks<'_>>, receive: Blocks<'_>) -> Result<(), Error> {
        self.run_inlined(&Call::Alltoallv { send, receive }).map(drop)
    }

    /// [`Call::Reduce`].
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn reduce(&mut self, send: Data<'_>, receive: Option<Data<'_>>, op: Op, root: Rank) -> Result<(), Error> {
        self.run_inlined(&Call::Reduce { send, receive, op, root, algorithm: ReduceAlgorithm::Auto }).map(drop)
    }

    /// [`Call::Allreduce`] of bytes.
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn allreduce(&mut self, send: &[u8], receive: &mut [u8], op: Op) -> Result<(), Error> {
        self.run_inlined(&Call::allreduce(send, receive, op)).map(drop)
    }

    /// [`Self::allreduce`] in place.
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn allreduce_in_place(&mut self, data: &mut [u8], op: Op) -> Result<(), Error> {
        let data = Data::bytes_mut(data);
        let algorithm = AllreduceAlgorithm::Auto;
        self.run_inlined(&Call::Allreduce { send: data, receive: data, op, algorithm }).map(drop)
    }

    /// [`Call::ReduceScatter`].
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn reduce_scatter(&mut self, send: Blocks<'_>, receive: Data<'_>, op: Op) -> Result<(), Error> {
        self.run_inlined(&Call::ReduceScatter { send, receive, op, algorithm: ReduceScatterAlgorithm::Auto }).map(drop)
    }

    /// [`Call::Scan`].
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn scan(&mut self, send: Data<'_>, receive: Data<'_>, op: Op) -> Result<(), Error> {
        self.run_inlined(&Call::Scan { send, receive, op, algorithm: ScanAlgorithm::Auto }).map(drop)
    }

    /// [`Call::Exscan`].
    ///
    /// # Errors
    /// As [`Self::run`].
    #[inline(always)]
    pub fn exscan(&mut self, send: Data<'_>, receive: Data<'_>, op: Op) -> Result<(), Error> {
        self.run_inlined(&Call::Exscan { send, receive, op, algorithm: ScanAlgorithm::Auto }).map(drop)
    }
}
