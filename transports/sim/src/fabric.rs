//! The ports and links that messages share, and the path of a message through them.
//!
//! | message | path |
//! |---|---|
//! | inside a node | the sender's own port, the receiver's own port |
//! | between its packages | the same, between them the package's port out and the other one's port in |
//! | star | the switch, the receiving node's port |
//! | crossbar, or one leaf switch | the sending node's port, the receiving node's port |
//! | fat tree, both levels | the sending node's port, an up-link, a down-link, the receiving node's port |
//!
//! A message of k bytes occupies each port of its path for (k − 1)·G, and the next message may follow g later.
//! Messages are not stored on the way: the first byte goes on to the next port before the last one has arrived. L
//! passes before the last port. A network port may sit in another package than the rank: then the package's port comes
//! before or after it, and the socket's L passes once more. At packages' ports the socket's g and G count. Messages that wait at a port pass it in the order of their arrival there.

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
    ports: [Port; 6],
    len: usize,
    /// Times that it crosses from one package to another on the way between nodes.
    pub(crate) crossings: u32,
}

impl Path {
    fn of(ports: &[Port]) -> Self {
        let mut path = Self { ports: [Port(0); 6], len: ports.len(), crossings: 0 };
        for (to, port) in path.ports.iter_mut().zip(ports) {
            *to = *port;
        }
        path
    }

    /// The same, with a package's port before and after it.
    fn around(self, before: Option<Port>, after: Option<Port>) -> Self {
        let within = self.ports.get(..self.len).unwrap_or_default().iter().copied();
        let mut path = Self { ports: [Port(0); 6], len: 0, crossings: 0 };
        for port in before.into_iter().chain(within).chain(after) {
            if let Some(to) = path.ports.get_mut(path.len) {
                *to = port;
                path.len += 1;
            }
        }
        Self { crossings: (path.len - self.len) as u32, ..path }
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
    /// Network ports of all nodes, and of one.
    nics: usize,
    each: usize,
    ranks: usize,
    /// The first of the links, and the first of the packages' ports.
    links: usize,
    packages: usize,
    /// The moment from which each port is free: the ranks' ports to send, those to receive; the nodes' ports to send,
    /// those to receive; the links; each package's port out, and in.
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
        let each = network.nics.packages().len().max(1);
        let nics = nodes * each;
        let first = 2 * (ranks + nics);
        let packages = first + links;
        let all = packages + 2 * nodes * placement.packages() as usize;
        Self { network, nics, each, ranks, links: first, packages, free: vec![Time::ZERO; all] }
    }

    /// The network port of a rank: its index in the node, and whether it sits in another package.
    fn nic(&self, rank: Rank, placement: &Placement) -> (usize, bool) {
        let (all, package) = (self.network.nics.packages(), placement.package(rank));
        let near = || (0..).zip(all).filter(|(_, at)| u32::from(**at) == package).map(|(nic, _)| nic);
        match near().nth(rank as usize % near().count().max(1)) {
            Some(nic) => (nic, false),
            None => (rank as usize % self.each, !all.is_empty()),
        }
    }

    /// The class and the path of the messages of a channel.
    pub(crate) fn route(&self, Channel { from, to }: Channel, placement: &Placement) -> (Class, Path) {
        let (from_node, to_node) = (placement.node(from), placement.node(to));
        let (near, apart) = (placement.numa(from).is_some(), placement.package(from) != placement.package(to));
        let class = match self.network.class(from_node, to_node) {
            Class::Node if near && placement.numa(from) == placement.numa(to) => Class::Numa,
            Class::Node if apart && self.network.socket.is_some() => Class::Socket,
            class => class,
        };
        // A package's port: out, or in.
        let package = |rank: Rank, into: usize| {
            let before = placement.node(rank) as usize * placement.packages() as usize;
            Port(self.packages + 2 * (before + placement.package(rank) as usize) + into)
        };
        let own = [Port(from as usize), Port(self.ranks + to as usize)];
        match class {
            Class::Numa | Class::Node => return (class, Path::of(&own)),
            Class::Socket => {
                let [out, into] = own;
                return (class, Path::of(&[out, package(from, 0), package(to, 1), into]));
            }
            Class::Leaf | Class::Spine => {}
        }
        let ((nic_out, crosses_out), (nic_in, crosses_in)) = (self.nic(from, placement), self.nic(to, placement));
        let out = Port(2 * self.ranks + from_node as usize * self.each + nic_out);
        let into = Port(2 * self.ranks + self.nics + to_node as usize * self.each + nic_in);
        let path = match (class, self.network.topology) {
            (_, Topology::Star) => Path::of(&[Port(self.links), into]),
            (Class::Spine, Topology::FatTree { nodes_per_leaf, uplinks }) => {
                let link = |node: u32| {
                    self.links
                        + 2 * ((node / nodes_per_leaf) as usize * uplinks as usize + (to_node % uplinks) as usize)
                };
                Path::of(&[out, Port(link(from_node)), Port(link(to_node) + 1), into])
            }
            _ => Path::of(&[out, into]),
        };
        let crossing =
            |crosses: bool, rank, into| (crosses && self.network.socket.is_some()).then(|| package(rank, into));
        (class, path.around(crossing(crosses_out, from, 0), crossing(crosses_in, to, 1)))
    }

    /// The link whose g and G count at a port, for a message of this class.
    fn link(&self, port: Port, class: Class) -> &Link {
        match class {
            _ if port.0 >= self.packages => self.network.link(Class::Socket),
            Class::Socket => self.network.link(Class::Node),
            class => self.network.link(class),
        }
    }

    /// A message of `bytes` arrives at `port` of its path at `now`: returns when it passes, and occupies the port. Its last byte
    /// passes no sooner than the slowest port of its kind of path lets it.
    pub(crate) fn pass(&mut self, port: Port, class: Class, path: &Path, bytes: usize, now: Time) -> Passage {
        let (link, own) = (*self.link(port, class), self.link(Port(0), class).stream(bytes));
        let crosses = class == Class::Socket || path.crossings > 0;
        let slowest = if crosses { own.max(self.network.link(Class::Socket).stream(bytes)) } else { own };
        let Some(free) = self.free.get_mut(port.0) else { return Passage { first: now, last: now } };
        let first = now.max(*free);
        *free = first + link.stream(bytes) + Time::from_ns(link.gap);
        Passage { first, last: first + slowest }
    }
}
