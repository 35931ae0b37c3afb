//! Barriers over messages (MPI 4.1, 7.3; paper P4).

pub mod butterfly;
pub mod hops;
pub mod tree;

use super::named::named;
use super::schedule::either;
use crate::error::Refusal;
use crate::pattern::bruck::Bruck;
use crate::pattern::dissemination::Dissemination;
use crate::pattern::tree::Tree;
use crate::pattern::{Seat, butterfly::Butterfly};

named! {
    /// The algorithms of a barrier. Each applies to any number of processes.
    Algorithm of "barrier" {
        /// All ranks send to rank 0, which then sends to all.
        Central = "central",
        /// Up a tree with up to n children per vertex, down a binomial tree.
        Combining(n: u32 from 1) = "combining",
        /// ⌈log2 p⌉ rounds of messages to higher ranks, modulo p.
        Dissemination = "dissemination",
        /// Up a binomial tree, and down the same one.
        Tournament = "tournament",
        /// ⌈log2 p⌉ rounds of messages to lower ranks, modulo p.
        Bruck = "bruck",
        /// ⌈log2 p⌉ rounds of exchanges between pairs.
        Butterfly = "butterfly",
    }
}

either! {
    /// One process's part of a barrier by any algorithm.
    Plan {
        /// Up one tree and down one.
        UpDown(tree::UpDown),
        /// Dissemination.
        Dissemination(hops::Hops<Dissemination>),
        /// Bruck's algorithm.
        Bruck(hops::Hops<Bruck>),
        /// Brooks' butterfly.
        Butterfly(butterfly::Butterfly),
    }
}

/// The part of `seat` in a barrier by `algorithm`.
///
/// # Errors
/// A combining tree of arity 0.
pub fn plan(seat: Seat, algorithm: Algorithm) -> Result<Plan, Refusal> {
    Ok(match algorithm {
        Algorithm::Central => tree::UpDown::new(seat, Tree::Flat, Tree::Flat)?.into(),
        Algorithm::Combining(n) => tree::UpDown::new(seat, Tree::Kary(n), Tree::BINOMIAL)?.into(),
        Algorithm::Tournament => tree::UpDown::new(seat, Tree::BINOMIAL, Tree::BINOMIAL)?.into(),
        Algorithm::Dissemination => hops::Hops(Dissemination(seat)).into(),
        Algorithm::Bruck => hops::Hops(Bruck(seat)).into(),
        Algorithm::Butterfly => butterfly::Butterfly(Butterfly(seat)).into(),
    })
}
