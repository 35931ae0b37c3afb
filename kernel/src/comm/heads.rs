//! The heads of other processes' posted lines.

use super::member::Member;
use crate::Rank;
use crate::data::buffer::Buf;
use crate::region::{Flag, Region};

/// The head of the line that `peer` posted in `operation`; `None` if it has not, or has reused the line since.
///
/// If this process has finished the operation, the head may be a later one's, since the peer may be writing the line
/// just now.
#[cold]
pub(crate) fn head_of<R: Region>(region: &R, me: &Member, peer: Rank, operation: u64) -> Option<u64> {
    // pairs with: post
    let posted = region.flag(me.layout().line(peer, operation)).load_acquire().is(operation);
    posted.then(|| read_head(region, me, peer, operation))
}

#[inline(always)]
pub(crate) fn read_head<R: Region>(region: &R, me: &Member, peer: Rank, operation: u64) -> u64 {
    let mut head = [0; 8];
    // SAFETY: `peer` published the line and reuses it only after our `done`. `head_of` also reads it after that, where
    // the ranks call different collectives: then a race concerns one word, which is copied as an atomic (the boundary
    // of docs/explanation/memory-model.md), and the caller checks the value. The array is ours.
    unsafe { region.read(me.layout().line_body(peer, operation, 8), Buf::of_mut(&mut head)) };
    u64::from_ne_bytes(head)
}
