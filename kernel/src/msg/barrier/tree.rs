//! Barriers with arrivals up one tree and the release down another. A process receives from its children, sends to
//! its parent, receives the release from its parent in the other tree, and sends it to its children there.
//!
//! | barrier | up | down |
//! |---|---|---|
//! | central counter | flat | flat |
//! | combining tree | n-ary | binomial (paper P4) |
//! | tournament | binomial: the loser of round k has bit k set, and sends to the winner | the same, mirrored |

use crate::error::Refusal;
use crate::msg::schedule::{Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::Seat;
use crate::pattern::tree::{Branches, Position, Tree};

/// One process's part of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UpDown<T = Position> {
    up: T,
    down: T,
    released: u32,
}

impl UpDown {
    /// Arrivals up one tree, the release down another; rank 0 is the root of both.
    ///
    /// # Errors
    /// A tree's arity is too small.
    pub fn new(seat: Seat, up: Tree, down: Tree) -> Result<Self, Refusal> {
        let position = |tree: Tree| Ok(tree.check()?.position(seat.rank(), 0, seat.size()));
        Ok(Self::along(position(up)?, position(down)?))
    }
}

impl<T: Branches> UpDown<T> {
    /// The same along any two trees that have the same root.
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
