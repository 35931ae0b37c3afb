//! Where the blocks of a collective lie in an area, and vectors that are cut into slices and segments.

use super::schedule::{Area, Place, Work};
use crate::error::{Argument, Bound, Refusal};
use crate::op::Op;
use crate::pattern::{Seat, rotated};

/// Most bytes of a vector, and of all blocks of an area: the sum of a few such numbers fits 64 bits.
pub const MOST: u64 = 1 << 61;

/// Checks that these are at most [`MOST`] bytes.
pub(super) fn check_bytes(bytes: u64) -> Result<(), Refusal> {
    Refusal::check(Argument::Bytes, bytes, Bound::AtMost(MOST)).map(|_| ())
}

/// Checks that a reduction's operand has at most [`MOST`] bytes, and a whole number of elements.
pub(super) fn check_operand(bytes: u64, op: &Op) -> Result<(), Refusal> {
    check_bytes(bytes)?;
    op.count(bytes).map(|_| ())
}

/// Blocks of an area, one per rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts<'a> {
    size: u32,
    cut: Cut<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Cut<'a> {
    /// Blocks of `bytes` bytes each, one after the other.
    Equal { bytes: u64 },
    /// Rank r's block has `counts[r]` elements and starts `displacements[r]` elements into the area.
    Vary { counts: &'a [u64], displacements: &'a [u64], element: u64 },
    /// The slices of a vector, one after the other; their lengths differ by one element at most.
    Slices(Slices),
}

impl<'a> Parts<'a> {
    /// Blocks of any lengths, as in MPI_Allgatherv: rank r's block has `counts[r]` elements of `element` bytes and
    /// starts `displacements[r]` elements into the area.
    ///
    /// # Errors
    /// There are not as many counts or displacements as ranks; a block ends after [`MOST`] bytes; all blocks together
    /// have more.
    pub fn vary(size: u32, counts: &'a [u64], displacements: &'a [u64], element: u64) -> Result<Self, Refusal> {
        Refusal::check(Argument::Ranks, counts.len() as u64, Bound::Equals(size.into()))?;
        Refusal::check(Argument::Displacements, displacements.len() as u64, Bound::Equals(size.into()))?;
        let mut total = 0u64;
        for (&count, &displacement) in counts.iter().zip(displacements) {
            let reach = count.checked_add(displacement).and_then(|elements| elements.checked_mul(element));
            Refusal::check(Argument::Extent, reach.unwrap_or(u64::MAX), Bound::AtMost(MOST))?;
            total += count * element;
            check_bytes(total)?;
        }
        Ok(Self { size, cut: Cut::Vary { counts, displacements, element } })
    }

    /// Blocks of `bytes` bytes.
    ///
    /// # Errors
    /// The blocks of all ranks have more than [`MOST`] bytes.
    pub fn equal(size: u32, bytes: u64) -> Result<Self, Refusal> {
        Refusal::check(Argument::Bytes, bytes, Bound::AtMost(MOST / u64::from(size.max(1))))?;
        Ok(Self { size, cut: Cut::Equal { bytes } })
    }

    /// The slices of a vector, one per rank.
    pub const fn slices(size: u32, slices: Slices) -> Self {
        Self { size, cut: Cut::Slices(slices) }
    }

    /// Number of blocks.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Checks that there is one block per rank.
    ///
    /// # Errors
    /// There are fewer or more.
    pub fn check(&self, seat: Seat) -> Result<(), Refusal> {
        Refusal::check(Argument::Ranks, self.size.into(), Bound::Equals(seat.size().into())).map(|_| ())
    }

    /// The length of every block in bytes, if all are equally long and one after the other.
    #[inline]
    pub const fn equally(&self) -> Option<u64> {
        match self.cut {
            Cut::Equal { bytes } => Some(bytes),
            _ => None,
        }
    }

    /// Are all blocks equally long and one after the other?
    pub const fn is_equal(&self) -> bool {
        self.equally().is_some()
    }

    /// Do all blocks lie one after the other, in the order of the ranks?
    pub(super) fn are_in_a_row(&self) -> bool {
        let mut end = 0;
        (0..self.size).map(|rank| self.place(Area::Receive, rank)).all(|Place { at, len, .. }| {
            let follows = len == 0 || at == end;
            end += len;
            follows
        })
    }

    /// Bytes of `rank`'s block.
    #[inline]
    pub fn len(&self, rank: u32) -> u64 {
        match self.cut {
            Cut::Equal { bytes } => bytes,
            Cut::Vary { counts, element, .. } => counts.get(rank as usize).map_or(0, |count| count * element),
            Cut::Slices(slices) => slices.at(rank + 1) - slices.at(rank),
        }
    }

    /// `rank`'s block in `area`.
    #[inline]
    pub fn place(&self, area: Area, rank: u32) -> Place {
        let at = match self.cut {
            Cut::Equal { bytes } => u64::from(rank) * bytes,
            // An empty block may have any displacement.
            Cut::Vary { .. } if self.len(rank) == 0 => 0,
            Cut::Vary { displacements, element, .. } => displacements.get(rank as usize).map_or(0, |d| d * element),
            Cut::Slices(slices) => slices.at(rank),
        };
        Place::new(area, at, self.len(rank))
    }

    /// Bytes from the area's start to the end of the last block.
    pub fn reach(&self) -> u64 {
        match self.cut {
            Cut::Equal { bytes } => u64::from(self.size) * bytes,
            Cut::Vary { .. } => {
                let ends = (0..self.size).map(|rank| self.place(Area::Receive, rank)).map(|place| place.at + place.len);
                ends.max().unwrap_or(0)
            }
            Cut::Slices(slices) => slices.at(self.size),
        }
    }

    /// Bytes of all blocks.
    pub fn total(&self) -> u64 {
        match self.cut {
            Cut::Vary { .. } => (0..self.size).map(|rank| self.len(rank)).sum(),
            _ => self.reach(),
        }
    }

    /// Bytes of the longest block.
    pub fn most(&self) -> u64 {
        match self.cut {
            Cut::Equal { bytes } => bytes,
            Cut::Vary { .. } => (0..self.size).map(|rank| self.len(rank)).max().unwrap_or(0),
            Cut::Slices(_) => self.len(0),
        }
    }
}

/// A vector cut into slices of whole elements, one after the other; the first slices have one element more than the
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slices {
    /// Bytes of an element.
    element: u64,
    /// Elements of a slice; the first ones have one more.
    whole: u64,
    /// Number of slices that have one more.
    rest: u32,
}

impl Slices {
    /// A vector of `bytes` bytes, whose elements have `element` bytes, cut into `slices` slices. 0 as `element` or
    /// `slices` is taken as 1.
    pub const fn new(bytes: u64, element: u64, slices: u32) -> Self {
        let element = if element == 0 { 1 } else { element };
        let (elements, slices) = (bytes / element, if slices == 0 { 1 } else { slices as u64 });
        Self { element, whole: elements / slices, rest: (elements % slices) as u32 }
    }

    /// First byte of a slice.
    #[inline]
    pub const fn at(&self, slice: u32) -> u64 {
        let longer = if slice < self.rest { slice } else { self.rest };
        (slice as u64 * self.whole + longer as u64) * self.element
    }

    /// `count` slices from the `first` on.
    #[inline]
    pub const fn place(&self, area: Area, first: u32, count: u32) -> Place {
        Place::new(area, self.at(first), self.at(first + count) - self.at(first))
    }
}

/// Bytes cut into segments, one after the other, of equal length but for the last. There is at least one segment,
/// which is empty if there are no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segments {
    bytes: u64,
    segment: u64,
}

impl Segments {
    /// `bytes` bytes in segments of `segment` bytes, cut to whole elements of `element` bytes.
    pub const fn new(bytes: u64, segment: u64, element: u64) -> Self {
        let element = if element == 0 { 1 } else { element };
        let segment = if segment < element { element } else { segment - segment % element };
        Self { bytes, segment }
    }

    /// Number of segments.
    #[inline]
    pub const fn count(&self) -> u64 {
        if self.bytes == 0 { 1 } else { self.bytes.div_ceil(self.segment) }
    }

    /// The `index`-th segment of bytes that start at 0 of `area`; `None` past the last.
    #[inline]
    pub fn place(&self, area: Area, index: u64) -> Option<Place> {
        (index < self.count()).then(|| self.of(Place::new(area, 0, self.bytes), index))
    }

    /// The `index`-th segment of a place; an empty one past its end.
    #[inline]
    pub fn of(&self, place: Place, index: u64) -> Place {
        let at = index.saturating_mul(self.segment).min(place.len);
        Place { at: place.at + at, len: self.segment.min(place.len - at), ..place }
    }
}

/// A row: the blocks of all ranks packed one after the other, from that of rank `start` on and around to the rank
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row<'a> {
    /// The blocks.
    pub parts: Parts<'a>,
    /// The rank whose block comes first.
    pub start: u32,
}

impl Row<'_> {
    /// `count` blocks from the `first`-th on, in a row that starts at 0 of `area`. Blocks of different lengths cost
    /// an addition each.
    #[inline]
    pub fn place(&self, area: Area, first: u32, count: u32) -> Place {
        let Self { parts, start } = *self;
        let sum = |from: u32, to: u32| match parts.equally() {
            Some(bytes) => u64::from(to - from) * bytes,
            None => (from..to).map(|index| parts.len(rotated(index, start, parts.size))).sum(),
        };
        Place::new(area, sum(0, first), sum(first, first + count))
    }

    /// The `index`-th run of blocks that lie one after the other both in the row and among the user's blocks: its
    /// place in the row, which is in `row`, and its place in `area`.
    fn run(&self, row: Area, area: Area, index: u32) -> Option<(Place, Place)> {
        let size = self.parts.size;
        let (first, count) = match (self.parts.is_equal(), index) {
            // From `start` to the last rank, then from rank 0 on.
            (true, 0) => (0, size - self.start),
            (true, 1) => (size - self.start, self.start),
            (false, index) if index < size => (index, 1),
            _ => return None,
        };
        let packed = self.place(row, first, count);
        let rank = if first == size { 0 } else { rotated(first, self.start, size) };
        Some((packed, Place { len: packed.len, ..self.parts.place(area, rank) }))
    }

    /// The `index`-th of the [`Self::runs`] copies that pack the blocks of `area` into a row in `row`.
    #[inline]
    pub fn pack(&self, area: Area, row: Area, index: u32) -> Option<Work> {
        self.run(row, area, index).map(|(to, from)| Work::Copy { from, to })
    }

    /// The `index`-th of the [`Self::runs`] copies that unpack a row in `row` into the blocks of `area`.
    #[inline]
    pub fn unpack(&self, row: Area, area: Area, index: u32) -> Option<Work> {
        self.run(row, area, index).map(|(from, to)| Work::Copy { from, to })
    }

    /// Number of copies that pack or unpack.
    #[inline]
    pub const fn runs(&self) -> u32 {
        if self.parts.is_equal() { 2 } else { self.parts.size }
    }
}
