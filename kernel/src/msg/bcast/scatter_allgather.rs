//! Broadcast by scatter and allgather (van de Geijn): slices go down a binomial tree, then round a ring.
//!
//! Slices are numbered by vertices, so that a subtree's are in a row. A process in the tree has its subtree's slices
//! before the ring begins, and is sent them again: the ring has p − 1 rounds for all.

use crate::Rank;
use crate::error::Refusal;
use crate::msg::parts::{Parts, Slices, check_bytes};
use crate::msg::ring::Allgather;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Schedule, Sequence, Work};
use crate::pattern::tree::{Position, Tree, subtree};
use crate::pattern::{Seat, rotated};

/// One process's part of the first half: it receives its subtree's slices, and sends each child's on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spread {
    vertex: Seat,
    root: Rank,
    tree: Position,
    children: u32,
    slices: Slices,
}

/// One process's part.
pub type ScatterAllgather = Sequence<Spread, Allgather<'static>>;

impl Spread {
    /// `bytes` bytes of the result area go from `root` to everyone.
    ///
    /// # Errors
    /// `root` is no rank.
    pub fn then_ring(seat: Seat, bytes: u64, root: Rank) -> Result<ScatterAllgather, Refusal> {
        seat.check_root(root)?;
        check_bytes(bytes)?;
        let vertex = seat.seen_from(root);
        let tree = Tree::BINOMIAL.position(vertex.rank(), 0, seat.size());
        let slices = Slices::new(bytes, 1, seat.size());
        let first = Self { vertex, root, tree, children: tree.count(), slices };
        Ok(Sequence::new(first, Allgather::rotated(vertex, root, Parts::slices(seat.size(), slices))))
    }

    fn message(&self, peer: u32, subtree_of: u32) -> Message {
        let size = self.vertex.size();
        let place = self.slices.place(Area::Receive, subtree_of, subtree(subtree_of, size));
        Message { peer: rotated(peer, self.root, size), place }
    }
}

impl Schedule for Spread {
    fn rounds(&self) -> u64 {
        2
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let child = self.tree.child(self.children.checked_sub(index + 1)?).filter(|_| round == 1)?;
        Some(self.message(child, child))
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let parent = self.tree.parent().filter(|_| round == 0 && index == 0)?;
        Some(self.message(parent, self.vertex.rank()))
    }

    fn work(&self, _: u64, _: Moment, _: u32) -> Option<Work> {
        None
    }

    fn bytes(&self) -> Bytes {
        Bytes { receive: self.slices.at(self.vertex.size()), ..Bytes::default() }
    }
}
