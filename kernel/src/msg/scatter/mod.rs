//! Scatter and scatterv over messages (MPI 4.1, 7.6). Only the root has an input.

pub mod binomial;
pub mod linear;

use super::named::{Needs, PlanError, named};
use super::parts::Parts;
use super::schedule::either;
use crate::Rank;
use crate::pattern::Seat;

named! {
    /// The algorithms of a scatter.
    Algorithm of "scatter" {
        /// A message from the root to each rank.
        Linear = "linear",
        /// Down a binomial tree.
        Binomial = "binomial",
    }
}

impl Algorithm {
    /// Does the algorithm apply to these blocks?
    ///
    /// # Errors
    /// A tree needs equal blocks: if they vary, only the root knows their lengths, so no other rank can pass them on.
    pub const fn applicable(self, parts: &Parts<'_>) -> Result<(), Needs> {
        match self {
            Self::Binomial if !parts.is_equal() => Err(Needs::EqualBlocks),
            _ => Ok(()),
        }
    }
}

either! {
    /// One process's part of a scatter by any algorithm.
    Plan<'a> {
        /// Linear.
        Linear(linear::Linear<'a>),
        /// Binomial.
        Binomial(binomial::Binomial),
    }
}

/// The part of `seat` in a scatter from `root`: this rank's block has `own` bytes; the lengths in `parts` are
/// significant only at the root, but all ranks must agree on whether the blocks are equal.
///
/// # Errors
/// The algorithm does not apply; `root` is not a rank of the communicator; at the root there is not one block per
/// rank, or `own` differs from its block's length.
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
