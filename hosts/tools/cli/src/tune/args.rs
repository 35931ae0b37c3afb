//! The command line of `unisono tune`.

use crate::args::{BindTo, Collective, parse_bytes};
use crate::sim::args::Shape;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Measures the collectives between real processes, or with --messages in the simulator. For every cell the choice is
/// compared with the best algorithm, and each miss above 10 % is printed
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Tune {
    /// Minutes that measuring may take, roughly
    #[arg(long, default_value_t = 3.0, value_parser = parse_minutes, value_name = "M")]
    pub(crate) minutes: f64,
    /// Numbers of processes; for numbers between them, the rules of the nearest one hold. Default: 2,4,8; with
    /// --messages up to 1024
    #[arg(short = 'n', long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..), value_name = "LIST")]
    pub(crate) ranks: Vec<u32>,
    /// Collectives; default: all that have several algorithms
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    pub(crate) collectives: Vec<Collective>,
    /// Message bytes, multiples of 8; KiB and MiB as 8K, 4M
    #[arg(
        long, value_delimiter = ',', value_parser = parse_bytes, value_name = "LIST",
        default_values = ["8", "64", "512", "4K", "16K", "64K", "256K", "1M"]
    )]
    pub(crate) bytes: Vec<u64>,
    /// Where to write the table; what was measured goes beside it, as .json. Default: a file in the user's cache, named
    /// by the topology
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Measure, and compare with the present choice (built in, or UNISONO_TABLE); write nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Measure anew where there is a table of this topology
    #[arg(long)]
    pub(crate) force: bool,
    /// Algorithms over messages, in the simulator, instead of those over a segment
    #[arg(long)]
    pub(crate) messages: bool,
    /// Which calls Unisono's preload had better leave to the MPI, by both times: each rank of the MPI's launcher is this program, with
    /// the library preloaded (unisono preload -- mpirun -n 4 unisono tune --preload --output FILE). A table that is in FILE is kept, but
    /// for such rules for as many ranks
    #[arg(long, conflicts_with_all = ["messages", "ranks", "bind", "force"])]
    pub(crate) preload: bool,
    /// The MPI's library [default: by the launcher that started this, where the loader looks]
    #[arg(long, value_name = "FILE", requires = "preload")]
    pub(crate) mpi: Option<PathBuf>,
    /// The simulated network, a node per rank
    #[arg(long, value_enum, default_value_t = Shape::Crossbar, requires = "messages")]
    pub(crate) network: Shape,
    /// The simulated network in JSON (docs/explanation/simulator.md)
    #[arg(long, value_name = "FILE", requires = "messages")]
    pub(crate) parameters: Option<PathBuf>,
    /// Where to bind the processes
    #[arg(long, value_enum, default_value_t = BindTo::Core)]
    pub(crate) bind: BindTo,
    /// One JSON object per cell and algorithm
    #[arg(long)]
    pub(crate) json: bool,
}

/// Minutes: above 0, and at most a day.
fn parse_minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text.parse().map_err(|e| format!("{e}"))?;
    if minutes > 0.0 && minutes <= 1440.0 { Ok(minutes) } else { Err("must be above 0 and at most 1440".into()) }
}

/// What the processes of one run measure.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Work {
    pub(crate) collectives: Vec<Collective>,
    pub(crate) bytes: Vec<u64>,
    /// Seconds for all cells together.
    pub(crate) seconds: f64,
    /// The file into which rank 0 writes what it measured, in JSON.
    pub(crate) found: PathBuf,
    /// No progress is shown.
    pub(crate) quiet: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes() {
        assert_eq!(parse_minutes("0.5"), Ok(0.5));
        for bad in ["0", "-1", "nan", "1441", "x", ""] {
            assert!(parse_minutes(bad).is_err(), "{bad}");
        }
    }
}
