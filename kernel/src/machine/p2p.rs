//! Point-to-point messages: all that algorithms over messages need from a network.

use crate::Rank;
use crate::data::buffer::Buf;
pub use crate::error::P2pError;
use crate::error::Poison;
use crate::machine::poll::Slot;

/// Distinguishes the messages of one operation from those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag(pub u64);

/// A point-to-point layer: post and test, no blocking. Messages between two ranks with one tag
/// arrive in the order in which they were posted.
pub trait P2p {
    /// This process.
    fn rank(&self) -> Rank;
    /// Number of processes.
    fn size(&self) -> u32;
    /// Posts a send of `buf` to `to`. The bytes stay readable until [`P2p::test`] returns true.
    ///
    /// # Safety
    /// `buf` is readable, and is not written, until `test` of the slot has returned true or the layer is dropped.
    unsafe fn post_send(&mut self, to: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError>;
    /// Posts a receive into `buf` from `from`. If the message has another length, `test` returns an error.
    ///
    /// # Safety
    /// `buf` is writable, and nothing else reads or writes it, until `test` of the slot has returned true or the layer
    /// is dropped.
    unsafe fn post_recv(&mut self, from: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError>;
    /// Is the request complete? True frees the slot.
    fn test(&mut self, slot: Slot) -> Result<bool, P2pError>;
    /// Would [`P2p::test`] return true, or an error? Frees nothing. A layer that can't tell returns true, which costs
    /// a waiting process one poll.
    fn has_ended(&mut self, _: Slot) -> bool {
        true
    }
    /// Has a process given up, and told this one why? Called in a long wait. The rank is one of this layer.
    fn news(&mut self) -> Option<Poison> {
        None
    }
}

/// A message layer that can also tell other processes of an error: what collectives over several nodes need besides messages.
pub trait Tell: P2p {
    /// Tells `ranks` why this process takes part in nothing any more, so that they stop waiting for it: [`P2p::news`] returns
    /// it there. Called after an error. Returns soon, whether or not all of them have heard it.
    fn tell(&mut self, ranks: impl Iterator<Item = Rank>, why: Poison);
    /// Gives up all that was posted, after an error. No receive writes its buffer any more; a send that no receiver has taken
    /// may read its buffer until the layer is dropped.
    fn give_up(&mut self);
}
