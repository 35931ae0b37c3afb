//! Rows for a person.

use super::Row;
use std::fmt;
use unisono_plot::bytes;

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
            "{:<14} {:<14} {:<11} {:>8} {:<7} {:>5} {:>11} {:>11} {:>11} {:>10} {:>7}",
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
                "{:<14} {:<14} {:<11} {:>8} {:<7} {:>5} {:>11.3} {:>11.3} {:>11.3} {:>10} {:>7}",
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
