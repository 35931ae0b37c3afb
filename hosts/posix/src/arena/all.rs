//! The arenas of all processes that joined together: side by side in one file, which each of them maps once.

use super::{Plan, Range, Slice, WorldRank, page};
use crate::sealed::Map;
use std::sync::Arc;
use unisono_kernel::region::Word;

/// The map of the file, and where each process's arena lies in it.
#[derive(Debug)]
pub(crate) struct Arenas {
    map: Arc<Map>,
    /// By rank in the job.
    spans: Box<[Range]>,
}

impl Arenas {
    /// Where the arenas lie: `wanted` are their bytes after a head of `head` bytes, by rank. None is longer than its part of `most`,
    /// the longest file.
    pub(crate) fn plan(head: u64, wanted: &[u64], most: u64) -> Box<[Range]> {
        let head = head.next_multiple_of(page());
        let part = (most / wanted.len().max(1) as u64).saturating_sub(head);
        let mut next = 0_u64;
        let mut span = |&bytes: &u64| {
            let bytes = bytes.min(part);
            let (offset, len) = (next, head.saturating_add(bytes - bytes % page()));
            next = next.saturating_add(len);
            Range { offset, len }
        };
        wanted.iter().map(&mut span).collect()
    }

    /// Bytes of the file.
    pub(crate) fn bytes(spans: &[Range]) -> u64 {
        spans.last().map_or(0, |last| last.offset.saturating_add(last.len))
    }

    /// The arenas at these places of the mapped file.
    pub(crate) const fn new(map: Arc<Map>, spans: Box<[Range]>) -> Self {
        Self { map, spans }
    }

    /// The slice at this offset of the file, if it lies inside its owner's arena.
    pub(crate) fn slice(&self, owner: WorldRank, offset: u64, plan: Plan) -> Option<Slice> {
        let Range { offset: start, len } = *self.spans.get(owner as usize)?;
        let inside = offset >= start && offset.checked_add(plan.bytes())? <= start.checked_add(len)?;
        if inside { Slice::new(Arc::clone(&self.map), offset, plan) } else { None }
    }

    /// The word of `owner`'s arena at this offset, a multiple of 8, in its head; `None` outside of the arena.
    pub(crate) fn word(&self, owner: WorldRank, offset: u64) -> Option<&Word> {
        let Range { offset: start, len } = *self.spans.get(owner as usize)?;
        let at = start.checked_add(offset)?;
        if offset.checked_add(8)? > len || at.checked_add(8)? > self.map.bytes() || !offset.is_multiple_of(8) {
            return None;
        }
        let address = self.map.base().wrapping_add(at as usize);
        // SAFETY: inside the map, and aligned: arenas begin on pages; the map lives as long as this value (R1). Heads are
        // accessed by words only (R4).
        Some(unsafe { Word::at(address.cast()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Queues;
    use crate::sealed::Sealed;

    #[test]
    fn arenas_lie_side_by_side_and_share_the_longest_file() {
        let page = page();
        let spans = Arenas::plan(100, &[3 * page + 1, 0, 9 * page], u64::MAX);
        let at = |offset, len| Range { offset: offset * page, len: len * page };
        assert_eq!(*spans, [at(0, 4), at(4, 1), at(5, 10)]);
        assert_eq!(Arenas::bytes(&spans), 15 * page);
        let spans = Arenas::plan(100, &[3 * page + 1, 0, 9 * page], 15 * page);
        assert_eq!(*spans, [at(0, 4), at(4, 1), at(5, 5)]);
        assert_eq!((Arenas::bytes(&Arenas::plan(8, &[], 7)), Arenas::bytes(&Arenas::plan(8, &[1], 0))), (0, page));
    }

    /// An offer comes from another process: a slice outside its owner's arena is none.
    #[test]
    fn a_slice_or_a_word_outside_its_owners_arena_is_refused() {
        let plan = Plan::new(2, Queues::Small).unwrap();
        let (page, bytes) = (page(), plan.bytes());
        let spans = Arenas::plan(page, &[bytes, bytes + page], u64::MAX);
        let map = Sealed::create(Arenas::bytes(&spans)).unwrap().map().unwrap();
        let arenas = Arenas::new(Arc::new(map), spans);
        let second = page + bytes;
        for (owner, offset, fits) in [
            (0, page, true),
            (0, 0, true),
            (0, 2 * page, false),
            (0, second, false),
            (0, u64::MAX, false),
            (1, second, true),
            (1, second + 2 * page, true),
            (1, second + 3 * page, false),
            (1, second + 8, false),
            (1, page, false),
            (2, page, false),
        ] {
            assert_eq!(arenas.slice(owner, offset, plan).is_some(), fits, "arena {owner}, offset {offset}");
        }
        let address = |owner, offset| arenas.word(owner, offset).map(core::ptr::from_ref);
        assert_eq!(address(1, 8).unwrap().addr() - address(0, 0).unwrap().addr(), second as usize + 8);
        let outside = [(0, second), (0, u64::MAX), (1, second + page), (2, 0), (0, 4)];
        assert!(outside.into_iter().all(|(owner, offset)| address(owner, offset).is_none()));
    }
}
