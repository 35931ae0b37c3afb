//! Where processes run, from their bindings. Paper P3's groups are built from it (section 2.1).
//!
//! A process uses a unit of a level if all PUs on which it may run are in it. One that may run on every PU of a machine of
//! several cores is not bound: nothing is known of its place inside the node, so it takes part from the node level on.
//! A level is active if two or more cores share a unit of it.

use crate::binding::PuSet;
use crate::topology::{CacheLevel, Kind, Object, Topology};
use unisono_kernel::Rank;
use unisono_kernel::error::Refusal;
use unisono_kernel::topology::group::{Groups, Place};
use unisono_kernel::topology::{Level, Levels, Locality};

/// Levels inside a node, and the objects that are their units.
const INSIDE: [(Level, Kind); 4] = [
    (Level::L2, Kind::Cache(CacheLevel::new(2))),
    (Level::L3, Kind::Cache(CacheLevel::new(3))),
    (Level::Numa, Kind::NumaNode),
    (Level::Package, Kind::Package),
];

/// The locality of a process that may run on these PUs of a machine; `None`: it is not bound.
pub fn locality(topology: &Topology, pus: &PuSet) -> Option<Locality> {
    if pus.is_empty() || topology.pus().is_subset(pus) && topology.cores().len() > 1 {
        return None;
    }
    let unit = |kind| (0..).zip(topology.of(kind)).find(|(_, object)| pus.is_subset(&object.pus)).map(|(unit, _)| unit);
    let mut locality = Locality::NOWHERE;
    for (level, kind) in INSIDE {
        locality = unit(kind).map_or(locality, |unit| locality.with(level, unit));
    }
    locality = unit(Kind::Cache(CacheLevel::new(1))).map_or(locality, |l1| locality.with_l1(l1));
    Some(unit(Kind::Core).map_or(locality, |core| locality.with_core(core)))
}

/// The active levels of a machine: inside it, those with a unit that several cores share. Nodes and switches are always
/// active.
pub fn active(topology: &Topology) -> Levels {
    let cores = topology.cores();
    let shared = |object: &Object| object.pus.len() > 1 && !cores.iter().any(|core| object.pus.is_subset(core));
    let inside = INSIDE.into_iter().filter(|&(_, kind)| topology.of(kind).any(shared)).map(|(level, _)| level);
    inside.chain([Level::Node, Level::Switch1, Level::Switch2]).collect()
}

/// The processes of one or more nodes, by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processes {
    localities: Vec<Locality>,
    active: Levels,
    unbound: Vec<Rank>,
    nodes: u32,
}

impl Default for Processes {
    fn default() -> Self {
        Self { localities: Vec::new(), active: Levels::NONE, unbound: Vec::new(), nodes: 0 }
    }
}

impl Processes {
    /// Adds a node with its processes, which get the next ranks; `bindings` has the PUs on which each may run. `switch`
    /// is `None` if the network is not described.
    pub fn add_node(&mut self, topology: &Topology, switch: Option<u32>, bindings: &[PuSet]) {
        self.active = self.active.union(active(topology));
        let mut place = Locality::NOWHERE.with(Level::Node, self.nodes);
        if let Some(switch) = switch {
            place = place.with(Level::Switch1, switch).with(Level::Switch2, 0);
        }
        self.nodes += 1;
        for pus in bindings {
            let inside = locality(topology, pus);
            if inside.is_none() {
                self.unbound.push(self.localities.len() as Rank);
            }
            let outside = [Level::Node, Level::Switch1, Level::Switch2].into_iter();
            let units = outside.filter_map(|level| place.unit(level).map(|unit| (level, unit)));
            self.localities.push(units.fold(inside.unwrap_or_default(), |all, (level, unit)| all.with(level, unit)));
        }
    }

    /// Each process's locality, by rank.
    pub fn localities(&self) -> &[Locality] {
        &self.localities
    }

    /// The active levels of all nodes.
    pub const fn active(&self) -> Levels {
        self.active
    }

    /// Ranks that are not bound.
    pub fn unbound(&self) -> &[Rank] {
        &self.unbound
    }

    /// One line for a log, if some ranks are not bound.
    pub fn warning(&self) -> Option<String> {
        let ranks: PuSet = self.unbound.iter().copied().collect();
        let (all, some) = (self.localities.len(), self.unbound.len());
        (some > 0)
            .then(|| format!("{some} of {all} ranks are not bound ({ranks}): they take part from the node level on"))
    }

    /// The processes' groups on those active levels that are also in `levels`.
    ///
    /// # Errors
    /// There is no process.
    pub fn groups<'s>(&self, levels: Levels, storage: &'s mut Storage) -> Result<Groups<'s>, Refusal> {
        storage.places.resize(self.localities.len(), Place::default());
        storage.order.resize(self.localities.len(), 0);
        Groups::build(&self.localities, levels.intersection(self.active), &mut storage.places, &mut storage.order)
    }
}

/// The memory that groups are built in.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    places: Vec<Place>,
    order: Vec<Rank>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(list: &str) -> PuSet {
        PuSet::from_list(list).unwrap()
    }

    fn string(topology: &Topology, list: &str) -> Option<String> {
        locality(topology, &set(list)).map(|locality| locality.to_string())
    }

    #[test]
    fn a_process_uses_the_units_that_hold_all_its_pus() {
        let topology = Topology::synthetic("package:2 [numa] l3:2 l2:2 l1d:2 core:1 pu:2").unwrap();
        assert_eq!(string(&topology, "18").as_deref(), Some("SK1:L32:L24:L19:CR9:NM1"));
        assert_eq!(string(&topology, "18-19").as_deref(), Some("SK1:L32:L24:L19:CR9:NM1"));
        assert_eq!(string(&topology, "16,18").as_deref(), Some("SK1:L32:L24:NM1"));
        assert_eq!(string(&topology, "16-31").as_deref(), Some("SK1:NM1"));
        assert_eq!(string(&topology, "15-16").as_deref(), Some(""));
        assert_eq!(string(&topology, "0-31"), None);
        assert_eq!(string(&topology, "0-63"), None);
        assert_eq!(string(&topology, ""), None);
    }

    #[test]
    fn levels_that_several_cores_share_are_active() {
        let levels = |text| active(&Topology::synthetic(text).unwrap()).to_string();
        assert_eq!(levels("package:2 [numa] core:18"), "NM-SK-ND-SW-SW2");
        assert_eq!(levels("package:2 [numa] l3:2 l2:4 core:1 pu:2"), "L3-NM-SK-ND-SW-SW2");
        assert_eq!(levels("package:4 core:1 pu:2"), "NM-ND-SW-SW2");
        assert_eq!(levels("l2:2 pu:2"), "L2-NM-ND-SW-SW2");
        assert_eq!(levels("core:1 pu:2"), "ND-SW-SW2");
    }

    #[test]
    fn ranks_that_are_not_bound_are_named_in_one_line() {
        let topology = Topology::synthetic("package:2 [numa] core:2").unwrap();
        let mut processes = Processes::default();
        processes.add_node(&topology, None, &["0", "1", "2-3", "0-3"].map(set));
        assert_eq!(
            processes.warning().unwrap(),
            "1 of 4 ranks are not bound (3): they take part from the node level on"
        );
        processes.add_node(&topology, None, &["0-3", "1"].map(set));
        assert_eq!(
            processes.warning().unwrap(),
            "2 of 6 ranks are not bound (3-4): they take part from the node level on"
        );
        let mut storage = Storage::default();
        let groups = processes.groups(Levels::EVERY, &mut storage).unwrap();
        let text = |rank| groups.of(rank).map(|group| group.to_string()).collect::<Vec<_>>();
        assert_eq!(groups.levels(), [Level::Numa, Level::Node, Level::All]);
        assert_eq!(text(0), ["(0-1)", "(0,2-3)", "(0,4)"]);
        assert_eq!(text(3), ["(3)", "(0,2-3)"]);
        assert_eq!(text(5), ["(5)", "(4-5)"]);
        assert!(Processes::default().groups(Levels::EVERY, &mut Storage::default()).is_err());
    }

    #[test]
    fn this_machine_tells_where_a_bound_thread_is() {
        let topology = Topology::read();
        let all = topology.pus();
        let one: PuSet = all.iter().take(1).collect();
        let locality = locality(&topology, &one).unwrap();
        assert!(locality.core().is_some() && locality.unit(Level::Numa).is_some(), "{locality}");
        assert_eq!(super::locality(&topology, &all).is_none(), topology.cores().len() > 1);
    }
}
