//! What a host does while a process waits.

use crate::error::WaitError;
use crate::machine::poll::WaitSet;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use spin::relax::RelaxStrategy;

/// By default a host is asked at one of so many looks.
const LOOKS: u32 = 32;

/// What a host does between two bursts of spinning: yield the core, move its own messages, look
/// whether the awaited peers live.
pub trait Relax {
    /// A wait starts to be long, or a first look for an event failed: a bound of time counts from here.
    #[inline]
    fn begin(&mut self) {}

    /// Called again and again while `on` has not happened.
    ///
    /// # Errors
    /// The wait must end: a peer died or is late.
    fn relax(&mut self, on: &WaitSet) -> Result<(), WaitError>;

    /// The same for a process that looks for `on` again and again and computes in between. It must not take more than a
    /// microsecond. Returns how many looks may pass until it is called again.
    ///
    /// # Errors
    /// As [`Self::relax`].
    #[inline]
    fn glance(&mut self, on: &WaitSet) -> Result<u32, WaitError> {
        let _ = on;
        Ok(LOOKS)
    }

    /// From now on each wait may take `most`; `None`: for ever. Returns false if the host has no clock, and so no
    /// bound.
    fn set_bound(&mut self, most: Option<Duration>) -> bool {
        most.is_none()
    }
}

/// A host that only relaxes, as `R` says, and never ends a wait: `Only<Loop>` does nothing, for embedders with a core
/// per process; `Only<Yield>` gives the core to another process.
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
