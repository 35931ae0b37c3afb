//! A line: all ranks in an order in which the ranks below each member of each group are consecutive, so that their
//! blocks can travel as one message.

use super::circle::{Circle, Circles};
use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use crate::msg::parts::Parts;
use crate::msg::schedule::{Area, Place};
use crate::topology::group::Groups;
use core::ops::Range;

/// All ranks in this order, in the caller's storage. A rank's index in it is its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line<'s> {
    groups: &'s Groups<'s>,
    order: &'s [Rank],
}

impl<'s> Line<'s> {
    /// Builds the line of these groups, the same on every process, in O(L · P · log P) time for L levels and P ranks.
    /// `order` has one element per rank.
    ///
    /// # Errors
    /// `order` has another length.
    pub fn build(groups: &'s Groups<'s>, order: &'s mut [Rank]) -> Result<Self, Refusal> {
        Refusal::check(Argument::Ranks, order.len() as u64, Bound::Equals(groups.ranks().into()))?;
        for (rank, place) in (0..).zip(order.iter_mut()) {
            *place = rank;
        }
        order.sort_unstable_by(|&a, &b| path(groups, a).cmp(path(groups, b)));
        Ok(Self { groups, order })
    }

    /// The line whose order [`Self::build`] wrote before, of the same groups.
    pub(crate) const fn built(groups: &'s Groups<'s>, order: &'s [Rank]) -> Self {
        Self { groups, order }
    }

    /// The groups.
    pub const fn groups(&self) -> &'s Groups<'s> {
        self.groups
    }

    /// Number of ranks.
    pub(super) const fn len(&self) -> u32 {
        self.order.len() as u32
    }

    /// The rank at a place.
    pub(super) fn rank(&self, place: u32) -> Rank {
        self.order.get(place as usize).copied().unwrap_or(0)
    }

    /// The places of the ranks below `member` of a group on the level of this index.
    pub(super) fn below(&self, member: Rank, index: usize) -> Range<u32> {
        let begin = self.order.partition_point(|&rank| path(self.groups, rank).lt(path(self.groups, member)));
        let rest = self.order.get(begin..).unwrap_or_default();
        let count = rest.partition_point(|&rank| self.groups.above(rank, index) == member);
        begin as u32..(begin + count) as u32
    }
}

/// The members that a rank is below, from the outermost level to the innermost.
fn path<'s>(groups: &'s Groups<'_>, rank: Rank) -> impl Iterator<Item = Rank> + use<'s> {
    (0..groups.levels().len().max(1)).rev().map(move |index| groups.above(rank, index))
}

/// A row: the blocks of all ranks, packed in the order of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row<'s> {
    pub(super) line: Line<'s>,
    pub(super) parts: Parts<'s>,
}

impl Row<'_> {
    /// Bytes of the blocks at these places.
    fn bytes(&self, places: Range<u32>) -> u64 {
        match self.parts.equally() {
            Some(bytes) => u64::from(places.end.saturating_sub(places.start)) * bytes,
            None => places.map(|place| self.parts.len(self.line.rank(place))).sum(),
        }
    }

    /// The blocks at `places`, in a row in `area` that starts with the block at place `from`.
    pub(super) fn place(&self, area: Area, from: u32, places: Range<u32>) -> Place {
        Place::new(area, self.bytes(from..places.start), self.bytes(places))
    }

    /// Are the user's blocks, as they lie, a row already?
    pub(super) fn is_as_it_lies(&self) -> bool {
        self.parts.are_in_a_row() && self.line.order.iter().copied().eq(0..self.line.len())
    }

    /// The `index`-th block of the row in `area`, and the same block among the user's blocks in `user`.
    pub(super) fn block(&self, area: Area, user: Area, index: u32) -> Option<(Place, Place)> {
        let rank = self.line.order.get(index as usize).copied()?;
        Some((self.place(area, 0, index..index + 1), self.parts.place(user, rank)))
    }
}

/// Places `start .. end` of a line: a `Range` that can be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Places {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl From<Range<u32>> for Places {
    fn from(Range { start, end }: Range<u32>) -> Self {
        Self { start, end }
    }
}

/// A process of a gather or scatter, with its parent and its children: the other members of the groups of which it is
/// the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fan<'s> {
    circles: Circles<'s>,
    pub(super) line: Line<'s>,
    /// The places of the ranks whose blocks pass through this process, its own among them.
    pub(super) holds: Places,
    /// This process's place.
    pub(super) own: u32,
}

impl<'s> Fan<'s> {
    /// The part of `rank` in these circles. The head of all of them holds the blocks at the places `all`.
    pub(super) fn new(line: Line<'s>, rank: Rank, circles: Circles<'s>, all: Range<u32>) -> Self {
        let led = circles.iter().find(|(_, circle)| !circle.is_head());
        let holds = led.map_or(all, |(index, _)| line.below(rank, index));
        let own = line.below(rank, 0).find(|&place| line.rank(place) == rank).unwrap_or(0);
        Self { circles, line, holds: holds.into(), own }
    }

    /// The rank to which its blocks go, or from which they come; `None` for the head of all circles.
    pub(super) fn parent(&self) -> Option<Rank> {
        let (_, circle) = self.circles.iter().find(|(_, circle)| !circle.is_head())?;
        Some(circle.rank(circle.head()))
    }

    /// The `index`-th child, and the places of the ranks below it.
    pub(super) fn child(&self, mut index: u32) -> Option<(Rank, Range<u32>)> {
        for (level, circle) in self.circles.iter().filter(|(_, circle)| circle.is_head()) {
            let others = circle.size() - 1;
            if index < others {
                let position = index + u32::from(index >= circle.head());
                return Some((circle.rank(position), self.line.below(circle.member(position), level)));
            }
            index -= others;
        }
        None
    }

    /// Does only its own block pass through this process?
    pub(super) fn is_leaf(&self) -> bool {
        self.parent().is_some() && self.child(0).is_none()
    }

    /// The places of the ranks whose blocks pass through this process.
    pub(super) fn holds(&self) -> Range<u32> {
        self.holds.start..self.holds.end
    }
}

/// The places of the ranks below the member at a position of a circle of the last level.
pub(super) fn below(line: &Line<'_>, circle: &Circle<'_>, position: u32) -> Range<u32> {
    line.below(circle.member(position), line.groups.levels().len().saturating_sub(1))
}
