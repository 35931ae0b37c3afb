//! `unisono bench`: a collective between real processes, beside the machine's floor.
//!
//! There are two [methods]: `window` is latency, `rate` is throughput. Results are verified outside the timed part.

mod bare;
mod buffers;
mod calls;
pub(crate) mod clock;
mod collectives;
mod comm;
mod contender;
mod floor;
mod handwritten;
mod methods;
mod overlap;
mod rival;
mod shape;
mod subject;
mod table;

use crate::args::{Bench, Blocks, Collective, Method};
use crate::decide;
use crate::error::Failure;
use crate::form::Form;
use crate::job::Job;
use crate::out::{out, outln};
use crate::progress::progress;
use crate::team::{self, Team};
pub(crate) use buffers::{fill, holds};
pub(crate) use contender::Contender;
pub(crate) use floor::Floors;
pub(crate) use methods::{Calls, Plan, rate_times, summary};
pub(crate) use subject::Subject;
pub(crate) use table::{Row, Table};
use unisono_kernel::region::{Cico, Params};
use unisono_posix::Joined;

/// The segment that the arguments ask for.
fn params(args: &Bench) -> Params {
    let base = Params::new(args.ranks);
    let Cico { slots, fragment, sets } = args.cico_bytes.map_or(Cico::DEFAULT, Cico::of_bytes);
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

/// Starts the ranks. What can't be measured is refused here, once, and not on each rank.
pub(crate) fn run(args: Bench) -> Result<(), Failure> {
    // That there are ranks is checked where they are started.
    if args.ranks > 0 && !matches!(args.collective, Collective::Overlap | Collective::Comm) {
        subjects(&args)?;
    }
    team::launch(args.ranks, args.bind, args.memory.variables(), &Job::Bench(args))
}

/// What is to be measured, by size.
fn subjects(args: &Bench) -> Result<Vec<Vec<Subject>>, Failure> {
    let of = |&bytes| {
        let crowded = decide::crowded(args.ranks);
        Subject::of(args.collective, args.blocks, &args.algorithm, bytes, args.ranks, crowded)
    };
    args.bytes.iter().map(of).collect()
}

/// A rank of `unisono bench`.
pub(crate) fn work(team: &mut Team, args: &Bench) -> Result<(), Failure> {
    match args.collective {
        Collective::Overlap => return overlap::work(team, args),
        Collective::Comm => return comm::work(team, args),
        _ => {}
    }
    let by_size = subjects(args)?;
    let mut joined = team.join(params(args))?;
    let speaker = team.rank() == 0;
    if speaker && !args.json {
        let blocks = if args.blocks == Blocks::Unequal { "; unequal blocks" } else { "" };
        let lent = if args.lent { "; buffers in memory that all ranks have mapped" } else { "" };
        outln!("{} ranks, waiting: {}; segment: {}{blocks}{lent}", team.size(), joined.waiting, joined.pages)?;
    }
    let bar = progress(speaker && !args.json, 1 + 2 * by_size.len() as u64);
    bar.set_message("floors");
    let floors = Floors::measure(team, &joined, &args.bytes, args.warm)?;
    bar.inc(1);
    // A persistent operation is initialised for one buffer.
    let warm = args.warm || args.form == Form::Persistent;
    let plan = Plan { iterations: args.iterations, warm, lent: args.lent, calls: Calls::InTurn, budget: 5e8 };
    let mut table = Table::default();
    for subjects in by_size {
        let join = |subject: Subject| Contender::join(team, &mut joined, subject, args.form);
        let mut contenders = subjects.into_iter().map(join).collect::<Result<Vec<_>, _>>()?;
        for method in [Method::Window, Method::Rate] {
            if args.method == Method::Both || args.method == method {
                bar.set_message(contenders.iter().map(|one| one.subject.to_string()).collect::<Vec<_>>().join(", "));
                for row in measure(team, &mut joined, &floors, &mut contenders, method, plan)? {
                    if speaker && args.json {
                        outln!("{}", serde_json::to_string(&row)?)?;
                    }
                    table.push(row);
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if speaker && !args.json {
        outln!("{floors}")?;
        out!("{table}")?;
    }
    Ok(())
}

/// Measures contenders of one size side by side, a row each; every rank returns the same.
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
        blocks: subject.blocks(),
        algorithm: subject.algorithm(),
        form: form.name().into(),
        default: subject.is_default(),
        host: "posix".into(),
        method: name.into(),
        ranks: team.size(),
        bytes: subject.bytes,
        warm: plan.warm,
        lent: plan.lent,
        iterations: sample.iterations,
        p50_ns: sample.p50,
        p99_ns: sample.p99,
        max_ns: sample.max,
        floor_ns: floors.of(subject, team.size()),
    });
    Ok(rows.collect())
}
