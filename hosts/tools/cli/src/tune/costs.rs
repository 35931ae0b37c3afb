//! The file of measurements, in JSON, beside the table that was made from them.

use crate::error::Failure;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};
use unisono_kernel::table::{Choice, Collective, Over};
use unisono_model::ModelError;
use unisono_model::logp::LogP;
use unisono_model::segment::Machine;
use unisono_posix::Topology;
use unisono_posix::lending::cache;

/// Measured times of one machine.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Costs {
    /// [`Costs::FORMAT`].
    pub(crate) format: u32,
    /// The topology's hash.
    pub(crate) topology: String,
    /// The machine's speeds, for predictions.
    #[serde(default)]
    pub(crate) machine: Speeds,
    /// The network's, for predictions of barriers over messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<Network>,
    pub(crate) cells: Vec<Cell>,
}

/// The machine's speeds, as far as they were measured.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Speeds {
    /// Nanoseconds for one way of a cache line.
    pub(crate) line_ns: Option<f64>,
    /// Nanoseconds for the turn of a process that yields.
    pub(crate) turn_ns: Option<f64>,
    /// Nanoseconds for copying a byte in or out.
    pub(crate) byte_ns: Option<f64>,
}

/// A network's LogP, as measured.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Network {
    #[serde(rename = "L")]
    latency: f64,
    #[serde(rename = "os")]
    send: f64,
    #[serde(rename = "or")]
    receive: f64,
    #[serde(rename = "g")]
    gap: f64,
}

impl Network {
    /// The parameters for formulas, in nanoseconds.
    ///
    /// # Errors
    /// One of them is negative, absurd or not a number.
    pub(crate) fn logp(self) -> Result<LogP, ModelError> {
        LogP::new(self.latency, self.send, self.receive, self.gap)
    }
}

impl From<LogP> for Network {
    fn from(logp: LogP) -> Self {
        Self { latency: logp.latency(), send: logp.send(), receive: logp.receive(), gap: logp.gap() }
    }
}

impl Speeds {
    /// These speeds, and `other`'s where one was not measured.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            line_ns: self.line_ns.or(other.line_ns),
            turn_ns: self.turn_ns.or(other.turn_ns),
            byte_ns: self.byte_ns.or(other.byte_ns),
        }
    }

    /// The speeds for the formulas; typical values where nothing was measured.
    ///
    /// # Errors
    /// A speed is negative or absurd.
    pub(crate) fn machine(self) -> Result<Machine, ModelError> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        Machine::typical(cores).with(self.line_ns, self.byte_ns, self.turn_ns)
    }
}

/// An algorithm's time in one cell of the sweep: a median, and its interval of 95 % confidence.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cell {
    /// `shm` or `msg`.
    pub(crate) over: String,
    pub(crate) collective: String,
    pub(crate) algorithm: String,
    pub(crate) ranks: u32,
    pub(crate) bytes: u64,
    pub(crate) p50_ns: f64,
    pub(crate) low_ns: f64,
    pub(crate) high_ns: f64,
    /// Repetitions.
    pub(crate) samples: u64,
}

impl Cell {
    /// Is it the same call?
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        (&self.over, &self.collective, self.ranks, self.bytes)
            == (&other.over, &other.collective, other.ranks, other.bytes)
    }

    /// Its algorithm; nothing if the name in the file is unknown.
    pub(crate) fn plan(&self) -> Option<Choice> {
        Choice::from_name(Over::from_name(&self.over)?, Collective::from_name(&self.collective)?, &self.algorithm)
    }

    /// Half of the interval, divided by the median.
    pub(crate) fn spread(&self) -> f64 {
        (self.high_ns - self.low_ns) / (2.0 * self.p50_ns)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { over, collective, ranks, bytes, .. } = self;
        write!(f, "{over} {collective}, {ranks} ranks, {}", unisono_plot::bytes(*bytes))
    }
}

impl Costs {
    /// The version of the file.
    pub(crate) const FORMAT: u32 = 1;

    /// Reads a file.
    ///
    /// # Errors
    /// The file can't be read, has another format, or has a time that is negative, absurd or not a number.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let named = |e: &dyn fmt::Display| Failure::Words(format!("{}: {e}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| named(&e))?;
        let costs: Self = serde_json::from_str(&text).map_err(|e| named(&e))?;
        if costs.format != Self::FORMAT {
            return Err(named(&format!("format is {}, must be {}", costs.format, Self::FORMAT)));
        }
        let absurd = |cell: &&Cell| ![cell.p50_ns, cell.low_ns, cell.high_ns].iter().all(|ns| (0.0..1e15).contains(ns));
        match costs.cells.iter().find(absurd) {
            Some(cell) => Err(named(&format!("{cell}: a time is negative, absurd or not a number"))),
            None => Ok(costs),
        }
    }

    /// The measurement of an algorithm in exactly this cell.
    pub(crate) fn of(&self, over: Over, collective: Collective, plan: Choice, ranks: u32, bytes: u64) -> Option<&Cell> {
        self.cells.iter().find(|cell| {
            cell.over == over.name()
                && cell.collective == collective.name()
                && (cell.ranks, cell.bytes) == (ranks, bytes)
                && cell.plan() == Some(plan)
        })
    }
}

/// A hash of what measurements depend on: the topology, and the processor's name.
pub(crate) fn topology_hash() -> String {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = processors.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
    let digest = Sha256::digest(format!("{}\n{name}", Topology::read()));
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The table of a topology in the user's cache.
///
/// # Errors
/// Neither XDG_CACHE_HOME nor HOME is set.
pub(crate) fn cached(topology: &str) -> Result<PathBuf, Failure> {
    let missing = || Failure::Words("neither XDG_CACHE_HOME nor HOME is set: give --output".into());
    Ok(cache().ok_or_else(missing)?.join(format!("{topology}.table")))
}

/// The file of measurements beside a table.
pub(crate) fn beside(table: &Path) -> PathBuf {
    table.with_extension("json")
}
