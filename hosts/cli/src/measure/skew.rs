//! `unisono measure skew`: how far apart ranks leave a barrier, against how far apart a common deadline of the
//! time-stamp counter lets them go (paper P5 measured 200 µs against 60 µs between nodes with an external trigger).

use super::args::Skew;
use crate::bench::clock::{Clock, now};
use crate::error::Failure;
use crate::job::Team;
use crate::model::table::show;
use serde_json::{Value, json};
use unisono_kernel::region::Params;
use unisono_kernel::select::BarrierAlgorithm;
use unisono_model::stats::Median;

/// Nanoseconds from the agreement on a deadline to the deadline.
const AHEAD: f64 = 100_000.0;

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
                Some(algorithm) => comm.barrier_with(algorithm)?,
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
        show(&["ranks let go by", "last − first, ns", "from", "to"], &rows, &remark, args.json)?;
    }
    Ok(())
}
