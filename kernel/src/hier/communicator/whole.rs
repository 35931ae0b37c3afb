//! The collectives that have no blocks: barrier, broadcast, reduce, allreduce, scan.

use super::{End, Host, Runner};
use crate::Rank;
use crate::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::{Argument, Bound, Refusal};
use crate::hier::{Leaders, SEGMENT, allreduce, barrier, bcast, reduce, scan};
use crate::msg::Memory;
use crate::msg::levels::Way;
use crate::op::Op;

impl<H: Host> Runner<'_, H> {
    pub(super) async fn barrier(self) -> Result<(), End> {
        match self.engine.by(self.algorithms.barrier()) {
            Way::Flat(by) => self.barrier_by(by).await,
            Way::Levels(by) => self.barrier_by(by).await,
        }
    }

    /// # Safety
    /// As [`super::Communicator::start`]: here, and of all below.
    pub(super) async unsafe fn bcast(self, buffer: Buf, root: Rank) -> Result<(), End> {
        match self.engine.by(self.algorithms.bcast(buffer.len() as u64)) {
            // SAFETY: the caller's promise.
            Way::Flat(by) => unsafe { self.bcast_by(buffer, root, by) }.await,
            // SAFETY: as above.
            Way::Levels(by) => unsafe { self.bcast_by(buffer, root, by) }.await,
        }
    }

    pub(super) async unsafe fn reduce(self, send: Buf, receive: Buf, op: Op, root: Rank) -> Result<(), End> {
        match self.engine.by(self.algorithms.reduce(send.len() as u64, op.commutative())) {
            // SAFETY: the caller's promise.
            Way::Flat(by) => unsafe { self.reduce_by(send, receive, op, root, by) }.await,
            // SAFETY: as above.
            Way::Levels(by) => unsafe { self.reduce_by(send, receive, op, root, by) }.await,
        }
    }

    pub(super) async unsafe fn allreduce(self, send: Buf, receive: Buf, op: Op) -> Result<(), End> {
        match self.engine.by(self.algorithms.allreduce(send.len() as u64, op.commutative())) {
            // SAFETY: the caller's promise.
            Way::Flat(by) => unsafe { self.allreduce_by(send, receive, op, by) }.await,
            // SAFETY: as above.
            Way::Levels(by) => unsafe { self.allreduce_by(send, receive, op, by) }.await,
        }
    }

    pub(super) async unsafe fn scan(self, send: Option<Buf>, receive: Buf, op: Op, exclusive: bool) -> Result<(), End> {
        let Self { engine, placement, .. } = self;
        let bytes = receive.len() as u64;
        let operand = send.unwrap_or(receive);
        Refusal::check(Argument::Bytes, operand.len() as u64, Bound::Equals(bytes))?;
        let plan = scan::plan(placement.nodes, bytes, op, send.is_none(), exclusive)?;
        let memory = |scratch| Memory { send: send.unwrap_or(Memory::NOTHING), receive, scratch };
        // SAFETY: the caller's promise.
        let machine = |me: &mut Member, scratch| unsafe { plan.machine(me, memory(scratch)) };
        engine.run(plan.scratch(), machine).await.map(drop)
    }
}

/// With the leaders' algorithm of a call: one machine for those among all leaders alike, and one for those over levels.
///
/// # Safety
/// As [`super::Communicator::start`].
impl<'c, H: Host> Runner<'c, H> {
    async fn barrier_by<B: Leaders<'c, ()>>(self, between: B) -> Result<(), End> {
        let Self { engine, placement, .. } = self;
        let by = barrier::Algorithms { between, inside: BarrierAlgorithm::Auto };
        engine.run(0, |me, _| barrier::machine(me, placement.nodes, by)).await.map(drop)
    }

    async unsafe fn bcast_by<B>(self, buffer: Buf, root: Rank, between: B) -> Result<(), End>
    where
        B: Leaders<'c, bcast::Segment>,
    {
        let Self { engine, placement, .. } = self;
        let by = bcast::Algorithms { between, inside: BcastAlgorithm::Auto, segment: SEGMENT };
        // SAFETY: the caller's promise.
        engine.run(0, |me, _| unsafe { bcast::machine(me, placement.nodes, buffer, root, by) }).await.map(drop)
    }

    async unsafe fn reduce_by<B>(self, send: Buf, receive: Buf, op: Op, root: Rank, between: B) -> Result<(), End>
    where
        B: Leaders<'c, reduce::Segment>,
    {
        let Self { engine, placement, .. } = self;
        let by = reduce::Algorithms { between, segment: SEGMENT };
        let plan = reduce::plan(placement.nodes, send.len() as u64, op, root, by)?;
        // SAFETY: the caller's promise.
        let machine = |me: &mut Member, scratch| unsafe { plan.machine(me, send, receive, scratch) };
        engine.run(plan.scratch(), machine).await.map(drop)
    }

    async unsafe fn allreduce_by<B>(self, send: Buf, receive: Buf, op: Op, between: B) -> Result<(), End>
    where
        B: Leaders<'c, allreduce::Segment>,
    {
        let Self { engine, placement, .. } = self;
        let by = allreduce::Algorithms { between, segment: SEGMENT };
        let plan = allreduce::plan(placement.nodes, send.len() as u64, op, by)?;
        // SAFETY: the caller's promise.
        let machine = |me: &mut Member, scratch| unsafe { plan.machine(me, send, receive, scratch) };
        engine.run(plan.scratch(), machine).await.map(drop)
    }
}
