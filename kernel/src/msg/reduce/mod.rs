//! Reduce over messages (MPI 4.1, 7.9.1). Only the root has a result area; in place it holds the root's operand.

pub mod scatter_gather;
pub mod tree;

use super::named::named;
use super::schedule::either;
use crate::Rank;
use crate::error::Refusal;
use crate::op::Op;
use crate::pattern::Seat;

named! {
    /// The algorithms of a reduce. Each applies to any associative op, number of processes, root and length.
    Algorithm of "reduce" {
        /// All other ranks send to the root.
        Flat = "flat",
        /// A chain of all ranks, in segments of this many bytes.
        Chain(bytes: u64 from 1) = "chain",
        /// A k-nomial tree; k = 2 is binomial.
        Knomial(k: u32 from 2) = "knomial",
        /// A reduce_scatter by recursive halving, then a gather.
        ScatterGather = "scatter-gather",
    }
    "binomial" is Knomial(2)
}

either! {
    /// One process's part of a reduce by any algorithm.
    Plan {
        /// Along a tree.
        Tree(tree::Tributary),
        /// Reduce_scatter and gather.
        ScatterGather(scatter_gather::ScatterGather),
    }
}

/// The part of `seat` in a reduction of `bytes` bytes to `root`.
///
/// # Errors
/// `root` is not a rank of the communicator; the operand is not a whole number of elements, or too long; the tree's
/// arity is too small; a segment has no bytes.
pub fn plan(seat: Seat, bytes: u64, op: Op, root: Rank, in_place: bool, algorithm: Algorithm) -> Result<Plan, Refusal> {
    let along = |shape| tree::Tributary::new(seat, bytes, op, root, in_place, shape).map(Plan::from);
    match algorithm {
        Algorithm::Flat => along(tree::Shape::Flat),
        Algorithm::Chain(segment) => along(tree::Shape::Chain(segment)),
        Algorithm::Knomial(k) => along(tree::Shape::Knomial(k)),
        Algorithm::ScatterGather => Ok(scatter_gather::scatter_gather(seat, bytes, op, root, in_place)?.into()),
    }
}
