//! Scatter down a binomial tree, for equal blocks. A process receives the blocks of its subtree, its own first, and
//! sends each child those of the child's subtree. A root other than rank 0 first packs its blocks into a row that
//! starts with its own.

use crate::Rank;
use crate::error::Refusal;
use crate::msg::parts::Row;
use crate::msg::rooted::Branch;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::Seat;

/// One process's part of a scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Binomial(Branch);

impl Binomial {
    /// Each rank gets `block` bytes from `root`. In place, the root's own block stays where it is.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; the blocks are too long.
    pub fn new(seat: Seat, block: u64, root: Rank, in_place: bool) -> Result<Self, Refusal> {
        Branch::new(seat, block, root, in_place).map(Self)
    }

    /// The area in which the row of this process's subtree lies.
    const fn area(&self) -> Area {
        match (self.0.blocks.is_root(), self.0.blocks.root, self.0.children) {
            (true, 0, _) => Area::Send,
            (false, _, 0) => Area::Receive,
            _ => Area::Scratch,
        }
    }
}

impl Schedule for Binomial {
    fn rounds(&self) -> u64 {
        2
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        // The largest subtree first.
        let child = self.0.children.checked_sub(index + 1).filter(|_| round == 1)?;
        self.0.child(child, self.area())
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        self.0.parent(self.area()).filter(|_| (round, index) == (0, 0))
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let (area, blocks) = (self.area(), self.0.blocks);
        match (round, moment) {
            (1, Moment::Before) if blocks.is_root() && area == Area::Scratch => {
                Row { parts: blocks.parts, start: blocks.root }.pack(Area::Send, Area::Scratch, index)
            }
            (1, Moment::Meanwhile) if index == 0 && area != Area::Receive && !blocks.in_place => {
                Some(Work::Copy { from: self.0.own(area), to: Place::new(Area::Receive, 0, blocks.own) })
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let (blocks, Place { area, len, .. }) = (self.0.blocks, self.0.subtree(self.area()));
        Bytes {
            send: if blocks.is_root() { len } else { 0 },
            receive: if blocks.in_place { 0 } else { blocks.own },
            scratch: if area == Area::Scratch { len } else { 0 },
        }
    }
}
