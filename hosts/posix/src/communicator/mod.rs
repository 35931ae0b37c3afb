//! Communicators of the processes of a job: the one that [`crate::join()`] returns, and those that are made from it.
//!
//! | file | what |
//! |---|---|
//! | `place` | a process's membership: the members and the memory; dup, split, create group, renew, leave |
//! | `tenancy` | this process's use of the memory, until its last view is dropped |
//! | `commons` | what a process keeps for all its communicators: arenas, descriptors |
//! | `birth`, `part` | the messages by which a communicator is made, and what the ranks conclude from them |
//! | `announcements` | how a group learns of its communicator without a collective |

mod announcements;
mod birth;
mod commons;
mod part;
mod place;
mod tenancy;

pub(crate) use announcements::head;
pub(crate) use commons::Commons;
pub use place::{Place, Usage};
pub(crate) use tenancy::Tenancy;

use crate::error::PosixError;
use crate::{Allocation, Posix};
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use unisono_kernel::Rank;
use unisono_kernel::call::progress::Progress;
use unisono_kernel::comm::Communicator;
use unisono_kernel::error::Refusal;
use unisono_kernel::machine::wait::{Relax, SpinThen};

/// A communicator of processes, to call collectives on, and to make others from (MPI 4.1, 7.4).
///
/// Making one is collective over this communicator; [`Self::create_group`] is collective over the group. Freeing is
/// collective too, but no rank waits for another: each leaves by [`Self::free`] or by dropping its value, and the
/// memory is used again when all have left. Operations in flight borrow the communicator, so it can't be freed while
/// they run.
#[derive(Debug)]
pub struct Intracomm {
    communicator: Communicator<Posix>,
    place: Place,
}

impl Intracomm {
    /// Opens a place, which must not have been opened before.
    pub(crate) fn open(place: Place) -> Result<Self, Refusal> {
        let (host, yields) = (place.host(), place.yields());
        let wait = if yields { SpinThen::crowded(host) } else { SpinThen::spinning(host) };
        Ok(Self { communicator: place.open(place.region(), wait)?, place })
    }

    /// A communicator of the same processes in the same order.
    ///
    /// # Errors
    /// As [`Place::dup`].
    ///
    /// # Standard section
    /// MPI 4.1, 7.4.2.
    pub fn dup(&mut self) -> Result<Self, PosixError> {
        let place = self.place.dup(&mut self.communicator)?;
        Ok(Self::open(place)?)
    }

    /// [`Self::dup`] that also makes progress on `others` while it waits: other processes may wait for operations of
    /// other communicators before they make this call.
    ///
    /// # Errors
    /// As [`Place::dup`].
    pub fn dup_among(&mut self, others: &mut [&mut dyn Progress]) -> Result<Self, PosixError> {
        let place = self.place.dup_among(&mut self.communicator, others)?;
        Ok(Self::open(place)?)
    }

    /// A communicator of the ranks that pass the same color, in the order of their keys, then of their ranks here;
    /// `None` on a rank that passes no color (MPI_UNDEFINED).
    ///
    /// # Errors
    /// As [`Place::split`].
    ///
    /// # Standard section
    /// MPI 4.1, 7.4.2.
    pub fn split(&mut self, color: Option<u32>, key: i64) -> Result<Option<Self>, PosixError> {
        let place = self.place.split(&mut self.communicator, color, key)?;
        Ok(place.map(Self::open).transpose()?)
    }

    /// [`Self::split`] that also makes progress on `others` while it waits, as [`Self::dup_among`].
    ///
    /// # Errors
    /// As [`Place::split`].
    pub fn split_among(
        &mut self,
        color: Option<u32>,
        key: i64,
        others: &mut [&mut dyn Progress],
    ) -> Result<Option<Self>, PosixError> {
        let place = self.place.split_among(&mut self.communicator, color, key, others)?;
        Ok(place.map(Self::open).transpose()?)
    }

    /// A communicator of these ranks, in this order. Only they call.
    ///
    /// # Errors
    /// As [`Place::create_group`].
    ///
    /// # Standard section
    /// MPI 4.1, 7.4.2.
    pub fn create_group(&mut self, ranks: &[Rank], tag: u32) -> Result<Self, PosixError> {
        Ok(Self::open(self.place.create_group(ranks, tag)?)?)
    }

    /// Replaces this communicator, after a failure that all ranks survived, by one of the same ranks on other memory.
    /// All ranks call, each after an operation has returned the error to it; a rank that had completed the failed
    /// operation gets the error from its next one. Operations in flight are lost, and their requests. The error has the
    /// number of the failed operation ([`unisono_kernel::error::Poison`]).
    ///
    /// # Errors
    /// As [`Place::renew`]; the communicator is unchanged then.
    pub fn renew(&mut self) -> Result<(), PosixError> {
        *self = Self::open(self.place.renew()?)?;
        Ok(())
    }

    /// Frees the communicator in this process, without waiting for other ranks; the same as dropping it.
    ///
    /// # Standard section
    /// MPI 4.1, 7.4.3.
    pub fn free(self) {}

    /// Sets the longest wait here, and in communicators that are made from this one from now on. `None`: no bound; only
    /// a peer's death ends a wait with an error.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.communicator.wait_policy().host.set_bound(timeout);
        self.place.set_timeout(timeout);
    }

    /// Memory for data that the members of any communicator of the job read where it lies.
    ///
    /// # Errors
    /// As [`Allocation::new`].
    pub fn allocate(&self, bytes: usize) -> Result<Allocation, PosixError> {
        Allocation::new(bytes)
    }

    /// Its members and its memory.
    pub const fn place(&self) -> &Place {
        &self.place
    }
}

impl Deref for Intracomm {
    type Target = Communicator<Posix>;

    fn deref(&self) -> &Self::Target {
        &self.communicator
    }
}

impl DerefMut for Intracomm {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.communicator
    }
}

impl Drop for Intracomm {
    fn drop(&mut self) {
        let comm = self.communicator.comm();
        // A caller may have swapped two communicators' kernel parts: another one's counts say nothing of this memory.
        let end = comm.end().filter(|_| comm.region().is(&self.place.region()));
        self.place.leave(end);
    }
}
