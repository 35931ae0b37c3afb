//! Reduce by reduce_scatter and gather: in recursive halving each partner folds one half of the range that both hold;
//! then the ranges are gathered at the root. A process sends about one operand in the halving, and a tree one on each
//! of its levels.

use crate::Rank;
use crate::error::Refusal;
use crate::msg::halving::{Enter, Fold, Halves, Unfold};
use crate::msg::parts::check_operand;
use crate::msg::schedule::Sequence;
use crate::op::Op;
use crate::pattern::Seat;

/// One process's part of a reduce.
pub type ScatterGather = Sequence<Sequence<Enter, Fold>, Unfold>;

/// The operands of all ranks, `bytes` bytes each, are folded into `root`'s result area.
///
/// # Errors
/// `root` is not a rank of the communicator; the operand is not a whole number of elements, or too long.
pub fn scatter_gather(seat: Seat, bytes: u64, op: Op, root: Rank, in_place: bool) -> Result<ScatterGather, Refusal> {
    seat.check_root(root)?;
    check_operand(bytes, &op)?;
    let mine = seat.rank() == root;
    let halves = Halves::new(seat, root, bytes, op.element(), in_place && mine, mine);
    let fold = Fold { halves, op, halving: true };
    Ok(Sequence::new(Sequence::new(Enter { halves, op }, fold), Unfold { halves, to_favourite: true }))
}
