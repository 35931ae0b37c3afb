//! Alltoall and alltoallv over messages (MPI 4.1, 7.8).

pub mod bruck;
pub mod direct;

use super::named::{Needs, PlanError, named};
use super::parts::Parts;
use super::schedule::either;
use crate::error::{Argument, Bound, Refusal};
use crate::pattern::Seat;

named! {
    /// The algorithms of an alltoall.
    Algorithm of "alltoall" {
        /// All messages in one round.
        Linear = "linear",
        /// One exchange per round.
        Pairwise = "pairwise",
        /// Bruck's algorithm: ⌈log2 p⌉ rounds.
        Bruck = "bruck",
    }
}

impl Algorithm {
    /// Does the algorithm apply to these blocks?
    ///
    /// # Errors
    /// Bruck's algorithm needs equal blocks: no rank knows the lengths of blocks between others, so it can't pass
    /// these on.
    pub const fn applicable(self, parts: &Parts<'_>) -> Result<(), Needs> {
        match self {
            Self::Bruck if !parts.is_equal() => Err(Needs::EqualBlocks),
            _ => Ok(()),
        }
    }
}

either! {
    /// One process's part of an alltoall by any algorithm.
    Plan<'a> {
        /// Linear and pairwise.
        Direct(direct::Direct<'a>),
        /// Bruck's algorithm.
        Bruck(bruck::Bruck<'a>),
    }
}

/// The part of `seat` in an alltoall from blocks `send` to blocks `receive`; `send` is `None` in place.
///
/// # Errors
/// The algorithm does not apply; there is not one block per rank; this rank's blocks for itself differ in length.
pub fn plan<'a>(
    seat: Seat,
    send: Option<Parts<'a>>,
    receive: Parts<'a>,
    algorithm: Algorithm,
) -> Result<Plan<'a>, PlanError> {
    for parts in [send, Some(receive)].iter().flatten() {
        parts.check(seat)?;
        algorithm.applicable(parts).map_err(PlanError::of(algorithm))?;
    }
    let direct = |pairwise| direct::Direct::new(seat, send, receive, pairwise);
    Ok(match algorithm {
        Algorithm::Linear => direct(false)?.into(),
        Algorithm::Pairwise => direct(true)?.into(),
        Algorithm::Bruck => {
            let (block, sent) = (receive.len(0), send.unwrap_or(receive).len(0));
            Refusal::check(Argument::Bytes, sent, Bound::Equals(block))?;
            bruck::Bruck::new(seat, receive, send.is_none()).into()
        }
    })
}
