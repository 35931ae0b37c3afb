//! The blocks of all ranks in a row, node by node (`unisono_kernel::hier::Rows`), and where they lie in the user's memory.

use super::Place;
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::hier::{Nodes, Rows};

/// Lengths, and where what has them begins when all lie in a row.
pub(super) type List = (Vec<u64>, Vec<u64>);

pub(super) fn starts(lengths: Vec<u64>) -> List {
    let starts = lengths.iter().scan(0, |end, len| Some(std::mem::replace(end, *end + len))).collect();
    (lengths, starts)
}

/// The row of all blocks.
pub(super) struct Row {
    inside: List,
    between: List,
    /// By rank: the length of its block, where it begins in the row, and where in the user's memory.
    blocks: Vec<(u64, u64, u64)>,
    pub(super) bytes: u64,
    /// Do all ranks know all lengths?
    known: bool,
}

/// What does not fit 64 bits together with `sum`.
fn beyond(len: u64, sum: u64) -> Refusal {
    Refusal::new(Argument::Bytes, len, Bound::AtMost(u64::MAX - sum))
}

impl Row {
    /// Of blocks that `of` says, by rank: length, and where it begins in the user's memory.
    pub(super) fn new(place: &Place, of: impl Fn(Rank) -> (u64, u64)) -> Result<Self, Refusal> {
        let home = place.nodes()?.home();
        let (mut inside, mut between) = (Vec::new(), vec![0_u64; place.leaders.len()]);
        let (mut blocks, mut end) = (vec![(0, 0, 0); place.homes.len()], 0_u64);
        for &rank in &place.order {
            let (len, at) = of(rank);
            let after = end.checked_add(len).ok_or(beyond(len, end))?;
            if let (Some(block), Some(theirs)) = (blocks.get_mut(rank as usize), place.homes.get(rank as usize)) {
                *block = (len, end, at);
                between.get_mut(theirs.node as usize).into_iter().for_each(|sum| *sum += len);
                inside.extend((theirs.node == home.node).then_some(len));
            }
            end = after;
        }
        Ok(Self { inside: starts(inside), between: starts(between), blocks, bytes: end, known: true })
    }

    /// Of blocks of one length, in a row by rank.
    pub(super) fn equal(place: &Place, len: u64) -> Result<Self, Refusal> {
        Self::new(place, |rank| (len, len.saturating_mul(rank.into())))
    }

    /// As the root of a gatherv or scatterv sees it, who knows all.
    pub(super) fn at_root(place: &Place, of: impl Fn(Rank) -> (u64, u64)) -> Result<Self, Refusal> {
        Ok(Self { known: false, ..Self::new(place, of)? })
    }

    /// As others see it: a leader knows the lengths of its node's ranks, which it was told, others none.
    pub(super) fn told(place: &Place, lengths: Vec<u64>) -> Result<Self, Refusal> {
        let add = |sum: u64, &len: &u64| sum.checked_add(len).ok_or(beyond(len, sum));
        let (all, node) = (lengths.iter().try_fold(0, add)?, place.nodes()?.home().node);
        let mut between = vec![0; place.leaders.len()];
        between.get_mut(node as usize).into_iter().for_each(|sum| *sum = all);
        let between = (between, vec![0; place.leaders.len()]);
        Ok(Self { inside: starts(lengths), between, blocks: Vec::new(), bytes: 0, known: false })
    }

    /// Bytes of the longest node's part.
    pub(super) fn longest_part(&self) -> u64 {
        self.between.0.iter().copied().max().unwrap_or(0)
    }

    pub(super) fn rows(&self, nodes: &Nodes<'_>) -> Result<Rows<'_>, Refusal> {
        let new = if self.known { Rows::new } else { Rows::told };
        new(nodes, (&self.inside.0, &self.inside.1), (&self.between.0, &self.between.1))
    }

    /// Where the row begins in the user's memory, if its blocks lie so.
    pub(super) fn lies_at(&self) -> Option<u64> {
        let mut full = self.blocks.iter().filter(|(len, ..)| *len > 0);
        let Some((_, first, at)) = full.next() else { return Some(0) };
        let begin = at.checked_sub(*first)?;
        full.all(|(_, start, at)| begin.checked_add(*start) == Some(*at)).then_some(begin)
    }

    /// A rank's block in the user's memory.
    pub(super) fn block(&self, rank: Rank, base: *mut u8) -> Buf {
        let (len, _, at) = self.blocks.get(rank as usize).copied().unwrap_or_default();
        Buf::new(base.wrapping_add(at as usize), len as usize)
    }

    /// Copies all blocks between the user's memory at `base` and the row.
    ///
    /// # Safety
    /// Both are as long as the blocks say, readable and writable.
    pub(super) unsafe fn copy(&self, base: *mut u8, row: Buf, into: bool) {
        for (rank, (len, start, _)) in (0..).zip(&self.blocks) {
            let (user, row) = (self.block(rank, base).ptr(), row.ptr().wrapping_add(*start as usize));
            let (from, to) = if into { (user, row) } else { (row, user) };
            // SAFETY: the caller's promise.
            unsafe { core::ptr::copy_nonoverlapping(from, to, *len as usize) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_users_memory_where_blocks_lie_so() {
        let blocks = |rank: Rank| (10, 10 * u64::from(rank) + 5);
        let in_order = Row::new(&Place::new(&[0, 0, 1], 1), blocks).unwrap();
        assert_eq!((in_order.lies_at(), in_order.bytes), (Some(5), 30));
        assert_eq!((&in_order.inside, &in_order.between), (&(vec![10; 2], vec![0, 10]), &(vec![20, 10], vec![0, 20])));
        let across = Row::new(&Place::new(&[0, 1, 0], 1), blocks).unwrap();
        assert_eq!((across.lies_at(), &across.inside), (None, &(vec![10], vec![0])));
        assert_eq!(across.blocks, [(10, 0, 5), (10, 20, 15), (10, 10, 25)]);
        // Blocks of nothing may lie anywhere.
        let empty = Row::new(&Place::new(&[0, 1], 0), |rank| (0, 77 * u64::from(rank))).unwrap();
        assert_eq!((empty.lies_at(), empty.bytes), (Some(0), 0));
        let gaps = Row::new(&Place::new(&[0, 1], 0), |rank| (4, 5 * u64::from(rank))).unwrap();
        assert_eq!(gaps.lies_at(), None);
    }

    #[test]
    fn who_was_told_lengths_knows_its_node_alone() {
        let place = Place::new(&[0, 1, 0, 1], 3);
        let told = Row::told(&place, vec![4, 5]).unwrap();
        assert_eq!((&told.inside, &told.between.0), (&(vec![4, 5], vec![0, 4]), &vec![0, 9]));
        assert!(told.rows(&place.nodes().unwrap()).is_ok());
        let refusal = Row::told(&place, vec![u64::MAX, 5]).map(|row| row.bytes).unwrap_err();
        assert_eq!((refusal.value, refusal.bound), (5, Bound::AtMost(0)));
        // A length that no memory has is refused before memory is asked for.
        let long = Row::told(&place, vec![u64::MAX - 5, 5]).unwrap();
        assert_eq!(long.rows(&place.nodes().unwrap()).unwrap_err().argument, Argument::Extent);
    }
}
