//! The report as a page of docs/: ratios by collective and size, geometric means, and the cells that lose.

use crate::cells::{Cell, Preloaded, Summary, VIEWS, View};
use crate::configuration::OURS;
use crate::report::{COLLECTIVES, Report, bytes};
use crate::table::{list, micros, quotient};
use std::collections::BTreeSet;
use std::fmt;

/// A ratio that is not level.
const CLEARLY: f64 = 1.05;

/// Shows a report in Markdown.
pub(crate) struct Digest<'r> {
    pub(crate) report: &'r Report,
    /// The command line that measured it.
    pub(crate) command: &'r str,
}

impl fmt::Display for Digest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, command } = self;
        let machine = &report.machine;
        writeln!(
            f,
            "# Result of a benchmark run\n\nWritten by `{command}`; what it means: [benchmark](benchmark.md).\n"
        )?;
        writeln!(
            f,
            "{}, {}, {} cores, Linux {}, load {}; {} rounds.",
            machine.date, machine.processor, machine.cores, machine.kernel, machine.load, report.rounds
        )?;
        writeln!(f, "\nCores: {}.", report.place())?;
        let head =
            "| p | view | configuration | cells | mean | fastest rounds | rooted | all-to-all | losing | above 1.05 |";
        writeln!(f, "\n{head}\n|---|---|---|---|---|---|---|---|---|---|")?;
        report.summaries.iter().filter(|summary| summary.compared > 0).try_for_each(|summary| {
            let Summary { configuration, view, ranks, compared, all, fastest, rooted, all_to_all, losing } = summary;
            let means = [all, fastest, rooted, all_to_all].map(|mean| quotient(*mean)).join(" | ");
            let (count, clearly) = (losing.len(), losing.iter().filter(|cell| cell.ratio > CLEARLY).count());
            writeln!(f, "| {ranks} | {view} | {configuration} | {compared} | {means} | {count} | {clearly} |")
        })?;
        writeln!(f, "\n## Cells that lose\n\nCollective, size, ratio, best peer.\n")?;
        writeln!(f, "| p | view | configuration | cells |\n|---|---|---|---|")?;
        for Summary { configuration, view, ranks, losing, .. } in &report.summaries {
            let cells = losing
                .iter()
                .map(|cell| format!("{} {} {:.2} {}", cell.collective, bytes(cell.bytes), cell.ratio, cell.best_peer));
            let cells = cells.collect::<Vec<_>>().join("; ");
            if !cells.is_empty() {
                writeln!(f, "| {ranks} | {view} | {configuration} | {cells} |")?;
            }
        }
        if !report.preloads.is_empty() {
            writeln!(f, "\n## Preloaded under an MPI: with ÷ without\n")?;
            writeln!(
                f,
                "| p | configuration | against | cells | mean | slower | which |\n|---|---|---|---|---|---|---|"
            )?;
        }
        for Preloaded { configuration, underlying, ranks, compared, mean, slower } in &report.preloads {
            let (mean, count, which) = (quotient(*mean), slower.len(), list(slower));
            writeln!(f, "| {ranks} | {configuration} | {underlying} | {compared} | {mean} | {count} | {which} |")?;
        }
        for ranks in report.ranks() {
            VIEWS.iter().try_for_each(|view| self.view(f, *view, ranks))?;
        }
        let left_out = report.members.iter().flat_map(|m| m.left_out.iter().map(move |reason| (&m.title, reason)));
        left_out.into_iter().try_for_each(|(title, reason)| writeln!(f, "\nLeft out: {title}, {reason}"))
    }
}

impl Digest<'_> {
    /// A row per collective, a column per size: the ratio, and our time.
    fn view(&self, f: &mut fmt::Formatter<'_>, view: View, ranks: u32) -> fmt::Result {
        let cells: Vec<&Cell> = self.report.cells.iter().filter(|cell| cell.ranks == ranks && view.has(cell)).collect();
        let sizes: BTreeSet<u64> = cells.iter().map(|cell| cell.bytes).collect();
        if cells.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n## p = {ranks}, {}: ours ÷ best peer (ours, µs)\n", view.name)?;
        let head = |size: &u64| if *size == 0 { "none".into() } else { bytes(*size) };
        writeln!(f, "| collective | {} |", sizes.iter().map(head).collect::<Vec<_>>().join(" | "))?;
        writeln!(f, "|---|{}", "---|".repeat(sizes.len()))?;
        for name in COLLECTIVES.iter().filter(|name| cells.iter().any(|cell| cell.collective == **name)) {
            write!(f, "| {name} |")?;
            for size in &sizes {
                let cell = cells.iter().find(|cell| cell.collective == *name && cell.bytes == *size);
                let ours = cell.and_then(|cell| cell.times.get(OURS).map(|time| (cell, time)));
                match ours {
                    Some((cell, time)) => {
                        write!(f, " {} ({}) |", quotient(cell.ratio), micros(time.p50_ns))?;
                    }
                    None => write!(f, " |")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preloads_have_a_table_of_their_own() {
        let mut report: Report = serde_json::from_str(include_str!("../tests/canned.json")).unwrap();
        let text = Digest { report: &report, command: "bench" }.to_string();
        let row = "| 2 | ompi+unisono | ompi | 2 | 0.82 | 1 | bcast 8 B rate rotating 1.13 |\n";
        assert!(text.contains(row), "{text}");
        report.preloads.clear();
        let text = Digest { report: &report, command: "bench" }.to_string();
        assert!(!text.contains("Preloaded"), "{text}");
    }
}
