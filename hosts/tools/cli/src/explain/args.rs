//! The command line of `unisono explain`.

use crate::args::{Collective, parse_bytes};
use crate::sim::args::Shape;
use std::path::PathBuf;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Explain {
    /// The collective
    #[arg(value_enum)]
    pub(crate) collective: Collective,
    /// Number of processes
    #[arg(short = 'n', long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=8192), value_name = "N")]
    pub(crate) ranks: u32,
    /// Message bytes; KiB and MiB as 8K, 4M
    #[arg(long, value_parser = parse_bytes, default_value = "8", value_name = "BYTES")]
    pub(crate) bytes: u64,
    /// The operation does not commute
    #[arg(long)]
    pub(crate) ordered: bool,
    /// The segment has no queues of the papers
    #[arg(long)]
    pub(crate) no_papers: bool,
    /// The decision table, in place of UNISONO_TABLE and UNISONO_RULES
    #[arg(long, value_name = "FILE")]
    pub(crate) table: Option<PathBuf>,
    /// What `tune`, `measure logp` or `measure barriers` measured, in JSON; default: the file beside the table, or that of this topology, if there is one
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,
    /// The network for predictions of messages, a node per rank
    #[arg(long, value_enum, default_value_t = Shape::Crossbar)]
    pub(crate) network: Shape,
    /// That network in JSON (docs/explanation/simulator.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) parameters: Option<PathBuf>,
    /// One JSON object per candidate
    #[arg(long)]
    pub(crate) json: bool,
}
