//! Ranks in groups, and a vector in one column for each rank of a group: rank c of each group folds column c of its group, and
//! then, among the ranks c of all groups, a share of it.

use super::copy::Part;
use super::loans::Origin;
use super::pieces::take;
use crate::Rank;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::buffer::Buf;
use crate::error::{Argument, Bound, Refusal};
use crate::op::Op;
use crate::region::{Extent, Region, Unreadable};

/// Ranks of a group where the number of ranks allows it: those of a level-3 cache of many machines. Else what is next to it.
const GROUP: u32 = 8;

/// Bytes at a multiple of which a column's piece begins in a fragment, if elements allow it.
const ALIGNED: u64 = 64;

/// Ranks in groups of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Groups {
    /// Ranks of a group; columns.
    pub(crate) columns: u32,
    /// Number of groups; shares of a piece.
    pub(crate) count: u32,
    /// The ranks of a group are not neighbours, but one of each of those; those of a column are.
    across: bool,
}

impl Groups {
    /// The groups of `size` ranks: two at least, of two ranks at least and of fewer than twice [`GROUP`]; `None`: there are no
    /// such groups of one size.
    pub(crate) fn of(size: u32) -> Option<Self> {
        let fits = |columns: &u32| *columns >= 2 && size > *columns && size.is_multiple_of(*columns);
        let near = (0..GROUP).flat_map(|off| [GROUP + off, GROUP - off]);
        near.filter(fits).map(|columns| Self { columns, count: size / columns, across: false }).next()
    }

    /// The columns of these groups as groups: so what is far comes first.
    #[must_use]
    pub(crate) const fn across(self) -> Self {
        Self { columns: self.count, count: self.columns, across: !self.across }
    }

    /// Has a slot of `slot` bytes room for a group's blocks of `bytes`?
    pub(crate) fn fit(self, slot: u64, bytes: u64) -> bool {
        bytes <= slot / u64::from(self.columns)
    }

    /// The groups of all ranks.
    ///
    /// # Errors
    /// There are none.
    pub(crate) fn of_all(me: &Member) -> Result<Self, Refusal> {
        let size = me.size();
        Self::of(size).ok_or(Refusal::new(Argument::Ranks, size.into(), Bound::MultipleOf(2)))
    }

    /// These groups, if a slot has room for a group's blocks of `bytes`.
    ///
    /// # Errors
    /// It has not.
    pub(crate) fn with_room(self, me: &Member, bytes: u64) -> Result<Self, Refusal> {
        let most = me.layout().params().queue_fragment / u64::from(self.columns);
        Refusal::check(Argument::Bytes, bytes, Bound::AtMost(most))?;
        Ok(self)
    }

    /// Copies the blocks of a group's ranks, of `bytes` bytes each, from side by side at `place` to where they are received. `all`: the
    /// memory of all blocks, if they lie one after the other.
    ///
    /// # Safety
    /// As [`take`]'s, for each of the blocks.
    pub(crate) unsafe fn take_row<R: Region>(
        self,
        region: &R,
        place: Extent,
        (receive, all): (&Blocks<'_>, Option<Buf>),
        group: u32,
        bytes: u64,
    ) -> Result<(), Unreadable> {
        if let Some(row) = self.row(all, group, bytes) {
            // SAFETY: the caller's promise.
            unsafe { region.read(place, row) };
            return Ok(());
        }
        for column in 0..self.columns {
            let from = Origin::Segment(place.part(u64::from(column) * bytes, bytes));
            let block = receive.block(self.rank(group, column));
            // SAFETY: the caller's promise.
            unsafe { take(region, from, &block, Part::first(bytes)) }?;
        }
        Ok(())
    }

    /// The rank that is in this group and column.
    pub(crate) const fn rank(self, group: u32, column: u32) -> Rank {
        if self.across { column * self.count + group } else { group * self.columns + column }
    }

    /// The blocks of a group's ranks, of `bytes` bytes each, in memory that has those of all ranks one after the other; `None`: they are
    /// apart.
    pub(crate) fn row(self, all: Option<Buf>, group: u32, bytes: u64) -> Option<Buf> {
        if self.across {
            return None;
        }
        let bytes = u64::from(self.columns) * bytes;
        Some(Buf::new(all?.ptr().wrapping_add((u64::from(group) * bytes) as usize), bytes as usize))
    }

    /// Does `me` take from `peer`, which may be itself, in this of two steps: first within its group, then within its column? In step 0
    /// it receives the lines of its column, too.
    pub(crate) const fn meets(self, me: Rank, step: u64, peer: Rank) -> bool {
        let across = self.column(peer) == self.column(me);
        if step == 0 { across || self.group(peer) == self.group(me) } else { across && peer != me }
    }

    /// Does it read what `peer` posts in this step? In step 0 only if `peer` is in its group.
    pub(crate) const fn reads(self, me: Rank, step: u64, peer: Rank) -> bool {
        step > 0 || self.group(peer) == self.group(me)
    }

    pub(crate) const fn column(self, rank: Rank) -> u32 {
        if self.across { rank / self.count } else { rank % self.columns }
    }

    pub(crate) const fn group(self, rank: Rank) -> u32 {
        if self.across { rank % self.count } else { rank / self.columns }
    }

    /// Bytes of a column's piece: as many as fit into a fragment beside those of all columns. 0: an element of each share does not
    /// fit, or elements have no bytes.
    pub(crate) fn piece(self, me: &Member, element: u64) -> u64 {
        let room = me.layout().params().queue_fragment / u64::from(self.columns);
        let shares = element.saturating_mul(self.count.into());
        let Some(fit) = room.checked_div(shares) else { return 0 };
        // So many elements of each share are whole lines.
        let lines = ALIGNED >> shares.trailing_zeros().min(ALIGNED.trailing_zeros());
        (if fit < lines { fit } else { fit / lines * lines }) * shares
    }
}

/// A vector in columns, and these in pieces, of which those of all columns lie side by side in a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Columns {
    pub(crate) groups: Groups,
    /// Bytes of the vector.
    all: u64,
    /// Bytes of an element.
    element: u64,
    /// Bytes of a column; the last ones may be shorter, or empty.
    column: u64,
    /// Bytes of a column's piece.
    piece: u64,
    /// Number of pieces of a column.
    pub(crate) pieces: u64,
}

impl Columns {
    /// Those of a vector of `bytes`.
    ///
    /// # Errors
    /// The ranks can't be cut into groups, or a slot has no room for an element of each share; `bytes` is not a whole number of
    /// elements.
    pub(crate) fn new(me: &Member, bytes: u64, op: &Op) -> Result<Self, Refusal> {
        let groups = Groups::of(me.size()).unwrap_or(Groups { columns: 1, count: 1, across: false });
        let (element, piece) = (op.element(), if groups.count > 1 { groups.piece(me, op.element()) } else { 0 });
        Refusal::check(Argument::Element, element, Bound::AtMost(piece))?;
        let column = op.count(bytes)?.div_ceil(groups.columns.into()) * element;
        let pieces = column.div_ceil(piece).max(1);
        Ok(Self { groups, all: bytes, element, column, piece, pieces })
    }

    /// The part of the vector that is the piece of this index of a column.
    pub(crate) fn part(&self, column: u32, piece: u64) -> Part {
        let begin = (u64::from(column) * self.column).min(self.all);
        let end = (begin + self.column).min(self.all);
        let from = (begin + piece * self.piece).min(end);
        Part { from, len: self.piece.min(end - from) }
    }

    /// One of `count` shares of a piece; and how far from the piece's begin it is.
    pub(crate) fn share(&self, piece: Part, index: u32, count: u32) -> (Part, u64) {
        let Part { from, len } = piece;
        let each = (len / self.element).div_ceil(count.into()) * self.element;
        let at = (u64::from(index) * each).min(len);
        (Part { from: from + at, len: each.min(len - at) }, at)
    }

    /// Bytes from the begin of a fragment to a column's piece.
    pub(crate) fn offset(&self, column: u32) -> u64 {
        u64::from(column) * self.piece.min(self.column.next_multiple_of(ALIGNED))
    }

    /// Bytes of a fragment.
    pub(crate) fn bytes(&self) -> u64 {
        self.offset(self.groups.columns)
    }

    /// `len` bytes from `at` on of a column's piece in a fragment.
    pub(crate) fn within(&self, fragment: Extent, column: u32, at: u64, len: u64) -> Extent {
        fragment.part(self.offset(column) + at, len)
    }
}
