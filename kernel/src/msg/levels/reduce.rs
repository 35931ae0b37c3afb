//! Reduce over levels (paper P3, section 3): along one tree through all levels, or one level after the other.
//!
//! One level after the other, partial results alternate between two places, as printed. Two errors of the printed
//! pseudocode are corrected: its test on level 0 of whether to exchange the two places is inverted, and with a single
//! level the result never gets to the result area.
//!
//! Ops that don't commute need groups that are runs of consecutive ranks. Then the one tree has root 0, and rank 0
//! sends the result to the root, as the paper prints it for all ops; level by level, the algorithm of each group keeps the
//! order of its members.

use super::circle::Circles;
use super::stages::{Areas, Base, Stage, Stages};
use super::tree::LevelTree;
use super::{Algorithm, LEVELS, Needs, PlanError};
use crate::Rank;
use crate::msg::parts::check_operand;
use crate::msg::reduce;
use crate::msg::reduce::tree::{Role, Tributary, hub};
use crate::msg::schedule::{Area, either};
use crate::op::Op;
use crate::topology::group::Groups;

either! {
    #[expect(clippy::large_enum_variant, reason = "plain data of a call; there is no heap to box it in")]
    /// One process's part of a reduce over levels.
    Plan<'s> {
        /// Along one tree through all levels.
        Tree(Tributary<LevelTree<'s>>),
        /// One level after the other.
        Stages(Stages<'s, reduce::Plan>),
    }
}

/// The part of `rank` in a reduction of `bytes` bytes to `root`.
///
/// # Errors
/// `rank` or `root` is not a rank of the communicator; the operand is not a whole number of elements; a segment has
/// no bytes; the shapes have slices, which can't be segmented; the op does not commute, and groups are not runs of
/// ranks.
pub fn plan<'s>(
    groups: &Groups<'s>,
    rank: Rank,
    bytes: u64,
    op: Op,
    root: Rank,
    in_place: bool,
    algorithm: Algorithm,
) -> Result<Plan<'s>, PlanError> {
    super::check_order(groups, &op, &algorithm)?;
    // `in_place` is significant only at the root.
    let in_place = in_place && rank == root;
    let circles = Circles::new(groups, rank, root)?;
    if !algorithm.shapes.are_trees() {
        // Level by level, only the head of all circles gets the result.
        return match algorithm.through_0 {
            true => Err(PlanError::OverLevels(Needs::Trees)),
            false => within(&circles, bytes, op, in_place, algorithm),
        };
    }
    let hub = if algorithm.through_0 { 0 } else { hub(&op, root) };
    tree(&Circles::new(groups, rank, hub)?, Role::of(rank, hub, root), bytes, op, in_place, algorithm)
}

/// A reduce to the head of the last of these circles. In place, this process's operand is in its result area.
pub(super) fn within<'s>(
    circles: &Circles<'s>,
    bytes: u64,
    op: Op,
    in_place: bool,
    algorithm: Algorithm,
) -> Result<Plan<'s>, PlanError> {
    algorithm.check()?;
    let is_root = circles.is_head();
    let role = if is_root { Role::Root } else { Role::Vertex { told_by: None } };
    match algorithm.shapes.are_trees() {
        true => tree(circles, role, bytes, op, in_place, algorithm),
        // A process without circles has no stages; a tree of one vertex copies its operand.
        false if circles.is_empty() => tree(circles, role, bytes, op, in_place, Algorithm::BINOMIAL),
        false => stages(circles, is_root, bytes, op, in_place, algorithm),
    }
}

/// A reduce along one tree through all levels.
fn tree<'s>(
    circles: &Circles<'s>,
    role: Role,
    bytes: u64,
    op: Op,
    in_place: bool,
    algorithm: Algorithm,
) -> Result<Plan<'s>, PlanError> {
    let tree = LevelTree::new(circles, &algorithm.shapes)?;
    Ok(Tributary::along(tree, role, bytes, op, in_place, algorithm.segment())?.into())
}

/// A reduce one level after the other.
fn stages<'s>(
    circles: &Circles<'s>,
    is_root: bool,
    bytes: u64,
    op: Op,
    in_place: bool,
    algorithm: Algorithm,
) -> Result<Plan<'s>, PlanError> {
    check_operand(bytes, &op)?;
    let last = circles.iter().count().saturating_sub(1);
    let mut stages = [None; LEVELS];
    let mut send = Base::start(if in_place { Area::Receive } else { Area::Send });
    for (((index, circle), number), slot) in circles.iter().zip(0..).zip(&mut stages) {
        let receive = match is_root && number == last {
            true => Base::start(Area::Receive),
            false => Base::scratch(number as u64 % 2 * bytes),
        };
        let shape = algorithm.shapes.at(index).reduce().ok_or(PlanError::OverLevels(Needs::Trees))?;
        let seat = circle.seat()?;
        // A group's reduce is in place if this process's operand lies in the place for the result already.
        let plan = reduce::plan(seat, bytes, op, circle.head(), send == receive, shape)?;
        *slot = Some(Stage {
            circle: Some(circle),
            areas: Areas { send, receive, scratch: Base::scratch(2 * bytes) },
            plan,
        });
        send = receive;
    }
    Ok(Stages(stages).into())
}
