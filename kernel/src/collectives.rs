//! The collectives that move blocks and reduce, as blocking calls of a [`Communicator`].
//!
//! A side that MPI calls not significant is `None`, and so is a send side in place. Lengths are packed
//! bytes; datatypes may differ between the sides.

use crate::Rank;
use crate::blocks::{Blocks, longest};
use crate::comm::Comm;
use crate::datatype::Data;
use crate::driver::Communicator;
use crate::error::Error;
use crate::op::Op;
use crate::select::{AllreduceAlgorithm, MoveAlgorithm};
use crate::shm::allreduce::{posted::Posted, slices::Slices};
use crate::shm::alltoall::exchange::Alltoall;
use crate::shm::gather::exchange::Gather;
use crate::shm::reduce::exchange::Reduce;
use crate::shm::reduce_scatter::exchange::ReduceScatter;
use crate::shm::scatter::exchange::Scatter;
use crate::shm::{allgather, gather, scatter};
use crate::table::Collective;
use crate::transport::{Transport, Wait};

/// Errors of every call here: an argument is refused, or does not agree with another rank's; a peer died.
impl<T: Transport> Communicator<T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// Everyone's `send` goes to its block of the root's `receive`. All blocks have one length.
    ///
    /// # Errors
    /// `root` is no rank; lengths differ; the segment has no queues for the algorithm; a peer died or refused its
    /// arguments.
    ///
    /// # Standard section
    /// MPI 4.1, 7.5.
    #[inline(always)]
    pub fn gather_with(
        &mut self,
        send: Option<Data<'_>>,
        receive: Option<Blocks<'_>>,
        root: Rank,
        algorithm: MoveAlgorithm,
    ) -> Result<(), Error> {
        match self.comm().member().chooser().move_by(algorithm, Collective::Gather, || longest(send, receive)) {
            MoveAlgorithm::Cico => self.call(|me| gather::cico::Cico::new(me, send, receive, root)),
            _ => {
                let machine = Gather::equal(self.enter()?, send, receive, root);
                self.drive(machine)
            }
        }
    }

    /// [`Self::gather_with`] the default algorithm.
    ///
    /// # Errors
    /// As [`Self::gather_with`].
    #[inline(always)]
    pub fn gather(&mut self, send: Option<Data<'_>>, receive: Option<Blocks<'_>>, root: Rank) -> Result<(), Error> {
        self.gather_with(send, receive, root, MoveAlgorithm::Auto)
    }

    /// [`Self::gather_with`] of blocks whose lengths only the root knows all of.
    ///
    /// # Errors
    /// As [`Self::gather_with`].
    #[inline(always)]
    pub fn gatherv_with(
        &mut self,
        send: Option<Data<'_>>,
        receive: Option<Blocks<'_>>,
        root: Rank,
        algorithm: MoveAlgorithm,
    ) -> Result<(), Error> {
        match self.comm().member().chooser().move_by(algorithm, Collective::Gatherv, || 0) {
            MoveAlgorithm::Cico => self.call(|me| gather::cico::Cico::new(me, send, receive, root)),
            _ => {
                let machine = Gather::vary(self.enter()?, send, receive, root);
                self.drive(machine)
            }
        }
    }

    /// [`Self::gatherv_with`] the default algorithm.
    ///
    /// # Errors
    /// As [`Self::gather_with`].
    #[inline(always)]
    pub fn gatherv(&mut self, send: Option<Data<'_>>, receive: Option<Blocks<'_>>, root: Rank) -> Result<(), Error> {
        self.gatherv_with(send, receive, root, MoveAlgorithm::Auto)
    }

    /// Each block of the root's `send` goes to its rank's `receive`. All blocks have one length.
    ///
    /// # Errors
    /// As [`Self::gather_with`].
    ///
    /// # Standard section
    /// MPI 4.1, 7.6.
    #[inline(always)]
    pub fn scatter_with(
        &mut self,
        send: Option<Blocks<'_>>,
        receive: Option<Data<'_>>,
        root: Rank,
        algorithm: MoveAlgorithm,
    ) -> Result<(), Error> {
        match self.comm().member().chooser().move_by(algorithm, Collective::Scatter, || longest(receive, send)) {
            MoveAlgorithm::Cico => self.call(|me| scatter::cico::Cico::new(me, send, receive, root)),
            _ => {
                let machine = Scatter::equal(self.enter()?, send, receive, root);
                self.drive(machine)
            }
        }
    }

    /// [`Self::scatter_with`] the default algorithm.
    ///
    /// # Errors
    /// As [`Self::gather_with`].
    #[inline(always)]
    pub fn scatter(&mut self, send: Option<Blocks<'_>>, receive: Option<Data<'_>>, root: Rank) -> Result<(), Error> {
        self.scatter_with(send, receive, root, MoveAlgorithm::Auto)
    }

    /// [`Self::scatter_with`] of blocks whose lengths only the root knows all of.
    ///
    /// # Errors
    /// As [`Self::gather_with`].
    #[inline(always)]
    pub fn scatterv_with(
        &mut self,
        send: Option<Blocks<'_>>,
        receive: Option<Data<'_>>,
        root: Rank,
        algorithm: MoveAlgorithm,
    ) -> Result<(), Error> {
        match self.comm().member().chooser().move_by(algorithm, Collective::Scatterv, || 0) {
            MoveAlgorithm::Cico => self.call(|me| scatter::cico::Cico::new(me, send, receive, root)),
            _ => {
                let machine = Scatter::vary(self.enter()?, send, receive, root);
                self.drive(machine)
            }
        }
    }

    /// [`Self::scatterv_with`] the default algorithm.
    ///
    /// # Errors
    /// As [`Self::gather_with`].
    #[inline(always)]
    pub fn scatterv(&mut self, send: Option<Blocks<'_>>, receive: Option<Data<'_>>, root: Rank) -> Result<(), Error> {
        self.scatterv_with(send, receive, root, MoveAlgorithm::Auto)
    }

    /// Everyone's `send` goes to its block of everyone's `receive`. All know all lengths, equal or not.
    ///
    /// # Errors
    /// Blocks overlap; lengths differ; the segment has no queues for the algorithm; a peer died or refused its
    /// arguments.
    ///
    /// # Standard section
    /// MPI 4.1, 7.7.
    #[inline(always)]
    pub fn allgather_with(
        &mut self,
        send: Option<Data<'_>>,
        receive: Blocks<'_>,
        algorithm: MoveAlgorithm,
    ) -> Result<(), Error> {
        match self.comm().member().chooser().move_by(algorithm, Collective::Allgather, || receive.most()) {
            MoveAlgorithm::Cico => self.call(|me| allgather::cico::Cico::new(me, send, receive)),
            _ => {
                let machine = allgather::exchange::allgather(self.enter()?, send, receive);
                self.drive(machine)
            }
        }
    }

    /// [`Self::allgather_with`] the default algorithm.
    ///
    /// # Errors
    /// As [`Self::allgather_with`].
    #[inline(always)]
    pub fn allgather(&mut self, send: Option<Data<'_>>, receive: Blocks<'_>) -> Result<(), Error> {
        self.allgather_with(send, receive, MoveAlgorithm::Auto)
    }

    /// Block r of everyone's `send` goes to rank r. All blocks of all ranks have one length.
    ///
    /// # Errors
    /// As [`Self::allgather_with`].
    ///
    /// # Standard section
    /// MPI 4.1, 7.8.
    #[inline(always)]
    pub fn alltoall(&mut self, send: Option<Blocks<'_>>, receive: Blocks<'_>) -> Result<(), Error> {
        let machine = Alltoall::equal(self.enter()?, send, receive);
        self.drive(machine)
    }

    /// [`Self::alltoall`] of blocks whose lengths only sender and receiver know.
    ///
    /// # Errors
    /// As [`Self::allgather_with`].
    #[inline(always)]
    pub fn alltoallv(&mut self, send: Option<Blocks<'_>>, receive: Blocks<'_>) -> Result<(), Error> {
        let machine = Alltoall::vary(self.enter()?, send, receive);
        self.drive(machine)
    }

    /// The fold of everyone's `send` with `op`, in rank order, goes to the root's `receive`. In place at
    /// the root: the same data twice.
    ///
    /// # Errors
    /// `root` is no rank; lengths differ or are no whole number of elements; data with holes; a peer
    /// died or refused its arguments.
    ///
    /// # Standard section
    /// MPI 4.1, 7.9.1.
    #[inline(always)]
    pub fn reduce(&mut self, send: Data<'_>, receive: Option<Data<'_>>, op: Op, root: Rank) -> Result<(), Error> {
        let machine = Reduce::to_root(self.enter()?, send, receive, op, root);
        self.drive(machine)
    }

    /// The fold of everyone's `send` with `op`, in rank order, goes to everyone's `receive`: the same bits on
    /// all ranks. In place: the same data twice.
    ///
    /// # Errors
    /// As [`Self::reduce`]; an operand is too long for the algorithm.
    ///
    /// # Standard section
    /// MPI 4.1, 7.9.6.
    #[inline(always)]
    pub fn allreduce_with(
        &mut self,
        send: Data<'_>,
        receive: Data<'_>,
        op: Op,
        algorithm: AllreduceAlgorithm,
    ) -> Result<(), Error> {
        // One loop per algorithm: a small operand's machine then lives in registers.
        match self.comm().member().chooser().allreduce_by(algorithm, send.len(), op.commutative()) {
            AllreduceAlgorithm::Posted => self.call(|me| Posted::new(me, send, receive, op)),
            AllreduceAlgorithm::Slices => self.call(|me| Slices::new(me, send, receive, op)),
            _ => {
                let machine = Reduce::to_all(self.enter()?, send, receive, op);
                self.drive(machine)
            }
        }
    }

    /// [`Self::allreduce_with`] for bytes and the default algorithm.
    ///
    /// # Errors
    /// As [`Self::allreduce_with`].
    #[inline(always)]
    pub fn allreduce(&mut self, send: &[u8], receive: &mut [u8], op: Op) -> Result<(), Error> {
        self.allreduce_with(Data::bytes(send), Data::bytes_mut(receive), op, AllreduceAlgorithm::Auto)
    }

    /// [`Self::allreduce`] in place.
    ///
    /// # Errors
    /// As [`Self::allreduce_with`].
    #[inline(always)]
    pub fn allreduce_in_place(&mut self, data: &mut [u8], op: Op) -> Result<(), Error> {
        let data = Data::bytes_mut(data);
        self.allreduce_with(data, data, op, AllreduceAlgorithm::Auto)
    }

    /// The fold of everyone's block r goes to rank r's `receive`. All know all lengths, equal or not. In place:
    /// `receive` lies where the blocks begin.
    ///
    /// # Errors
    /// As [`Self::reduce`].
    ///
    /// # Standard section
    /// MPI 4.1, 7.10.
    #[inline(always)]
    pub fn reduce_scatter(&mut self, send: Blocks<'_>, receive: Data<'_>, op: Op) -> Result<(), Error> {
        let machine = ReduceScatter::new(self.enter()?, send, receive, op);
        self.drive(machine)
    }

    /// The fold of the `send` of ranks 0 … r goes to rank r's `receive`. In place: the same data twice.
    ///
    /// # Errors
    /// As [`Self::reduce`].
    ///
    /// # Standard section
    /// MPI 4.1, 7.11.1.
    #[inline(always)]
    pub fn scan(&mut self, send: Data<'_>, receive: Data<'_>, op: Op) -> Result<(), Error> {
        let machine = Reduce::scan(self.enter()?, send, receive, op);
        self.drive(machine)
    }

    /// The fold of the `send` of the ranks below r goes to rank r's `receive`; rank 0's is left alone. In
    /// place: the same data twice.
    ///
    /// # Errors
    /// As [`Self::reduce`].
    ///
    /// # Standard section
    /// MPI 4.1, 7.11.2.
    #[inline(always)]
    pub fn exscan(&mut self, send: Data<'_>, receive: Data<'_>, op: Op) -> Result<(), Error> {
        let machine = Reduce::exscan(self.enter()?, send, receive, op);
        self.drive(machine)
    }
}
