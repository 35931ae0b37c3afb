//! The best flat algorithm of each length beside the best over levels.

use crate::bench::Row;
use std::fmt::Write;

/// A Markdown table. A length at which a flat algorithm wins is marked.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| bytes | best flat | µs | best over levels, in one piece | µs | in segments | µs | flat ÷ levels |\n\
         |--:|---|--:|---|--:|---|--:|--:|\n",
    );
    let mut lengths: Vec<u64> = rows.iter().map(|row| row.bytes).collect();
    lengths.dedup();
    for bytes in lengths {
        let best = |kind: fn(&str) -> bool| {
            let rows = rows.iter().filter(|row| row.bytes == bytes && kind(&row.algorithm));
            rows.min_by(|a, b| a.p50_ns.total_cmp(&b.p50_ns))
        };
        let flat = best(|name| !name.starts_with("levels"));
        let whole = best(|name| name.starts_with("levels") && !name.starts_with("levels-"));
        let parted = best(|name| name.starts_with("levels-"));
        let _ = write!(text, "| {bytes} |");
        for row in [flat, whole, parted] {
            let _ = match row {
                Some(row) => write!(text, " {} | {:.2} |", row.algorithm, row.p50_ns / 1e3),
                None => write!(text, " – | – |"),
            };
        }
        let levels = [whole, parted].into_iter().flatten().map(|row| row.p50_ns).reduce(f64::min);
        let _ = match (flat, levels) {
            (Some(flat), Some(levels)) => {
                let lost = if levels > flat.p50_ns { " lost" } else { "" };
                writeln!(text, " {:.2}{lost} |", flat.p50_ns / levels)
            }
            _ => writeln!(text, " – |"),
        };
    }
    text
}
