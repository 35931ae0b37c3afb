//! Operations of a communicator that were started and are not complete, the oldest first.
//!
//! Only the oldest one is polled. The next one gets its number when that is complete, so that all ranks count alike
//! (MPI 4.1, 7.12: all processes call their collectives in the same order). A [`Storage`] keeps the machines: slots of
//! a scope, or requests on a host's heap.

use super::any::Any;

/// Keeps operations in the order of their starts.
pub trait Storage<'buf> {
    /// Number of operations in flight.
    fn len(&self) -> usize;

    /// Is no operation in flight?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The oldest one.
    fn oldest(&mut self) -> Option<&mut Any<'buf>>;

    /// Removes the oldest one, which is complete.
    fn retire_oldest(&mut self);
}

/// The operations in flight, and whether the oldest one has got its number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct InFlight<S> {
    storage: S,
    started: bool,
}

impl<S> InFlight<S> {
    /// With a storage in which nothing is in flight.
    pub const fn new(storage: S) -> Self {
        Self { storage, started: false }
    }

    /// The storage.
    #[inline]
    pub const fn storage(&self) -> &S {
        &self.storage
    }

    /// The storage, for adding an operation as the youngest one.
    #[inline]
    pub const fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// The oldest will not be moved again: its communicator is poisoned.
    pub const fn give_up(&mut self) {
        self.started = false;
    }

    /// How many operations have no number yet.
    #[inline]
    pub fn unstarted<'buf>(&self) -> u64
    where
        S: Storage<'buf>,
    {
        self.storage.len() as u64 - u64::from(self.started)
    }

    /// Starts the oldest on `on`, unless it is started, and moves it by `advance`, which returns whether it is
    /// complete. Returns false if it is not, or nothing is in flight.
    ///
    /// # Errors
    /// Those of `start` and `advance`.
    #[inline]
    pub fn move_oldest<'buf, C: ?Sized, E>(
        &mut self,
        on: &mut C,
        start: impl FnOnce(&mut C, &mut Any<'buf>) -> Result<(), E>,
        advance: impl FnOnce(&mut C, &mut Any<'buf>) -> Result<bool, E>,
    ) -> Result<bool, E>
    where
        S: Storage<'buf>,
    {
        let Some(oldest) = self.storage.oldest() else { return Ok(false) };
        if !self.started {
            start(on, oldest)?;
            self.started = true;
        }
        let complete = advance(on, oldest)?;
        if complete {
            self.started = false;
            self.storage.retire_oldest();
        }
        Ok(complete)
    }
}
