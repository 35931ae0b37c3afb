//! Collectives over the levels of a machine and its network (paper P3), by messages alone and without sub-communicators.
//!
//! [`Groups`] say who works with whom on each level; each collective's `plan` makes the schedule
//! of one process from them. Any rank may be the root (`circle`), groups of one and groups of different sizes are
//! groups like others, and any level may be switched off when groups are built.
//!
//! | collective | how |
//! |---|---|
//! | bcast, reduce, barrier, scan | along one tree through all levels, in segments (`tree`) |
//! | bcast, reduce in slices | one level after the other (`stages`), as P3 prints it |
//! | allreduce, allgather | up, among the members of the last level, down |
//! | gather, scatter | all blocks below a member as one message (`line`) |
//! | alltoall | blocks are gathered, exchanged among the members of the last level, and scattered |
//! | reduce_scatter | reduce, then scatter |

mod circle;
mod line;
mod shape;
mod stages;
mod tree;

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
pub mod gather;
pub mod reduce;
pub mod reduce_scatter;
pub mod scan;
pub mod scatter;

pub use line::Line;
pub use shape::{Algorithm, Shape, Shapes};
pub use stages::{Stage, Stages};
pub use tree::LevelTree;

use super::named::{Needs, PlanError};
use super::parts::Parts;
use super::schedule::{Area, Bytes, Place};
use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use crate::op::Op;
use crate::topology::Level;
use crate::topology::group::Groups;

/// Most levels.
const LEVELS: usize = Level::EVERY.len();

/// Are operands folded in the order of ranks?
fn check_runs(groups: &Groups<'_>, algorithm: &Algorithm) -> Result<(), PlanError> {
    if !algorithm.shapes.are_ordered() {
        return Err(PlanError::OverLevels(Needs::Commutative));
    }
    if groups.are_runs() { Ok(()) } else { Err(PlanError::OverLevels(Needs::Runs)) }
}

/// The same, where that counts.
fn check_order(groups: &Groups<'_>, op: &Op, algorithm: &Algorithm) -> Result<(), PlanError> {
    if op.commutative() { Ok(()) } else { check_runs(groups, algorithm) }
}

/// The blocks packed in a line, if there is one per rank.
fn row<'s>(line: Line<'s>, parts: Parts<'s>) -> Result<line::Row<'s>, Refusal> {
    Refusal::check(Argument::Ranks, parts.size().into(), Bound::Equals(line.len().into()))?;
    Ok(line::Row { line, parts })
}

/// Where the own block comes from.
fn own(parts: &Parts<'_>, rank: Rank, in_place: bool) -> Place {
    if in_place { parts.place(Area::Receive, rank) } else { Place::new(Area::Send, 0, parts.len(rank)) }
}

/// What memory a place needs.
fn bytes(place: Place) -> Bytes {
    let (end, mut bytes) = (place.at + place.len, Bytes::default());
    match place.area {
        Area::Send => bytes.send = end,
        Area::Receive => bytes.receive = end,
        Area::Scratch => bytes.scratch = end,
    }
    bytes
}
