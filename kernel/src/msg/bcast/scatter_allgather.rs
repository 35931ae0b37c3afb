//! Broadcast by scatter and allgather (van de Geijn): slices go down a binomial tree, then round a ring.
//!
//! Slices are numbered by vertices of the tree, so that the slices of a subtree lie one after the other. A process
//! with a subtree has all of its slices before the ring starts, and receives them again: the ring has p − 1 rounds
//! for all ranks.

use crate::Rank;
use crate::error::Refusal;
use crate::msg::parts::{Parts, Slices, check_bytes};
use crate::msg::ring::Allgather;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Schedule, Sequence, Work};
use crate::pattern::tree::{Position, Tree, subtree};
use crate::pattern::{Seat, rotated};

/// One process's part of the scatter: it receives the slices of its subtree, and sends each child those of the child's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spread {
    vertex: Seat,
    root: Rank,
    tree: Position,
    children: u32,
    slices: Slices,
}

/// One process's part of the broadcast.
pub type ScatterAllgather = Sequence<Spread, Allgather<'static>>;

impl Spread {
    /// The whole broadcast: `bytes` bytes of the result area go from `root` to all ranks.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; the message is too long.
    pub fn then_ring(seat: Seat, bytes: u64, root: Rank) -> Result<ScatterAllgather, Refusal> {
        seat.check_root(root)?;
        check_bytes(bytes)?;
        let vertex = seat.seen_from(root);
        let tree = Tree::BINOMIAL.position(vertex.rank(), 0, seat.size());
        let slices = Slices::new(bytes, 1, seat.size());
        let first = Self { vertex, root, tree, children: tree.count(), slices };
        Ok(Sequence::new(first, Allgather::rotated(vertex, root, Parts::slices(seat.size(), slices))))
    }

    /// The slices of a vertex's subtree, to or from vertex `peer`.
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
