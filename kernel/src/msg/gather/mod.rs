//! Gather and gatherv over messages (MPI 4.1, 7.5). Only the root has a result area.

pub mod binomial;
pub mod linear;

use super::named::{Needs, PlanError, named};
use super::parts::Parts;
use super::schedule::either;
use crate::Rank;
use crate::pattern::Seat;

named! {
    /// How to gather.
    Algorithm of "gather" {
        /// A message per process, to the root.
        Linear = "linear",
        /// Along a binomial tree.
        Binomial = "binomial",
    }
}

impl Algorithm {
    /// Can it move these blocks?
    ///
    /// # Errors
    /// Where blocks vary, only the root knows how long they are, and nobody can pass on another one's.
    pub const fn applicable(self, parts: &Parts<'_>) -> Result<(), Needs> {
        match self {
            Self::Binomial if !parts.is_equal() => Err(Needs::EqualBlocks),
            _ => Ok(()),
        }
    }
}

either! {
    /// One process's part of a gather by any algorithm.
    Plan<'a> {
        /// Linear.
        Linear(linear::Linear<'a>),
        /// Binomial.
        Binomial(binomial::Binomial),
    }
}

/// The part of `seat` in a gather to `root`: `own` bytes of its own, the root's `parts`. Whether the blocks are equal
/// all ranks say alike.
///
/// # Errors
/// The algorithm does not apply; `root` is no rank; the own block has two lengths.
pub fn plan<'a>(
    seat: Seat,
    own: u64,
    parts: Parts<'a>,
    root: Rank,
    in_place: bool,
    algorithm: Algorithm,
) -> Result<Plan<'a>, PlanError> {
    algorithm.applicable(&parts).map_err(PlanError::of(algorithm))?;
    Ok(match algorithm {
        Algorithm::Linear => linear::Linear::new(seat, own, parts, root, in_place)?.into(),
        Algorithm::Binomial => binomial::Binomial::new(seat, own, root, in_place)?.into(),
    })
}
