//! Broadcast by recursive halving and recursive doubling: the root and every other process that has a range of the
//! vector sends one half of it to a partner; then partners exchange what they have until all have the whole vector.
//! As many bytes are sent as in scatter and ring, in 2·⌊log2 p⌋ rounds instead of ⌈log2 p⌉ + p − 1.
//!
//! The nearest ranks are the first partners of the halving, and the last of the doubling. If consecutive ranks fill
//! the nodes, all ranks of a node send slices to other nodes, and the slices that come back are short. If p is not a
//! power of two, a rank outside the core receives the whole vector from its partner inside at the end.

use crate::Rank;
use crate::error::Refusal;
use crate::msg::halving::{Halves, Leave, Spread, Unfold};
use crate::msg::parts::check_bytes;
use crate::msg::schedule::Sequence;
use crate::pattern::Seat;

/// One process's part of a broadcast.
pub type ScatterDoubling = Sequence<Spread, Sequence<Unfold, Leave>>;

/// `bytes` bytes of the result area go from `root` to all ranks.
///
/// # Errors
/// `root` is not a rank of the communicator; the message is too long.
pub fn scatter_doubling(seat: Seat, bytes: u64, root: Rank) -> Result<ScatterDoubling, Refusal> {
    seat.check_root(root)?;
    check_bytes(bytes)?;
    let halves = Halves::new(seat, root, bytes, 1, true, true);
    let unfold = Unfold { halves, to_favourite: false };
    Ok(Sequence::new(Spread(halves), Sequence::new(unfold, Leave(halves))))
}
