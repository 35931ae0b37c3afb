//! Allreduce over two levels: shared memory to each node's leader, messages among leaders, shared memory back.
//!
//! ```text
//! shared memory    A0 A1 A2     B0 B1       each leader has its node's fold where its result goes
//! messages         A0 ◄──────► B0           in place
//! shared memory    A0 A1 A2     B0 B1       a broadcast of the leader's: all ranks have the same bits
//! ```
//! An operation that does not commute needs nodes whose ranks follow one another.

use super::pipe::{self, Cut, Segments, refusal};
use super::{Among, Led, Nodes, data};
use crate::algorithm::{BcastAlgorithm, ReduceAlgorithm};
use crate::call::Call;
use crate::call::any::Any;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::Refusal;
use crate::msg::levels::{self, Way};
use crate::msg::{Memory, Needs, PlanError, Rounds, Schedule, allreduce};
use crate::op::Op;
use crate::table::By;

/// By which algorithm, in which segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithms {
    /// Among the leaders.
    pub between: By<allreduce::Algorithm>,
    /// Bytes of a segment.
    pub segment: u64,
}

/// One process's part.
pub type Allreduce<'a> = pipe::Pipelined<Parts<'a>>;

/// The leaders' schedule.
type Part<'n> = Way<allreduce::Plan, levels::allreduce::Plan<'n>>;

/// What one process does, before it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan<'n> {
    led: Led<'n>,
    cut: Cut,
    op: Op,
    algorithm: By<allreduce::Algorithm>,
    /// Bytes of the leaders' working memory.
    between: u64,
}

/// The same with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts<'n> {
    plan: Plan<'n>,
    send: Buf,
    receive: Buf,
    scratch: Buf,
    tag: u64,
}

/// The part of a process in a reduction of `bytes` bytes to all, in segments of `algorithms.segment` bytes.
///
/// # Errors
/// The operand is no whole number of elements; the algorithm does not apply; the operation does not commute and ranks lie
/// across nodes.
pub fn plan<'n>(nodes: Nodes<'n>, bytes: u64, op: Op, algorithms: Algorithms) -> Result<Plan<'n>, PlanError> {
    // Every rank says so, not the leaders alone.
    let ordered = if op.commutative() || nodes.in_order() { Ok(()) } else { Err(Needs::Commutative) };
    match algorithms.between {
        Way::Flat(by) => ordered.and(by.applicable(&op)).map_err(PlanError::of(by))?,
        Way::Levels(_) => ordered.map_err(PlanError::OverLevels)?,
    }
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

impl<'n> Plan<'n> {
    fn part(&self, len: u64) -> Result<Part<'n>, PlanError> {
        let seat = self.led.between()?;
        Ok(match self.algorithm {
            Way::Flat(by) => Way::Flat(allreduce::plan(seat, len, self.op, true, by)?),
            Way::Levels(by) => {
                Way::Levels(levels::allreduce::plan(&self.led.groups()?, seat.rank(), len, self.op, true, by)?)
            }
        })
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
    pub unsafe fn machine<'a>(
        self,
        me: &Member,
        send: Buf,
        receive: Buf,
        scratch: Buf,
    ) -> Result<Allreduce<'a>, Refusal>
    where
        'n: 'a,
    {
        Allreduce::new(Parts { plan: self, send, receive, scratch, tag: me.operation() + 1 }, me)
    }
}

impl<'n> Segments for Parts<'n> {
    type Inside = Any<'n>;
    type Schedule = Among<'n, Part<'n>>;

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

impl Parts<'_> {
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
