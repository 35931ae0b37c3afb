//! Scatter over two levels: nodes' parts from the root to leaders, blocks inside each node.
//!
//! ```text
//! messages         root ──► leader B        its node's part, into working memory
//! shared memory    A0 A1 A2     B0 B1
//! ```
//! Over switches the parts of a switch's nodes go to one of their leaders together, where all ranks know all lengths
//! ([`BySwitch`]).
//!
//! A scatterv is two scatters: first of the lengths, a block of 8 bytes each, from which a leader knows how much memory its
//! node's part takes and every rank that the root sends what it expects; then of the blocks ([`Rows::told`]).

use super::rows::optional;
use super::{Between, BySwitch, Led, Nodes, Rows};
use crate::Rank;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::Refusal;
use crate::machine::{Operation, Then};
use crate::msg::levels::{self, Way};
use crate::msg::{Memory, PlanError, Schedule, scatter};
use crate::pattern::Seat;
use crate::shm::scatter::{Scatter as Inside, scatter, scatterv};

/// One process's part.
pub type Scatter<'a> = Then<Between<'a, Parts<'a>>, Inside<'a>>;

/// Among the leaders.
type Parts<'a> = Way<scatter::Plan<'a>, levels::scatter::Scatter<'a>>;

/// What one process does, before it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan<'a> {
    led: Led<'a>,
    rows: Rows<'a>,
    between: Option<Parts<'a>>,
}

/// The part of a process in a scatter of `rows` from `root`.
///
/// # Errors
/// `root` is no rank; over switches, not all ranks know all lengths.
pub fn plan<'a>(nodes: Nodes<'a>, rows: Rows<'a>, root: Rank, over: BySwitch<'a>) -> Result<Plan<'a>, PlanError> {
    let led = nodes.led_by(root)?;
    let part = |seat: Seat| match over {
        Some(line) => levels::scatter::plan(line, seat.rank(), rows.known_parts()?, led.node(), true).map(Way::Levels),
        None => {
            scatter::plan(seat, rows.part(), rows.parts(), led.node(), true, scatter::Algorithm::Linear).map(Way::Flat)
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

    /// The next operation of `me`: its block of the root's `row`, which others leave out, goes to `receive`. A root whose block
    /// stays in its place leaves out `receive`.
    ///
    /// # Errors
    /// A buffer is too short.
    ///
    /// # Safety
    /// `row` is readable, `receive` and `scratch` are writable, all exclusive during `'a`, apart, and outlive the message
    /// layer's use of them.
    pub unsafe fn machine(
        self,
        me: &mut Member,
        row: Buf,
        receive: Option<Buf>,
        scratch: Buf,
    ) -> Result<Scatter<'a>, Refusal> {
        // SAFETY: the caller's promise.
        let (part, send, rest) = unsafe { self.rows.held(&self.led, me, row, scratch) }?;
        // SAFETY: the caller's promise.
        let own = unsafe { optional(receive) }?;
        let inside = match self.rows.equal() {
            Some(_) => scatter(me, send, own, self.led.inside()),
            None => scatterv(me, send, own, self.led.inside()),
        }?
        .started(me);
        let (send, receive) = if self.led.is_root() { (row, Memory::NOTHING) } else { (Memory::NOTHING, part) };
        let memory = Memory { send, receive, scratch: rest };
        // SAFETY: the caller's promise; `inside` is polled only after the node's part is there.
        let between = unsafe { self.led.messages(self.between, memory, me.operation()) }?;
        Ok(Then::new(between, inside))
    }
}
