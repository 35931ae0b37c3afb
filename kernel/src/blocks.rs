//! One block of user data per rank: what scatter, gather, allgather and alltoall send or receive.

use crate::Rank;
use crate::buffer::Buf;
use crate::datatype::{Data, Datatype};
use crate::error::{Argument, Bound, Refusal};

/// A block of one datatype per rank, in one piece of memory. In place and unused sides are blocks of nothing.
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
    /// Block `r` has `counts[r]` elements and begins `displacements[r]` extents into the memory.
    Vary { counts: &'a [u64], displacements: &'a [u64] },
}

impl<'a> Blocks<'a> {
    /// `ranks` blocks of `count` elements, one after the other (MPI_Scatter, MPI_Gather, ...).
    ///
    /// # Errors
    /// The blocks reach beyond `memory`; a datatype is refused as by [`Data::from_raw`].
    ///
    /// # Safety
    /// As [`Data::from_raw`].
    pub unsafe fn equal(memory: Buf, ranks: u32, count: u64, datatype: Datatype<'a>) -> Result<Self, Refusal> {
        let beyond = Refusal::new(Argument::Count, count, Bound::AtMost(u64::MAX / u64::from(ranks.max(1))));
        let all = count.checked_mul(ranks.into()).ok_or(beyond)?;
        // SAFETY: the caller's promise.
        let first = unsafe { Data::from_raw(memory, all, datatype) }?;
        let (size, extent) = sizes(datatype);
        Ok(Self { first, size, extent, ranks, cut: Cut::Equal { count } })
    }

    /// Block `r` has `counts[r]` elements and begins `displacements[r]` extents into `memory`
    /// (MPI_Scatterv, MPI_Gatherv, ...).
    ///
    /// # Errors
    /// Fewer displacements than counts; a block reaches beyond `memory`; the datatype is refused as by [`Data::from_raw`].
    ///
    /// # Safety
    /// As [`Data::from_raw`].
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

    /// The same blocks, where they are to be received: no two may share a byte.
    ///
    /// # Errors
    /// Two blocks overlap.
    pub fn apart(self) -> Result<Self, Refusal> {
        let Cut::Vary { counts, displacements } = self.cut else { return Ok(self) };
        let blocks = || counts.iter().zip(displacements).filter(|(count, _)| **count > 0);
        // In the usual order one pass is enough.
        let mut end = 0;
        let ordered = blocks().all(|(count, displacement)| {
            let begin = core::mem::replace(&mut end, count + displacement);
            *displacement >= begin
        });
        if ordered {
            return Ok(self);
        }
        for (at, (count, displacement)) in blocks().enumerate() {
            for (other, begin) in blocks().skip(at + 1) {
                if *begin < displacement + count && *displacement < begin + other {
                    let bound = Bound::AtLeast((displacement + count).min(begin + other));
                    return Err(Refusal::new(Argument::Displacements, *(displacement.max(begin)), bound));
                }
            }
        }
        Ok(self)
    }

    /// Number of blocks.
    #[inline]
    pub const fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Packed bytes of `rank`'s block; 0 beyond the last block.
    #[inline]
    pub fn bytes(&self, rank: Rank) -> u64 {
        self.size * self.place(rank).0
    }

    /// Packed bytes of the longest block.
    pub fn most(&self) -> u64 {
        match self.cut {
            Cut::Equal { count } => self.size * count,
            Cut::Vary { counts, .. } => self.size * counts.iter().max().copied().unwrap_or(0),
        }
    }

    /// `rank`'s block.
    #[inline]
    pub fn block(&self, rank: Rank) -> Data<'a> {
        let (count, displacement) = self.place(rank);
        self.first.moved(displacement * self.extent, count * self.size)
    }

    /// Elements of a block, and its displacement in extents.
    #[inline]
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
        }
    }
}

/// Packed bytes and extent of an element whose datatype has been accepted.
fn sizes(datatype: Datatype<'_>) -> (u64, u64) {
    (datatype.size().unwrap_or(0), datatype.extent().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn vary<'a>(memory: &'a mut [u8], counts: &'a [u64], displacements: &'a [u64]) -> Result<Blocks<'a>, Refusal> {
        // SAFETY: the slice is ours.
        unsafe { Blocks::vary(Buf::of_mut(memory), counts, displacements, Datatype::Contiguous { bytes: 2 }) }
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
        // SAFETY: the array is ours.
        let blocks =
            unsafe { Blocks::equal(Buf::of_mut(&mut memory), 5, 2, Datatype::Contiguous { bytes: 4 }) }.unwrap();
        assert_eq!((0..6).map(|rank| blocks.bytes(rank)).collect::<Vec<_>>(), [8, 8, 8, 8, 8, 0]);
        assert_eq!(at(&blocks, 3), (24, 8));
    }

    #[test]
    fn what_overlaps_or_runs_out_is_refused() {
        let mut memory = [0; 40];
        let refused = |counts: &[u64], displacements: &[u64]| {
            let refusal = vary(&mut [0; 40], counts, displacements).and_then(Blocks::apart).map(|_| ()).unwrap_err();
            (refusal.argument, refusal.value)
        };
        assert_eq!(refused(&[3, 3], &[0, 2]), (Argument::Displacements, 2));
        assert_eq!(refused(&[3, 3, 3], &[10, 0, 12]), (Argument::Displacements, 12));
        assert_eq!(refused(&[1, 1], &[0, 20]), (Argument::Extent, 42));
        assert_eq!(refused(&[1, u64::MAX], &[0, 1]), (Argument::Extent, u64::MAX));
        assert_eq!(refused(&[1, 1], &[0]), (Argument::Displacements, 1));
        assert!(vary(&mut memory, &[3, 3, 0], &[3, 0, 1]).and_then(Blocks::apart).is_ok());
        // SAFETY: the array is ours.
        let mut equal =
            |count| unsafe { Blocks::equal(Buf::of_mut(&mut memory), 3, count, Datatype::BYTE) }.map(|_| ());
        assert!(equal(13).is_ok());
        assert_eq!(equal(14).unwrap_err().argument, Argument::Extent);
        assert_eq!(equal(u64::MAX).unwrap_err().argument, Argument::Count);
    }
}
