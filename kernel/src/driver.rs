//! From machines to calls: the blocking loop, and a communicator to call on.

use crate::Rank;
use crate::barrier::{central::Central, combining::Combining, dissemination::Dissemination, posted};
use crate::comm::{Comm, Member};
use crate::datatype::Data;
use crate::error::{Cause, Error, Poison, PollError, Refusal, WaitError};
use crate::machine::Machine;
use crate::region::{Base, Layout, Region};
use crate::select::{BarrierAlgorithm, BcastAlgorithm};
use crate::shm::bcast::{cico::Cico, posted::Posted, queue::Queue};
use crate::step::Step;
use crate::table::Choices;
use crate::transport::{Observe, Transport, Wait};
use core::fmt;

/// Why [`run`] ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// A poll failed.
    Poll(PollError),
    /// A wait failed.
    Wait(WaitError),
}

/// Polls `machine` until it is done, waiting in between: what "blocking" means here.
///
/// # Errors
/// The first failure of a poll or a wait; the machine is over then.
#[inline(always)]
pub fn run<X, M, W>(machine: &mut M, x: &mut X, wait: &mut W) -> Result<(), Stop>
where
    X: Observe + ?Sized,
    M: Machine<X> + ?Sized,
    W: Wait<X> + ?Sized,
{
    loop {
        match machine.poll(x).map_err(Stop::Poll)? {
            Step::Done => return Ok(()),
            Step::Wait(on) => wait.wait(x, &on).map_err(Stop::Wait)?,
        }
    }
}

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

/// A communicator of one process: collectives as blocking calls.
///
/// It is exclusive by type: every call takes `&mut self`. After an error that poisons, every
/// process of the communicator gets one at this or its next call, and nobody is left waiting.
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

    /// The same where a communicator was before: as [`Member::resume`].
    ///
    /// # Errors
    /// `rank` is not below the layout's number of ranks.
    pub fn resume(region: T::Region, layout: Layout, rank: Rank, base: Base, wait: T::Wait) -> Result<Self, Refusal> {
        Ok(Self { comm: Comm::resume(region, layout, rank, base)?, wait })
    }

    /// The same, with what `Auto` means here. All members say the same, or their calls do not match.
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

    /// What the machines see.
    pub const fn comm(&self) -> &Comm<T::Region> {
        &self.comm
    }

    /// How this process waits.
    pub const fn wait_policy(&mut self) -> &mut T::Wait {
        &mut self.wait
    }

    /// Broadcasts `data` from `root` to everyone. Types may differ between ranks, packed bytes must not.
    ///
    /// # Errors
    /// `root` is no rank, lengths differ, a peer died or refused its arguments.
    ///
    /// # Standard section
    /// MPI 4.1, 7.4.
    #[inline]
    pub fn bcast_with(&mut self, data: Data<'_>, root: Rank, algorithm: BcastAlgorithm) -> Result<(), Error> {
        // One loop per algorithm: a small message's machine then lives in registers.
        match self.comm.member().chooser().bcast_by(algorithm, data.len()) {
            BcastAlgorithm::Posted => self.call(|me| Posted::new(me, data, root)),
            BcastAlgorithm::Queue | BcastAlgorithm::Auto => self.call(|me| Queue::new(me, data, root)),
            BcastAlgorithm::Cico(tree) => self.call(|me| Cico::new(me, data, root, tree)),
        }
    }

    /// [`Self::bcast_with`] for bytes and the default algorithm.
    ///
    /// # Errors
    /// As [`Self::bcast_with`].
    #[inline]
    pub fn bcast(&mut self, bytes: &mut [u8], root: Rank) -> Result<(), Error> {
        self.bcast_with(Data::bytes_mut(bytes), root, BcastAlgorithm::Auto)
    }

    /// Waits until everyone has entered. What anyone did before happens before what anyone does after.
    ///
    /// # Errors
    /// A peer died or refused its arguments.
    ///
    /// # Standard section
    /// MPI 4.1, 7.3.
    #[inline]
    pub fn barrier_with(&mut self, algorithm: BarrierAlgorithm) -> Result<(), Error> {
        match self.comm.member().chooser().barrier_by(algorithm) {
            BarrierAlgorithm::Posted => self.call(|me| Ok(posted::Posted::new(me))),
            BarrierAlgorithm::Auto | BarrierAlgorithm::Dissemination => self.call(|me| Ok(Dissemination::new(me))),
            BarrierAlgorithm::Central => self.call(|me| Ok(Central::new(me))),
            BarrierAlgorithm::Combining(arity) => self.call(|me| Combining::new(me, arity)),
        }
    }

    /// [`Self::barrier_with`] the default algorithm.
    ///
    /// # Errors
    /// As [`Self::barrier_with`].
    #[inline]
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.barrier_with(BarrierAlgorithm::default())
    }

    /// Refuses a collective call for an argument that this process checked itself, and tells the others.
    #[cold]
    pub fn refuse(&mut self, refusal: Refusal) -> Error {
        self.refuse_behind(0, refusal)
    }

    /// [`Self::refuse`], with `ahead` operations that were started and have not begun.
    #[cold]
    pub(crate) fn refuse_behind(&mut self, ahead: u64, refusal: Refusal) -> Error {
        let me = self.comm.member();
        let (rank, operation) = (me.rank(), me.operation() + 1 + ahead);
        self.comm.poison_with(Poison { rank, operation, cause: Cause::Refused(refusal) });
        Error::Refused(refusal)
    }

    /// Makes the next operation and runs it.
    #[inline(always)]
    pub fn call<M: Machine<Comm<T::Region>>>(
        &mut self,
        make: impl FnOnce(&mut Member) -> Result<M, Refusal>,
    ) -> Result<(), Error> {
        let machine = make(self.enter()?);
        self.drive(machine)
    }

    /// The private state for making the next operation, unless the communicator is poisoned. Not by a closure where the
    /// machine is large: built in place, it is written once.
    #[inline(always)]
    pub(crate) fn enter(&mut self) -> Result<&mut Member, Error> {
        match self.comm.poison() {
            Some(poison) => Err(Error::Poisoned(poison)),
            None => Ok(self.comm.member_mut()),
        }
    }

    /// Runs what was made of [`Self::enter`]'s state.
    #[inline(always)]
    pub(crate) fn drive<M: Machine<Comm<T::Region>>>(&mut self, machine: Result<M, Refusal>) -> Result<(), Error> {
        let mut machine = match machine {
            Ok(machine) => machine,
            Err(refusal) => return Err(self.refuse(refusal)),
        };
        let guard = Unwinding(&mut self.comm);
        let result = run(&mut machine, guard.0, &mut self.wait);
        core::mem::forget(guard);
        match result {
            Ok(()) => Ok(()),
            Err(stop) => Err(self.fail(stop)),
        }
    }

    /// What the machines see, and how this process waits.
    pub(crate) const fn parts(&mut self) -> (&mut Comm<T::Region>, &mut T::Wait) {
        (&mut self.comm, &mut self.wait)
    }

    /// Polls a machine once.
    pub(crate) fn poll<M: Machine<Comm<T::Region>>>(&mut self, machine: &mut M) -> Result<Step, Error> {
        if let Some(poison) = self.comm.poison() {
            return Err(Error::Poisoned(poison));
        }
        let guard = Unwinding(&mut self.comm);
        let result = machine.poll(guard.0);
        core::mem::forget(guard);
        result.map_err(|e| self.fail(Stop::Poll(e)))
    }

    /// Poisons the communicator: operations of this process were given up unfinished.
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
    /// Poisons the communicator for what ended a machine, so that nobody waits for this process: how the call ends.
    #[cold]
    pub fn fail(&self, stop: Stop) -> Error {
        let (rank, operation) = (self.member().rank(), self.member().operation());
        match stop {
            Stop::Poll(error) => {
                let cause = match error {
                    PollError::Mismatch { refusal, .. } => Cause::Refused(refusal),
                    PollError::Overrun { .. } => Cause::Fault,
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
                // The poison names who is late, not who noticed.
                Error::Poisoned(self.poison_with(Poison { rank: peer, operation, cause: Cause::Late }))
            }
            Stop::Wait(WaitError::Abandoned) => Error::Abandoned,
        }
    }
}
