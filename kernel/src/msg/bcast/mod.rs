//! Broadcast over messages (MPI 4.1, 7.4). The data is in the result area, at the root too.

pub mod binomial;
pub mod scatter_allgather;
pub mod tree;

use super::name::{self, Named};
use super::schedule::either;
use crate::Rank;
use crate::error::Refusal;
use crate::pattern::Seat;
use crate::pattern::tree::Tree;

/// How to broadcast. Each applies to any number of processes, root and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// The root sends to everyone.
    Flat,
    /// A pipeline of segments of so many bytes.
    Chain(u64),
    /// A k-nomial tree; binomial is 2.
    Knomial(u32),
    /// Slices down a binomial tree, then round a ring.
    ScatterAllgather,
}

impl Named for Algorithm {
    /// Names: `flat`, `chain-BYTES`, `knomial-K`, `binomial`, `scatter-allgather`.
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "flat" => Self::Flat,
            "binomial" => Self::Knomial(2),
            "scatter-allgather" => Self::ScatterAllgather,
            _ if name.starts_with("chain-") => Self::Chain(name::number(name, "chain-", 1)?),
            _ => Self::Knomial(name::number(name, "knomial-", 2)?),
        })
    }

    fn name(self) -> (&'static str, Option<u64>) {
        match self {
            Self::Flat => ("flat", None),
            Self::Chain(segment) => ("chain", Some(segment)),
            Self::Knomial(k) => ("knomial", Some(k.into())),
            Self::ScatterAllgather => ("scatter-allgather", None),
        }
    }
}

either! {
    /// One process's part of a broadcast by any algorithm.
    Plan {
        /// Along a tree.
        Tree(tree::Pipeline),
        /// Scatter and allgather.
        ScatterAllgather(scatter_allgather::ScatterAllgather),
    }
}

/// The part of `seat` in a broadcast of `bytes` bytes from `root`.
///
/// # Errors
/// `root` is no rank; a tree has no such arity, a segment no bytes.
pub fn plan(seat: Seat, bytes: u64, root: Rank, algorithm: Algorithm) -> Result<Plan, Refusal> {
    let along = |tree, segment| tree::Pipeline::new(seat, bytes, root, tree, segment).map(Plan::from);
    match algorithm {
        Algorithm::Flat => along(Tree::Flat, u64::MAX),
        Algorithm::Chain(segment) => along(Tree::Chain, segment),
        Algorithm::Knomial(k) => along(Tree::Knomial(k), u64::MAX),
        Algorithm::ScatterAllgather => Ok(scatter_allgather::Spread::then_ring(seat, bytes, root)?.into()),
    }
}
