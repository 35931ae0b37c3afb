//! `unisono measure network`: Hockney's parameters, and what kind of switch it is.

use super::args::{Network, Over};
use super::mpi;
use crate::error::Failure;
use crate::model::table::show;
use serde_json::json;
use unisono_measure::clocks::Aligned;
use unisono_measure::network::{hockney, switch};
use unisono_measure::{MeasureError, Simulated, Stage, Threads};
use unisono_model::hockney::{Fit, Network as Kind, Verdict};

/// Lengths of the fit.
const LENGTHS: [usize; 9] = [1, 64, 1024, 8192, 65536, 262_144, 524_288, 1 << 20, 2 << 20];
/// Round trips by which two clocks are compared.
pub(super) const TRIPS: usize = 20;
/// Exchanges in a row.
const EXCHANGES: u64 = 5;

/// What was measured of a network.
struct Measured {
    /// Hockney's start-up time and time per byte.
    fit: Fit,
    /// Whether the network is a star or a crossbar.
    verdict: Verdict,
}

pub(super) fn run(args: &Network) -> Result<(), Failure> {
    match args.layer.over {
        Over::Threads => print(args, measure(&mut Threads::default(), args)?),
        Over::Sim => {
            let (network, schedule) = args.layer.simulator.parts()?;
            print(args, measure(&mut Simulated::new(network, schedule), args)?)
        }
        Over::Mpi => {
            match mpi::on(&args.layer.libraries, |job| measure(&mut Aligned::new(job, args.ranks, TRIPS)?, args))? {
                Some(measured) => print(args, measured),
                None => Ok(()),
            }
        }
    }
}

fn measure(stage: &mut impl Stage, args: &Network) -> Result<Measured, MeasureError> {
    let fit = hockney(stage, &LENGTHS, args.repetitions)?;
    let verdict = switch(stage, args.ranks, args.bytes as usize, EXCHANGES, args.repetitions)?;
    Ok(Measured { fit, verdict })
}

fn print(args: &Network, Measured { fit, verdict }: Measured) -> Result<(), Failure> {
    let row = |name: &str, value: f64, low: f64, high: f64| vec![json!(name), json!(value), json!(low), json!(high)];
    let rows = [
        row("t_s, ns", fit.startup, fit.startup_interval.low, fit.startup_interval.high),
        row("t_w, ns per byte", fit.element, fit.element_interval.low, fit.element_interval.high),
        row("bandwidth of all pairs ÷ of one pair", verdict.ratio, verdict.interval.low, verdict.interval.high),
    ];
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let crowded = args.layer.over == Over::Threads && args.ranks as usize > cores;
    let kind = match verdict.network {
        Some(Kind::Star) => "a star: all pairs together have the bandwidth of one pair",
        Some(Kind::Crossbar) => "a crossbar: pairs do not disturb each other",
        None if crowded => "undecided: there are more ranks than cores, so the cores limit the bandwidth of all pairs",
        None => "undecided: the interval contains the limit; more --repetitions narrow it",
    };
    let mut remark = format!("\n{} ranks: {kind}. The ratio's limit is √⌊p/2⌋ = {:.2}.", args.ranks, verdict.limit);
    if fit.element_interval.low <= 0.0 {
        remark += "\nt_w is not known: its interval contains 0. The machine is noisy, or start-ups outweigh the longest message.";
    }
    show(&["parameter", "value", "from", "to"], &rows, &remark, args.json)
}
