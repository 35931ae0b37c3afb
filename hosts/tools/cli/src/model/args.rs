//! The command line of `unisono model`: a parameter that is not given is the paper's.

use crate::args::parse_bytes;
use crate::error::Failure;
use clap::ValueEnum;
use std::path::PathBuf;

/// Figures that follow from a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// P1: time over f in a queue of b bytes, and its two terms
    #[value(name = "p1.4")]
    P1Fragment,
    /// P1: time over the number of slots
    #[value(name = "p1.6")]
    P1Slots,
    /// P1: the sawtooth of time over f where s is fixed
    #[value(name = "p1.8")]
    P1Saw,
    /// P4: barriers in LogP
    #[value(name = "p4.6")]
    P4Barriers,
    /// P5: allgathers on a star
    #[value(name = "p5.5")]
    P5Star,
    /// P5: allgathers on a crossbar
    #[value(name = "p5.6")]
    P5Crossbar,
}

/// Tables that follow from formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    /// P1, table 1: bytes of a queue by f and s
    #[value(name = "p1.1")]
    P1Queues,
    /// P1's rules: f and s for a message, a fragment, a number of slots, or a memory budget
    #[value(name = "p1.rules")]
    P1Rules,
    /// P4: how often each barrier is chosen, beside the paper's claim
    #[value(name = "p4.choices")]
    P4Choices,
    /// P5: BAGDS's stages, and where it crosses others
    #[value(name = "p5.crossings")]
    P5Crossings,
}

/// Logarithms of paper P4's formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Logarithms {
    /// Real ones, as printed
    Printed,
    /// Rounded up to whole rounds
    Rounds,
}

/// Barriers to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Barriers {
    /// The paper's three
    Paper,
    /// Derived ones too: tournament, Bruck, butterfly, the kernel's combining tree
    All,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Model {
    /// The figure: paper and number
    #[arg(long, value_enum, required_unless_present = "table", conflicts_with = "table")]
    pub(crate) figure: Option<Which>,
    /// The table
    #[arg(long, value_enum)]
    pub(crate) table: Option<Table>,
    /// Write the figure here, as SVG
    #[arg(long, value_name = "FILE.svg", conflicts_with_all = ["json", "table"])]
    pub(crate) plot: Option<PathBuf>,
    /// JSON: a figure is one object with every point, a table one object per line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) queue: Queue,
    #[command(flatten)]
    pub(crate) barrier: Barrier,
    #[command(flatten)]
    pub(crate) network: Network,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Queues of paper P1")]
pub(crate) struct Queue {
    /// t: copying a byte; default: 1
    #[arg(long, value_name = "NS", allow_negative_numbers = true)]
    pub(crate) byte_time: Option<f64>,
    /// t_WO: a reader's wait for a set; default: 100
    #[arg(long, value_name = "NS", allow_negative_numbers = true)]
    pub(crate) set_wait: Option<f64>,
    /// t_A: the atomic decrement; default: 10
    #[arg(long, value_name = "NS", allow_negative_numbers = true)]
    pub(crate) decrement: Option<f64>,
    /// t_W: a reader's wait for a slot; default: 50
    #[arg(long, value_name = "NS", allow_negative_numbers = true)]
    pub(crate) slot_wait: Option<f64>,
    /// m: bytes of the message; default: 16M
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) message: Option<u64>,
    /// b: bytes of the queue, for p1.4 and p1.rules; default: 4M
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) queue_bytes: Option<u64>,
    /// f: bytes of a fragment, for p1.6 and p1.rules; default: 8K
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) fragment: Option<u64>,
    /// s: slots of the queue, for p1.8 and p1.rules; default: 32
    #[arg(long, value_name = "S")]
    pub(crate) slots: Option<u64>,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Barriers of paper P4, times in any one unit")]
pub(crate) struct Barrier {
    /// L: latency; default: 125.6
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) latency: Option<f64>,
    /// o_s: overhead of a send; default: 0.43
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) send_overhead: Option<f64>,
    /// o_r: overhead of a receive; default: 123.8
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) receive_overhead: Option<f64>,
    /// g: gap between messages; default: 0.22
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    pub(crate) gap: Option<f64>,
    /// n: processes that the combining tree joins into one, their parent one of them; default: 4
    #[arg(long, value_name = "N")]
    pub(crate) members: Option<u32>,
    /// The largest number of processes; default: 100
    #[arg(long, value_name = "P")]
    pub(crate) most_ranks: Option<u32>,
    /// Logarithms of the formulas; default: printed
    #[arg(long, value_enum)]
    pub(crate) logarithms: Option<Logarithms>,
    /// Barriers to compare; default: paper
    #[arg(long, value_enum)]
    pub(crate) barriers: Option<Barriers>,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Networks of paper P5")]
pub(crate) struct Network {
    /// t_s: start-up time of a message; default: 65.8
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    pub(crate) startup: Option<f64>,
    /// t_w: time of an element of four bytes; default: 0.437
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    pub(crate) element_time: Option<f64>,
    /// p: processes, for the figures; default: 8 (the paper does not say)
    #[arg(long, value_name = "P")]
    pub(crate) ranks: Option<u32>,
    /// The largest N, elements in all, for the figures; default: 400
    #[arg(long, value_name = "N")]
    pub(crate) elements: Option<u32>,
}

impl Model {
    /// Refuses a parameter that was given and is not in `wanted`: it would have no effect.
    pub(crate) fn only(&self, wanted: &[&str]) -> Result<(), Failure> {
        let Self { queue, barrier, network, .. } = self;
        let given = [
            ("--byte-time", queue.byte_time.is_some()),
            ("--set-wait", queue.set_wait.is_some()),
            ("--decrement", queue.decrement.is_some()),
            ("--slot-wait", queue.slot_wait.is_some()),
            ("--message", queue.message.is_some()),
            ("--queue-bytes", queue.queue_bytes.is_some()),
            ("--fragment", queue.fragment.is_some()),
            ("--slots", queue.slots.is_some()),
            ("--latency", barrier.latency.is_some()),
            ("--send-overhead", barrier.send_overhead.is_some()),
            ("--receive-overhead", barrier.receive_overhead.is_some()),
            ("--gap", barrier.gap.is_some()),
            ("--members", barrier.members.is_some()),
            ("--most-ranks", barrier.most_ranks.is_some()),
            ("--logarithms", barrier.logarithms.is_some()),
            ("--barriers", barrier.barriers.is_some()),
            ("--startup", network.startup.is_some()),
            ("--element-time", network.element_time.is_some()),
            ("--ranks", network.ranks.is_some()),
            ("--elements", network.elements.is_some()),
        ];
        match given.iter().find(|(name, given)| *given && !wanted.contains(name)) {
            None => Ok(()),
            Some((name, _)) if wanted.is_empty() => {
                Err(Failure::Words(format!("{name}: this table has no parameters")))
            }
            Some((name, _)) => {
                Err(Failure::Words(format!("{name}: no parameter here; there are {}", wanted.join(", "))))
            }
        }
    }
}
