//! Barriers that gather up one tree and release down another: a process hears its children, tells its parent, hears the
//! release, and passes it on.
//!
//! | barrier | up | down |
//! |---|---|---|
//! | central counter | flat | flat |
//! | combining tree | n-ary | binomial (paper P4) |
//! | tournament | binomial: who loses round k has bit k set, and tells the winner | the same, mirrored |

use crate::error::Refusal;
use crate::msg::schedule::{Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::Seat;
use crate::pattern::tree::{Branches, Position, Tree};

/// One process's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UpDown<T = Position> {
    up: T,
    down: T,
    released: u32,
}

impl UpDown {
    /// Up one tree, down another; rank 0 is the root of both.
    ///
    /// # Errors
    /// A tree has no such arity.
    pub fn new(seat: Seat, up: Tree, down: Tree) -> Result<Self, Refusal> {
        let position = |tree: Tree| Ok(tree.check()?.position(seat.rank(), 0, seat.size()));
        Ok(Self::along(position(up)?, position(down)?))
    }
}

impl<T: Branches> UpDown<T> {
    /// The same along any trees, whose root is one process.
    pub(in crate::msg) fn along(up: T, down: T) -> Self {
        Self { up, down, released: down.count() }
    }
}

impl<T: Branches> Schedule for UpDown<T> {
    fn rounds(&self) -> u64 {
        4
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let peer = match round {
            1 => self.up.parent().filter(|_| index == 0)?,
            // The largest subtree first.
            3 => self.down.child(self.released.checked_sub(index + 1)?)?,
            _ => return None,
        };
        Some(Message { peer, place: Place::NOTHING })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let peer = match round {
            0 => self.up.child(index)?,
            2 => self.down.parent().filter(|_| index == 0)?,
            _ => return None,
        };
        Some(Message { peer, place: Place::NOTHING })
    }

    fn work(&self, _: u64, _: Moment, _: u32) -> Option<Work> {
        None
    }

    fn bytes(&self) -> Bytes {
        Bytes::default()
    }
}
