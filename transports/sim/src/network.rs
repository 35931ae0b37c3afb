//! The parameters of a network: LogGP's for each class of link, and a topology.
//!
//! In JSON (times in nanoseconds, `G` per byte):
//!
//! ```json
//! {"topology": {"fattree": {"nodes_per_leaf": 16, "uplinks": 8}},
//!  "numa":  {"L": 60,   "os": 50,  "or": 50,  "g": 20, "G": 0.05},
//!  "node":  {"L": 100,  "os": 50,  "or": 50,  "g": 20, "G": 0.05},
//!  "leaf":  {"L": 1000, "os": 200, "or": 200, "g": 50, "G": 0.08},
//!  "spine": {"L": 1600, "os": 200, "or": 200, "g": 50, "G": 0.08}}
//! ```

use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// LogGP's parameters of a link (Alexandrov, Ionescu, Schauser, Scheiman: LogGP, 1995), in nanoseconds.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// L: latency, from a byte's departure to its arrival.
    #[serde(rename = "L")]
    pub latency: f64,
    /// o_s: overhead of the sending process, per message.
    #[serde(rename = "os")]
    pub send: f64,
    /// o_r: overhead of the receiving process, per message.
    #[serde(rename = "or")]
    pub receive: f64,
    /// g: gap at a port, from a message's last byte to the next message's first byte.
    #[serde(rename = "g")]
    pub gap: f64,
    /// G: gap per byte, for each byte after the first.
    #[serde(rename = "G")]
    pub gap_per_byte: f64,
}

impl Link {
    /// The time from the first byte to the last at a port: (k − 1)·G. An empty message takes as long as one byte.
    pub(crate) fn stream(&self, bytes: usize) -> Time {
        Time::from_ns(bytes.saturating_sub(1) as f64 * self.gap_per_byte)
    }

    /// Checks that all parameters are in their ranges.
    fn check(&self, class: Class) -> Result<(), Unfit> {
        let Self { latency, send, receive, gap, gap_per_byte } = *self;
        let all = [
            ("L", latency, SECOND),
            ("os", send, SECOND),
            ("or", receive, SECOND),
            ("g", gap, SECOND),
            ("G", gap_per_byte, SLOWEST),
        ];
        for (name, value, most) in all {
            // NaN is not in any range.
            if !(0.0..=most).contains(&value) {
                return Err(Unfit { parameter: format!("{class}.{name}"), value, least: 0.0, most });
            }
        }
        Ok(())
    }
}

/// The longest of a link's times, in nanoseconds: a second.
const SECOND: f64 = 1e9;
/// The most nanoseconds per byte: a thousand bytes per second.
const SLOWEST: f64 = 1e6;

/// The class of link that a message takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Inside a NUMA node.
    Numa,
    /// Inside a node; if it has NUMA nodes, between two of them.
    Node,
    /// Between nodes, through one switch.
    Leaf,
    /// Between nodes, through both levels of a fat tree.
    Spine,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 4] = [Self::Numa, Self::Node, Self::Leaf, Self::Spine];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Numa => "numa",
            Self::Node => "node",
            Self::Leaf => "leaf",
            Self::Spine => "spine",
        })
    }
}

/// How the nodes are connected.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Topology {
    /// A blocking switch: only one message at a time passes it.
    Star,
    /// A switch that does not block: messages wait only at the ports of nodes.
    Crossbar,
    /// Two levels of switches.
    FatTree {
        /// Number of nodes at each switch of the lower level.
        nodes_per_leaf: u32,
        /// Number of links from each of these switches to the upper level, one to each switch there. A message to
        /// node n takes link n mod `uplinks`.
        uplinks: u32,
    },
}

/// A network.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// How the nodes are connected.
    pub topology: Topology,
    /// The link inside a NUMA node. `None`, or left out in JSON: the same as inside a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<Link>,
    /// The link inside a node.
    pub node: Link,
    /// The link between nodes, through one switch.
    pub leaf: Link,
    /// The link between nodes, through both levels of a fat tree.
    pub spine: Link,
}

impl Network {
    /// Typical parameters: 100 Gb/s and a microsecond between nodes, shared memory inside a node.
    pub const fn new(topology: Topology) -> Self {
        let leaf = Link { latency: 1000.0, send: 200.0, receive: 200.0, gap: 50.0, gap_per_byte: 0.08 };
        let node = Link { latency: 100.0, send: 50.0, receive: 50.0, gap: 20.0, gap_per_byte: 0.05 };
        let numa = Some(Link { latency: 60.0, ..node });
        Self { topology, numa, node, leaf, spine: Link { latency: 1600.0, ..leaf } }
    }

    /// The link of a class.
    pub const fn link(&self, class: Class) -> &Link {
        match (class, &self.numa) {
            (Class::Numa, Some(numa)) => numa,
            (Class::Numa | Class::Node, _) => &self.node,
            (Class::Leaf, _) => &self.leaf,
            (Class::Spine, _) => &self.spine,
        }
    }

    /// The class of a message from node `from` to node `to`.
    pub(crate) const fn class(&self, from: u32, to: u32) -> Class {
        match self.topology {
            _ if from == to => Class::Node,
            Topology::FatTree { nodes_per_leaf, .. } if from / nodes_per_leaf != to / nodes_per_leaf => Class::Spine,
            _ => Class::Leaf,
        }
    }

    /// Checks that all parameters are in their ranges.
    ///
    /// # Errors
    /// The first parameter that is not: a time that is negative, too large or not a number; a fat tree without nodes
    /// or up-links, or with too many.
    pub fn check(&self) -> Result<(), Unfit> {
        // A `numa` that is left out is the same as `node`, which is checked under its own name.
        for class in Class::ALL.into_iter().filter(|class| *class != Class::Numa || self.numa.is_some()) {
            self.link(class).check(class)?;
        }
        if let Topology::FatTree { nodes_per_leaf, uplinks } = self.topology {
            for (name, value) in [("nodes_per_leaf", nodes_per_leaf), ("uplinks", uplinks)] {
                if !(1..=MOST_LINKS).contains(&value) {
                    let (value, most) = (value.into(), MOST_LINKS.into());
                    return Err(Unfit { parameter: format!("fattree.{name}"), value, least: 1.0, most });
                }
            }
        }
        Ok(())
    }

    /// The same, for a network of `nodes` nodes, which may have only so many up-links together.
    pub(crate) fn check_for(&self, nodes: u32) -> Result<(), Unfit> {
        self.check()?;
        if let Topology::FatTree { nodes_per_leaf, uplinks } = self.topology {
            let most = MOST_LINKS.min(MOST_ALL_LINKS / nodes.div_ceil(nodes_per_leaf).max(1));
            if uplinks > most {
                let (value, most) = (uplinks.into(), most.into());
                return Err(Unfit { parameter: "fattree.uplinks".into(), value, least: 1.0, most });
            }
        }
        Ok(())
    }
}

/// Most links of one switch.
const MOST_LINKS: u32 = 1 << 16;
/// Most up-links of all switches together: each is a word of the simulator's memory.
const MOST_ALL_LINKS: u32 = 1 << 24;

/// A parameter that is out of its range.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfit {
    /// Its name, such as `leaf.G`.
    pub parameter: String,
    /// Its value.
    pub value: f64,
    /// The least value that it may have.
    pub least: f64,
    /// The largest value that it may have.
    pub most: f64,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parameter, value, least, most } = self;
        write!(f, "{parameter} is {value}, must be between {least} and {most}")
    }
}

impl std::error::Error for Unfit {}
