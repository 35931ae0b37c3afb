//! Broadcast over two levels: messages from the root to the nodes' leaders, then shared memory inside each node.
//!
//! ```text
//! messages         root ──► leader B        the root leads its own node
//! shared memory    A0 A1 A2     B0 B1
//! ```

use super::{Among, Between, Nodes, data};
use crate::Rank;
use crate::buffer::Buf;
use crate::comm::Member;
use crate::error::Refusal;
use crate::machine::Then;
use crate::msg::{Memory, Rounds, bcast};
use crate::select::{self, BcastAlgorithm};

/// One process's part.
pub type Bcast<'a> = Then<Between<'a, bcast::Plan>, select::Bcast<'a>>;

/// Bytes from which the root's node need not send them all to several others.
const LONG: u64 = 1 << 16;

/// How bytes go between so many nodes, where nothing else is said.
pub const fn between(bytes: u64, nodes: u32) -> bcast::Algorithm {
    if bytes >= LONG && nodes > 2 { bcast::Algorithm::ScatterAllgather } else { bcast::Algorithm::Knomial(2) }
}

/// The next operation of `me`: `buffer` goes from rank `root` to everyone.
///
/// # Errors
/// `root` is no rank; what the algorithms refuse.
///
/// # Safety
/// `buffer` is readable at the root, writable elsewhere, exclusive during `'a`, and outlives the message layer's use of it.
pub unsafe fn machine<'a>(
    me: &mut Member,
    nodes: Nodes<'a>,
    buffer: Buf,
    root: Rank,
    (outside, inside): (bcast::Algorithm, BcastAlgorithm),
) -> Result<Bcast<'a>, Refusal> {
    let led = nodes.led_by(root)?;
    // SAFETY: the caller's promise.
    let data = unsafe { data(buffer) }?;
    let inside = select::Bcast::new(me, data, led.inside(), inside)?;
    let memory = Memory { send: Memory::NOTHING, receive: buffer, scratch: Memory::NOTHING };
    let part = |seat| -> Result<Rounds<Among<'a, bcast::Plan>>, Refusal> {
        let plan = bcast::plan(seat, buffer.len() as u64, led.node(), outside)?;
        // SAFETY: the caller's promise; `inside` is polled only after this is done with the buffer.
        unsafe { Rounds::of(led.among(plan), memory, me.operation()) }
    };
    Ok(Then::new(led.seat().map(part).transpose()?, inside))
}
