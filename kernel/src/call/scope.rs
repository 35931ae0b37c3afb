//! Nonblocking and persistent operations: started in order, completed in order, several in flight.
//!
//! A [`Scope`] borrows the communicator, and all buffers live longer than it. Requests are numbers: one that is dropped
//! or forgotten is completed all the same, at the latest at the scope's end. Any call on the scope moves its oldest
//! operation (MPI 4.1, 3.7.4: progress). Only the oldest is polled: the next one gets its number when that is complete,
//! so that all ranks count alike.

use super::Call;
use super::any::Any;
use super::in_flight::{InFlight, Storage};
use super::progress::{Among, Progress};
use crate::Rank;
use crate::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use crate::comm::{Comm, Communicator, Member};
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, Condition, Error, Refusal};
use crate::machine::transport::{Transport, Wait};
use crate::op::Op;
use core::fmt;
use heapless::Deque;

/// Most requests of one scope: nonblocking ones that are active, and persistent ones.
pub const ACTIVE: usize = 8;

/// A started operation: its number in the scope.
#[must_use = "test it or wait for it"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request(u64);

/// A persistent operation, which is planned once and started many times: its slot in the scope, and its number there.
#[must_use = "start it"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Persistent {
    slot: u8,
    number: u64,
}

/// A machine that is active, or that may be started again.
#[derive(Debug)]
struct Slot<'buf> {
    machine: Any<'buf>,
    /// The number of a persistent operation; `None` for a nonblocking one.
    number: Option<u64>,
    /// It is inactive when so many operations of the scope are complete: all up to its last start.
    until: u64,
}

/// A scope's machines, and which of them are active.
#[derive(Debug)]
struct Slots<'buf> {
    slots: [Option<Slot<'buf>>; ACTIVE],
    /// The slots of active operations, the oldest first.
    active: Deque<u8, ACTIVE>,
    completed: u64,
}

impl<'buf> Storage<'buf> for Slots<'buf> {
    #[inline]
    fn len(&self) -> usize {
        self.active.len()
    }

    #[inline]
    fn oldest(&mut self) -> Option<&mut Any<'buf>> {
        let slot = self.active.front().and_then(|&at| self.slots.get_mut(usize::from(at))).and_then(Option::as_mut);
        slot.map(|slot| &mut slot.machine)
    }

    #[inline]
    fn retire_oldest(&mut self) {
        self.completed += 1;
        let slot = self.active.pop_front().and_then(|at| self.slots.get_mut(usize::from(at)));
        if let Some(slot) = slot
            && slot.as_ref().is_some_and(|slot| slot.number.is_none())
        {
            *slot = None;
        }
    }
}

impl Slots<'_> {
    /// How many operations must be complete before the persistent operation is inactive.
    #[inline]
    fn last(&self, persistent: Persistent) -> Result<u64, Error> {
        match self.slots.get(usize::from(persistent.slot)) {
            Some(Some(slot)) if slot.number == Some(persistent.number) => Ok(slot.until),
            _ => Err(Error::Refused(Refusal::not(Argument::Requests, Condition::Known))),
        }
    }

    /// Checks that the persistent operation is not active.
    #[inline]
    fn inactive(&self, persistent: Persistent) -> Result<(), Error> {
        if self.last(persistent)? > self.completed {
            return Err(Error::Refused(Refusal::not(Argument::Requests, Condition::Inactive)));
        }
        Ok(())
    }
}

/// Nonblocking operations on one communicator, with buffers that live for `'buf`.
pub struct Scope<'c, 'buf, T: Transport>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    communicator: &'c mut Communicator<T>,
    in_flight: InFlight<Slots<'buf>>,
    /// Number of persistent operations made so far.
    made: u64,
}

impl<T: Transport> Communicator<T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// Runs `body` with a scope for nonblocking operations; returns when all operations that it started are complete.
    ///
    /// # Errors
    /// The first failure of an operation, else the error that `body` returns.
    pub fn scope<'buf, A>(
        &mut self,
        body: impl FnOnce(&mut Scope<'_, 'buf, T>) -> Result<A, Error>,
    ) -> Result<A, Error> {
        let slots = Slots { slots: [const { None }; ACTIVE], active: Deque::new(), completed: 0 };
        let mut scope = Scope { communicator: self, in_flight: InFlight::new(slots), made: 0 };
        let result = body(&mut scope);
        while scope.move_oldest(|on, oldest| on.complete(oldest))? {}
        result
    }
}

impl<T: Transport> Drop for Scope<'_, '_, T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// Operations are still active only after an error or an unwinding body: then the other ranks must not wait for
    /// them.
    fn drop(&mut self) {
        if !self.in_flight.storage().is_empty() {
            self.communicator.abandon();
        }
    }
}

impl<T: Transport> fmt::Debug for Scope<'_, '_, T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Slots { completed, active, .. } = self.in_flight.storage();
        f.debug_struct("Scope").field("completed", completed).field("active", &active.len()).finish_non_exhaustive()
    }
}

impl<T: Transport> Progress for Scope<'_, '_, T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    fn progress(&mut self) {
        // A failure has poisoned the communicator: the scope's next call returns it.
        let _ = self.look();
    }
}

impl<'buf, T: Transport> Scope<'_, 'buf, T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// Starts a call.
    ///
    /// # Errors
    /// As the blocking call; or there are [`ACTIVE`] requests already: then nothing was started, and a later call may
    /// succeed.
    ///
    /// # Standard section
    /// MPI 4.1, 7.12.
    pub fn start(&mut self, call: Call<'buf>) -> Result<Request, Error> {
        self.start_with(|me| call.build(me))
    }

    /// Starts the machine that `build` builds, of any collective and algorithm in [`Any`].
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with<M: Into<Any<'buf>>>(
        &mut self,
        build: impl FnOnce(&Member) -> Result<M, Refusal>,
    ) -> Result<Request, Error> {
        let slot = self.place(build, None)?;
        self.enqueue(slot)
    }

    /// Starts a broadcast (MPI_Ibcast).
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_bcast(&mut self, data: Data<'buf>, root: Rank, algorithm: BcastAlgorithm) -> Result<Request, Error> {
        self.start(Call::Bcast { data, root, algorithm })
    }

    /// Starts a barrier (MPI_Ibarrier).
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_barrier(&mut self, algorithm: BarrierAlgorithm) -> Result<Request, Error> {
        self.start(Call::Barrier { algorithm })
    }

    /// Starts an allreduce (MPI_Iallreduce).
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_allreduce(&mut self, send: &'buf [u8], receive: &'buf mut [u8], op: Op) -> Result<Request, Error> {
        self.start(Call::allreduce(send, receive, op))
    }

    /// Makes a persistent operation of a call: arguments are checked here, once for all its starts.
    ///
    /// # Errors
    /// As [`Self::start`].
    ///
    /// # Standard section
    /// MPI 4.1, 7.13.
    pub fn init(&mut self, call: Call<'buf>) -> Result<Persistent, Error> {
        let number = self.made;
        let slot = self.place(|me| call.build(me), Some(number))?;
        self.made += 1;
        Ok(Persistent { slot, number })
    }

    /// Starts a persistent operation (MPI_Start).
    ///
    /// # Errors
    /// It is active, or was freed: then nothing has changed. Or the communicator is poisoned.
    #[inline]
    pub fn restart(&mut self, persistent: Persistent) -> Result<Request, Error> {
        self.slots().inactive(persistent)?;
        self.communicator.enter()?;
        self.enqueue(persistent.slot)
    }

    /// Frees a persistent operation that is not active (MPI_Request_free). The scope's end frees the others.
    ///
    /// # Errors
    /// It is active, or was freed: then nothing has changed.
    pub fn free(&mut self, persistent: Persistent) -> Result<(), Error> {
        self.slots().inactive(persistent)?;
        if let Some(slot) = self.in_flight.storage_mut().slots.get_mut(usize::from(persistent.slot)) {
            *slot = None;
        }
        Ok(())
    }

    /// Is the operation complete? Never blocks; moves the active operations.
    ///
    /// # Errors
    /// The failure of an operation: the communicator is poisoned.
    pub fn test(&mut self, request: Request) -> Result<bool, Error> {
        self.look()?;
        Ok(request.0 < self.slots().completed)
    }

    /// Waits until the operation is complete, and with it all that were started before.
    ///
    /// # Errors
    /// As [`Self::test`].
    #[inline]
    pub fn wait(&mut self, request: Request) -> Result<(), Error> {
        self.complete_until(request.0 + 1)
    }

    /// [`Self::wait`] that moves `others` meanwhile, since other processes may wait for operations of several
    /// communicators in another order.
    ///
    /// # Errors
    /// As [`Self::test`].
    pub fn wait_among(&mut self, request: Request, others: &mut [&mut dyn Progress]) -> Result<(), Error>
    where
        T::Wait: for<'x> Wait<Among<'x, Comm<T::Region>>>,
    {
        let mut others = || others.iter_mut().for_each(|other| other.progress());
        while request.0 >= self.slots().completed && !self.slots().is_empty() {
            self.move_oldest(|communicator, oldest| communicator.advance_among(oldest, &mut others))?;
        }
        Ok(())
    }

    /// Is a persistent operation active? One that was never started is not (MPI 4.1, 3.9). Moves nothing.
    ///
    /// # Errors
    /// It was freed.
    pub fn is_active(&self, persistent: Persistent) -> Result<bool, Error> {
        Ok(self.slots().last(persistent)? > self.slots().completed)
    }

    /// Waits until the last start of a persistent operation is complete; returns at once if it was never started.
    ///
    /// # Errors
    /// As [`Self::test`]; or it was freed.
    #[inline]
    pub fn wait_persistent(&mut self, persistent: Persistent) -> Result<(), Error> {
        self.complete_until(self.slots().last(persistent)?)
    }

    const fn slots(&self) -> &Slots<'buf> {
        self.in_flight.storage()
    }

    /// Builds a machine in a free slot.
    fn place<M: Into<Any<'buf>>>(
        &mut self,
        build: impl FnOnce(&Member) -> Result<M, Refusal>,
        number: Option<u64>,
    ) -> Result<u8, Error> {
        let ahead = self.in_flight.unstarted();
        let free = (0..).zip(&mut self.in_flight.storage_mut().slots).find(|(_, slot)| slot.is_none());
        let (at, slot) = free.ok_or(Error::Refused(FULL))?;
        let machine = self.communicator.build(ahead, build)?;
        *slot = Some(Slot { machine, number, until: 0 });
        Ok(at)
    }

    /// Makes the machine of a slot the youngest active one.
    #[inline]
    fn enqueue(&mut self, at: u8) -> Result<Request, Error> {
        let Slots { slots, active, completed } = self.in_flight.storage_mut();
        let request = Request(*completed + active.len() as u64);
        if let Some(Some(slot)) = slots.get_mut(usize::from(at)) {
            slot.until = request.0 + 1;
        }
        // There is room: each slot is active once at most.
        let _ = active.push_back(at);
        self.look()?;
        Ok(request)
    }

    /// [`InFlight::move_oldest`] on the scope's communicator.
    #[inline]
    fn move_oldest(
        &mut self,
        advance: impl FnOnce(&mut Communicator<T>, &mut Any<'buf>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        self.in_flight.move_oldest(self.communicator, |on, oldest| on.start(oldest), advance)
    }

    /// Polls the oldest operations until one of them waits.
    #[inline]
    fn look(&mut self) -> Result<(), Error> {
        while self.move_oldest(|on, oldest| on.advance(oldest))? {}
        Ok(())
    }

    /// Completes the oldest operations until `count` are complete. It must not wait for further ones: other ranks may
    /// not have started them yet.
    #[inline]
    fn complete_until(&mut self, count: u64) -> Result<(), Error> {
        while self.slots().completed < count && self.move_oldest(|on, oldest| on.complete(oldest))? {}
        Ok(())
    }
}

const FULL: Refusal = Refusal::new(Argument::Requests, ACTIVE as u64 + 1, Bound::AtMost(ACTIVE as u64));
