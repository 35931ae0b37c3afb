//! `unisono measure queue`: the times of paper P1's model between real processes, and the model beside measured
//! broadcasts.
//!
//! | time | measured as |
//! |---|---|
//! | t | the mean of a byte's copy in and copy out, of 64 KiB, buffers rotating |
//! | t_W | one way of a cache line between ranks 0 and 1; with more ranks than cores, a turn of a core's ranks, and f* is not given |
//! | t_A | an atomic subtraction, all ranks at once on one word |
//! | t_WO | a central counter's barrier less t_A: all ranks have counted, the root has seen it, and all have seen its word |

use super::args::Queue;
use crate::args::Collective;
use crate::bench::{Calls, Contender, Floors, Plan, Subject, rate_times};
use crate::error::Failure;
use crate::form::Form;
use crate::model::table::show;
use crate::team::Team;
use serde_json::{Value, json};
use std::time::Instant;
use unisono_kernel::region::{Cico, Counter, Params, Region};
use unisono_model::queue::{Queue as Shape, Times};
use unisono_model::stats::Median;
use unisono_posix::Joined;

/// Bytes whose copies are timed.
const COPIED: u64 = 64 << 10;
/// Numbers of slots of 8 KiB.
const SLOTS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Refuses wrong arguments before any rank starts.
pub(super) fn check(args: &Queue) -> Result<(), Failure> {
    let known = args.algorithm.starts_with("cico-");
    let named = Subject::by_name(Collective::Bcast, &args.algorithm, args.message, args.ranks);
    if !known || named.is_err() {
        return Err(Failure::Words(format!("no broadcast of paper P1 is called {:?}", args.algorithm)));
    }
    if args.fragments.contains(&0) {
        return Err(Failure::Words("fragments: a slot of 0 bytes holds nothing".into()));
    }
    if !(args.seconds > 0.0 && args.seconds <= 3600.0) {
        return Err(Failure::Words(format!("seconds is {}, must be above 0 and at most 3600", args.seconds)));
    }
    Ok(())
}

pub(crate) fn work(team: &mut Team, args: &Queue) -> Result<(), Failure> {
    let base = Params::new(args.ranks);
    let mut joined = team.join(base.with_cico())?;
    let floors = Floors::measure(team, &joined, &[COPIED], false)?;
    let (inwards, outwards) = floors.copies(COPIED).unwrap_or((f64::NAN, f64::NAN));
    let byte = f64::midpoint(inwards, outwards) / COPIED as f64;
    let release = decrement(team, &joined)?;
    let open = (barrier(team, &mut joined, args)?.value - release).max(0.0);
    let times = Times::new(byte, open, release, floors.notice())?;
    let fragment = times.best_fragment_for(args.message, args.queue_bytes)?;
    let slots = args.queue_bytes as f64 / fragment;
    let speaks = team.rank() == 0;
    if speaks {
        let row = |name: &str, ns: f64| vec![json!(name), json!(ns), json!(ns / byte)];
        let rows = [row("t", byte), row("t_WO", open), row("t_A", release), row("t_W", floors.notice())];
        let (message, budget) = (unisono_plot::bytes(args.message), unisono_plot::bytes(args.queue_bytes));
        let remark = if joined.waiting.yields {
            format!(
                "\nCrowded: {} ranks share cores, so t_WO and t_W are turns of processes, not transfers of a line. For f* and s*, \
                 take at most as many ranks (-n) as cores.\n",
                args.ranks
            )
        } else {
            let (of_b, default) = (base.with_queue_bytes(args.queue_bytes), unisono_plot::bytes(base.queue_bytes()));
            format!(
                "\nf* = {fragment:.0} bytes, s* = {slots:.1} slots for m = {message}, b = {budget}. Unisono's own queue of so many bytes, by \
                 typical times: f = {}, s = {}; b is {default} by default.\n",
                of_b.queue_fragment, of_b.queue_slots,
            )
        };
        show(&["time", "ns", "÷ t"], &rows, &remark, args.json)?;
    }
    let by_fragment = args.fragments.iter().filter_map(|&fragment| {
        let of_budget = || u32::try_from(args.queue_bytes / fragment).ok();
        let slots = args.slots.or_else(of_budget).filter(|slots| *slots >= args.sets)?;
        Some((fragment, slots - slots % args.sets))
    });
    let by_slots = SLOTS.iter().filter(|slots| **slots % args.sets == 0).map(|&slots| (8192, slots));
    let mut rows = Vec::new();
    for (fragment, slots) in by_fragment.chain(by_slots) {
        let cico = Cico { slots, fragment, sets: args.sets };
        let measured = broadcast(team, args, Params { cico: Some(cico), ..base })?;
        let shape = Shape { message: args.message, fragment, slots: slots.into(), sets: args.sets.into() };
        let model = times.sets(shape)?.total();
        rows.push(vec![
            json!(fragment),
            json!(slots),
            json!(fragment * u64::from(slots)),
            json!(model / 1e3),
            json!(measured.value / 1e3),
            json!(measured.low / 1e3),
            json!(measured.high / 1e3),
            json!(model / measured.value),
        ]);
    }
    if speaks {
        let remark = best(&rows);
        show(&["f", "s", "b", "model µs", "measured µs", "from", "to", "model ÷ measured"], &rows, &remark, args.json)?;
    }
    Ok(())
}

/// The fastest measured broadcast.
fn best(rows: &[Vec<Value>]) -> String {
    let at = |row: &[Value], column: usize| row.get(column).and_then(Value::as_f64).unwrap_or(f64::INFINITY);
    match rows.iter().min_by(|one, other| at(one, 4).total_cmp(&at(other, 4))) {
        Some(row) => format!("\nMeasured best: f = {:.0}, s = {:.0}.", at(row, 0), at(row, 1)),
        None => String::new(),
    }
}

/// Nanoseconds of a rank's atomic subtraction, while all do the same.
fn decrement(team: &mut Team, joined: &Joined) -> Result<f64, Failure> {
    const TIMES: u64 = 100_000;
    // A word that no operation of this communicator has used: the papers' sets, before their first broadcast.
    let comm = joined.communicator.comm();
    let counter = comm.region().counter(comm.member().layout().set_bytes(0));
    team.gather(&())?;
    let begin = Instant::now();
    for _ in 0..TIMES {
        counter.fetch_add(1);
        counter.fetch_sub(1);
    }
    let mine = begin.elapsed().as_nanos() as f64 / (2 * TIMES) as f64;
    let all = team.gather(&mine)?;
    Ok(all.iter().sum::<f64>() / all.len() as f64)
}

/// A barrier by a central counter.
fn barrier(team: &mut Team, joined: &mut Joined, args: &Queue) -> Result<Median, Failure> {
    timed(team, joined, Collective::Barrier, "central", 0, args.seconds)
}

/// Paper P1's broadcast, in a segment of its own.
fn broadcast(team: &mut Team, args: &Queue, params: Params) -> Result<Median, Failure> {
    let mut joined = team.join(params)?;
    timed(team, &mut joined, Collective::Bcast, &args.algorithm, args.message, args.seconds)
}

fn timed(
    team: &mut Team,
    joined: &mut Joined,
    collective: Collective,
    algorithm: &str,
    bytes: u64,
    seconds: f64,
) -> Result<Median, Failure> {
    let subjects = Subject::by_name(collective, algorithm, bytes, team.size())?;
    let ready = |subject| Contender::join(team, joined, subject, Form::Blocking);
    let mut contenders = subjects.into_iter().map(ready).collect::<Result<Vec<_>, _>>()?;
    let plan = Plan { iterations: None, warm: false, lent: false, calls: Calls::InTurn, budget: seconds * 1e9 };
    let times = rate_times(team, joined, &mut contenders, plan)?;
    let times = times.first().map_or(&[][..], |times| times.ns.as_slice());
    Ok(Median::new(times, unisono_measure::LEVEL)?)
}
