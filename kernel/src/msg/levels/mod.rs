//! Collectives over the levels of a machine and its network (paper P3), by messages only and without sub-communicators.
//!
//! [`Groups`] say which ranks are a group on each level; the leaders of a level's groups are the members of the next
//! level's. Each collective's `plan` makes the schedule of one process from them. Any rank may be the root
//! (`circle`). Groups may have one member, and different sizes. Any level may be switched off when groups are built.
//!
//! | collective | how |
//! |---|---|
//! | bcast, reduce, barrier, scan | along one tree through all levels, in segments (`tree`) |
//! | bcast, reduce in slices | one level after the other (`stages`), as P3 prints it |
//! | allreduce, allgather | up the levels, then among the members of the last level's group, then down the levels |
//! | gather, scatter | all blocks of the ranks below a member travel as one message (`line`) |
//! | alltoall | blocks are gathered, exchanged among the members of the last level, and scattered |
//! | reduce_scatter | reduce, then scatter |

mod circle;
mod line;
mod shape;
mod stages;
mod tree;
mod way;

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
pub use way::Way;

use super::named::{Needs, PlanError};
use super::parts::Parts;
use super::schedule::{Area, Bytes, Place};
use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use crate::op::Op;
use crate::topology::Level;
use crate::topology::group::Groups;

/// The largest number of levels.
const LEVELS: usize = Level::EVERY.len();

/// Checks that the algorithm folds operands in rank order: its trees are ordered, and groups are runs of consecutive
/// ranks.
fn check_runs(groups: &Groups<'_>, algorithm: &Algorithm) -> Result<(), PlanError> {
    if !algorithm.shapes.are_ordered() {
        return Err(PlanError::OverLevels(Needs::Commutative));
    }
    if groups.are_runs() { Ok(()) } else { Err(PlanError::OverLevels(Needs::Runs)) }
}

/// The same for ops that do not commute; others need no order.
fn check_order(groups: &Groups<'_>, op: &Op, algorithm: &Algorithm) -> Result<(), PlanError> {
    if op.commutative() { Ok(()) } else { check_runs(groups, algorithm) }
}

/// The blocks packed in the line's order. There must be one block per rank.
fn row<'s>(line: Line<'s>, parts: Parts<'s>) -> Result<line::Row<'s>, Refusal> {
    Refusal::check(Argument::Ranks, parts.size().into(), Bound::Equals(line.len().into()))?;
    Ok(line::Row { line, parts })
}

/// The place of `rank`'s own block before the collective.
fn own(parts: &Parts<'_>, rank: Rank, in_place: bool) -> Place {
    if in_place { parts.place(Area::Receive, rank) } else { Place::new(Area::Send, 0, parts.len(rank)) }
}

/// The memory that a place needs.
fn bytes(place: Place) -> Bytes {
    let (end, mut bytes) = (place.at + place.len, Bytes::default());
    match place.area {
        Area::Send => bytes.send = end,
        Area::Receive => bytes.receive = end,
        Area::Scratch => bytes.scratch = end,
    }
    bytes
}
