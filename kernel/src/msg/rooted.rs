//! What gather and scatter have in common: the root has the blocks of all ranks, each other rank has its own block.

use super::parts::{Parts, check_bytes};
use super::schedule::{Area, Message, Place};
use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use crate::pattern::Seat;
use crate::pattern::tree::{Position, Tree, subtree};

/// One process's block, and at the root the blocks of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Rooted<'a> {
    pub(super) seat: Seat,
    pub(super) root: Rank,
    /// Bytes of this process's block.
    pub(super) own: u64,
    pub(super) parts: Parts<'a>,
    /// Is this process the root, and is its own block in its place?
    pub(super) in_place: bool,
}

impl<'a> Rooted<'a> {
    /// This process's block has `own` bytes. `parts` are the blocks of all ranks, significant only at the root.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; at the root there is not one block per rank, or `own` differs from
    /// its block's length.
    pub(super) fn new(seat: Seat, own: u64, parts: Parts<'a>, root: Rank, in_place: bool) -> Result<Self, Refusal> {
        seat.check_root(root)?;
        check_bytes(own)?;
        let rooted = Self { seat, root, own, parts, in_place: in_place && seat.rank() == root };
        if rooted.is_root() {
            parts.check(seat)?;
        }
        if rooted.is_root() && !rooted.in_place {
            Refusal::check(Argument::Bytes, own, Bound::Equals(parts.len(root)))?;
        }
        Ok(rooted)
    }

    pub(super) const fn is_root(&self) -> bool {
        self.seat.rank() == self.root
    }
}

/// A process in a binomial tree, with a row of the blocks of its subtree: its own block first, then those of its
/// children's subtrees. Blocks are equally long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Branch {
    pub(super) blocks: Rooted<'static>,
    tree: Position,
    /// Number of children; they are 1, 2, 4, … vertices after this one.
    pub(super) children: u32,
}

impl Branch {
    /// Every process's block has `block` bytes, and the root has the blocks of all ranks.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; all blocks together are longer than [`super::parts::MOST`].
    pub(super) fn new(seat: Seat, block: u64, root: Rank, in_place: bool) -> Result<Self, Refusal> {
        let blocks = Rooted::new(seat, block, Parts::equal(seat.size(), block)?, root, in_place)?;
        let tree = Tree::BINOMIAL.position(seat.rank(), root, seat.size());
        Ok(Self { blocks, tree, children: tree.count() })
    }

    /// `count` blocks of the row in `area`, from the `first`-th on.
    const fn row(&self, area: Area, first: u32, count: u32) -> Place {
        Place::new(area, first as u64 * self.blocks.own, count as u64 * self.blocks.own)
    }

    const fn vertex(&self) -> u32 {
        self.blocks.seat.vertex(self.blocks.root)
    }

    /// This process's own block in the row in `area`.
    pub(super) const fn own(&self, area: Area) -> Place {
        self.row(area, 0, 1)
    }

    /// The whole row in `area`: the blocks of this process's subtree.
    pub(super) const fn subtree(&self, area: Area) -> Place {
        self.row(area, 0, subtree(self.vertex(), self.blocks.seat.size()))
    }

    /// The message to or from the parent: the row in `area`.
    pub(super) fn parent(&self, area: Area) -> Option<Message> {
        Some(Message { peer: self.tree.parent()?, place: self.subtree(area) })
    }

    /// The message to or from a child: its subtree's part of the row in `area`.
    pub(super) fn child(&self, index: u32, area: Area) -> Option<Message> {
        let (peer, distance) = (self.tree.child(index)?, 1 << index);
        let blocks = subtree(self.vertex() + distance, self.blocks.seat.size());
        Some(Message { peer, place: self.row(area, distance, blocks) })
    }
}
