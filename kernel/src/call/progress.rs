//! Moves operations in flight: the oldest of a communicator, and those of other communicators while it waits.
//!
//! MPI lets two processes wait for the operations of two communicators in different orders. So a waiting call may be
//! given the other communicators: it polls their operations between its own looks.

use super::Call;
use super::any::Any;
use crate::Rank;
use crate::comm::{Comm, Communicator, Member};
use crate::error::{Error, Poison, Refusal, WaitError};
use crate::machine::Operation;
use crate::machine::drive::Stop;
use crate::machine::poll::{Poll, WaitSet};
use crate::machine::transport::{Observe, Transport, Wait};
use core::fmt;

/// Something that has operations in flight, such as a [`Scope`](super::scope::Scope) of another communicator.
pub trait Progress {
    /// Moves the oldest operation, without waiting. A failure poisons its communicator, whose next call returns the
    /// error.
    fn progress(&mut self);
}

/// A context, and a function that moves other operations during a wait. It appears in the bounds of calls that take
/// [`Progress`].
pub struct Among<'x, X: ?Sized> {
    x: &'x mut X,
    others: &'x mut dyn FnMut(),
}

impl<X: ?Sized> fmt::Debug for Among<'_, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Among").finish_non_exhaustive()
    }
}

impl<X: Observe + ?Sized> Observe for Among<'_, X> {
    fn ready(&mut self, on: &WaitSet) -> bool {
        self.x.ready(on) || {
            (self.others)();
            self.x.ready(on)
        }
    }

    fn poison(&self) -> Option<Poison> {
        self.x.poison()
    }

    fn compare(&mut self) -> Result<(), WaitError> {
        self.x.compare()
    }

    fn late(&self, peer: Option<Rank>) -> Rank {
        self.x.late(peer)
    }
}

/// A running call: if it unwinds, the communicator is poisoned, so that no rank waits for it.
struct Running<'a, T: Transport>(&'a mut Communicator<T>)
where
    T::Wait: Wait<Comm<T::Region>>;

impl<T: Transport> Drop for Running<'_, T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// After an error the communicator is poisoned already, and the first poison counts.
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Operations in flight that the owner of the communicator keeps.
impl<T: Transport> Communicator<T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// Builds a call's machine. `ahead` is the number of machines that were built before and are not started. Nothing
    /// moves before [`Self::start`].
    ///
    /// # Errors
    /// The communicator is poisoned; an argument is refused, which poisons it.
    pub fn build<'buf, M: Into<Any<'buf>>>(
        &mut self,
        ahead: u64,
        build: impl FnOnce(&Member) -> Result<M, Refusal>,
    ) -> Result<Any<'buf>, Error> {
        match build(self.enter()?) {
            Ok(operation) => Ok(operation.into()),
            Err(refusal) => Err(self.refuse_behind(ahead, refusal)),
        }
    }

    /// Starts a machine that was built, or is done, as the next operation: all ranks start the same operations in the
    /// same order. It must be done before the next one starts.
    ///
    /// # Errors
    /// The communicator is poisoned.
    #[inline]
    pub fn start(&mut self, operation: &mut Any<'_>) -> Result<(), Error> {
        operation.start(self.enter()?);
        Ok(())
    }

    /// Moves a started operation, without waiting, and returns whether it is done. Repeated calls detect a dead or late
    /// rank as a wait does ([`Wait::look`]).
    ///
    /// # Errors
    /// A poll or a look failed: the communicator is poisoned.
    #[inline]
    pub fn advance(&mut self, operation: &mut Any<'_>) -> Result<bool, Error> {
        let Poll::Wait(on) = self.poll(operation)? else { return Ok(true) };
        let (x, wait) = self.parts();
        wait.look(x, &on).map_err(|e| self.fail(Stop::Wait(e)))?;
        Ok(false)
    }

    /// Runs a started operation until it is done, as a blocking call does; returns true.
    ///
    /// # Errors
    /// A poll or a wait failed: the communicator is poisoned.
    #[inline]
    pub fn complete(&mut self, operation: &mut Any<'_>) -> Result<bool, Error> {
        // These take as little time as the choice among all machines: so it is made once, not at each poll.
        match operation {
            Any::PostedBarrier(operation) => self.finish(operation),
            Any::Dissemination(operation) => self.finish(operation),
            other => self.finish(other),
        }?;
        Ok(true)
    }

    /// The blocking call that moves `others` while it waits: scopes of other communicators, whose operations other
    /// processes may wait for before they make this call.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_among(&mut self, call: &Call<'_>, others: &mut [&mut dyn Progress]) -> Result<(), Error>
    where
        T::Wait: for<'x> Wait<Among<'x, Comm<T::Region>>>,
    {
        let mut operation = self.build(0, |me| call.build(me))?;
        let mut others = || others.iter_mut().for_each(|other| other.progress());
        let running = Running(self);
        running.0.start(&mut operation)?;
        while !running.0.advance_among(&mut operation, &mut others)? {}
        core::mem::forget(running);
        Ok(())
    }

    /// [`Self::advance`] that waits once if the operation is not done, and moves `others` meanwhile.
    ///
    /// # Errors
    /// As [`Self::advance`].
    pub fn advance_among(&mut self, operation: &mut Any<'_>, others: &mut dyn FnMut()) -> Result<bool, Error>
    where
        T::Wait: for<'x> Wait<Among<'x, Comm<T::Region>>>,
    {
        let Poll::Wait(on) = self.poll(operation)? else { return Ok(true) };
        let (x, wait) = self.parts();
        x.idle();
        wait.wait(&mut Among { x, others }, &on).map_err(|e| self.fail(Stop::Wait(e)))?;
        Ok(false)
    }
}
