//! Gather up a binomial tree, for equal blocks: a process receives its children's subtrees behind its own block, and
//! sends all to its parent. Rows begin with the own block, so a root other than rank 0 turns the row at the end.

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
    block: u64,
    parts: Parts<'static>,
    in_place: bool,
}

impl Binomial {
    /// Everyone's `block` bytes go to `root`. In place the root's are there.
    ///
    /// # Errors
    /// `root` is no rank; the blocks are too long.
    pub fn new(seat: Seat, block: u64, root: Rank, in_place: bool) -> Result<Self, Refusal> {
        seat.check_root(root)?;
        let parts = Parts::equal(seat.size(), block)?;
        let tree = Tree::BINOMIAL.position(seat.rank(), root, seat.size());
        Ok(Self { seat, root, tree, block, parts, in_place: in_place && seat.rank() == root })
    }

    const fn is_root(&self) -> bool {
        self.seat.rank() == self.root
    }

    /// Where the row of this process's subtree begins: the result area, if it is in the right order there.
    fn area(&self) -> Area {
        match (self.is_root() && self.root == 0, self.tree.count()) {
            (true, _) => Area::Receive,
            (false, 0) if !self.is_root() => Area::Send,
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
        let peer = self.tree.parent().filter(|_| (round, index) == (1, 0))?;
        Some(Message { peer, place: self.row(0, self.subtree()) })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let peer = self.tree.child(index).filter(|_| round == 0)?;
        // Children are 1, 2, 4, … vertices further on.
        let distance = 1 << index;
        let vertex = self.seat.vertex(self.root) + distance;
        Some(Message { peer, place: self.row(distance, subtree(vertex, self.seat.size())) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let (area, parts) = (self.area(), self.parts);
        match (round, moment) {
            (0, Moment::Meanwhile) if index == 0 && area != Area::Send => {
                let own = Place::new(Area::Send, 0, self.block);
                let from = if self.in_place { parts.place(Area::Receive, self.root) } else { own };
                Some(Work::Copy { from, to: self.row(0, 1) }).filter(|_| !self.in_place || area != Area::Receive)
            }
            (0, Moment::After) if self.is_root() && area == Area::Scratch => {
                Row { parts, start: self.root }.unpack(Area::Scratch, Area::Receive, index)
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let (block, subtree) = (self.block, u64::from(self.subtree()) * self.block);
        Bytes {
            send: if self.in_place { 0 } else { block },
            receive: if self.is_root() { subtree } else { 0 },
            scratch: if self.area() == Area::Scratch { subtree } else { 0 },
        }
    }
}
