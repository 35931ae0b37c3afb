//! Broadcast over levels (paper P3, section 4): along one tree through all levels, or one level after the other.

use super::circle::Circles;
use super::stages::{Areas, Base, Stage, Stages};
use super::tree::LevelTree;
use super::{Algorithm, LEVELS, Needs, PlanError};
use crate::Rank;
use crate::msg::bcast;
use crate::msg::bcast::tree::Pipeline;
use crate::msg::schedule::{Area, either};
use crate::topology::group::Groups;

either! {
    #[expect(clippy::large_enum_variant, reason = "plain data of a call; there is no heap to box it in")]
    /// One process's part of a broadcast over levels.
    Plan<'s> {
        /// Along one tree through all levels.
        Tree(Pipeline<LevelTree<'s>>),
        /// One level after the other.
        Stages(Stages<'s, bcast::Plan>),
    }
}

/// The part of `rank` in a broadcast of `bytes` bytes from `root`.
///
/// # Errors
/// `rank` or `root` is not a rank of the communicator; a segment has no bytes; the shapes have slices, which can't be
/// segmented.
pub fn plan<'s>(
    groups: &Groups<'s>,
    rank: Rank,
    bytes: u64,
    root: Rank,
    algorithm: Algorithm,
) -> Result<Plan<'s>, PlanError> {
    within(&Circles::new(groups, rank, root)?, bytes, algorithm)
}

/// The same in these circles, from the head of the last one.
pub(super) fn within<'s>(circles: &Circles<'s>, bytes: u64, algorithm: Algorithm) -> Result<Plan<'s>, PlanError> {
    algorithm.check()?;
    let shapes = algorithm.shapes;
    if shapes.are_trees() {
        let tree = LevelTree::new(circles, &shapes)?;
        return Ok(Pipeline::along(tree, bytes, algorithm.segment())?.into());
    }
    let mut stages = [None; LEVELS];
    let areas = Areas { send: Base::start(Area::Send), receive: Base::start(Area::Receive), scratch: Base::scratch(0) };
    // The outermost level first.
    for ((index, circle), slot) in circles.iter().zip(stages.iter_mut().rev()) {
        let shape = shapes.at(index).bcast().ok_or(PlanError::OverLevels(Needs::Trees))?;
        let plan = bcast::plan(circle.seat()?, bytes, circle.head(), shape)?;
        *slot = Some(Stage { circle: Some(circle), areas, plan });
    }
    Ok(Stages(stages).into())
}
