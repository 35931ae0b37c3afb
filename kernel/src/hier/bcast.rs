//! Broadcast over two levels: binomial messages between the nodes' leaders, then shared memory inside each node.
//!
//! ```text
//! level 1 (messages)       leader A ──► leader B        the root leads its own node
//! level 2 (shared memory)  A0 A1 A2     B0 B1 B2
//! ```

use crate::Rank;
use crate::buffer::Buf;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{Argument, Bound, Refusal};
use crate::machine::Then;
use crate::msg::bcast::binomial::Binomial;
use crate::select::{Bcast, BcastAlgorithm};

/// One process's part: a leader takes part in both levels, everyone else in the second alone.
pub type TwoLevel<'a> = Then<Option<Binomial>, Bcast<'a>>;

/// Where a process stands: equal numbers of ranks per node, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nodes {
    /// Number of nodes.
    pub nodes: u32,
    /// This process's node.
    pub node: u32,
}

/// Builds this process's part of a broadcast of `buffer` from global rank `root`, where global
/// rank = node · (ranks per node) + rank in the node. Messages go between nodes: the layer's rank is the node.
///
/// # Errors
/// `root` is beyond the last node's last rank, or what [`Bcast::new`] refuses.
///
/// # Safety
/// `buffer` is readable at the root, writable elsewhere, exclusive during `'a`, and outlives the message layer's use of it.
pub unsafe fn two_level<'a>(
    me: &mut Member,
    nodes: Nodes,
    buffer: Buf,
    root: Rank,
    algorithm: BcastAlgorithm,
) -> Result<TwoLevel<'a>, Refusal> {
    let ranks = u64::from(nodes.nodes) * u64::from(me.size());
    Refusal::check(Argument::Root, root.into(), Bound::Below(ranks))?;
    let (root_node, root_rank) = (root / me.size(), root % me.size());
    let leader = if nodes.node == root_node { root_rank } else { 0 };
    // SAFETY: the caller's promise.
    let data = unsafe { Data::from_raw(buffer, buffer.len() as u64, crate::datatype::Datatype::BYTE) }?;
    let inside = Bcast::new(me, data, leader, algorithm)?;
    let between = if me.rank() == leader {
        // SAFETY: the caller's promise; `inside` is polled only after `between` is done with the buffer.
        Some(unsafe { Binomial::new(nodes.node, nodes.nodes, buffer, root_node, me.operation()) }?)
    } else {
        None
    };
    Ok(Then::new(between, inside))
}
