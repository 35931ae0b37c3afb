//! Datatypes as blocks (MPI 4.1, chapter 5): contiguous, vector, indexed blocks, struct; and user data of such a type.
//!
//! Data has a *packed* order: its bytes without the holes. Machines cut the packed order into
//! fragments; [`Data::runs`] returns the stretches of memory that a fragment consists of.

use crate::data::buffer::Buf;
use crate::error::{Argument, Bound, Refusal};
use core::cell::Cell;
use core::marker::PhantomData;

/// How the bytes of one element lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Datatype<'a> {
    /// `bytes` bytes in a row; the extent equals the size.
    Contiguous {
        /// Bytes of one element.
        bytes: u64,
    },
    /// `blocks` blocks of `block` bytes, `stride` bytes from start to start (MPI_Type_create_hvector).
    /// The extent ends at the end of the last block.
    Vector {
        /// Number of blocks.
        blocks: u64,
        /// Bytes of a block.
        block: u64,
        /// Bytes from one block's start to the next one's; at least `block`.
        stride: u64,
    },
    /// A block of `block` bytes at each displacement (MPI_Type_create_hindexed_block). The extent
    /// ends at the end of the block with the largest displacement.
    Indexed {
        /// Bytes of a block.
        block: u64,
        /// Byte displacements of the blocks.
        displacements: &'a [u64],
    },
    /// Fields of any length, in packed order (MPI_Type_create_struct, MPI_Type_create_hindexed). The
    /// extent is given, so that it may include padding at the end.
    Struct {
        /// The fields.
        fields: &'a [Field],
        /// Bytes from one element to the next one; at least to the end of every field.
        extent: u64,
    },
}

/// A block of a [`Datatype::Struct`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Bytes from the element's start.
    pub displacement: u64,
    /// Bytes of the field.
    pub bytes: u64,
}

impl Datatype<'_> {
    /// One byte (MPI_BYTE).
    pub const BYTE: Datatype<'static> = Datatype::Contiguous { bytes: 1 };

    /// Packed bytes of one element; `None` if that is beyond 2⁶⁴.
    pub const fn size(&self) -> Option<u64> {
        match *self {
            Self::Contiguous { bytes } => Some(bytes),
            Self::Vector { blocks, block, .. } => blocks.checked_mul(block),
            Self::Indexed { block, displacements } => block.checked_mul(displacements.len() as u64),
            Self::Struct { mut fields, .. } => {
                let mut size = 0u64;
                while let [field, rest @ ..] = fields {
                    match size.checked_add(field.bytes) {
                        Some(sum) => (size, fields) = (sum, rest),
                        None => return None,
                    }
                }
                Some(size)
            }
        }
    }

    /// Do any number of elements lie in memory as they are packed, without holes?
    #[inline]
    pub const fn is_dense(&self) -> bool {
        match *self {
            Self::Contiguous { .. } => true,
            Self::Vector { blocks, block, stride } => blocks <= 1 || block == stride,
            Self::Indexed { .. } | Self::Struct { .. } => false,
        }
    }

    /// Bytes from one element's start to the next one's, holes included; `None` if that is beyond 2⁶⁴.
    #[inline(always)]
    pub fn extent(&self) -> Option<u64> {
        if let Self::Contiguous { bytes } = *self { Some(bytes) } else { self.extent_with_holes() }
    }

    #[cold]
    fn extent_with_holes(&self) -> Option<u64> {
        match *self {
            Self::Contiguous { bytes } => Some(bytes),
            Self::Vector { blocks: 0, .. } => Some(0),
            Self::Vector { blocks, block, stride } => (blocks - 1).checked_mul(stride)?.checked_add(block),
            Self::Indexed { block, displacements } => match displacements.iter().max() {
                None => Some(0),
                Some(last) => last.checked_add(block),
            },
            Self::Struct { extent, .. } => Some(extent),
        }
    }
}

/// A user's data: `count` elements of a datatype, one extent after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Data<'a> {
    base: *mut u8,
    bytes: u64,
    shape: Shape<'a>,
    life: PhantomData<&'a ()>,
}

/// Where the packed bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Shape<'a> {
    /// In a row.
    Dense,
    /// In blocks, with holes; elements of `size` packed bytes, `extent` bytes apart.
    Blocks { size: u64, extent: u64, datatype: Datatype<'a> },
}

impl<'a> Shape<'a> {
    #[inline]
    const fn of(datatype: Datatype<'a>, size: u64, extent: u64) -> Self {
        if datatype.is_dense() { Self::Dense } else { Self::Blocks { size, extent, datatype } }
    }
}

impl<'a> Data<'a> {
    /// No bytes.
    pub(crate) const EMPTY: Self = Self::contiguous(Buf::new(core::ptr::NonNull::dangling().as_ptr(), 0));

    /// Contiguous bytes that will be read and written.
    #[inline]
    pub const fn bytes_mut(bytes: &'a mut [u8]) -> Self {
        Self::contiguous(Buf::of_mut(bytes))
    }

    /// Contiguous bytes that the caller may still write and read, between the starts of a persistent operation. Data
    /// never leaves its thread, so no other thread uses them at the same time.
    #[inline]
    pub const fn cells(bytes: &'a [Cell<u8>]) -> Self {
        Self::contiguous(Buf::new(bytes.as_ptr().cast::<u8>().cast_mut(), bytes.len()))
    }

    /// Contiguous bytes that will only be read: for the input of a reduction.
    #[inline]
    pub(crate) const fn bytes(bytes: &'a [u8]) -> Self {
        Self::contiguous(Buf::of(bytes))
    }

    #[inline]
    const fn contiguous(memory: Buf) -> Self {
        Self { base: memory.ptr(), bytes: memory.len() as u64, shape: Shape::Dense, life: PhantomData }
    }

    /// `count` elements of `datatype`, from the start of `memory` on.
    ///
    /// # Errors
    /// The elements reach beyond `memory`, a vector's blocks overlap, or a struct's field ends after its extent.
    pub fn typed(memory: &'a mut [u8], count: u64, datatype: Datatype<'a>) -> Result<Self, Refusal> {
        // SAFETY: the slice is writable and exclusive for 'a.
        unsafe { Self::from_raw(Buf::of_mut(memory), count, datatype) }
    }

    /// The same from an address: for C callers.
    ///
    /// # Errors
    /// As [`Self::typed`].
    ///
    /// # Safety
    /// During `'a` `memory` is readable, and writable where the operation receives, and nothing else writes it.
    #[inline(always)]
    pub unsafe fn from_raw(memory: Buf, count: u64, datatype: Datatype<'a>) -> Result<Self, Refusal> {
        // Most calls have contiguous data: this path keeps it in registers.
        if let Datatype::Contiguous { bytes } = datatype
            && let Some(all) = count.checked_mul(bytes)
            && all <= (memory.len() as u64).min(i64::MAX as u64)
        {
            return Ok(Self::contiguous(Buf::new(memory.ptr(), all as usize)));
        }
        Self::checked(memory, count, datatype)
    }

    /// [`Self::from_raw`], of any datatype.
    fn checked(memory: Buf, count: u64, datatype: Datatype<'a>) -> Result<Self, Refusal> {
        let room = memory.len() as u64;
        let too_large = Refusal::new(Argument::Extent, u64::MAX, Bound::AtMost(room));
        if let Datatype::Vector { block, stride, .. } = datatype {
            Refusal::check(Argument::Extent, stride, Bound::AtLeast(block))?;
        }
        if let Datatype::Struct { fields, extent } = datatype {
            for field in fields {
                let end = field.displacement.saturating_add(field.bytes);
                Refusal::check(Argument::Extent, extent, Bound::AtLeast(end))?;
            }
        }
        let (size, extent) = (datatype.size().ok_or(too_large)?, datatype.extent().ok_or(too_large)?);
        let reach = extent.checked_mul(count).ok_or(too_large)?;
        Refusal::check(Argument::Extent, reach, Bound::AtMost(room))?;
        let bytes = size.checked_mul(count).ok_or(too_large)?;
        // Indexed blocks that overlap may pack to more bytes than their extent: these must fit 63 bits, too.
        Refusal::check(Argument::Bytes, bytes, Bound::AtMost(i64::MAX as u64))?;
        Ok(Self { base: memory.ptr(), bytes, shape: Shape::of(datatype, size, extent), life: PhantomData })
    }

    /// As many elements of the same datatype as pack to `bytes`, starting `offset` bytes after this data's start: a
    /// block of memory that was checked as a whole.
    #[inline(always)]
    pub(crate) const fn moved(&self, offset: u64, bytes: u64) -> Self {
        Self { base: self.base.wrapping_add(offset as usize), bytes, shape: self.shape, life: PhantomData }
    }

    /// `count` elements of `datatype`, starting `offset` bytes after this data's start: they were checked before.
    #[inline(always)]
    pub(crate) fn retyped(&self, offset: u64, count: u64, datatype: Datatype<'a>) -> Self {
        Self::of_type(self.base.wrapping_add(offset as usize), count, datatype)
    }

    /// [`Self::retyped`] without a reference to data, which would keep all data in memory.
    #[inline(never)]
    fn of_type(base: *mut u8, count: u64, datatype: Datatype<'a>) -> Self {
        let (size, extent) = (datatype.size().unwrap_or(0), datatype.extent().unwrap_or(0));
        Self { base, bytes: size * count, shape: Shape::of(datatype, size, extent), life: PhantomData }
    }

    /// Packed bytes of all elements.
    #[inline]
    pub const fn len(&self) -> u64 {
        self.bytes
    }

    /// No bytes?
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Has the data no holes?
    #[inline(always)]
    pub(crate) const fn is_contiguous(&self) -> bool {
        matches!(self.shape, Shape::Dense)
    }

    /// The address of its first element.
    #[inline(always)]
    pub(crate) const fn start(&self) -> *mut u8 {
        self.base
    }

    /// The memory; `None` if the data has holes.
    #[inline]
    pub const fn as_contiguous(&self) -> Option<Buf> {
        match self.shape {
            Shape::Dense => Some(Buf::new(self.base, self.bytes as usize)),
            Shape::Blocks { .. } => None,
        }
    }

    /// The memory of the packed bytes `from .. from + len`, cut at the data's end; `None` if the data has holes.
    #[inline(always)]
    pub(crate) const fn stretch(&self, from: u64, len: u64) -> Option<Buf> {
        let Shape::Dense = self.shape else { return None };
        let from = if from < self.bytes { from } else { self.bytes };
        let rest = self.bytes - from;
        Some(Buf::new(self.base.wrapping_add(from as usize), if len < rest { len } else { rest } as usize))
    }

    /// The stretches of memory that hold the packed bytes `from .. from + len`, in packed order.
    /// Bytes beyond the data's end are left out.
    #[inline(always)]
    pub fn runs(&self, from: u64, len: u64) -> Runs<'a> {
        let end = from.saturating_add(len).min(self.bytes);
        Runs { data: *self, at: from.min(end), end }
    }

    /// For packed byte `at`, which is below `self.bytes`: its offset in memory, and the bytes up to the block's end.
    #[inline]
    fn locate(&self, at: u64) -> (u64, u64) {
        let Shape::Blocks { size, extent, datatype } = self.shape else { return (at, self.bytes - at) };
        let (element, within) = (at / size, at % size);
        let start = element * extent;
        match datatype {
            Datatype::Contiguous { bytes } => (start + within, bytes - within),
            Datatype::Vector { block, stride, .. } => {
                let (index, rest) = (within / block, within % block);
                (start + index * stride + rest, block - rest)
            }
            Datatype::Indexed { block, displacements } => {
                let (index, rest) = (within / block, within % block);
                let displacement = displacements.get(index as usize).copied().unwrap_or(0);
                (start + displacement + rest, block - rest)
            }
            Datatype::Struct { fields, .. } => {
                let mut before = 0;
                for field in fields {
                    if within - before < field.bytes {
                        let rest = within - before;
                        return (start + field.displacement + rest, field.bytes - rest);
                    }
                    before += field.bytes;
                }
                // Not reached: `within` is below the fields' sum.
                (start, size - within)
            }
        }
    }
}

/// Stretches of memory in packed order; see [`Data::runs`].
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    data: Data<'a>,
    at: u64,
    end: u64,
}

impl Iterator for Runs<'_> {
    /// The place of the stretch's first byte in the packed order, and the stretch.
    type Item = (u64, Buf);

    #[inline]
    fn next(&mut self) -> Option<(u64, Buf)> {
        if self.at >= self.end {
            return None;
        }
        let at = self.at;
        let (offset, block) = self.data.locate(at);
        let len = block.min(self.end - at);
        self.at += len;
        let ptr = self.data.base.wrapping_add(offset as usize);
        Some((at, Buf::new(ptr, len as usize)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn packed(data: &Data<'_>, cut: u64) -> Vec<u8> {
        let mut out = Vec::new();
        for from in (0..data.len()).step_by(cut as usize) {
            for (at, run) in data.runs(from, cut) {
                assert_eq!(at, out.len() as u64);
                // SAFETY: a run lies inside the slice that `data` was made of, which outlives it.
                out.extend_from_slice(unsafe { core::slice::from_raw_parts(run.ptr(), run.len()) });
            }
        }
        out
    }

    #[test]
    fn runs_pack_what_the_definition_packs() {
        let mut memory: Vec<u8> = (0..=255).collect();
        let vector = Datatype::Vector { blocks: 3, block: 4, stride: 10 };
        let indexed = Datatype::Indexed { block: 2, displacements: &[8, 0, 5] };
        let field = |displacement, bytes| Field { displacement, bytes };
        let fields = [field(7, 3), field(0, 0), field(0, 2), field(4, 1)];
        let structure = Datatype::Struct { fields: &fields, extent: 12 };
        for (datatype, count, first) in [
            (Datatype::Contiguous { bytes: 5 }, 4, [0, 1, 2, 3, 4, 5]),
            (vector, 3, [0, 1, 2, 3, 10, 11]),
            (indexed, 5, [8, 9, 0, 1, 5, 6]),
            (structure, 4, [7, 8, 9, 0, 1, 4]),
        ] {
            let data = Data::typed(&mut memory, count, datatype).unwrap();
            let whole = packed(&data, u64::MAX >> 1);
            assert_eq!(whole.len() as u64, count * datatype.size().unwrap());
            assert_eq!(whole[..6], first);
            for cut in 1..20 {
                assert_eq!(packed(&data, cut), whole);
            }
        }
    }

    #[test]
    fn the_second_element_follows_the_first_ones_extent() {
        let mut memory: Vec<u8> = (0..=255).collect();
        let data = Data::typed(&mut memory, 2, Datatype::Vector { blocks: 2, block: 1, stride: 7 }).unwrap();
        assert_eq!(packed(&data, 100), [0, 7, 8, 15]);
        let fields = [Field { displacement: 0, bytes: 1 }];
        let data = Data::typed(&mut memory, 3, Datatype::Struct { fields: &fields, extent: 4 }).unwrap();
        assert_eq!(packed(&data, 2), [0, 4, 8]);
    }

    #[test]
    fn what_reaches_beyond_memory_is_refused() {
        let mut memory = [0; 24];
        let vector = |stride| Datatype::Vector { blocks: 3, block: 4, stride };
        assert!(Data::typed(&mut memory, 1, vector(10)).is_ok());
        for (count, datatype, value) in
            [(1, vector(11), 26), (2, vector(10), 48), (25, Datatype::BYTE, 25), (1, vector(3), 3)]
        {
            let refusal = Data::typed(&mut memory, count, datatype).unwrap_err();
            assert_eq!((refusal.argument, refusal.value), (Argument::Extent, value));
        }
        for datatype in [
            Datatype::Contiguous { bytes: u64::MAX },
            Datatype::Vector { blocks: u64::MAX, block: 1, stride: u64::MAX },
            Datatype::Indexed { block: u64::MAX, displacements: &[1, 2] },
            Datatype::Struct { fields: &[Field { displacement: 4, bytes: u64::MAX }], extent: 8 },
        ] {
            assert!(Data::typed(&mut memory, 3, datatype).is_err());
        }
    }
}
