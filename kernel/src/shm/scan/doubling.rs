//! Scan and exscan of small operands by recursive doubling on lines (ours): as [an allreduce](crate::shm::allreduce::doubling), of
//! which each rank keeps what lower ranks have sent.

use crate::collective::Kind;
use crate::comm::Member;
use crate::data::datatype::Data;
use crate::error::Refusal;
use crate::op::Op;
use crate::shm::allreduce::doubling::Doubling;

pub use crate::shm::allreduce::doubling::MOST;

/// The fold of the `send` of ranks 0 … this one into `receive`. In place: `receive` is `send`.
///
/// # Errors
/// As of [`Doubling::new`].
#[inline(always)]
pub fn scan<'a>(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Doubling<'a>, Refusal> {
    Doubling::of(Kind::Scan, me, send, receive, op)
}

/// The fold of the `send` of the ranks below this one into `receive`. Rank 0's `receive` stays as it is.
///
/// # Errors
/// As of [`Doubling::new`].
#[inline(always)]
pub fn exscan<'a>(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Doubling<'a>, Refusal> {
    Doubling::of(Kind::Exscan, me, send, receive, op)
}
