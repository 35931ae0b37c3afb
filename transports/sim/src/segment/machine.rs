//! What the simulator knows of a machine: where its cores are, and what a line costs.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The most ranks of a run.
pub(super) const MOST: u32 = 256;

/// What it costs to get a line of 64 bytes from a place, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distance {
    /// One line alone.
    pub latency: f64,
    /// Each further one, where many are read or written one after the other.
    pub stream: f64,
    /// How long a line that is asked for serves no other request.
    pub busy: f64,
}

/// A machine with caches. Its cores are numbered so that those of a group and of a package follow one another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Cores that share a level-3 cache.
    pub cores: u32,
    /// Such groups in a package.
    pub groups: u32,
    /// Packages.
    pub packages: u32,
    /// An access of a line in the core's own cache, nanoseconds.
    pub hit: f64,
    /// The instructions of a call besides its accesses, nanoseconds.
    pub call: f64,
    /// An atomic operation besides its line's transfer, nanoseconds.
    pub atomic: f64,
    /// Bytes that a core copies within its own caches, in a nanosecond.
    pub copy: f64,
    /// Bytes of an operand that a core folds, in a nanosecond.
    pub fold: f64,
    /// From a core of the same group, or the cache that they share.
    pub group: Distance,
    /// From another group of the package.
    pub package: Distance,
    /// From another package.
    pub far: Distance,
    /// From memory.
    pub memory: Distance,
    /// How long the link between two packages is busy with a line, nanoseconds.
    pub link: f64,
}

/// The name of a machine, and the machine.
type Known = (&'static str, Machine);

const fn distance(latency: f64, stream: f64, busy: f64) -> Distance {
    Distance { latency, stream, busy }
}

// Latencies between cores are medians of github.com/nviennot/core-to-core-latency (README.md, of a message by one
// compare-exchange); everything else is assumed, in proportion to what was measured on the guests of docs/results.
const KNOWN: [Known; 4] = [
    (
        "epyc-7r13x2",
        Machine {
            cores: 8,
            groups: 8,
            packages: 2,
            hit: 1.2,
            call: 20.0,
            atomic: 6.0,
            copy: 24.0,
            fold: 12.0,
            group: distance(23.0, 2.5, 5.0),
            package: distance(107.0, 6.0, 20.0),
            far: distance(197.0, 10.0, 40.0),
            memory: distance(110.0, 5.0, 20.0),
            link: 0.6,
        },
    ),
    (
        "xeon-8375cx2",
        Machine {
            cores: 32,
            groups: 1,
            packages: 2,
            hit: 1.2,
            call: 20.0,
            atomic: 6.0,
            copy: 24.0,
            fold: 12.0,
            group: distance(51.0, 4.0, 12.0),
            package: distance(51.0, 4.0, 12.0),
            far: distance(108.0, 8.0, 30.0),
            memory: distance(90.0, 5.0, 20.0),
            link: 0.9,
        },
    ),
    (
        "graviton3",
        Machine {
            cores: 64,
            groups: 1,
            packages: 1,
            hit: 1.2,
            call: 25.0,
            atomic: 8.0,
            copy: 24.0,
            fold: 12.0,
            group: distance(46.0, 4.0, 12.0),
            package: distance(46.0, 4.0, 12.0),
            far: distance(46.0, 4.0, 12.0),
            memory: distance(110.0, 4.0, 15.0),
            link: 0.6,
        },
    ),
    (
        "near-pair",
        Machine {
            cores: 2,
            groups: 1,
            packages: 1,
            hit: 1.2,
            call: 20.0,
            atomic: 6.0,
            copy: 24.0,
            fold: 12.0,
            group: distance(50.0, 4.0, 12.0),
            package: distance(50.0, 4.0, 12.0),
            far: distance(50.0, 4.0, 12.0),
            memory: distance(110.0, 5.0, 20.0),
            link: 0.6,
        },
    ),
];

impl Machine {
    /// The names of the machines that are built in.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|(name, _)| *name)
    }

    /// The machine of this name.
    pub fn named(name: &str) -> Option<Self> {
        KNOWN.iter().find(|(known, _)| *known == name).map(|(_, machine)| machine.clone())
    }

    /// Number of cores; a number that is too large is cut off.
    pub const fn all_cores(&self) -> u32 {
        self.cores.saturating_mul(self.groups).saturating_mul(self.packages)
    }

    pub(super) const fn group_of(&self, core: usize) -> usize {
        core / self.cores as usize
    }

    pub(super) const fn package_of(&self, core: usize) -> usize {
        self.group_of(core) / self.groups as usize
    }

    /// The distance between two cores.
    pub(super) fn between(&self, one: usize, other: usize) -> &Distance {
        if self.group_of(one) == self.group_of(other) {
            &self.group
        } else if self.package_of(one) == self.package_of(other) {
            &self.package
        } else {
            &self.far
        }
    }

    /// Is this a machine, with a core for each of so many ranks?
    pub(super) fn check(&self, ranks: u32) -> Result<(), Unfit> {
        let least = |name: &'static str, value: u32| if value == 0 { Err(Unfit::Zero(name)) } else { Ok(()) };
        least("cores", self.cores)?;
        least("groups", self.groups)?;
        least("packages", self.packages)?;
        let time = |name: &'static str, value: f64| {
            // Not a number is outside, too.
            if (0.0..=1e6).contains(&value) { Ok(()) } else { Err(Unfit::Time(name)) }
        };
        time("hit", self.hit)?;
        time("call", self.call)?;
        time("atomic", self.atomic)?;
        time("link", self.link)?;
        for (name, distance) in
            [("group", self.group), ("package", self.package), ("far", self.far), ("memory", self.memory)]
        {
            [distance.latency, distance.stream, distance.busy].into_iter().try_for_each(|value| time(name, value))?;
        }
        for (name, rate) in [("copy", self.copy), ("fold", self.fold)] {
            if !(1e-3..=1e6).contains(&rate) {
                return Err(Unfit::Rate(name));
            }
        }
        let most = self.all_cores().min(MOST);
        if ranks <= most { Ok(()) } else { Err(Unfit::Ranks { ranks, most }) }
    }
}

/// Why a machine can't run ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// This number is zero.
    Zero(&'static str),
    /// A time is not from 0 to 10⁶ nanoseconds.
    Time(&'static str),
    /// A rate is not from 10⁻³ to 10⁶ bytes in a nanosecond.
    Rate(&'static str),
    /// There are more ranks than cores, or than a run can have.
    Ranks {
        /// The ranks.
        ranks: u32,
        /// The most that are possible.
        most: u32,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero(name) => write!(f, "{name} is 0, must be at least 1"),
            Self::Time(name) => write!(f, "{name} has a time that is not from 0 to 1000000 ns"),
            Self::Rate(name) => write!(f, "{name} is not from 0.001 to 1000000 bytes in a nanosecond"),
            Self::Ranks { ranks, most } => {
                write!(f, "ranks is {ranks}, must be at most {most}: each has a core of its own")
            }
        }
    }
}

impl std::error::Error for Unfit {}
