//! `unisono sim`: a collective between thousands of ranks on virtual time.

mod algorithms;
pub(crate) mod args;
mod compare;
mod data;
mod machine;
mod plot;

use crate::args::Collective;
use crate::bench::{Row, Sample, Table, summary};
use crate::error::Failure;
use crate::form::Form;
use algorithms::{Choice, Tables};
use args::Sim;
use clap::ValueEnum;
use data::{Case, Memory};
use machine::{Machine, Storage, words};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use unisono_kernel::msg::PlanError;
use unisono_kernel::msg::levels::Line;
use unisono_sim::{Class, Fate, Network, Outcome, Schedule, World};

/// A row of the report: bench's keys, and what the simulator knows beside.
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

/// What one run sent over links of one class.
#[derive(Debug, Serialize)]
struct Count {
    messages: u64,
    bytes: u64,
}

pub(crate) fn run(args: &Sim) -> Result<(), Failure> {
    let (collective, names) = algorithms::names(args.collective).ok_or_else(|| {
        let wanted = args.collective.to_possible_value().map_or_else(String::new, |value| value.get_name().into());
        Failure::Words(format!("{wanted} is no collective over messages"))
    })?;
    let machine = Machine::new(args)?;
    let mut storage = Storage::default();
    let groups = machine.groups(&mut storage)?;
    let mut order = vec![0; args.ranks as usize];
    let line = Line::build(&groups, &mut order)?;
    let nodes = machine.placement.nodes();
    let mut chosen = match args.algorithm.as_str() {
        "auto" => names.get(..1).unwrap_or_default().to_vec(),
        "all" => names.to_vec(),
        one => vec![one],
    };
    if args.algorithm == "all" && args.levels.is_some() {
        chosen.extend(algorithms::over_levels(args.collective));
    }
    let lengths = if args.collective == Collective::Barrier { &[0] } else { &args.bytes[..] };
    let mut rows = Vec::new();
    for &bytes in lengths {
        let case = Case { collective: args.collective, ranks: args.ranks, bytes, root: args.root };
        case.check()?;
        for name in &chosen {
            let choice = algorithms::choice(args.collective, name)?;
            let mut words = Vec::new();
            let tables = Tables::new(&choice, args.ranks, line, &mut words)?;
            let (sample, outcome) = match simulate(args, &case, &choice, &tables, &machine) {
                Err(Failure::Plan(error)) if args.algorithm == "all" && !matches!(error, PlanError::Refused(_)) => {
                    eprintln!("unisono: left out: {name}: {error}");
                    continue;
                }
                simulated => simulated?,
            };
            let row = Row {
                collective: collective.into(),
                algorithm: choice.name,
                form: Form::Blocking.name().into(),
                default: Some(name) == names.first(),
                host: "sim".into(),
                method: "window".into(),
                ranks: args.ranks,
                bytes,
                warm: false,
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
                println!("{}", serde_json::to_string(&report)?);
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
        print!("{}", compare::table(&rows));
    } else if !args.json {
        println!("{} ranks on {nodes} nodes, {}, virtual time", args.ranks, machine.kind());
        let mut table = Table::default();
        rows.into_iter().for_each(|row| table.push(row));
        print!("{table}");
    }
    Ok(())
}

/// Runs all iterations; answers their times and the last one's outcome.
fn simulate(
    args: &Sim,
    case: &Case,
    choice: &Choice,
    tables: &Tables<'_>,
    machine: &Machine,
) -> Result<(Sample, Outcome), Failure> {
    let mut memory = vec![Memory::default(); case.ranks as usize];
    let mut last = None;
    let mut samples = Vec::new();
    for seed in (0..args.iterations).map(|i| args.seed.wrapping_add(i)) {
        let named = |what: &dyn std::fmt::Display| Failure::Words(format!("{}, seed {seed}: {what}", choice.name));
        let schedule = Schedule {
            seed,
            delay: args.delay,
            skew: args.skew,
            stragglers: args.stragglers,
            slowdown: args.slowdown,
            dropped: args.drop.clone(),
            ..Schedule::default()
        };
        let world = World::new(machine.network, machine.placement.clone(), schedule).map_err(words)?;
        let mut machines = Vec::with_capacity(memory.len());
        for (rank, memory) in (0..).zip(&mut memory) {
            case.prepare(rank, memory);
            machines.push(algorithms::machine(case, rank, choice, tables, memory)?);
        }
        let mut ranks: Vec<_> = world.endpoints().into_iter().zip(machines.iter_mut().map(Box::as_mut)).collect();
        let outcome = world.run(&mut ranks);
        let end = outcome.last().map_err(|stuck| named(&stuck))?;
        drop(ranks);
        drop(machines);
        if let Some((rank, _)) = (0..).zip(&memory).find(|(rank, memory)| !case.right(*rank, memory)) {
            return Err(named(&format!("wrong data on rank {rank}")));
        }
        let begin = if case.rooted() { outcome.begin.get(args.root as usize) } else { outcome.begin.iter().min() };
        samples.push(end.ns() - begin.map_or(0.0, |begin| begin.ns()));
        last = Some(outcome);
    }
    let outcome = last.ok_or_else(|| Failure::Words("iterations is 0, must be at least 1".into()))?;
    Ok((summary(samples, args.iterations), outcome))
}

/// When each rank was done, in nanoseconds.
fn ends(outcome: &Outcome) -> Vec<f64> {
    let end = |fate: &Fate| if let Fate::Done(at) = fate { at.ns() } else { f64::NAN };
    outcome.fates.iter().map(end).collect()
}
