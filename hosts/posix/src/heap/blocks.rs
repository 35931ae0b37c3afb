//! Which bytes of a heap are whose: an allocator of whole pages that only keeps offsets and lengths.
//!
//! ```text
//! room -> used -> kept -> (the owner gives the pages back) -> room
//!           ^------'
//! ```
//! Room reads as zeros. A block that is freed is kept as it is, so that a program that frees and allocates a block of
//! about the same length has its pages at once; the oldest of them go back when there are too many.

use crate::arena::{Range, Room};
use std::collections::{BTreeMap, VecDeque};

/// Bytes that are kept. The C library keeps up to twice 32 MiB of such blocks.
const KEPT: u64 = 64 << 20;
/// Blocks that are kept. Their list never grows: it would allocate.
const BLOCKS: usize = 64;

/// A block was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) offset: u64,
    /// It reads as zeros.
    pub(super) zero: bool,
}

/// The blocks of a heap.
#[derive(Debug)]
pub(super) struct Blocks {
    room: Room,
    /// The heap's address: blocks are aligned by address.
    base: u64,
    page: u64,
    /// Offset to length.
    used: BTreeMap<u64, u64>,
    /// The oldest is first.
    kept: VecDeque<Range>,
    closed: bool,
}

impl Blocks {
    /// `bytes` bytes at address `base`, all of them free, in pages of `page`.
    pub(super) fn new(base: u64, bytes: u64, page: u64) -> Self {
        let kept = VecDeque::with_capacity(BLOCKS + 1);
        Self { room: Room::new(0, bytes), base, page, used: BTreeMap::new(), kept, closed: false }
    }

    /// Takes whole pages for `bytes` bytes, at an address that is a multiple of `align`, a power of two.
    pub(super) fn take(&mut self, bytes: u64, align: u64) -> Option<Taken> {
        let len = bytes.max(1).checked_next_multiple_of(self.page)?;
        if self.closed {
            return None;
        }
        if let Some(offset) = self.take_kept(len, align) {
            return Some(Taken { offset, zero: false });
        }
        let more = align.saturating_sub(self.page);
        let at = self.room.take(len.checked_add(more)?)?;
        let offset = (self.base + at).next_multiple_of(align.max(1)) - self.base;
        self.room.give(at, offset - at);
        self.room.give(offset + len, at + more - offset);
        self.used.insert(offset, len);
        Some(Taken { offset, zero: true })
    }

    /// Takes a kept block, if one has the length, or up to an eighth more; the newest of them.
    fn take_kept(&mut self, len: u64, align: u64) -> Option<u64> {
        let fits =
            |kept: &Range| (len..=len + len / 8).contains(&kept.len) && (self.base + kept.offset).is_multiple_of(align);
        let at = self.kept.iter().rposition(fits)?;
        let Range { offset, len } = self.kept.remove(at)?;
        self.used.insert(offset, len);
        Some(offset)
    }

    /// The length of the block at `offset`.
    pub(super) fn len(&self, offset: u64) -> Option<u64> {
        self.used.get(&offset).copied()
    }

    /// Frees the block at `offset`, and keeps it; returns its length, or `None` if there is none.
    pub(super) fn free(&mut self, offset: u64) -> Option<u64> {
        let len = self.used.remove(&offset)?;
        if !self.closed {
            self.kept.push_back(Range { offset, len });
        }
        Some(len)
    }

    /// Takes a block back that was not used: its pages are to be given back, and then it to the [room](Self::give).
    pub(super) fn untake(&mut self, offset: u64) -> Option<Range> {
        self.used.remove(&offset).map(|len| Range { offset, len })
    }

    /// The oldest kept block, if too much is kept: its pages are to be given back, and then it to the [room](Self::give).
    pub(super) fn surplus(&mut self) -> Option<Range> {
        if self.kept.len() > BLOCKS || self.kept() > KEPT { self.kept.pop_front() } else { None }
    }

    /// Bytes that read as zeros again are free. Returns the free range that they are in now.
    pub(super) fn give(&mut self, Range { offset, len }: Range) -> Range {
        self.room.give(offset, len)
    }

    /// Makes the block at `offset` long enough for `bytes` bytes, where it lies. Returns what is left over behind it, whose
    /// pages are to be given back, and then it to the [room](Self::give). `None`: there is no room.
    pub(super) fn resize(&mut self, offset: u64, bytes: u64) -> Option<Range> {
        let new = bytes.max(1).checked_next_multiple_of(self.page)?;
        let len = self.len(offset)?;
        if new > len && (self.closed || !self.room.take_at(offset + len, new - len)) {
            return None;
        }
        self.used.insert(offset, new);
        Some(Range { offset: offset + new, len: len.saturating_sub(new) })
    }

    /// Nothing is allocated from now on.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.kept.clear();
    }

    /// Is it closed?
    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// The blocks that are used.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range> {
        self.used.iter().map(|(&offset, &len)| Range { offset, len })
    }

    /// Bytes that are used.
    pub(super) fn used(&self) -> u64 {
        self.used.values().sum()
    }

    /// Bytes that are free, and whose pages are kept.
    pub(super) fn kept(&self) -> u64 {
        self.kept.iter().map(|range| range.len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Take(u64, u32),
        Free(usize),
        Resize(usize, u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = prop_oneof![0u64..40_000, 0u64..(80 << 20)];
        let step = prop_oneof![
            4 => (bytes.clone(), 0u32..16).prop_map(|(bytes, align)| Step::Take(bytes, align)),
            3 => any::<usize>().prop_map(Step::Free),
            1 => (any::<usize>(), bytes).prop_map(|(which, bytes)| Step::Resize(which, bytes)),
        ];
        prop::collection::vec(step, 1..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

        /// Blocks lie inside, do not overlap, are aligned and long enough; what reads as zeros was given back since it was
        /// used last; the sums are exact; not more is kept than allowed.
        #[test]
        fn blocks_are_apart_and_sums_exact(steps in steps()) {
            let (base, total) = (7 << 12, 512 << 20);
            let mut blocks = Blocks::new(base, total, 4096);
            let mut live: Vec<Range> = Vec::new();
            // Bytes that may hold something: used ones, and freed ones that were not given back.
            let mut dirty: Vec<Range> = Vec::new();
            let overlap = |a: &Range, b: &Range| a.offset < b.offset + b.len && b.offset < a.offset + a.len;
            for step in steps {
                match step {
                    Step::Take(bytes, align) => {
                        let align = 1 << align;
                        let Some(Taken { offset, zero }) = blocks.take(bytes, align) else { continue };
                        let len = blocks.len(offset).unwrap();
                        prop_assert!(len >= bytes.max(1) && (base + offset) % align == 0 && offset + len <= total);
                        let block = Range { offset, len };
                        prop_assert!(!live.iter().any(|other| overlap(other, &block)));
                        prop_assert!(!zero || !dirty.iter().any(|other| overlap(other, &block)));
                        live.push(block);
                        dirty.push(block);
                    }
                    Step::Free(which) if !live.is_empty() => {
                        let block = live.swap_remove(which % live.len());
                        prop_assert_eq!(blocks.free(block.offset), Some(block.len));
                        prop_assert_eq!(blocks.free(block.offset), None);
                        while let Some(range) = blocks.surplus() {
                            dirty.retain(|other| !overlap(other, &range));
                            let free = blocks.give(range);
                            let after = free.offset + free.len - range.offset;
                            prop_assert!(free.offset <= range.offset && after >= range.len);
                            prop_assert!(!live.iter().any(|other| overlap(other, &free)));
                        }
                        prop_assert!(blocks.kept() <= KEPT && blocks.kept.len() <= BLOCKS);
                    }
                    Step::Resize(which, bytes) if !live.is_empty() => {
                        let which = which % live.len();
                        let Range { offset, len } = live[which];
                        let Some(left) = blocks.resize(offset, bytes) else { continue };
                        let new = blocks.len(offset).unwrap();
                        prop_assert!(new >= bytes && new - bytes.max(1) < 4096 && left.len == len.saturating_sub(new));
                        let block = Range { offset, len: new };
                        prop_assert!(!live.iter().enumerate().any(|(other, at)| other != which && overlap(at, &block)));
                        live[which] = block;
                        dirty.retain(|other| !overlap(other, &Range { offset, len: len.max(new) }));
                        dirty.push(block);
                        blocks.give(left);
                    }
                    _ => {}
                }
                prop_assert_eq!(blocks.used(), live.iter().map(|block| block.len).sum::<u64>());
                let mut sorted = live.clone();
                sorted.sort_by_key(|at| at.offset);
                prop_assert_eq!(blocks.iter().collect::<Vec<_>>(), sorted);
            }
        }
    }

    #[test]
    fn a_closed_heap_only_frees() {
        let mut blocks = Blocks::new(0, 1 << 20, 4096);
        let [first, second] = [1, 5000].map(|bytes| blocks.take(bytes, 1).unwrap().offset);
        blocks.free(first);
        blocks.close();
        assert_eq!((blocks.take(1, 1), blocks.kept()), (None, 0));
        assert_eq!(blocks.resize(second, 9000), None);
        assert_eq!(blocks.free(second), Some(8192));
        assert_eq!(blocks.iter().count(), 0);
    }
}
