//! The ports and links that messages share, and which of them a message passes.
//!
//! | message | passes |
//! |---|---|
//! | inside a node | the sender's own port, the receiver's own port |
//! | star | the switch, the receiving node's port |
//! | crossbar, or one leaf switch | the sending node's port, the receiving node's port |
//! | fat tree, both levels | the sending node's port, an up-link, a down-link, the receiving node's port |
//!
//! A message of k bytes keeps each of them for (k − 1)·G and lets g pass behind it. Bytes are not stored on the way: the
//! first goes on while the last has not come. L lies before the last port. What waits at a port waits in the order of coming.

use crate::network::{Class, Link, Network, Topology};
use crate::placement::Placement;
use crate::time::Time;
use unisono_kernel::Rank;

/// A port or a link: its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port(usize);

/// The ports of a message, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    ports: [Port; 4],
    len: usize,
}

impl Path {
    fn of(ports: &[Port]) -> Self {
        let mut path = Self { ports: [Port(0); 4], len: ports.len() };
        for (to, port) in path.ports.iter_mut().zip(ports) {
            *to = *port;
        }
        path
    }

    pub(crate) fn port(&self, stage: usize) -> Option<Port> {
        self.ports.get(..self.len)?.get(stage).copied()
    }

    pub(crate) const fn last(&self) -> usize {
        self.len - 1
    }
}

/// When each port is free again.
#[derive(Debug)]
pub(crate) struct Fabric {
    network: Network,
    nodes: usize,
    ranks: usize,
    free: Vec<Time>,
}

impl Fabric {
    pub(crate) fn new(network: Network, placement: &Placement) -> Self {
        let (nodes, ranks) = (placement.nodes() as usize, placement.ranks() as usize);
        let links = match network.topology {
            Topology::Star => 1,
            Topology::Crossbar => 0,
            Topology::FatTree { nodes_per_leaf, uplinks } => {
                2 * nodes.div_ceil(nodes_per_leaf as usize) * uplinks as usize
            }
        };
        Self { network, nodes, ranks, free: vec![Time::ZERO; 2 * (ranks + nodes) + links] }
    }

    /// The class of a message between ranks, and its path.
    pub(crate) fn route(&self, (from, to): (Rank, Rank), placement: &Placement) -> (Class, Path) {
        let (from_node, to_node) = (placement.node(from), placement.node(to));
        let class = match self.network.class(from_node, to_node) {
            Class::Node if placement.numa(from).is_some() && placement.numa(from) == placement.numa(to) => Class::Numa,
            class => class,
        };
        let (out, into) =
            (Port(2 * self.ranks + from_node as usize), Port(2 * self.ranks + self.nodes + to_node as usize));
        let links = 2 * (self.ranks + self.nodes);
        let path = match (class, self.network.topology) {
            (Class::Numa | Class::Node, _) => Path::of(&[Port(from as usize), Port(self.ranks + to as usize)]),
            (_, Topology::Star) => Path::of(&[Port(links), into]),
            (Class::Spine, Topology::FatTree { nodes_per_leaf, uplinks }) => {
                let link = |node: u32| {
                    links + 2 * ((node / nodes_per_leaf) as usize * uplinks as usize + (to_node % uplinks) as usize)
                };
                Path::of(&[out, Port(link(from_node)), Port(link(to_node) + 1), into])
            }
            _ => Path::of(&[out, into]),
        };
        (class, path)
    }

    /// A message of `bytes` comes to `port` at `now`: when its first byte passes, and when its last.
    pub(crate) fn pass(&mut self, port: Port, link: &Link, bytes: usize, now: Time) -> (Time, Time) {
        let Some(free) = self.free.get_mut(port.0) else { return (now, now) };
        let first = now.max(*free);
        let last = first + link.stream(bytes);
        *free = last + Time::from_ns(link.gap);
        (first, last)
    }
}
