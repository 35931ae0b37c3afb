//! What reductions have in common: operands, folding a part of one, and sharing fragments among those who fold.

use crate::Rank;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, Condition, Refusal};
use crate::op::Op;
use crate::region::{Extent, Region};
use crate::shm::engine::pieces::{Medium, Pieces, Readers};

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
            data.as_contiguous().ok_or(Refusal::not(Argument::Datatype, Condition::Contiguous))?;
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

/// How fragments are shared by ranks that each fold a block of their own: all have a piece in each, side by side; or, where
/// a slot has not room for an element for each, a fragment is for one of them, in rank order, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shares {
    pub(crate) pieces: Pieces,
    /// Fragments until all have had one piece.
    cycle: u64,
}

impl Shares {
    /// Shares for blocks of up to `most` bytes.
    ///
    /// # Errors
    /// An element is longer than a slot.
    #[inline(always)]
    pub(crate) fn new(me: &Member, most: u64, op: &Op, lines: bool) -> Result<(Medium, Self), Refusal> {
        // In rank order the writer takes its own piece as well, between those of others.
        let readers = if op.commutative() { Readers::Others } else { Readers::All };
        let side_by_side = if lines {
            Pieces::known(me, most, op.element(), readers)
        } else {
            Pieces::queued(me, most, op.element(), readers).map(|pieces| (Medium::Queues, pieces))
        };
        if let Ok((medium, pieces)) = side_by_side {
            return Ok((medium, Self { pieces, cycle: 1 }));
        }
        Ok((Medium::Queues, Self::one_at_a_time(me, most, op)?))
    }

    /// Each fragment is for one.
    pub(crate) fn one_at_a_time(me: &Member, most: u64, op: &Op) -> Result<Self, Refusal> {
        let pieces = Pieces::queued(me, most, op.element(), Readers::One)?;
        Ok(Self { pieces, cycle: me.size().into() })
    }

    /// Fragments until all have had one piece.
    #[inline(always)]
    pub(crate) const fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Fragments for blocks of `bytes`.
    #[inline(always)]
    pub(crate) fn fragments(&self, bytes: u64) -> u64 {
        self.pieces.cut.steps(bytes) * self.cycle
    }

    /// The number of the pieces that are in a fragment.
    #[inline(always)]
    pub(crate) const fn piece(&self, fragment: u64) -> u64 {
        if self.cycle == 1 { fragment } else { fragment / self.cycle }
    }

    /// Has `rank` a piece in a fragment?
    #[inline(always)]
    pub(crate) const fn is_for(&self, fragment: u64, rank: Rank) -> bool {
        self.cycle == 1 || fragment % self.cycle == rank as u64
    }

    /// For whom `me` of `size` ranks writes a piece of a fragment.
    #[inline(always)]
    pub(crate) fn readers(self, (me, size): (Rank, u32), op: &Op, fragment: u64) -> impl Iterator<Item = Rank> {
        let own = !op.commutative();
        (0..size).filter(move |&reader| (own || reader != me) && self.is_for(fragment, reader))
    }
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
