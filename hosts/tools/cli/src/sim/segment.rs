//! `unisono sim --segment`: the algorithms over a segment, on a machine with caches.

use super::args::Sim;
use super::plot;
use crate::args::{Blocks, Collective};
use crate::bench::{Row, Subject, Table, summary};
use crate::error::Failure;
use crate::form::Form;
use crate::out::{out, outln};
use serde::Serialize;
use std::fs;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::region::Params;
use unisono_sim::Time;
use unisono_sim::segment::{self, Machine, Traffic};

/// Calls before those that count: the lines of the segment come to where a program has them.
const WARM: u64 = 3;

/// A row of the report: bench's keys, and further ones of the simulator.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    row: &'a Row,
    machine: &'a str,
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

/// What was measured of one algorithm.
struct Measured {
    samples: Vec<f64>,
    /// When each rank was done in the last call.
    ends: Vec<f64>,
    lines: Lines,
}

fn machine(name: &str) -> Result<Machine, Failure> {
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
        for algorithm in &args.algorithm {
            let subjects = Subject::of(args.collective, Blocks::Equal, algorithm, bytes, args.ranks, false)?;
            for subject in subjects.into_iter().filter(|subject| subject.by_hand().is_none()) {
                let Measured { samples, ends, lines } = measure(args, &machine, &subject)?;
                let sample = summary(samples, args.iterations);
                let row = Row {
                    collective: subject.collective().into(),
                    blocks: Blocks::Equal,
                    default: subject.is_default(),
                    algorithm: subject.algorithm(),
                    form: Form::Blocking.name().into(),
                    host: "segment".into(),
                    method: "window".into(),
                    ranks: args.ranks,
                    bytes,
                    warm: true,
                    lent: false,
                    iterations: sample.iterations,
                    p50_ns: sample.p50,
                    p99_ns: sample.p99,
                    max_ns: sample.max,
                    floor_ns: None,
                };
                if args.json {
                    let ends_ns = args.per_rank.then_some(ends);
                    outln!("{}", serde_json::to_string(&Report { row: &row, machine: name, lines, ends_ns })?)?;
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

/// One rank's calls.
struct Calls {
    /// The time of each, from where all ranks begin.
    times: Vec<f64>,
    before: Traffic,
    after: Traffic,
}

fn measure(args: &Sim, machine: &Machine, subject: &Subject) -> Result<Measured, Failure> {
    let params = Params::new(args.ranks).with_cico();
    let ranks = segment::run(machine, params, |mut communicator, clock| {
        let (rank, root) = (communicator.rank(), args.root);
        let subject = subject.clone().on(rank);
        let mut buffer = vec![0; subject.room() as usize];
        let (mut times, mut before) = (Vec::new(), Traffic::default());
        for call in 0..WARM + args.iterations {
            subject.prepare(&mut buffer, rank, root);
            clock.meet();
            if call == WARM {
                before = clock.traffic();
            }
            let begin: Time = clock.now();
            clock.compute(machine.call);
            communicator.run(&subject.describe(rank, &mut buffer, root)?)?;
            times.push(clock.now().ns() - begin.ns());
            if !subject.right(&mut buffer, rank, args.ranks, root) {
                return Err(Failure::Words(format!("{subject}: wrong result on rank {rank}")));
            }
            clock.meet();
        }
        Ok(Calls { times: times.split_off(WARM as usize), before, after: clock.traffic() })
    })
    .map_err(|error| Failure::Words(error.to_string()))?;
    let ranks = ranks.into_iter().collect::<Result<Vec<_>, Failure>>()?;
    let last = |call: usize| ranks.iter().filter_map(|rank| rank.times.get(call)).copied().fold(0.0, f64::max);
    let ends = ranks.iter().filter_map(|rank| rank.times.last()).copied().collect();
    let lines = ranks.first().map_or_else(Lines::none, |first| Lines::between(first, args.iterations));
    Ok(Measured { samples: (0..args.iterations as usize).map(last).collect(), ends, lines })
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
