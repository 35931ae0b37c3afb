//! Allreduce over two levels: shared memory to each node's leader, messages among leaders, shared memory back.
//!
//! ```text
//! shared memory    A0 A1 A2     B0 B1       each leader has its node's fold where its result goes
//! messages         A0 ◄──────► B0           in place
//! shared memory    A0 A1 A2     B0 B1       a broadcast of the leader's: all ranks have the same bits
//! ```
//! An operation that does not commute needs nodes whose ranks follow one another.

use super::pipe::{self, Cut, Segments, refusal};
use super::{Among, Leaders, Led, Nodes, data};
use crate::algorithm::{BcastAlgorithm, ReduceAlgorithm};
use crate::call::Call;
use crate::call::any::Any;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::Refusal;
use crate::msg::{Memory, Needs, PlanError, Rounds, Schedule, allreduce, levels};
use crate::op::Op;

/// By which algorithm, in which segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithms<B> {
    /// Among the leaders.
    pub between: B,
    /// Bytes of a segment.
    pub segment: u64,
}

/// One process's part.
pub type Allreduce<'a, B> = pipe::Pipelined<Parts<'a, B>>;

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
    receive: Buf,
    scratch: Buf,
    tag: u64,
}

/// Of a segment of so many bytes, in place.
#[derive(Clone, Copy, Debug)]
pub struct Segment(u64, Op);

impl<'n> Leaders<'n, Segment> for allreduce::Algorithm {
    type Plan = allreduce::Plan;
    fn plan(self, led: &Led<'n>, Segment(bytes, op): Segment) -> Result<Self::Plan, PlanError> {
        allreduce::plan(led.between()?, bytes, op, true, self)
    }
    fn needs(self, needs: Needs) -> PlanError {
        PlanError::of(self)(needs)
    }
    fn applicable(self, Segment(_, op): &Segment) -> Result<(), PlanError> {
        Self::applicable(self, op).map_err(PlanError::of(self))
    }
}

impl<'n> Leaders<'n, Segment> for levels::Algorithm {
    type Plan = levels::allreduce::Plan<'n>;
    fn plan(self, led: &Led<'n>, Segment(bytes, op): Segment) -> Result<Self::Plan, PlanError> {
        levels::allreduce::plan(&led.groups()?, led.between()?.rank(), bytes, op, true, self)
    }
}

/// The part of a process in a reduction of `bytes` bytes to all, in segments of `algorithms.segment` bytes.
///
/// # Errors
/// The operand is no whole number of elements; the algorithm does not apply; the operation does not commute and ranks lie
/// across nodes.
pub fn plan<'n, B: Leaders<'n, Segment>>(
    nodes: Nodes<'n>,
    bytes: u64,
    op: Op,
    algorithms: Algorithms<B>,
) -> Result<Plan<'n, B>, PlanError> {
    // Every rank says so, not the leaders alone.
    if !op.commutative() && !nodes.in_order() {
        return Err(algorithms.between.needs(Needs::Commutative));
    }
    algorithms.between.applicable(&Segment(bytes, op))?;
    op.count(bytes)?;
    let (led, cut) = (nodes.led(), Cut::new(bytes, algorithms.segment, op.element()));
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

    /// Bytes of working memory.
    pub const fn scratch(&self) -> u64 {
        self.between
    }

    /// The next operations of `me`. In place: `send` is `receive`.
    ///
    /// # Errors
    /// A buffer is too short.
    ///
    /// # Safety
    /// `send` is readable, `receive` and `scratch` are writable, all exclusive during `'a`, apart unless in place, and
    /// outlive the message layer's use of them. A user's operation is as it promised.
    pub unsafe fn machine(
        self,
        me: &Member,
        send: Buf,
        receive: Buf,
        scratch: Buf,
    ) -> Result<Allreduce<'n, B>, Refusal> {
        Allreduce::new(Parts { plan: self, send, receive, scratch, tag: me.operation() + 1 }, me)
    }
}

impl<'n, B: Leaders<'n, Segment>> Segments for Parts<'n, B> {
    type Inside = Any<'n>;
    type Schedule = Among<'n, B::Plan>;

    fn inside_count(&self) -> u64 {
        2 * self.plan.cut.count()
    }

    fn between_count(&self) -> u64 {
        if self.plan.led.seat().is_some() { self.plan.cut.count() } else { 0 }
    }

    /// The order in a node: fold 0, then in turns fold k + 1 and broadcast k, then the last broadcast.
    fn inside_needs(&self, index: u64) -> u64 {
        match self.broadcast(index) {
            Some(segment) if self.plan.led.seat().is_some() => segment + 1,
            _ => 0,
        }
    }

    fn between_needs(&self, index: u64) -> u64 {
        // Fold `index` is operation 0, 1, 3, 5 … of the node.
        if index == 0 { 1 } else { 2 * index }
    }

    fn inside(&self, me: &Member, index: u64) -> Result<Self::Inside, Refusal> {
        let Plan { led, cut, op, .. } = self.plan;
        let segment = |buffer, index| {
            // SAFETY: `Plan::machine`'s contract; where messages write the segment, it is polled only after they have.
            unsafe { data(cut.of(buffer, index)) }
        };
        match self.broadcast(index) {
            Some(back) => {
                let data = segment(self.receive, back)?;
                Call::Bcast { data, root: led.inside(), algorithm: BcastAlgorithm::Auto }.build(me)
            }
            None => {
                let index = index.div_ceil(2);
                let (send, receive) = (segment(self.send, index)?, Some(segment(self.receive, index)?));
                Call::Reduce { send, receive, op, root: led.inside(), algorithm: ReduceAlgorithm::Auto }.build(me)
            }
        }
    }

    fn between(&self, index: u64) -> Result<Rounds<Self::Schedule>, Refusal> {
        let Plan { led, cut, .. } = self.plan;
        let plan = self.plan.part(cut.len(index)).map_err(refusal)?;
        let memory = Memory { send: Memory::NOTHING, receive: cut.of(self.receive, index), scratch: self.scratch };
        // SAFETY: `Plan::machine`'s contract; polled only after the segment's fold is there, before it is broadcast, and one
        // segment at a time.
        unsafe { Rounds::of(led.among(plan), memory, self.tag) }
    }
}

impl<B> Parts<'_, B> {
    /// The segment that operation `index` of the node broadcasts; none: it folds one.
    fn broadcast(&self, index: u64) -> Option<u64> {
        let last = 2 * self.plan.cut.count() - 1;
        if index == last {
            Some(self.plan.cut.count() - 1)
        } else {
            (index > 0 && index.is_multiple_of(2)).then(|| index / 2 - 1)
        }
    }
}
