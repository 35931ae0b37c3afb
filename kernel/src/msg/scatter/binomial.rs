//! Scatter down a binomial tree, for equal blocks: a process receives its subtree's blocks, its own first, and sends
//! each child its own. A root other than rank 0 turns its blocks into a row first.

use crate::Rank;
use crate::error::Refusal;
use crate::msg::parts::{Parts, Row};
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::Seat;
use crate::pattern::tree::{Position, Tree, subtree};

/// One process's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Binomial {
    seat: Seat,
    root: Rank,
    tree: Position,
    children: u32,
    block: u64,
    parts: Parts<'static>,
    in_place: bool,
}

impl Binomial {
    /// Everyone gets `block` bytes from `root`. In place the root's stay where they are.
    ///
    /// # Errors
    /// `root` is no rank; the blocks are too long.
    pub fn new(seat: Seat, block: u64, root: Rank, in_place: bool) -> Result<Self, Refusal> {
        seat.check_root(root)?;
        let parts = Parts::equal(seat.size(), block)?;
        let tree = Tree::BINOMIAL.position(seat.rank(), root, seat.size());
        Ok(Self { seat, root, tree, children: tree.count(), block, parts, in_place: in_place && seat.rank() == root })
    }

    const fn is_root(&self) -> bool {
        self.seat.rank() == self.root
    }

    /// Where the row of this process's subtree lies.
    fn area(&self) -> Area {
        match (self.is_root(), self.root, self.children) {
            (true, 0, _) => Area::Send,
            (false, _, 0) => Area::Receive,
            _ => Area::Scratch,
        }
    }

    fn row(&self, first: u32, count: u32) -> Place {
        Place::new(self.area(), u64::from(first) * self.block, u64::from(count) * self.block)
    }

    /// Blocks of this process's subtree.
    const fn subtree(&self) -> u32 {
        subtree(self.seat.vertex(self.root), self.seat.size())
    }
}

impl Schedule for Binomial {
    fn rounds(&self) -> u64 {
        2
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        // The largest subtree first; children are 1, 2, 4, … vertices further on.
        let child = self.children.checked_sub(index + 1).filter(|_| round == 1)?;
        let vertex = self.seat.vertex(self.root) + (1 << child);
        let place = self.row(1 << child, subtree(vertex, self.seat.size()));
        Some(Message { peer: self.tree.child(child)?, place })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let peer = self.tree.parent().filter(|_| (round, index) == (0, 0))?;
        Some(Message { peer, place: self.row(0, self.subtree()) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let (area, parts) = (self.area(), self.parts);
        match (round, moment) {
            (1, Moment::Before) if self.is_root() && area == Area::Scratch => {
                Row { parts, start: self.root }.pack(Area::Send, Area::Scratch, index)
            }
            (1, Moment::Meanwhile) if index == 0 && area != Area::Receive && !self.in_place => {
                Some(Work::Copy { from: self.row(0, 1), to: Place::new(Area::Receive, 0, self.block) })
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let subtree = u64::from(self.subtree()) * self.block;
        Bytes {
            send: if self.is_root() { subtree } else { 0 },
            receive: if self.in_place { 0 } else { self.block },
            scratch: if self.area() == Area::Scratch { subtree } else { 0 },
        }
    }
}
