//! Allreduce over levels (paper P3, section 5).
//!
//! **ReduceBcast**: up to rank 0, and down again.
//! **ReduceAllreduceBcast**: up to the members of the last level's group, an allreduce among them, and down again. As
//! printed, a leader adds its operand again on each level, and with a single level the result area is never written.

use super::circle::Circles;
use super::stages::{Areas, Base, Stage};
use super::{Algorithm, PlanError, bcast, reduce};
use crate::Rank;
use crate::msg::allreduce;
use crate::msg::schedule::{Area, Sequence, either};
use crate::op::Op;
use crate::pattern::Seat;
use crate::topology::group::Groups;

/// Up to rank 0, and down again.
pub type ReduceBcast<'s> = Sequence<reduce::Plan<'s>, bcast::Plan<'s>>;
/// The way up, an allreduce at the top, the way down.
pub type ReduceAllreduceBcast<'s> = Sequence<reduce::Plan<'s>, Sequence<Stage<'s, allreduce::Plan>, bcast::Plan<'s>>>;

either! {
    #[expect(clippy::large_enum_variant, reason = "plain data of a call; there is no heap to box it in")]
    /// One process's part of an allreduce over levels.
    Plan<'s> {
        /// Not at the top, or without an allreduce there.
        ReduceBcast(ReduceBcast<'s>),
        /// At the top.
        ReduceAllreduceBcast(ReduceAllreduceBcast<'s>),
    }
}

/// The part of `rank` in an allreduce of `bytes` bytes.
///
/// # Errors
/// `rank` is no rank; the operand is no whole number of elements; a segment has no bytes; slices don't go in segments;
/// the operation does not commute, and groups are no runs of ranks, or the allreduce at the top needs one that does.
pub fn plan<'s>(
    groups: &Groups<'s>,
    rank: Rank,
    bytes: u64,
    op: Op,
    in_place: bool,
    algorithm: Algorithm,
) -> Result<Plan<'s>, PlanError> {
    super::check_order(groups, &op, &algorithm)?;
    let circles = Circles::new(groups, rank, 0)?;
    let (circles, top) = match algorithm.top {
        None => (circles, None),
        Some(top) => {
            top.applicable(&op).map_err(PlanError::of(top))?;
            let (below, circle) = circles.split(groups.levels().len().saturating_sub(1));
            (below, circle.map(|circle| (circle, top)))
        }
    };
    let up = reduce::within(&circles, bytes, op, in_place, algorithm)?;
    let down = bcast::within(&circles, bytes, algorithm)?;
    let Some((circle, top)) = top else { return Ok(Sequence::new(up, down).into()) };
    let seat: Seat = circle.seat()?;
    let areas = Areas { send: Base::start(Area::Send), receive: Base::start(Area::Receive), scratch: Base::scratch(0) };
    let among = Stage { circle: Some(circle), areas, plan: allreduce::plan(seat, bytes, op, true, top)? };
    Ok(Sequence::new(up, Sequence::new(among, down)).into())
}
