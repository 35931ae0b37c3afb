//! Gather up a binomial tree, for equal blocks. A process receives the blocks of its children's subtrees after its
//! own block, and sends all to its parent. A row starts with the process's own block, so a root other than rank 0
//! unpacks it at the end.

use crate::Rank;
use crate::error::Refusal;
use crate::msg::parts::Row;
use crate::msg::rooted::Branch;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::Seat;

/// One process's part of a gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Binomial(Branch);

impl Binomial {
    /// Each rank's block of `block` bytes goes to `root`. In place, the root's own block is there already.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; the blocks are too long.
    pub fn new(seat: Seat, block: u64, root: Rank, in_place: bool) -> Result<Self, Refusal> {
        Branch::new(seat, block, root, in_place).map(Self)
    }

    /// The area in which the row of this process's subtree lies: the result area, if the row is in rank order.
    const fn area(&self) -> Area {
        match (self.0.blocks.is_root(), self.0.blocks.root, self.0.children) {
            (true, 0, _) => Area::Receive,
            (false, _, 0) => Area::Send,
            _ => Area::Scratch,
        }
    }
}

impl Schedule for Binomial {
    fn rounds(&self) -> u64 {
        2
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        self.0.parent(self.area()).filter(|_| (round, index) == (1, 0))
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        self.0.child(index, self.area()).filter(|_| round == 0)
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let (area, blocks) = (self.area(), self.0.blocks);
        match (round, moment) {
            (0, Moment::Meanwhile) if index == 0 && area != Area::Send => {
                let own = Place::new(Area::Send, 0, blocks.own);
                let from = if blocks.in_place { blocks.parts.place(Area::Receive, blocks.root) } else { own };
                Some(Work::Copy { from, to: self.0.own(area) }).filter(|_| !blocks.in_place || area != Area::Receive)
            }
            (0, Moment::After) if blocks.is_root() && area == Area::Scratch => {
                Row { parts: blocks.parts, start: blocks.root }.unpack(Area::Scratch, Area::Receive, index)
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let (blocks, Place { area, len, .. }) = (self.0.blocks, self.0.subtree(self.area()));
        Bytes {
            send: if blocks.in_place { 0 } else { blocks.own },
            receive: if blocks.is_root() { len } else { 0 },
            scratch: if area == Area::Scratch { len } else { 0 },
        }
    }
}
