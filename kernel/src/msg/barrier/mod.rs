//! Barriers over messages (MPI 4.1, 7.3; paper P4).

pub mod butterfly;
pub mod hops;
pub mod tree;

use super::name::{self, Named};
use super::schedule::either;
use crate::error::Refusal;
use crate::pattern::bruck::Bruck;
use crate::pattern::dissemination::Dissemination;
use crate::pattern::tree::Tree;
use crate::pattern::{Seat, butterfly::Butterfly};

/// How to wait for all. Each applies to any number of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Everyone tells rank 0, which tells everyone.
    Central,
    /// Up a tree of so many children per vertex, down a binomial tree.
    Combining(u32),
    /// ⌈log2 p⌉ rounds, up the ring.
    Dissemination,
    /// Up a binomial tree, and down again.
    Tournament,
    /// ⌈log2 p⌉ rounds, down the ring.
    Bruck,
    /// ⌈log2 p⌉ rounds of pairs.
    Butterfly,
}

impl Named for Algorithm {
    /// Names: `central`, `combining-N`, `dissemination`, `tournament`, `bruck`, `butterfly`.
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "central" => Self::Central,
            "dissemination" => Self::Dissemination,
            "tournament" => Self::Tournament,
            "bruck" => Self::Bruck,
            "butterfly" => Self::Butterfly,
            _ => Self::Combining(name::number(name, "combining-", 1)?),
        })
    }

    fn name(self) -> (&'static str, Option<u64>) {
        match self {
            Self::Central => ("central", None),
            Self::Combining(n) => ("combining", Some(n.into())),
            Self::Dissemination => ("dissemination", None),
            Self::Tournament => ("tournament", None),
            Self::Bruck => ("bruck", None),
            Self::Butterfly => ("butterfly", None),
        }
    }
}

either! {
    /// One process's part of a barrier by any algorithm.
    Plan {
        /// Up and down trees.
        UpDown(tree::UpDown),
        /// Dissemination.
        Dissemination(hops::Hops<Dissemination>),
        /// Bruck's.
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
