//! Broadcast over messages (MPI 4.1, 7.4). The data is in the result area, also at the root.

pub mod binomial;
pub mod scatter_allgather;
pub mod scatter_doubling;
pub mod tree;

use super::named::named;
use super::schedule::either;
use crate::Rank;
use crate::error::Refusal;
use crate::pattern::Seat;
use crate::pattern::tree::Tree;

named! {
    /// The algorithms of a broadcast. Each applies to any number of processes, root and length.
    Algorithm of "bcast" {
        /// The root sends to all other ranks.
        Flat = "flat",
        /// A chain of all ranks, in segments of this many bytes.
        Chain(bytes: u64 from 1) = "chain",
        /// A k-nomial tree; k = 2 is binomial.
        Knomial(k: u32 from 2) = "knomial",
        /// A scatter of slices down a binomial tree, then an allgather round a ring.
        ScatterAllgather = "scatter-allgather",
        /// A scatter by recursive halving, then an allgather by recursive doubling.
        ScatterDoubling = "scatter-doubling",
    }
    "binomial" is Knomial(2)
}

either! {
    /// One process's part of a broadcast by any algorithm.
    Plan {
        /// Along a tree.
        Tree(tree::Pipeline),
        /// Scatter and allgather.
        ScatterAllgather(scatter_allgather::ScatterAllgather),
        /// Scatter and doubling.
        ScatterDoubling(scatter_doubling::ScatterDoubling),
    }
}

/// The part of `seat` in a broadcast of `bytes` bytes from `root`.
///
/// # Errors
/// `root` is not a rank of the communicator; the tree's arity is too small; a segment has no bytes; the message is
/// too long.
pub fn plan(seat: Seat, bytes: u64, root: Rank, algorithm: Algorithm) -> Result<Plan, Refusal> {
    let along = |tree, segment| tree::Pipeline::new(seat, bytes, root, tree, segment).map(Plan::from);
    match algorithm {
        Algorithm::Flat => along(Tree::Flat, u64::MAX),
        Algorithm::Chain(segment) => along(Tree::Chain, segment),
        Algorithm::Knomial(k) => along(Tree::Knomial(k), u64::MAX),
        Algorithm::ScatterAllgather => Ok(scatter_allgather::Spread::then_ring(seat, bytes, root)?.into()),
        Algorithm::ScatterDoubling => Ok(scatter_doubling::scatter_doubling(seat, bytes, root)?.into()),
    }
}
