//! A circle: a group as one of its members sees it, in an operation whose root takes the places of its own leaders.
//!
//! In paper P3 a root that is not rank 0 first sends its data to rank 0, or receives the result from it. Here the
//! root takes the place of its leader on each level, and the leader is an ordinary member. So no root needs an
//! additional message.
//!
//! ```text
//! root 0    (0   3)              root 5    (0   5)
//!           (0 1 2) (3 4 5)                (0 1 2) (5 3 4)
//! ```

use super::LEVELS;
use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use crate::pattern::Seat;
use crate::topology::group::{Group, Groups};

/// A group, and its head: the one member that takes part in the next level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Circle<'s> {
    group: Group<'s>,
    /// This process's position in the group.
    own: u32,
    /// The head's position: the leader's; in the root's group, that of the member whose place the root takes.
    head: u32,
    /// The head's rank: the leader, or the root.
    headed_by: Rank,
}

impl Circle<'_> {
    /// This process's seat among the members.
    pub(super) fn seat(&self) -> Result<Seat, Refusal> {
        Seat::new(self.own, self.group.size())
    }

    pub(super) const fn size(&self) -> u32 {
        self.group.size()
    }

    pub(super) const fn own(&self) -> u32 {
        self.own
    }

    pub(super) const fn head(&self) -> u32 {
        self.head
    }

    pub(super) const fn is_head(&self) -> bool {
        self.own == self.head
    }

    /// The rank that takes part at a position: the group's member, or the root in its place.
    pub(super) fn rank(&self, position: u32) -> Rank {
        if position == self.head { self.headed_by } else { self.member(position) }
    }

    /// The group's own member at a position, which has the ranks below it.
    pub(super) fn member(&self, position: u32) -> Rank {
        self.group.member(position).unwrap_or(self.headed_by)
    }
}

/// The circles of one process by level, from the innermost to the outermost. The process is the head of all but its
/// last one; the root is the head of all. `None` for a level on which the process takes no part or is alone in its
/// group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Circles<'s>([Option<Circle<'s>>; LEVELS]);

impl<'s> Circles<'s> {
    /// The circles of `rank` in an operation with this root.
    ///
    /// # Errors
    /// `rank` or `root` is not a rank of the communicator.
    pub(super) fn new(groups: &Groups<'s>, rank: Rank, root: Rank) -> Result<Self, Refusal> {
        Refusal::check(Argument::Rank, rank.into(), Bound::Below(groups.ranks().into()))?;
        Refusal::check(Argument::Root, root.into(), Bound::Below(groups.ranks().into()))?;
        let mut circles = Self([None; LEVELS]);
        // The member whose place the root takes on this level: itself, then its leader, then that one's leader.
        let mut deputy = root;
        for (index, circle) in circles.0.iter_mut().enumerate() {
            let Some(roots) = groups.group(deputy, index) else { break };
            let me = match rank == root {
                true => deputy,
                // The root takes this process's place from this level on.
                false if rank == deputy => break,
                false => rank,
            };
            let Some(group) = groups.group(me, index) else { break };
            let (head, headed_by) = match group.leader() == roots.leader() {
                true => (group.position(deputy).unwrap_or(0), root),
                false => (0, group.leader()),
            };
            let one = Circle { group, own: group.position(me).unwrap_or(0), head, headed_by };
            *circle = Some(one).filter(|circle| circle.size() > 1);
            if !one.is_head() {
                break;
            }
            deputy = roots.leader();
        }
        Ok(circles)
    }

    /// All circles, each with its level's index.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, Circle<'s>)> + use<'s> {
        self.0.into_iter().enumerate().filter_map(|(index, circle)| Some((index, circle?)))
    }

    /// Is this process the head of all of them?
    pub(super) fn is_head(&self) -> bool {
        self.iter().all(|(_, circle)| circle.is_head())
    }

    /// Are there no circles?
    pub(super) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The circles without that of level `index`, and that one.
    pub(super) fn split(mut self, index: usize) -> (Self, Option<Circle<'s>>) {
        let circle = self.0.get_mut(index).and_then(Option::take);
        (self, circle)
    }
}
