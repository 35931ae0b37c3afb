//! What the simulator knows of a machine: where its cores are, and what a line costs.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The most ranks of a run.
pub(super) const MOST: u32 = 256;

/// The fewest bytes that the caches of a core keep.
const LEAST: u64 = 64 << 10;

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
    /// Further ones of a reduction.
    #[serde(default)]
    pub op: f64,
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
    /// How long a group's way to others and to memory is busy with a line that comes, nanoseconds; 0: any number come at once.
    #[serde(default)]
    pub port: f64,
    /// How long the memory of a package is busy with a line, nanoseconds; 0: as above.
    #[serde(default)]
    pub channels: f64,
    /// Bytes of a core's first-level cache.
    #[serde(default)]
    pub first: u64,
    /// A copied line that its writer has in its first-level cache takes so many times the `stream` of the others.
    #[serde(default = "the_same")]
    pub fresh: f64,
    /// Bytes that the caches of a core keep: its own ones, and its share of those that it has in common with others. Left out: as many as need be.
    #[serde(default = "unlimited")]
    pub cache: u64,
}

const fn unlimited() -> u64 {
    u64::MAX
}

const fn the_same() -> f64 {
    1.0
}

/// The name of a machine, and the machine.
type Known = (&'static str, Machine);

const fn distance(latency: f64, stream: f64, busy: f64) -> Distance {
    Distance { latency, stream, busy }
}

/// A machine of one package or two, within which all cores are equally far apart. What is not said is assumed, the same of every
/// machine, in proportion to what was measured on the guests of docs/results.
const fn alike(cores: u32, packages: u32, near: Distance) -> Machine {
    Machine {
        cores,
        groups: 1,
        packages,
        hit: 1.2,
        call: 25.0,
        op: 10.0,
        atomic: 6.0,
        copy: 24.0,
        fold: 12.0,
        group: near,
        package: near,
        far: near,
        memory: distance(110.0, 5.0, 20.0),
        link: 0.6,
        port: 0.0,
        channels: channels(204.8),
        first: 32 * KIB,
        fresh: 1.5,
        cache: 4 << 20,
    }
}

/// How long a memory of so many gigabytes a second is busy with a line, if programs get four fifths of them.
const fn channels(bandwidth: f64) -> f64 {
    64.0 / (0.8 * bandwidth)
}

const KIB: u64 = 1 << 10;

/// Two Ice Lake Xeons of so many cores.
const fn xeons(cores: u32) -> Machine {
    let (far, memory) = (distance(108.0, 8.0, 30.0), distance(90.0, 5.0, 20.0));
    let cache = (1280 + 1536) * KIB;
    Machine { far, memory, link: 0.9, first: 48 * KIB, cache, ..alike(cores, 2, distance(51.0, 4.0, 12.0)) }
}

// Latencies between cores are medians of github.com/nviennot/core-to-core-latency (README.md, of a message by one
// compare-exchange), or as a machine's comment says. A core's caches are its level 2 and its share of the group's level 3, and the
// memory is what all channels of a package give together, by the vendors' tables: eight of DDR4-3200 (204.8 GB/s) for the EPYC 7R13 and
// Ice Lake; eight of DDR5-4800 (307.2 GB/s) for Sapphire Rapids and Graviton 3; twelve of them (460.8 GB/s) for the EPYC 9654 and 9754; a Grace's
// LPDDR5X (500 GB/s) and an A64FX's HBM2 (256 GB/s a group).
const KNOWN: [Known; 10] = [
    (
        "epyc-7r13x2",
        Machine {
            groups: 8,
            package: distance(107.0, 6.0, 20.0),
            far: distance(197.0, 10.0, 40.0),
            // 32 bytes a cycle of a fabric of 1.6 GHz.
            port: 1.25,
            cache: (512 + 4096) * KIB,
            ..alike(8, 2, distance(23.0, 2.5, 5.0))
        },
    ),
    // The same benchmark's file of two EPYC 9654 (github.com/KCORES/core-to-core-latency-plus, results/Dual AMD EPYC 9654
    // 96-Core Processor by-leavelet.csv): 24 to 34 ns within a group, 86 to 106 between groups, 189 to 199 between packages, in the
    // rows of the first 33 cores and of the last three.
    (
        "epyc-9654x2",
        Machine {
            groups: 12,
            package: distance(96.0, 6.0, 20.0),
            far: distance(194.0, 10.0, 40.0),
            // 32 bytes a cycle of a fabric of 1.8 GHz.
            port: 1.11,
            channels: channels(460.8),
            cache: (1024 + 4096) * KIB,
            ..alike(8, 2, distance(27.0, 2.5, 5.0))
        },
    ),
    // Two EPYC 9754: files of the same repository. Of one package (AMD EPYC 9754 128-Core Processor by-Entropy-Enthalpy.csv): 29 to 39 ns
    // within a group, 103 to 116 between groups, in the rows of the first 38 cores. Of two (Dual AMD EPYC 9754 128-Core Processor
    // by-fwyzard.csv) what is between packages: 200 to 213 in the rows around the middle; that file has 195 to 202 between groups of one
    // package, too.
    (
        "epyc-9754x2",
        Machine {
            groups: 16,
            package: distance(108.0, 6.0, 20.0),
            far: distance(207.0, 10.0, 40.0),
            // 32 bytes a cycle of a fabric of 1.8 GHz, for two groups of a die.
            port: 2.22,
            channels: channels(460.8),
            cache: (1024 + 2048) * KIB,
            ..alike(8, 2, distance(32.0, 2.5, 5.0))
        },
    ),
    ("xeon-8375cx2", xeons(32)),
    // Two Sapphire Rapids of 56 cores. Within a package it is a relative: the Xeon W9-3475X with 36 of the same cores (same
    // repository, 36 to 72 ns, most of them 45 to 65). Between packages: that of Graviton 4, 138.6 ns, which is called similar to
    // Sapphire Rapids' (chipsandcheese.com, Arm's Neoverse V2, in AWS's Graviton 4).
    (
        "xeon-8480x2",
        Machine {
            far: distance(139.0, 8.0, 30.0),
            link: 0.9,
            channels: channels(307.2),
            first: 48 * KIB,
            cache: (2048 + 1920) * KIB,
            ..alike(56, 2, distance(55.0, 4.0, 12.0))
        },
    ),
    // The cores on which a flat broadcast was published (docs/results/scale.md).
    ("xeon-24x2", xeons(24)),
    (
        "graviton3",
        Machine {
            call: 31.0,
            op: 12.5,
            first: 64 * KIB,
            atomic: 8.0,
            memory: distance(110.0, 4.0, 15.0),
            channels: channels(307.2),
            cache: (1024 + 512) * KIB,
            ..alike(64, 1, distance(46.0, 4.0, 12.0))
        },
    ),
    // A Grace of 72 cores. A relative: Graviton 4, which has the same cores, Neoverse V2, on another mesh (30 to 60 ns; same article).
    (
        "grace",
        Machine {
            call: 31.0,
            op: 12.5,
            first: 64 * KIB,
            atomic: 8.0,
            memory: distance(110.0, 4.0, 15.0),
            channels: channels(500.0),
            cache: (1024 + 1621) * KIB,
            ..alike(72, 1, distance(45.0, 4.0, 12.0))
        },
    ),
    // An A64FX: four groups of 12 cores, each with a level-2 cache. No latency between its cores was found. Within a group: an access of
    // that cache, 46 cycles of 2 GHz (a public model for SST, after Fujitsu's Microarchitecture Manual 1.8), twice, for a line that
    // another core has changed. Between groups: a relative, what a 7R13's groups take. Its lines have 256 bytes, here 64.
    (
        "a64fx",
        Machine {
            groups: 4,
            call: 50.0,
            op: 20.0,
            atomic: 12.0,
            copy: 16.0,
            fold: 8.0,
            package: distance(107.0, 6.0, 20.0),
            channels: channels(1024.0),
            first: 64 * KIB,
            cache: 683 * KIB,
            ..alike(12, 1, distance(46.0, 4.0, 12.0))
        },
    ),
    ("near-pair", alike(2, 1, distance(50.0, 4.0, 12.0))),
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
        for (name, value) in [("cores", self.cores), ("groups", self.groups), ("packages", self.packages)] {
            if !(1..=MOST).contains(&value) {
                return Err(Unfit::Count(name, value));
            }
        }
        let time = |name: &'static str, value: f64| {
            // Not a number is outside, too.
            if (0.0..=1e6).contains(&value) { Ok(()) } else { Err(Unfit::Time(name)) }
        };
        time("hit", self.hit)?;
        time("call", self.call)?;
        time("op", self.op)?;
        time("atomic", self.atomic)?;
        time("link", self.link)?;
        time("port", self.port)?;
        time("channels", self.channels)?;
        if self.cache < LEAST {
            return Err(Unfit::Cache(self.cache));
        }
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
        if !(1.0..=1e3).contains(&self.fresh) {
            return Err(Unfit::Fresh);
        }
        let most = self.all_cores().min(MOST);
        if ranks <= most { Ok(()) } else { Err(Unfit::Ranks { ranks, most }) }
    }
}

/// Why a machine can't run ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// This number is not from 1 to 256.
    Count(&'static str, u32),
    /// A time is not from 0 to 10⁶ nanoseconds.
    Time(&'static str),
    /// A rate is not from 10⁻³ to 10⁶ bytes in a nanosecond.
    Rate(&'static str),
    /// `fresh` is not from 1 to 1000.
    Fresh,
    /// The caches of a core keep fewer than 64 KiB.
    Cache(u64),
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
            Self::Count(name, value) => write!(f, "{name} is {value}, must be from 1 to {MOST}"),
            Self::Time(name) => write!(f, "{name} has a time that is not from 0 to 1000000 ns"),
            Self::Rate(name) => write!(f, "{name} is not from 0.001 to 1000000 bytes in a nanosecond"),
            Self::Fresh => f.write_str("fresh is not from 1 to 1000"),
            Self::Cache(bytes) => write!(f, "cache is {bytes}, must be at least {LEAST} bytes"),
            Self::Ranks { ranks, most } => {
                write!(f, "ranks is {ranks}, must be at most {most}: each has a core of its own")
            }
        }
    }
}

impl std::error::Error for Unfit {}
