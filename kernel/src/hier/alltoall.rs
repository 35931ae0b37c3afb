//! Alltoall of short blocks over two levels: each rank's blocks to its leader, all blocks between two nodes as one message,
//! and back. Each block is copied six times; for long ones [`super::alltoallv`] is better.
//!
//! ```text
//! shared memory    A0 A1 A2     B0 B1       each leader has a vector of blocks from each rank of its node
//! messages         A0 ◄──────► B0           for each node, its ranks' blocks
//! shared memory    A0 A1 A2     B0 B1       each rank has its vector of blocks from all
//! ```
//! Vectors are in the order of [`super::Rows`]: node by node, those of a node in the order of its ranks. Over switches, where
//! all nodes have as many ranks, the leaders of a switch's nodes send what they have for other switches together.

use super::{Between, BySwitch, Led, Nodes, Spans, data, split};
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::buffer::Buf;
use crate::data::datatype::Datatype;
use crate::error::{Argument, Bound, Condition, Refusal};
use crate::machine::{Operation, Then};
use crate::msg::alltoall::direct::Direct;
use crate::msg::levels::{self, Stage, Way};
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Sequence, Work};
use crate::msg::{Memory, Parts, PlanError};
use crate::pattern::Seat;
use crate::shm::engine::exchange::Exchange;
use crate::shm::gather::exchange::Gather;
use crate::shm::scatter::{Scatter, scatter};

/// One process's part.
pub type Alltoall<'a> = Then<Exchange<Gather<'a>>, Then<Between<'a, Turned<'a>>, Scatter<'a>>>;

/// What one process does, before it has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan<'a> {
    led: Led<'a>,
    between: Option<Turned<'a>>,
    /// Bytes of a vector, and of those of all ranks of this node.
    vector: u64,
    all: u64,
}

/// Bytes that a node has for a rank elsewhere from which ranks send themselves.
const LONG: u64 = 1 << 11;

/// Do blocks of `bytes` bytes go through leaders, where nothing else is said? `most`: ranks of the largest node.
pub const fn through_leaders(bytes: u64, most: u32) -> bool {
    most > 1 && bytes <= LONG / most as u64
}

/// Has every node as many ranks? `ranks` as for [`plan`].
pub(super) fn are_alike(ranks: Spans<'_>) -> bool {
    ranks.lengths.iter().all(|count| Some(count) == ranks.lengths.first())
}

/// The part of a process in an alltoall of blocks of `block` bytes. `ranks` says, for each node, how many ranks it has, and how
/// many are on the nodes before it.
///
/// # Errors
/// Not one per node; the blocks are too long; over switches, nodes have more or fewer ranks than others.
pub fn plan<'a>(nodes: Nodes<'a>, ranks: Spans<'a>, block: u64, over: BySwitch<'a>) -> Result<Plan<'a>, PlanError> {
    let (led, size) = (nodes.led(), nodes.size());
    let vector = Parts::equal(size, block)?.total();
    let inside = ranks.lengths.get(nodes.home().node as usize).copied().unwrap_or(0);
    let turn = |packs| Turn { ranks, size: size.into(), inside, block, packs };
    let all = turn(true).all();
    let part = |seat: Seat| -> Result<Turned<'a>, PlanError> {
        Parts::equal(size, vector)?;
        let parts = Parts::vary(nodes.count(), ranks.lengths, ranks.starts, inside * block)?;
        let between = match over {
            None => Way::Flat(Direct::new(seat, Some(parts), parts, false)?),
            Some(_) if !are_alike(ranks) => return Err(Refusal::not(Argument::Operation, Condition::Applicable).into()),
            Some(line) => Way::Levels(levels::alltoall::plan_behind(line, seat.rank(), inside * inside * block, all)?),
        };
        Ok(Sequence::new(turn(true), Sequence::new(between, turn(false))))
    };
    Ok(Plan { led, between: led.seat().map(part).transpose()?, vector, all })
}

impl<'a> Plan<'a> {
    /// Bytes of working memory.
    pub fn scratch(&self) -> u64 {
        self.between.map_or(0, |between| 2 * self.all + between.bytes().scratch)
    }

    /// The next two operations of `me`: `send` is its vector of blocks for all ranks, `receive` that from all; they may be the
    /// same.
    ///
    /// # Errors
    /// A buffer is too short.
    ///
    /// # Safety
    /// `send` is readable, `receive` and `scratch` are writable, all exclusive during `'a`, apart unless said otherwise, and
    /// outlive the message layer's use of them.
    pub unsafe fn machine(
        self,
        me: &mut Member,
        send: Buf,
        receive: Buf,
        scratch: Buf,
    ) -> Result<Alltoall<'a>, Refusal> {
        for side in [send, receive] {
            Refusal::check(Argument::Bytes, side.len() as u64, Bound::Equals(self.vector))?;
        }
        let all = self.between.map_or(0, |_| self.all);
        let (leaves, rest) = split(scratch, all)?;
        let (arrives, rest) = split(rest, all)?;
        let (vectors, _) = split(rest, all)?;
        let held = match self.between {
            // SAFETY: the caller's promise.
            Some(_) => Some(unsafe { Blocks::equal(vectors, me.size(), self.vector, Datatype::BYTE) }?),
            None => None,
        };
        // SAFETY: the caller's promise.
        let from = unsafe { data(send) }?;
        // SAFETY: the caller's promise.
        let to = unsafe { data(receive) }?;
        let up = Gather::equal(me, Some(from), held, self.led.inside())?;
        let down = scatter(me, held, Some(to), self.led.inside())?;
        let (up, down) = (up.started(me), down.started(me));
        let memory = Memory { send: leaves, receive: arrives, scratch: rest };
        // SAFETY: the caller's promise; polled only after the vectors are there, and before they are handed out.
        let between = unsafe { self.led.messages(self.between, memory, me.operation()) }?;
        Ok(Then::new(up, Then::new(between, down)))
    }
}

/// What leaders do: vectors from the ranks of a node become vectors for them.
pub type Turned<'a> =
    Sequence<Turn<'a>, Sequence<Way<Direct<'a>, Stage<'a, levels::alltoall::Alltoall<'a>>>, Turn<'a>>>;

/// Copies blocks from the vectors of a node's ranks to where they leave, or from where they arrive into these vectors. What leaves
/// lies by node, rank here, rank there; what arrives by node, rank there, rank here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Turn<'a> {
    /// Of each node: how many ranks it has, and how many are on the nodes before it.
    ranks: Spans<'a>,
    size: u64,
    /// Ranks of this node.
    inside: u64,
    block: u64,
    packs: bool,
}

impl Turn<'_> {
    /// Bytes of the vectors of this node's ranks.
    const fn all(&self) -> u64 {
        self.inside * self.size * self.block
    }

    /// So many blocks.
    const fn place(&self, area: Area, first: u64, count: u64) -> Place {
        Place::new(area, first * self.block, count * self.block)
    }

    /// What the rank here of this number has for the ranks of a node; by rank here and node.
    fn pack(&self, index: u64) -> Option<Work> {
        let nodes = self.ranks.lengths.len() as u64;
        let (mine, node) = (index / nodes, (index % nodes) as usize);
        let (start, there) = (*self.ranks.starts.get(node)?, *self.ranks.lengths.get(node)?);
        (mine < self.inside).then(|| Work::Copy {
            from: self.place(Area::Scratch, mine * self.size + start, there),
            to: self.place(Area::Send, start * self.inside + mine * there, there),
        })
    }

    /// What a rank anywhere has for a rank here; by rank here and place in the vector.
    fn unpack(&self, index: u64) -> Option<Work> {
        let (mine, other) = (index / self.size, index % self.size);
        (mine < self.inside).then(|| Work::Copy {
            from: self.place(Area::Receive, other * self.inside + mine, 1),
            to: self.place(Area::Scratch, mine * self.size + other, 1),
        })
    }
}

impl Schedule for Turn<'_> {
    fn rounds(&self) -> u64 {
        1
    }

    fn send(&self, _: u64, _: u32) -> Option<Message> {
        None
    }

    fn receive(&self, _: u64, _: u32) -> Option<Message> {
        None
    }

    fn work(&self, _: u64, moment: Moment, index: u32) -> Option<Work> {
        match moment {
            Moment::After if self.packs => self.pack(index.into()),
            Moment::After => self.unpack(index.into()),
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let all = self.all();
        let (send, receive) = if self.packs { (all, 0) } else { (0, all) };
        Bytes { send, receive, scratch: all }
    }
}
