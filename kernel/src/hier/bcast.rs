//! Broadcast over two levels: messages from the root to the nodes' leaders, then shared memory inside each node.
//!
//! ```text
//! messages         root ──► leader B        the root leads its own node
//! shared memory    A0 A1 A2     B0 B1
//! ```

use super::pipe::{self, Cut, Segments, refusal};
use super::{Among, Led, Nodes, data};
use crate::Rank;
use crate::algorithm::BcastAlgorithm;
use crate::call::Call;
use crate::call::any::Any;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::Refusal;
use crate::msg::levels::{self, Way};
use crate::msg::{Memory, Rounds, bcast};
use crate::table::By;

/// By which algorithms, in which segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithms {
    /// Among the leaders.
    pub between: By<bcast::Algorithm>,
    /// In each node.
    pub inside: BcastAlgorithm,
    /// Bytes of a segment.
    pub segment: u64,
}

/// One process's part.
pub type Bcast<'a> = pipe::Pipelined<Parts<'a>>;

/// What its segments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts<'a> {
    led: Led<'a>,
    buffer: Buf,
    cut: Cut,
    algorithms: Algorithms,
    tag: u64,
}

/// The next operations of `me`: `buffer` goes from rank `root` to everyone, in segments of `algorithms.segment` bytes.
///
/// # Errors
/// `root` is no rank; what the algorithms refuse.
///
/// # Safety
/// `buffer` is readable at the root, writable elsewhere, exclusive during `'a`, and outlives the message layer's use of it.
pub unsafe fn machine<'a>(
    me: &Member,
    nodes: Nodes<'a>,
    buffer: Buf,
    root: Rank,
    algorithms: Algorithms,
) -> Result<Bcast<'a>, Refusal> {
    let (led, cut) = (nodes.led_by(root)?, Cut::new(buffer.len() as u64, algorithms.segment, 1));
    let parts = Parts { led, buffer, cut, algorithms, tag: me.operation() + 1 };
    Bcast::new(parts, me)
}

impl<'a> Segments for Parts<'a> {
    type Inside = Any<'a>;
    type Schedule = Among<'a, Way<bcast::Plan, levels::bcast::Plan<'a>>>;

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
        let (seat, bytes, root) = (self.led.between()?, self.cut.len(index), self.led.node());
        let plan = match self.algorithms.between {
            Way::Flat(by) => Way::Flat(bcast::plan(seat, bytes, root, by)?),
            Way::Levels(by) => {
                let plan = levels::bcast::plan(&self.led.groups()?, seat.rank(), bytes, root, by);
                Way::Levels(plan.map_err(refusal)?)
            }
        };
        let receive = self.cut.of(self.buffer, index);
        let memory = Memory { send: Memory::NOTHING, receive, scratch: Memory::NOTHING };
        // SAFETY: `machine`'s contract; the node's broadcast only reads what is sent, and reads after what is received.
        unsafe { Rounds::of(self.led.among(plan), memory, self.tag) }
    }
}
