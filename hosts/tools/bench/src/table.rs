//! The report as a table for the terminal.

use crate::cells::{Cell, Preloaded, Slower, Summary, VIEWS, View};
use crate::configuration::OURS;
use crate::report::{Report, bytes};
use std::fmt;

/// The columns of a time; names of configurations have 13 letters at most.
const TIME: usize = 14;

/// Shows a report.
pub(crate) struct Table<'r>(pub(crate) &'r Report);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = &self.0.machine;
        writeln!(f, "{}, {}, Linux {}, {} cores", machine.date, machine.processor, machine.kernel, machine.cores)?;
        writeln!(f, "load {}; {} rounds", machine.load, self.0.rounds)?;
        writeln!(f, "cores: {}", self.0.place())?;
        for ranks in self.0.ranks() {
            for view in VIEWS {
                self.view(f, view, ranks)?;
            }
        }
        writeln!(f)?;
        self.0.summaries.iter().try_for_each(|summary| self.summary(f, summary))?;
        self.0.preloads.iter().try_for_each(|preloaded| preload(f, preloaded))?;
        for member in &self.0.members {
            for reason in &member.left_out {
                writeln!(f, "left out: {}, {reason}", member.title)?;
            }
        }
        Ok(())
    }
}

/// Microseconds in seven columns.
pub(crate) fn micros(ns: f64) -> String {
    let us = ns / 1e3;
    let digits = if us < 10.0 {
        3
    } else if us < 1000.0 {
        1
    } else {
        0
    };
    format!("{us:.digits$}")
}

pub(crate) fn quotient(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.2}"))
}

/// The cells in one line.
pub(crate) fn list(slower: &[Slower]) -> String {
    slower.iter().map(Slower::to_string).collect::<Vec<_>>().join("; ")
}

fn preload(f: &mut fmt::Formatter<'_>, preloaded: &Preloaded) -> fmt::Result {
    let Preloaded { configuration, underlying, ranks, compared, mean, slower } = preloaded;
    let (mean, count) = (quotient(*mean), slower.len());
    writeln!(
        f,
        "{ranks} ranks, {configuration} against {underlying}: {compared} cells compared; geometric mean {mean}; {count} slower"
    )?;
    slower.iter().try_for_each(|cell| writeln!(f, "  slower: {cell}"))
}

impl Table<'_> {
    fn view(&self, f: &mut fmt::Formatter<'_>, view: View, ranks: u32) -> fmt::Result {
        let cells: Vec<&Cell> = self.0.cells.iter().filter(|cell| cell.ranks == ranks && view.has(cell)).collect();
        if cells.is_empty() {
            return Ok(());
        }
        let there = |name: &&str| cells.iter().any(|cell| cell.times.contains_key(*name));
        let peers = self.0.members.iter().map(|member| member.name.as_str()).filter(|name| *name != OURS);
        let peers: Vec<&str> = peers.filter(there).collect();
        write!(
            f,
            "\n{ranks} ranks, {}: median µs, * best peer\n{:<21}{:>8}{OURS:>TIME$}",
            view.name, "collective", "bytes"
        )?;
        peers.iter().try_for_each(|name| write!(f, "{name:>TIME$}"))?;
        writeln!(f, "{:>8}{:>9}{:>9}", "ratio", "spread", "÷ floor")?;
        for cell in cells {
            let time = |name: &str| {
                let star = if cell.best_peer.as_deref() == Some(name) { "*" } else { "" };
                cell.times.get(name).map_or_else(|| "-".into(), |time| micros(time.p50_ns) + star)
            };
            write!(f, "{:<21}{:>8}{:>TIME$}", cell.collective, bytes(cell.bytes), time(OURS))?;
            peers.iter().try_for_each(|name| write!(f, "{:>TIME$}", time(name)))?;
            let spread = cell.times.get(OURS).map(|time| time.spread);
            writeln!(f, "{:>8}{:>9}{:>9}", quotient(cell.ratio), quotient(spread), quotient(cell.over_floor))?;
        }
        Ok(())
    }

    fn summary(&self, f: &mut fmt::Formatter<'_>, summary: &Summary) -> fmt::Result {
        let Summary { configuration, view, ranks, compared, all, fastest, rooted, all_to_all, losing } = summary;
        let [all, fastest, rooted, all_to_all] = [all, fastest, rooted, all_to_all].map(|mean| quotient(*mean));
        let means =
            format!("geometric mean {all} (fastest rounds {fastest}), rooted {rooted}, all-to-all {all_to_all}");
        let count = losing.len();
        writeln!(f, "{configuration}, {ranks} ranks, {view}: {compared} cells compared; {means}; {count} losing")?;
        losing.iter().try_for_each(|cell| {
            let size = bytes(cell.bytes);
            writeln!(f, "  losing: {} {size} {:.2} against {}", cell.collective, cell.ratio, cell.best_peer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preload_has_one_line_and_names_what_is_slower() {
        let report: Report = serde_json::from_str(include_str!("../tests/canned.json")).unwrap();
        let text = Table(&report).to_string();
        let line = "2 ranks, ompi+unisono against ompi: 2 cells compared; geometric mean 0.82; 1 slower\n  slower: bcast 8 B rate rotating 1.13\n";
        assert!(text.contains(line), "{text}");
    }
}
