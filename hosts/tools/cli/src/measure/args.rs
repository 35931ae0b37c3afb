//! The command line of `unisono measure`.

use crate::args::{BindTo, parse_bytes};
use crate::sim::args::Shape;
use clap::{Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Measures the parameters of the papers' models
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Measure {
    #[command(subcommand)]
    pub(crate) what: What,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum What {
    /// LogGP's L, o_s, o_r, g, G of a message layer, and the barriers that the model chooses with them (paper P4)
    Logp(Logp),
    /// Barriers over messages, in the simulator or over an MPI, beside their formulas: chi-square, and the adaptive choice
    /// against fixed ones (paper P4)
    Barriers(Barriers),
    /// Hockney's t_s and t_w; the bandwidth of one pair and of all pairs, which tells a star from a crossbar (paper P5)
    Network(Network),
    /// t, t_WO, t_A, t_W of the queue in a segment, between real processes; the model beside measured broadcasts (paper
    /// P1)
    Queue(Queue),
    /// What a line and a copy cost between two cores, as a machine of the simulator, and calls beside simulated ones
    Caches(Caches),
    /// How far apart in time processes leave a barrier, compared with a common deadline (paper P5)
    Skew(Skew),
}

/// Where messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Over {
    /// Mailboxes between threads of this process
    Threads,
    /// The simulator; the results must be its own parameters
    Sim,
    /// An MPI: each rank of `mpirun` is this program
    Mpi,
}

/// What brings ranks together before they measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
pub(crate) enum Meet {
    /// Barriers in a segment, between processes that share a time-stamp counter
    #[default]
    Segment,
    /// A barrier of an MPI's messages, whose ranks' clocks are compared first: each rank of `mpirun` is this program
    Mpi,
}

/// The libraries of an MPI job.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, Serialize)]
pub(crate) struct Libraries {
    /// Unisono's library for the MPI: libunisono_openmpi.so or libunisono_mpich.so [default: by the launcher that started
    /// this; beside this program, in ../lib, or where the loader looks]
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// The MPI's library [default: libmpi.so.40, or libmpich.so.12 or libmpi.so.12, in ../lib beside the launcher, else where the
    /// loader looks]
    #[arg(long, value_name = "FILE")]
    pub(crate) mpi: Option<PathBuf>,
}

/// The simulated network, a node per rank.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Simulator {
    /// How the nodes are connected
    #[arg(long, value_enum, default_value_t = Shape::Crossbar)]
    pub(crate) network: Shape,
    /// The network in JSON (docs/explanation/simulator.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) parameters: Option<PathBuf>,
    /// Each message is delayed by a random span of up to this, in nanoseconds
    #[arg(long, default_value_t = 0.0, value_name = "NS")]
    pub(crate) delay: f64,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1, value_name = "S")]
    pub(crate) seed: u64,
}

/// The message layer that is measured.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Layer {
    /// Where messages go
    #[arg(long, value_enum, default_value_t = Over::Threads)]
    pub(crate) over: Over,
    #[command(flatten)]
    pub(crate) simulator: Simulator,
    #[command(flatten)]
    pub(crate) libraries: Libraries,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Logp {
    #[command(flatten)]
    pub(crate) layer: Layer,
    /// Number of repetitions, at least six; each parameter is their median
    #[arg(long, default_value_t = 11, value_name = "K")]
    pub(crate) repetitions: usize,
    /// P: barriers are chosen for 2 to P processes
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=4096), value_name = "P")]
    pub(crate) most_ranks: u32,
    /// Where to write the choice as a decision table: with UNISONO_TABLE it is the barrier over messages, so between nodes
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// One JSON object per parameter and barrier
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where barriers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// The simulator
    Sim,
    /// An MPI: each rank of `mpirun` is this program. Sizes are those up to the job's
    Mpi,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Barriers {
    /// Where barriers run
    #[arg(long, value_enum, default_value_t = Place::Sim)]
    pub(crate) over: Place,
    #[command(flatten)]
    pub(crate) simulator: Simulator,
    #[command(flatten)]
    pub(crate) libraries: Libraries,
    /// Over an MPI: microseconds between two runs
    #[arg(long, default_value_t = 100, value_name = "US")]
    pub(crate) pause_us: u64,
    /// A line for each size, too: the mean of each barrier and its formula
    #[arg(long)]
    pub(crate) sizes: bool,
    /// Runs of each size and barrier, at least two; in the simulator each with the next seed
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..), value_name = "K")]
    pub(crate) repetitions: u64,
    /// P: barriers among 2 to P processes
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=4096), value_name = "P")]
    pub(crate) most_ranks: u32,
    /// Where to write the choice as a decision table, as `measure logp` does, and all means beside it in JSON, for `explain barrier`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// One JSON object per barrier
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Network {
    #[command(flatten)]
    pub(crate) layer: Layer,
    /// Number of ranks that exchange with each other
    #[arg(short = 'n', long, default_value_t = 8, value_name = "N")]
    pub(crate) ranks: u32,
    /// Bytes of an exchange
    #[arg(long, value_parser = parse_bytes, default_value = "64K", value_name = "BYTES")]
    pub(crate) bytes: u64,
    /// Repetitions
    #[arg(long, default_value_t = 11, value_name = "K")]
    pub(crate) repetitions: usize,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
pub(crate) struct Skew {
    /// What brings ranks together
    #[arg(long, value_enum, default_value_t = Meet::Segment)]
    pub(crate) over: Meet,
    #[command(flatten)]
    pub(crate) libraries: Libraries,
    /// Number of processes; with --over mpi all ranks
    #[arg(short = 'n', long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..), value_name = "N")]
    pub(crate) ranks: u32,
    /// Number of barriers and of deadlines, at least six
    #[arg(long, default_value_t = 1001, value_name = "K")]
    pub(crate) repetitions: usize,
    /// Where to bind the processes
    #[arg(long, value_enum, default_value_t = BindTo::Core)]
    pub(crate) bind: BindTo,
    /// One JSON object per row
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
pub(crate) struct Caches {
    /// Rounds, at least six; each figure is the median of those in which the cores were as far apart as in most
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(6..), value_name = "K")]
    pub(crate) rounds: u64,
    /// Where to bind the two processes
    #[arg(long, value_enum, default_value_t = BindTo::Core)]
    pub(crate) bind: BindTo,
    /// Where to write the machine, for `sim --segment --machine`
    #[arg(short, long, value_name = "FILE.json")]
    pub(crate) output: Option<PathBuf>,
    /// One JSON object per row
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
pub(crate) struct Queue {
    /// Number of processes
    #[arg(short = 'n', long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..), value_name = "N")]
    pub(crate) ranks: u32,
    /// m: bytes of the broadcasts that are measured beside the model
    #[arg(long, value_parser = parse_bytes, default_value = "4M", value_name = "BYTES")]
    pub(crate) message: u64,
    /// b: bytes of a queue, while f varies
    #[arg(long, value_parser = parse_bytes, default_value = "1M", value_name = "BYTES")]
    pub(crate) queue_bytes: u64,
    /// s: slots of a queue, while f varies, in place of a fixed b (the paper's figure 9 has 32)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096), value_name = "S")]
    pub(crate) slots: Option<u32>,
    /// f: bytes of a slot, each in turn
    #[arg(long, value_delimiter = ',', value_parser = parse_bytes, default_value = "4K,8K,12K,16K,32K,64K,128K", value_name = "LIST")]
    pub(crate) fragments: Vec<u64>,
    /// q: sets
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), value_name = "Q")]
    pub(crate) sets: u32,
    /// Algorithm of paper P1's broadcast: cico-flat, cico-chain, cico-binary, cico-binomial, …
    #[arg(long, default_value = "cico-flat", value_name = "NAME")]
    pub(crate) algorithm: String,
    /// Seconds for which each broadcast is measured
    #[arg(long, default_value_t = 0.5, value_name = "S")]
    pub(crate) seconds: f64,
    /// Where to bind the processes
    #[arg(long, value_enum, default_value_t = BindTo::Core)]
    pub(crate) bind: BindTo,
    /// One JSON object per row
    #[arg(long)]
    pub(crate) json: bool,
}
