//! Where the ranks of a communicator over nodes live: lists in the host's memory.

use super::{Home, Nodes, Spans, Switches};
use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use crate::pattern::bagds::Table;
use crate::topology::group::Place;

/// Numbers for each rank in [`Lists::numbers`].
pub const NUMBERS: usize = 8;

/// Memory for the lists of a communicator: each has an element for each rank, or more. What lies there at first does not
/// matter: [`super::Communicator::new`] fills them.
#[derive(Debug)]
pub struct Lists<'l> {
    /// By rank: where it lives.
    pub homes: &'l mut [Home],
    /// By node: its first rank.
    pub leaders: &'l mut [Rank],
    /// The ranks node by node, those of a node in ascending order.
    pub order: &'l mut [Rank],
    /// By node: its place among the nodes of all switches, the nodes in the order of these places, and in one in which the nodes
    /// of a switch follow one another. They may be empty where no switches are told.
    pub places: &'l mut [Place],
    /// See `places`.
    pub by_switch: &'l mut [Rank],
    /// See `places`.
    pub line: &'l mut [Rank],
    /// This node's stages in BAGDS ([`Table`]), which [`super::Communicator::in_stages`] writes: they may be empty where it is
    /// not called.
    pub stages: &'l mut [u64],
    /// Numbers of ranks and bytes: some are kept, others belong to the call that runs.
    pub numbers: &'l mut [[u64; NUMBERS]],
}

/// Keeps the lists of a communicator: a host with a heap in vectors, a host without in slices ([`Lists`] itself).
pub trait Places {
    /// The lists, always the same, with what was written there.
    fn lists(&mut self) -> Lists<'_>;
}

impl<'l> Lists<'l> {
    /// Lists for nodes whose switches are not told, and which have no stages.
    pub fn new(
        homes: &'l mut [Home],
        leaders: &'l mut [Rank],
        order: &'l mut [Rank],
        numbers: &'l mut [[u64; NUMBERS]],
    ) -> Self {
        Self { homes, leaders, order, places: &mut [], by_switch: &mut [], line: &mut [], stages: &mut [], numbers }
    }
}

impl Places for Lists<'_> {
    fn lists(&mut self) -> Lists<'_> {
        let Self { homes, leaders, order, places, by_switch, line, stages, numbers } = self;
        Lists { homes, leaders, order, places, by_switch, line, stages, numbers }
    }
}

impl Lists<'_> {
    /// Writes where the ranks live: `nodes` is each rank's node. Returns the number of nodes.
    ///
    /// # Errors
    /// A list is too short; nodes are not numbered in the order of their first ranks.
    pub(super) fn fill(&mut self, nodes: &[u32]) -> Result<u32, Refusal> {
        let size = nodes.len();
        Refusal::check(Argument::Ranks, size as u64, Bound::AtMost(u32::MAX.into()))?;
        for len in [self.homes.len(), self.leaders.len(), self.order.len(), self.numbers.len()] {
            Refusal::check(Argument::Ranks, size as u64, Bound::AtMost(len as u64))?;
        }
        let mut count = 0;
        let counts = self.numbers.as_flattened_mut();
        for ((rank, &node), home) in (0..).zip(nodes).zip(self.homes.iter_mut()) {
            Refusal::check(Argument::Rank, node.into(), Bound::AtMost(count))?;
            let (Some(inside), Some(leader)) = (counts.get_mut(node as usize), self.leaders.get_mut(node as usize))
            else {
                continue;
            };
            if u64::from(node) == count {
                (*inside, *leader, count) = (0, rank, count + 1);
            }
            *home = Home { node, rank: *inside as Rank };
            *inside += 1;
        }
        // The nodes are no more than the ranks, and there are several numbers for each of them.
        let (ranks, rest) = counts.split_at_mut(count as usize);
        let starts = rest.get_mut(..count as usize).unwrap_or_default();
        starts_of(ranks, starts);
        for (rank, home) in (0..).zip(self.homes.iter().take(size)) {
            let start = starts.get(home.node as usize).copied().unwrap_or(0);
            let place = self.order.get_mut(start as usize + home.rank as usize);
            place.into_iter().for_each(|place| *place = rank);
        }
        Ok(count as u32)
    }
}

/// Writes where pieces of these lengths begin that lie one after the other.
pub(super) fn starts_of(lengths: &[u64], starts: &mut [u64]) {
    let mut end = 0;
    for (len, start) in lengths.iter().zip(starts) {
        (*start, end) = (end, end + len);
    }
}

/// What was built in the lists beside where ranks live.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Built {
    /// There are several switches, and fewer than nodes: [`Switches`].
    pub(super) switches: bool,
    /// The number of words of a [`Table`].
    pub(super) stages: Option<usize>,
}

/// The lists as one call sees them.
#[derive(Debug)]
pub(super) struct Placement<'l> {
    pub(super) nodes: Nodes<'l>,
    /// The ranks, node by node.
    pub(super) order: &'l [Rank],
    /// Of each node: how many ranks it has, and how many are on the nodes before it.
    pub(super) ranks: Spans<'l>,
    /// Room for other numbers: four for each rank and two at least.
    pub(super) room: &'l mut [u64],
}

impl<'l> Placement<'l> {
    /// Of rank `me` of `size` ranks on `count` nodes; `built`: what else was built in the lists.
    ///
    /// # Errors
    /// The lists are not those that [`Lists::fill`] filled.
    pub(super) fn new(lists: Lists<'l>, size: usize, count: usize, me: Rank, built: Built) -> Result<Self, Refusal> {
        let Lists { homes, leaders, order, places, by_switch, line, stages, numbers } = lists;
        let none = || Refusal::new(Argument::Ranks, size as u64, Bound::AtMost(order.len() as u64));
        let (homes, leaders) = (homes.get(..size).ok_or_else(none)?, leaders.get(..count).ok_or_else(none)?);
        let numbers = numbers.as_flattened_mut();
        let (ranks, rest) = numbers.split_at_mut_checked(count).ok_or_else(none)?;
        let (starts, room) = rest.split_at_mut_checked(count).ok_or_else(none)?;
        let order = order.get(..size).ok_or_else(none)?;
        let ranks = Spans { lengths: ranks, starts };
        let lists = places.get(..count).zip(by_switch.get(..count)).zip(line.get(..count)).filter(|_| built.switches);
        let switches = lists.map(|((places, order), line)| Switches::built(places, order, line));
        let stages = built.stages.and_then(|words| stages.get(..words)).map(|words| Table::made(count as u32, words));
        Ok(Self { nodes: Nodes::new(homes, leaders, me)?.over(switches).in_stages(stages), order, ranks, room })
    }

    /// The first and the number of this node's ranks in [`Self::order`].
    fn here(&self) -> (usize, usize) {
        let node = self.nodes.home().node as usize;
        let of = |list: &[u64]| list.get(node).map_or(0, |&number| number as usize);
        (of(self.ranks.starts), of(self.ranks.lengths))
    }

    /// The ranks of this process's node.
    pub(super) fn inside(&self) -> &'l [Rank] {
        let (first, count) = self.here();
        self.order.get(first..first + count).unwrap_or_default()
    }

    /// The ranks of all other nodes.
    pub(super) fn outside(&self) -> impl Iterator<Item = Rank> + use<'l> {
        let ((first, count), order) = (self.here(), self.order);
        order.iter().take(first).chain(order.iter().skip(first + count)).copied()
    }
}

/// Takes `count` numbers of the room.
///
/// # Errors
/// There are fewer.
pub(super) fn take<'l>(room: &mut &'l mut [u64], count: usize) -> Result<&'l mut [u64], Refusal> {
    let all = core::mem::take(room);
    let less = Refusal::new(Argument::Scratch, all.len() as u64, Bound::AtLeast(count as u64));
    let (taken, rest) = all.split_at_mut_checked(count).ok_or(less)?;
    *room = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn lists_say_who_lives_where() {
        const NODES: [u32; 5] = [0, 1, 0, 2, 1];
        let (mut homes, mut leaders) = ([Home { node: 9, rank: 9 }; 6], [9; 5]);
        let (mut order, mut numbers) = ([9; 5], [[9; NUMBERS]; 5]);
        let mut lists = Lists::new(&mut homes, &mut leaders, &mut order, &mut numbers);
        assert_eq!(lists.fill(&NODES), Ok(3));
        let placement = Placement::new(lists.lists(), 5, 3, 4, Built::default()).unwrap();
        assert_eq!(placement.nodes.home(), Home { node: 1, rank: 1 });
        assert_eq!((placement.nodes.size(), placement.nodes.count()), (5, 3));
        assert_eq!((placement.order, placement.inside()), (&[0, 2, 1, 4, 3][..], &[1, 4][..]));
        assert_eq!(placement.outside().collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(placement.ranks, Spans { lengths: &[2, 2, 1], starts: &[0, 2, 4] });
        assert!(placement.room.len() >= 4 * 5 + 2);
        assert_eq!(lists.fill(&[0, 2]), Err(Refusal::new(Argument::Rank, 2, Bound::AtMost(1))));
        assert_eq!(lists.fill(&[0; 6]), Err(Refusal::new(Argument::Ranks, 6, Bound::AtMost(5))));
        assert_eq!(leaders[..3], [0, 1, 3]);
    }
}
