//! `unisono sim --segment`: the algorithms over a segment, on a machine with caches.

use super::args::Sim;
use super::plot;
use crate::args::{Blocks, Collective, Method};
use crate::bench::{Row, Subject, Table, summary};
use crate::error::Failure;
use crate::form::Form;
use crate::out::{out, outln};
use serde::Serialize;
use std::fs;
use unisono_kernel::call::Call;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::machine::drive::Stop;
use unisono_kernel::op::Op;
use unisono_kernel::region::Params;
use unisono_sim::Time;
use unisono_sim::segment::rivals::Rival;
use unisono_sim::segment::{self, Machine, PAGE, Segment, Traffic};

/// Posted lines of a rank: few, so that all have been used in the calls before those that count, and are where a program has
/// them.
const LINES: u32 = 4;

/// Calls before those that count.
const WARM: u64 = LINES as u64 + 2;

/// A row of the report: bench's keys, and further ones of the simulator.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    row: &'a Row,
    machine: &'a str,
    /// The time of a call on a rank, mean over ranks, as OSU's benchmarks count it.
    mean_ns: f64,
    lines: Lines,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_ns: Option<Vec<f64>>,
}

/// Lines that a call brought from each place, on average.
#[derive(Debug, Serialize)]
struct Lines {
    group: f64,
    package: f64,
    far: f64,
    memory: f64,
}

/// What was measured of one algorithm, in nanoseconds.
pub(crate) struct Simulated {
    pub(crate) samples: Vec<f64>,
    mean: f64,
    /// When each rank was done in the last call.
    ends: Vec<f64>,
    lines: Lines,
}

/// The machine of this name, or of this file.
pub(crate) fn machine(name: &str) -> Result<Machine, Failure> {
    if let Some(machine) = Machine::named(name) {
        return Ok(machine);
    }
    let text = match fs::read_to_string(name) {
        Ok(text) => text,
        Err(error) => {
            let known = Machine::names().collect::<Vec<_>>().join(", ");
            return Err(Failure::Words(format!(
                "--machine {name}: no machine of this name ({known}), and no file: {error}"
            )));
        }
    };
    serde_json::from_str(&text).map_err(|error| Failure::Words(format!("{name}: {error}")))
}

pub(super) fn run(args: &Sim) -> Result<(), Failure> {
    let name = args.machine.as_deref().unwrap_or_default();
    let machine = machine(name)?;
    Refusal::check(Argument::Root, args.root.into(), Bound::Below(args.ranks.into()))?;
    let lengths = if args.collective == Collective::Barrier { &[0] } else { &args.bytes[..] };
    let mut rows = Vec::new();
    for &bytes in lengths {
        for (subject, rival) in subjects(args, bytes)? {
            for method in [Method::Window, Method::Rate] {
                if args.method != Method::Both && args.method != method {
                    continue;
                }
                let Simulated { samples, mean, ends, lines } =
                    simulate(&machine, (&subject, rival), args.lent, args.ranks, args.root, args.iterations, method)?;
                let sample = summary(samples, args.iterations);
                let row = Row {
                    collective: subject.collective().into(),
                    blocks: Blocks::Equal,
                    default: rival.is_none() && subject.is_default(),
                    algorithm: rival.map_or_else(|| subject.algorithm(), |rival| rival.to_string()),
                    form: Form::Blocking.name().into(),
                    host: "segment".into(),
                    method: if method == Method::Window { "window" } else { "rate" }.into(),
                    ranks: args.ranks,
                    bytes,
                    warm: true,
                    lent: args.lent && rival.is_none(),
                    iterations: sample.iterations,
                    p50_ns: sample.p50,
                    p99_ns: sample.p99,
                    max_ns: sample.max,
                    floor_ns: None,
                };
                if args.json {
                    let ends_ns = args.per_rank.then_some(ends);
                    outln!(
                        "{}",
                        serde_json::to_string(&Report { row: &row, machine: name, mean_ns: mean, lines, ends_ns })?
                    )?;
                }
                rows.push(row);
            }
        }
    }
    let title = format!("{} ranks on {name}, through shared memory", args.ranks);
    if let Some(file) = &args.plot {
        fs::write(file, plot::draw(&title, &rows)?).map_err(|e| Failure::Words(format!("{}: {e}", file.display())))?;
    }
    if !args.json {
        outln!("{title}, virtual time")?;
        let mut table = Table::default();
        rows.into_iter().for_each(|row| table.push(row));
        out!("{table}")?;
    }
    Ok(())
}

/// What is asked for: our algorithms, and rivals, which do the same as a subject.
fn subjects(args: &Sim, bytes: u64) -> Result<Vec<(Subject, Option<Rival>)>, Failure> {
    let of = |name: &str| Subject::of(args.collective, Blocks::Equal, name, bytes, args.ranks, false);
    let theirs = |rival| -> Result<_, Failure> { Ok((of("auto")?.remove(0), Some(rival))) };
    let plays = matches!(args.collective, Collective::Barrier | Collective::Bcast | Collective::Allreduce);
    let mut all = Vec::new();
    for name in &args.algorithm {
        match Rival::named(name).filter(|_| plays) {
            Some(rival) => all.push(theirs(rival)?),
            None => {
                all.extend(of(name)?.into_iter().filter(|subject| subject.by_hand().is_none()).map(|ours| (ours, None)))
            }
        }
    }
    if args.rivals && !plays {
        return Err(Failure::Words("--rivals: barrier, bcast and allreduce have rivals".into()));
    }
    for rival in Rival::ALL.into_iter().filter(|_| args.rivals) {
        all.push(theirs(rival)?);
    }
    Ok(all)
}

/// One rank's calls.
struct Calls {
    /// The time of each, from where all ranks begin.
    times: Vec<f64>,
    before: Traffic,
    after: Traffic,
}

/// Runs an algorithm, or a rival's, on a machine: the time of each call from where all ranks begin to the end of the last one (`window`), or
/// the mean of calls that follow one another, on the rank that takes longest, each rank the root in turn (`rate`).
pub(crate) fn simulate(
    machine: &Machine,
    (subject, rival): (&Subject, Option<Rival>),
    lent: bool,
    size: u32,
    root: u32,
    iterations: u64,
    method: Method,
) -> Result<Simulated, Failure> {
    let apart = method == Method::Window;
    let instructions = machine.call + if subject.reduces() { machine.op } else { 0.0 };
    let ours = Params { lines: LINES, ..Params::new(size).with_cico() };
    let params = rival.map_or(ours, |rival| rival.params(size, subject.room()));
    let segment = Segment::new(params)?;
    let segment = if lent { segment.lend_from(1) } else { segment };
    let ranks = segment::run_on(machine, &segment, |mut communicator, clock| {
        let rank = communicator.rank();
        let mut rival = rival.map(|rival| rival.join(&communicator, &clock, machine));
        let subject = subject.clone().on(rank);
        let subject = if lent { subject.apart() } else { subject };
        // A core's caches keep private memory by pages, so a run is the same each time if a buffer begins with one.
        let mut pages = vec![0; subject.room() as usize + PAGE];
        let begin = pages.as_ptr().align_offset(PAGE).min(PAGE);
        let buffer = &mut pages[begin..begin + subject.room() as usize];
        let (mut times, mut before, mut start) = (Vec::new(), Traffic::default(), Time::ZERO);
        for call in 0..WARM + iterations {
            let root = if apart { root } else { (call % u64::from(size)) as u32 };
            subject.prepare(buffer, rank, root);
            if apart || call == WARM {
                clock.meet();
                start = clock.now();
            }
            if call == WARM {
                before = clock.traffic();
            }
            clock.compute(instructions);
            let late = |error| communicator.comm().fail(Stop::Wait(error));
            match (&mut rival, subject.describe(rank, buffer, root)?) {
                (None, call) => drop(communicator.run(&call)?),
                (Some(rival), Call::Bcast { .. }) => rival.bcast(buffer, root).map_err(late)?,
                (Some(rival), Call::Allreduce { .. }) => rival.allreduce(buffer, &Op::SUM_F64).map_err(late)?,
                (Some(rival), _) => rival.barrier().map_err(late)?,
            }
            if apart {
                times.push(clock.now().ns() - start.ns());
            }
            if !subject.right(buffer, rank, size, root) {
                return Err(Failure::Words(format!("{subject}: wrong result on rank {rank}")));
            }
            if apart {
                clock.meet();
            }
        }
        let times = if apart {
            times.split_off(WARM as usize)
        } else {
            vec![(clock.now().ns() - start.ns()) / iterations as f64]
        };
        clock.meet();
        Ok(Calls { times, before, after: clock.traffic() })
    })
    .map_err(|error| Failure::Words(error.to_string()))?;
    let ranks = ranks.into_iter().collect::<Result<Vec<_>, Failure>>()?;
    let last = |call: usize| ranks.iter().filter_map(|rank| rank.times.get(call)).copied().fold(0.0, f64::max);
    let ends = ranks.iter().filter_map(|rank| rank.times.last()).copied().collect();
    let count = ranks.first().map_or(0, |rank| rank.times.len());
    let lines = ranks.first().map_or_else(Lines::none, |first| Lines::between(first, iterations));
    let all = ranks.iter().flat_map(|rank| &rank.times);
    let mean = all.clone().sum::<f64>() / all.count() as f64;
    Ok(Simulated { samples: (0..count).map(last).collect(), mean, ends, lines })
}

impl Lines {
    const fn none() -> Self {
        Self { group: 0.0, package: 0.0, far: 0.0, memory: 0.0 }
    }

    fn between(calls: &Calls, iterations: u64) -> Self {
        let mean = |of: fn(&Traffic) -> u64| (of(&calls.after) - of(&calls.before)) as f64 / iterations as f64;
        Self {
            group: mean(|t| t.group),
            package: mean(|t| t.package),
            far: mean(|t| t.far),
            memory: mean(|t| t.memory),
        }
    }
}
