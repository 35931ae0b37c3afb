//! Broadcast along a tree, in segments: in one round a process receives segment k, and sends segment k − 1 to its
//! children.
//!
//! | tree | segments | what it is |
//! |---|---|---|
//! | flat | one | the root sends to all other ranks |
//! | k-nomial | one | ⌈logₖ p⌉ levels |
//! | chain | many | a pipeline: p + segments − 2 steps |

use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use crate::msg::parts::{Segments, check_bytes};
use crate::msg::schedule::{Area, Bytes, Message, Moment, Schedule, Work};
use crate::pattern::Seat;
use crate::pattern::tree::{Branches, Position, Tree};

/// One process's part of a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pipeline<T = Position> {
    position: T,
    children: u32,
    bytes: u64,
    segments: Segments,
}

impl Pipeline {
    /// `bytes` bytes of the result area go from `root` to all ranks along `tree`, in segments of `segment` bytes.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator, the tree's arity is too small, a segment has no bytes, or the
    /// message is too long.
    pub fn new(seat: Seat, bytes: u64, root: Rank, tree: Tree, segment: u64) -> Result<Self, Refusal> {
        seat.check_root(root)?;
        Self::along(tree.check()?.position(seat.rank(), root, seat.size()), bytes, segment)
    }
}

impl<T: Branches> Pipeline<T> {
    /// The same along any tree; the process without a parent is the root.
    pub(in crate::msg) fn along(position: T, bytes: u64, segment: u64) -> Result<Self, Refusal> {
        check_bytes(bytes)?;
        Refusal::check(Argument::Fragment, segment, Bound::AtLeast(1))?;
        Ok(Self { position, children: position.count(), bytes, segments: Segments::new(bytes, segment, 1) })
    }
}

impl<T: Branches> Schedule for Pipeline<T> {
    #[inline]
    fn rounds(&self) -> u64 {
        let receives = self.position.parent().is_some();
        self.segments.count() + u64::from(receives && self.children > 0)
    }

    #[inline]
    fn send(&self, round: u64, index: u32) -> Option<Message> {
        // A process that receives sends each segment one round later.
        let later = u64::from(self.position.parent().is_some());
        let place = self.segments.place(Area::Receive, round.checked_sub(later)?)?;
        // The largest subtree first.
        let peer = self.position.child(self.children.checked_sub(index + 1)?)?;
        Some(Message { peer, place })
    }

    #[inline]
    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let peer = self.position.parent().filter(|_| index == 0)?;
        Some(Message { peer, place: self.segments.place(Area::Receive, round)? })
    }

    fn work(&self, _: u64, _: Moment, _: u32) -> Option<Work> {
        None
    }

    fn bytes(&self) -> Bytes {
        Bytes { receive: self.bytes, ..Bytes::default() }
    }
}
