//! Which rank lives on which node, who leads it, and schedules among leaders.

use super::Between;
use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use crate::msg::schedule::{Bytes, Message, Moment, Schedule, Work};
use crate::msg::{Memory, Rounds};
use crate::op::Op;
use crate::pattern::Seat;

/// Where a rank lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Home {
    /// Its node.
    pub node: u32,
    /// Its rank there: the node's ranks, counted in their order.
    pub rank: Rank,
}

/// A process among the nodes of its communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nodes<'n> {
    homes: &'n [Home],
    leaders: &'n [Rank],
    me: Rank,
    home: Home,
}

impl<'n> Nodes<'n> {
    /// Process `me`, where rank r lives at `homes[r]`, and `leaders[n]` is the first rank of node n. Who calls promises that
    /// the two agree: where they do not, processes wait for each other.
    ///
    /// # Errors
    /// `me` is none of the ranks; it lives on none of the nodes.
    pub fn new(homes: &'n [Home], leaders: &'n [Rank], me: Rank) -> Result<Self, Refusal> {
        let none = Refusal::new(Argument::Rank, me.into(), Bound::Below(homes.len() as u64));
        let home = *homes.get(me as usize).ok_or(none)?;
        Refusal::check(Argument::Rank, home.node.into(), Bound::Below(leaders.len() as u64))?;
        Ok(Self { homes, leaders, me, home })
    }

    /// Number of ranks.
    pub const fn size(&self) -> u32 {
        self.homes.len() as u32
    }

    /// Number of nodes.
    pub const fn count(&self) -> u32 {
        self.leaders.len() as u32
    }

    /// This process's home.
    pub const fn home(&self) -> Home {
        self.home
    }

    /// Does `rank` live elsewhere?
    pub(super) fn is_apart(&self, rank: Rank) -> bool {
        self.homes.get(rank as usize).is_some_and(|home| home.node != self.home.node)
    }

    /// A rank's home.
    pub(super) fn home_of(&self, rank: Rank) -> Option<Home> {
        self.homes.get(rank as usize).copied()
    }

    /// This process's rank.
    pub(super) const fn me(&self) -> Rank {
        self.me
    }

    /// Do the ranks of each node follow one another, node by node? Then folds keep the ranks' order.
    pub fn in_order(&self) -> bool {
        let next = |(one, other): (&Home, &Home)| {
            (other.node == one.node && other.rank == one.rank + 1) || (other.node == one.node + 1 && other.rank == 0)
        };
        self.homes.iter().zip(self.homes.iter().skip(1)).all(next)
    }

    /// The leaders where there is no root.
    pub fn led(&self) -> Led<'n> {
        let root = self.leaders.first().copied().unwrap_or(0);
        self.at(root, Home { node: 0, rank: 0 })
    }

    /// The leaders of an operation with a root: it leads its node.
    ///
    /// # Errors
    /// `root` is no rank.
    pub fn led_by(&self, root: Rank) -> Result<Led<'n>, Refusal> {
        let none = Refusal::new(Argument::Root, root.into(), Bound::Below(self.homes.len() as u64));
        Ok(self.at(root, *self.homes.get(root as usize).ok_or(none)?))
    }

    fn at(&self, root: Rank, home: Home) -> Led<'n> {
        let inside = if home.node == self.home.node { home.rank } else { 0 };
        let leads = self.home.rank == inside;
        let seat = if leads { Seat::new(self.home.node, self.count()).ok() } else { None };
        Led { leaders: self.leaders, root, node: home.node, inside, seat, is_root: root == self.me }
    }
}

/// The leaders of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Led<'n> {
    leaders: &'n [Rank],
    root: Rank,
    node: u32,
    inside: Rank,
    seat: Option<Seat>,
    is_root: bool,
}

impl<'n> Led<'n> {
    /// The root's node.
    pub const fn node(&self) -> u32 {
        self.node
    }

    /// Is this process the root?
    pub const fn is_root(&self) -> bool {
        self.is_root
    }

    /// The rank, in this process's node, of the node's leader.
    pub const fn inside(&self) -> Rank {
        self.inside
    }

    /// This process's place among the leaders, if it is one.
    pub const fn seat(&self) -> Option<Seat> {
        self.seat
    }

    /// The same, where it is one.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn between(&self) -> Result<Seat, Refusal> {
        self.seat.ok_or(Refusal::new(Argument::Rank, self.inside.into(), Bound::Equals(0)))
    }

    /// A schedule among the leaders.
    pub const fn among<S>(&self, schedule: S) -> Among<'n, S> {
        Among { schedule, leaders: self.leaders, root: self.root, node: self.node }
    }

    /// The messages of `plan`, which a process has that leads a node.
    ///
    /// # Errors
    /// As [`Rounds::of`].
    ///
    /// # Safety
    /// As [`Rounds::of`].
    pub(super) unsafe fn messages<S: Schedule>(
        &self,
        plan: Option<S>,
        memory: Memory,
        operation: u64,
    ) -> Result<Between<'n, S>, Refusal> {
        // SAFETY: the caller's promise.
        plan.map(|plan| unsafe { Rounds::of(self.among(plan), memory, operation) }).transpose()
    }
}

/// A schedule whose processes are the leaders of nodes: its ranks are nodes, the messages' peers are leaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Among<'n, S> {
    schedule: S,
    leaders: &'n [Rank],
    root: Rank,
    node: u32,
}

impl<S> Among<'_, S> {
    fn rename(&self, message: Message) -> Message {
        let leader = self.leaders.get(message.peer as usize).copied();
        let peer = if message.peer == self.node { self.root } else { leader.unwrap_or(self.root) };
        Message { peer, ..message }
    }
}

impl<S: Schedule> Schedule for Among<'_, S> {
    #[inline]
    fn rounds(&self) -> u64 {
        self.schedule.rounds()
    }

    #[inline]
    fn send(&self, round: u64, index: u32) -> Option<Message> {
        self.schedule.send(round, index).map(|message| self.rename(message))
    }

    #[inline]
    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        self.schedule.receive(round, index).map(|message| self.rename(message))
    }

    #[inline]
    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        self.schedule.work(round, moment, index)
    }

    #[inline]
    fn bytes(&self) -> Bytes {
        self.schedule.bytes()
    }

    #[inline]
    fn op(&self) -> Option<Op> {
        self.schedule.op()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn home(node: u32, rank: Rank) -> Home {
        Home { node, rank }
    }

    #[test]
    fn the_root_leads_its_node_and_first_ranks_the_others() {
        let homes = [home(0, 0), home(1, 0), home(0, 1), home(1, 1), home(2, 0)];
        let leaders = [0, 1, 4];
        for me in 0..5 {
            let nodes = Nodes::new(&homes, &leaders, me).unwrap();
            let leads = |led: Led<'_>| led.seat().is_some();
            assert_eq!(leads(nodes.led()), [0, 1, 4].contains(&me));
            assert_eq!(leads(nodes.led_by(3).unwrap()), [0, 3, 4].contains(&me), "{me}");
            assert_eq!(nodes.led_by(3).unwrap().is_root(), me == 3);
            assert_eq!(nodes.led_by(5), Err(Refusal::new(Argument::Root, 5, Bound::Below(5))));
            assert!(!nodes.in_order());
        }
        let nodes = Nodes::new(&homes, &leaders, 0).unwrap();
        let plan =
            crate::msg::bcast::plan(nodes.led_by(3).unwrap().seat().unwrap(), 1, 1, crate::msg::bcast::Algorithm::Flat);
        let plan = nodes.led_by(3).unwrap().among(plan.unwrap());
        assert_eq!(plan.receive(0, 0).map(|message| message.peer), Some(3));
        assert!(Nodes::new(&homes, &leaders, 5).is_err());
        assert!(Nodes::new(&homes, &leaders[..2], 4).is_err());
    }

    #[test]
    fn order_is_kept_where_nodes_are_blocks_of_ranks() {
        for (homes, ordered) in [
            (&[home(0, 0), home(0, 1), home(1, 0)][..], true),
            (&[home(0, 0), home(1, 0), home(1, 1), home(2, 0)], true),
            (&[home(0, 0), home(1, 0), home(0, 1)], false),
            (&[home(0, 0)], true),
        ] {
            assert_eq!(Nodes::new(homes, &[0, 1, 2], 0).unwrap().in_order(), ordered, "{homes:?}");
        }
    }
}
