//! The whole result of a run, as it is written to bench.json.

use crate::cells::{self, Cell, Preloaded, Summary};
use crate::configuration::OURS;
use crate::floor::Bcasts;
use crate::line::Survey;
use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// All collectives, in the order of tables.
pub(crate) const COLLECTIVES: [&str; 17] = [
    "barrier",
    "bcast",
    "reduce",
    "scatter",
    "scatterv",
    "gather",
    "gatherv",
    "allreduce",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
];

/// Does the collective have a root?
pub(crate) fn rooted(collective: &str) -> bool {
    matches!(collective, "bcast" | "reduce" | "scatter" | "scatterv" | "gather" | "gatherv")
}

/// A line of the C program.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) collective: String,
    pub(crate) bytes: u64,
    /// `window`, `rate`, `osu` or `imb`.
    pub(crate) method: String,
    /// `fixed`, `rotating` or `none`.
    pub(crate) root: String,
    pub(crate) ranks: u32,
    pub(crate) iterations: u64,
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    pub(crate) max_ns: f64,
    /// A cache line's round trip between ranks 0 and 1 after the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) line_ns: Option<f64>,
}

/// A row of a configuration in a round.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Sample {
    pub(crate) configuration: String,
    pub(crate) round: u32,
    #[serde(flatten)]
    pub(crate) row: Row,
}

/// A configuration that took part, or why it did not.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) title: String,
    /// The library's own name and version.
    pub(crate) library: Option<String>,
    /// Its commands, without the program's arguments.
    pub(crate) commands: Vec<String>,
    /// The numbers of ranks at which it was left out, with the reason.
    pub(crate) left_out: Vec<String>,
}

/// The floors of broadcasts in a round.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Floor {
    pub(crate) ranks: u32,
    pub(crate) round: u32,
    pub(crate) bcasts: Bcasts,
}

/// The whole result of a run.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) quick: bool,
    pub(crate) rounds: u32,
    /// Where the cores were.
    #[serde(default)]
    pub(crate) line: Option<Survey>,
    pub(crate) members: Vec<Member>,
    pub(crate) summaries: Vec<Summary>,
    /// The preloads, each compared with the underlying MPI.
    #[serde(default)]
    pub(crate) preloads: Vec<Preloaded>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) floors: Vec<Floor>,
    pub(crate) samples: Vec<Sample>,
}

impl Report {
    /// Is Unisono left out anywhere?
    pub(crate) fn ours_failed(&self) -> bool {
        self.members.iter().any(|member| member.name == OURS && !member.left_out.is_empty())
    }

    /// The numbers of ranks, ascending.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        cells::ranks(&self.cells)
    }

    /// Where the cores were, and how many rows were measured elsewhere.
    pub(crate) fn place(&self) -> String {
        let Some(line) = &self.line else { return "where the cores were is not known".into() };
        let elsewhere = self.samples.iter().filter(|sample| !counts(line, sample)).count();
        format!("{line}; {elsewhere} of {} rows were measured elsewhere and do not count", self.samples.len())
    }

    /// One line that sums it up.
    pub(crate) fn verdict(&self) -> String {
        let ours = || self.summaries.iter().filter(|summary| summary.configuration == OURS);
        let compared: usize = ours().map(|s| s.compared).sum();
        let losing: usize = ours().map(|s| s.losing.len()).sum();
        let failed = if self.ours_failed() { "; Unisono FAILED, see above" } else { "" };
        format!(
            "bench: {compared} cells compared in {} rounds, {losing} slower than the best peer{failed}",
            self.rounds
        )
    }
}

/// Was a row measured where rows are?
pub(crate) fn counts(line: &Survey, sample: &Sample) -> bool {
    sample.row.line_ns.is_none_or(|ns| line.has(ns))
}

/// A number of bytes as people write it.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        0 => String::new(),
        n => unisono_plot::bytes(n),
    }
}
