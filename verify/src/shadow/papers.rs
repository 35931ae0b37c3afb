//! The bytes and words that the papers' machines share: the set of their queues to which each belongs, the word that
//! publishes it to which rank, and its cell in the shadow's records.
//!
//! | | written by | published by the word | to |
//! |---|---|---|---|
//! | head (`set_bytes`) | the rank that opens the set | `set_op` | all |
//! | counts (`set_typesize`, `set_count`) | the rank that opens the set | allgatherv: `set_op`; scatterv, gatherv: `rootready` | all; its reader |
//! | fragment, broadcast | the rank that opens the set, in its own queue | `control` of a reader, set by its parent in the tree | the reader |
//! | fragment, scatterv | the rank that opens the set, in its reader's queue | `control` of the reader | the reader |
//! | fragment, gatherv | each rank, in its own queue | its own `control` | the rank that opened the set |
//! | fragment, allgatherv | each rank, in its own queue | `control_all` of a pair | the pair's reader |

use unisono_kernel::Rank;
use unisono_kernel::region::{Layout, MailId};

/// Data that is published to each of its readers, and released with its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paper {
    Head(u32),
    Counts(u32),
    Fragment(Rank, u32),
}

/// Cells of a set: how often it was opened, by which rank; then for each rank the last use that it has left.
pub(super) const OPENED: usize = 0;
pub(super) const OPENER: usize = 1;
pub(super) const LEFT: usize = 2;

/// The papers' part of a layout, whose cells follow the other ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Papers {
    layout: Layout,
    begin: usize,
    /// Cells of a head, counts or a fragment: some for its contents, then one for each rank.
    each: usize,
}

impl Papers {
    /// The number of cells before those of the ranks.
    pub(super) const fn new(layout: Layout, begin: usize, cells: usize) -> Self {
        Self { layout, begin, each: cells + layout.ranks() as usize }
    }

    /// Slots of a queue, and sets.
    const fn queues(&self) -> (u32, u32) {
        match self.layout.params().cico {
            Some(queues) => (queues.slots, queues.sets),
            None => (0, 0),
        }
    }

    fn sets(&self) -> std::ops::Range<u32> {
        0..self.queues().1
    }

    fn ranks(&self) -> std::ops::Range<Rank> {
        0..self.layout.ranks()
    }

    /// The first cell of a thing.
    pub(super) const fn cell(&self, paper: Paper) -> usize {
        let (slots, sets) = self.queues();
        let index = match paper {
            Paper::Head(set) => set,
            Paper::Counts(set) => sets + set,
            Paper::Fragment(rank, slot) => 2 * sets + rank * slots + slot,
        };
        self.begin + index as usize * self.each
    }

    /// The first cell of a set.
    pub(super) const fn set(&self, set: u32) -> usize {
        let ranks = self.layout.ranks();
        self.cell(Paper::Fragment(ranks, 0)) + set as usize * (LEFT + ranks as usize)
    }

    /// The end of the cells.
    pub(super) const fn end(&self) -> usize {
        self.set(self.queues().1)
    }

    /// The set to which a thing belongs.
    pub(super) const fn set_of(&self, paper: Paper) -> u32 {
        let (slots, sets) = self.queues();
        match paper {
            Paper::Head(set) | Paper::Counts(set) => set,
            Paper::Fragment(_, slot) => slot / (slots / sets),
        }
    }

    /// The fragment of `rank` in which the bytes from this offset on lie.
    pub(super) fn fragment(&self, rank: Rank, offset: u64) -> Option<Paper> {
        let at = |slot| self.layout.fragment(rank, slot).offset();
        let slot = offset.checked_sub(at(0))?.checked_div(at(1) - at(0))? as u32;
        (slot < self.queues().0).then_some(Paper::Fragment(rank, slot))
    }

    /// The set to which the counter at this offset belongs.
    pub(super) fn counter(&self, offset: u64) -> Option<Paper> {
        let counts = |set| {
            let end = self.layout.set_count(set, self.layout.ranks()).offset();
            (self.layout.set_typesize(set).offset()..end).contains(&offset)
        };
        self.sets().find_map(|set| match offset {
            at if at == self.layout.set_bytes(set).offset() => Some(Paper::Head(set)),
            _ => counts(set).then_some(Paper::Counts(set)),
        })
    }

    /// The set whose readers are counted at this offset.
    pub(super) fn readers(&self, offset: u64) -> Option<u32> {
        self.sets().find(|&set| offset == self.layout.set_readers(set).offset())
    }

    /// The set whose `set_op` is at this offset.
    pub(super) fn opens(&self, offset: u64) -> Option<u32> {
        self.sets().find(|&set| offset == self.layout.set_op(set).offset())
    }

    /// The data that a mailword publishes when `rank` sets it, and the reader. It may stand for two fragments, one of
    /// which is there.
    pub(super) fn tells(&self, rank: Rank, offset: u64, opener: impl Fn(u32) -> Rank) -> Vec<(Paper, Rank)> {
        let (layout, is_at) = (&self.layout, |word: MailId| word.offset() == offset);
        let of_set = self.sets().flat_map(|set| self.ranks().map(move |reader| (set, reader)));
        for (set, reader) in of_set {
            if is_at(layout.set_rootready(set, reader)) {
                return vec![(Paper::Counts(set), reader)];
            }
        }
        for (owner, slot) in self.ranks().flat_map(|owner| (0..self.queues().0).map(move |slot| (owner, slot))) {
            let fragment = |owner| Paper::Fragment(owner, slot);
            if is_at(layout.control(owner, slot)) {
                let opener = opener(self.set_of(fragment(owner)));
                let reader = if owner == rank { opener } else { owner };
                return vec![(fragment(owner), reader), (fragment(opener), reader)];
            }
            if let Some(reader) = self.ranks().find(|&reader| is_at(layout.control_all(owner, slot, reader))) {
                return vec![(fragment(owner), reader)];
            }
        }
        Vec::new()
    }
}
