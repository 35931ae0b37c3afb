//! Broadcast by scatter and doubling: halves of halves go out from the root, then partners exchange what they have until
//! all have all. As many bytes as round a ring, in 2·⌊log2 p⌋ rounds instead of p − 1.
//!
//! Nearest partners share first and exchange last: where ranks fill nodes, slices leave a node through all of its ranks,
//! and what comes back is short. Where p is no power of two, who is outside the core is told all at the end.

use crate::Rank;
use crate::error::Refusal;
use crate::msg::halving::{Halves, Leave, Spread, Unfold};
use crate::msg::parts::check_bytes;
use crate::msg::schedule::Sequence;
use crate::pattern::Seat;

/// One process's part.
pub type ScatterDoubling = Sequence<Spread, Sequence<Unfold, Leave>>;

/// `bytes` bytes of the result area go from `root` to everyone.
///
/// # Errors
/// `root` is no rank; too many bytes.
pub fn scatter_doubling(seat: Seat, bytes: u64, root: Rank) -> Result<ScatterDoubling, Refusal> {
    seat.check_root(root)?;
    check_bytes(bytes)?;
    let halves = Halves::new(seat, root, bytes, 1, true, true);
    let unfold = Unfold { halves, to_favourite: false };
    Ok(Sequence::new(Spread(halves), Sequence::new(unfold, Leave(halves))))
}
