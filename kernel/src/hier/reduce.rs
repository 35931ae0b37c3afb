//! Reduce over two levels: shared memory to each node's leader, then messages to the root.
//!
//! ```text
//! shared memory    A0 A1 A2     B0 B1       each leader has its node's fold: the root in its result, others in working memory
//! messages         root ◄── leader B
//! ```
//! An operation that does not commute needs nodes whose ranks follow one another.

use super::{Between, Led, Nodes, data};
use crate::Rank;
use crate::buffer::Buf;
use crate::comm::Member;
use crate::error::Refusal;
use crate::machine::Then;
use crate::msg::{Memory, Needs, PlanError, Rounds, Schedule, reduce};
use crate::op::Op;
use crate::shm::exchange::Exchange;
use crate::shm::reduce::exchange;

/// One process's part.
pub type Reduce<'a> = Then<Exchange<exchange::Reduce<'a>>, Between<'a, reduce::Plan>>;

/// What one process does, before it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan<'n> {
    led: Led<'n>,
    between: Option<reduce::Plan>,
    bytes: u64,
    op: Op,
}

/// Bytes from which operands are cut into slices.
const LONG: u64 = 1 << 16;

/// How operands go between so many nodes, where nothing else is said.
pub const fn between(bytes: u64, nodes: u32) -> reduce::Algorithm {
    if bytes >= LONG && nodes > 2 { reduce::Algorithm::ScatterGather } else { reduce::Algorithm::Knomial(2) }
}

/// The part of a process in a reduction of `bytes` bytes to `root`.
///
/// # Errors
/// `root` is no rank; the operand is no whole number of elements; the operation does not commute and ranks lie across nodes.
pub fn plan<'n>(
    nodes: Nodes<'n>,
    bytes: u64,
    op: Op,
    root: Rank,
    algorithm: reduce::Algorithm,
) -> Result<Plan<'n>, PlanError> {
    if !op.commutative() && !nodes.in_order() {
        return Err(PlanError::Inapplicable { algorithm: algorithm.into(), needs: Needs::Commutative });
    }
    let led = nodes.led_by(root)?;
    op.count(bytes)?;
    // Every leader's operand is its node's fold; the root's lies where its result goes.
    let part = |seat| reduce::plan(seat, bytes, op, led.node(), true, algorithm);
    Ok(Plan { led, between: led.seat().map(part).transpose()?, bytes, op })
}

impl<'n> Plan<'n> {
    /// Bytes of the fold of a leader that is not the root: the first of its working memory.
    fn partial(&self) -> u64 {
        if self.between.is_some() && !self.led.is_root() { self.bytes } else { 0 }
    }

    /// Bytes of working memory.
    pub fn scratch(&self) -> u64 {
        self.partial() + self.between.map_or(0, |plan| plan.bytes().scratch)
    }

    /// The next operation of `me`. In place at the root: `send` is `receive`. Others leave out `receive`.
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
    ) -> Result<Reduce<'a>, Refusal>
    where
        'n: 'a,
    {
        let (partial, rest) = super::split(scratch, self.partial())?;
        let target = if self.led.is_root() { receive } else { partial };
        // SAFETY: the caller's promise.
        let operand = unsafe { data(send) }?;
        // SAFETY: the caller's promise.
        let folded = if self.between.is_some() { Some(unsafe { data(target) }?) } else { None };
        let inside = exchange::Reduce::to_root(me, operand, folded, self.op, self.led.inside())?;
        let (send, receive) = if self.led.is_root() { (Memory::NOTHING, target) } else { (target, Memory::NOTHING) };
        let memory = Memory { send, receive, scratch: rest };
        let between = match self.between {
            // SAFETY: the caller's promise; polled only after the fold is there.
            Some(plan) => Some(unsafe { Rounds::of(self.led.among(plan), memory, me.operation()) }?),
            None => None,
        };
        Ok(Then::new(inside, between))
    }
}
