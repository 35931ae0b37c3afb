//! Reduce_scatter over two levels: shared memory to each node's leader, messages among leaders, blocks inside each node.
//!
//! ```text
//! shared memory    A0 A1 A2     B0 B1       each leader has its node's fold of all blocks
//! messages         A0 ◄──────► B0           each leader gets its node's part of the fold of all nodes
//! shared memory    A0 A1 A2     B0 B1
//! ```
//! The ranks of the nodes follow one another, so a node's blocks are one part of the operand, and folds keep the ranks' order.

use super::{Between, Led, Nodes, Rows, data, split};
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::{Argument, Condition, Refusal};
use crate::machine::{Operation, Then};
use crate::msg::reduce_scatter::Algorithm;
use crate::msg::{Memory, PlanError, Schedule, reduce_scatter};
use crate::op::Op;
use crate::shm::engine::exchange::Exchange;
use crate::shm::reduce::exchange::Reduce;
use crate::shm::scatter::{Scatter, scatter, scatterv};

/// Most nodes whose leaders fold short operands in pairs: they take turns, so among more of them a reduce and a scatter take less.
const FEW: u32 = 4;
/// Fewest bytes of the operand, for each node, at which they do in any case: in a reduce and a scatter all blocks pass through
/// one leader.
const LONG: u64 = 16 << 10;

/// Is an operand of so many bytes better folded so than by a reduce and a scatter?
pub const fn pays(nodes: u32, bytes: u64) -> bool {
    nodes <= FEW || bytes / LONG >= nodes as u64
}

/// One process's part.
pub type ReduceScatter<'a> = Then<Exchange<Reduce<'a>>, Then<Between<'a, reduce_scatter::Plan<'a>>, Scatter<'a>>>;

/// What one process does, before it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan<'a> {
    led: Led<'a>,
    rows: Rows<'a>,
    op: Op,
    between: Option<reduce_scatter::Plan<'a>>,
}

/// The part of a process in a reduce_scatter of `rows`.
///
/// # Errors
/// The ranks of a node do not follow one another; a node's part is no whole number of elements.
pub fn plan<'a>(nodes: Nodes<'a>, rows: Rows<'a>, op: Op) -> Result<Plan<'a>, PlanError> {
    if !nodes.in_order() {
        return Err(Refusal::not(Argument::Operation, Condition::Applicable).into());
    }
    let led = nodes.led();
    let part = |seat| reduce_scatter::plan(seat, rows.parts(), op, false, Algorithm::Pairwise);
    Ok(Plan { led, rows, op, between: led.seat().map(part).transpose()? })
}

impl<'a> Plan<'a> {
    /// Bytes of a leader's fold, and of its node's part.
    fn held(&self) -> (u64, u64) {
        self.between.map_or((0, 0), |plan| (plan.bytes().send, self.rows.part()))
    }

    /// Bytes of working memory.
    pub fn scratch(&self) -> u64 {
        let (fold, part) = self.held();
        fold + part + self.between.map_or(0, |plan| plan.bytes().scratch)
    }

    /// The next two operations of `me`: `send`, all blocks in a row by rank, is folded, and this process's block goes to `receive`,
    /// which may lie in `send`.
    ///
    /// # Errors
    /// A buffer is too short; an operand is no whole number of elements.
    ///
    /// # Safety
    /// `send` is readable, `receive` and `scratch` are writable, all exclusive during `'a`, `scratch` is apart, and all outlive the
    /// message layer's use of them. A user's operation is as it promised.
    pub unsafe fn machine(
        self,
        me: &mut Member,
        send: Buf,
        receive: Buf,
        scratch: Buf,
    ) -> Result<ReduceScatter<'a>, Refusal> {
        let (led, leads) = (self.led, self.between.is_some());
        let (bytes, own) = self.held();
        let (fold, rest) = split(scratch, bytes)?;
        let (part, rest) = split(rest, own)?;
        // SAFETY: the caller's promise.
        let operand = unsafe { data(send) }?;
        // SAFETY: the caller's promise.
        let folded = if leads { Some(unsafe { data(fold) }?) } else { None };
        let reduce = Reduce::to_root(me, operand, folded, self.op, led.inside())?.started(me);
        // SAFETY: the caller's promise; it is polled after the reduction, which has read `send` on all ranks of the node.
        let block = Some(unsafe { data(receive) }?);
        // SAFETY: the caller's promise.
        let blocks = if leads { Some(unsafe { self.rows.blocks(me, part) }?) } else { None };
        let scatter = match self.rows.equal() {
            Some(_) => scatter(me, blocks, block, led.inside()),
            None => scatterv(me, blocks, block, led.inside()),
        }?
        .started(me);
        let memory = Memory { send: fold, receive: part, scratch: rest };
        // SAFETY: the caller's promise; polled only after the node's fold is there, and before its part is scattered.
        let between = unsafe { led.messages(self.between, memory, me.operation()) }?;
        Ok(Then::new(reduce, Then::new(between, scatter)))
    }
}
