//! Barrier over levels: arrivals go up one tree through all levels, the release goes down the same tree.

use super::circle::Circles;
use super::tree::LevelTree;
use super::{Algorithm, PlanError};
use crate::Rank;
use crate::msg::barrier::tree::UpDown;
use crate::topology::group::Groups;

/// One process's part of a barrier over levels.
pub type Plan<'s> = UpDown<LevelTree<'s>>;

/// The part of `rank` in a barrier.
///
/// # Errors
/// `rank` is not a rank of the communicator; a level's shape is not a tree.
pub fn plan<'s>(groups: &Groups<'s>, rank: Rank, algorithm: Algorithm) -> Result<Plan<'s>, PlanError> {
    let tree = LevelTree::new(&Circles::new(groups, rank, 0)?, &algorithm.shapes)?;
    Ok(UpDown::along(tree, tree))
}
