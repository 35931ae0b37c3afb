//! Reduce_scatter over levels: a reduce to rank 0, then a scatter.

use super::circle::Circles;
use super::line::Line;
use super::scatter::{self, Scatter};
use super::stages::{Areas, Base, Stage};
use super::{Algorithm, PlanError, reduce};
use crate::Rank;
use crate::msg::parts::Parts;
use crate::msg::schedule::{Area, Sequence};
use crate::op::Op;

/// One process's part of a reduce_scatter over levels.
pub type ReduceScatter<'s> = Sequence<Stage<'s, reduce::Plan<'s>>, Stage<'s, Scatter<'s>>>;

/// The part of `rank` in a reduce_scatter of `parts`, which lie one after the other. In place the result area holds
/// the operand.
///
/// # Errors
/// `rank` is not a rank of the communicator; there is not one block per rank, or one is not a whole number of
/// elements; the errors of [`reduce::plan`].
pub fn plan<'s>(
    line: Line<'s>,
    rank: Rank,
    parts: Parts<'s>,
    op: Op,
    in_place: bool,
    algorithm: Algorithm,
) -> Result<ReduceScatter<'s>, PlanError> {
    super::check_order(line.groups(), &op, &algorithm)?;
    super::row(line, parts)?;
    (0..line.len()).try_for_each(|rank| op.count(parts.len(rank)).map(|_| ()))?;
    let (bytes, circles) = (parts.total(), Circles::new(line.groups(), rank, 0)?);
    let source = Base::start(if in_place { Area::Receive } else { Area::Send });
    let areas = Areas { send: source, receive: Base::scratch(0), scratch: Base::scratch(bytes) };
    let up = Stage { circle: None, areas, plan: reduce::within(&circles, bytes, op, false, algorithm)? };
    let areas = Areas { send: Base::scratch(0), receive: Base::start(Area::Receive), scratch: Base::scratch(bytes) };
    let down = scatter::plan(line, rank, parts, 0, false)?;
    Ok(Sequence::new(up, Stage { circle: None, areas, plan: down }))
}
