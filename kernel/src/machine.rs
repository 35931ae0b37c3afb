//! The contract of a collective's state machine, and its composition.
//!
//! | file | what |
//! |---|---|
//! | `poll` | what a poll says: done, or what it waits for |
//! | `transport` | what a host brings, and what machines see of it |
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
/// * `poll` never blocks. It does what can be done and answers [`Poll::Wait`] with what it waits
///   for; a spurious poll changes nothing.
/// * A machine is `Clone + Eq + Hash`, so that an explorer can snapshot, hash and branch it; what
///   lives longer than a poll outside it lies in the context `X`.
/// * Roles (root, leaf, parent) are fixed when the machine is built.
/// * After an error the machine is over; the driver poisons the communicator.
pub trait Machine<X: ?Sized> {
    /// Advances as far as possible.
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError>;
}

/// A machine over a segment alone: one operation of a communicator, and then the next one again.
///
/// Building one is pure: arguments are checked, and nothing is taken. [`start`](Self::start) takes the numbers, the first
/// time and every time.
pub trait Operation: Clone + Eq + Hash {
    /// Becomes the next operation of `me`, in its first state: all ranks start the same operations in the same order. What
    /// was under way is forgotten.
    fn start(&mut self, me: &mut Member);

    /// [`Machine::poll`], with the region and this process's private state on it.
    ///
    /// # Errors
    /// It was never started; another rank's arguments don't agree with this one's; a peer's word can't be.
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError>;

    /// The same machine, started.
    #[inline(always)]
    #[must_use]
    fn started(mut self, me: &mut Member) -> Self {
        self.start(me);
        self
    }
}

/// What a poll of an operation with this number says that has nothing left to do: the first number is 1.
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

/// First `A`, then `B`: `B` is polled only after `A` is done, on this process.
///
/// What `A` wrote here happens before all of `B` here; across processes only what the leaf
/// machines promise.
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

/// `None` takes no part: done at once. For levels in which a process has no role.
impl<X: ?Sized, M: Machine<X>> Machine<X> for Option<M> {
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError> {
        match self {
            Some(machine) => machine.poll(x),
            None => Ok(Poll::Done),
        }
    }
}

/// A machine behind a reference, which may be one of many kinds (`dyn`).
#[derive(Debug)]
pub struct ByRef<'m, M: ?Sized>(pub &'m mut M);

impl<X: ?Sized, M: Machine<X> + ?Sized> Machine<X> for ByRef<'_, M> {
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError> {
        self.0.poll(x)
    }
}
