//! The whole result of a run, as it is written to bench.json.

use crate::cells::{self, Cell, Preloaded, Summary};
use crate::configuration::{OURS, is_peer};
use crate::floor::Bcasts;
use crate::line::Survey;
use crate::machine::Machine;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

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

/// A collective, its bytes, its method and root, and a number of ranks.
type CellKey<'a> = (&'a str, u64, &'a str, &'a str, u32);

impl Sample {
    /// The sample's cell, and its configuration.
    fn cell_of(&self) -> (CellKey<'_>, &str) {
        let Row { collective, bytes, method, root, ranks, .. } = &self.row;
        ((collective, *bytes, method, root, *ranks), &self.configuration)
    }
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
fn counts(line: &Survey, sample: &Sample) -> bool {
    sample.row.line_ns.is_none_or(|ns| line.chosen.has(ns))
}

/// The samples of rows that were measured where rows are; of no cell for which a peer has only others: without it, the best
/// peer would be one of fewer.
pub(crate) fn counted(samples: &[Sample], line: Option<&Survey>) -> Vec<Sample> {
    let Some(line) = line else { return samples.to_vec() };
    let of_peer = |sample: &&Sample| is_peer(&sample.configuration);
    let here = |sample: &&Sample| counts(line, sample);
    let seen: HashSet<_> = samples.iter().filter(of_peer).filter(here).map(Sample::cell_of).collect();
    let missing = samples.iter().filter(of_peer).map(Sample::cell_of).filter(|key| !seen.contains(key));
    let missing: HashSet<_> = missing.map(|(cell, _)| cell).collect();
    samples.iter().filter(here).filter(|sample| !missing.contains(&sample.cell_of().0)).cloned().collect()
}

/// A number of bytes as people write it.
pub(crate) fn bytes(n: u64) -> String {
    match n {
        0 => String::new(),
        n => unisono_plot::bytes(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Cores;

    #[test]
    fn a_cell_counts_if_each_peer_has_a_row_in_the_range() {
        let survey = Survey::of(Cores::Near, vec![120.0; 9]).unwrap();
        let sample = |configuration: &str, bytes, line_ns| {
            let line_ns: Option<f64> = line_ns;
            let line_ns = line_ns.map_or_else(String::new, |ns| format!(r#","line_ns":{ns}"#));
            let row = format!(
                r#"{{"collective":"bcast","bytes":{bytes},"method":"osu","root":"fixed","ranks":2,"iterations":9,"p50_ns":1,"p99_ns":1,"max_ns":1{line_ns}}}"#
            );
            Sample { configuration: configuration.into(), round: 0, row: serde_json::from_str(&row).unwrap() }
        };
        let samples = [
            sample(OURS, 8, Some(121.0)),
            sample("ompi", 8, Some(119.0)),
            // Elsewhere once, and there in another round.
            sample("mpich", 8, Some(490.0)),
            sample("mpich", 8, Some(125.0)),
            // Elsewhere in all rounds.
            sample(OURS, 24, Some(121.0)),
            sample("ompi", 24, Some(119.0)),
            sample("mpich", 24, Some(490.0)),
            // Not measured.
            sample(OURS, 100, None),
            sample("ompi", 100, None),
        ];
        let told = |line| -> Vec<_> {
            let counted = counted(&samples, line);
            counted.iter().map(|sample| (sample.row.bytes, sample.configuration.clone())).collect()
        };
        let of = |bytes, name: &str| (bytes, name.to_owned());
        assert_eq!(told(Some(&survey)), [of(8, OURS), of(8, "ompi"), of(8, "mpich"), of(100, OURS), of(100, "ompi")]);
        assert_eq!(told(None).len(), samples.len());
    }
}
