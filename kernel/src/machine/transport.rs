//! What a host provides, as one type parameter of user code, and the contexts that machines see.

use crate::Rank;
use crate::comm::member::Member;
use crate::error::{Poison, WaitError};
use crate::machine::p2p::P2p;
use crate::machine::poll::WaitSet;
use crate::region::Region;

/// What a host provides: a type of region, and a wait policy.
pub trait Transport {
    /// Shared memory.
    type Region: Region;
    /// The wait policy.
    type Wait;
}

/// A context with shared memory: the machines of [`crate::shm`] need one.
pub trait Shared {
    /// The type of its region.
    type Region: Region;
    /// The region, and this process's private state on it.
    fn shared(&mut self) -> (&Self::Region, &mut Member);
}

/// A context with messages: the machines of [`crate::msg`] need one.
pub trait Messages {
    /// The type of its point-to-point layer.
    type P2p: P2p;
    /// The point-to-point layer.
    fn messages(&mut self) -> &mut Self::P2p;
}

/// What a wait policy may ask of a context.
pub trait Observe {
    /// Has one of the events happened? True where the context can't tell: then a poll must find out.
    fn ready(&mut self, on: &WaitSet) -> bool;
    /// The communicator's poison, if it has any.
    fn poison(&self) -> Option<Poison>;
    /// Called when this process begins to wait: it may do now what else it would do later.
    #[inline]
    fn idle(&mut self) {}
    /// Called in a long wait: are all ranks in the same collective?
    ///
    /// # Errors
    /// A rank is in another one.
    fn compare(&mut self) -> Result<(), WaitError> {
        Ok(())
    }
    /// The rank that is late, when a wait took too long: `peer`, which is awaited, or another rank if `peer` itself
    /// waits. `None`: no particular rank is awaited.
    fn late(&self, peer: Option<Rank>) -> Rank {
        peer.unwrap_or(0)
    }
}

/// A wait policy: how a process waits for events.
pub trait Wait<X: Observe + ?Sized> {
    /// Returns when one of the events has happened. It may return too early, which costs one poll.
    ///
    /// # Errors
    /// The events can't happen any more, or took too long.
    fn wait(&mut self, x: &mut X, on: &WaitSet) -> Result<(), WaitError>;

    /// Called where a wait would be, by a caller that computes meanwhile: a poll returned `on`. It returns at once, and
    /// costs little, since programs test often; now and then it checks what a wait checks.
    ///
    /// # Errors
    /// As [`Self::wait`].
    #[inline]
    fn look(&mut self, x: &mut X, on: &WaitSet) -> Result<(), WaitError> {
        let _ = (x, on);
        Ok(())
    }
}
