//! Reduce over two levels: shared memory to each node's leader, then messages to the root.
//!
//! ```text
//! shared memory    A0 A1 A2     B0 B1       each leader has its node's fold: the root in its result, others in working memory
//! messages         root ◄── leader B
//! ```
//! An operation that does not commute needs nodes whose ranks follow one another.

use super::pipe::{self, Cut, Segments, refusal};
use super::{Among, Leaders, Led, Nodes, data};
use crate::Rank;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::Refusal;
use crate::msg::{Memory, Needs, PlanError, Rounds, Schedule, levels, reduce};
use crate::op::Op;
use crate::shm::engine::exchange::Exchange;
use crate::shm::reduce::exchange;

/// By which algorithm, in which segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithms<B> {
    /// Among the leaders.
    pub between: B,
    /// Bytes of a segment.
    pub segment: u64,
}

/// One process's part.
pub type Reduce<'a, B> = pipe::Pipelined<Parts<'a, B>>;

/// What one process does, before it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan<'n, B> {
    led: Led<'n>,
    cut: Cut,
    op: Op,
    algorithm: B,
    /// Bytes of the leaders' working memory.
    between: u64,
}

/// The same with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts<'n, B> {
    plan: Plan<'n, B>,
    send: Buf,
    /// Where this node's fold goes, and the result at the root.
    target: Buf,
    scratch: Buf,
    tag: u64,
}

/// Of a segment of so many bytes. Every leader's operand is its node's fold; the root's lies where its result goes.
#[derive(Clone, Copy, Debug)]
pub struct Segment(u64, Op);

impl<'n> Leaders<'n, Segment> for reduce::Algorithm {
    type Plan = reduce::Plan;
    fn plan(self, led: &Led<'n>, Segment(bytes, op): Segment) -> Result<Self::Plan, PlanError> {
        Ok(reduce::plan(led.between()?, bytes, op, led.node(), true, self)?)
    }
    fn needs(self, needs: Needs) -> PlanError {
        PlanError::of(self)(needs)
    }
}

impl<'n> Leaders<'n, Segment> for levels::Algorithm {
    type Plan = levels::reduce::Plan<'n>;
    fn plan(self, led: &Led<'n>, Segment(bytes, op): Segment) -> Result<Self::Plan, PlanError> {
        levels::reduce::plan(&led.groups()?, led.between()?.rank(), bytes, op, led.node(), true, self)
    }
}

/// The part of a process in a reduction of `bytes` bytes to `root`, in segments of `algorithms.segment` bytes.
///
/// # Errors
/// `root` is no rank; the operand is no whole number of elements; the operation does not commute and ranks lie across nodes.
pub fn plan<'n, B: Leaders<'n, Segment>>(
    nodes: Nodes<'n>,
    bytes: u64,
    op: Op,
    root: Rank,
    algorithms: Algorithms<B>,
) -> Result<Plan<'n, B>, PlanError> {
    if !op.commutative() && !nodes.in_order() {
        return Err(algorithms.between.needs(Needs::Commutative));
    }
    op.count(bytes)?;
    let (led, cut) = (nodes.led_by(root)?, Cut::new(bytes, algorithms.segment, op.element()));
    let mut plan = Plan { led, cut, op, algorithm: algorithms.between, between: 0 };
    if led.seat().is_some() {
        for len in cut.lengths() {
            plan.between = plan.between.max(plan.part(len)?.bytes().scratch);
        }
    }
    Ok(plan)
}

impl<'n, B: Leaders<'n, Segment>> Plan<'n, B> {
    fn part(&self, len: u64) -> Result<B::Plan, PlanError> {
        self.algorithm.plan(&self.led, Segment(len, self.op))
    }

    /// Bytes of the fold of a leader that is not the root: the first of its working memory.
    fn partial(&self) -> u64 {
        if self.led.seat().is_some() && !self.led.is_root() { self.cut.bytes() } else { 0 }
    }

    /// Bytes of working memory.
    pub fn scratch(&self) -> u64 {
        self.partial() + self.between
    }

    /// The next operations of `me`. In place at the root: `send` is `receive`. Others leave out `receive`.
    ///
    /// # Errors
    /// A buffer is too short.
    ///
    /// # Safety
    /// `send` is readable, `receive` and `scratch` are writable, all exclusive during `'a`, apart unless in place, and
    /// outlive the message layer's use of them. A user's operation is as it promised.
    pub unsafe fn machine(self, me: &Member, send: Buf, receive: Buf, scratch: Buf) -> Result<Reduce<'n, B>, Refusal> {
        let (partial, scratch) = super::split(scratch, self.partial())?;
        let target = if self.led.is_root() { receive } else { partial };
        Reduce::new(Parts { plan: self, send, target, scratch, tag: me.operation() + 1 }, me)
    }
}

impl<'n, B: Leaders<'n, Segment>> Segments for Parts<'n, B> {
    type Inside = Exchange<exchange::Reduce<'n>>;
    type Schedule = Among<'n, B::Plan>;

    fn inside_count(&self) -> u64 {
        self.plan.cut.count()
    }

    fn between_count(&self) -> u64 {
        if self.plan.led.seat().is_some() { self.plan.cut.count() } else { 0 }
    }

    fn inside_needs(&self, _: u64) -> u64 {
        0
    }

    fn between_needs(&self, index: u64) -> u64 {
        index + 1
    }

    fn inside(&self, me: &Member, index: u64) -> Result<Self::Inside, Refusal> {
        let Plan { led, cut, op, .. } = self.plan;
        // SAFETY: `Plan::machine`'s contract.
        let operand = unsafe { data(cut.of(self.send, index)) }?;
        // SAFETY: as above.
        let folded = if led.seat().is_some() { Some(unsafe { data(cut.of(self.target, index)) }?) } else { None };
        exchange::Reduce::to_root(me, operand, folded, op, led.inside())
    }

    fn between(&self, index: u64) -> Result<Rounds<Self::Schedule>, Refusal> {
        let Plan { led, cut, .. } = self.plan;
        let (plan, target) = (self.plan.part(cut.len(index)).map_err(refusal)?, cut.of(self.target, index));
        let (send, receive) = if led.is_root() { (Memory::NOTHING, target) } else { (target, Memory::NOTHING) };
        let memory = Memory { send, receive, scratch: self.scratch };
        // SAFETY: `Plan::machine`'s contract; polled only after the segment's fold is there, and one segment at a time.
        unsafe { Rounds::of(led.among(plan), memory, self.tag) }
    }
}
