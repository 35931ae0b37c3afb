//! Allreduce by recursive doubling: partners exchange and fold whole operands, ⌊log2 p⌋ times; two rounds more
//! where p is no power of two.

use crate::error::Refusal;
use crate::msg::halving::{Enter, Fold, Halves, Leave};
use crate::msg::parts::check_operand;
use crate::msg::schedule::Sequence;
use crate::op::Op;
use crate::pattern::Seat;

/// One process's part.
pub type Doubling = Sequence<Sequence<Enter, Fold>, Leave>;

/// Everyone's `bytes` bytes are folded into everyone's result area.
///
/// # Errors
/// The operand is no whole number of elements.
pub fn doubling(seat: Seat, bytes: u64, op: Op, in_place: bool) -> Result<Doubling, Refusal> {
    check_operand(bytes, &op)?;
    let halves = Halves::new(seat, 0, bytes, op.element(), in_place, true);
    let fold = Fold { halves, op, halving: false };
    Ok(Sequence::new(Sequence::new(Enter { halves, op }, fold), Leave(halves)))
}
