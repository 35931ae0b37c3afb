//! Folding what a partner sent into what a process has.

use super::schedule::{Place, Work};
use crate::op::Op;

/// The `index`-th piece of work that makes `mine` the fold of both, by `is_left` the partner's operand first or last.
///
/// Predefined operations give the same bits in either order; a user's are always folded in rank order, so that both
/// partners get the same.
#[inline]
pub(super) fn combine(op: &Op, mine: Place, theirs: Place, is_left: bool, index: u32) -> Option<Work> {
    let either = matches!(op, Op::Predefined(_));
    match index {
        0 if is_left || either => Some(Work::Fold { left: theirs, right: mine }),
        0 => Some(Work::Fold { left: mine, right: theirs }),
        1 if !is_left && !either => Some(Work::Copy { from: theirs, to: mine }),
        _ => None,
    }
}
