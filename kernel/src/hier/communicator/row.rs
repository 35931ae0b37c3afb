//! The blocks of all ranks in a row, node by node ([`Rows`]), and where they lie in the caller's memory.

use crate::Rank;
use crate::data::buffer::Buf;
use crate::error::{Argument, Bound, Refusal};
use crate::hier::places::{starts_of, take};
use crate::hier::{Nodes, Rows, Spans};

/// A block of the caller's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) len: u64,
    /// Bytes from the memory's start.
    pub(super) at: u64,
}

/// The row, in which a rank's block has the length, and lies in the caller's memory, as `of` says.
#[derive(Debug)]
pub(super) struct Row<'l, F> {
    /// The ranks in the order of their blocks; no ranks where this process does not know the blocks.
    order: &'l [Rank],
    of: F,
    pub(super) bytes: u64,
}

/// What does not fit 64 bits together with `sum`.
fn beyond(len: u64, sum: u64) -> Refusal {
    Refusal::new(Argument::Bytes, len, Bound::AtMost(u64::MAX - sum))
}

/// `sum` and `len` together.
fn add(sum: u64, len: u64) -> Result<u64, Refusal> {
    sum.checked_add(len).ok_or(beyond(len, sum))
}

/// Blocks of one length, in a row by rank.
pub(super) fn equal(len: u64) -> impl Fn(Rank) -> Block {
    move |rank| Block { len, at: len.saturating_mul(rank.into()) }
}

/// Blocks as lists say.
pub(super) fn vary(spans: Spans<'_>) -> impl Fn(Rank) -> Block {
    let item = |list: &[u64], rank: Rank| list.get(rank as usize).copied().unwrap_or(0);
    move |rank| Block { len: item(spans.lengths, rank), at: item(spans.starts, rank) }
}

impl<'l, F: Fn(Rank) -> Block> Row<'l, F> {
    /// Of blocks of ranks in this order.
    ///
    /// # Errors
    /// All of them have more bytes than 64 bits count.
    pub(super) fn new(order: &'l [Rank], of: F) -> Result<Self, Refusal> {
        let bytes = order.iter().try_fold(0, |sum, &rank| add(sum, of(rank).len))?;
        Ok(Self { order, of, bytes })
    }

    /// Where all ranks know all lengths.
    ///
    /// # Errors
    /// The row is too long.
    pub(super) fn rows<'r>(&self, nodes: &Nodes<'_>, inside: u32, room: &'r mut [u64]) -> Result<Rows<'r>, Refusal> {
        self.shape(nodes, inside, room).and_then(|shape| Rows::new(nodes, shape.inside, shape.between))
    }

    /// At the root of a gatherv or scatterv, which knows all lengths alone.
    ///
    /// # Errors
    /// The row is too long.
    pub(super) fn rows_at_root<'r>(
        &self,
        nodes: &Nodes<'_>,
        inside: u32,
        room: &'r mut [u64],
    ) -> Result<Rows<'r>, Refusal> {
        self.shape(nodes, inside, room).and_then(|shape| Rows::told(nodes, shape.inside, shape.between))
    }

    fn shape<'r>(&self, nodes: &Nodes<'_>, inside: u32, mut room: &'r mut [u64]) -> Result<Shape<'r>, Refusal> {
        let (count, node) = (nodes.count() as usize, nodes.home().node);
        let (lengths, starts) = (take(&mut room, inside as usize)?, take(&mut room, inside as usize)?);
        let (parts, begins) = (take(&mut room, count)?, take(&mut room, count)?);
        parts.fill(0);
        let mut here = lengths.iter_mut();
        for &rank in self.order {
            let Block { len, .. } = (self.of)(rank);
            let home = nodes.home_of(rank);
            home.and_then(|home| parts.get_mut(home.node as usize)).into_iter().for_each(|sum| *sum += len);
            if home.is_some_and(|home| home.node == node) {
                here.next().into_iter().for_each(|length| *length = len);
            }
        }
        starts_of(lengths, starts);
        starts_of(parts, begins);
        Ok(Shape { inside: Spans { lengths, starts }, between: Spans { lengths: parts, starts: begins } })
    }

    /// Each block with the place in the row where it begins.
    fn blocks(&self) -> impl Iterator<Item = (u64, Block)> {
        self.order.iter().scan(0, |end, &rank| {
            let block = (self.of)(rank);
            Some((core::mem::replace(end, *end + block.len), block))
        })
    }

    /// Where the row begins in the caller's memory, if its blocks lie so.
    pub(super) fn lies_at(&self) -> Option<u64> {
        let mut full = self.blocks().filter(|(_, block)| block.len > 0);
        let Some((first, block)) = full.next() else { return Some(0) };
        let begin = block.at.checked_sub(first)?;
        full.all(|(start, block)| begin.checked_add(start) == Some(block.at)).then_some(begin)
    }

    /// A rank's block in the caller's memory at `base`.
    pub(super) fn block(&self, rank: Rank, base: *mut u8) -> Buf {
        in_memory((self.of)(rank), base)
    }

    /// Copies all blocks from the caller's memory at `base` into the row.
    ///
    /// # Safety
    /// The blocks are readable, the row is writable and as long as all of them.
    pub(super) unsafe fn fill(&self, row: Buf, base: *mut u8) {
        for (start, block) in self.blocks() {
            let (user, row) = (in_memory(block, base), row.ptr().wrapping_add(start as usize));
            // SAFETY: the caller's promise.
            unsafe { core::ptr::copy_nonoverlapping(user.ptr(), row, user.len()) };
        }
    }

    /// Copies the row into all blocks of the caller's memory at `base`.
    ///
    /// # Safety
    /// The blocks are writable, the row is readable and as long as all of them.
    pub(super) unsafe fn hand_out(&self, row: Buf, base: *mut u8) {
        for (start, block) in self.blocks() {
            let (user, row) = (in_memory(block, base), row.ptr().wrapping_add(start as usize));
            // SAFETY: the caller's promise.
            unsafe { core::ptr::copy_nonoverlapping(row, user.ptr(), user.len()) };
        }
    }
}

const fn in_memory(block: Block, base: *mut u8) -> Buf {
    Buf::new(base.wrapping_add(block.at as usize), block.len as usize)
}

/// What [`Rows`] are made of.
#[derive(Clone, Copy, Debug)]
struct Shape<'r> {
    /// The blocks of this node's ranks in its part of the row.
    inside: Spans<'r>,
    /// The nodes' parts of the row.
    between: Spans<'r>,
}

/// The row as those see it that are not the root of a gatherv or scatterv: a leader knows the lengths of its node's ranks,
/// which it was told, others no lengths.
///
/// # Errors
/// The row is too long.
pub(super) fn rows_told<'r>(
    nodes: &Nodes<'_>,
    told: impl ExactSizeIterator<Item = u64>,
    mut room: &'r mut [u64],
) -> Result<Rows<'r>, Refusal> {
    let (count, inside) = (nodes.count() as usize, told.len());
    let (lengths, starts) = (take(&mut room, inside)?, take(&mut room, inside)?);
    let (parts, begins) = (take(&mut room, count)?, take(&mut room, count)?);
    lengths.iter_mut().zip(told).for_each(|(length, told)| *length = told);
    let all = lengths.iter().try_fold(0, |sum, &len| add(sum, len))?;
    starts_of(lengths, starts);
    parts.fill(0);
    begins.fill(0);
    parts.get_mut(nodes.home().node as usize).into_iter().for_each(|part| *part = all);
    Rows::told(nodes, Spans { lengths, starts }, Spans { lengths: parts, starts: begins })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hier::places::{Built, Placement};
    use crate::hier::{Home, Lists, NUMBERS, Places};

    /// Calls `look` with what rank `me` sees whose ranks are on these nodes.
    fn on<A, const SIZE: usize>(nodes: [u32; SIZE], me: Rank, look: impl FnOnce(Placement<'_>) -> A) -> A {
        let (mut homes, mut leaders) = ([Home { node: 0, rank: 0 }; SIZE], [0; SIZE]);
        let (mut order, mut numbers) = ([0; SIZE], [[0; NUMBERS]; SIZE]);
        let mut lists = Lists::new(&mut homes, &mut leaders, &mut order, &mut numbers);
        let count = lists.fill(&nodes).unwrap() as usize;
        look(Placement::new(lists.lists(), SIZE, count, me, Built::default()).unwrap())
    }

    fn shape_of(placement: Placement<'_>, of: impl Fn(Rank) -> Block, look: impl FnOnce(Option<u64>, u64, Shape<'_>)) {
        let row = Row::new(placement.order, of).unwrap();
        let inside = placement.inside().len() as u32;
        look(row.lies_at(), row.bytes, row.shape(&placement.nodes, inside, placement.room).unwrap());
    }

    fn block(len: u64, at: u64) -> Block {
        Block { len, at }
    }

    #[test]
    fn a_row_is_the_callers_memory_where_blocks_lie_so() {
        let blocks = |rank: Rank| block(10, 10 * u64::from(rank) + 5);
        on([0, 0, 1], 1, |placement| {
            shape_of(placement, blocks, |lies, bytes, shape| {
                assert_eq!((lies, bytes), (Some(5), 30));
                assert_eq!(shape.inside, Spans { lengths: &[10, 10], starts: &[0, 10] });
                assert_eq!(shape.between, Spans { lengths: &[20, 10], starts: &[0, 20] });
            });
        });
        on([0, 1, 0], 1, |placement| {
            let row = Row::new(placement.order, blocks).unwrap();
            assert!(row.blocks().eq([(0, block(10, 5)), (10, block(10, 25)), (20, block(10, 15))]));
            shape_of(placement, blocks, |lies, _, shape| {
                assert_eq!((lies, shape.inside), (None, Spans { lengths: &[10], starts: &[0] }));
            });
        });
        // Blocks of nothing may lie anywhere.
        on([0, 1], 0, |placement| {
            let row = Row::new(placement.order, |rank| block(0, 77 * u64::from(rank))).unwrap();
            assert_eq!((row.lies_at(), row.bytes), (Some(0), 0));
            let gaps = Row::new(placement.order, |rank| block(4, 5 * u64::from(rank))).unwrap();
            assert_eq!(gaps.lies_at(), None);
            let refusal = Row::new(placement.order, equal(u64::MAX / 2 + 1)).map(|row| row.bytes).unwrap_err();
            assert_eq!((refusal.value, refusal.bound), (u64::MAX / 2 + 1, Bound::AtMost(u64::MAX / 2)));
        });
    }

    #[test]
    fn who_was_told_lengths_knows_its_node_alone() {
        let told = |lengths: [u64; 2]| {
            on([0, 1, 0, 1], 3, |placement| {
                let rows = rows_told(&placement.nodes, lengths.into_iter(), placement.room)?;
                Ok((rows.part(), rows.longest_part(), rows.equal()))
            })
        };
        assert_eq!(told([4, 5]), Ok((9, 9, None)));
        let refusal: Refusal = told([u64::MAX, 5]).unwrap_err();
        assert_eq!((refusal.value, refusal.bound), (5, Bound::AtMost(0)));
        // A length that no memory has is refused before memory is asked for.
        assert_eq!(told([u64::MAX - 5, 5]).unwrap_err().argument, Argument::Extent);
    }
}
