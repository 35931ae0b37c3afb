//! Broadcast over two levels: messages from the root to the nodes' leaders, then shared memory inside each node.
//!
//! ```text
//! messages         root ──► leader B        the root leads its own node
//! shared memory    A0 A1 A2     B0 B1
//! ```

use super::pipe::{self, Cut, Segments, refusal};
use super::{Among, Leaders, Led, Nodes, data};
use crate::Rank;
use crate::algorithm::BcastAlgorithm;
use crate::call::Call;
use crate::call::any::Any;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::Refusal;
use crate::msg::{Memory, PlanError, Rounds, bcast, levels};

/// By which algorithms, in which segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithms<B> {
    /// Among the leaders.
    pub between: B,
    /// In each node.
    pub inside: BcastAlgorithm,
    /// Bytes of a segment.
    pub segment: u64,
}

/// One process's part.
pub type Bcast<'a, B> = pipe::Pipelined<Parts<'a, B>>;

/// What its segments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts<'a, B> {
    led: Led<'a>,
    buffer: Buf,
    cut: Cut,
    algorithms: Algorithms<B>,
    tag: u64,
}

/// Of a segment of so many bytes.
#[derive(Clone, Copy, Debug)]
pub struct Segment(u64);

impl<'a> Leaders<'a, Segment> for bcast::Algorithm {
    type Plan = bcast::Plan;
    fn plan(self, led: &Led<'a>, Segment(bytes): Segment) -> Result<Self::Plan, PlanError> {
        Ok(bcast::plan(led.between()?, bytes, led.node(), self)?)
    }
}

impl<'a> Leaders<'a, Segment> for levels::Algorithm {
    type Plan = levels::bcast::Plan<'a>;
    fn plan(self, led: &Led<'a>, Segment(bytes): Segment) -> Result<Self::Plan, PlanError> {
        levels::bcast::plan(&led.groups()?, led.between()?.rank(), bytes, led.node(), self)
    }
}

/// The next operations of `me`: `buffer` goes from rank `root` to everyone, in segments of `algorithms.segment` bytes.
///
/// # Errors
/// `root` is no rank; what the algorithms refuse.
///
/// # Safety
/// `buffer` is readable at the root, writable elsewhere, exclusive during `'a`, and outlives the message layer's use of it.
pub unsafe fn machine<'a, B: Leaders<'a, Segment>>(
    me: &Member,
    nodes: Nodes<'a>,
    buffer: Buf,
    root: Rank,
    algorithms: Algorithms<B>,
) -> Result<Bcast<'a, B>, Refusal> {
    let (led, cut) = (nodes.led_by(root)?, Cut::new(buffer.len() as u64, algorithms.segment, 1));
    let parts = Parts { led, buffer, cut, algorithms, tag: me.operation() + 1 };
    Bcast::new(parts, me)
}

impl<'a, B: Leaders<'a, Segment>> Segments for Parts<'a, B> {
    type Inside = Any<'a>;
    type Schedule = Among<'a, B::Plan>;

    fn inside_count(&self) -> u64 {
        self.cut.count()
    }

    fn between_count(&self) -> u64 {
        if self.led.seat().is_some() { self.cut.count() } else { 0 }
    }

    fn inside_needs(&self, index: u64) -> u64 {
        // The root has all of it.
        if self.led.seat().is_some() && !self.led.is_root() { index + 1 } else { 0 }
    }

    fn between_needs(&self, _: u64) -> u64 {
        0
    }

    fn inside(&self, me: &Member, index: u64) -> Result<Self::Inside, Refusal> {
        // SAFETY: `machine`'s contract; where messages write the segment, it is polled only after they have.
        let data = unsafe { data(self.cut.of(self.buffer, index)) }?;
        Call::Bcast { data, root: self.led.inside(), algorithm: self.algorithms.inside }.build(me)
    }

    fn between(&self, index: u64) -> Result<Rounds<Self::Schedule>, Refusal> {
        let plan = self.algorithms.between.plan(&self.led, Segment(self.cut.len(index))).map_err(refusal)?;
        let receive = self.cut.of(self.buffer, index);
        let memory = Memory { send: Memory::NOTHING, receive, scratch: Memory::NOTHING };
        // SAFETY: `machine`'s contract; the node's broadcast only reads what is sent, and reads after what is received.
        unsafe { Rounds::of(self.led.among(plan), memory, self.tag) }
    }
}
