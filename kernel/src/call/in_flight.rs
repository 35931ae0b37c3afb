//! Operations of a communicator that were started and are not complete, the oldest first.
//!
//! Only the oldest takes part: the next one gets its number when that is done, so that all ranks count alike (MPI 4.1, 7.12:
//! all processes call their collectives in the same order). What keeps the machines is a [`Storage`]: places in a scope, or
//! requests on a host's heap.

use super::any::Any;

/// Keeps operations in the order of their starts.
pub trait Storage<'buf> {
    /// How many are in flight.
    fn len(&self) -> usize;

    /// Is none in flight?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The oldest one.
    fn oldest(&mut self) -> Option<&mut Any<'buf>>;

    /// The oldest one is complete: it is in flight no longer.
    fn retire_oldest(&mut self);
}

/// What is in flight, and whether the oldest has been started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct InFlight<S> {
    storage: S,
    started: bool,
}

impl<S> InFlight<S> {
    /// Nothing is in flight in `storage`.
    pub const fn new(storage: S) -> Self {
        Self { storage, started: false }
    }

    /// What keeps them.
    #[inline]
    pub const fn storage(&self) -> &S {
        &self.storage
    }

    /// What keeps them: new ones go behind all others.
    #[inline]
    pub const fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// The oldest will never be moved again: its communicator is poisoned.
    pub const fn give_up(&mut self) {
        self.started = false;
    }

    /// How many have no number yet.
    #[inline]
    pub fn unstarted<'buf>(&self) -> u64
    where
        S: Storage<'buf>,
    {
        self.storage.len() as u64 - u64::from(self.started)
    }

    /// Starts the oldest on `on`, unless it is started, and moves it by `advance`, which says whether it is complete. False:
    /// it is not, or nothing is in flight.
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
