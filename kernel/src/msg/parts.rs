//! Where the blocks of a collective lie in an area, and vectors that are cut into slices and segments.

use super::schedule::{Area, Place, Work};
use crate::error::{Argument, Bound, Refusal};
use crate::pattern::turned;

/// Blocks of an area, one per rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parts<'a> {
    /// `bytes` bytes each, in a row.
    Equal {
        /// Bytes of a block.
        bytes: u64,
    },
    /// Rank r's has `counts[r]` elements and begins `displacements[r]` elements into the area.
    Vary {
        /// Elements of the blocks.
        counts: &'a [u64],
        /// Elements before the blocks.
        displacements: &'a [u64],
        /// Bytes of an element.
        element: u64,
    },
    /// A vector cut into slices in a row whose lengths differ by an element at most.
    Slices(Slices),
}

impl<'a> Parts<'a> {
    /// Blocks of any lengths, as in MPI_Allgatherv.
    ///
    /// # Errors
    /// Not as many counts or displacements as ranks, or a block ends beyond 2⁶³ bytes.
    pub fn vary(size: u32, counts: &'a [u64], displacements: &'a [u64], element: u64) -> Result<Self, Refusal> {
        Refusal::check(Argument::Ranks, counts.len() as u64, Bound::Equals(size.into()))?;
        Refusal::check(Argument::Displacements, displacements.len() as u64, Bound::Equals(size.into()))?;
        for (&count, &displacement) in counts.iter().zip(displacements) {
            let reach = count.checked_add(displacement).and_then(|elements| elements.checked_mul(element));
            Refusal::check(Argument::Extent, reach.unwrap_or(u64::MAX), Bound::AtMost(i64::MAX as u64))?;
        }
        Ok(Self::Vary { counts, displacements, element })
    }

    /// Blocks of `bytes` bytes.
    ///
    /// # Errors
    /// The blocks of all ranks have more than 2⁶³ bytes.
    pub fn equal(size: u32, bytes: u64) -> Result<Self, Refusal> {
        Refusal::check(Argument::Bytes, bytes, Bound::AtMost(i64::MAX as u64 / u64::from(size.max(1))))?;
        Ok(Self::Equal { bytes })
    }

    /// Are all blocks equally long and in a row?
    pub const fn is_equal(&self) -> bool {
        matches!(self, Self::Equal { .. })
    }

    /// Bytes of `rank`'s block.
    #[inline]
    pub fn len(&self, rank: u32) -> u64 {
        match *self {
            Self::Equal { bytes } => bytes,
            Self::Vary { counts, element, .. } => counts.get(rank as usize).map_or(0, |count| count * element),
            Self::Slices(slices) => slices.at(rank + 1) - slices.at(rank),
        }
    }

    /// `rank`'s block in `area`.
    #[inline]
    pub fn place(&self, area: Area, rank: u32) -> Place {
        let at = match *self {
            Self::Equal { bytes } => u64::from(rank) * bytes,
            Self::Vary { displacements, element, .. } => displacements.get(rank as usize).map_or(0, |d| d * element),
            Self::Slices(slices) => slices.at(rank),
        };
        Place::new(area, at, self.len(rank))
    }

    /// Bytes from the area's start to the end of the last of `size` blocks.
    pub fn reach(&self, size: u32) -> u64 {
        match *self {
            Self::Equal { bytes } => u64::from(size) * bytes,
            Self::Vary { .. } => {
                let ends = (0..size).map(|rank| self.place(Area::Receive, rank)).filter(|place| place.len > 0);
                ends.map(|place| place.at + place.len).max().unwrap_or(0)
            }
            Self::Slices(slices) => slices.at(size),
        }
    }

    /// Bytes of all `size` blocks.
    pub fn total(&self, size: u32) -> u64 {
        match self {
            Self::Vary { .. } => (0..size).map(|rank| self.len(rank)).sum(),
            _ => self.reach(size),
        }
    }

    /// Bytes of the longest of `size` blocks.
    pub fn most(&self, size: u32) -> u64 {
        match self {
            Self::Equal { bytes } => *bytes,
            Self::Vary { .. } => (0..size).map(|rank| self.len(rank)).max().unwrap_or(0),
            Self::Slices(_) => self.len(0),
        }
    }
}

/// A vector cut into slices in a row, at whole elements; the first ones are longer by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slices {
    /// Bytes of an element.
    element: u64,
    /// Elements of a slice, or one more.
    whole: u64,
    /// Slices that have one more.
    rest: u32,
}

impl Slices {
    /// `bytes` of elements of `element` bytes, cut into `slices`, of which there is one at least.
    pub const fn new(bytes: u64, element: u64, slices: u32) -> Self {
        let elements = match bytes.checked_div(element) {
            Some(elements) => elements,
            None => 0,
        };
        Self { element, whole: elements / slices as u64, rest: (elements % slices as u64) as u32 }
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

/// Bytes cut into segments in a row, of equal length but for the last; one at least, even of nothing.
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

    /// The `index`-th segment of bytes that begin at 0 of `area`; none past the last.
    #[inline]
    pub fn place(&self, area: Area, index: u64) -> Option<Place> {
        (index < self.count()).then(|| self.of(Place::new(area, 0, self.bytes), index))
    }

    /// The `index`-th segment of a place; nothing past its end.
    #[inline]
    pub fn of(&self, place: Place, index: u64) -> Place {
        let at = index.saturating_mul(self.segment).min(place.len);
        Place { at: place.at + at, len: self.segment.min(place.len - at), ..place }
    }
}

/// The blocks of all ranks packed in a row, beginning with that of rank `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row<'a> {
    /// The blocks.
    pub parts: Parts<'a>,
    /// Number of ranks.
    pub size: u32,
    /// Whose block comes first.
    pub start: u32,
}

impl Row<'_> {
    /// `count` blocks from the `first` on, in a row that begins at 0 of `area`. Blocks that vary cost an addition each.
    #[inline]
    pub fn place(&self, area: Area, first: u32, count: u32) -> Place {
        let Self { parts, size, start } = *self;
        let sum = |from: u32, to: u32| match parts {
            Parts::Equal { bytes } => u64::from(to - from) * bytes,
            _ => (from..to).map(|index| parts.len(turned(index, start, size))).sum(),
        };
        Place::new(area, sum(0, first), sum(first, first + count))
    }

    /// The `index`-th pair of a stretch of the row in `row`, and the same blocks where they lie in `area`.
    fn run(&self, row: Area, area: Area, index: u32) -> Option<(Place, Place)> {
        let (first, count) = match self.parts {
            // Until the last rank's, then from rank 0 on.
            Parts::Equal { .. } => match index {
                0 => (0, self.size - self.start),
                1 => (self.size - self.start, self.start),
                _ => return None,
            },
            _ if index < self.size => (index, 1),
            _ => return None,
        };
        let packed = self.place(row, first, count);
        let rank = if first == self.size { 0 } else { turned(first, self.start, self.size) };
        Some((packed, Place { len: packed.len, ..self.parts.place(area, rank) }))
    }

    /// The `index`-th copy of [`Self::runs`] that packs the blocks of `area` into a row in `row`.
    #[inline]
    pub fn pack(&self, area: Area, row: Area, index: u32) -> Option<Work> {
        self.run(row, area, index).map(|(to, from)| Work::Copy { from, to })
    }

    /// The `index`-th copy of [`Self::runs`] that unpacks a row in `row` into the blocks of `area`.
    #[inline]
    pub fn unpack(&self, row: Area, area: Area, index: u32) -> Option<Work> {
        self.run(row, area, index).map(|(from, to)| Work::Copy { from, to })
    }

    /// Number of copies that pack or unpack.
    #[inline]
    pub const fn runs(&self) -> u32 {
        if self.parts.is_equal() { 2 } else { self.size }
    }
}
