//! Barrier over two levels: all of a node, then messages among leaders, then the leaders let their nodes go.
//!
//! ```text
//! shared memory    A0 A1 A2     B0 B1       all have come
//! messages         A0 ◄──────► B0
//! shared memory    A0 A1 A2     B0 B1       an empty broadcast of the leader's
//! ```

use super::pipe::refusal;
use super::{Between, Leaders, Led, Nodes, data};
use crate::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use crate::call::Call;
use crate::call::any::Any;
use crate::comm::Member;
use crate::error::Refusal;
use crate::machine::{Operation, Then};
use crate::msg::{Memory, PlanError, barrier, levels};

/// By which algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithms<B> {
    /// Among the leaders.
    pub between: B,
    /// In each node.
    pub inside: BarrierAlgorithm,
}

/// One process's part.
pub type Barrier<'n, B> = Then<Any<'n>, Then<Between<'n, <B as Leaders<'n, ()>>::Plan>, Any<'n>>>;

impl<'n> Leaders<'n, ()> for barrier::Algorithm {
    type Plan = barrier::Plan;
    fn plan(self, led: &Led<'n>, (): ()) -> Result<Self::Plan, PlanError> {
        Ok(barrier::plan(led.between()?, self)?)
    }
}

impl<'n> Leaders<'n, ()> for levels::Algorithm {
    type Plan = levels::barrier::Plan<'n>;
    fn plan(self, led: &Led<'n>, (): ()) -> Result<Self::Plan, PlanError> {
        levels::barrier::plan(&led.groups()?, led.between()?.rank(), self)
    }
}

/// The next two operations of `me`.
///
/// # Errors
/// What the algorithms refuse.
pub fn machine<'n, B: Leaders<'n, ()>>(
    me: &mut Member,
    nodes: Nodes<'n>,
    algorithms: Algorithms<B>,
) -> Result<Barrier<'n, B>, Refusal> {
    let led = nodes.led();
    let come = Call::Barrier { algorithm: algorithms.inside }.build(me)?;
    // SAFETY: no bytes.
    let nothing = unsafe { data(Memory::NOTHING) }?;
    let go = Call::Bcast { data: nothing, root: led.inside(), algorithm: BcastAlgorithm::Auto }.build(me)?;
    let (come, go) = (come.started(me), go.started(me));
    let memory = Memory { send: Memory::NOTHING, receive: Memory::NOTHING, scratch: Memory::NOTHING };
    let plan = led.seat().map(|_| algorithms.between.plan(&led, ())).transpose().map_err(refusal)?;
    // SAFETY: no bytes.
    let between = unsafe { led.messages(plan, memory, me.operation()) }?;
    Ok(Then::new(come, Then::new(between, go)))
}
