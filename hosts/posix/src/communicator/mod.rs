//! Communicators of the processes of a job: the one that [`crate::join()`] answers, and those that follow from it.
//!
//! | file | what |
//! |---|---|
//! | `place` | who belongs together, on which memory; dup, split, create group, renew, leave |
//! | `tenancy` | a process's time on its memory: until the last view of it goes |
//! | `commons` | what a process keeps for all of them: arenas, descriptors |
//! | `birth`, `part` | the words that are told, and what follows from them |
//! | `announcements` | how a group is told without a collective |

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

use crate::Posix;
use crate::error::PosixError;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use unisono_kernel::Rank;
use unisono_kernel::call::progress::Progress;
use unisono_kernel::comm::Communicator;
use unisono_kernel::error::Refusal;
use unisono_kernel::machine::wait::{Relax, SpinThen};

/// A communicator of processes, to call collectives on, and to make others from (MPI 4.1, 7.4).
///
/// Making one is collective, except [`Self::create_group`]; so is freeing, in MPI's sense, but nobody waits: each member
/// leaves for itself, by [`Self::free`] or by dropping it, and the memory is used again when all have. Operations in flight
/// borrow the communicator: it can't be freed under them.
#[derive(Debug)]
pub struct Intracomm {
    communicator: Communicator<Posix>,
    place: Place,
}

impl Intracomm {
    /// On a place that nobody has opened.
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

    /// [`Self::dup`] that moves `others` meanwhile: other processes may wait for operations of other communicators before
    /// they come to this call.
    ///
    /// # Errors
    /// As [`Place::dup`].
    pub fn dup_among(&mut self, others: &mut [&mut dyn Progress]) -> Result<Self, PosixError> {
        let place = self.place.dup_among(&mut self.communicator, others)?;
        Ok(Self::open(place)?)
    }

    /// A communicator of those who say the same color, in the order of their keys, then of their ranks here; `None` for who
    /// says no color.
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

    /// [`Self::split`] that moves `others` meanwhile, as [`Self::dup_among`].
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

    /// A communicator of these ranks, in this order, who alone call.
    ///
    /// # Errors
    /// As [`Place::create_group`].
    ///
    /// # Standard section
    /// MPI 4.1, 7.4.2.
    pub fn create_group(&mut self, ranks: &[Rank], tag: u32) -> Result<Self, PosixError> {
        Ok(Self::open(self.place.create_group(ranks, tag)?)?)
    }

    /// Goes on, with the same ranks on other memory, after a failure that all survived. All ranks call, once each has its
    /// error: who has finished the operation in which it happened has one at its next operation. What was in flight is lost,
    /// requests too; the operation that failed has a number in its error ([`unisono_kernel::error::Poison`]).
    ///
    /// # Errors
    /// As [`Place::renew`]: the communicator is as before.
    pub fn renew(&mut self) -> Result<(), PosixError> {
        *self = Self::open(self.place.renew()?)?;
        Ok(())
    }

    /// This process is done with the communicator. Waits for nobody; the same as dropping it.
    ///
    /// # Standard section
    /// MPI 4.1, 7.4.3.
    pub fn free(self) {}

    /// Bounds each wait here, and in communicators that are made from this one from now on; `None`: wait for the living
    /// for ever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.communicator.wait_policy().host.set_bound(timeout);
        self.place.set_timeout(timeout);
    }

    /// Where it stands: members, memory.
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
        // Two communicators may have been swapped: another one's end says nothing of this memory.
        let end = comm.end().filter(|_| comm.region().is(&self.place.region()));
        self.place.leave(end);
    }
}
