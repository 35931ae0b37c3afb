//! Scan and exscan by exchange (ours): a rank folds the operands of the ranks up to itself (scan) or below it
//! (exscan), as a [reduction](crate::shm::reduce) of fewer ranks.

use crate::collective::Kind;
use crate::comm::Member;
use crate::data::datatype::Data;
use crate::error::Refusal;
use crate::op::Op;
use crate::shm::engine::exchange::Exchange;
use crate::shm::engine::fold::Operand;
use crate::shm::engine::loans::Borrowers;
use crate::shm::reduce::exchange::Reduce;

/// The fold of the `send` of ranks 0 … this one into `receive`.
///
/// # Errors
/// Data with holes; a length that is not a whole number of elements; `send` and `receive` differ in length.
#[inline(always)]
pub fn scan<'a>(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Reduce<'a>>, Refusal> {
    let (posts, highest) = (me.rank() + 1 < me.size(), Some(me.rank()));
    Operand::check(&send, Some(&receive), &op)?;
    Reduce::plan(Kind::Scan, me, Operand { send, receive: Some(receive), op }, posts, highest, Borrowers::Above)
}

/// The fold of the `send` of the ranks below this one into `receive`. Rank 0's `receive` stays as it is.
///
/// # Errors
/// Data with holes; a length that is not a whole number of elements; `send` and `receive` differ in length.
#[inline(always)]
pub fn exscan<'a>(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Reduce<'a>>, Refusal> {
    let (posts, highest) = (me.rank() + 1 < me.size(), me.rank().checked_sub(1));
    Operand::check(&send, Some(&receive), &op)?;
    Reduce::plan(Kind::Exscan, me, Operand { send, receive: Some(receive), op }, posts, highest, Borrowers::Above)
}
