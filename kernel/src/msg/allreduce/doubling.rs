//! Allreduce by recursive doubling: in each of ⌊log2 p⌋ rounds partners exchange their whole operands and fold them.
//! If p is not a power of two there are two rounds more.

use crate::error::Refusal;
use crate::msg::halving::{Enter, Fold, Halves, Leave};
use crate::msg::parts::check_operand;
use crate::msg::schedule::Sequence;
use crate::op::Op;
use crate::pattern::Seat;

/// One process's part of an allreduce.
pub type Doubling = Sequence<Sequence<Enter, Fold>, Leave>;

/// The operands of all ranks, `bytes` bytes each, are folded into the result areas of all ranks.
///
/// # Errors
/// The operand is not a whole number of elements, or too long.
pub fn doubling(seat: Seat, bytes: u64, op: Op, in_place: bool) -> Result<Doubling, Refusal> {
    check_operand(bytes, &op)?;
    let halves = Halves::new(seat, 0, bytes, op.element(), in_place, true);
    let fold = Fold { halves, op, halving: false };
    Ok(Sequence::new(Sequence::new(Enter { halves, op }, fold), Leave(halves)))
}
