//! The command line.

use crate::bench::Sides;
use crate::form::Form;
use clap::{Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// Collective operations between the processes of a machine: show, run, measure, check.
#[derive(Debug, Parser)]
#[command(name = "unisono", version, about, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start processes, show where their memory lies, broadcast a file, measure
    Demo(Demo),
    /// Start N copies of a program that joins through Unisono's bootstrap
    Run(Run),
    /// Measure a collective between real processes, beside the machine's floor
    Bench(Bench),
    /// Check every algorithm against a sequential oracle on real processes
    Check(Check),
    /// Show the machine's topology and what a communicator costs in memory
    Topo(Topo),
    /// A rank of `demo`, `bench` or `check`: started by the launcher
    #[command(hide = true)]
    Worker,
}

/// How ranks are bound.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BindTo {
    /// One processing unit each, in turn
    Core,
    /// The processing units of one NUMA node each, in turn
    Numa,
    /// Not at all
    None,
}

#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
pub(crate) struct Demo {
    /// Number of processes
    #[arg(short = 'n', long, default_value_t = 4, value_name = "N")]
    pub(crate) ranks: u32,
    /// Where to bind the processes
    #[arg(long, value_enum, default_value_t = BindTo::Core)]
    pub(crate) bind: BindTo,
    /// File to broadcast; default: this program
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Number of processes
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) ranks: u32,
    /// Where to bind the processes
    #[arg(long, value_enum, default_value_t = BindTo::Core)]
    pub(crate) bind: BindTo,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// What to measure.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Collective {
    /// Broadcast
    Bcast,
    /// Barrier
    Barrier,
    /// Allreduce: sum of f64, like all reductions here
    Allreduce,
    /// Gather: bytes of one block
    Gather,
    /// Scatter: bytes of one block
    Scatter,
    /// Allgather: bytes of one block
    Allgather,
    /// Alltoall: bytes of one block
    Alltoall,
    /// Reduce
    Reduce,
    /// Reduce_scatter in equal blocks: bytes of the whole vector
    #[value(name = "reduce_scatter")]
    ReduceScatter,
    /// Scan
    Scan,
    /// Exscan
    Exscan,
    /// A nonblocking allreduce, a computation that is as long, and both together: bytes of the whole vector. No other
    /// options count but -n, --bytes, --iterations, --bind, --json and those of the segment
    Overlap,
}

impl Collective {
    /// As one with two sides.
    pub(crate) const fn sides(self) -> Option<Sides> {
        Some(match self {
            Self::Bcast | Self::Barrier | Self::Allreduce | Self::Overlap => return None,
            Self::Gather => Sides::Gather,
            Self::Scatter => Sides::Scatter,
            Self::Allgather => Sides::Allgather,
            Self::Alltoall => Sides::Alltoall,
            Self::Reduce => Sides::Reduce,
            Self::ReduceScatter => Sides::ReduceScatter,
            Self::Scan => Sides::Scan,
            Self::Exscan => Sides::Exscan,
        })
    }
}

/// How to measure.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Method {
    /// Latency: first start (rooted: the root's) to last end of each operation, by the TSC
    Window,
    /// Wall time ÷ iterations of the slowest rank, root rotating
    Rate,
    /// One after the other
    Both,
}

#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
pub(crate) struct Bench {
    /// The collective
    #[arg(value_enum)]
    pub(crate) collective: Collective,
    /// Number of processes
    #[arg(short = 'n', long, default_value_t = 2, value_name = "N")]
    pub(crate) ranks: u32,
    /// Message bytes, separated by commas; KiB and MiB as 8K, 4M
    #[arg(long, value_delimiter = ',', value_parser = parse_bytes, default_values = ["8"], value_name = "LIST")]
    pub(crate) bytes: Vec<u64>,
    /// Algorithm by name; `all`: one row each. bcast: auto, posted, queue, cico-flat, cico-chain, cico-binary,
    /// cico-binomial, cico-kary-K, cico-knomial-K. barrier: auto, posted, dissemination, central, combining, combining-N.
    /// allreduce: auto, posted, exchange, slices; for 8 bytes also hand-written, a loop that makes the same
    /// promises without the kernel's machines, and sketch, a loop that makes none. gather, scatter, allgather: auto,
    /// exchange, cico. Others: auto, exchange
    #[arg(long, default_value = "auto", value_name = "NAME")]
    pub(crate) algorithm: String,
    /// How it is called. A persistent operation is planned once per root, on one buffer, as with --warm
    #[arg(long, value_enum, default_value_t = Form::Blocking)]
    pub(crate) form: Form,
    /// Operations per repetition; default: by size, about a tenth of a second
    #[arg(long, value_name = "K")]
    pub(crate) iterations: Option<u64>,
    /// How to measure
    #[arg(long, value_enum, default_value_t = Method::Both)]
    pub(crate) method: Method,
    /// Use one buffer again and again instead of rotating over more than the private cache
    #[arg(long)]
    pub(crate) warm: bool,
    /// Where to bind the processes
    #[arg(long, value_enum, default_value_t = BindTo::Core)]
    pub(crate) bind: BindTo,
    /// One JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Posted lines per rank
    #[arg(long, value_name = "K")]
    pub(crate) lines: Option<u32>,
    /// Slots of the monotone queue
    #[arg(long, value_name = "S")]
    pub(crate) queue_slots: Option<u32>,
    /// Bytes of a slot of the monotone queue
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub(crate) queue_fragment: Option<u64>,
    /// Paper P1's s: slots per process
    #[arg(long, value_name = "S")]
    pub(crate) cico_slots: Option<u32>,
    /// Paper P1's f: bytes of a slot
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub(crate) cico_fragment: Option<u64>,
    /// Paper P1's q: sets
    #[arg(long, value_name = "Q")]
    pub(crate) cico_sets: Option<u32>,
}

/// Which forms of calls to check.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Forms {
    /// Calls that return when they are complete
    Blocking,
    /// Start, then wait
    Nonblocking,
    /// Plan, start, wait
    Persistent,
    /// All three
    All,
}

impl Forms {
    /// Is it one of these?
    pub(crate) const fn has(self, form: Form) -> bool {
        match self {
            Self::Blocking => matches!(form, Form::Blocking),
            Self::Nonblocking => matches!(form, Form::Nonblocking),
            Self::Persistent => matches!(form, Form::Persistent),
            Self::All => true,
        }
    }
}

#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
pub(crate) struct Check {
    /// Number of processes
    #[arg(short = 'n', long, default_value_t = 4, value_name = "N")]
    pub(crate) ranks: u32,
    /// Where to bind the processes
    #[arg(long, value_enum, default_value_t = BindTo::Core)]
    pub(crate) bind: BindTo,
    /// Forms of the calls, separated by commas; `all`: the same cases blocking, nonblocking and persistent. Bad input and
    /// large counts are checked blocking
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["all"], value_name = "FORMS")]
    pub(crate) form: Vec<Forms>,
    /// Name every case
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Check each collective with counts above 2^31 and displacements above 2^32 instead: minutes, and
    /// 13 GiB of memory for two processes
    #[arg(long)]
    pub(crate) large_counts: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Topo {
    /// Bytes per communicator for 1 to 1024 processes
    #[arg(long)]
    pub(crate) memory: bool,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A number of bytes: `4096`, `8K`, `4M`, `3G` (also `KiB` and so on).
fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "k" | "K" => 10,
        "M" => 20,
        "G" => 30,
        unit => return Err(format!("unknown unit {unit:?}: K, M or G")),
    };
    let number: u64 = digits.parse().map_err(|e| format!("{e}"))?;
    number.checked_mul(1 << shift).ok_or_else(|| "beyond 64 bits".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn bytes() {
        assert_eq!(parse_bytes("8"), Ok(8));
        assert_eq!(parse_bytes("8K"), Ok(8192));
        assert_eq!(parse_bytes("4MiB"), Ok(4 << 20));
        for bad in ["", "K", "8X", "-1", "99999999999G"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }
}
