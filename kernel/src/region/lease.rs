//! A communicator's term on its memory: which ranks have left it, and from which counts the next communicator there
//! starts.
//!
//! | word | writer | reader | value | what it publishes |
//! |---|---|---|---|---|
//! | `left(r)` | r | the owner of the memory | the term's epoch · 2³² + a digest of r's last counts | all that r did in the term |
//!
//! Control words only grow, so memory goes from one communicator to the next as it is, warm and without a store: the
//! next one counts on from the last one's counts ([`Base`]). The owner may pass it on so only after every member has
//! left ([`first_present`]), all of them with the same counts, and if the communicator was not poisoned
//! ([`ended_alike`]); else the memory is made zero, and counts start at 0. So no word of the term before is ahead of
//! the base, and no member of that term reads any more: lines and slots are all free (docs/explanation/memory-model.md,
//! R10). Members of the next term get it from the owner, and so all that happened in the last term happens before; a
//! rank may then be another process.

use super::layout::MAX_RANKS;
use super::{Flag, Layout, Region, state};
use crate::Rank;
use crate::error::{Argument, Bound, Refusal};

/// The counts at which a communicator starts or ends, equal on all its ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Base {
    /// Operations.
    pub operation: u64,
    /// Fragments of the queues: the fragment clock.
    pub clock: u64,
    /// The papers' sets.
    pub sets: u64,
    /// Central counter barriers.
    pub centrals: u64,
}

impl Base {
    /// Counts from here on are not continued, so that every communicator can count as far as it ever needs.
    pub const MOST: u64 = 1 << 62;
    /// The same for central barriers, in each of which all ranks count.
    pub const MOST_CENTRALS: u64 = Self::MOST / MAX_RANKS as u64;

    /// The value of the central barrier's counter at these counts. A check that starts a communicator from these counts
    /// on zeroed memory must store it; all other words may be zero.
    pub const fn arrivals(&self, ranks: u32) -> u64 {
        self.centrals.wrapping_mul(ranks as u64)
    }

    /// A digest of the counts; never 0.
    fn digest(&self) -> u64 {
        let Self { operation, clock, sets, centrals } = *self;
        let mixed = [operation, clock, sets, centrals].into_iter().fold(0xcbf2_9ce4_8422_2325_u64, |mixed, word| {
            (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        });
        (mixed >> 32) | 1
    }

    /// May a communicator start from these counts? A process that is told of a base checks it first.
    ///
    /// # Errors
    /// A count is larger than a communicator can reach.
    pub fn check(self) -> Result<Self, Refusal> {
        let Self { operation, clock, sets, centrals } = self;
        for (count, most) in [operation, clock, sets]
            .map(|count| (count, Self::MOST))
            .into_iter()
            .chain([(centrals, Self::MOST_CENTRALS)])
        {
            Refusal::check(Argument::Base, count, Bound::Below(most))?;
        }
        Ok(self)
    }
}

/// One communicator's time on its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// Its number since the memory was zero; the first is 1.
    pub epoch: u32,
    /// The counts at which it starts.
    pub base: Base,
}

impl Term {
    /// The first on zeroed memory.
    pub const FIRST: Self = Self { epoch: 1, base: Base { operation: 0, clock: 0, sets: 0, centrals: 0 } };

    /// The next term, if this one ended with the counts `end`. `None`: the memory must be made zero.
    pub fn next(self, end: Base) -> Option<Self> {
        Some(Self { epoch: self.epoch.checked_add(1)?, base: end.check().ok()? })
    }
}

/// Stores that `rank` has left this term. `end`: its counts, if it finished all operations that it started.
// publishes: all accesses of this rank to the memory, to the owner that reuses it
pub fn leave<R: Region>(region: &R, layout: &Layout, rank: Rank, epoch: u32, end: Option<Base>) {
    let digest = end.map_or(0, |end| end.digest());
    region.flag(layout.left(rank)).store_release(u64::from(epoch) << 32 | digest);
}

/// The first rank from `first` on that has not left this term.
// pairs with: leave
pub fn first_present<R: Region>(region: &R, layout: &Layout, epoch: u32, first: Rank) -> Option<Rank> {
    let has_left = |rank| region.flag(layout.left(rank)).load_acquire().at_least(u64::from(epoch) << 32);
    (first..layout.ranks()).find(|&rank| !has_left(rank))
}

/// Have all ranks left this term with the counts `end`, and without a poison? To be called when [`first_present`] is
/// `None`.
pub fn ended_alike<R: Region>(region: &R, layout: &Layout, epoch: u32, end: Base) -> bool {
    let wanted = u64::from(epoch) << 32 | end.digest();
    let alike = |rank| region.flag(layout.left(rank)).load_acquire().is(wanted);
    state::look(region, layout).is_none() && (0..layout.ranks()).all(alike)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_differ_have_digests_that_do() {
        let base = |operation, clock| Base { operation, clock, ..Base::default() };
        let digests = [base(0, 0), base(1, 0), base(0, 1), base(1, 1), base(2, 1 << 24), base(1 << 24, 2)];
        for (at, one) in digests.iter().enumerate() {
            assert_eq!(one.digest() % 2, 1, "and so never 0");
            assert!(one.digest() < 1 << 32);
            assert!(digests[..at].iter().all(|other| other.digest() != one.digest()), "{one:?}");
        }
    }

    #[test]
    fn what_counted_too_far_is_not_continued() {
        let end = Base { operation: 7, ..Base::default() };
        assert_eq!(Term::FIRST.next(end), Some(Term { epoch: 2, base: end }));
        assert_eq!(Term { epoch: u32::MAX, base: end }.next(end), None);
        for most in [1 << 62, u64::MAX] {
            for beyond in [
                Base { operation: most, ..end },
                Base { clock: most, ..end },
                Base { sets: most, ..end },
                Base { centrals: most >> 20, ..end },
            ] {
                assert_eq!(Term::FIRST.next(beyond), None, "{beyond:?}");
            }
        }
        let last =
            Base { operation: (1 << 62) - 1, clock: (1 << 62) - 1, sets: (1 << 62) - 1, centrals: (1 << 42) - 1 };
        assert_eq!(Term::FIRST.next(last), Some(Term { epoch: 2, base: last }));
    }

    #[test]
    fn counts_go_to_2_62_and_those_of_all_ranks_no_further() {
        assert_eq!((Base::MOST, Base::MOST_CENTRALS * u64::from(MAX_RANKS)), (0x4000_0000_0000_0000, Base::MOST));
    }
}
