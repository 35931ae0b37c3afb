//! The bundle of host traits that user code carries as one parameter, and the contexts that machines see.

use crate::Rank;
use crate::comm::member::Member;
use crate::error::{Poison, WaitError};
use crate::machine::p2p::P2p;
use crate::machine::poll::WaitSet;
use crate::region::Region;

/// What a host brings: a kind of region, and of waiting.
pub trait Transport {
    /// Shared memory.
    type Region: Region;
    /// How to wait.
    type Wait;
}

/// A context with shared memory in it: what the machines of `shm` and `barrier` ask for.
pub trait Shared {
    /// Its region.
    type Region: Region;
    /// The region, and this process's private state on it.
    fn shared(&mut self) -> (&Self::Region, &mut Member);
}

/// A context with messages in it: what the machines of `msg` ask for.
pub trait Messages {
    /// Its layer.
    type P2p: P2p;
    /// The layer.
    fn messages(&mut self) -> &mut Self::P2p;
}

/// What a wait policy may look at.
pub trait Observe {
    /// Is a poll worth while: did one of the events happen (or may one have)?
    fn ready(&mut self, on: &WaitSet) -> bool;
    /// The communicator's poison, if it has any.
    fn poison(&self) -> Option<Poison>;
    /// A wait has become long: is everyone in the same collective?
    ///
    /// # Errors
    /// Someone is in another one.
    fn compare(&mut self) -> Result<(), WaitError> {
        Ok(())
    }
    /// Whom to name when the time is over: `peer`, who is awaited, unless it waits itself or is nobody in particular.
    fn late(&self, peer: Option<Rank>) -> Rank {
        peer.unwrap_or(0)
    }
}

/// A wait policy: returns when one of the events may have happened, or never will.
pub trait Wait<X: Observe + ?Sized> {
    /// Waits. A return that is too early costs one poll.
    ///
    /// # Errors
    /// It is over in vain.
    fn wait(&mut self, x: &mut X, on: &WaitSet) -> Result<(), WaitError>;

    /// Does not wait: a poll answered `on`, and its caller goes on with something else. Called as often as a program tests,
    /// so it costs next to nothing; now and then it asks what a wait asks.
    ///
    /// # Errors
    /// A wait would be over in vain.
    #[inline]
    fn look(&mut self, x: &mut X, on: &WaitSet) -> Result<(), WaitError> {
        let _ = (x, on);
        Ok(())
    }
}
