//! Collectives over the levels of a machine and its network (paper P3), by messages alone and without sub-communicators.
//!
//! [`Groups`](crate::group::Groups) say who works with whom on each level; each collective's `plan` makes the schedule
//! of one process from them. Any rank may be the root (`circle`), groups of one and groups of different sizes are
//! groups like others, and any level may be switched off when groups are built.
//!
//! | collective | how |
//! |---|---|
//! | bcast, reduce, barrier, scan | along one tree through all levels, in segments (`tree`) |
//! | bcast, reduce in slices | one level after the other (`stages`), as P3 prints it |
//! | allreduce | both ways; or up, among the members of the last level, down |

mod circle;
mod shape;
mod stages;
mod tree;

pub mod allreduce;
pub mod barrier;
pub mod bcast;
pub mod reduce;

pub use shape::{Algorithm, Shape, Shapes};
pub use stages::{Stage, Stages};
pub use tree::LevelTree;

use super::name::{Needs, PlanError};
use crate::group::Groups;
use crate::op::Op;
use crate::topology::Level;

/// Most levels.
const LEVELS: usize = Level::EVERY.len();

/// Do operands that are folded group by group keep their order, where that counts?
fn check_order(groups: &Groups<'_>, op: &Op) -> Result<(), PlanError> {
    if op.commutative() || groups.are_runs() { Ok(()) } else { Err(PlanError::OverLevels(Needs::Runs)) }
}
