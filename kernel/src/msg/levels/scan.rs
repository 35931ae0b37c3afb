//! Scan and exscan over levels: totals go up one tree, prefixes down it. Groups are runs of ranks: prefixes are those of
//! ranks, even if the operation commutes.

use super::circle::Circles;
use super::tree::LevelTree;
use super::{Algorithm, PlanError};
use crate::Rank;
use crate::msg::scan::tree::UpDown;
use crate::op::Op;
use crate::pattern::tree::Branches;
use crate::topology::group::Groups;

/// One process's part.
pub type Plan<'s> = UpDown<LevelTree<'s>>;

/// The part of `rank` in a scan of `bytes` bytes, or in an exscan if `exclusive`.
///
/// # Errors
/// `rank` is no rank; the operand is no whole number of elements; a shape is no tree; groups are no runs of ranks.
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
    // Down the last children: the last rank is below each of them.
    let (mut at, mut last) = (0, tree_of(0)?);
    while let Some(child) = last.child(last.count().wrapping_sub(1)).filter(|_| at != rank) {
        (at, last) = (child, tree_of(child)?);
    }
    Ok(UpDown::along(tree, at == rank, bytes, op, in_place, exclusive)?)
}
