//! One block of user data per rank, which scatter, gather, allgather and alltoall send or receive.

use crate::Rank;
use crate::data::buffer::Buf;
use crate::data::datatype::{Data, Datatype};
use crate::error::{Argument, Bound, Condition, Refusal};

/// One block per rank, in one piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blocks<'a> {
    /// The memory, and the datatype that the blocks are made of.
    first: Data<'a>,
    /// Packed bytes and extent of one element.
    size: u64,
    extent: u64,
    ranks: u32,
    cut: Cut<'a>,
}

/// Where the blocks lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Cut<'a> {
    /// Blocks of `count` elements, one after the other.
    Equal { count: u64 },
    /// Block `r` has `counts[r]` elements and starts `displacements[r]` extents after the memory's start.
    Vary { counts: &'a [u64], displacements: &'a [u64] },
    /// Each block is of a datatype of its own.
    Each(&'a [Block<'a>]),
}

/// A block with a datatype of its own (MPI_Alltoallw).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block<'a> {
    /// Bytes from the memory's start.
    pub displacement: u64,
    /// Number of elements.
    pub count: u64,
    /// Their datatype.
    pub datatype: Datatype<'a>,
}

impl Block<'_> {
    /// Packed bytes.
    #[inline(never)]
    fn bytes(&self) -> u64 {
        self.datatype.size().unwrap_or(0) * self.count
    }

    /// Offsets of its first byte and of the first byte after it; `None` if it has no bytes, or holes: other blocks may
    /// lie in its holes, as with the columns of a matrix.
    fn dense(&self) -> Option<(u64, u64)> {
        let (size, extent) = sizes(self.datatype);
        let bytes = size.saturating_mul(self.count);
        (bytes > 0 && size == extent).then(|| (self.displacement, self.displacement.saturating_add(bytes)))
    }
}

impl<'a> Blocks<'a> {
    /// `ranks` blocks of `count` elements, one after the other (MPI_Scatter, MPI_Gather, ...).
    ///
    /// # Errors
    /// The blocks reach beyond `memory`; a datatype is refused as by [`Data::from_raw`].
    ///
    /// # Safety
    /// As [`Data::from_raw`].
    #[inline(always)]
    pub unsafe fn equal(memory: Buf, ranks: u32, count: u64, datatype: Datatype<'a>) -> Result<Self, Refusal> {
        let too_large = Refusal::new(Argument::Count, count, Bound::AtMost(u64::MAX / u64::from(ranks.max(1))));
        let all = count.checked_mul(ranks.into()).ok_or(too_large)?;
        // SAFETY: the caller's promise.
        let first = unsafe { Data::from_raw(memory, all, datatype) }?;
        let (size, extent) = sizes(datatype);
        Ok(Self { first, size, extent, ranks, cut: Cut::Equal { count } })
    }

    /// Block `r` has `counts[r]` elements and starts `displacements[r]` extents after the start of `memory`
    /// (MPI_Scatterv, MPI_Gatherv, ...).
    ///
    /// # Errors
    /// Fewer displacements than counts; a block reaches beyond `memory`; the datatype is refused as by [`Data::from_raw`].
    ///
    /// # Safety
    /// As [`Data::from_raw`].
    #[inline(always)]
    pub unsafe fn vary(
        memory: Buf,
        counts: &'a [u64],
        displacements: &'a [u64],
        datatype: Datatype<'a>,
    ) -> Result<Self, Refusal> {
        let ranks = counts.len();
        Refusal::check(Argument::Ranks, ranks as u64, Bound::AtMost(u32::MAX.into()))?;
        Refusal::check(Argument::Displacements, displacements.len() as u64, Bound::Equals(ranks as u64))?;
        // SAFETY: the caller's promise, for one element or none.
        let first = unsafe { Data::from_raw(memory, 0, datatype) }?;
        let (size, extent) = sizes(datatype);
        for (&count, &displacement) in counts.iter().zip(displacements) {
            let room = memory.len() as u64;
            let reach = count.checked_add(displacement).and_then(|elements| elements.checked_mul(extent));
            if count > 0 {
                Refusal::check(Argument::Extent, reach.unwrap_or(u64::MAX), Bound::AtMost(room))?;
                let bytes = count.saturating_mul(size);
                Refusal::check(Argument::Bytes, bytes, Bound::AtMost(i64::MAX as u64))?;
            }
        }
        Ok(Self { first, size, extent, ranks: ranks as u32, cut: Cut::Vary { counts, displacements } })
    }

    /// Blocks that have a datatype each (MPI_Alltoallw).
    ///
    /// # Errors
    /// A block reaches beyond `memory`; a datatype is refused as by [`Data::from_raw`].
    ///
    /// # Safety
    /// As [`Data::from_raw`].
    pub unsafe fn each(memory: Buf, blocks: &'a [Block<'a>]) -> Result<Self, Refusal> {
        Refusal::check(Argument::Ranks, blocks.len() as u64, Bound::AtMost(u32::MAX.into()))?;
        for block in blocks {
            let room = memory.len() as u64;
            if block.count > 0 {
                Refusal::check(Argument::Extent, block.displacement, Bound::AtMost(room))?;
            }
            // SAFETY: the caller's promise, for a part of the memory.
            unsafe { Data::from_raw(part(memory, block.displacement), block.count, block.datatype) }?;
        }
        // SAFETY: the caller's promise, for no element.
        let first = unsafe { Data::from_raw(memory, 0, Datatype::BYTE) }?;
        Ok(Self { first, size: 1, extent: 1, ranks: blocks.len() as u32, cut: Cut::Each(blocks) })
    }

    /// [`Self::equal`] in a slice.
    ///
    /// # Errors
    /// As [`Self::equal`].
    #[inline(always)]
    pub fn equal_mut(memory: &'a mut [u8], ranks: u32, count: u64, datatype: Datatype<'a>) -> Result<Self, Refusal> {
        // SAFETY: the slice is writable and exclusive for 'a.
        unsafe { Self::equal(Buf::of_mut(memory), ranks, count, datatype) }
    }

    /// [`Self::vary`] in a slice.
    ///
    /// # Errors
    /// As [`Self::vary`].
    pub fn vary_mut(
        memory: &'a mut [u8],
        counts: &'a [u64],
        displacements: &'a [u64],
        datatype: Datatype<'a>,
    ) -> Result<Self, Refusal> {
        // SAFETY: the slice is writable and exclusive for 'a.
        unsafe { Self::vary(Buf::of_mut(memory), counts, displacements, datatype) }
    }

    /// [`Self::each`] in a slice.
    ///
    /// # Errors
    /// As [`Self::each`].
    pub fn each_mut(memory: &'a mut [u8], blocks: &'a [Block<'a>]) -> Result<Self, Refusal> {
        // SAFETY: the slice is writable and exclusive for 'a.
        unsafe { Self::each(Buf::of_mut(memory), blocks) }
    }

    /// Checks blocks that are to be received: no two may share a byte. Of blocks that have a datatype each, only those
    /// without holes are compared.
    ///
    /// # Errors
    /// Two blocks overlap: the refusal names both ([`Bound::Apart`]).
    #[inline(always)]
    pub fn apart(&self) -> Result<(), Refusal> {
        match self.cut {
            Cut::Equal { .. } => Ok(()),
            Cut::Vary { counts, displacements } => counts_apart(counts, displacements),
            Cut::Each(blocks) => each_apart(blocks),
        }
    }

    /// Number of blocks.
    #[inline(always)]
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Packed bytes of `rank`'s block; 0 for a rank without a block.
    #[inline(always)]
    pub fn bytes(&self, rank: Rank) -> u64 {
        self.size * self.place(rank).0
    }

    /// Packed bytes of one element; 1 if each block has a datatype of its own.
    #[inline(always)]
    pub const fn element(&self) -> u64 {
        self.size
    }

    /// Elements of `rank`'s block; 0 for a rank without a block. Bytes if each block has a datatype of its own.
    #[inline(always)]
    pub fn count(&self, rank: Rank) -> u64 {
        self.place(rank).0
    }

    /// Checks that every block has `bytes` packed bytes.
    ///
    /// # Errors
    /// A block has another length.
    #[inline(always)]
    pub(crate) fn check_all(&self, bytes: u64) -> Result<(), Refusal> {
        let differing = match self.cut {
            Cut::Equal { count } => (self.size * count != bytes).then_some(0),
            _ => (0..self.ranks).find(|&rank| self.bytes(rank) != bytes),
        };
        match differing {
            None => Ok(()),
            Some(rank) => Err(Refusal::new(Argument::Bytes, self.bytes(rank), Bound::Equals(bytes))),
        }
    }

    /// Packed bytes of the longest block.
    #[inline(always)]
    pub fn most(&self) -> u64 {
        match self.cut {
            Cut::Equal { count } => self.size * count,
            Cut::Vary { counts, .. } => self.size * most_of(counts),
            Cut::Each(blocks) => most_of_each(blocks),
        }
    }

    /// `rank`'s block.
    #[inline(always)]
    pub fn block(&self, rank: Rank) -> Data<'a> {
        if let Cut::Each(blocks) = self.cut {
            return match blocks.get(rank as usize) {
                Some(block) => self.first.retyped(block.displacement, block.count, block.datatype),
                None => self.first,
            };
        }
        let (count, displacement) = self.place(rank);
        self.first.moved(displacement * self.extent, count * self.size)
    }

    /// The memory of `rank`'s block, if the blocks have one datatype, without holes.
    #[inline(always)]
    pub(crate) fn dense(&self, rank: Rank) -> Option<Buf> {
        let memory = self.first.as_contiguous()?;
        if let Cut::Each(_) = self.cut {
            return None;
        }
        let (count, displacement) = self.place(rank);
        let begin = memory.ptr().wrapping_add((displacement * self.extent) as usize);
        Some(Buf::new(begin, (count * self.size) as usize))
    }

    /// The memory of all blocks, if they lie one after another without holes.
    pub(crate) fn in_one_piece(&self) -> Option<Buf> {
        let all = match self.cut {
            Cut::Equal { count } => self.first.moved(0, self.size * count * u64::from(self.ranks)),
            Cut::Vary { counts, displacements } => {
                let mut end = displacements.first().copied()?;
                let begin = end;
                for (&count, &displacement) in counts.iter().zip(displacements) {
                    if count > 0 && displacement != end {
                        return None;
                    }
                    end = end.wrapping_add(count);
                }
                // A displacement without elements may be any number; then there are none at all.
                self.first.moved(begin.wrapping_mul(self.extent), end.wrapping_sub(begin).wrapping_mul(self.size))
            }
            Cut::Each(_) => return None,
        };
        all.as_contiguous()
    }

    /// The memory from the first to the last byte of all blocks longer than `short`; `None`: one has holes, or there is none.
    pub(crate) fn span(&self, short: u64) -> Option<Buf> {
        let mut span: Option<(*mut u8, *mut u8)> = None;
        for block in (0..self.ranks).map(|rank| self.block(rank)).filter(|block| block.len() > short) {
            let memory = block.as_contiguous()?;
            let (begin, end) = (memory.ptr(), memory.ptr().wrapping_add(memory.len()));
            span = Some(span.map_or((begin, end), |(first, last)| (first.min(begin), last.max(end))));
        }
        span.map(|(begin, end)| Buf::new(begin, end.addr() - begin.addr()))
    }

    /// Elements of a block, and its displacement in extents; both in bytes if each block has a datatype of its own.
    #[inline(always)]
    fn place(&self, rank: Rank) -> (u64, u64) {
        match self.cut {
            Cut::Equal { count } if rank < self.ranks => (count, u64::from(rank) * count),
            Cut::Equal { .. } => (0, 0),
            Cut::Vary { counts, displacements } => {
                match (counts.get(rank as usize), displacements.get(rank as usize)) {
                    (Some(&count), Some(&displacement)) if count > 0 => (count, displacement),
                    _ => (0, 0),
                }
            }
            // In bytes: the blocks have no common element.
            Cut::Each(blocks) => match blocks.get(rank as usize) {
                Some(block) => (block.bytes(), block.displacement),
                None => (0, 0),
            },
        }
    }
}

/// Checks that no two blocks share an element.
fn counts_apart(counts: &[u64], displacements: &[u64]) -> Result<(), Refusal> {
    let blocks = || counts.iter().zip(displacements);
    // In the usual order one pass is enough.
    let mut end = 0;
    let ordered = blocks().filter(|(count, _)| **count > 0).all(|(count, displacement)| {
        let begin = core::mem::replace(&mut end, count + displacement);
        *displacement >= begin
    });
    if ordered {
        return Ok(());
    }
    // A block of no elements shares nothing, wherever its displacement points.
    let spans = || {
        blocks().map(|(&count, &displacement)| (count > 0).then(|| (displacement, displacement.saturating_add(count))))
    };
    spans_apart(spans)
}

/// Checks that no two blocks without holes share a byte.
fn each_apart(blocks: &[Block<'_>]) -> Result<(), Refusal> {
    spans_apart(|| blocks.iter().map(Block::dense))
}

/// No two of the spans overlap: one for each rank, its first place and the first place after it. `None`s are not
/// compared.
fn spans_apart<I: Iterator<Item = Option<(u64, u64)>>>(spans: impl Fn() -> I) -> Result<(), Refusal> {
    let all = || (0_u64..).zip(spans());
    for (rank, span) in all() {
        let Some((start, end)) = span else { continue };
        let mut later = all().skip(rank as usize + 1);
        if let Some((other, _)) = later.find(|(_, other)| other.is_some_and(|other| other.0 < end && start < other.1)) {
            return Err(Refusal::new(Argument::Displacements, rank, Bound::Apart(other)));
        }
    }
    Ok(())
}

/// Not built into callers: these are small then, and the blocks of most calls stay in registers.
#[inline(never)]
fn most_of(counts: &[u64]) -> u64 {
    counts.iter().max().copied().unwrap_or(0)
}

/// Packed bytes of the longest of the blocks.
#[inline(never)]
fn most_of_each(blocks: &[Block<'_>]) -> u64 {
    blocks.iter().map(Block::bytes).max().unwrap_or(0)
}

/// Bytes of the longest block, from the side that was given: one block, or all of them; 0 if neither was.
#[inline(always)]
pub(crate) fn longest(one: Option<&Data<'_>>, all: Option<&Blocks<'_>>) -> u64 {
    match (one, all) {
        (Some(one), _) => one.len(),
        (None, Some(all)) => all.most(),
        (None, None) => 0,
    }
}

/// The refusal of a call in which this rank needs data, or blocks, that were not given.
pub(crate) const fn absent() -> Refusal {
    Refusal::not(Argument::Buffer, Condition::Given)
}

/// `memory` from byte `at` on.
fn part(memory: Buf, at: u64) -> Buf {
    let at = at.min(memory.len() as u64) as usize;
    Buf::new(memory.ptr().wrapping_add(at), memory.len() - at)
}

/// Packed bytes and extent of an element whose datatype has been accepted.
#[inline(always)]
fn sizes(datatype: Datatype<'_>) -> (u64, u64) {
    (datatype.size().unwrap_or(0), datatype.extent().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn vary<'a>(memory: &'a mut [u8], counts: &'a [u64], displacements: &'a [u64]) -> Result<Blocks<'a>, Refusal> {
        Blocks::vary_mut(memory, counts, displacements, Datatype::Contiguous { bytes: 2 })
    }

    #[test]
    fn blocks_lie_where_mpi_says() {
        let mut memory = [0; 40];
        let base = memory.as_ptr() as usize;
        let at = |blocks: &Blocks<'_>, rank| {
            let buf = blocks.block(rank).as_contiguous().unwrap();
            (buf.ptr() as usize - base, buf.len())
        };
        let blocks = vary(&mut memory, &[3, 0, 1, 2], &[10, 99, 0, 4]).unwrap();
        assert_eq!([0, 1, 2, 3].map(|rank| at(&blocks, rank)), [(20, 6), (0, 0), (0, 2), (8, 4)]);
        assert_eq!((blocks.most(), blocks.ranks(), blocks.bytes(4)), (6, 4, 0));
        let blocks = Blocks::equal_mut(&mut memory, 5, 2, Datatype::Contiguous { bytes: 4 }).unwrap();
        assert_eq!((0..6).map(|rank| blocks.bytes(rank)).collect::<Vec<_>>(), [8, 8, 8, 8, 8, 0]);
        assert_eq!(at(&blocks, 3), (24, 8));
    }

    #[test]
    fn each_block_may_have_a_datatype_of_its_own() {
        let mut memory = [0; 40];
        let base = memory.as_ptr() as usize;
        let block = |displacement, count, datatype| Block { displacement, count, datatype };
        let vector = Datatype::Vector { blocks: 2, block: 1, stride: 3 };
        let of = |memory: &mut [u8], blocks: &[Block<'_>]| {
            Blocks::each_mut(memory, blocks).and_then(|blocks| blocks.apart())
        };
        let all = [block(20, 2, vector), block(0, 3, Datatype::BYTE), block(99, 0, vector)];
        assert_eq!(of(&mut memory, &all), Ok(()));
        // Blocks in each other's holes, and a block of no bytes inside another one.
        assert_eq!(
            of(&mut memory, &[block(20, 2, vector), block(21, 2, vector), block(20, 0, Datatype::BYTE)]),
            Ok(())
        );
        let pair = Datatype::Contiguous { bytes: 2 };
        assert_eq!(of(&mut memory, &[block(20, 2, pair), block(9, 0, pair), block(8, 2, pair)]), Ok(()));
        // Ranks are those of the list, with the blocks that are not compared.
        let overlap = [block(0, 2, vector), block(20, 2, pair), block(21, 0, pair), block(23, 1, Datatype::BYTE)];
        assert_eq!(of(&mut memory, &overlap), Err(Refusal::new(Argument::Displacements, 1, Bound::Apart(3))));
        let beyond = |at| of(&mut [0; 40], &[block(at, 2, vector)]).map_err(|refusal| refusal.argument);
        assert_eq!((beyond(33), beyond(u64::MAX)), (Err(Argument::Extent), Err(Argument::Extent)));
        let blocks = Blocks::each_mut(&mut memory, &all).unwrap();
        assert_eq!([0, 1, 2, 3].map(|rank| blocks.bytes(rank)), [4, 3, 0, 0]);
        let runs: Vec<_> = blocks.block(0).runs(0, 9).map(|(at, run)| (at, run.ptr() as usize - base)).collect();
        assert_eq!(runs, [(0, 20), (1, 23), (2, 24), (3, 27)]);
        assert_eq!(blocks.most(), 4);
    }

    #[test]
    fn what_overlaps_or_runs_out_is_refused() {
        let mut memory = [0; 40];
        let refused = |counts: &[u64], displacements: &[u64]| {
            vary(&mut [0; 40], counts, displacements).and_then(|blocks| blocks.apart()).unwrap_err()
        };
        let overlap = |one, other| Refusal::new(Argument::Displacements, one, Bound::Apart(other));
        let extent = |value| Refusal::new(Argument::Extent, value, Bound::AtMost(40));
        assert_eq!(refused(&[3, 3], &[0, 2]), overlap(0, 1));
        assert_eq!(refused(&[3, 3, 3], &[10, 0, 12]), overlap(0, 2));
        assert_eq!(refused(&[3, 0, 3, 0, 3], &[10, 11, 0, 1, 12]), overlap(0, 4));
        assert_eq!(refused(&[2, 4, 1, 4], &[14, 0, 13, 3]), overlap(1, 3));
        assert_eq!(refused(&[1, 1], &[0, 20]), extent(42));
        assert_eq!(refused(&[1, u64::MAX], &[0, 1]), extent(u64::MAX));
        assert_eq!(refused(&[1, 1], &[0]), Refusal::new(Argument::Displacements, 1, Bound::Equals(2)));
        assert!(vary(&mut memory, &[3, 3, 0], &[3, 0, 1]).and_then(|blocks| blocks.apart()).is_ok());
        let mut equal = |count| Blocks::equal_mut(&mut memory, 3, count, Datatype::BYTE).map(|_| ());
        assert!(equal(13).is_ok());
        assert_eq!(equal(14).unwrap_err().argument, Argument::Extent);
        assert_eq!(equal(u64::MAX).unwrap_err().argument, Argument::Count);
    }
}
