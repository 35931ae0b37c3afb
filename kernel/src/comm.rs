//! A communicator as one process sees it: the region, and private state with counts that are equal on all ranks.
//!
//! | file | what |
//! |---|---|
//! | `member` | this process's rank, and what it has counted |
//! | `history` | the collectives that it has called |
//! | `heads` | what the heads of other processes' lines say of theirs |
//! | `divergence` | ranks that call different collectives |
//! | `communicator` | all of it with a wait policy: the object that has the calls |

mod communicator;
pub(crate) mod divergence;
pub(crate) mod heads;
pub(crate) mod history;
pub(crate) mod member;

pub use communicator::Communicator;
pub use member::Member;

use crate::Rank;
use crate::error::{Poison, Refusal, WaitError};
use crate::machine::poll::{Source, WaitSet};
use crate::machine::transport::{Observe, Shared};
use crate::region::{Base, Counter, Flag, Layout, Mailword, Region, state};

/// The context of shared-memory machines: a region and a member.
#[derive(Clone, Debug)]
pub struct Comm<R> {
    region: R,
    member: Member,
}

impl<R: Region> Comm<R> {
    /// Process `rank` on a fresh segment that has this layout.
    ///
    /// # Errors
    /// `rank` is not below the layout's number of ranks.
    pub fn new(region: R, layout: Layout, rank: Rank) -> Result<Self, Refusal> {
        Self::resume(region, layout, rank, Base::default())
    }

    /// The same on the memory of an earlier communicator: see [`Member::resume`].
    ///
    /// # Errors
    /// As [`Member::resume`].
    pub fn resume(region: R, layout: Layout, rank: Rank, base: Base) -> Result<Self, Refusal> {
        Ok(Self { region, member: Member::resume(layout, rank, base)? })
    }

    /// This process's counts, if it has finished all operations that it started and the communicator is not poisoned.
    /// The next communicator on this memory may start from them.
    pub fn end(&self) -> Option<Base> {
        let (base, done) = (self.member.base(), self.member.layout().done(self.member.rank()));
        let finished = self.region.flag(done).load_acquire().is(base.operation);
        (finished && state::look(&self.region, self.member.layout()).is_none()).then_some(base)
    }

    /// A process with private state that was saved: a checker restores a snapshot with it.
    pub const fn with_member(region: R, member: Member) -> Self {
        Self { region, member }
    }

    /// The private state.
    #[inline]
    pub const fn member(&self) -> &Member {
        &self.member
    }

    /// The private state, for building machines on it.
    #[inline]
    pub const fn member_mut(&mut self) -> &mut Member {
        &mut self.member
    }

    /// The region.
    #[inline]
    pub const fn region(&self) -> &R {
        &self.region
    }

    /// Poisons the communicator; returns the poison that counts (the first).
    pub fn poison_with(&self, poison: Poison) -> Poison {
        state::poison(&self.region, self.member.layout(), self.member.rank(), poison)
    }

    /// Has `peer` itself waited long in this process's operation or a later one? Then `peer` is not late.
    pub fn waits(&self, peer: Rank) -> bool {
        peer < self.member.size() && self.member.waits(&self.region, peer)
    }

    /// Has the awaited word reached its value?
    #[inline]
    fn holds(&self, source: Source) -> bool {
        match source {
            Source::Flag(id, until) => until.holds(self.region.flag(id).load_acquire().unchecked()),
            Source::Mail(id, until) => until.holds(self.region.mail(id).peek_acquire().unchecked()),
            Source::Counter(id, until) => until.holds(self.region.counter(id).load_acquire().unchecked()),
            // Only a poll can tell.
            Source::Message(_) => true,
        }
    }
}

impl<R: Region> Shared for Comm<R> {
    type Region = R;
    #[inline]
    fn shared(&mut self) -> (&R, &mut Member) {
        (&self.region, &mut self.member)
    }
}

impl<R: Region> Observe for Comm<R> {
    #[inline]
    fn ready(&mut self, on: &WaitSet) -> bool {
        on.iter().any(|event| self.holds(event.source))
    }
    #[inline]
    fn idle(&mut self) {
        self.member.idle(&self.region);
    }
    #[inline]
    fn poison(&self) -> Option<Poison> {
        state::look(&self.region, self.member.layout())
    }
    fn compare(&mut self) -> Result<(), WaitError> {
        self.member.compare(&self.region)
    }
    fn late(&self, peer: Option<Rank>) -> Rank {
        let done = |rank: Rank| self.region.flag(self.member.layout().done(rank)).load_acquire().unchecked();
        // A rank that waits itself is not late. Of the others, the one that has finished the fewest operations is.
        let others = self.member.peers().filter(|&rank| !self.waits(rank));
        let awaited = peer.filter(|&peer| !self.waits(peer));
        awaited.or_else(|| others.min_by_key(|&rank| done(rank))).or(peer).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
