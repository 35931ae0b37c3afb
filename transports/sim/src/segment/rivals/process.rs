//! One rank of a rival: the words and bytes of the segment, each access charged as those of our algorithms are.

use super::Done;
use crate::segment::Simulated;
use crate::segment::region::{SimWord, View};
use crate::segment::turns::Clock;
use std::fmt;
use unisono_kernel::Rank;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::WaitError;
use unisono_kernel::machine::poll::Until;
use unisono_kernel::op::Op;
use unisono_kernel::region::{Counter, CounterId, Extent, Flag, FlagId, Layout, MailId, Region};

/// A word of the segment, of whichever kind the layout calls it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Id {
    Flag(FlagId),
    Mail(MailId),
    Counter(CounterId),
}

impl From<FlagId> for Id {
    fn from(id: FlagId) -> Self {
        Self::Flag(id)
    }
}

impl From<MailId> for Id {
    fn from(id: MailId) -> Self {
        Self::Mail(id)
    }
}

impl From<CounterId> for Id {
    fn from(id: CounterId) -> Self {
        Self::Counter(id)
    }
}

pub(super) struct Process {
    view: View,
    pub(super) layout: Layout,
    clock: Clock,
    pub(super) rank: Rank,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("rank", &self.rank).finish_non_exhaustive()
    }
}

impl Process {
    pub(super) fn new(communicator: &Communicator<Simulated>, clock: Clock) -> Self {
        let comm = communicator.comm();
        Self { view: comm.region().clone(), layout: *comm.member().layout(), clock, rank: comm.member().rank() }
    }

    pub(super) const fn size(&self) -> u32 {
        self.layout.ranks()
    }

    fn word(&self, id: Id) -> (&SimWord, u64) {
        match id {
            Id::Flag(id) => (self.view.flag(id), id.offset()),
            Id::Mail(id) => (self.view.mail(id), id.offset()),
            Id::Counter(id) => (self.view.counter(id), id.offset()),
        }
    }

    pub(super) fn store(&self, id: impl Into<Id>, value: u64) {
        Flag::store_release(self.word(id.into()).0, value);
    }

    /// Adds atomically.
    pub(super) fn add(&self, id: impl Into<Id>, n: u64) {
        self.word(id.into()).0.fetch_add(n);
    }

    /// Subtracts atomically.
    pub(super) fn subtract(&self, id: impl Into<Id>, n: u64) {
        self.word(id.into()).0.fetch_sub(n);
    }

    /// Waits for a word that `peer` stores; returns its value.
    pub(super) fn wait(&self, id: impl Into<Id>, until: Until, peer: Rank) -> Result<u64, WaitError> {
        let (word, offset) = self.word(id.into());
        loop {
            let value = Flag::load_acquire(word).unchecked();
            if until.holds(value) {
                return Ok(value);
            }
            if !self.clock.sleep([Some((offset, until)), None]) {
                return Err(WaitError::Late(peer));
            }
        }
    }

    /// Waits until a word is at least `value`.
    pub(super) fn reaches(&self, id: impl Into<Id>, value: u64, peer: Rank) -> Done {
        self.wait(id, Until::AtLeast(value), peer).map(drop)
    }

    pub(super) fn write(&self, at: Extent, bytes: &[u8]) {
        // SAFETY: the algorithm's words exclude that another rank uses the extent now, and one rank runs at a time.
        unsafe { self.view.write(at, Buf::of(bytes)) }
    }

    pub(super) fn read(&self, at: Extent, bytes: &mut [u8]) {
        // SAFETY: as above; `bytes` is a mutable borrow.
        unsafe { self.view.read(at, Buf::of_mut(bytes)) }
    }

    /// Folds the segment's elements into `acc`.
    pub(super) fn fold(&self, at: Extent, acc: &mut [u8], op: &Op) {
        // SAFETY: as above.
        unsafe { self.view.fold(at, Buf::of_mut(acc), op) }
    }

    /// Folds private elements into `acc`.
    pub(super) fn fold_private(&self, left: &[u8], acc: &mut [u8], op: &Op) {
        // SAFETY: two borrows, one of them mutable, do not overlap.
        unsafe { self.view.fold_private(Buf::of(left), Buf::of_mut(acc), op) }
    }

    /// This rank has these bytes at `at`, in its cache: nothing is charged.
    pub(super) fn has(&self, at: Extent, bytes: &[u8]) {
        self.view.has(at, bytes);
    }

    /// The bytes at `at`, which this rank uses where they lie: nothing is charged.
    pub(super) fn look(&self, at: Extent, bytes: &mut [u8]) {
        self.view.look(at, bytes);
    }
}
