//! The parameters of a network: LogGP's for each class of link, and a topology.
//!
//! In JSON (times in nanoseconds, `G` per byte):
//!
//! ```json
//! {"topology": {"fattree": {"nodes_per_leaf": 16, "uplinks": 8}},
//!  "numa":  {"L": 60,   "os": 50,  "or": 50,  "g": 20, "G": 0.05},
//!  "node":  {"L": 100,  "os": 50,  "or": 50,  "g": 20, "G": 0.05},
//!  "socket": {"L": 160, "os": 50,  "or": 50,  "g": 5,  "G": 0.02},
//!  "nics":  [0, 1],
//!  "leaf":  {"L": 1000, "os": 200, "or": 200, "g": 50, "G": 0.08},
//!  "spine": {"L": 1600, "os": 200, "or": 200, "g": 50, "G": 0.08}}
//! ```

use crate::time::Time;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// LogGP's parameters of a link (Alexandrov, Ionescu, Schauser, Scheiman: LogGP, 1995), in nanoseconds.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// L: latency, from a byte's departure to its arrival.
    #[serde(rename = "L", deserialize_with = "time")]
    pub latency: f64,
    /// o_s: overhead of the sending process, per message.
    #[serde(rename = "os", deserialize_with = "time")]
    pub send: f64,
    /// o_r: overhead of the receiving process, per message.
    #[serde(rename = "or", deserialize_with = "time")]
    pub receive: f64,
    /// g: gap at a port, from a message's last byte to the next message's first byte.
    #[serde(rename = "g", deserialize_with = "time")]
    pub gap: f64,
    /// G: gap per byte, for each byte after the first.
    #[serde(rename = "G", deserialize_with = "time_per_byte")]
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
            fits(format_args!("{class}.{name}"), value, most)?;
        }
        Ok(())
    }
}

/// The longest of a link's times, in nanoseconds: a second.
const SECOND: f64 = 1e9;
/// The most nanoseconds per byte: a thousand bytes per second.
const SLOWEST: f64 = 1e6;

/// Reads one of a link's times. A reader of text says where it stands, if it is out of range.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    within(f64::deserialize(from)?, "a link's time", SECOND)
}

/// Reads a link's time per byte.
fn time_per_byte<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    within(f64::deserialize(from)?, "a link's time per byte", SLOWEST)
}

/// Is a parameter between 0 and `most`? NaN is not in any range.
fn fits(parameter: impl fmt::Display, value: f64, most: f64) -> Result<(), Unfit> {
    let range = 0.0..=most;
    if range.contains(&value) {
        return Ok(());
    }
    Err(Unfit { parameter: parameter.to_string(), value, least: 0.0, most })
}

fn within<E: de::Error>(value: f64, what: &str, most: f64) -> Result<f64, E> {
    fits(what, value, most).map(|()| value).map_err(E::custom)
}

/// The class of link that a message takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Inside a NUMA node.
    Numa,
    /// Inside a node; if it has NUMA nodes, between two of them; if it has packages, inside one of them.
    Node,
    /// Between two packages of a node.
    Socket,
    /// Between nodes, through one switch.
    Leaf,
    /// Between nodes, through both levels of a fat tree.
    Spine,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 5] = [Self::Numa, Self::Node, Self::Socket, Self::Leaf, Self::Spine];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Numa => "numa",
            Self::Node => "node",
            Self::Socket => "socket",
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

/// The packages in which a node's network ports (NICs) sit, one entry for each port. None: one port, as near to all packages.
///
/// A rank uses the ports of its own package in turns. If that has none, it uses all of them in turns, and its messages
/// cross the socket's port, too.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct Nics {
    len: u8,
    packages: [u8; Self::MOST],
}

impl Nics {
    /// Most ports of a node.
    pub const MOST: usize = 8;

    /// The packages, in order.
    pub fn packages(&self) -> &[u8] {
        self.packages.get(..self.len.into()).unwrap_or_default()
    }
}

impl TryFrom<Vec<u8>> for Nics {
    type Error = Unfit;

    fn try_from(list: Vec<u8>) -> Result<Self, Unfit> {
        let mut nics = Self { len: list.len().min(Self::MOST) as u8, ..Self::default() };
        if list.len() > Self::MOST {
            let (value, most) = (list.len() as f64, Self::MOST as f64);
            return Err(Unfit { parameter: "number of nics".into(), value, least: 0.0, most });
        }
        nics.packages.iter_mut().zip(list).for_each(|(to, package)| *to = package);
        Ok(nics)
    }
}

impl From<Nics> for Vec<u8> {
    fn from(nics: Nics) -> Self {
        nics.packages().into()
    }
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
    /// The link between two packages of a node: L, o_s and o_r of a message between them; g and G at the port that all
    /// messages of a package share, beside `node`'s at the ranks' own ports. `None`, or left out in JSON: packages are
    /// not told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<Link>,
    /// The nodes' network ports.
    #[serde(default, skip_serializing_if = "is_one")]
    pub nics: Nics,
    /// The link between nodes, through one switch.
    pub leaf: Link,
    /// The link between nodes, through both levels of a fat tree.
    pub spine: Link,
}

/// For JSON: a node has one network port.
fn is_one(nics: &Nics) -> bool {
    *nics == Nics::default()
}

impl Network {
    /// Typical parameters: 100 Gb/s and a microsecond between nodes, shared memory inside a node.
    pub const fn new(topology: Topology) -> Self {
        let leaf = Link { latency: 1000.0, send: 200.0, receive: 200.0, gap: 50.0, gap_per_byte: 0.08 };
        let node = Link { latency: 100.0, send: 50.0, receive: 50.0, gap: 20.0, gap_per_byte: 0.05 };
        let numa = Some(Link { latency: 60.0, ..node });
        let socket = Some(Link { latency: 160.0, gap: 5.0, gap_per_byte: 0.02, ..node });
        let nics = Nics { len: 0, packages: [0; Nics::MOST] };
        Self { topology, numa, node, socket, nics, leaf, spine: Link { latency: 1600.0, ..leaf } }
    }

    /// The link of a class.
    pub const fn link(&self, class: Class) -> &Link {
        match (class, &self.numa, &self.socket) {
            (Class::Numa, Some(numa), _) => numa,
            (Class::Socket, _, Some(socket)) => socket,
            (Class::Numa | Class::Node | Class::Socket, ..) => &self.node,
            (Class::Leaf, ..) => &self.leaf,
            (Class::Spine, ..) => &self.spine,
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
        // What is left out is the same as `node`, which is checked under its own name.
        let given = |class: &Class| match class {
            Class::Numa => self.numa.is_some(),
            Class::Socket => self.socket.is_some(),
            _ => true,
        };
        for class in Class::ALL.into_iter().filter(given) {
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

    /// The same, for a network of `nodes` nodes, which may have only so many up-links together, of `packages` packages.
    pub(crate) fn check_for(&self, nodes: u32, packages: u32) -> Result<(), Unfit> {
        self.check()?;
        if let Some(&package) = self.nics.packages().iter().find(|package| u32::from(**package) >= packages) {
            let (value, most) = (package.into(), f64::from(packages) - 1.0);
            return Err(Unfit { parameter: "package of nics".into(), value, least: 0.0, most });
        }
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
