//! Reduce by reduce_scatter and gather: halves of ranges are folded between partners, then the ranges are gathered at
//! the root. Each operand travels once, where along a tree it travels whole at each level.

use crate::Rank;
use crate::error::Refusal;
use crate::msg::halving::{Enter, Fold, Halves, Unfold};
use crate::msg::parts::check_operand;
use crate::msg::schedule::Sequence;
use crate::op::Op;
use crate::pattern::Seat;

/// One process's part.
pub type ScatterGather = Sequence<Sequence<Enter, Fold>, Unfold>;

/// Everyone's `bytes` bytes are folded into `root`'s result area.
///
/// # Errors
/// `root` is no rank; the operand is no whole number of elements.
pub fn scatter_gather(seat: Seat, bytes: u64, op: Op, root: Rank, in_place: bool) -> Result<ScatterGather, Refusal> {
    seat.check_root(root)?;
    check_operand(bytes, &op)?;
    let mine = seat.rank() == root;
    let halves = Halves::new(seat, root, bytes, op.element(), in_place && mine, mine);
    let fold = Fold { halves, op, halving: true };
    Ok(Sequence::new(Sequence::new(Enter { halves, op }, fold), Unfold { halves, to_favourite: true }))
}
