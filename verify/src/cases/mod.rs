//! Every algorithm over messages, as cases: each rank's plan, and its memory before and after.
//!
//! A [`Stage`] runs them: the tests' network in one thread runs all ranks of a case, a process of an MPI job its own
//! rank.

mod moves;
mod reductions;

pub use moves::{Varying, allgather_case, alltoall_case, gather_case, scatter_case};
pub use moves::{allgathers, alltoalls, barriers, broadcasts, gathers_and_scatters};
pub use reductions::{FOLDS, Operand, folded, length, operand, reduce_scatter_case, scan_case, to_bytes, user};
pub use reductions::{allreduces, reduce_scatters, reduces, scans};

use crate::oracle::mix;
use unisono_kernel::msg::Schedule;
use unisono_kernel::pattern::Seat;

/// The users' memory of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The input.
    pub send: Vec<u8>,
    /// The result.
    pub receive: Vec<u8>,
}

/// Runs cases.
pub trait Stage {
    /// Lengths in addition to those of all stages: bytes or elements.
    fn lengths(&self) -> &'static [u64] {
        &[]
    }

    /// Runs a case of `size` ranks, given each rank's plan, its memory before, and its result after.
    fn case<S: Schedule>(
        &mut self,
        name: &str,
        size: u32,
        plan: impl Fn(u32) -> S,
        before: impl Fn(u32) -> User,
        after: impl Fn(u32) -> Vec<u8>,
    );
}

/// The cases of all collectives among `size` processes.
pub fn all(size: u32, stage: &mut impl Stage) {
    barriers(size, stage);
    broadcasts(size, stage);
    gathers_and_scatters(size, stage);
    allgathers(size, stage);
    alltoalls(size, stage);
    reduces(size, stage);
    allreduces(size, stage);
    reduce_scatters(size, stage);
    scans(size, stage);
}

/// The lengths among so many processes.
fn lengths(size: u32, all: &[u64], stage: &impl Stage) -> std::vec::IntoIter<u64> {
    let few = if size > 17 { &all[all.len() - 1..] } else { all };
    [few, stage.lengths()].concat().into_iter()
}

/// The roots of cases: the first, the last and one between.
pub fn roots(size: u32) -> impl Iterator<Item = u32> {
    let mut roots = vec![0, 1, size / 2, size - 1];
    roots.retain(|&root| root < size);
    roots.dedup();
    roots.into_iter()
}

/// Rank `rank` of `size`.
///
/// # Panics
/// `rank` is not below `size`.
pub fn seat(rank: u32, size: u32) -> Seat {
    Seat::new(rank, size).expect("a rank below the size")
}

/// Bytes that differ from rank to rank and from place to place.
pub fn bytes(rank: u32, len: u64) -> Vec<u8> {
    (0..len).map(|at| mix(u64::from(rank) << 32 ^ at) as u8).collect()
}
