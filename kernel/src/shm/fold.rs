//! What reductions have in common: operands, and folding a part of one.

use crate::Rank;
use crate::buffer::Buf;
use crate::datatype::Data;
use crate::error::{Argument, Bound, Refusal};
use crate::op::Op;
use crate::region::{Extent, Region};
use crate::shm::pieces::Readers;

/// The data of a reduction on one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operand<'a> {
    pub(crate) send: Data<'a>,
    /// Where a result is wanted.
    pub(crate) receive: Option<Data<'a>>,
    pub(crate) op: Op,
}

impl<'a> Operand<'a> {
    /// `send`, whose fold goes to `receive`. In place: the same data twice.
    ///
    /// # Errors
    /// Data with holes (pack it first: an operation's elements have none), no whole number of
    /// elements, or `receive` of another length.
    #[inline(always)]
    pub(crate) fn new(send: Data<'a>, receive: Option<Data<'a>>, op: Op) -> Result<Self, Refusal> {
        op.count(send.len())?;
        for data in [Some(send), receive].into_iter().flatten() {
            Refusal::check(Argument::Bytes, data.len(), Bound::Equals(send.len()))?;
            data.as_contiguous().ok_or(Refusal::new(Argument::Datatype, 0, Bound::AtLeast(1)))?;
        }
        Ok(Self { send, receive, op })
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.send.len()
    }

    /// Is the result to overwrite the operand?
    pub(crate) fn is_in_place(&self) -> bool {
        self.receive == Some(self.send)
    }
}

/// Whose operand is folded as the `index`-th into a result that one process alone computes: from the own
/// one on, or from the last rank down to 0 where order counts.
#[inline]
pub(crate) fn fold_turn(op: &Op, me: Rank, size: u32, index: u32) -> Rank {
    if !op.commutative() {
        return size - 1 - index;
    }
    let turn = u64::from(me) + u64::from(index);
    (if turn < size.into() { turn } else { turn - u64::from(size) }) as Rank
}

/// Who takes a piece: in rank order the writer does as well, between those of others.
#[inline(always)]
pub(crate) fn fold_readers(op: &Op) -> Readers {
    if op.commutative() { Readers::Others } else { Readers::All }
}

/// `len` bytes of contiguous `data` from byte `from` on.
#[inline]
fn stretch(data: &Data<'_>, (from, len): (u64, u64)) -> Buf {
    data.stretch(from, len).unwrap_or(Buf::new(core::ptr::null_mut(), 0))
}

/// `receive = send ∘ receive` for a part of both, with the host's instructions.
///
/// # Safety
/// `send` is readable, `receive` writable and exclusive, and they are apart.
#[inline]
pub(crate) unsafe fn fold_private<R: Region>(
    region: &R,
    send: &Data<'_>,
    receive: &Data<'_>,
    part: (u64, u64),
    op: &Op,
) {
    // SAFETY: the caller's promise.
    unsafe { region.fold_private(stretch(send, part), stretch(receive, part), op) }
}

/// `receive = segment ∘ receive` for a part of `receive`, whose operand lies at `place`.
///
/// # Safety
/// The place is published and not written now; `receive` is writable and exclusive.
#[inline]
pub(crate) unsafe fn fold_shared<R: Region>(region: &R, place: Extent, receive: &Data<'_>, part: (u64, u64), op: &Op) {
    // SAFETY: the caller's promise.
    unsafe { region.fold(place.part(0, part.1), stretch(receive, part), op) }
}
