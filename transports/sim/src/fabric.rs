//! The ports and links that messages share, and the path of a message through them.
//!
//! | message | path |
//! |---|---|
//! | inside a node | the sender's own port, the receiver's own port |
//! | star | the switch, the receiving node's port |
//! | crossbar, or one leaf switch | the sending node's port, the receiving node's port |
//! | fat tree, both levels | the sending node's port, an up-link, a down-link, the receiving node's port |
//!
//! A message of k bytes occupies each port of its path for (k − 1)·G, and the next message may follow g later.
//! Messages are not stored on the way: the first byte goes on to the next port before the last one has arrived. L
//! passes before the last port. Messages that wait at a port pass it in the order of their arrival there.

use crate::network::{Class, Link, Network, Topology};
use crate::placement::Placement;
use crate::time::Time;
use unisono_kernel::Rank;

/// An ordered pair of ranks: messages go from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Channel {
    pub(crate) from: Rank,
    pub(crate) to: Rank,
}

/// A port or a link: its index in [`Fabric::free`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port(usize);

/// The ports that a message passes, in order.
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

    /// The port at this index of the path.
    pub(crate) fn port(&self, stage: usize) -> Option<Port> {
        self.ports.get(..self.len)?.get(stage).copied()
    }

    /// The index of the last port.
    pub(crate) const fn last(&self) -> usize {
        self.len - 1
    }
}

/// When a message passes a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    /// The moment of its first byte.
    pub(crate) first: Time,
    /// The moment of its last byte.
    pub(crate) last: Time,
}

/// All ports and links.
#[derive(Debug)]
pub(crate) struct Fabric {
    network: Network,
    nodes: usize,
    ranks: usize,
    /// The moment from which each port is free: the ranks' ports to send, those to receive; the nodes' ports to send,
    /// those to receive; the links.
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

    /// The class and the path of the messages of a channel.
    pub(crate) fn route(&self, Channel { from, to }: Channel, placement: &Placement) -> (Class, Path) {
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

    /// A message of `bytes` arrives at `port` at `now`: returns when it passes, and occupies the port.
    pub(crate) fn pass(&mut self, port: Port, link: &Link, bytes: usize, now: Time) -> Passage {
        let Some(free) = self.free.get_mut(port.0) else { return Passage { first: now, last: now } };
        let first = now.max(*free);
        let last = first + link.stream(bytes);
        *free = last + Time::from_ns(link.gap);
        Passage { first, last }
    }
}
