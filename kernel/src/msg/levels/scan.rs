//! Scan and exscan over levels: totals go up one tree through all levels, prefixes come down. Groups must be runs of
//! consecutive ranks, even if the op commutes, since a prefix is the fold of the lower ranks.

use super::circle::Circles;
use super::tree::LevelTree;
use super::{Algorithm, PlanError};
use crate::Rank;
use crate::msg::scan::tree::UpDown;
use crate::op::Op;
use crate::pattern::tree::Branches;
use crate::topology::group::Groups;

/// One process's part of a scan or exscan over levels.
pub type Plan<'s> = UpDown<LevelTree<'s>>;

/// The part of `rank` in a scan of `bytes` bytes, or in an exscan if `exclusive`.
///
/// # Errors
/// `rank` is not a rank of the communicator; the operand is not a whole number of elements; a level's shape is not a
/// tree; groups are not runs of ranks.
pub fn plan<'s>(
    groups: &Groups<'s>,
    rank: Rank,
    bytes: u64,
    op: Op,
    in_place: bool,
    exclusive: bool,
    algorithm: Algorithm,
) -> Result<Plan<'s>, PlanError> {
    super::check_runs(groups, &algorithm)?;
    let tree_of = |rank| LevelTree::new(&Circles::new(groups, rank, 0)?, &algorithm.shapes);
    let tree = tree_of(rank)?;
    // From rank 0 down to the last child each time, since the last rank is below it: is `rank` on this way?
    let (mut at, mut last) = (0, tree_of(0)?);
    while let Some(child) = last.child(last.count().wrapping_sub(1)).filter(|_| at != rank) {
        (at, last) = (child, tree_of(child)?);
    }
    Ok(UpDown::along(tree, at == rank, bytes, op, in_place, exclusive)?)
}
