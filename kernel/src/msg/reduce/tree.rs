//! Reduce along a tree, in segments: a process folds its children's results into its operand, in rank order, and
//! sends the result on while the next segment arrives.
//!
//! Subtrees follow one another in vertex order, so that x₀ ∘ x₁ ∘ … keeps its order if vertices are ranks. Operations
//! that don't commute therefore go to rank 0, and from there to the root. Each fold's result lies where its right
//! operand arrived, so nothing is copied: results alternate between two places, the last of which is the root's result
//! area.

use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use crate::msg::parts::{Segments, check_operand};
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::op::Op;
use crate::pattern::Seat;
use crate::pattern::tree::{Branches, Position, Tree};

/// One process's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tributary<T = Position> {
    position: T,
    children: u32,
    bytes: u64,
    segments: Segments,
    op: Op,
    in_place: bool,
    role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::msg) enum Role {
    /// The tree ends here, and so does the reduction.
    Root,
    /// The tree ends here; the root is another one.
    Hub { root: Rank },
    /// The root is told by the process at which the tree ends, if it is another one.
    Vertex { told_by: Option<Rank> },
}

impl Tributary {
    /// Everyone's `bytes` bytes are folded into `root`'s result area, along `tree`, in segments of `segment` bytes.
    ///
    /// # Errors
    /// `root` is no rank, the tree has no such arity, a segment has no bytes, the operand is no whole number of
    /// elements.
    pub fn new(seat: Seat, bytes: u64, op: Op, root: Rank, in_place: bool, shape: Shape) -> Result<Self, Refusal> {
        seat.check_root(root)?;
        let (tree, segment) = shape.parameters();
        let (rank, hub) = (seat.rank(), hub(&op, root));
        let position = tree.check()?.position(rank, hub, seat.size());
        // In place is the root's affair.
        Self::along(position, Role::of(rank, hub, root), bytes, op, in_place && rank == root, segment)
    }
}

/// Where the tree of a reduction to `root` ends.
pub(in crate::msg) const fn hub(op: &Op, root: Rank) -> Rank {
    if op.commutative() { root } else { 0 }
}

impl Role {
    /// Of `rank`, where the tree ends at `hub`.
    pub(in crate::msg) fn of(rank: Rank, hub: Rank, root: Rank) -> Self {
        match rank {
            rank if rank == hub && hub == root => Self::Root,
            rank if rank == hub => Self::Hub { root },
            rank => Self::Vertex { told_by: (rank == root).then_some(hub) },
        }
    }
}

impl<T: Branches> Tributary<T> {
    /// The same along any tree. In place the own operand is in the result area, at others than the root too.
    pub(in crate::msg) fn along(
        position: T,
        role: Role,
        bytes: u64,
        op: Op,
        in_place: bool,
        segment: u64,
    ) -> Result<Self, Refusal> {
        check_operand(bytes, &op)?;
        Refusal::check(Argument::Fragment, segment, Bound::AtLeast(1))?;
        let (children, segments) = (position.count(), Segments::new(bytes, segment, op.element()));
        Ok(Self { position, children, bytes, segments, op, in_place, role })
    }

    /// Where the fold of the own operand and so many children's results lies.
    fn folded(&self, children: u32) -> Area {
        let own = if self.in_place { Area::Receive } else { Area::Send };
        if children == 0 { own } else { Area::Scratch }
    }

    /// A segment of it.
    fn place(&self, children: u32, segment: u64) -> Option<Place> {
        let area = self.folded(children);
        if area != Area::Scratch {
            return self.segments.place(area, segment);
        }
        let back = (self.children - children) % 2;
        let place = self.segments.place(Area::Scratch, segment)?;
        Some(match (self.role, back) {
            (Role::Root, _) if back == u32::from(self.detours()) => Place { area: Area::Receive, ..place },
            (Role::Root, _) => place,
            _ => place.moved(Area::Scratch, u64::from(back) * self.bytes),
        })
    }

    /// In place, the first child's result must not arrive on the own operand.
    fn detours(&self) -> bool {
        self.role == Role::Root && self.in_place && self.children % 2 == 1
    }

    /// Rounds of one segment: one per child, or one.
    fn per_segment(&self) -> u64 {
        u64::from(self.children.max(1))
    }

    /// What is sent up a round after it is complete, or at once where there are no children.
    fn behind(&self) -> u64 {
        if self.children == 0 { 0 } else { self.per_segment() }
    }

    /// Rounds of the tree.
    fn tree_rounds(&self) -> u64 {
        let sends = self.position.parent().is_some() && self.children > 0;
        self.segments.count() * self.per_segment() + u64::from(sends)
    }

    /// The child and the segment of a round.
    fn at(&self, round: u64) -> (u32, u64) {
        ((round % self.per_segment()) as u32, round / self.per_segment())
    }

    fn whole(&self, area: Area) -> Place {
        Place::new(area, 0, self.bytes)
    }
}

impl<T: Branches> Schedule for Tributary<T> {
    fn rounds(&self) -> u64 {
        let told = matches!(self.role, Role::Hub { .. } | Role::Vertex { told_by: Some(_) });
        self.tree_rounds() + u64::from(told)
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        if index > 0 {
            return None;
        }
        if let (Role::Hub { root }, true) = (self.role, round == self.tree_rounds()) {
            let result = self.place(self.children, 0)?;
            return Some(Message { peer: root, place: Place { len: self.bytes, ..result } });
        }
        let (child, segment) = self.at(round.checked_sub(self.behind())?);
        let place = self.place(self.children, segment)?;
        Some(Message { peer: self.position.parent().filter(|_| child == 0)?, place })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        if index > 0 {
            return None;
        }
        if let (Role::Vertex { told_by: Some(peer) }, true) = (self.role, round == self.tree_rounds()) {
            return Some(Message { peer, place: self.whole(Area::Receive) });
        }
        let (child, segment) = self.at(round);
        let peer = self.position.child(child)?;
        Some(Message { peer, place: self.place(child + 1, segment)? })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        let (child, segment) = self.at(round);
        match (moment, index) {
            (Moment::After, 0) if child < self.children => {
                Some(Work::Fold { left: self.place(child, segment)?, right: self.place(child + 1, segment)? })
            }
            (Moment::After, 0) if self.role == Role::Root && !self.in_place && segment == 0 => {
                Some(Work::Copy { from: self.whole(Area::Send), to: self.whole(Area::Receive) })
            }
            (Moment::After, 1) if child + 1 == self.children && self.detours() => {
                let to = self.segments.place(Area::Receive, segment)?;
                Some(Work::Copy { from: self.place(self.children, segment)?, to })
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let (told, root) = (matches!(self.role, Role::Vertex { told_by: Some(_) }), self.role == Role::Root);
        let scratch = match self.children {
            0 => 0,
            _ if root => self.bytes,
            children => self.bytes * u64::from(children.min(2)),
        };
        Bytes {
            send: if self.in_place { 0 } else { self.bytes },
            receive: if told || root || self.in_place { self.bytes } else { 0 },
            scratch,
        }
    }

    fn op(&self) -> Option<Op> {
        Some(self.op)
    }
}

/// Trees whose subtrees follow one another, and bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Everyone sends to the root.
    Flat,
    /// A pipeline of segments of so many bytes.
    Chain(u64),
    /// k-nomial with this k, in one piece.
    Knomial(u32),
}

impl Shape {
    const fn parameters(self) -> (Tree, u64) {
        match self {
            Self::Flat => (Tree::Flat, u64::MAX),
            Self::Chain(segment) => (Tree::Chain, segment),
            Self::Knomial(k) => (Tree::Knomial(k), u64::MAX),
        }
    }
}
