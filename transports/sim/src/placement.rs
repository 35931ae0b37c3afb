//! On which node each rank runs, and on which of its packages and NUMA nodes.

use crate::network::Unfit;
use unisono_kernel::Rank;
use unisono_kernel::region::layout::MAX_RANKS;

/// The node of each rank, and its NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// By rank.
    node_of: Vec<u32>,
    nodes: u32,
    /// By rank, the index of the NUMA node in the rank's node; empty: nodes have no NUMA nodes.
    numa_of: Vec<u32>,
    /// Packages of a node, and NUMA nodes in each.
    packages: u32,
    each: u32,
}

impl Placement {
    /// `ranks` ranks on `nodes` nodes, consecutive ranks on the same node, as evenly as possible.
    ///
    /// # Errors
    /// There are no ranks, too many ranks, no nodes, or more nodes than ranks.
    pub fn blocks(ranks: u32, nodes: u32) -> Result<Self, Unfit> {
        within("ranks", ranks.into(), MAX_RANKS)?;
        within("nodes", nodes.into(), ranks)?;
        let node = |rank| (u64::from(rank) * u64::from(nodes) / u64::from(ranks)) as u32;
        Ok(Self { node_of: (0..ranks).map(node).collect(), nodes, numa_of: Vec::new(), packages: 1, each: 1 })
    }

    /// `ranks` ranks on `nodes` nodes in turns: rank r is on node r modulo `nodes`.
    ///
    /// # Errors
    /// As [`Self::blocks`].
    pub fn in_turns(ranks: u32, nodes: u32) -> Result<Self, Unfit> {
        let blocks = Self::blocks(ranks, nodes)?;
        Ok(Self { node_of: (0..ranks).map(|rank| rank % nodes).collect(), ..blocks })
    }

    /// The same with `each` NUMA nodes in each node. The node's ranks fill them one after the other, as evenly as
    /// possible.
    ///
    /// # Errors
    /// `each` is 0, or more than there are ranks.
    pub fn with_numa(mut self, each: u32) -> Result<Self, Unfit> {
        within("NUMA nodes", each.into(), self.ranks())?;
        let mut here = vec![0u64; self.nodes as usize];
        let mut before = Vec::with_capacity(self.node_of.len());
        for &node in &self.node_of {
            let count = &mut here[node as usize];
            before.push(*count);
            *count += 1;
        }
        let numa = |(before, &node): (u64, &u32)| (before * u64::from(each) / here[node as usize]) as u32;
        self.numa_of = before.into_iter().zip(&self.node_of).map(numa).collect();
        (self.packages, self.each) = (1, each);
        Ok(self)
    }

    /// The same with `packages` packages in each node, of `each` NUMA nodes.
    ///
    /// # Errors
    /// `packages` or `each` is 0, or there are more NUMA nodes than ranks.
    pub fn with_packages(self, packages: u32, each: u32) -> Result<Self, Unfit> {
        within("packages", packages.into(), self.ranks())?;
        within("NUMA nodes", each.into(), self.ranks())?;
        let parted = self.with_numa(packages.saturating_mul(each))?;
        Ok(Self { packages, each, ..parted })
    }

    /// Rank r is on node `node_of[r]`.
    ///
    /// # Errors
    /// There are no ranks, or too many, or a node's number is not below the number of ranks.
    pub fn new(node_of: Vec<u32>) -> Result<Self, Unfit> {
        within("ranks", node_of.len() as u64, MAX_RANKS)?;
        let last = node_of.iter().copied().max().unwrap_or(0);
        within("nodes", u64::from(last) + 1, node_of.len() as u32)?;
        Ok(Self { node_of, nodes: last + 1, numa_of: Vec::new(), packages: 1, each: 1 })
    }

    /// Number of ranks.
    pub const fn ranks(&self) -> u32 {
        self.node_of.len() as u32
    }

    /// Number of nodes.
    pub const fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The index of `rank`'s NUMA node in its node; `None` if nodes have no NUMA nodes, or for a rank that does not
    /// exist.
    pub fn numa(&self, rank: Rank) -> Option<u32> {
        self.numa_of.get(rank as usize).copied()
    }

    /// Packages of a node.
    pub const fn packages(&self) -> u32 {
        self.packages
    }

    /// The index of `rank`'s package in its node.
    pub fn package(&self, rank: Rank) -> u32 {
        self.numa(rank).map_or(0, |numa| numa / self.each)
    }

    /// The node of `rank`; for a rank that does not exist, the number of nodes.
    pub fn node(&self, rank: Rank) -> u32 {
        self.node_of.get(rank as usize).copied().unwrap_or(self.nodes)
    }
}

/// Checks that `value` is at least 1 and at most `most`.
fn within(name: &str, value: u64, most: u32) -> Result<(), Unfit> {
    if (1..=most.into()).contains(&value) {
        return Ok(());
    }
    Err(Unfit { parameter: name.into(), value: value as f64, least: 1.0, most: most.into() })
}
