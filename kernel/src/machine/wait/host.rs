//! What a host does while a process waits.

use crate::error::WaitError;
use crate::machine::poll::WaitSet;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use spin::relax::RelaxStrategy;

/// Looks of which one asks a host that has no reason to choose another number.
const LOOKS: u32 = 32;

/// What a host does between two bursts of spinning: yield the core, move its own messages, look
/// whether the awaited peers live.
pub trait Relax {
    /// A wait begins that was not over after the first burst, or looks in vain for something new: a bound of time
    /// counts from here.
    #[inline]
    fn begin(&mut self) {}

    /// Called again and again while `on` has not happened.
    ///
    /// # Errors
    /// The wait must end: a peer is gone or late.
    fn relax(&mut self, on: &WaitSet) -> Result<(), WaitError>;

    /// The same for who looks for `on` again and again and computes in between: it must not cost more than a
    /// microsecond. Answers how many looks may go by until it is asked again.
    ///
    /// # Errors
    /// As [`Self::relax`].
    #[inline]
    fn glance(&mut self, on: &WaitSet) -> Result<u32, WaitError> {
        let _ = on;
        Ok(LOOKS)
    }

    /// From now on each wait may take so long at most; `None`: for ever. False: this host has no clock.
    fn set_bound(&mut self, most: Option<Duration>) -> bool {
        most.is_none()
    }
}

/// A host that only relaxes, as `R` says, and lets every wait go on: `Only<Loop>` does nothing, for embedders with a core per
/// process; `Only<Yield>` gives the core to another one.
pub struct Only<R>(PhantomData<fn() -> R>);

impl<R> Only<R> {
    /// The host.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<R> Default for Only<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> Clone for Only<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Only<R> {}

impl<R> fmt::Debug for Only<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Only<{}>", core::any::type_name::<R>())
    }
}

impl<R: RelaxStrategy> Relax for Only<R> {
    #[inline]
    fn relax(&mut self, _: &WaitSet) -> Result<(), WaitError> {
        R::relax();
        Ok(())
    }
}
