//! Barrier over two levels: all of a node, then messages among leaders, then the leaders let their nodes go.
//!
//! ```text
//! shared memory    A0 A1 A2     B0 B1       all have come
//! messages         A0 ◄──────► B0
//! shared memory    A0 A1 A2     B0 B1       an empty broadcast of the leader's
//! ```

use super::pipe::refusal;
use super::{Between, Nodes, data};
use crate::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use crate::call::Call;
use crate::call::any::Any;
use crate::comm::Member;
use crate::error::Refusal;
use crate::machine::{Operation, Then};
use crate::msg::levels::{self, Way};
use crate::msg::{Memory, barrier};
use crate::table::By;

/// By which algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algorithms {
    /// Among the leaders.
    pub between: By<barrier::Algorithm>,
    /// In each node.
    pub inside: BarrierAlgorithm,
}

/// One process's part.
pub type Barrier<'n> = Then<Any<'n>, Then<Between<'n, Way<barrier::Plan, levels::barrier::Plan<'n>>>, Any<'n>>>;

/// The next two operations of `me`.
///
/// # Errors
/// What the algorithms refuse.
pub fn machine<'n>(me: &mut Member, nodes: Nodes<'n>, algorithms: Algorithms) -> Result<Barrier<'n>, Refusal> {
    let led = nodes.led();
    let come = Call::Barrier { algorithm: algorithms.inside }.build(me)?;
    // SAFETY: no bytes.
    let nothing = unsafe { data(Memory::NOTHING) }?;
    let go = Call::Bcast { data: nothing, root: led.inside(), algorithm: BcastAlgorithm::Auto }.build(me)?;
    let (come, go) = (come.started(me), go.started(me));
    let memory = Memory { send: Memory::NOTHING, receive: Memory::NOTHING, scratch: Memory::NOTHING };
    let plan = led.seat().map(|seat| match algorithms.between {
        Way::Flat(by) => barrier::plan(seat, by).map(Way::Flat),
        Way::Levels(by) => levels::barrier::plan(&led.groups()?, seat.rank(), by).map(Way::Levels).map_err(refusal),
    });
    let plan = plan.transpose()?;
    // SAFETY: no bytes.
    let between = unsafe { led.messages(plan, memory, me.operation()) }?;
    Ok(Then::new(come, Then::new(between, go)))
}
