//! Groups of processes per level, and their leaders (paper P3, section 2.2), without sub-communicators.
//!
//! From the inside to the outside, the members of a level that share a unit form a group. Its leader is the lowest
//! rank, and the leaders are the members of the next level. A process that shares no unit forms a group alone, and
//! leads it.
//!
//! ```text
//! index 2    (0          6)                 leaders of index 1
//! index 1    (0   3)    (6)                 a group of one is kept: dropping it would take 6 out of index 2
//! index 0    (0 1 2)    (3 4 5)    (6 7)    all ranks
//! ```
//! A level on which every group would have one member is left out: nothing would be communicated on it. [`Level::All`]
//! joins the leaders that the levels in use leave separate, so the last level is one group, led by rank 0.
//!
//! The groups are stored as a tree: a rank is a member of the levels up to the one on which another rank leads it, and
//! leads its group on all levels before. That takes a leader, a level and a place in the order per rank: twelve bytes,
//! whatever the number of levels.

use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use crate::topology::{Level, Levels, Locality};
use core::cell::Cell;
use core::fmt;

/// A rank's place in the hierarchy: storage for [`Groups::build`], one per rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Index of the last level of which the rank is a member; for rank 0, one more.
    last: u8,
    /// The leader of its group on that level.
    leader: Rank,
}

/// The groups of all ranks on all levels, in the caller's storage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Groups<'s> {
    levels: heapless::Vec<Level, { Level::EVERY.len() }>,
    places: &'s [Place],
    /// The ranks, sorted by their places: those that one leader leads on one level follow each other, ascending.
    order: &'s [Rank],
}

impl<'s> Groups<'s> {
    /// Groups processes by their localities, one per rank, on these levels.
    /// Every process that gives the same arguments gets the same groups.
    ///
    /// O(L · P · log P) time, O(1) memory in addition to `places` and `order`, which have one element per rank each.
    ///
    /// # Errors
    /// There are no localities, or more than 2³² − 1; storage has another length.
    pub fn build(
        localities: &[Locality],
        levels: Levels,
        places: &'s mut [Place],
        order: &'s mut [Rank],
    ) -> Result<Self, Refusal> {
        Refusal::check(Argument::Ranks, localities.len() as u64, Bound::AtLeast(1))?;
        Refusal::check(Argument::Ranks, localities.len() as u64, Bound::AtMost(u32::MAX.into()))?;
        for storage in [places.len(), order.len()] {
            Refusal::check(Argument::Ranks, storage as u64, Bound::Equals(localities.len() as u64))?;
        }
        let key = |rank: Rank, level| localities.get(rank as usize).and_then(|locality| locality.key(level));
        Ok(Self::build_by(key, levels, places, order))
    }

    /// Groups that were built before, from where they were built.
    pub(crate) fn built(levels: &[Level], places: &'s [Place], order: &'s [Rank]) -> Self {
        Self { levels: levels.iter().copied().take(Level::EVERY.len()).collect(), places, order }
    }

    /// As [`Self::build`]; processes share a unit of a level if they have the same key there. The storage has one element per
    /// rank each.
    pub(crate) fn build_by(
        key: impl Fn(Rank, Level) -> Option<u64>,
        in_use: Levels,
        places: &'s mut [Place],
        order: &'s mut [Rank],
    ) -> Self {
        let mut levels = heapless::Vec::new();
        number(order);
        let mut members = order.len();
        for level in in_use.iter() {
            let ranks = order.get_mut(..members).unwrap_or_default();
            ranks.sort_unstable_by_key(|&rank| (key(rank, level), rank));
            members = lead(ranks, places, count(&levels), |rank| key(rank, level));
            if members < ranks.len() {
                // There is room: the vector can hold every level.
                let _ = levels.push(level);
            }
        }
        if let Some(first) = places.first_mut() {
            *first = Place { last: count(&levels), leader: 0 };
        }
        number(order);
        order.sort_unstable_by_key(|&rank| (places.get(rank as usize), rank));
        Self { levels, places, order }
    }

    /// The levels that have groups, from the inside to the outside; none for a single rank.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.places.len() as u32
    }

    /// Number of levels of which a rank is a member, which are the innermost ones; 0 if `rank` is not below the size.
    pub fn count(&self, rank: Rank) -> usize {
        self.places.get(rank as usize).map_or(0, |place| self.levels.len().min(usize::from(place.last) + 1))
    }

    /// The group of a rank on the level of this index in [`Self::levels`]; `None`: the rank is not a member there.
    /// O(log P).
    pub fn group(&self, rank: Rank, index: usize) -> Option<Group<'s>> {
        let level = *self.levels.get(index)?;
        let index = index as u8;
        let place = self.places.get(rank as usize).filter(|place| place.last >= index)?;
        let leader = if place.last == index { place.leader } else { rank };
        let led = Some(&Place { last: index, leader });
        let begin = self.order.partition_point(|&rank| self.places.get(rank as usize) < led);
        let rest = self.order.get(begin..).unwrap_or_default();
        let count = rest.partition_point(|&rank| self.places.get(rank as usize) == led);
        Some(Group { level, leader, rest: rest.get(..count).unwrap_or_default() })
    }

    /// The groups of a rank, from the inside to the outside: on its first [`Self::count`] levels.
    pub fn of(&self, rank: Rank) -> impl Iterator<Item = Group<'s>> {
        (0..self.count(rank)).filter_map(move |index| self.group(rank, index))
    }

    /// The member of a level that acts for a rank there: the rank itself, or its leader, or its leader's leader and so
    /// on. O(L).
    pub fn above(&self, rank: Rank, index: usize) -> Rank {
        let mut at = rank;
        let led = |at: Rank| self.places.get(at as usize).filter(|place| usize::from(place.last) < index);
        while let Some(place) = led(at).filter(|place| place.leader != at) {
            at = place.leader;
        }
        at
    }

    /// Are the ranks for which each member of each group acts consecutive? Then a fold group by group keeps the order
    /// of ranks. O(P).
    pub fn are_runs(&self) -> bool {
        let mut leading = [0; Level::EVERY.len()];
        (0..).zip(self.places).skip(1).all(|(rank, place)| {
            leading.iter_mut().take(place.last.into()).for_each(|leader| *leader = rank);
            leading.get(usize::from(place.last)) == Some(&place.leader)
        })
    }

    /// All groups of a level, in the order of their leaders.
    pub fn at(&self, index: usize) -> impl Iterator<Item = Group<'s>> {
        let leads = move |&(_, place): &(Rank, &Place)| usize::from(place.last) > index;
        (0..).zip(self.places).filter(leads).filter_map(move |(leader, _)| self.group(leader, index))
    }
}

fn count(levels: &[Level]) -> u8 {
    levels.len() as u8
}

/// Fills `order` with all ranks, ascending.
fn number(order: &mut [Rank]) {
    for (rank, place) in (0..).zip(order) {
        *place = rank;
    }
}

/// `ranks` is sorted by key. The first rank of each run of equal keys leads the others of the run, which get their
/// places. Moves the leaders to the front, and returns how many there are.
fn lead(ranks: &mut [Rank], places: &mut [Place], index: u8, key: impl Fn(Rank) -> Option<u64>) -> usize {
    let ranks = Cell::from_mut(ranks).as_slice_of_cells();
    let mut front = ranks.iter();
    let mut first = None;
    for rank in ranks.iter().map(Cell::get) {
        let unit = key(rank);
        match first {
            Some((leader, shared)) if unit.is_some() && unit == shared => {
                if let Some(place) = places.get_mut(rank as usize) {
                    *place = Place { last: index, leader };
                }
            }
            _ => {
                first = Some((rank, unit));
                if let Some(slot) = front.next() {
                    slot.set(rank);
                }
            }
        }
    }
    ranks.len() - front.len()
}

/// The members of a level that share a unit of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group<'s> {
    level: Level,
    leader: Rank,
    rest: &'s [Rank],
}

impl<'s> Group<'s> {
    /// The level.
    pub const fn level(&self) -> Level {
        self.level
    }

    /// The lowest rank.
    pub const fn leader(&self) -> Rank {
        self.leader
    }

    /// Number of members, 1 at least.
    pub const fn size(&self) -> u32 {
        self.rest.len() as u32 + 1
    }

    /// The members, ascending: the leader first.
    pub fn members(&self) -> impl Iterator<Item = Rank> + use<'s> {
        core::iter::once(self.leader).chain(self.rest.iter().copied())
    }

    /// The member at a position.
    pub fn member(&self, position: u32) -> Option<Rank> {
        let Some(position) = position.checked_sub(1) else { return Some(self.leader) };
        self.rest.get(position as usize).copied()
    }

    /// The position of a rank among the members. O(log size).
    pub fn position(&self, rank: Rank) -> Option<u32> {
        if rank == self.leader {
            return Some(0);
        }
        self.rest.binary_search(&rank).ok().map(|position| position as u32 + 1)
    }
}

/// The members as P3 writes them, runs shortened: `(0-17)`, `(0,36)`.
impl fmt::Display for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "(";
        let mut members = self.members().peekable();
        while let Some(first) = members.next() {
            let mut last = first;
            while let Some(next) = members.next_if(|&next| Some(next) == last.checked_add(1)) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec;
    use std::vec::Vec;

    /// Paper P3, figure 1: 16 nodes per switch of level 1; processes on nodes 1, 2 and 48, 2 × 18 on each.
    fn paper() -> Vec<Locality> {
        let node = |(node, switch)| {
            (0..36).map(move |core| {
                let place = Locality::NOWHERE.with(Level::Node, node).with(Level::Switch1, switch);
                let place = place.with(Level::Switch2, 0).with_core(core).with(Level::L2, core);
                place.with(Level::Numa, core / 18).with(Level::Package, core / 18)
            })
        };
        [(0, 11), (1, 11), (47, 13)].into_iter().flat_map(node).collect()
    }

    /// The groups as text, per rank.
    fn text(localities: &[Locality], levels: Levels) -> Vec<Vec<std::string::String>> {
        let (mut places, mut order) = (vec![Place::default(); localities.len()], vec![0; localities.len()]);
        let groups = Groups::build(localities, levels, &mut places, &mut order).unwrap();
        (0..groups.ranks()).map(|rank| groups.of(rank).map(|group| group.to_string()).collect()).collect()
    }

    #[test]
    fn the_papers_example() {
        let all = text(&paper(), Levels::EVERY);
        assert_eq!(all[0], ["(0-17)", "(0,18)", "(0,36)", "(0,72)"]);
        assert_eq!(all[1], ["(0-17)"]);
        assert_eq!(all[36], ["(36-53)", "(36,54)", "(0,36)"]);
        // A group of one is kept.
        assert_eq!(all[72], ["(72-89)", "(72,90)", "(72)", "(0,72)"]);
        assert_eq!(all[18], ["(18-35)", "(0,18)"]);
        assert_eq!(all[54], ["(54-71)", "(36,54)"]);
        assert_eq!(all[90], ["(90-107)", "(72,90)"]);
        for (rank, groups) in all.iter().enumerate().filter(|(rank, _)| rank % 18 != 0) {
            let first = rank - rank % 18;
            assert_eq!(*groups, [std::format!("({first}-{})", first + 17)]);
        }
    }

    #[test]
    fn levels_are_switched_off_as_in_the_paper() {
        let groups = |levels: &str| text(&paper(), levels.parse().unwrap());
        // Without the second level of switches the communicator joins the rest.
        assert_eq!(groups("NM-SK-ND-SW"), text(&paper(), Levels::EVERY));
        assert_eq!(groups("NM-ND-SW"), groups("SK-ND-SW"));
        assert_eq!(groups("ND-SW")[0], ["(0-35)", "(0,36)", "(0,72)"]);
        assert_eq!(groups("NM")[36], ["(36-53)", "(0,18,36,54,72,90)"]);
        assert_eq!(groups("SW2")[5], ["(0-107)"]);
        assert_eq!(text(&paper(), Levels::NONE)[5], ["(0-107)"]);
    }

    #[test]
    fn a_rank_without_a_shared_unit_is_a_member_from_the_node_level_on() {
        let mut localities = paper();
        for rank in [0, 1, 40] {
            localities[rank] =
                Locality::NOWHERE.with(Level::Node, if rank < 36 { 0 } else { 1 }).with(Level::Switch1, 11);
        }
        let all = text(&localities, Levels::EVERY);
        assert_eq!(all[0], ["(0)", "(0-2,18)", "(0,36)", "(0,72)"]);
        assert_eq!(all[1], ["(1)", "(0-2,18)"]);
        assert_eq!(all[2], ["(2-17)", "(0-2,18)"]);
        assert_eq!(all[40], ["(40)", "(36,40,54)"]);
    }

    #[test]
    fn runs_are_told_from_other_groups() {
        let runs = |units: &[u32], levels: Levels| {
            let locality = |&unit: &u32| Locality::NOWHERE.with(Level::Node, unit / 10).with(Level::Switch1, unit / 20);
            let localities: Vec<_> = units.iter().map(locality).collect();
            let (mut places, mut order) = (vec![Place::default(); units.len()], vec![0; units.len()]);
            let groups = Groups::build(&localities, levels, &mut places, &mut order).unwrap();
            for rank in 0..groups.ranks() {
                for (index, group) in groups.of(rank).enumerate() {
                    assert!(group.members().all(|member| groups.above(member, index) == member));
                    assert!(
                        group.members().all(|member| groups.above(member, index + 1) == groups.above(rank, index + 1))
                    );
                }
            }
            groups.are_runs()
        };
        for (units, wanted) in [
            (&[10][..], true),
            (&[10, 10, 10], true),
            (&[10, 10, 20, 20, 30], true),
            (&[40, 30, 30, 10], true),
            (&[10, 20, 10], false),
            // Nodes are runs, switches are not.
            (&[10, 40, 0], false),
            (&[10, 40, 40, 20, 60], true),
        ] {
            assert_eq!(runs(units, Levels::EVERY), wanted, "{units:?}");
            assert!(runs(units, Levels::NONE));
        }
    }

    #[test]
    fn few_ranks() {
        assert_eq!(text(&[Locality::NOWHERE], Levels::EVERY), [[""; 0]]);
        assert_eq!(text(&[Locality::NOWHERE; 3], Levels::EVERY), [["(0-2)"]; 3]);
    }

    #[test]
    fn storage_must_fit() {
        let (mut places, mut order) = ([Place::default(); 2], [0; 3]);
        for ranks in [0, 1, 2, 3] {
            let refused = Groups::build(&paper()[..ranks], Levels::EVERY, &mut places, &mut order).unwrap_err();
            assert_eq!(refused.argument, Argument::Ranks);
        }
    }

    #[test]
    fn positions_are_those_of_members() {
        let (mut places, mut order) = ([Place::default(); 108], [0; 108]);
        let groups = Groups::build(&paper(), Levels::EVERY, &mut places, &mut order).unwrap();
        for index in 0..groups.levels().len() {
            for group in groups.at(index) {
                assert!(group.members().eq((0..group.size()).filter_map(|position| group.member(position))));
                assert!(group.members().zip(0..).all(|(rank, position)| group.position(rank) == Some(position)));
                assert_eq!((group.member(group.size()), group.position(1000)), (None, None));
            }
        }
        assert_eq!((groups.count(0), groups.count(1), groups.count(108)), (4, 1, 0));
        assert_eq!(groups.group(0, 4), None);
    }

    /// Looks at keys while grouping so many ranks, 32 per NUMA node, 4 NUMA nodes per node, in an order without order.
    fn looks(ranks: u32) -> u64 {
        let looks = Cell::new(0);
        let key = |rank: Rank, level| {
            looks.set(looks.get() + 1);
            let seat = rank.wrapping_mul(2_654_435_761) % ranks;
            Some(u64::from(match level {
                Level::L2 | Level::L3 => seat / 4,
                Level::Numa => seat / 32,
                Level::Package => seat / 64,
                Level::Node => seat / 128,
                Level::Switch1 => seat / 1024,
                _ => 0,
            }))
        };
        let (mut places, mut order) = (vec![Place::default(); ranks as usize], vec![0; ranks as usize]);
        let groups = Groups::build_by(key, Levels::EVERY, &mut places, &mut order);
        assert_eq!(groups.levels().len(), 6);
        looks.get()
    }

    #[test]
    fn building_is_linear_in_levels_and_nearly_in_ranks() {
        let (some, twice) = (looks(4096), looks(8192));
        assert!(some <= 8 * 4096 * 2 * 12, "{some}");
        assert!(twice * 10 <= some * 23, "{some}, then {twice}");
        assert_eq!(size_of::<Place>() + size_of::<Rank>(), 12);
    }
}
