//! Allreduce round a ring, for ops that commute: a reduce_scatter to one slice per process, then an allgather of the
//! slices. In segments, each is folded while the next one travels. Every process sends 2·(p − 1)/p of the vector,
//! which is the least that is possible.

use crate::error::{Argument, Bound, Refusal};
use crate::msg::parts::{Parts, Slices, check_operand};
use crate::msg::ring::{Allgather, ReduceScatter};
use crate::msg::schedule::{Area, Sequence};
use crate::op::Op;
use crate::pattern::Seat;

/// One process's part of an allreduce.
pub type Ring = Sequence<ReduceScatter<'static>, Allgather<'static>>;

/// The operands of all ranks, `bytes` bytes each, are folded into the result areas of all ranks. Each slice travels
/// in segments of `segment` bytes.
///
/// # Errors
/// The operand is not a whole number of elements, or too long, or a segment has no bytes.
pub fn ring(seat: Seat, bytes: u64, op: Op, in_place: bool, segment: u64) -> Result<Ring, Refusal> {
    check_operand(bytes, &op)?;
    Refusal::check(Argument::Fragment, segment, Bound::AtLeast(1))?;
    let slices = Slices::new(bytes, op.element(), seat.size());
    let parts = Parts::slices(seat.size(), slices);
    let source = if in_place { Area::Receive } else { Area::Send };
    let reduce = ReduceScatter::new(seat, parts, op, source, slices.at(seat.rank()), segment);
    Ok(Sequence::new(reduce, Allgather::new(seat, parts, None)))
}
