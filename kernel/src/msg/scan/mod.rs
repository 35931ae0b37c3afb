//! Scan and exscan over messages (MPI 4.1, 7.11).

pub mod chain;
pub mod doubling;
pub mod tree;

use super::named::named;
use super::schedule::either;
use crate::error::Refusal;
use crate::op::Op;
use crate::pattern::Seat;

named! {
    /// The algorithms of scan and exscan. Each applies to any associative op, number of processes and length.
    Algorithm of "scan" {
        /// ⌈log2 p⌉ rounds of whole operands.
        Doubling = "doubling",
        /// From rank to rank, in segments of this many bytes.
        Chain(bytes: u64 from 1) = "chain",
    }
}

either! {
    /// One process's part of a scan or exscan by any algorithm.
    Plan {
        /// Doubling.
        Doubling(doubling::Doubling),
        /// Chain.
        Chain(chain::Chain),
    }
}

/// The part of `seat` in a scan of `bytes` bytes, or in an exscan if `exclusive`.
///
/// # Errors
/// The operand is not a whole number of elements, or too long, or a segment has no bytes.
pub fn plan(
    seat: Seat,
    bytes: u64,
    op: Op,
    in_place: bool,
    exclusive: bool,
    algorithm: Algorithm,
) -> Result<Plan, Refusal> {
    Ok(match algorithm {
        Algorithm::Doubling => doubling::Doubling::new(seat, bytes, op, in_place, exclusive)?.into(),
        Algorithm::Chain(segment) => chain::Chain::new(seat, bytes, op, in_place, exclusive, segment)?.into(),
    })
}
