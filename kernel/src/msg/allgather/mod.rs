//! Allgather and allgatherv over messages (MPI 4.1, 7.7). All ranks know all blocks.

pub mod bagds;
pub mod bruck;
pub mod doubling;

use super::named::{Needs, PlanError, named};
use super::parts::Parts;
use super::ring::Allgather as Ring;
use super::schedule::{Area, either};
use crate::pattern::Seat;
use crate::pattern::bagds::Table;

named! {
    /// How to gather to everyone.
    Algorithm of "allgather" {
        /// Round a ring.
        Ring = "ring",
        /// Bruck's: ⌈log2 p⌉ rounds for any p.
        Bruck = "bruck",
        /// Recursive doubling.
        Doubling = "doubling",
        /// Paper P5's, with a table of stages.
        Bagds = "bagds",
    }
}

impl Algorithm {
    /// Can it serve so many processes, with this table or none?
    ///
    /// # Errors
    /// It needs a power of two of them, or a table.
    pub const fn applicable(self, size: u32, table: Option<&Table<'_>>) -> Result<(), Needs> {
        match self {
            Self::Doubling if !size.is_power_of_two() => Err(Needs::PowerOfTwo(size)),
            Self::Bagds if table.is_none() => Err(Needs::Table),
            _ => Ok(()),
        }
    }
}

either! {
    /// One process's part of an allgather by any algorithm.
    Plan<'a> {
        /// Ring.
        Ring(Ring<'a>),
        /// Bruck's.
        Bruck(bruck::Concatenation<'a>),
        /// Recursive doubling.
        Doubling(doubling::Doubling<'a>),
        /// BAGDS.
        Bagds(bagds::Bagds<'a>),
    }
}

/// The part of `seat` in an allgather of `parts`; in place the own block is in its place.
///
/// # Errors
/// The algorithm does not apply; the table is for another number of processes.
pub fn plan<'a>(
    seat: Seat,
    parts: Parts<'a>,
    in_place: bool,
    algorithm: Algorithm,
    table: Option<Table<'a>>,
) -> Result<Plan<'a>, PlanError> {
    algorithm.applicable(seat.size(), table.as_ref()).map_err(PlanError::of(algorithm))?;
    parts.check(seat)?;
    Ok(match (algorithm, table) {
        (Algorithm::Bruck, _) => bruck::Concatenation::new(seat, parts, in_place).into(),
        (Algorithm::Doubling, _) => doubling::Doubling::new(seat, parts, in_place).into(),
        (Algorithm::Bagds, Some(table)) => bagds::Bagds::new(seat, parts, in_place, table)?.into(),
        _ => Ring::new(seat, parts, (!in_place).then_some(Area::Send)).into(),
    })
}
