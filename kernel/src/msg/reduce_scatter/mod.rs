//! Reduce_scatter and reduce_scatter_block over messages (MPI 4.1, 7.10). All ranks know the lengths of all blocks,
//! which lie one after the other. In place the result area holds the operand; each rank's result goes to the start of
//! the area.

pub mod pairwise;

use super::named::{Needs, PlanError, named};
use super::parts::Parts;
use super::ring::ReduceScatter as Ring;
use super::schedule::{Area, Bytes, either};
use crate::error::Refusal;
use crate::op::Op;
use crate::pattern::Seat;

named! {
    /// The algorithms of a reduce_scatter.
    Algorithm of "reduce_scatter" {
        /// Each rank sends each block of its operand straight to the rank whose result it is for.
        Pairwise = "pairwise",
        /// Partial results go round a ring of all ranks.
        Ring = "ring",
    }
}

impl Algorithm {
    /// Does the algorithm apply to `op`?
    ///
    /// # Errors
    /// The op does not commute, and the algorithm is a ring, which does not fold in rank order.
    pub fn applicable(self, op: &Op) -> Result<(), Needs> {
        match self {
            Self::Ring if !op.commutative() => Err(Needs::Commutative),
            _ => Ok(()),
        }
    }
}

either! {
    /// One process's part of a reduce_scatter by any algorithm.
    Plan<'a> {
        /// Pairwise.
        Pairwise(pairwise::Pairwise<'a>),
        /// Ring.
        Ring(Ring<'a>),
    }
}

/// The part of `seat` in a reduce_scatter of `parts`.
///
/// # Errors
/// The algorithm does not apply; there is not one block per rank; a block is not a whole number of elements.
pub fn plan<'a>(
    seat: Seat,
    parts: Parts<'a>,
    op: Op,
    in_place: bool,
    algorithm: Algorithm,
) -> Result<Plan<'a>, PlanError> {
    algorithm.applicable(&op).map_err(PlanError::of(algorithm))?;
    let source = if in_place { Area::Receive } else { Area::Send };
    Ok(match algorithm {
        Algorithm::Pairwise => pairwise::Pairwise::new(seat, parts, op, in_place)?.into(),
        Algorithm::Ring => {
            check(seat, parts, op)?;
            Ring::new(seat, parts, op, source, 0, u64::MAX).into()
        }
    })
}

/// Checks that there is one block per rank, and that every block is a whole number of elements.
fn check(seat: Seat, parts: Parts<'_>, op: Op) -> Result<(), Refusal> {
    parts.check(seat)?;
    match parts.equally() {
        Some(bytes) => op.count(bytes).map(|_| ()),
        None => (0..seat.size()).try_for_each(|rank| op.count(parts.len(rank)).map(|_| ())),
    }
}

/// The memory that a process needs whose operand lies in `source`.
fn bytes(seat: Seat, parts: Parts<'_>, source: Area, scratch: u64) -> Bytes {
    let (operand, own) = (parts.reach(), parts.len(seat.rank()));
    match source {
        Area::Receive => Bytes { send: 0, receive: operand.max(own), scratch },
        _ => Bytes { send: operand, receive: own, scratch },
    }
}
