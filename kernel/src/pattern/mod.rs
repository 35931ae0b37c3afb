//! Rank arithmetic: which ranks communicate with each other. Pure functions, without regions or messages.
//!
//! A [`Pattern`] is one process's view: in each round it sends to one process and receives from one.

pub mod bagds;
pub mod bruck;
pub mod butterfly;
pub mod dissemination;
pub mod doubling;
pub mod pairwise;
pub mod power;
pub mod ring;
pub mod seat;
pub mod tree;

pub use seat::{Seat, rotated};

use crate::Rank;

/// The ranks that a process sends to and receives from in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hop {
    /// The receiver of what this process sends.
    pub to: Rank,
    /// The sender of what this process receives.
    pub from: Rank,
}

/// Rounds with one hop each, as one process sees them.
pub trait Pattern: Copy {
    /// Number of rounds.
    fn rounds(self) -> u32;

    /// The hop of this round, counted from 0; `None` after the last.
    fn hop(self, round: u32) -> Option<Hop>;
}

/// ⌈log2 size⌉: the rounds in which data of one process can reach all by doubling.
#[inline]
pub const fn log2_ceil(size: u32) -> u32 {
    u32::BITS - size.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::vec::Vec;

    /// In each round, a process receives from exactly the process that sends to it.
    pub(crate) fn assert_meets<P: Pattern>(size: u32, make: impl Fn(Seat) -> P) {
        let all: Vec<P> = (0..size).map(|rank| make(Seat { rank, size })).collect();
        let rounds = all.iter().map(|pattern| pattern.rounds()).max().unwrap_or(0);
        for round in 0..rounds {
            for (rank, pattern) in (0..).zip(&all) {
                let Some(Hop { to, from }) = pattern.hop(round) else { continue };
                assert_eq!(all[to as usize].hop(round).map(|hop| hop.from), Some(rank), "p={size} round {round}");
                assert_eq!(all[from as usize].hop(round).map(|hop| hop.to), Some(rank), "p={size} round {round}");
            }
        }
    }

    /// If a process sends all that it has in each round, all processes have everything after all rounds.
    pub(crate) fn assert_spreads<P: Pattern>(size: u32, make: impl Fn(Seat) -> P) {
        let all: Vec<P> = (0..size).map(|rank| make(Seat { rank, size })).collect();
        let mut heard: Vec<Vec<bool>> = (0..size).map(|rank| (0..size).map(|peer| peer == rank).collect()).collect();
        assert_eq!(all[0].hop(all[0].rounds()), None);
        for round in 0..all[0].rounds() {
            let before = heard.clone();
            for (mine, pattern) in heard.iter_mut().zip(&all) {
                if let Some(Hop { from, .. }) = pattern.hop(round) {
                    mine.iter_mut().zip(&before[from as usize]).for_each(|(mine, peers)| *mine |= peers);
                }
            }
        }
        assert!(heard.iter().flatten().all(|&heard| heard), "p={size}");
    }

    #[test]
    fn logarithms() {
        let wanted = [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (u32::MAX, 32)];
        wanted.into_iter().for_each(|(size, rounds)| assert_eq!(log2_ceil(size), rounds, "{size}"));
    }
}
