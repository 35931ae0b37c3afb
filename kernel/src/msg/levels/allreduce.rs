//! Allreduce over levels (paper P3, section 5).
//!
//! **ReduceBcast**: a reduce up the levels to rank 0, then a broadcast down the levels.
//! **ReduceAllreduceBcast**: a reduce up the levels to the members of the last level's group, an allreduce among these,
//! then a broadcast down the levels.
//!
//! In the printed pseudocode a leader adds its operand again on each level, and with a
//! single level the result area is never written; neither happens here.

use super::circle::Circles;
use super::stages::{Areas, Base, Stage};
use super::{Algorithm, PlanError, bcast, reduce};
use crate::Rank;
use crate::msg::allreduce;
use crate::msg::schedule::{Area, Sequence, either};
use crate::op::Op;
use crate::pattern::Seat;
use crate::topology::group::Groups;

/// A reduce to rank 0, then a broadcast.
pub type ReduceBcast<'s> = Sequence<reduce::Plan<'s>, bcast::Within<'s>>;
/// A reduce, an allreduce among the members of the last level's group, then a broadcast.
pub type ReduceAllreduceBcast<'s> = Sequence<reduce::Plan<'s>, Sequence<Stage<'s, allreduce::Plan>, bcast::Within<'s>>>;

either! {
    #[expect(clippy::large_enum_variant, reason = "plain data of a call; there is no heap to box it in")]
    /// One process's part of an allreduce over levels.
    Plan<'s> {
        /// ReduceBcast; or ReduceAllreduceBcast on a rank that is not a member of the last level's group.
        ReduceBcast(ReduceBcast<'s>),
        /// ReduceAllreduceBcast on a member of the last level's group.
        ReduceAllreduceBcast(ReduceAllreduceBcast<'s>),
    }
}

/// The part of `rank` in an allreduce of `bytes` bytes.
///
/// # Errors
/// `rank` is not a rank of the communicator; the operand is not a whole number of elements; a segment has no bytes;
/// the shapes have slices, which can't be segmented; the op does not commute, and groups are not runs of ranks, or
/// the allreduce at the top needs one that does.
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
