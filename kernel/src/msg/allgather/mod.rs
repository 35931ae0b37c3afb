//! Allgather and allgatherv over messages (MPI 4.1, 7.7). All ranks know the lengths of all blocks.

pub mod bagds;
pub mod bruck;
pub mod doubling;
pub mod linear;

use super::named::{Needs, PlanError, named};
use super::parts::Parts;
use super::ring::Allgather as Ring;
use super::schedule::{Area, either};
use crate::pattern::Seat;
use crate::pattern::bagds::Table;

named! {
    /// The algorithms of an allgather.
    Algorithm of "allgather" {
        /// Blocks go round a ring of all ranks.
        Ring = "ring",
        /// Bruck's algorithm: ⌈log2 p⌉ rounds for any p.
        Bruck = "bruck",
        /// Recursive doubling, for a power of two of ranks.
        Doubling = "doubling",
        /// BAGDS of paper P5, with a table of stages.
        Bagds = "bagds",
        /// Each block goes straight to every rank: P5's direct exchange.
        Linear = "linear",
    }
}

impl Algorithm {
    /// Does the algorithm apply to `size` processes, with a table of stages or without one?
    ///
    /// # Errors
    /// It needs a power of two of processes, or a table.
    pub const fn applicable(self, size: u32, stages: bool) -> Result<(), Needs> {
        match self {
            Self::Doubling if !size.is_power_of_two() => Err(Needs::PowerOfTwo(size)),
            Self::Bagds if !stages => Err(Needs::Table),
            _ => Ok(()),
        }
    }
}

either! {
    /// One process's part of an allgather by any algorithm.
    Plan<'a> {
        /// Ring.
        Ring(Ring<'a>),
        /// Bruck's algorithm.
        Bruck(bruck::Concatenation<'a>),
        /// Recursive doubling.
        Doubling(doubling::Doubling<'a>),
        /// BAGDS.
        Bagds(bagds::Bagds<'a>),
        /// Direct.
        Linear(linear::Linear<'a>),
    }
}

/// The part of `seat` in an allgather of `parts`. In place, this rank's block is in the result area already.
///
/// # Errors
/// The algorithm does not apply; there is not one block per rank; the table is for another number of processes.
pub fn plan<'a>(
    seat: Seat,
    parts: Parts<'a>,
    in_place: bool,
    algorithm: Algorithm,
    table: Option<Table<'a>>,
) -> Result<Plan<'a>, PlanError> {
    algorithm.applicable(seat.size(), table.is_some()).map_err(PlanError::of(algorithm))?;
    parts.check(seat)?;
    Ok(match (algorithm, table) {
        (Algorithm::Bruck, _) => bruck::Concatenation::new(seat, parts, in_place).into(),
        (Algorithm::Doubling, _) => doubling::Doubling::new(seat, parts, in_place).into(),
        (Algorithm::Linear, _) => linear::Linear::new(seat, parts, in_place).into(),
        (Algorithm::Bagds, Some(table)) => bagds::Bagds::new(seat, parts, in_place, table)?.into(),
        _ => Ring::new(seat, parts, (!in_place).then_some(Area::Send)).into(),
    })
}
