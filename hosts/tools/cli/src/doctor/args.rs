//! The command line of `unisono doctor`.

use crate::args::{BindTo, Collective, parse_bytes};
use serde::{Deserialize, Serialize};

/// Says what of Unisono works on this machine, why the rest does not, and what each way to copy between processes costs
#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
pub(crate) struct Doctor {
    /// Collectives whose copies are timed, with warm buffers and with cold ones
    #[arg(
        long, value_enum, value_delimiter = ',', value_name = "LIST",
        default_values = [
            "bcast", "scatter", "gather", "allgather", "alltoall", "reduce", "allreduce", "reduce_scatter", "scan", "exscan"
        ]
    )]
    pub(crate) collectives: Vec<Collective>,
    /// Numbers of processes among which they are timed [default: 2, and as many as there are PUs, at most 16]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = clap::value_parser!(u32).range(2..=1024))]
    pub(crate) ranks: Vec<u32>,
    /// Message bytes, multiples of 8; KiB and MiB as 8K, 4M
    #[arg(
        long, value_delimiter = ',', value_parser = parse_bytes, value_name = "LIST",
        default_values = ["8K", "20000", "64K", "200000", "512K", "3000000"]
    )]
    pub(crate) bytes: Vec<u64>,
    /// Seconds of the calls that are timed, roughly; to fill the buffers between them takes several times as long. On a busy machine
    /// it ends after 25 times as long and a minute for each number of processes
    #[arg(long, default_value_t = 9.0, value_parser = parse_seconds, value_name = "S")]
    pub(crate) seconds: f64,
    /// Only times: the ways were shown before
    #[arg(skip)]
    pub(crate) again: bool,
    /// Keep what was measured in the user's cache: UNISONO_SINGLE_COPY=auto, the default, goes by it, and `unisono explain`
    /// shows it
    #[arg(long)]
    pub(crate) keep: bool,
    /// Where to bind the processes
    #[arg(long, value_enum, default_value_t = BindTo::Core)]
    pub(crate) bind: BindTo,
    /// One JSON object per way, and one per timed collective and length
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.01..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "must be seconds, 0.01 to 3600".into())
}
