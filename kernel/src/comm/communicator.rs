//! The communicator, the object that has the calls: a region, a member, a wait policy.

use super::{Comm, Member};
use crate::Rank;
use crate::error::{Cause, Error, Poison, PollError, Refusal, WaitError};
use crate::machine::drive::{Stop, run};
use crate::machine::poll::Poll;
use crate::machine::transport::{Observe, Transport, Wait};
use crate::machine::{Machine, Operation};
use crate::region::{Base, Layout, Region};
use crate::table::Choices;
use core::fmt;

/// Poisons the communicator if a user's operation unwinds through a call: others must not wait for it.
struct Unwinding<'a, R: Region>(&'a mut Comm<R>);

impl<R: Region> Drop for Unwinding<'_, R> {
    #[cold]
    fn drop(&mut self) {
        let me = self.0.member();
        let (rank, operation) = (me.rank(), me.operation());
        self.0.poison_with(Poison { rank, operation, cause: Cause::Fault });
    }
}

/// A communicator of one process. Its calls are in [`crate::call`].
///
/// Its type allows one call at a time: every call takes `&mut self`. After an error that poisons the communicator,
/// every process gets an error from this or its next call, and no process is left waiting.
pub struct Communicator<T: Transport> {
    comm: Comm<T::Region>,
    wait: T::Wait,
}

impl<T: Transport> fmt::Debug for Communicator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Communicator").field("member", self.comm.member()).finish_non_exhaustive()
    }
}

impl<T: Transport> Communicator<T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// Process `rank` on a fresh segment of this layout.
    ///
    /// # Errors
    /// `rank` is not below the layout's number of ranks.
    pub fn new(region: T::Region, layout: Layout, rank: Rank, wait: T::Wait) -> Result<Self, Refusal> {
        Self::resume(region, layout, rank, Base::default(), wait)
    }

    /// The same on the memory of an earlier communicator: see [`Member::resume`].
    ///
    /// # Errors
    /// `rank` is not below the layout's number of ranks.
    pub fn resume(region: T::Region, layout: Layout, rank: Rank, base: Base, wait: T::Wait) -> Result<Self, Refusal> {
        Ok(Self { comm: Comm::resume(region, layout, rank, base)?, wait })
    }

    /// Sets what `Auto` means. All ranks must set the same, or their calls don't match.
    #[must_use]
    pub const fn with_choices(mut self, choices: Option<&'static Choices>) -> Self {
        self.comm.member_mut().set_choices(choices);
        self
    }

    /// This process.
    pub const fn rank(&self) -> Rank {
        self.comm.member().rank()
    }

    /// Number of processes.
    pub const fn size(&self) -> u32 {
        self.comm.member().size()
    }

    /// The context of the machines.
    pub const fn comm(&self) -> &Comm<T::Region> {
        &self.comm
    }

    /// The wait policy.
    pub const fn wait_policy(&mut self) -> &mut T::Wait {
        &mut self.wait
    }

    /// Refuses a collective call for an argument that this process checked itself, and tells the others.
    #[cold]
    pub fn refuse(&mut self, refusal: Refusal) -> Error {
        self.refuse_behind(0, refusal)
    }

    /// [`Self::refuse`], where `ahead` operations before this one have no number yet.
    #[cold]
    pub(crate) fn refuse_behind(&mut self, ahead: u64, refusal: Refusal) -> Error {
        let me = self.comm.member();
        let (rank, operation) = (me.rank(), me.operation() + 1 + ahead);
        self.comm.poison_with(Poison { rank, operation, cause: Cause::Refused(refusal) });
        Error::Refused(refusal)
    }

    /// Builds a machine, starts it as the next operation, and runs it to its end.
    ///
    /// # Errors
    /// The communicator is poisoned; an argument is refused; a poll or a wait failed.
    #[inline(always)]
    pub fn call<O: Operation>(&mut self, build: impl FnOnce(&Member) -> Result<O, Refusal>) -> Result<(), Error> {
        let operation = build(self.enter()?);
        self.operate(operation)
    }

    /// The private state for building an operation, unless the communicator is poisoned.
    #[inline(always)]
    pub(crate) fn enter(&mut self) -> Result<&mut Member, Error> {
        match self.comm.poison() {
            Some(poison) => Err(Error::Poisoned(poison)),
            None => Ok(self.comm.member_mut()),
        }
    }

    /// Starts what was built after [`Self::enter`], and runs it to its end, where it is: a large machine that is taken out of
    /// its result is written twice.
    #[inline(always)]
    pub(crate) fn operate<O: Operation>(&mut self, mut operation: Result<O, Refusal>) -> Result<(), Error> {
        match &mut operation {
            Ok(operation) => {
                operation.start(self.comm.member_mut());
                self.finish(operation)
            }
            Err(refusal) => Err(self.refuse(*refusal)),
        }
    }

    /// Runs what was started to its end. Inlined in releases alone: tests have many calls, and each would be a copy of its machine
    /// to compile.
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[cfg_attr(debug_assertions, inline(never))]
    pub(crate) fn finish<O: Operation>(&mut self, operation: &mut O) -> Result<(), Error> {
        let guard = Unwinding(&mut self.comm);
        let result = run(operation, guard.0, &mut self.wait);
        core::mem::forget(guard);
        match result {
            Ok(()) => Ok(()),
            Err(stop) => Err(self.fail(stop)),
        }
    }

    /// The context of the machines, and the wait policy.
    pub(crate) const fn parts(&mut self) -> (&mut Comm<T::Region>, &mut T::Wait) {
        (&mut self.comm, &mut self.wait)
    }

    /// Polls once.
    pub(crate) fn poll<O: Operation>(&mut self, operation: &mut O) -> Result<Poll, Error> {
        if let Some(poison) = self.comm.poison() {
            return Err(Error::Poisoned(poison));
        }
        let guard = Unwinding(&mut self.comm);
        let result = operation.poll(guard.0);
        core::mem::forget(guard);
        result.map_err(|e| self.fail(Stop::Poll(e)))
    }

    /// Poisons the communicator: this process has given up operations that are not complete.
    #[cold]
    pub(crate) fn abandon(&mut self) {
        drop(Unwinding(&mut self.comm));
    }

    /// [`Comm::fail`].
    #[cold]
    pub(crate) fn fail(&mut self, stop: Stop) -> Error {
        self.comm.fail(stop)
    }
}

impl<R: Region> Comm<R> {
    /// Poisons the communicator for the failure of a machine, so that no rank waits for this process. Returns the
    /// call's error.
    #[cold]
    pub fn fail(&self, stop: Stop) -> Error {
        let (rank, operation) = (self.member().rank(), self.member().operation());
        match stop {
            // A process whose memory is gone in the middle of an operation has died, as far as anyone can see.
            Stop::Poll(PollError::Unreadable { peer }) => {
                Error::Poisoned(self.poison_with(Poison { rank: peer, operation, cause: Cause::Died }))
            }
            Stop::Poll(error) => {
                let cause = match error {
                    PollError::Mismatch { refusal, .. } => Cause::Refused(refusal),
                    PollError::Overrun { .. } | PollError::Unreadable { .. } | PollError::NotStarted => Cause::Fault,
                    PollError::Messages { code, .. } => Cause::Messages(code),
                };
                self.poison_with(Poison { rank, operation, cause });
                Error::Poll(error)
            }
            Stop::Wait(WaitError::Poisoned(poison)) => Error::Poisoned(poison),
            Stop::Wait(WaitError::Diverged { peer, refusal }) => {
                self.poison_with(Poison { rank, operation, cause: Cause::Refused(refusal) });
                Error::Poll(PollError::Mismatch { peer, refusal })
            }
            Stop::Wait(WaitError::Died(peer)) => {
                Error::Poisoned(self.poison_with(Poison { rank: peer, operation, cause: Cause::Died }))
            }
            Stop::Wait(WaitError::Late(peer)) => {
                // The poison names the rank that is late, not the rank that noticed.
                Error::Poisoned(self.poison_with(Poison { rank: peer, operation, cause: Cause::Late }))
            }
            Stop::Wait(WaitError::Abandoned) => Error::Abandoned,
        }
    }
}
