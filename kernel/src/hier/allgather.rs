//! Allgather(v) over two levels: blocks to each node's leader, nodes' parts among leaders, all of it back inside.
//!
//! ```text
//! shared memory    A0 A1 A2     B0 B1       each leader has its node's part of the row
//! messages         A0 ◄──────► B0           all parts
//! shared memory    A0 A1 A2     B0 B1       a broadcast of the row
//! ```

use super::rows::optional;
use super::{Between, BySwitch, Nodes, Rows, data};
use crate::algorithm::BcastAlgorithm;
use crate::call::Call;
use crate::call::any::Any;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::{Argument, Condition, Refusal};
use crate::machine::{Operation, Then};
use crate::msg::levels::{self, Way};
use crate::msg::{Memory, PlanError, Schedule, allgather};
use crate::pattern::Seat;
use crate::shm::engine::exchange::Exchange;
use crate::shm::gather::exchange::Gather;
use crate::table::By;

/// One process's part.
pub type Allgather<'a> = Then<Exchange<Gather<'a>>, Then<Between<'a, Parts<'a>>, Any<'a>>>;

/// Among the leaders.
type Parts<'a> = Way<allgather::Plan<'a>, levels::allgather::Allgather<'a>>;

/// What one process does, before it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan<'a> {
    nodes: Nodes<'a>,
    rows: Rows<'a>,
    between: Option<Parts<'a>>,
}

/// The part of a process in an allgather of `rows`.
///
/// # Errors
/// The algorithm does not apply; it is over levels, and there is no line `over` them.
pub fn plan<'a>(
    nodes: Nodes<'a>,
    rows: Rows<'a>,
    algorithm: By<allgather::Algorithm>,
    over: BySwitch<'a>,
) -> Result<Plan<'a>, PlanError> {
    if let Way::Flat(by) = algorithm {
        by.applicable(nodes.count(), nodes.stages().is_some()).map_err(PlanError::of(by))?;
    }
    let part = |seat: Seat| match algorithm {
        Way::Flat(by) => allgather::plan(seat, rows.parts(), true, by, nodes.stages()).map(Way::Flat),
        Way::Levels(by) => {
            let line = over.ok_or(Refusal::not(Argument::Operation, Condition::Applicable))?;
            levels::allgather::plan(line, seat.rank(), rows.parts(), true, by).map(Way::Levels)
        }
    };
    Ok(Plan { nodes, rows, between: nodes.led().seat().map(part).transpose()? })
}

impl<'a> Plan<'a> {
    /// Bytes of working memory.
    pub fn scratch(&self) -> u64 {
        self.between.map_or(0, |plan| plan.bytes().scratch)
    }

    /// The next two operations of `me`: `send` goes to its place in everyone's `row`. A leader whose block is in its place
    /// leaves out `send`.
    ///
    /// # Errors
    /// A buffer is too short.
    ///
    /// # Safety
    /// `send` is readable, `row` and `scratch` are writable, all exclusive during `'a`, and outlive the message layer's use of
    /// them. `scratch` is apart from the others; `send` may lie in its place in `row`, unless this process leads.
    pub unsafe fn machine(
        self,
        me: &mut Member,
        send: Option<Buf>,
        row: Buf,
        scratch: Buf,
    ) -> Result<Allgather<'a>, Refusal> {
        let led = self.nodes.led();
        // SAFETY: the caller's promise.
        let own = unsafe { optional(send) }?;
        // SAFETY: the caller's promise.
        let blocks = unsafe { self.rows.blocks(me, self.rows.part_of(row)?) }?;
        let receive = led.seat().map(|_| blocks);
        let gather = match self.rows.equal() {
            Some(_) => Gather::equal(me, own, receive, led.inside()),
            None => Gather::vary(me, own, receive, led.inside()),
        }?;
        // SAFETY: the caller's promise.
        let data = unsafe { data(row) }?;
        let back = Call::Bcast { data, root: led.inside(), algorithm: BcastAlgorithm::Auto }.build(me)?;
        let (gather, back) = (gather.started(me), back.started(me));
        let memory = Memory { send: Memory::NOTHING, receive: row, scratch };
        // SAFETY: the caller's promise; polled only after the node's part is there, and before the row is broadcast.
        let between = unsafe { led.messages(self.between, memory, me.operation()) }?;
        Ok(Then::new(gather, Then::new(between, back)))
    }
}
