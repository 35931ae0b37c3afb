//! The contract of a collective's state machine, and its composition.
//!
//! | file | what |
//! |---|---|
//! | `poll` | what a poll returns: done, or what the machine waits for |
//! | `transport` | what a host provides, and what machines see of it |
//! | `p2p` | messages between two processes |
//! | `wait` | what a process does while it waits |
//! | `drive` | the blocking loop |

pub mod drive;
pub mod p2p;
pub mod poll;
pub mod transport;
pub mod wait;

use crate::comm::Member;
use crate::error::PollError;
use crate::machine::poll::Poll;
use crate::machine::transport::Shared;
use crate::region::Region;
use core::hash::Hash;

/// A collective operation of one process, as plain data.
///
/// * `poll` never blocks. It does what can be done and returns [`Poll::Wait`] with what it waits
///   for; a spurious poll changes nothing.
/// * A machine is `Clone + Eq + Hash`, so that an explorer can copy and compare its states. State that outlives a poll
///   and is not the machine's lies in the context `X`.
/// * Roles (root, leaf, parent) are fixed when the machine is built.
/// * After an error the machine must not be polled again; the driver poisons the communicator.
pub trait Machine<X: ?Sized> {
    /// Advances as far as possible.
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError>;
}

/// A machine over one segment: it runs one operation of a communicator at a time, and may be started again.
///
/// Building one checks the arguments, and changes nothing else. Each [`start`](Self::start) takes the operation's
/// number.
pub trait Operation: Clone + Eq + Hash {
    /// Becomes the next operation of `me`, in its first state: all ranks start the same operations in the same order.
    /// An operation that was not complete is dropped.
    fn start(&mut self, me: &mut Member);

    /// [`Machine::poll`], with the region and this process's private state on it.
    ///
    /// # Errors
    /// It was never started; another rank's arguments don't agree with this rank's; a peer's word has an impossible
    /// value.
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError>;

    /// The same machine, started.
    #[inline(always)]
    #[must_use]
    fn started(mut self, me: &mut Member) -> Self {
        self.start(me);
        self
    }
}

/// What a poll returns when nothing is left to do. `operation` is the machine's operation number; 0: it was never
/// started.
#[inline(always)]
pub(crate) const fn over(operation: u64) -> Result<Poll, PollError> {
    if operation == 0 { Err(PollError::NotStarted) } else { Ok(Poll::Done) }
}

impl<X: Shared + ?Sized, O: Operation> Machine<X> for O {
    #[inline(always)]
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError> {
        let (region, me) = x.shared();
        self.proceed(region, me)
    }
}

/// First `A`, then `B`: on this process `B` is polled only after `A` is done.
///
/// On this process all of `A` happens before all of `B`. Between processes only those orders hold that the two machines
/// promise themselves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Then<A, B> {
    first: Option<A>,
    second: B,
}

impl<A, B> Then<A, B> {
    /// `first`, then `second`.
    pub const fn new(first: A, second: B) -> Self {
        Self { first: Some(first), second }
    }
}

impl<X: ?Sized, A: Machine<X>, B: Machine<X>> Machine<X> for Then<A, B> {
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError> {
        if let Some(first) = &mut self.first {
            if let wait @ Poll::Wait(_) = first.poll(x)? {
                return Ok(wait);
            }
            self.first = None;
        }
        self.second.poll(x)
    }
}

/// `None` is done at once: for levels in which a process has no role.
impl<X: ?Sized, M: Machine<X>> Machine<X> for Option<M> {
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError> {
        match self {
            Some(machine) => machine.poll(x),
            None => Ok(Poll::Done),
        }
    }
}

/// A machine by reference, which may be a `dyn` machine.
#[derive(Debug)]
pub struct ByRef<'m, M: ?Sized>(pub &'m mut M);

impl<X: ?Sized, M: Machine<X> + ?Sized> Machine<X> for ByRef<'_, M> {
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError> {
        self.0.poll(x)
    }
}
