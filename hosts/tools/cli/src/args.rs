//! Arguments of `demo`, `run`, `bench`, `check` and `topo`, and types that several commands' arguments use.

use crate::form::Form;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use unisono_kernel::topology::{Level, Levels};
use unisono_posix::launch::Bind;
use unisono_posix::pages::PAGES;
use unisono_posix::policy::MBIND;
use unisono_posix::timeout;

/// How ranks are bound.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BindTo {
    /// One processing unit each, in turn
    #[default]
    Core,
    /// The processing units of one NUMA node each, in turn
    Numa,
    /// Not at all
    None,
}

impl From<BindTo> for Bind {
    fn from(bind: BindTo) -> Self {
        match bind {
            BindTo::Core => Self::Core,
            BindTo::Numa => Self::Numa,
            BindTo::None => Self::None,
        }
    }
}

/// The memory of the segments. An option that is not given is taken from the environment.
#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
pub(crate) struct Memory {
    /// Pages of the segments. huge: of 2 MiB from the kernel's pool, else transparent huge pages, else ordinary
    /// ones, and a line that says why (UNISONO_PAGES)
    #[arg(long, value_parser = ["default", "huge"], value_name = "KIND")]
    pages: Option<String>,
    /// Memory policy for each process's own part of a segment, beside first touch (UNISONO_MBIND)
    #[arg(long, value_parser = ["none", "preferred", "bind"], value_name = "POLICY")]
    mbind: Option<String>,
}

impl Memory {
    /// As the ranks' environment.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        let given = [(PAGES, &self.pages), (MBIND, &self.mbind)];
        given.into_iter().filter_map(|(name, value)| Some((name.into(), value.as_ref()?.into()))).collect()
    }
}

#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
pub(crate) struct Demo {
    /// Number of processes
    #[arg(short = 'n', long, default_value_t = 4, value_name = "N")]
    pub(crate) ranks: u32,
    /// Where to bind the processes
    #[arg(long, value_enum, default_value_t = BindTo::Core)]
    pub(crate) bind: BindTo,
    #[command(flatten)]
    pub(crate) memory: Memory,
    /// File to broadcast; default: this program
    pub(crate) file: Option<PathBuf>,
}

/// A bound of time, in seconds, with the rules of UNISONO_TIMEOUT.
fn bound(text: &str) -> Result<String, &'static str> {
    timeout::seconds(text).map(|_| text.to_owned()).ok_or("must be seconds, above 0")
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Number of processes
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) ranks: u32,
    /// Where to bind the processes
    #[arg(long, value_enum, default_value_t = BindTo::Core)]
    pub(crate) bind: BindTo,
    #[command(flatten)]
    pub(crate) memory: Memory,
    /// Bound on each wait inside a collective, in seconds: a rank that comes later is named in an error
    /// (UNISONO_TIMEOUT)
    #[arg(long, value_parser = bound, value_name = "SECONDS")]
    pub(crate) timeout: Option<String>,
    /// `shared` puts the programs' large blocks of memory where the other processes read them, by preloading
    /// libunisono_heap.so: long messages are copied once (UNISONO_HEAP)
    #[arg(long, value_parser = ["off", "shared"], value_name = "HEAP")]
    pub(crate) heap: Option<String>,
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
    /// Gatherv: bytes of one block
    Gatherv,
    /// Scatter: bytes of one block
    Scatter,
    /// Scatterv: bytes of one block
    Scatterv,
    /// Allgather: bytes of one block
    Allgather,
    /// Allgatherv: bytes of one block
    Allgatherv,
    /// Alltoall: bytes of one block
    Alltoall,
    /// Alltoallv: bytes of one block
    Alltoallv,
    /// Alltoallw, with a datatype for each block: bytes of one block
    Alltoallw,
    /// Reduce
    Reduce,
    /// Reduce_scatter, with a count for each rank: bytes of the whole vector
    #[value(name = "reduce_scatter")]
    ReduceScatter,
    /// Reduce_scatter_block, with one count for all ranks: bytes of the whole vector
    #[value(name = "reduce_scatter_block")]
    ReduceScatterBlock,
    /// Scan
    Scan,
    /// Exscan
    Exscan,
    /// A nonblocking allreduce, a computation that takes as long, and both together: bytes of the whole vector. Only
    /// -n, --bytes, --iterations, --bind, --json and the options of the segment have an effect
    Overlap,
    /// Communicators: the time of dup, split and create group, each with free
    Comm,
}

/// Lengths of the blocks of one call.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Blocks {
    /// All blocks have the same length
    #[default]
    Equal,
    /// Rank r's block is r times as long as rank 1's, but those of ranks 0, 4, 8, ... are empty. The sum is that of
    /// equal blocks. In alltoallv and alltoallw, rank i's block for rank j has the length of rank (i + j) modulo N
    Unequal,
}

/// How to measure.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Method {
    /// Latency: first start (rooted: the root's) to last end of each operation, by the TSC
    Window,
    /// Wall time ÷ iterations of the slowest rank, root rotating
    Rate,
    /// First window, then rate
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
    /// Message bytes, separated by commas; KiB and MiB as 8K, 4M. For gather(v), scatter(v), allgather(v) and
    /// alltoall(v, w): the bytes of one block, or the mean of unequal ones. For reduce_scatter and
    /// reduce_scatter_block: the bytes of each rank's operand, which is cut into a block for each rank, of at least one
    /// double on average. For the others: the bytes of one rank's whole vector
    #[arg(long, value_delimiter = ',', value_parser = parse_bytes, default_values = ["8"], value_name = "LIST")]
    pub(crate) bytes: Vec<u64>,
    /// Lengths of the blocks of gatherv, scatterv, allgatherv, alltoallv, alltoallw and reduce_scatter
    #[arg(long, value_enum, default_value_t = Blocks::Equal)]
    pub(crate) blocks: Blocks,
    /// Algorithm by name; `all`: one row each. bcast: auto, posted, groups, queue, cico-flat, cico-chain, cico-binary,
    /// cico-binomial, cico-kary-K, cico-knomial-K, and rival: a loop without the kernel's machines through the queue that paper P1
    /// describes of MVAPICH. barrier: auto, posted, dissemination, doubling, central, combining, combining-N.
    /// allreduce: auto, posted, doubling, exchange, slices, groups; for 8 bytes also hand-written, a loop that gives the same
    /// guarantees without the kernel's machines, and sketch, a loop that gives none. reduce: auto, tree,
    /// exchange, slices, groups. gather, allgather(v): auto, exchange, cico, groups. gatherv, scatter(v): auto, exchange, cico.
    /// scan, exscan: auto, doubling, exchange, groups. alltoall, reduce_scatter(_block): auto, exchange,
    /// groups. Others: auto, exchange
    #[arg(long, default_value = "auto", value_name = "NAME")]
    pub(crate) algorithm: String,
    /// Form of the calls. A persistent operation is initialised once per root, on one buffer, as with --warm
    #[arg(long, value_enum, default_value_t = Form::Blocking)]
    pub(crate) form: Form,
    /// Operations per repetition; default: by size, about a tenth of a second
    #[arg(long, value_name = "K")]
    pub(crate) iterations: Option<u64>,
    /// Definition of time
    #[arg(long, value_enum, default_value_t = Method::Both)]
    pub(crate) method: Method,
    /// Use one buffer again and again instead of rotating over more than the private cache
    #[arg(long)]
    pub(crate) warm: bool,
    /// Put the buffers into memory that all ranks have mapped (Intracomm::allocate, unisono_alloc): long messages in it are
    /// read where they lie
    #[arg(long)]
    pub(crate) lent: bool,
    /// Where to bind the processes
    #[arg(long, value_enum, default_value_t = BindTo::Core)]
    pub(crate) bind: BindTo,
    #[command(flatten)]
    pub(crate) memory: Memory,
    /// One JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Posted lines per rank
    #[arg(long, value_name = "K")]
    pub(crate) lines: Option<u32>,
    /// Bytes of each rank's queue, cut into the slots that paper P1's model finds best
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub(crate) queue_bytes: Option<u64>,
    /// Slots of each rank's queue
    #[arg(long, value_name = "S")]
    pub(crate) queue_slots: Option<u32>,
    /// Bytes of a slot of that queue
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub(crate) queue_fragment: Option<u64>,
    /// Bytes of each rank's queue for the papers' algorithms (cico), cut into slots as with --queue-bytes
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    pub(crate) cico_bytes: Option<u64>,
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
    /// Initialise, start, wait
    Persistent,
    /// All three
    All,
}

impl Forms {
    /// Is `form` one of these?
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
    #[command(flatten)]
    pub(crate) memory: Memory,
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
    /// Draw legal programs of all collectives, and run one after the other for so many seconds; for a part of the time,
    /// programs in which a rank is killed. A program that fails is printed with its seed, and shrunk
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["large_counts", "form"])]
    pub(crate) random: Option<u64>,
    /// The first program's seed; the next one's is one more. Default: from the clock
    #[arg(long, requires = "random", value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Print the program of the seed, and run nothing; with --by, the program that the command would run
    #[arg(long, requires = "seed")]
    pub(crate) print: bool,
    /// Run this program, a text as --random prints it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["large_counts", "form", "random", "ranks"])]
    pub(crate) program: Option<PathBuf>,
    /// Let this command run the programs: a line for the shell, in which {n} is the number of ranks; a file of programs
    /// is its last argument. For instance the interpreter in C, verify/programs/c, under an MPI
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["bind", "large_counts"])]
    pub(crate) by: Option<String>,
    /// Pass over programs that fail under this command, too: an MPI without the library that is checked
    #[arg(long, value_name = "COMMAND", requires = "by")]
    pub(crate) unless: Option<String>,
}

/// Options of `unisono topo`. Without an option of groups it shows this machine.
#[derive(Clone, Debug, clap::Args, Deserialize, Serialize)]
pub(crate) struct Topo {
    /// Bytes per communicator for 1 to 1024 processes
    #[arg(long, conflicts_with_all = ["groups", "synthetic", "switches", "levels", "ranks", "bind", "plot"])]
    pub(crate) memory: bool,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the groups of these ranks, one rank a line: `36: G1(36-53) G2(36,54) G3(0,36)`. Without this option, the
    /// options below print all groups as a tree
    #[arg(long, value_delimiter = ',', value_name = "RANKS")]
    pub(crate) groups: Option<Vec<u32>>,
    /// Groups on machines that hwloc's synthetic description gives, such as "package:2 [numa] core:18", with a process
    /// on each core. Default: groups on this machine, of processes that the launcher starts and binds
    #[arg(long, value_name = "DESCRIPTION")]
    pub(crate) synthetic: Option<String>,
    /// Names of the described machines, separated by commas; ranks fill one after the other. Default: one machine
    #[arg(long, value_delimiter = ',', requires = "synthetic", value_name = "NAMES")]
    pub(crate) nodes: Vec<String>,
    /// File with a line `NODE SWITCH` per node, # for comments
    #[arg(long, value_name = "FILE")]
    pub(crate) switches: Option<PathBuf>,
    /// Levels on which groups are built, such as NM-ND-SW: L2, L3, NM (NUMANode), SK (Package), ND (Machine), SW, SW2
    #[arg(long, value_parser = parse_levels, value_name = "NAMES")]
    pub(crate) levels: Option<String>,
    /// Number of processes; default: one for each core of the described machines, or for each PU that this program may use
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) ranks: Option<u32>,
    /// Where to bind the processes; default: core
    #[arg(long, value_enum)]
    pub(crate) bind: Option<BindTo>,
    /// Draw all groups into this file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
}

/// A list of levels, checked.
pub(crate) fn parse_levels(text: &str) -> Result<String, String> {
    let names: Vec<_> = Levels::EVERY.iter().filter(|&level| level != Level::All).map(Level::name).collect();
    let known = |error| format!("{error}; levels are {}, between dashes", names.join(", "));
    text.parse::<Levels>().map(|_| text.to_owned()).map_err(known)
}

/// A number of bytes: `4096`, `8K`, `4M`, `3G` (also `KiB` and so on).
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
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
