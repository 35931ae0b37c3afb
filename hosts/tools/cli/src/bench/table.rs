//! A table of rows, for people to read.

use crate::args::Blocks;
use serde::{Deserialize, Serialize};
use std::fmt;
use unisono_plot::bytes;

/// One row of a report: an object of `--json`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) collective: String,
    /// For collectives with blocks: equal or unequal ones.
    pub(crate) blocks: Blocks,
    pub(crate) algorithm: String,
    /// Blocking, nonblocking or persistent.
    pub(crate) form: String,
    /// Is it the one chosen by default?
    pub(crate) default: bool,
    pub(crate) host: String,
    pub(crate) method: String,
    pub(crate) ranks: u32,
    pub(crate) bytes: u64,
    /// Do the buffers stay in the cache?
    pub(crate) warm: bool,
    pub(crate) lent: bool,
    pub(crate) iterations: u64,
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    pub(crate) max_ns: f64,
    /// The machine's floor, in nanoseconds; nothing where no formula is known.
    pub(crate) floor_ns: Option<f64>,
}

/// Rows of one report.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<Row>);

impl Table {
    pub(crate) fn push(&mut self, row: Row) {
        self.0.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<20} {:<14} {:<11} {:>8} {:<7} {:>5} {:>11} {:>11} {:>11} {:>10} {:>7}",
            "collective",
            "algorithm",
            "form",
            "bytes",
            "method",
            "ranks",
            "p50 µs",
            "p99 µs",
            "max µs",
            "floor µs",
            "÷ floor"
        )?;
        for row in &self.0 {
            writeln!(
                f,
                "{:<20} {:<14} {:<11} {:>8} {:<7} {:>5} {:>11.3} {:>11.3} {:>11.3} {:>10} {:>7}",
                row.collective,
                row.algorithm.clone() + if row.default { " *" } else { "" },
                row.form,
                bytes(row.bytes),
                row.method,
                row.ranks,
                row.p50_ns / 1e3,
                row.p99_ns / 1e3,
                row.max_ns / 1e3,
                row.floor_ns.map_or("-".into(), |floor| format!("{:.3}", floor / 1e3)),
                row.floor_ns.map_or("-".into(), |floor| format!("{:.2}", row.p50_ns / floor)),
            )?;
        }
        writeln!(f, "{} rows, each verified; * chosen by default", self.0.len())
    }
}
