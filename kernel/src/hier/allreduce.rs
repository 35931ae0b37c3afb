//! Allreduce over two levels: shared memory to each node's leader, messages among leaders, shared memory back.
//!
//! ```text
//! shared memory    A0 A1 A2     B0 B1       each leader has its node's fold where its result goes
//! messages         A0 ◄──────► B0           in place
//! shared memory    A0 A1 A2     B0 B1       a broadcast of the leader's: all ranks have the same bits
//! ```
//! An operation that does not commute needs nodes whose ranks follow one another.

use super::{Between, Led, Nodes, data};
use crate::buffer::Buf;
use crate::comm::Member;
use crate::error::Refusal;
use crate::machine::Then;
use crate::msg::{Memory, Needs, PlanError, Rounds, Schedule, allreduce};
use crate::op::Op;
use crate::select::{self, BcastAlgorithm};
use crate::shm::exchange::Exchange;
use crate::shm::reduce::exchange;

/// One process's part.
pub type Allreduce<'a> = Then<Exchange<exchange::Reduce<'a>>, Then<Between<'a, allreduce::Plan>, select::Bcast<'a>>>;

/// What one process does, before it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan<'n> {
    led: Led<'n>,
    between: Option<allreduce::Plan>,
    op: Op,
}

/// Bytes from which operands are cut into slices.
const LONG: u64 = 1 << 14;

/// How operands go between so many nodes, where nothing else is said.
pub const fn between(bytes: u64, nodes: u32) -> allreduce::Algorithm {
    if bytes >= LONG && nodes > 2 { allreduce::Algorithm::Rabenseifner } else { allreduce::Algorithm::Doubling }
}

/// The part of a process in a reduction of `bytes` bytes to all.
///
/// # Errors
/// The operand is no whole number of elements; the algorithm does not apply; the operation does not commute and ranks lie
/// across nodes.
pub fn plan<'n>(nodes: Nodes<'n>, bytes: u64, op: Op, algorithm: allreduce::Algorithm) -> Result<Plan<'n>, PlanError> {
    // Every rank says so, not the leaders alone.
    let ordered = if op.commutative() || nodes.in_order() { Ok(()) } else { Err(Needs::Commutative) };
    let needs = |needs| PlanError::Inapplicable { algorithm: algorithm.into(), needs };
    ordered.and(algorithm.applicable(&op)).map_err(needs)?;
    let led = nodes.led();
    op.count(bytes)?;
    let part = |seat| allreduce::plan(seat, bytes, op, true, algorithm);
    Ok(Plan { led, between: led.seat().map(part).transpose()?, op })
}

impl<'n> Plan<'n> {
    /// Bytes of working memory.
    pub fn scratch(&self) -> u64 {
        self.between.map_or(0, |plan| plan.bytes().scratch)
    }

    /// The next two operations of `me`. In place: `send` is `receive`.
    ///
    /// # Errors
    /// A buffer is too short.
    ///
    /// # Safety
    /// `send` is readable, `receive` and `scratch` are writable, all exclusive during `'a`, apart unless in place, and
    /// outlive the message layer's use of them. A user's operation is as it promised.
    pub unsafe fn machine<'a>(
        self,
        me: &mut Member,
        send: Buf,
        receive: Buf,
        scratch: Buf,
    ) -> Result<Allreduce<'a>, Refusal>
    where
        'n: 'a,
    {
        // SAFETY: the caller's promise.
        let operand = unsafe { data(send) }?;
        // SAFETY: the caller's promise.
        let result = unsafe { data(receive) }?;
        let inside = exchange::Reduce::to_root(me, operand, Some(result), self.op, self.led.inside())?;
        let back = select::Bcast::new(me, result, self.led.inside(), BcastAlgorithm::Auto)?;
        let memory = Memory { send: Memory::NOTHING, receive, scratch };
        let between = match self.between {
            // SAFETY: the caller's promise; polled only after the node's fold is there, and before it is broadcast.
            Some(plan) => Some(unsafe { Rounds::of(self.led.among(plan), memory, me.operation()) }?),
            None => None,
        };
        Ok(Then::new(inside, Then::new(between, back)))
    }
}
