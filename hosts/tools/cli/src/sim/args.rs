//! The command line of `unisono sim`.

use crate::args::{Collective, Method, parse_bytes, parse_levels};
use clap::ValueEnum;
use std::path::PathBuf;
use unisono_sim::Dropped;

/// How the nodes are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lowercase")]
pub(crate) enum Shape {
    /// A blocking switch: one message at a time
    Star,
    /// A switch that never blocks
    Crossbar,
    /// Two levels of switches
    FatTree,
}

/// On which nodes ranks are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lowercase")]
pub(crate) enum Placing {
    /// Ranks fill nodes one after the other
    Block,
    /// Consecutive ranks are on different nodes
    Turns,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Sim {
    /// The collective
    #[arg(value_enum)]
    pub(crate) collective: Collective,
    /// Number of ranks
    #[arg(short = 'n', long, default_value_t = 16, value_name = "N")]
    pub(crate) ranks: u32,
    /// Number of nodes; default: one per rank
    #[arg(long, value_name = "N")]
    pub(crate) nodes: Option<u32>,
    /// On which nodes ranks are placed
    #[arg(long, value_enum, default_value_t = Placing::Block, value_name = "HOW")]
    pub(crate) place: Placing,
    /// Packages in each node, which its ranks fill one after the other
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096), value_name = "N")]
    pub(crate) packages: u32,
    /// NUMA nodes in each package; default: none are told apart
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096), value_name = "N")]
    pub(crate) numa: Option<u32>,
    /// Packages of each node in which its network ports sit, as 0,1 or 0,0: ranks use those of their own package in turns, else
    /// all; default: one port, as near to all packages
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub(crate) nics: Vec<u8>,
    /// Levels for the `levels` algorithms, as NM-SK-ND-SW; default: all. With `--algorithm all`, adds these algorithms.
    /// Several sets, separated by commas, are tried one after the other; rows of all but the first end in @NAMES
    #[arg(long, value_delimiter = ',', value_parser = parse_levels, value_name = "NAMES")]
    pub(crate) levels: Vec<String>,
    /// Message bytes, separated by commas; KiB and MiB as 8K, 4M
    #[arg(long, value_delimiter = ',', value_parser = parse_bytes, default_values = ["8"], value_name = "LIST")]
    pub(crate) bytes: Vec<u64>,
    /// Algorithms over messages by name (docs/reference/algorithms.md), separated by commas; `all`: one row for each
    /// that applies; over the levels of the machine: levels[-SEGMENT][/SHAPE[:SHAPE...]][+TOP]
    /// (docs/explanation/topology.md)
    #[arg(long, value_delimiter = ',', default_values = ["auto"], value_name = "NAMES")]
    pub(crate) algorithm: Vec<String>,
    /// The root of a rooted collective
    #[arg(long, default_value_t = 0, value_name = "RANK")]
    pub(crate) root: u32,
    /// Ranks of one node, through shared memory: the algorithms over a segment, on a machine with caches
    #[arg(long, requires = "machine", conflicts_with_all = ["nodes", "place", "packages", "numa", "nics", "levels", "network",
        "nodes_per_leaf", "uplinks", "parameters", "seed", "delay", "skew", "stragglers", "slowdown", "drop", "compare"])]
    pub(crate) segment: bool,
    /// That machine, by its name or in JSON (docs/explanation/simulator.md)
    #[arg(long, requires = "segment", value_name = "NAME|FILE")]
    pub(crate) machine: Option<String>,
    /// With --segment: also the algorithms of other libraries, in the same model (barrier, bcast, allreduce); by name: xhc, xhc-flat,
    /// release-gather, coll-sm, tuned
    #[arg(long, requires = "segment")]
    pub(crate) rivals: bool,
    /// With --segment: definition of time
    #[arg(long, value_enum, default_value_t = Method::Window, requires = "segment")]
    pub(crate) method: Method,
    /// With --segment: our ranks' buffers lie in memory that all of them have mapped, and what does not go through posted lines is
    /// lent, not copied into the segment
    #[arg(long, requires = "segment")]
    pub(crate) lent: bool,
    /// How the nodes are connected
    #[arg(long, value_enum, default_value_t = Shape::Crossbar)]
    pub(crate) network: Shape,
    /// Fat tree: nodes at a switch of the lower level
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub(crate) nodes_per_leaf: u32,
    /// Fat tree: links from each of these switches to the upper level
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub(crate) uplinks: u32,
    /// The network in JSON, instead of the three options above: topology and LogGP's parameters
    /// (docs/explanation/simulator.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) parameters: Option<PathBuf>,
    /// Seed of all random choices; with several iterations, of the first one
    #[arg(long, default_value_t = 1, value_name = "S")]
    pub(crate) seed: u64,
    /// Runs, each with the next seed
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), value_name = "K")]
    pub(crate) iterations: u64,
    /// Each message is delayed by a random span of up to this, in nanoseconds
    #[arg(long, default_value_t = 0.0, value_name = "NS")]
    pub(crate) delay: f64,
    /// Each rank begins at a random moment of up to this, in nanoseconds
    #[arg(long, default_value_t = 0.0, value_name = "NS")]
    pub(crate) skew: f64,
    /// So many ranks, chosen by chance, are slow
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) stragglers: u32,
    /// A slow rank's overheads are this many times as long
    #[arg(long, default_value_t = 10.0, value_name = "FACTOR")]
    pub(crate) slowdown: f64,
    /// A rank that stops, at once or after so many polls: RANK or RANK:POLLS, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = parse_dropped, value_name = "LIST")]
    pub(crate) drop: Vec<Dropped>,
    /// One JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// In JSON, add the time at which each rank was done in the last run
    #[arg(long)]
    pub(crate) per_rank: bool,
    /// A Markdown table: for each length the best flat algorithm, and the best over levels in one piece and in segments
    #[arg(long, conflicts_with_all = ["json", "plot"], requires = "levels")]
    pub(crate) compare: bool,
    /// Draw the medians over the bytes into this file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
}

/// `3`, `3:2`.
fn parse_dropped(text: &str) -> Result<Dropped, String> {
    let (rank, polls) = text.split_once(':').unwrap_or((text, "0"));
    let wrong = |e| format!("{text:?} is not RANK or RANK:POLLS: {e}");
    Ok(Dropped { rank: rank.parse().map_err(wrong)?, polls: polls.parse().map_err(wrong)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_ranks() {
        assert_eq!(parse_dropped("3"), Ok(Dropped { rank: 3, polls: 0 }));
        assert_eq!(parse_dropped("3:2"), Ok(Dropped { rank: 3, polls: 2 }));
        for bad in ["", "x", "3:", "3:x", "-1"] {
            assert!(parse_dropped(bad).is_err(), "{bad}");
        }
    }
}
