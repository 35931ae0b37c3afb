//! The machine that is simulated: network, placement, and the groups of its levels.

use super::args::{Placing, Shape, Sim};
use crate::error::Failure;
use std::fs;
use std::path::Path;
use unisono_kernel::error::Refusal;
use unisono_kernel::topology::group::{self, Groups};
use unisono_kernel::topology::{Level, Levels, Locality};
use unisono_sim::{Network, Nics, Placement, Topology, Unfit};

/// The simulated machine, which all rows have in common.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) network: Network,
    pub(crate) placement: Placement,
    localities: Vec<Locality>,
    /// The sets of levels whose groups are tried, by their names; one at least.
    pub(crate) sets: Vec<Set>,
}

/// A set of levels, and the name that the user gave it.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) name: String,
    levels: Levels,
}

/// Storage of the groups.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Storage {
    places: Vec<group::Place>,
    order: Vec<u32>,
}

impl Machine {
    pub(crate) fn new(args: &Sim) -> Result<Self, Failure> {
        let topology = topology(args.network, args.nodes_per_leaf, args.uplinks);
        let network = network(topology, args.parameters.as_deref())?;
        let nodes = args.nodes.unwrap_or(args.ranks);
        let placement = match args.place {
            Placing::Block => Placement::blocks(args.ranks, nodes),
            Placing::Turns => Placement::in_turns(args.ranks, nodes),
        };
        let placement = placement.map_err(words)?;
        let placement = match (args.packages, args.numa.unwrap_or(1)) {
            (1, 1) => placement,
            (packages, each) => placement.with_packages(packages, each).map_err(words)?,
        };
        let network = match args.nics.as_slice() {
            [] => network,
            nics => Network { nics: Nics::try_from(nics.to_vec()).map_err(words)?, ..network },
        };
        let per_leaf = match network.topology {
            Topology::FatTree { nodes_per_leaf, .. } => nodes_per_leaf,
            Topology::Star | Topology::Crossbar => u32::MAX,
        };
        let locality = |rank| {
            let node = placement.node(rank);
            let place = Locality::NOWHERE.with(Level::Node, node).with(Level::Switch1, node / per_leaf);
            let place = place.with(Level::Switch2, 0);
            placement
                .numa(rank)
                .map_or(place, |numa| place.with(Level::Numa, numa).with(Level::Package, placement.package(rank)))
        };
        let localities = (0..args.ranks).map(locality).collect();
        let named = |e: &dyn std::fmt::Display| Failure::Words(format!("--levels: {e}"));
        let mut machine = Self { network, placement, localities, sets: Vec::new() };
        for name in &args.levels {
            let levels: Levels = name.parse().map_err(|e| named(&e))?;
            // A level that the user names and that no ranks share is a mistake.
            let alone = |level| machine.localities.iter().all(|locality| locality.unit(level).is_none());
            if let Some(level) = levels.iter().find(|level| alone(*level)) {
                return Err(named(&format!("this machine has no {level}: --packages, --numa")));
            }
            machine.sets.push(Set { name: name.clone(), levels });
        }
        if machine.sets.is_empty() {
            machine.sets.push(Set::every());
        }
        machine.drop_doubles()?;
        Ok(machine)
    }

    /// Leaves out each set that makes the same groups as an earlier one.
    fn drop_doubles(&mut self) -> Result<(), Refusal> {
        let mut kept: Vec<(Set, Storage)> = Vec::new();
        for set in std::mem::take(&mut self.sets) {
            let mut storage = Storage::default();
            self.groups(&set, &mut storage)?;
            if kept.iter().all(|(_, other)| *other != storage) {
                kept.push((set, storage));
            }
        }
        self.sets = kept.into_iter().map(|(set, _)| set).collect();
        Ok(())
    }

    /// A node for each rank, without switches.
    pub(super) fn apart(network: Network, ranks: u32) -> Result<Self, Failure> {
        let placement = Placement::blocks(ranks, ranks).map_err(words)?;
        let localities = vec![Locality::NOWHERE; ranks as usize];
        Ok(Self { network, placement, localities, sets: vec![Set::every()] })
    }

    /// Is it the first set, whose name rows leave out?
    pub(crate) fn is_first(&self, set: &Set) -> bool {
        self.sets.first().is_some_and(|first| std::ptr::eq(first, set))
    }

    /// The groups of a set of levels.
    pub(crate) fn groups<'s>(&self, set: &Set, storage: &'s mut Storage) -> Result<Groups<'s>, Refusal> {
        storage.places.resize(self.localities.len(), group::Place::default());
        storage.order.resize(self.localities.len(), 0);
        Groups::build(&self.localities, set.levels, &mut storage.places, &mut storage.order)
    }

    /// The kind of network, in words.
    pub(crate) fn kind(&self) -> String {
        match self.network.topology {
            Topology::Star => "star".into(),
            Topology::Crossbar => "crossbar".into(),
            Topology::FatTree { nodes_per_leaf, uplinks } => {
                format!("fat tree of {nodes_per_leaf} nodes and {uplinks} up-links per leaf switch")
            }
        }
    }
}

impl Set {
    /// The set of all levels.
    pub(crate) fn every() -> Self {
        Self { name: String::new(), levels: Levels::EVERY }
    }
}

/// The topology of a shape; `nodes_per_leaf` and `uplinks` are those of a fat tree.
pub(crate) const fn topology(shape: Shape, nodes_per_leaf: u32, uplinks: u32) -> Topology {
    match shape {
        Shape::Star => Topology::Star,
        Shape::Crossbar => Topology::Crossbar,
        Shape::FatTree => Topology::FatTree { nodes_per_leaf, uplinks },
    }
}

/// The network in the file `parameters`, if there is one; else `topology` with the default parameters.
pub(crate) fn network(topology: Topology, parameters: Option<&Path>) -> Result<Network, Failure> {
    let Some(file) = parameters else { return Ok(Network::new(topology)) };
    let named = |e: &dyn std::fmt::Display| Failure::Words(format!("{}: {e}", file.display()));
    let text = fs::read_to_string(file).map_err(|e| named(&e))?;
    let network: Network = serde_json::from_str(&text).map_err(|e| named(&e))?;
    network.check().map_err(|e| named(&e))?;
    Ok(network)
}

pub(super) fn words(error: Unfit) -> Failure {
    Failure::Words(error.to_string())
}
