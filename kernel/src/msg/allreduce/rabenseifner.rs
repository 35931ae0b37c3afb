//! Allreduce by Rabenseifner's algorithm: reduce_scatter by halving, allgather by doubling.

use crate::error::Refusal;
use crate::msg::halving::{Enter, Fold, Halves, Leave, Unfold};
use crate::msg::parts::check_operand;
use crate::msg::schedule::Sequence;
use crate::op::Op;
use crate::pattern::Seat;

/// One process's part of an allreduce.
pub type Rabenseifner = Sequence<Sequence<Enter, Fold>, Sequence<Unfold, Leave>>;

/// The operands of all ranks, `bytes` bytes each, are folded into the result areas of all ranks.
///
/// # Errors
/// The operand is not a whole number of elements, or too long.
pub fn rabenseifner(seat: Seat, bytes: u64, op: Op, in_place: bool) -> Result<Rabenseifner, Refusal> {
    check_operand(bytes, &op)?;
    let halves = Halves::new(seat, 0, bytes, op.element(), in_place, true);
    let fold = Sequence::new(Enter { halves, op }, Fold { halves, op, halving: true });
    Ok(Sequence::new(fold, Sequence::new(Unfold { halves, to_favourite: false }, Leave(halves))))
}
