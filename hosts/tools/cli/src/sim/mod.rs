//! `unisono sim`: a collective between thousands of ranks on virtual time.

mod algorithms;
pub(crate) mod args;
mod compare;
mod data;
mod machine;
mod plot;
pub(crate) mod segment;

use crate::args::{Blocks, Collective};
use crate::bench::{Row, Table, summary};
use crate::decide::{self, messages};
use crate::error::Failure;
use crate::form::Form;
use crate::out::{out, outln};
use algorithms::{Choice, Tables};
use args::Sim;
use data::{Case, Memory};
use machine::{Machine, Set, Storage, words};
pub(crate) use machine::{network, topology};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use unisono_kernel::machine::ByRef;
use unisono_kernel::msg::PlanError;
use unisono_kernel::msg::levels::Line;
use unisono_kernel::table::{self, Over};
use unisono_sim::{Class, Fate, Network, Outcome, Schedule, World};

/// A row of the report: bench's keys, and further ones of the simulator.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    row: &'a Row,
    nodes: u32,
    network: &'a Network,
    seed: u64,
    traffic: BTreeMap<String, Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_ns: Option<Vec<f64>>,
}

/// Messages and bytes that one run sent over links of one class.
#[derive(Debug, Serialize)]
struct Count {
    messages: u64,
    bytes: u64,
}

pub(crate) fn run(args: &Sim) -> Result<(), Failure> {
    if args.segment {
        return segment::run(args);
    }
    let wanted = decide::name(args.collective);
    if let Some(other) = decide::stands_for(args.collective) {
        let other = decide::name(other);
        return Err(Failure::Words(format!("{wanted} is not simulated; {other} is, by the same algorithms")));
    }
    let (collective, known) = messages(args.collective)
        .ok_or_else(|| Failure::Words(format!("{wanted} is not a collective over messages")))?;
    let machine = Machine::new(args)?;
    let mut rooms: Vec<_> = machine.sets.iter().map(|_| (Storage::default(), vec![0; args.ranks as usize])).collect();
    let groups = machine
        .sets
        .iter()
        .zip(&mut rooms)
        .map(|(set, (storage, order))| Ok::<_, Failure>((machine.groups(set, storage)?, order)));
    let mut groups = groups.collect::<Result<Vec<_>, _>>()?;
    let lines = groups.iter_mut().map(|(groups, order)| Line::build(groups, order)).collect::<Result<Vec<_>, _>>()?;
    let nodes = machine.placement.nodes();
    let schedules: Vec<_> = (0..args.iterations)
        .map(|i| Schedule {
            seed: args.seed.wrapping_add(i),
            delay: args.delay,
            skew: args.skew,
            stragglers: args.stragglers,
            slowdown: args.slowdown,
            dropped: args.drop.clone(),
            ..Schedule::default()
        })
        .collect();
    let lengths = if args.collective == Collective::Barrier { &[0] } else { &args.bytes[..] };
    let mut rows = Vec::new();
    for &bytes in lengths {
        let case = Case { collective: args.collective, ranks: args.ranks, bytes, root: args.root };
        case.check()?;
        let default = decide::default(Over::Messages, args.collective, bytes, args.ranks, false)?;
        let over_levels = if args.levels.is_empty() { &[] } else { algorithms::over_levels(args.collective) };
        let all = args.algorithm == ["all"];
        let chosen = match &args.algorithm[..] {
            [auto] if auto == "auto" => default.iter().map(table::Choice::to_string).collect(),
            _ if all => known.iter().chain(over_levels).map(|name| (*name).to_owned()).collect(),
            named => named.to_vec(),
        };
        let mut choices = Vec::new();
        for name in &chosen {
            let choice = algorithms::choice(args.collective, name)?;
            // Flat algorithms use no levels.
            let sets = if choice.plan().is_some() { 1 } else { lines.len() };
            choices.extend(machine.sets.iter().zip(&lines).take(sets).map(|(set, line)| (choice.clone(), set, *line)));
        }
        for (mut choice, set, line) in choices {
            let mut words = Vec::new();
            let tables = Tables::new(&choice, args.ranks, line, &mut words)?;
            let (samples, outcome) = match simulate(&schedules, &case, &choice, &tables, &machine) {
                Err(Failure::Plan(error)) if all && !matches!(error, PlanError::Refused(_)) => {
                    eprintln!("unisono: left out: {}: {error}", choice.name);
                    continue;
                }
                simulated => simulated?,
            };
            if !machine.is_first(set) {
                choice.name = format!("{}@{}", choice.name, set.name);
            }
            let sample = summary(samples, args.iterations);
            let row = Row {
                collective: collective.into(),
                blocks: Blocks::Equal,
                default: default.is_some() && default == choice.plan(),
                algorithm: choice.name,
                form: Form::Blocking.name().into(),
                host: "sim".into(),
                method: "window".into(),
                ranks: args.ranks,
                bytes,
                warm: false,
                lent: false,
                iterations: sample.iterations,
                p50_ns: sample.p50,
                p99_ns: sample.p99,
                max_ns: sample.max,
                floor_ns: None,
            };
            if args.json {
                let traffic = Class::ALL.map(|class| {
                    let sent = outcome.traffic.of(class);
                    (class.to_string(), Count { messages: sent.messages, bytes: sent.bytes })
                });
                let ends_ns = args.per_rank.then(|| ends(&outcome));
                let report = Report {
                    row: &row,
                    nodes,
                    network: &machine.network,
                    seed: args.seed,
                    traffic: traffic.into(),
                    ends_ns,
                };
                outln!("{}", serde_json::to_string(&report)?)?;
            }
            rows.push(row);
        }
    }
    if let Some(file) = &args.plot {
        let title = format!("{collective}, {} ranks on {nodes} nodes, {}", args.ranks, machine.kind());
        let svg = plot::draw(&title, &rows)?;
        fs::write(file, svg).map_err(|e| Failure::Words(format!("{}: {e}", file.display())))?;
    }
    if args.compare {
        out!("{}", compare::table(&rows))?;
    } else if !args.json {
        outln!("{} ranks on {nodes} nodes, {}, virtual time", args.ranks, machine.kind())?;
        let mut table = Table::default();
        rows.into_iter().for_each(|row| table.push(row));
        out!("{table}")?;
    }
    Ok(())
}

/// Do all ranks' buffers together have at most `most` bytes?
pub(crate) fn holds(collective: Collective, ranks: u32, bytes: u64, most: u64) -> bool {
    let case = Case { collective, ranks, bytes, root: 0 };
    bytes.checked_mul(case.buffers()).is_some_and(|all| all <= most)
}

/// Virtual nanoseconds of one call among ranks with a node each; nothing where the algorithm does not apply.
pub(crate) fn price(
    collective: Collective,
    name: &str,
    ranks: u32,
    bytes: u64,
    network: Network,
) -> Result<Option<f64>, Failure> {
    let times = times(collective, name, ranks, bytes, network, &[Schedule::default()])?;
    Ok(times.and_then(|times| times.first().copied()))
}

/// As [`price`], once for each schedule.
pub(crate) fn times(
    collective: Collective,
    name: &str,
    ranks: u32,
    bytes: u64,
    network: Network,
    schedules: &[Schedule],
) -> Result<Option<Vec<f64>>, Failure> {
    let case = Case { collective, ranks, bytes, root: 0 };
    case.check()?;
    let choice = algorithms::choice(collective, name)?;
    let machine = Machine::apart(network, ranks)?;
    let (mut storage, mut order, mut words) = (Storage::default(), vec![0; ranks as usize], Vec::new());
    let groups = machine.groups(&Set::every(), &mut storage)?;
    let tables = Tables::new(&choice, ranks, Line::build(&groups, &mut order)?, &mut words)?;
    match simulate(schedules, &case, &choice, &tables, &machine) {
        Err(Failure::Plan(PlanError::Inapplicable { .. })) => Ok(None),
        simulated => simulated.map(|(samples, _)| Some(samples)),
    }
}

/// Runs all iterations; returns their times and the last one's outcome.
fn simulate(
    schedules: &[Schedule],
    case: &Case,
    choice: &Choice,
    tables: &Tables<'_>,
    machine: &Machine,
) -> Result<(Vec<f64>, Outcome), Failure> {
    let mut memory = vec![Memory::default(); case.ranks as usize];
    let mut last = None;
    let mut samples = Vec::new();
    for schedule in schedules {
        let named =
            |what: &dyn std::fmt::Display| Failure::Words(format!("{}, seed {}: {what}", choice.name, schedule.seed));
        let world = World::new(machine.network, machine.placement.clone(), schedule.clone()).map_err(words)?;
        let mut machines = Vec::with_capacity(memory.len());
        for (rank, memory) in (0..).zip(&mut memory) {
            case.prepare(rank, memory);
            machines.push(algorithms::machine(case, rank, choice, tables, memory)?);
        }
        let mut ranks: Vec<_> =
            world.endpoints().into_iter().zip(machines.iter_mut().map(|machine| ByRef(machine.as_mut()))).collect();
        let outcome = world.run(&mut ranks);
        let end = outcome.last().map_err(|stuck| named(&stuck))?;
        drop(ranks);
        drop(machines);
        if let Some((rank, _)) = (0..).zip(&memory).find(|(rank, memory)| !case.right(*rank, memory)) {
            return Err(named(&format!("wrong data on rank {rank}")));
        }
        let begin = if case.rooted() { outcome.begin.get(case.root as usize) } else { outcome.begin.iter().min() };
        samples.push(end.ns() - begin.map_or(0.0, |begin| begin.ns()));
        last = Some(outcome);
    }
    let outcome = last.ok_or_else(|| Failure::Words("iterations is 0, must be at least 1".into()))?;
    Ok((samples, outcome))
}

/// When each rank was done, in nanoseconds.
fn ends(outcome: &Outcome) -> Vec<f64> {
    let end = |fate: &Fate| if let Fate::Done(at) = fate { at.ns() } else { f64::NAN };
    outcome.fates.iter().map(end).collect()
}
