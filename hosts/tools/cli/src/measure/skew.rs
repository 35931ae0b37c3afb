//! `unisono measure skew`: how far apart in time ranks leave a barrier, and how far apart they start at a common
//! deadline of the time-stamp counter, or of clocks that were compared. (Paper P5 measured 200 µs and 60 µs, between
//! nodes with an external trigger.)

use super::args::Skew;
use super::mpi;
use super::network::TRIPS;
use crate::bench::clock::{Clock, now};
use crate::error::Failure;
use crate::model::table::show;
use crate::team::Team;
use serde_json::{Value, json};
use unisono_kernel::algorithm::BarrierAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::region::Params;
use unisono_measure::MeasureError;
use unisono_measure::clocks::Aligned;
use unisono_measure::skew::{self, Skew as Skewed};
use unisono_model::stats::Median;

/// Nanoseconds from the agreement on a deadline to the deadline.
const AHEAD: f64 = 100_000.0;

/// The measurement between ranks of an MPI job.
pub(super) fn over_mpi(args: &Skew) -> Result<(), Failure> {
    let apart = std::time::Duration::from_nanos(AHEAD as u64);
    let found = mpi::on(&args.libraries, |job| -> Result<_, MeasureError> {
        let ranks = job.size();
        let skew = skew::measure(&mut Aligned::new(job, ranks, TRIPS)?, args.repetitions, apart)?;
        Ok((ranks, skew))
    })?;
    let Some((ranks, Skewed { barrier, deadline, bound })) = found else { return Ok(()) };
    let row =
        |(name, median): (&str, Median)| vec![json!(name), json!(median.value), json!(median.low), json!(median.high)];
    let rows = [("barrier, dissemination", barrier), ("deadline", deadline)].map(row);
    let remark = format!(
        "\n{ranks} ranks; barrier ÷ deadline = {:.2}. The paper: 200 µs ÷ 60 µs. Clocks are known to ±{bound:.0} ns.",
        barrier.value / deadline.value
    );
    show(&COLUMNS, &rows, &remark, args.json)
}

const COLUMNS: [&str; 4] = ["ranks let go by", "last − first, ns", "from", "to"];

pub(crate) fn work(team: &mut Team, args: &Skew) -> Result<(), Failure> {
    let mut joined = team.join(Params::new(team.size()))?;
    let clock = Clock::calibrate();
    let yields = joined.waiting.yields;
    let mut rows = Vec::new();
    let names = [("barrier, posted", Some("posted")), ("barrier, dissemination", Some("dissemination"))];
    for (name, algorithm) in names.into_iter().chain([("barrier, central", Some("central")), ("deadline", None)]) {
        let mut leaves = Vec::with_capacity(args.repetitions);
        for _ in 0..args.repetitions {
            let comm = &mut joined.communicator;
            match algorithm.and_then(BarrierAlgorithm::from_name) {
                Some(algorithm) => comm.run(&Call::Barrier { algorithm }).map(drop)?,
                None => {
                    let mut bytes = (now() + clock.ticks(AHEAD)).to_ne_bytes();
                    comm.bcast(&mut bytes, 0)?;
                    let deadline = u64::from_ne_bytes(bytes);
                    while now() < deadline {
                        if yields {
                            std::thread::yield_now();
                        }
                    }
                }
            }
            leaves.push(now());
            comm.barrier()?;
        }
        let all = team.gather(&leaves)?;
        let of = |at: usize| all.iter().filter_map(move |rank| rank.get(at)).copied();
        let spread = |at: usize| clock.ticks_as_ns(of(at).max().unwrap_or(0).saturating_sub(of(at).min().unwrap_or(0)));
        let spreads: Vec<f64> = (0..args.repetitions).map(spread).collect();
        let median = Median::new(&spreads, unisono_measure::LEVEL)?;
        rows.push([json!(name), json!(median.value), json!(median.low), json!(median.high)].to_vec());
    }
    if team.rank() == 0 {
        let of = |row: Option<&Vec<Value>>| row.and_then(|row| row.get(1)).and_then(Value::as_f64).unwrap_or(f64::NAN);
        let ratio = of(rows.first()) / of(rows.last());
        let remark = format!("\n{} ranks; posted ÷ deadline = {ratio:.2}. The paper: 200 µs ÷ 60 µs.", team.size());
        show(&COLUMNS, &rows, &remark, args.json)?;
    }
    Ok(())
}
