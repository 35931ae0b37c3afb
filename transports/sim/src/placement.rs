//! Which rank runs on which node, and in which of its NUMA nodes.

use crate::network::Unfit;
use unisono_kernel::Rank;
use unisono_kernel::region::layout::MAX_RANKS;

/// The node of each rank, and its NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    node_of: Vec<u32>,
    nodes: u32,
    /// Per rank, in its node; empty: nodes have no parts.
    numa_of: Vec<u32>,
}

impl Placement {
    /// `ranks` ranks in blocks on `nodes` nodes, as evenly as they go.
    ///
    /// # Errors
    /// No rank, too many ranks, no node, more nodes than ranks.
    pub fn blocks(ranks: u32, nodes: u32) -> Result<Self, Unfit> {
        within("ranks", ranks.into(), MAX_RANKS)?;
        within("nodes", nodes.into(), ranks)?;
        let node = |rank| (u64::from(rank) * u64::from(nodes) / u64::from(ranks)) as u32;
        Ok(Self { node_of: (0..ranks).map(node).collect(), nodes, numa_of: Vec::new() })
    }

    /// `ranks` ranks on `nodes` nodes in turns: neighbours are on different nodes.
    ///
    /// # Errors
    /// As [`Self::blocks`].
    pub fn in_turns(ranks: u32, nodes: u32) -> Result<Self, Unfit> {
        let blocks = Self::blocks(ranks, nodes)?;
        Ok(Self { node_of: (0..ranks).map(|rank| rank % nodes).collect(), ..blocks })
    }

    /// With `each` NUMA nodes in each node, which its ranks fill one after the other, as evenly as they go.
    ///
    /// # Errors
    /// None of them, or more than ranks.
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
        Ok(self)
    }

    /// Rank r on node `node_of[r]`.
    ///
    /// # Errors
    /// No rank, too many ranks, a node beyond the number of ranks.
    pub fn new(node_of: Vec<u32>) -> Result<Self, Unfit> {
        within("ranks", node_of.len() as u64, MAX_RANKS)?;
        let last = node_of.iter().copied().max().unwrap_or(0);
        within("nodes", u64::from(last) + 1, node_of.len() as u32)?;
        Ok(Self { node_of, nodes: last + 1, numa_of: Vec::new() })
    }

    /// Number of ranks.
    pub const fn ranks(&self) -> u32 {
        self.node_of.len() as u32
    }

    /// Number of nodes.
    pub const fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The NUMA node of `rank` in its node, if nodes have any.
    pub fn numa(&self, rank: Rank) -> Option<u32> {
        self.numa_of.get(rank as usize).copied()
    }

    /// The node of `rank`; of no rank: one that nobody is on.
    pub fn node(&self, rank: Rank) -> u32 {
        self.node_of.get(rank as usize).copied().unwrap_or(self.nodes)
    }
}

/// Is `value` one at least, and `most` at most?
fn within(name: &str, value: u64, most: u32) -> Result<(), Unfit> {
    if (1..=most.into()).contains(&value) {
        return Ok(());
    }
    Err(Unfit { parameter: name.into(), value: value as f64, least: 1.0, most: most.into() })
}
