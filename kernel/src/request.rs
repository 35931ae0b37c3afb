//! Nonblocking operations: started in order, completed in order, several in flight.
//!
//! A [`Scope`] borrows the communicator and outlives no buffer: requests are numbers, so dropping
//! or forgetting one frees nothing and loses nothing; the scope's end completes what is active.
//! Any call on the scope moves its oldest operation (MPI 4.1, 3.7.4: progress).

use crate::Rank;
use crate::comm::{Comm, Member};
use crate::datatype::Data;
use crate::driver::Communicator;
use crate::error::{Argument, Bound, Error, Refusal};
use crate::op::Op;
use crate::select::{AllreduceAlgorithm, Any, Barrier, BarrierAlgorithm, Bcast, BcastAlgorithm};
use crate::step::Step;
use crate::transport::{Transport, Wait};
use core::fmt;
use heapless::Deque;

/// Operations that may be active on one communicator.
pub const ACTIVE: usize = 8;

/// A started operation: its number in the scope.
#[must_use = "test it or wait for it"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request(u64);

/// Nonblocking operations on one communicator, with buffers that live for `'buf`.
pub struct Scope<'c, 'buf, T: Transport>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    communicator: &'c mut Communicator<T>,
    active: Deque<Any<'buf>, ACTIVE>,
    completed: u64,
}

impl<T: Transport> Communicator<T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// Runs `body` with a scope for nonblocking operations; returns after all that it started is complete.
    ///
    /// # Errors
    /// The first failure of an operation, else what `body` answers.
    pub fn scope<'buf, A>(
        &mut self,
        body: impl FnOnce(&mut Scope<'_, 'buf, T>) -> Result<A, Error>,
    ) -> Result<A, Error> {
        let mut scope = Scope { communicator: self, active: Deque::new(), completed: 0 };
        let answer = body(&mut scope);
        while !scope.active.is_empty() {
            scope.progress(true)?;
        }
        answer
    }
}

impl<T: Transport> Drop for Scope<'_, '_, T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// Only an unwinding body leaves active operations behind: then the others must not wait for them.
    fn drop(&mut self) {
        if !self.active.is_empty() {
            self.communicator.abandon();
        }
    }
}

impl<T: Transport> fmt::Debug for Scope<'_, '_, T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { completed, active, .. } = self;
        f.debug_struct("Scope").field("completed", completed).field("active", &active.len()).finish_non_exhaustive()
    }
}

impl<'buf, T: Transport> Scope<'_, 'buf, T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// Starts the operation that `make` makes, of whichever collective and algorithm [`Any`] holds.
    ///
    /// # Errors
    /// As the blocking call; or [`ACTIVE`] operations are active: then nothing was started, and a later call may succeed.
    pub fn start<M: Into<Any<'buf>>>(
        &mut self,
        make: impl FnOnce(&mut Member) -> Result<M, Refusal>,
    ) -> Result<Request, Error> {
        let active = self.active.len() as u64;
        Refusal::check(Argument::Requests, active + 1, Bound::AtMost(ACTIVE as u64))?;
        let machine = self.communicator.make(make)?.into();
        // There is room.
        let _ = self.active.push_back(machine);
        let request = Request(self.completed + active);
        self.progress(false)?;
        Ok(request)
    }

    /// Starts a broadcast (MPI_Ibcast).
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_bcast(&mut self, data: Data<'buf>, root: Rank, algorithm: BcastAlgorithm) -> Result<Request, Error> {
        self.start(|me| Bcast::new(me, data, root, algorithm))
    }

    /// Starts a barrier (MPI_Ibarrier).
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_barrier(&mut self, algorithm: BarrierAlgorithm) -> Result<Request, Error> {
        self.start(|me| Barrier::new(me, algorithm))
    }

    /// Starts an allreduce (MPI_Iallreduce).
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_allreduce(&mut self, send: &'buf [u8], receive: &'buf mut [u8], op: Op) -> Result<Request, Error> {
        let (send, receive) = (Data::bytes(send), Data::bytes_mut(receive));
        self.start(|me| Any::allreduce(me, send, receive, op, AllreduceAlgorithm::Auto))
    }

    /// Is the operation complete? Never blocks; moves the active operations.
    ///
    /// # Errors
    /// The failure of an operation: the communicator is poisoned.
    pub fn test(&mut self, request: Request) -> Result<bool, Error> {
        self.progress(false)?;
        Ok(request.0 < self.completed)
    }

    /// Waits until the operation is complete, and so all that were started before it.
    ///
    /// # Errors
    /// As [`Self::test`].
    pub fn wait(&mut self, request: Request) -> Result<(), Error> {
        while request.0 >= self.completed {
            self.progress(true)?;
        }
        Ok(())
    }

    /// Polls the oldest operations until one of them waits; if `block`, waits with it once.
    fn progress(&mut self, block: bool) -> Result<(), Error> {
        while let Some(oldest) = self.active.front_mut() {
            match self.communicator.poll(oldest)? {
                Step::Done => {
                    self.active.pop_front();
                    self.completed += 1;
                }
                Step::Wait(on) if block => return self.communicator.wait_for(&on),
                Step::Wait(_) => return Ok(()),
            }
        }
        Ok(())
    }
}
