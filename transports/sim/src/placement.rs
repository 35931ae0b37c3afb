//! Which rank runs on which node.

use crate::network::Unfit;
use unisono_kernel::Rank;
use unisono_kernel::region::layout::MAX_RANKS;

/// The node of each rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    node_of: Vec<u32>,
    nodes: u32,
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
        Ok(Self { node_of: (0..ranks).map(node).collect(), nodes })
    }

    /// Rank r on node `node_of[r]`.
    ///
    /// # Errors
    /// No rank, too many ranks, a node beyond the number of ranks.
    pub fn new(node_of: Vec<u32>) -> Result<Self, Unfit> {
        within("ranks", node_of.len() as u64, MAX_RANKS)?;
        let last = node_of.iter().copied().max().unwrap_or(0);
        within("nodes", u64::from(last) + 1, node_of.len() as u32)?;
        Ok(Self { node_of, nodes: last + 1 })
    }

    /// Number of ranks.
    pub const fn ranks(&self) -> u32 {
        self.node_of.len() as u32
    }

    /// Number of nodes.
    pub const fn nodes(&self) -> u32 {
        self.nodes
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
