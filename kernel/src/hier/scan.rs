//! Scan and exscan over nodes: messages from rank to rank, since ranks may lie among nodes in any way.
//!
//! ```text
//! shared memory    A0 ► A1 ► A2     B0 ► B1      no bytes: ranks of a node that call something else are noticed
//! messages         A0 ► A1 ► B0 ► A2 ► B1        by doubling: each rank with those 1, 2, 4 … before and behind it
//! ```

use super::{Nodes, data};
use crate::algorithm::ScanAlgorithm;
use crate::call::Call;
use crate::call::any::Any;
use crate::comm::Member;
use crate::error::Refusal;
use crate::machine::{Operation, Then};
use crate::msg::scan::doubling::Doubling;
use crate::msg::schedule::Schedule;
use crate::msg::{Memory, Rounds};
use crate::op::Op;
use crate::pattern::Seat;

/// One process's part.
pub type Scan<'a> = Then<Any<'a>, Rounds<Doubling>>;

/// What one process does, before it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    schedule: Doubling,
    exclusive: bool,
    op: Op,
}

/// The part of a process in a scan of `bytes` bytes, or in an exscan if `exclusive`.
///
/// # Errors
/// The operand is no whole number of elements.
pub fn plan(nodes: Nodes<'_>, bytes: u64, op: Op, in_place: bool, exclusive: bool) -> Result<Plan, Refusal> {
    let seat = Seat::new(nodes.me(), nodes.size())?;
    Ok(Plan { schedule: Doubling::new(seat, bytes, op, in_place, exclusive)?, exclusive, op })
}

impl Plan {
    /// Bytes of working memory.
    pub fn scratch(&self) -> u64 {
        self.schedule.bytes().scratch
    }

    /// The next operation of `me`, in `memory`.
    ///
    /// # Errors
    /// A buffer is too short.
    ///
    /// # Safety
    /// As [`Rounds::of`], during `'a`.
    pub unsafe fn machine<'a>(self, me: &mut Member, memory: Memory) -> Result<Scan<'a>, Refusal> {
        // SAFETY: no bytes.
        let nothing = unsafe { data(Memory::NOTHING) }?;
        let call = match self.exclusive {
            true => Call::Exscan { send: nothing, receive: nothing, op: self.op, algorithm: ScanAlgorithm::Auto },
            false => Call::Scan { send: nothing, receive: nothing, op: self.op, algorithm: ScanAlgorithm::Auto },
        };
        let inside = call.build(me)?.started(me);
        // SAFETY: the caller's promise; no other operation has this number.
        Ok(Then::new(inside, unsafe { Rounds::of(self.schedule, memory, me.operation()) }?))
    }
}
