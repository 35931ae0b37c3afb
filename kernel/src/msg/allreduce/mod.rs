//! Allreduce over messages (MPI 4.1, 7.9.6). All ranks get the same bits.

pub mod doubling;
pub mod rabenseifner;
pub mod ring;

use super::named::{Needs, PlanError, named};
use super::schedule::either;
use crate::op::Op;
use crate::pattern::Seat;

named! {
    /// The algorithms of an allreduce.
    Algorithm of "allreduce" {
        /// Recursive doubling.
        Doubling = "doubling",
        /// Reduce_scatter and allgather round a ring.
        Ring = "ring",
        /// The same in segments of this many bytes; each is folded while the next one travels.
        SegmentedRing(bytes: u64 from 1) = "segmented-ring",
        /// Reduce_scatter by halving, allgather by doubling.
        Rabenseifner = "rabenseifner",
    }
}

impl Algorithm {
    /// Does the algorithm apply to `op`?
    ///
    /// # Errors
    /// The op does not commute, and the algorithm is a ring, which does not fold in rank order.
    pub fn applicable(self, op: &Op) -> Result<(), Needs> {
        match self {
            Self::Ring | Self::SegmentedRing(_) if !op.commutative() => Err(Needs::Commutative),
            _ => Ok(()),
        }
    }
}

either! {
    /// One process's part of an allreduce by any algorithm.
    Plan {
        /// Recursive doubling.
        Doubling(doubling::Doubling),
        /// Ring, in segments or not.
        Ring(ring::Ring),
        /// Rabenseifner's algorithm.
        Rabenseifner(rabenseifner::Rabenseifner),
    }
}

/// The part of `seat` in an allreduce of `bytes` bytes.
///
/// # Errors
/// The algorithm does not apply; the operand is not a whole number of elements, or too long; a segment has no bytes.
pub fn plan(seat: Seat, bytes: u64, op: Op, in_place: bool, algorithm: Algorithm) -> Result<Plan, PlanError> {
    algorithm.applicable(&op).map_err(PlanError::of(algorithm))?;
    Ok(match algorithm {
        Algorithm::Doubling => doubling::doubling(seat, bytes, op, in_place)?.into(),
        Algorithm::Ring => ring::ring(seat, bytes, op, in_place, u64::MAX)?.into(),
        Algorithm::SegmentedRing(segment) => ring::ring(seat, bytes, op, in_place, segment)?.into(),
        Algorithm::Rabenseifner => rabenseifner::rabenseifner(seat, bytes, op, in_place)?.into(),
    })
}
