//! Reduce along a tree, in segments: a process folds the results of its children's subtrees with its operand, in rank
//! order, and sends the result to its parent while the next segment arrives.
//!
//! The subtrees of a vertex follow one another in vertex order, so x₀ ∘ x₁ ∘ … keeps its order if vertices are ranks,
//! which they are in a tree with root 0. So an op that does not commute is reduced to rank 0 (the hub), whose result
//! goes to the root. A fold's result lies where its right operand arrived, so nothing is copied: results alternate
//! between two places; at the root the last one is the result area.

use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use crate::msg::parts::{Segments, check_operand};
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::op::Op;
use crate::pattern::Seat;
use crate::pattern::tree::{Branches, Position, Tree};

/// One process's part of a reduce.
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

/// What a process is in the tree, and in the reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::msg) enum Role {
    /// The tree's root, and the root of the reduction.
    Root,
    /// The tree's root, which sends the result to the root of the reduction.
    Hub { root: Rank },
    /// Any other vertex. If it is the root of the reduction, it receives the result from the hub `told_by`.
    Vertex { told_by: Option<Rank> },
}

impl Tributary {
    /// The operands of all ranks, `bytes` bytes each, are folded into `root`'s result area, along a tree of this shape.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator, the tree's arity is too small, a segment has no bytes, or the
    /// operand is not a whole number of elements, or too long.
    pub fn new(seat: Seat, bytes: u64, op: Op, root: Rank, in_place: bool, shape: Shape) -> Result<Self, Refusal> {
        seat.check_root(root)?;
        let (tree, segment) = shape.parameters();
        let (rank, hub) = (seat.rank(), hub(&op, root));
        let position = tree.check()?.position(rank, hub, seat.size());
        // `in_place` is significant only at the root.
        Self::along(position, Role::of(rank, hub, root), bytes, op, in_place && rank == root, segment)
    }
}

/// The root of the tree for a reduction to `root`.
pub(in crate::msg) const fn hub(op: &Op, root: Rank) -> Rank {
    if op.commutative() { root } else { 0 }
}

impl Role {
    /// The role of `rank` in a tree with root `hub`, in a reduction to `root`.
    pub(in crate::msg) fn of(rank: Rank, hub: Rank, root: Rank) -> Self {
        match rank {
            rank if rank == hub && hub == root => Self::Root,
            rank if rank == hub => Self::Hub { root },
            rank => Self::Vertex { told_by: (rank == root).then_some(hub) },
        }
    }
}

impl<T: Branches> Tributary<T> {
    /// The same along any tree. In place, the operand is in the result area, also on ranks that are not the root.
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

    /// The area with the fold of this process's operand and the results of its first `children` children.
    fn folded(&self, children: u32) -> Area {
        let own = if self.in_place { Area::Receive } else { Area::Send };
        if children == 0 { own } else { Area::Scratch }
    }

    /// A segment of that fold.
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

    /// Must the root copy the last result to its result area? In place with an odd number of children: the first
    /// child's result must not arrive on the root's operand, so the two places are swapped.
    fn detours(&self) -> bool {
        self.role == Role::Root && self.in_place && self.children % 2 == 1
    }

    /// Number of rounds of one segment: one per child, at least one.
    fn per_segment(&self) -> u64 {
        u64::from(self.children.max(1))
    }

    /// Number of rounds between a segment's first round and the one in which it is sent to the parent.
    fn delay(&self) -> u64 {
        if self.children == 0 { 0 } else { self.per_segment() }
    }

    /// Number of rounds along the tree, without the message from hub to root.
    fn tree_rounds(&self) -> u64 {
        let sends = self.position.parent().is_some() && self.children > 0;
        self.segments.count() * self.per_segment() + u64::from(sends)
    }

    /// The index of the child and of the segment of a round.
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
        let (child, segment) = self.at(round.checked_sub(self.delay())?);
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

/// A tree whose subtrees follow one another in vertex order, and the bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// All other ranks send to the root, in one segment.
    Flat,
    /// A chain, in segments of this many bytes.
    Chain(u64),
    /// A k-nomial tree with this k, in one segment.
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
