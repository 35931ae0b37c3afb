//! Broadcast along a binomial tree: a process receives from its parent, and sends to its children, the one with the
//! largest subtree first.

use super::tree::Pipeline;
use crate::Rank;
use crate::data::buffer::Buf;
use crate::error::Refusal;
use crate::msg::rounds::{Memory, Rounds};
use crate::pattern::Seat;
use crate::pattern::tree::Tree;

/// One process's part of a broadcast.
pub type Binomial = Rounds<Pipeline>;

impl Binomial {
    /// The part of process `rank` of `size`: `buffer` goes from `root` to all ranks. `operation` is the messages' tag.
    ///
    /// # Errors
    /// `rank` or `root` is not below `size`.
    ///
    /// # Safety
    /// `buffer` is readable at the root and writable elsewhere, and nothing else accesses it, until the machine is
    /// done or the point-to-point layer is dropped.
    pub unsafe fn new(rank: Rank, size: u32, buffer: Buf, root: Rank, operation: u64) -> Result<Self, Refusal> {
        let (seat, bytes) = (Seat::new(rank, size)?, buffer.len() as u64);
        let schedule = Pipeline::new(seat, bytes, root, Tree::BINOMIAL, u64::MAX)?;
        let memory = Memory { send: Memory::NOTHING, receive: buffer, scratch: Memory::NOTHING };
        // SAFETY: the caller's promise; a broadcast accesses only its buffer.
        unsafe { Self::of(schedule, memory, operation) }
    }
}
