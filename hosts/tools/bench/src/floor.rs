//! Floors of cells, from those that `unisono bench bcast` measures (docs/reference/measures.md).
//!
//! | collective | ranks | floor |
//! |---|---|---|
//! | bcast | any | F(m), measured |
//! | barrier, allreduce ≤ 48 B | ≤ cores | ⌈log2 p⌉ · F(8 B): rounds of line transfers |
//! | barrier, allreduce ≤ 48 B | > cores | F(8 B): the ranks of a core yield once each |
//! | scatter(v), gather(v), allgather(v), alltoall(v, w) | 2 ≤ cores | F(m): a block crosses to the other rank |
//!
//! For other cells no formula is known yet: they have no floor.

use crate::launch;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Floors of broadcasts, in nanoseconds by bytes.
pub(crate) type Bcasts = BTreeMap<u64, f64>;

/// A small message: it fits in a line.
const SMALL: u64 = 8;
/// The largest operand of an allreduce that travels in a line.
const POSTED: u64 = 48;

#[derive(Debug, Deserialize)]
struct Row {
    bytes: u64,
    floor_ns: f64,
}

/// Measures.
pub(crate) fn measure(unisono: &Path, ranks: u32, bytes: &[u64], timeout: Duration) -> Result<Bcasts, String> {
    let list: Vec<String> = [SMALL].iter().chain(bytes).map(u64::to_string).collect();
    let mut command = Command::new(unisono);
    command.args(["bench", "bcast", "-n", &ranks.to_string(), "--bytes", &list.join(",")]);
    command.args(["--method", "window", "--iterations", "1", "--json"]);
    let rows: Vec<Row> = launch::lines(command, timeout)?;
    Ok(rows.into_iter().map(|row| (row.bytes, row.floor_ns)).collect())
}

/// The floor of a cell, where a formula is known.
pub(crate) fn of(collective: &str, bytes: u64, ranks: u32, crowded: bool, bcasts: &Bcasts) -> Option<f64> {
    let small = bcasts.get(&SMALL);
    match collective {
        "bcast" => bcasts.get(&bytes).copied(),
        "allreduce" if bytes > POSTED => None,
        "barrier" | "allreduce" if crowded => small.copied(),
        "barrier" | "allreduce" => Some(small? * f64::from(ranks.next_power_of_two().trailing_zeros())),
        _ if ranks != 2 || crowded => None,
        "reduce" | "scan" | "exscan" | "reduce_scatter" | "reduce_scatter_block" => None,
        _ => bcasts.get(&bytes).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas() {
        let bcasts = Bcasts::from([(8, 100.0), (8192, 1000.0)]);
        let of = |collective, bytes, ranks, crowded| of(collective, bytes, ranks, crowded, &bcasts);
        assert_eq!(of("bcast", 8192, 4, true), Some(1000.0));
        assert_eq!(of("barrier", 0, 2, false), Some(100.0));
        assert_eq!(of("barrier", 0, 8, false), Some(300.0));
        assert_eq!(of("allreduce", 8, 8, true), Some(100.0));
        assert_eq!(of("allreduce", 8192, 2, false), None);
        assert_eq!(of("alltoallw", 8192, 2, false), Some(1000.0));
        assert_eq!(of("alltoallw", 8192, 4, true), None);
        assert_eq!(of("scan", 8, 2, false), None);
        assert_eq!(of("bcast", 64, 2, false), None);
    }
}
