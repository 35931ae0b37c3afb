//! What reductions have in common: the operand of a process, folding a part of it, and how fragments are shared by
//! the ranks that fold.

use crate::Rank;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, Condition, Refusal};
use crate::op::Op;
use crate::region::within::fold_private_within;
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::copy::Part;
use crate::shm::engine::cut::{MUTUAL, Medium};
use crate::shm::engine::loans::{Lent, Origin};
use crate::shm::engine::pieces::{Pieces, Readers};

/// The data of a reduction on one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operand<'a> {
    /// The operand.
    pub(crate) send: Data<'a>,
    /// The memory for the result, on ranks that get one.
    pub(crate) receive: Option<Data<'a>>,
    pub(crate) op: Op,
}

impl Operand<'_> {
    /// Checks operand `send` and memory `receive` for the result. In place: `receive` is `send`. Returns the number of elements.
    ///
    /// # Errors
    /// Data with holes (pack it first: an op's elements have none), a length that is not a whole number of
    /// elements, or a `receive` of another length.
    #[inline(always)]
    pub(crate) fn check(send: &Data<'_>, receive: Option<&Data<'_>>, op: &Op) -> Result<u64, Refusal> {
        let count = op.count(send.len())?;
        check_contiguous(send)?;
        if let Some(receive) = receive {
            Refusal::check(Argument::Bytes, receive.len(), Bound::Equals(send.len()))?;
            check_contiguous(receive)?;
        }
        Ok(count)
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.send.len()
    }

    /// Does the result replace the operand?
    #[inline(always)]
    pub(crate) fn is_in_place(&self) -> bool {
        // Both are contiguous and of one length.
        matches!(&self.receive, Some(receive) if receive.start() == self.send.start())
    }
}

#[inline(always)]
fn check_contiguous(data: &Data<'_>) -> Result<(), Refusal> {
    if data.is_contiguous() { Ok(()) } else { Err(Refusal::not(Argument::Datatype, Condition::Contiguous)) }
}

/// How fragments are shared by ranks that each fold a block of their own. If a slot has room for an element of each
/// rank, every fragment has a piece for each rank, side by side. Else each fragment is for one rank: for rank 0, 1,
/// …, p − 1, then for rank 0 again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shares {
    pub(crate) pieces: Pieces,
    /// Number of fragments that hold one piece for each rank: 1 or p.
    cycle: u64,
}

impl Shares {
    /// Shares for blocks of up to `most` bytes, and the medium; `lines`: pieces that fit go through posted lines.
    ///
    /// # Errors
    /// An element is longer than a slot.
    #[inline(always)]
    pub(crate) fn new(me: &Member, most: u64, op: &Op, lines: bool) -> Result<(Medium, Self), Refusal> {
        // In rank order the writer folds its own piece from the segment, too, between those of lower and higher ranks.
        let readers = if op.commutative() { Readers::Others } else { Readers::All };
        let side_by_side = if lines {
            Pieces::known(me, most, op.element(), readers)
        } else {
            Pieces::queued(me, most, op.element(), readers, MUTUAL).map(|pieces| (Medium::Queues, pieces))
        };
        if let Ok((medium, pieces)) = side_by_side {
            return Ok((medium, Self { pieces, cycle: 1 }));
        }
        Ok((Medium::Queues, Self::one_at_a_time(me, most, op)?))
    }

    /// Shares in which each fragment is for one rank.
    ///
    /// # Errors
    /// An element is longer than a slot.
    pub(crate) fn one_at_a_time(me: &Member, most: u64, op: &Op) -> Result<Self, Refusal> {
        let pieces = Pieces::queued(me, most, op.element(), Readers::One, MUTUAL)?;
        Ok(Self { pieces, cycle: me.size().into() })
    }

    /// Number of fragments that hold one piece for each rank: 1 or p.
    #[inline(always)]
    pub(crate) const fn cycle(&self) -> u64 {
        self.cycle
    }

    /// May operands be folded where they lie? Not if a rank's own is folded from its fragment, or if a process takes
    /// nothing from another in its first step.
    #[inline(always)]
    pub(crate) const fn may_be_lent(&self, op: &Op) -> bool {
        self.cycle == 1 && op.commutative()
    }

    /// Number of fragments for blocks of `bytes`.
    #[inline(always)]
    pub(crate) fn fragments(&self, bytes: u64) -> u64 {
        self.pieces.cut.steps(bytes) * self.cycle
    }

    /// The index, from 0, of the piece of each block that is in a fragment.
    #[inline(always)]
    pub(crate) const fn piece(&self, fragment: u64) -> u64 {
        if self.cycle == 1 { fragment } else { fragment / self.cycle }
    }

    /// Does a fragment have a piece for `rank`?
    #[inline(always)]
    pub(crate) const fn is_for(&self, fragment: u64, rank: Rank) -> bool {
        self.cycle == 1 || fragment % self.cycle == rank as u64
    }

    /// The ranks for which process `me` of `size` writes a piece of a fragment.
    #[inline(always)]
    pub(crate) fn readers(self, me: Rank, size: u32, op: &Op, fragment: u64) -> impl Iterator<Item = Rank> {
        let own = !op.commutative();
        (0..size).filter(move |&reader| (own || reader != me) && self.is_for(fragment, reader))
    }
}

/// The memory of a part of contiguous `data`.
#[inline]
fn stretch(data: &Data<'_>, part: Part) -> Buf {
    data.stretch(part.from, part.len).unwrap_or(Buf::new(core::ptr::null_mut(), 0))
}

/// `receive = send ∘ receive` for a part of both, with the vector instructions that the host allows.
///
/// # Safety
/// `send` is readable, `receive` writable and exclusive, and they are apart.
#[inline]
pub(crate) unsafe fn fold_private<R: Region>(region: &R, send: &Data<'_>, receive: &Data<'_>, part: Part, op: &Op) {
    // SAFETY: the caller's promise.
    unsafe { region.fold_private(stretch(send, part), stretch(receive, part), op) }
}

/// `acc = send ∘ acc` for a part of `send`, where `acc` lies in this process's fragment.
///
/// # Safety
/// `send` is readable; no other process reads or writes `acc` now.
pub(crate) unsafe fn fold_own<R: Region>(region: &R, send: &Data<'_>, part: Part, acc: Extent, op: &Op) {
    // SAFETY: the caller's promise.
    unsafe { fold_private_within(region, stretch(send, part), acc, op) }
}

/// `receive = message ∘ receive` for a part of `receive`; the left operand lies in a fragment, or where it was lent.
///
/// # Errors
/// Lent memory can't be read.
///
/// # Safety
/// The fragment or loan is published and not written now; `receive` is writable and exclusive.
#[inline(always)]
pub(crate) unsafe fn fold_shared<R: Region>(
    region: &R,
    origin: Origin,
    receive: &Data<'_>,
    part: Part,
    op: &Op,
) -> Result<(), Unreadable> {
    match origin {
        Origin::Segment(place) => {
            // SAFETY: the caller's promise.
            unsafe { region.fold(place.part(0, part.len), stretch(receive, part), op) };
            Ok(())
        }
        // SAFETY: as above.
        Origin::Lent(lent) => unsafe { lent.fold(region, part.from, stretch(receive, part), op) },
    }
}

/// `receive = message ∘ send` for a part of all three, of an op that commutes; the message was lent.
///
/// # Errors
/// Lent memory can't be read.
///
/// # Safety
/// The loan is published and not written now; `send` is readable, `receive` writable and exclusive, and they are apart.
#[inline(always)]
pub(crate) unsafe fn fold_lent_with<R: Region>(
    region: &R,
    lent: Lent,
    (send, receive): (&Data<'_>, &Data<'_>),
    part: Part,
    op: &Op,
) -> Result<(), Unreadable> {
    // SAFETY: the caller's promise.
    unsafe { lent.fold_with(region, part.from, stretch(send, part), stretch(receive, part), op) }
}
