//! Which rank lives on which node, who leads it, which switch connects it, and schedules among leaders.

use super::Between;
use crate::Rank;
use crate::error::{Argument, Bound, Condition, Refusal};
use crate::msg::levels::Line;
use crate::msg::schedule::{Bytes, Message, Moment, Schedule, Work};
use crate::msg::{Memory, Rounds};
use crate::op::Op;
use crate::pattern::Seat;
use crate::pattern::bagds::Table;
use crate::topology::Level;
use crate::topology::group::{Groups, Place};

/// Where a rank lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Home {
    /// Its node.
    pub node: u32,
    /// Its rank there: the node's ranks, counted in their order.
    pub rank: Rank,
}

/// Which nodes are connected to one switch: a group of paper P3. There are several switches, and fewer than nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Switches<'n> {
    places: &'n [Place],
    order: &'n [Rank],
    line: &'n [Rank],
}

impl<'n> Switches<'n> {
    const LEVELS: [Level; 2] = [Level::Switch1, Level::All];

    /// Groups nodes by their switches: node n is on switch `switches[n]`, and switches are numbered in the order of their first
    /// nodes. `None`: all are on one, or each on one of its own, so there is no level.
    ///
    /// # Errors
    /// The switches are numbered otherwise; the storage is shorter than `switches`.
    pub fn build(
        switches: &[u32],
        places: &'n mut [Place],
        order: &'n mut [Rank],
        line: &'n mut [Rank],
    ) -> Result<Option<Self>, Refusal> {
        let mut count = 0;
        for &switch in switches {
            let is_new = Refusal::check(Argument::Rank, switch.into(), Bound::AtMost(count))? == count;
            count += u64::from(is_new);
        }
        let none = |len: usize| Refusal::new(Argument::Ranks, switches.len() as u64, Bound::AtMost(len as u64));
        let (rooms, ranks) = (places.len(), order.len().min(line.len()));
        let places = places.get_mut(..switches.len()).ok_or(none(rooms))?;
        let order = order.get_mut(..switches.len()).ok_or(none(ranks))?;
        let line = line.get_mut(..switches.len()).ok_or(none(ranks))?;
        let key = |node: Rank, level| match level {
            Level::Switch1 => switches.get(node as usize).map(|&switch| switch.into()),
            _ => Some(0),
        };
        let in_use = Self::LEVELS.into_iter().collect();
        let is_there = {
            let groups = Groups::build_by(key, in_use, places, order);
            Line::build(&groups, line)?;
            groups.levels() == Self::LEVELS
        };
        Ok(is_there.then_some(Self { places, order, line }))
    }

    /// The number of levels of a network with these switches, as for [`Self::build`]: 2 if there are several switches, and
    /// fewer than nodes, else 1.
    pub fn levels(switches: &[u32]) -> u32 {
        let last = switches.iter().max().copied().unwrap_or(0);
        if 0 < last && (last as usize + 1) < switches.len() { 2 } else { 1 }
    }

    /// Those that were built before, from where they were built.
    pub(super) const fn built(places: &'n [Place], order: &'n [Rank], line: &'n [Rank]) -> Self {
        Self { places, order, line }
    }

    pub(super) fn groups(&self) -> Groups<'n> {
        Groups::built(&Self::LEVELS, self.places, self.order)
    }

    /// The nodes in an order in which those of a switch follow one another.
    pub(super) fn ordered(&self) -> Ordered<'n> {
        Ordered { groups: self.groups(), line: self.line }
    }
}

/// The nodes in an order in which those of a switch follow one another.
#[derive(Debug)]
pub struct Ordered<'n> {
    groups: Groups<'n>,
    line: &'n [Rank],
}

impl Ordered<'_> {
    /// For algorithms over levels.
    pub const fn line(&self) -> Line<'_> {
        Line::built(&self.groups, self.line)
    }
}

/// A process among the nodes of its communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nodes<'n> {
    homes: &'n [Home],
    leaders: &'n [Rank],
    switches: Option<Switches<'n>>,
    stages: Option<Table<'n>>,
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
        Ok(Self { homes, leaders, switches: None, stages: None, me, home })
    }

    /// The same with the switches that connect the nodes.
    #[must_use]
    pub const fn over(self, switches: Option<Switches<'n>>) -> Self {
        Self { switches, ..self }
    }

    /// The same with the stages of this process's node in BAGDS, in which nodes are processes.
    #[must_use]
    pub const fn in_stages(self, stages: Option<Table<'n>>) -> Self {
        Self { stages, ..self }
    }

    /// This node's stages in BAGDS, if they are known.
    pub const fn stages(&self) -> Option<Table<'n>> {
        self.stages
    }

    /// The nodes by their switches, if these are told and there is a level of them.
    pub fn by_switch(&self) -> Option<Ordered<'n>> {
        self.switches.map(|switches| switches.ordered())
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
        let Self { leaders, switches, .. } = *self;
        Led { leaders, switches, root, node: home.node, inside, seat, is_root: root == self.me }
    }
}

/// The leaders of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Led<'n> {
    leaders: &'n [Rank],
    switches: Option<Switches<'n>>,
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

    /// The nodes' groups by switches.
    ///
    /// # Errors
    /// There are none: an algorithm over levels does not apply.
    pub(super) fn groups(&self) -> Result<Groups<'n>, Refusal> {
        let none = Refusal::not(Argument::Operation, Condition::Applicable);
        self.switches.map(|switches| switches.groups()).ok_or(none)
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

    #[test]
    fn switches_are_a_level_if_there_are_several_and_fewer_than_nodes() {
        let (mut places, mut order, mut line) = ([Place::default(); 5], [0; 5], [0; 5]);
        let mut built = |switches: &[u32]| {
            Switches::build(switches, &mut places, &mut order, &mut line).map(|built| built.is_some())
        };
        for (switches, levels) in
            [(&[][..], 1), (&[0], 1), (&[0, 0, 0], 1), (&[0, 1, 2], 1), (&[0, 1, 0], 2), (&[0, 0, 1, 2, 1], 2)]
        {
            assert_eq!((Switches::levels(switches), built(switches)), (levels, Ok(levels == 2)), "{switches:?}");
        }
        assert_eq!(built(&[0, 2]), Err(Refusal::new(Argument::Rank, 2, Bound::AtMost(1))));
        assert_eq!(built(&[0; 6]), Err(Refusal::new(Argument::Ranks, 6, Bound::AtMost(5))));
        let switches = Switches::build(&[0, 1, 0, 1, 1], &mut places, &mut order, &mut line).unwrap().unwrap();
        let groups = switches.groups();
        let members = |group: crate::topology::group::Group<'_>| group.members().collect::<std::vec::Vec<_>>();
        let all: std::vec::Vec<_> = groups.at(0).chain(groups.at(1)).map(members).collect();
        assert_eq!(all, [std::vec![0, 2], std::vec![1, 3, 4], std::vec![0, 1]]);
        assert_eq!(line, [0, 2, 1, 3, 4]);
    }

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
