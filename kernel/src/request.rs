//! Nonblocking and persistent operations: started in order, completed in order, several in flight.
//!
//! A [`Scope`] borrows the communicator and outlives no buffer: requests are numbers, so dropping
//! or forgetting one frees nothing and loses nothing; the scope's end completes what is active.
//! Any call on the scope moves its oldest operation (MPI 4.1, 3.7.4: progress). Only the oldest takes part: the next one
//! gets its number when that is done, so that all ranks count alike.

use crate::Rank;
use crate::call::Call;
use crate::comm::{Comm, Member};
use crate::datatype::Data;
use crate::driver::Communicator;
use crate::error::{Argument, Bound, Error, Refusal};
use crate::op::Op;
use crate::progress::{Among, Progress, active, unknown};
use crate::select::{Any, BarrierAlgorithm, BcastAlgorithm};
use crate::transport::{Transport, Wait};
use core::fmt;
use heapless::Deque;

/// Requests that there may be of one communicator: active, or persistent.
pub const ACTIVE: usize = 8;

/// A started operation: its number in the scope.
#[must_use = "test it or wait for it"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request(u64);

/// An operation that is planned once and started many times: its place in the scope, and its number there.
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
    /// The number of a persistent one.
    number: Option<u64>,
    /// Operations that must be complete before it is inactive: its last start, and those before.
    until: u64,
}

/// Nonblocking operations on one communicator, with buffers that live for `'buf`.
pub struct Scope<'c, 'buf, T: Transport>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    communicator: &'c mut Communicator<T>,
    slots: [Option<Slot<'buf>>; ACTIVE],
    /// The slots of active operations, the oldest first.
    active: Deque<u8, ACTIVE>,
    /// Has the oldest begun?
    begun: bool,
    completed: u64,
    /// Persistent ones made so far.
    made: u64,
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
        let mut scope = Scope {
            communicator: self,
            slots: [const { None }; ACTIVE],
            active: Deque::new(),
            begun: false,
            completed: 0,
            made: 0,
        };
        let answer = body(&mut scope);
        while !scope.active.is_empty() {
            scope.complete_oldest()?;
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

impl<T: Transport> Progress for Scope<'_, '_, T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    fn progress(&mut self) {
        // What failed has poisoned the communicator: the scope's next call says so.
        let _ = self.move_oldest();
    }
}

impl<'buf, T: Transport> Scope<'_, 'buf, T>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    /// Starts a call.
    ///
    /// # Errors
    /// As the blocking call; or there are [`ACTIVE`] requests: then nothing was started, and a later call may succeed.
    ///
    /// # Standard section
    /// MPI 4.1, 7.12.
    pub fn start(&mut self, call: Call<'buf>) -> Result<Request, Error> {
        self.start_with(|me| call.make(me))
    }

    /// Starts the operation that `make` makes, of whichever collective and algorithm [`Any`] holds.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with<M: Into<Any<'buf>>>(
        &mut self,
        make: impl FnOnce(&mut Member) -> Result<M, Refusal>,
    ) -> Result<Request, Error> {
        let slot = self.place(make, None)?;
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

    /// Plans a call, once for many starts: arguments are checked here, and the machine stays where it is.
    ///
    /// # Errors
    /// As [`Self::start`].
    ///
    /// # Standard section
    /// MPI 4.1, 7.13.
    pub fn init(&mut self, call: Call<'buf>) -> Result<Persistent, Error> {
        let number = self.made;
        let slot = self.place(|me| call.make(me), Some(number))?;
        self.made += 1;
        Ok(Persistent { slot, number })
    }

    /// Starts a persistent operation (MPI_Start).
    ///
    /// # Errors
    /// It is active, or was freed: refused, nothing has changed. The communicator is poisoned.
    #[inline]
    pub fn restart(&mut self, persistent: Persistent) -> Result<Request, Error> {
        if self.last(persistent)? > self.completed {
            return Err(active());
        }
        self.communicator.enter()?;
        self.enqueue(persistent.slot)
    }

    /// Frees a persistent operation that is not active (MPI_Request_free). One that is not freed goes with the scope.
    ///
    /// # Errors
    /// It is active, or was freed: refused, nothing has changed.
    pub fn free(&mut self, persistent: Persistent) -> Result<(), Error> {
        if self.last(persistent)? > self.completed {
            return Err(active());
        }
        if let Some(slot) = self.slots.get_mut(usize::from(persistent.slot)) {
            *slot = None;
        }
        Ok(())
    }

    /// Is the operation complete? Never blocks; moves the active operations.
    ///
    /// # Errors
    /// The failure of an operation: the communicator is poisoned.
    pub fn test(&mut self, request: Request) -> Result<bool, Error> {
        self.move_oldest()?;
        Ok(request.0 < self.completed)
    }

    /// Waits until the operation is complete, and so all that were started before it.
    ///
    /// # Errors
    /// As [`Self::test`].
    #[inline]
    pub fn wait(&mut self, request: Request) -> Result<(), Error> {
        while request.0 >= self.completed && !self.active.is_empty() {
            self.complete_oldest()?;
        }
        Ok(())
    }

    /// [`Self::wait`] that moves `others` meanwhile: other processes may wait for operations of several
    /// communicators in another order.
    ///
    /// # Errors
    /// As [`Self::test`].
    pub fn wait_among(&mut self, request: Request, others: &mut [&mut dyn Progress]) -> Result<(), Error>
    where
        T::Wait: for<'x> Wait<Among<'x, Comm<T::Region>>>,
    {
        let mut others = || others.iter_mut().for_each(|other| other.progress());
        while request.0 >= self.completed {
            let Some(machine) = oldest(self.communicator, &mut self.slots, &self.active, &mut self.begun)? else {
                break;
            };
            if self.communicator.advance_among(machine, &mut others)? {
                self.complete();
            }
        }
        Ok(())
    }

    /// Is a persistent operation active? One that was never started is not (MPI 4.1, 3.9). Moves nothing.
    ///
    /// # Errors
    /// It was freed.
    pub fn is_active(&self, persistent: Persistent) -> Result<bool, Error> {
        Ok(self.last(persistent)? > self.completed)
    }

    /// Waits for a persistent operation's last start; for none, not at all.
    ///
    /// # Errors
    /// As [`Self::test`]; or it was freed.
    #[inline]
    pub fn wait_persistent(&mut self, persistent: Persistent) -> Result<(), Error> {
        let until = self.last(persistent)?;
        while until > self.completed && !self.active.is_empty() {
            self.complete_oldest()?;
        }
        Ok(())
    }

    /// Plans a machine into a free slot.
    fn place<M: Into<Any<'buf>>>(
        &mut self,
        make: impl FnOnce(&mut Member) -> Result<M, Refusal>,
        number: Option<u64>,
    ) -> Result<u8, Error> {
        let free = (0..).zip(&mut self.slots).find(|(_, slot)| slot.is_none());
        let (at, slot) = free.ok_or(Error::Refused(FULL))?;
        let ahead = self.active.len() as u64 - u64::from(self.begun);
        let machine = self.communicator.plan(ahead, make)?;
        *slot = Some(Slot { machine, number, until: 0 });
        Ok(at)
    }

    /// Makes the machine of a slot the youngest that is active.
    #[inline]
    fn enqueue(&mut self, at: u8) -> Result<Request, Error> {
        let request = Request(self.completed + self.active.len() as u64);
        if let Some(Some(slot)) = self.slots.get_mut(usize::from(at)) {
            slot.until = request.0 + 1;
        }
        // There is room: a slot is active once.
        let _ = self.active.push_back(at);
        self.move_oldest()?;
        Ok(request)
    }

    /// Up to which operation a persistent one is active.
    #[inline]
    fn last(&self, persistent: Persistent) -> Result<u64, Error> {
        match self.slots.get(usize::from(persistent.slot)) {
            Some(Some(slot)) if slot.number == Some(persistent.number) => Ok(slot.until),
            _ => Err(unknown()),
        }
    }

    /// Polls the oldest operations until one of them waits.
    #[inline]
    fn move_oldest(&mut self) -> Result<(), Error> {
        while let Some(machine) = oldest(self.communicator, &mut self.slots, &self.active, &mut self.begun)? {
            if !self.communicator.advance(machine)? {
                return Ok(());
            }
            self.complete();
        }
        Ok(())
    }

    /// Runs the oldest operation to its end, and no other: nobody may have asked for the next one yet.
    #[inline]
    fn complete_oldest(&mut self) -> Result<(), Error> {
        if let Some(machine) = oldest(self.communicator, &mut self.slots, &self.active, &mut self.begun)? {
            self.communicator.complete(machine)?;
            self.complete();
        }
        Ok(())
    }

    /// The oldest operation is done.
    #[inline]
    fn complete(&mut self) {
        self.completed += 1;
        self.begun = false;
        let slot = self.active.pop_front().and_then(|at| self.slots.get_mut(usize::from(at)));
        if let Some(slot) = slot
            && slot.as_ref().is_some_and(|slot| slot.number.is_none())
        {
            *slot = None;
        }
    }
}

const FULL: Refusal = Refusal::new(Argument::Requests, ACTIVE as u64 + 1, Bound::AtMost(ACTIVE as u64));

/// The oldest active machine, begun.
#[inline]
fn oldest<'s, 'buf, T: Transport>(
    communicator: &mut Communicator<T>,
    slots: &'s mut [Option<Slot<'buf>>; ACTIVE],
    active: &Deque<u8, ACTIVE>,
    begun: &mut bool,
) -> Result<Option<&'s mut Any<'buf>>, Error>
where
    T::Wait: Wait<Comm<T::Region>>,
{
    let slot = active.front().and_then(|&at| slots.get_mut(usize::from(at))).and_then(Option::as_mut);
    let Some(Slot { machine, .. }) = slot else { return Ok(None) };
    if !*begun {
        communicator.begin(machine)?;
        *begun = true;
    }
    Ok(Some(machine))
}
