//! `unisono bench`: a collective between real processes, beside the machine's floor.
//!
//! The two methods are those of DESIGN §10 (docs/performance.md): `window` is latency, `rate` is
//! throughput. Results are verified outside the timed part.

mod buffers;
pub(crate) mod clock;
mod floor;
mod handwritten;
mod methods;
mod subject;
mod table;

use crate::args::{Bench, Method};
use crate::error::Failure;
use crate::job::Team;
pub(crate) use floor::Floors;
use handwritten::HandWritten;
use indicatif::{ProgressBar, ProgressStyle};
use methods::Sample;
use serde::{Deserialize, Serialize};
pub(crate) use subject::Subject;
pub(crate) use table::Table;
use unisono_kernel::Rank;
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::Error;
use unisono_kernel::region::Params;
use unisono_kernel::region::layout::Cico;
use unisono_posix::{Joined, Posix};

/// One row of a report; the fields are those of DESIGN §9.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) collective: String,
    pub(crate) algorithm: String,
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
    pub(crate) floor_ns: f64,
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
    let base = Params::new(args.ranks).with_cico();
    let Cico { slots, fragment, sets } = base.cico.unwrap_or(Cico { slots: 64, fragment: 8192, sets: 2 });
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
    let mut subjects = Vec::new();
    for &bytes in &args.bytes {
        subjects.extend(Subject::by_name(args.collective, &args.algorithm, bytes)?);
    }
    let mut joined = team.join(params(args))?;
    let speaker = team.rank() == 0;
    if speaker && !args.json {
        println!("{} ranks, waiting: {}", team.size(), joined.waiting);
    }
    let bar = progress(speaker && !args.json, 1 + 2 * subjects.len() as u64);
    bar.set_message("floors");
    let floors = Floors::measure(team, &joined, &args.bytes, args.warm)?;
    bar.inc(1);
    let plan = Plan { iterations: args.iterations, warm: args.warm, budget: 5e8 };
    let mut table = Table::default();
    for subject in subjects {
        for method in [Method::Window, Method::Rate] {
            if args.method != Method::Both && args.method != method {
                bar.inc(1);
                continue;
            }
            bar.set_message(subject.to_string());
            let row = measure(team, &mut joined, &floors, &subject, method, plan)?;
            bar.inc(1);
            if speaker && args.json {
                println!("{}", serde_json::to_string(&row)?);
            }
            table.push(row);
        }
    }
    bar.finish_and_clear();
    if speaker && !args.json {
        println!("{floors}");
        print!("{table}");
    }
    Ok(())
}

/// Measures one row; every rank answers the same.
pub(crate) fn measure(
    team: &mut Team,
    joined: &mut Joined,
    floors: &Floors,
    subject: &Subject,
    method: Method,
    plan: Plan,
) -> Result<Row, Failure> {
    let sample = if subject.is_hand_written() {
        let mut hand = HandWritten::join(team)?;
        sample(team, joined, subject, method, plan, |_, buffer, _| hand.call(buffer))?
    } else {
        sample(team, joined, subject, method, plan, |comm, buffer, root| subject.call(comm, buffer, root))?
    };
    Ok(Row {
        collective: subject.collective().into(),
        algorithm: subject.algorithm(),
        default: subject.is_default(),
        host: "posix".into(),
        method: if method == Method::Window { "window".into() } else { "rate".into() },
        ranks: team.size(),
        bytes: subject.bytes,
        warm: plan.warm,
        iterations: sample.iterations,
        p50_ns: sample.p50,
        p99_ns: sample.p99,
        max_ns: sample.max,
        floor_ns: floors.of(subject, team.size()),
    })
}

/// Verifies a way to call a subject, then times it.
fn sample(
    team: &mut Team,
    joined: &mut Joined,
    subject: &Subject,
    method: Method,
    plan: Plan,
    mut call: impl FnMut(&mut Communicator<Posix>, &mut [u8], Rank) -> Result<(), Error>,
) -> Result<Sample, Failure> {
    subject.verify(team, joined, &mut call)?;
    match method {
        Method::Window => methods::window(team, joined, subject, plan, call),
        Method::Rate | Method::Both => methods::rate(team, joined, subject, plan, call),
    }
}

/// A progress bar on the terminal's error stream, for whoever speaks.
pub(crate) fn progress(visible: bool, steps: u64) -> ProgressBar {
    if !visible {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
