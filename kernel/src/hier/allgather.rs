//! Allgather(v) over two levels: blocks to each node's leader, nodes' parts among leaders, all of it back inside.
//!
//! ```text
//! shared memory    A0 A1 A2     B0 B1       each leader has its node's part of the row
//! messages         A0 ◄──────► B0           all parts
//! shared memory    A0 A1 A2     B0 B1       a broadcast of the row
//! ```

use super::rows::optional;
use super::{Between, BySwitch, Leaders, Led, Nodes, Rows, data};
use crate::algorithm::BcastAlgorithm;
use crate::call;
use crate::call::any::Any;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::{Argument, Condition, Refusal};
use crate::machine::{Operation, Then};
use crate::msg::{Memory, PlanError, Schedule, allgather, levels};
use crate::shm::engine::exchange::Exchange;
use crate::shm::gather::exchange::Gather;

/// One process's part.
pub type Allgather<'a, P> = Then<Exchange<Gather<'a>>, Then<Between<'a, P>, Any<'a>>>;

/// What one process does, before it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan<'a, P> {
    nodes: Nodes<'a>,
    rows: Rows<'a>,
    between: Option<P>,
}

/// Whose blocks.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    nodes: Nodes<'a>,
    rows: Rows<'a>,
}

impl<'a> Leaders<'a, Call<'a>> for allgather::Algorithm {
    type Plan = allgather::Plan<'a>;
    fn plan(self, led: &Led<'a>, Call { nodes, rows }: Call<'a>) -> Result<Self::Plan, PlanError> {
        allgather::plan(led.between()?, rows.parts(), true, self, nodes.stages())
    }
    fn applicable(self, Call { nodes, .. }: &Call<'a>) -> Result<(), PlanError> {
        Self::applicable(self, nodes.count(), nodes.stages().is_some()).map_err(PlanError::of(self))
    }
}

/// An algorithm over levels, and the line over them; none: there are none.
#[derive(Clone, Copy, Debug)]
pub struct Over<'a>(pub levels::Algorithm, pub BySwitch<'a>);

impl<'a> Leaders<'a, Call<'a>> for Over<'a> {
    type Plan = levels::allgather::Allgather<'a>;
    fn plan(self, led: &Led<'a>, Call { rows, .. }: Call<'a>) -> Result<Self::Plan, PlanError> {
        let line = self.1.ok_or(Refusal::not(Argument::Operation, Condition::Applicable))?;
        levels::allgather::plan(line, led.between()?.rank(), rows.parts(), true, self.0)
    }
}

/// The part of a process in an allgather of `rows`.
///
/// # Errors
/// The algorithm does not apply; it is over levels, and there is no line over them.
pub fn plan<'a, B: Leaders<'a, Call<'a>>>(
    nodes: Nodes<'a>,
    rows: Rows<'a>,
    algorithm: B,
) -> Result<Plan<'a, B::Plan>, PlanError> {
    let (call, led) = (Call { nodes, rows }, nodes.led());
    // Every rank says so, not the leaders alone.
    algorithm.applicable(&call)?;
    let between = led.seat().map(|_| algorithm.plan(&led, call)).transpose()?;
    Ok(Plan { nodes, rows, between })
}

impl<'a, P: Schedule + Copy> Plan<'a, P> {
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
    ) -> Result<Allgather<'a, P>, Refusal> {
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
        let back = call::Call::Bcast { data, root: led.inside(), algorithm: BcastAlgorithm::Auto }.build(me)?;
        let (gather, back) = (gather.started(me), back.started(me));
        let memory = Memory { send: Memory::NOTHING, receive: row, scratch };
        // SAFETY: the caller's promise; polled only after the node's part is there, and before the row is broadcast.
        let between = unsafe { led.messages(self.between, memory, me.operation()) }?;
        Ok(Then::new(gather, Then::new(between, back)))
    }
}
