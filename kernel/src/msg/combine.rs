//! Folding a partner's operand into this process's own.

use super::schedule::{Place, Work};
use crate::op::Op;

/// The `index`-th piece of work that makes `mine` the fold of both operands. `is_left`: the partner's operand is the
/// left one.
///
/// A predefined op of two operands gives the same bits in either order. A user's op is always applied in rank order,
/// so that both partners get the same bits.
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
