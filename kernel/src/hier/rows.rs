//! The blocks of all ranks in a row, node by node, those of a node in the order of its ranks.
//!
//! So a node's blocks are one message. Where the user's blocks lie otherwise, who calls copies them.

use super::{Led, Nodes, data, split};
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::buffer::Buf;
use crate::data::datatype::{Data, Datatype};
use crate::error::{Argument, Bound, Condition, Refusal};
use crate::msg::Parts;
use crate::msg::schedule::Area;

/// Pieces of memory: how many bytes each has, and how many bytes from the memory's start it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spans<'a> {
    /// Bytes of each.
    pub lengths: &'a [u64],
    /// Where each begins.
    pub starts: &'a [u64],
}

/// Where blocks lie in the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rows<'a> {
    nodes: Parts<'a>,
    inside: Spans<'a>,
    node: u32,
    /// Do all ranks know all lengths alike?
    known: bool,
}

impl<'a> Rows<'a> {
    /// Lengths that all ranks know alike. `inside` is, for each rank of this process's node, how long its block is and where it
    /// begins among them; `between` the same of the nodes' parts of the row.
    ///
    /// # Errors
    /// Not one per node; the row is too long.
    pub fn new(nodes: &Nodes<'_>, inside: Spans<'a>, between: Spans<'a>) -> Result<Self, Refusal> {
        let lengths = inside.lengths.len() as u64;
        Refusal::check(Argument::Displacements, inside.starts.len() as u64, Bound::Equals(lengths))?;
        let parts = Parts::vary(nodes.count(), between.lengths, between.starts, 1)?;
        Ok(Self { nodes: parts, inside, node: nodes.home().node, known: true })
    }

    /// Lengths of a gatherv or scatterv: only leaders know those `inside` their nodes, and of those `between` only the root
    /// knows all, each other leader its own node's. What a process does not know is 0, or no block. How they come to
    /// know, see [`super::gather`].
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn told(nodes: &Nodes<'_>, inside: Spans<'a>, between: Spans<'a>) -> Result<Self, Refusal> {
        Ok(Self { known: false, ..Self::new(nodes, inside, between)? })
    }

    /// The nodes' parts of the row.
    pub(super) const fn parts(&self) -> Parts<'a> {
        self.nodes
    }

    /// The same, where all ranks know them.
    ///
    /// # Errors
    /// They do not: an algorithm over levels does not apply.
    pub(super) fn known_parts(&self) -> Result<Parts<'a>, Refusal> {
        if self.known { Ok(self.nodes) } else { Err(Refusal::not(Argument::Operation, Condition::Applicable)) }
    }

    /// Bytes of this node's part where it needs working memory: at the leader, but for the root, who has it in the row.
    pub(super) fn aside(&self, led: &Led<'_>) -> u64 {
        if led.seat().is_some() && !led.is_root() { self.part() } else { 0 }
    }

    /// This node's part, in the root's `row` or at the start of `scratch`; the leader's view of its blocks; the rest of
    /// `scratch`.
    ///
    /// # Errors
    /// A buffer is too short.
    ///
    /// # Safety
    /// As [`Data::from_raw`], of both.
    pub(super) unsafe fn held(
        &self,
        led: &Led<'_>,
        me: &Member,
        row: Buf,
        scratch: Buf,
    ) -> Result<(Buf, Option<Blocks<'a>>, Buf), Refusal> {
        let (aside, rest) = split(scratch, self.aside(led))?;
        let part = if led.is_root() { self.part_of(row)? } else { aside };
        let blocks = match led.seat() {
            // SAFETY: the caller's promise.
            Some(_) => Some(unsafe { self.blocks(me, part) }?),
            None => None,
        };
        Ok((part, blocks, rest))
    }

    /// Bytes of the longest node's part.
    pub(super) fn longest_part(&self) -> u64 {
        self.nodes.most()
    }

    /// Bytes of this node's part.
    pub(super) fn part(&self) -> u64 {
        self.nodes.len(self.node)
    }

    /// This node's part of the whole row.
    pub(super) fn part_of(&self, row: Buf) -> Result<Buf, Refusal> {
        let place = self.nodes.place(Area::Receive, self.node);
        let end = place.at.saturating_add(place.len);
        Refusal::check(Argument::Bytes, row.len() as u64, Bound::AtLeast(end))?;
        Ok(Buf::new(row.ptr().wrapping_add(place.at as usize), place.len as usize))
    }

    /// The blocks of this node's ranks in its part.
    ///
    /// # Safety
    /// As [`Data::from_raw`].
    pub(super) unsafe fn blocks(&self, me: &Member, part: Buf) -> Result<Blocks<'a>, Refusal> {
        match self.equal() {
            // SAFETY: the caller's promise.
            Some(len) => unsafe { Blocks::equal(part, me.size(), len, Datatype::BYTE) },
            // SAFETY: the caller's promise.
            None => unsafe { Blocks::vary(part, self.inside.lengths, self.inside.starts, Datatype::BYTE) },
        }
    }

    /// The length of all blocks of this node, if it is one and all know it.
    pub(super) fn equal(&self) -> Option<u64> {
        let first = *self.inside.lengths.first()?;
        (self.known && self.inside.lengths.iter().all(|&len| len == first)).then_some(first)
    }
}

/// `buffer` as bytes, if there is one.
///
/// # Safety
/// As [`Data::from_raw`].
pub(super) unsafe fn optional<'a>(buffer: Option<Buf>) -> Result<Option<Data<'a>>, Refusal> {
    match buffer {
        // SAFETY: the caller's promise.
        Some(buffer) => unsafe { data(buffer) }.map(Some),
        None => Ok(None),
    }
}
