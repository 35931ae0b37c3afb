//! Gather over two levels: blocks to each node's leader, nodes' parts to the root.
//!
//! ```text
//! shared memory    A0 A1 A2     B0 B1       each leader has its node's part: the root in the row, others in working memory
//! messages         root ◄── leader B
//! ```
//! Over switches the parts of a switch's nodes go to one leader first, where all ranks know all lengths ([`BySwitch`]).
//!
//! A gatherv is two gathers: first of the lengths, a block of 8 bytes each, from which a leader knows how much memory its
//! node's part takes and the root that all send what it expects; then of the blocks ([`Rows::told`]).

use super::rows::optional;
use super::{Between, BySwitch, Led, Nodes, Rows};
use crate::Rank;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::Refusal;
use crate::machine::{Operation, Then};
use crate::msg::levels::{self, Way};
use crate::msg::{Memory, PlanError, Schedule, gather};
use crate::pattern::Seat;
use crate::shm::engine::exchange::Exchange;
use crate::shm::gather::exchange;

/// One process's part.
pub type Gather<'a> = Then<Exchange<exchange::Gather<'a>>, Between<'a, Parts<'a>>>;

/// Among the leaders.
type Parts<'a> = Way<gather::Plan<'a>, levels::gather::Gather<'a>>;

/// What one process does, before it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan<'a> {
    led: Led<'a>,
    rows: Rows<'a>,
    between: Option<Parts<'a>>,
}

/// The part of a process in a gather of `rows` to `root`.
///
/// # Errors
/// `root` is no rank; over switches, not all ranks know all lengths.
pub fn plan<'a>(nodes: Nodes<'a>, rows: Rows<'a>, root: Rank, over: BySwitch<'a>) -> Result<Plan<'a>, PlanError> {
    let led = nodes.led_by(root)?;
    let part = |seat: Seat| match over {
        Some(line) => levels::gather::plan(line, seat.rank(), rows.known_parts()?, led.node(), true).map(Way::Levels),
        None => {
            gather::plan(seat, rows.part(), rows.parts(), led.node(), true, gather::Algorithm::Linear).map(Way::Flat)
        }
    };
    Ok(Plan { led, rows, between: led.seat().map(part).transpose()? })
}

impl<'a> Plan<'a> {
    /// Bytes of working memory. Where this process leads a node that is not the root's, the first of them have the node's part
    /// in the end.
    pub fn scratch(&self) -> u64 {
        self.rows.aside(&self.led) + self.between.map_or(0, |plan| plan.bytes().scratch)
    }

    /// The next operation of `me`: `send` goes to its place in the root's `row`, which others leave out. A root whose block is in
    /// its place leaves out `send`.
    ///
    /// # Errors
    /// A buffer is too short.
    ///
    /// # Safety
    /// `send` is readable, `row` and `scratch` are writable, all exclusive during `'a`, apart, and outlive the message layer's
    /// use of them.
    pub unsafe fn machine(
        self,
        me: &mut Member,
        send: Option<Buf>,
        row: Buf,
        scratch: Buf,
    ) -> Result<Gather<'a>, Refusal> {
        // SAFETY: the caller's promise.
        let (part, receive, rest) = unsafe { self.rows.held(&self.led, me, row, scratch) }?;
        // SAFETY: the caller's promise.
        let own = unsafe { optional(send) }?;
        let inside = match self.rows.equal() {
            Some(_) => exchange::Gather::equal(me, own, receive, self.led.inside()),
            None => exchange::Gather::vary(me, own, receive, self.led.inside()),
        }?
        .started(me);
        let (send, receive) = if self.led.is_root() { (Memory::NOTHING, row) } else { (part, Memory::NOTHING) };
        let memory = Memory { send, receive, scratch: rest };
        // SAFETY: the caller's promise; polled only after the node's part is there.
        let between = unsafe { self.led.messages(self.between, memory, me.operation()) }?;
        Ok(Then::new(inside, between))
    }
}
