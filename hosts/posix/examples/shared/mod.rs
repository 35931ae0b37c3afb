//! What the examples share: joining, and vectors of doubles as the bytes that collectives take.

use std::error::Error;
use std::process::ExitCode;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::Datatype;
use unisono_kernel::error::Refusal;
use unisono_kernel::region::Params;
use unisono_posix::bootstrap::Launched;
use unisono_posix::{Options, Posix, join};

/// Why an example ends early.
pub(crate) type Failure = Box<dyn Error>;

/// Joins the ranks that `unisono run` has started, and runs `body` on each.
pub(crate) fn run(name: &str, body: impl FnOnce(&mut Communicator<Posix>) -> Result<(), Failure>) -> ExitCode {
    let whole = || {
        let mut launcher = Launched::from_env()?.ok_or("start me with `unisono run -n RANKS -- ...`")?;
        body(&mut join(&mut launcher, Params::new, &Options::default())?.communicator)
    };
    match whole() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{name}: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The command line's words. If help is asked for or there are too many, prints the usage and returns `None`.
pub(crate) fn words(most: usize, usage: &str) -> Option<Vec<String>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.len() > most || words.iter().any(|word| word.starts_with('-')) {
        eprintln!("{usage}");
        return None;
    }
    Some(words)
}

/// A number from the command line, or the default.
pub(crate) fn number(words: &[String], at: usize, default: usize) -> Result<usize, Failure> {
    match words.get(at) {
        Some(word) => word.parse().map_err(|e| format!("{word:?}: {e}").into()),
        None => Ok(default),
    }
}

/// Doubles as bytes.
pub(crate) fn bytes(values: &mut [f64]) -> &mut [u8] {
    bytemuck::cast_slice_mut(values)
}

/// How `all` rows are split over ranks: counts, and first rows.
pub(crate) fn split(all: usize, ranks: u32) -> (Vec<u64>, Vec<u64>) {
    let first = |rank: u32| (all as u64 * u64::from(rank)) / u64::from(ranks);
    (0..ranks).map(|rank| (first(rank + 1) - first(rank), first(rank))).unzip()
}

/// Rows of `columns` doubles, a block of them for each rank.
pub(crate) fn rows<'a>(
    values: &'a mut [f64],
    columns: usize,
    counts: &'a [u64],
    first: &'a [u64],
) -> Result<Blocks<'a>, Refusal> {
    let row = Datatype::Contiguous { bytes: 8 * columns as u64 };
    Blocks::vary_mut(bytes(values), counts, first, row)
}
