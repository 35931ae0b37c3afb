//! `unisono bench`: a collective between real processes, beside the machine's floor.
//!
//! The two methods are those of DESIGN §10 (docs/performance.md): `window` is latency, `rate` is
//! throughput. Results are verified outside the timed part.

mod buffers;
pub(crate) mod clock;
mod collectives;
mod comm;
mod contender;
mod floor;
mod handwritten;
mod methods;
mod overlap;
mod subject;
mod table;

use crate::args::{Bench, Collective, Method};
use crate::error::Failure;
use crate::form::Form;
use crate::job::Team;
pub(crate) use buffers::{fill, holds};
pub(crate) use collectives::Sides;
pub(crate) use contender::Contender;
pub(crate) use floor::Floors;
use indicatif::{ProgressBar, ProgressStyle};
pub(crate) use methods::{rate_times, summary};
use serde::{Deserialize, Serialize};
pub(crate) use subject::{Subject, names};
pub(crate) use table::Table;
use unisono_kernel::region::Params;
use unisono_kernel::region::layout::Cico;
use unisono_posix::Joined;

/// One row of a report; the fields are those of DESIGN §9.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) collective: String,
    pub(crate) algorithm: String,
    /// Blocking, nonblocking or persistent.
    pub(crate) form: String,
    /// Is it the one chosen by default?
    pub(crate) default: bool,
    pub(crate) host: String,
    pub(crate) method: String,
    pub(crate) ranks: u32,
    pub(crate) bytes: u64,
    /// Do the buffers stay in the cache?
    pub(crate) warm: bool,
    pub(crate) iterations: u64,
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    pub(crate) max_ns: f64,
    /// Nothing where no formula is known.
    pub(crate) floor_ns: Option<f64>,
}

/// How a row is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) iterations: Option<u64>,
    pub(crate) warm: bool,
    /// Nanoseconds that a row may take, roughly.
    pub(crate) budget: f64,
}

/// The segment that the arguments ask for.
fn params(args: &Bench) -> Params {
    let base = Params::new(args.ranks);
    let Cico { slots, fragment, sets } = Cico::of_bytes(args.cico_bytes.unwrap_or(base.queue_bytes()));
    let base = args.queue_bytes.map_or(base, |bytes| base.with_queue_bytes(bytes));
    Params {
        lines: args.lines.unwrap_or(base.lines),
        queue_slots: args.queue_slots.unwrap_or(base.queue_slots),
        queue_fragment: args.queue_fragment.unwrap_or(base.queue_fragment),
        cico: Some(Cico {
            slots: args.cico_slots.unwrap_or(slots),
            fragment: args.cico_fragment.unwrap_or(fragment),
            sets: args.cico_sets.unwrap_or(sets),
        }),
        ..base
    }
}

/// A rank of `unisono bench`.
pub(crate) fn work(team: &mut Team, args: &Bench) -> Result<(), Failure> {
    match args.collective {
        Collective::Overlap => return overlap::work(team, args),
        Collective::Comm => return comm::work(team, args),
        _ => {}
    }
    let by_size = args.bytes.iter().map(|&bytes| Subject::by_name(args.collective, &args.algorithm, bytes, args.ranks));
    let by_size = by_size.collect::<Result<Vec<_>, _>>()?;
    let mut joined = team.join(params(args))?;
    let speaker = team.rank() == 0;
    if speaker && !args.json {
        println!("{} ranks, waiting: {}; segment: {}", team.size(), joined.waiting, joined.pages);
    }
    let bar = progress(speaker && !args.json, 1 + 2 * by_size.len() as u64);
    bar.set_message("floors");
    let floors = Floors::measure(team, &joined, &args.bytes, args.warm)?;
    bar.inc(1);
    // A persistent operation is planned for a buffer.
    let warm = args.warm || args.form == Form::Persistent;
    let plan = Plan { iterations: args.iterations, warm, budget: 5e8 };
    let mut table = Table::default();
    for subjects in by_size {
        let join = |subject: Subject| Contender::join(team, &mut joined, subject, args.form);
        let mut contenders = subjects.into_iter().map(join).collect::<Result<Vec<_>, _>>()?;
        for method in [Method::Window, Method::Rate] {
            if args.method == Method::Both || args.method == method {
                bar.set_message(contenders.iter().map(|one| one.subject.to_string()).collect::<Vec<_>>().join(", "));
                for row in measure(team, &mut joined, &floors, &mut contenders, method, plan)? {
                    if speaker && args.json {
                        println!("{}", serde_json::to_string(&row)?);
                    }
                    table.push(row);
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if speaker && !args.json {
        println!("{floors}");
        print!("{table}");
    }
    Ok(())
}

/// Measures contenders of one size side by side, a row each; every rank answers the same.
pub(crate) fn measure(
    team: &mut Team,
    joined: &mut Joined,
    floors: &Floors,
    contenders: &mut [Contender],
    method: Method,
    plan: Plan,
) -> Result<Vec<Row>, Failure> {
    let (name, samples) = match method {
        Method::Window => {
            let each = contenders.iter_mut().map(|contender| methods::window(team, joined, contender, plan));
            ("window", each.collect::<Result<Vec<_>, _>>()?)
        }
        Method::Rate | Method::Both => ("rate", methods::rate(team, joined, contenders, plan)?),
    };
    for contender in &mut *contenders {
        contender.verify(team, joined)?;
    }
    let rows = contenders.iter().zip(samples).map(|(Contender { subject, form, .. }, sample)| Row {
        collective: subject.collective().into(),
        algorithm: subject.algorithm(),
        form: form.name().into(),
        default: subject.is_default(),
        host: "posix".into(),
        method: name.into(),
        ranks: team.size(),
        bytes: subject.bytes,
        warm: plan.warm,
        iterations: sample.iterations,
        p50_ns: sample.p50,
        p99_ns: sample.p99,
        max_ns: sample.max,
        floor_ns: floors.of(subject, team.size()),
    });
    Ok(rows.collect())
}

/// A progress bar on the terminal's error stream, for whoever speaks.
pub(crate) fn progress(visible: bool, steps: u64) -> ProgressBar {
    if !visible {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
