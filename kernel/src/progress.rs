//! Moving what is in flight: one machine after the other, and those of other communicators while waiting.
//!
//! MPI lets two processes wait for the operations of two communicators in different orders. So a wait may be given
//! others to move: it polls them between its own looks.

use crate::Rank;
use crate::call::Call;
use crate::comm::{Comm, Member};
use crate::driver::{Communicator, Stop};
use crate::error::{Argument, Condition, Error, Poison, Refusal, WaitError};
use crate::select::{Any, Barrier};
use crate::step::{Awaits, Step};
use crate::transport::{Observe, Transport, Wait};
use core::fmt;

/// Something with operations in flight: a [`Scope`](crate::request::Scope) of another communicator, say.
pub trait Progress {
    /// Moves the oldest operation, without waiting. A failure poisons the communicator it is of, and is told by that
    /// one's next call.
    fn progress(&mut self);
}

/// A context, and what moves while someone waits for it: for the bounds of calls that are given [`Progress`].
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
    fn ready(&mut self, on: &Awaits) -> bool {
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

/// A call that is not over: if it unwinds, nobody shall wait for it.
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

/// Operations in flight that are kept by who holds the communicator.
impl<T: Transport> Communicator<T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// A machine whose arguments are checked, with `ahead` others to begin before it. It takes no part before
    /// [`Self::begin`].
    ///
    /// # Errors
    /// The communicator is poisoned; an argument is refused, which poisons it.
    pub fn plan<'buf, M: Into<Any<'buf>>>(
        &mut self,
        ahead: u64,
        make: impl FnOnce(&mut Member) -> Result<M, Refusal>,
    ) -> Result<Any<'buf>, Error> {
        match self.enter()?.plan(make) {
            Ok(machine) => Ok(machine.into()),
            Err(refusal) => Err(self.refuse_behind(ahead, refusal)),
        }
    }

    /// Begins a planned machine, or one that is done, as the next operation: all ranks begin the same ones in the
    /// same order. One that began is polled until it is done, before the next one begins.
    ///
    /// # Errors
    /// The communicator is poisoned.
    #[inline]
    pub fn begin(&mut self, machine: &mut Any<'_>) -> Result<(), Error> {
        machine.begin(self.enter()?);
        Ok(())
    }

    /// Moves a machine that began, without waiting. Is it done? Whoever asks again and again hears of a death or of a
    /// bound of time as a wait does ([`Wait::look`]).
    ///
    /// # Errors
    /// A poll or a look failed: the communicator is poisoned.
    #[inline]
    pub fn advance(&mut self, machine: &mut Any<'_>) -> Result<bool, Error> {
        let Step::Wait(on) = self.poll(machine)? else { return Ok(true) };
        let (x, wait) = self.parts();
        wait.look(x, &on).map_err(|e| self.fail(Stop::Wait(e)))?;
        Ok(false)
    }

    /// Runs a machine that began to its end, as a blocking call does.
    ///
    /// # Errors
    /// A poll or a wait failed: the communicator is poisoned.
    #[inline]
    pub fn complete(&mut self, machine: &mut Any<'_>) -> Result<(), Error> {
        // What is as short as the choice among all machines chooses once, not at each poll.
        match machine {
            Any::Barrier(Barrier::Posted(machine)) => self.drive(Ok(machine)),
            Any::Barrier(Barrier::Dissemination(machine)) => self.drive(Ok(machine)),
            other => self.drive(Ok(other)),
        }
    }

    /// The blocking call that moves `others` meanwhile: scopes of other communicators, whose operations other processes
    /// may wait for before they come to this call.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_among(&mut self, call: &Call<'_>, others: &mut [&mut dyn Progress]) -> Result<(), Error>
    where
        T::Wait: for<'x> Wait<Among<'x, Comm<T::Region>>>,
    {
        let mut machine = self.plan(0, |me| call.make(me))?;
        let mut others = || others.iter_mut().for_each(|other| other.progress());
        let running = Running(self);
        running.0.begin(&mut machine)?;
        while !running.0.advance_among(&mut machine, &mut others)? {}
        core::mem::forget(running);
        Ok(())
    }

    /// [`Self::advance`] that waits once, and moves `others` meanwhile.
    ///
    /// # Errors
    /// As [`Self::advance`].
    pub fn advance_among(&mut self, machine: &mut Any<'_>, others: &mut dyn FnMut()) -> Result<bool, Error>
    where
        T::Wait: for<'x> Wait<Among<'x, Comm<T::Region>>>,
    {
        let Step::Wait(on) = self.poll(machine)? else { return Ok(true) };
        let (x, wait) = self.parts();
        wait.wait(&mut Among { x, others }, &on).map_err(|e| self.fail(Stop::Wait(e)))?;
        Ok(false)
    }
}

/// A request that is none, or no longer.
pub(crate) const fn unknown() -> Error {
    Error::Refused(Refusal::not(Argument::Requests, Condition::Known))
}

/// A request that is active already.
pub(crate) const fn active() -> Error {
    Error::Refused(Refusal::not(Argument::Requests, Condition::Inactive))
}
