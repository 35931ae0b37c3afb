//! Compositions over levels: shared memory inside a node, messages between nodes.
//!
//! ```text
//! nodes' leaders           A0 ◄──────► B1 ◄──────► C0        messages: a schedule of `msg`, among them
//! shared memory      A0 A1 A2      B0 B1         C0          a machine of `shm` in each node
//! ```
//! A node is led by its first rank; in an operation with a root, the root's node by the root. Nodes are numbered by their
//! first ranks; ranks may lie among them in any way. Each collective's `plan` says what memory this process needs;
//! its `machine` takes the numbers of the node's operations, so all ranks make the same ones in the same order. [`alltoallv`] and
//! [`scan`] have no leaders: ranks send each other messages.
//!
//! [`Communicator`] runs them all: what is called on, for a host that brings a segment, messages and a way of waiting ([`Host`]).

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod alltoallv;
pub mod barrier;
pub mod bcast;
mod communicator;
pub mod gather;
mod nodes;
pub mod pipe;
mod places;
pub mod reduce;
pub mod reduce_scatter;
mod rows;
pub mod scan;
pub mod scatter;

pub use communicator::{Call, Communicator, Host, Lengths, Scratch, Side};
pub use nodes::{Among, Home, Led, Nodes, Ordered, Switches};
pub use pipe::SEGMENT;
pub use places::{Lists, NUMBERS, Places};
pub use rows::{Rows, Spans};

use crate::Rank;
use crate::comm::{Comm, Member};
use crate::data::buffer::Buf;
use crate::data::datatype::{Data, Datatype};
use crate::error::{Argument, Bound, Poison, Refusal, WaitError};
use crate::machine::p2p::P2p;
use crate::machine::poll::{Source, WaitSet};
use crate::machine::transport::{Messages, Observe, Shared};
use crate::msg::levels::{Line, Way};
use crate::msg::{Needs, PlanError, Rounds, Schedule};
use crate::region::Region;

/// The nodes in an order in which those of a switch follow one another, where an operation's messages go over switches.
pub type BySwitch<'a> = Option<Line<'a>>;

/// Messages between nodes: only leaders take part.
pub type Between<'n, S> = Option<Rounds<Among<'n, S>>>;

/// By which algorithm the leaders run a collective with arguments `C`: among all of them alike, or over levels. Each has a
/// schedule of a type of its own: those over levels are larger, and machines are copied when they are made.
pub trait Leaders<'n, C>: Copy {
    /// A leader's schedule.
    type Plan: Schedule;
    /// A leader's schedule.
    ///
    /// # Errors
    /// The process is no leader; what the algorithm refuses.
    fn plan(self, led: &Led<'n>, call: C) -> Result<Self::Plan, PlanError>;
    /// The error of an algorithm that does not apply, since it needs this.
    fn needs(self, needs: Needs) -> PlanError {
        PlanError::OverLevels(needs)
    }
    /// Does the algorithm apply? Every rank asks, not the leaders alone.
    ///
    /// # Errors
    /// It does not.
    fn applicable(self, _call: &C) -> Result<(), PlanError> {
        Ok(())
    }
}

/// Either, as a table says: with a schedule that has room for both.
impl<'n, C, F: Leaders<'n, C>, L: Leaders<'n, C>> Leaders<'n, C> for Way<F, L> {
    type Plan = Way<F::Plan, L::Plan>;
    fn plan(self, led: &Led<'n>, call: C) -> Result<Self::Plan, PlanError> {
        Ok(match self {
            Self::Flat(by) => Way::Flat(by.plan(led, call)?),
            Self::Levels(by) => Way::Levels(by.plan(led, call)?),
        })
    }
    fn needs(self, needs: Needs) -> PlanError {
        match self {
            Self::Flat(by) => by.needs(needs),
            Self::Levels(by) => by.needs(needs),
        }
    }
    fn applicable(self, call: &C) -> Result<(), PlanError> {
        match self {
            Self::Flat(by) => by.applicable(call),
            Self::Levels(by) => by.applicable(call),
        }
    }
}

/// A context with both levels.
///
/// Its poison names a rank of this node, or, from the node's number of ranks on, rank 0 and so on of all.
#[derive(Debug)]
pub struct Levels<R, P> {
    /// The node's segment.
    pub comm: Comm<R>,
    /// Messages among all ranks.
    pub messages: P,
}

impl<R: Region, P: P2p> Levels<R, P> {
    /// Takes one piece of news from another process, if there is any, and poisons the segment for it. Returns the poison that
    /// counts.
    fn hear(&mut self) -> Option<Poison> {
        let told = self.messages.news()?;
        let rank = self.comm.member().size().saturating_add(told.rank);
        Some(self.comm.poison_with(Poison { rank, ..told }))
    }
}

impl<R: Region, P> Shared for Levels<R, P> {
    type Region = R;
    #[inline]
    fn shared(&mut self) -> (&R, &mut Member) {
        self.comm.shared()
    }
}

impl<R, P: P2p> Messages for Levels<R, P> {
    type P2p = P;
    #[inline]
    fn messages(&mut self) -> &mut P {
        &mut self.messages
    }
}

impl<R: Region, P: P2p> Observe for Levels<R, P> {
    fn ready(&mut self, on: &WaitSet) -> bool {
        on.iter().any(|event| match event.source {
            Source::Message(slot) => self.messages.has_ended(slot),
            _ => self.comm.ready(&WaitSet::one(*event)),
        })
    }

    fn idle(&mut self) {
        self.comm.idle();
    }

    fn poison(&self) -> Option<Poison> {
        self.comm.poison()
    }

    fn compare(&mut self) -> Result<(), WaitError> {
        match self.hear() {
            Some(poison) => Err(WaitError::Poisoned(poison)),
            None => self.comm.compare(),
        }
    }

    fn late(&self, peer: Option<Rank>) -> Rank {
        peer.unwrap_or_else(|| self.comm.late(None))
    }
}

/// `buffer` as bytes.
///
/// # Safety
/// As [`Data::from_raw`].
unsafe fn data<'a>(buffer: Buf) -> Result<Data<'a>, Refusal> {
    // SAFETY: the caller's promise.
    unsafe { Data::from_raw(buffer, buffer.len() as u64, Datatype::BYTE) }
}

/// The first `len` bytes of working memory, and the rest.
///
/// # Errors
/// There are fewer.
fn split(scratch: Buf, len: u64) -> Result<(Buf, Buf), Refusal> {
    scratch.split(len).ok_or(Refusal::new(Argument::Scratch, scratch.len() as u64, Bound::AtLeast(len)))
}
