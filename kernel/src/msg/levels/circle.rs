//! A group as one of its members sees it, while the root of an operation stands in the place of those who lead it.
//!
//! Paper P3 sends the root's data to rank 0 first, or the result from there. Here the root takes the place of its leader
//! on each level, in which the leader is an ordinary member: no message more, whoever is the root.
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

/// A group, whose head is the one member that takes part in the next level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Circle<'s> {
    group: Group<'s>,
    /// The own position.
    own: u32,
    /// The position of the head: the leader's, or that of whom the root stands for.
    head: u32,
    /// Who is there.
    headed_by: Rank,
}

impl Circle<'_> {
    /// The own place among the members.
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

    /// Who is at a position.
    pub(super) fn rank(&self, position: u32) -> Rank {
        if position == self.head { self.headed_by } else { self.member(position) }
    }

    /// The member whose place that is, with all ranks below it.
    pub(super) fn member(&self, position: u32) -> Rank {
        self.group.member(position).unwrap_or(self.headed_by)
    }
}

/// The circles of one process by level, from the inside to the outside; it heads all but the last, which the root heads,
/// too. Who is alone in a group has nothing to do there, so groups of one are not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Circles<'s>([Option<Circle<'s>>; LEVELS]);

impl<'s> Circles<'s> {
    /// Those of `rank`.
    ///
    /// # Errors
    /// `rank` or `root` is no rank.
    pub(super) fn new(groups: &Groups<'s>, rank: Rank, root: Rank) -> Result<Self, Refusal> {
        Refusal::check(Argument::Rank, rank.into(), Bound::Below(groups.ranks().into()))?;
        Refusal::check(Argument::Root, root.into(), Bound::Below(groups.ranks().into()))?;
        let mut circles = Self([None; LEVELS]);
        // Who takes part for the root's side where the root does not stand in.
        let mut deputy = root;
        for (index, circle) in circles.0.iter_mut().enumerate() {
            let Some(roots) = groups.group(deputy, index) else { break };
            let me = match rank == root {
                true => deputy,
                // The root plays for it from here on.
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

    /// Each with its level's index.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, Circle<'s>)> + use<'s> {
        self.0.into_iter().enumerate().filter_map(|(index, circle)| Some((index, circle?)))
    }

    /// Does this process head all of them?
    pub(super) fn is_head(&self) -> bool {
        self.iter().all(|(_, circle)| circle.is_head())
    }

    /// Is this process in none?
    pub(super) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Without the one on level `index`, and what that was.
    pub(super) fn split(mut self, index: usize) -> (Self, Option<Circle<'s>>) {
        let circle = self.0.get_mut(index).and_then(Option::take);
        (self, circle)
    }
}
