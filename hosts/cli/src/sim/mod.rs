//! `unisono sim`: a collective between thousands of ranks on virtual time.

mod algorithms;
pub(crate) mod args;
mod data;
mod plot;

use crate::args::Collective;
use crate::bench::{Row, Table, summary};
use crate::decide;
use crate::error::Failure;
use crate::form::Form;
pub(crate) use algorithms::names;
use algorithms::{Choice, Tables};
use args::{Shape, Sim};
use clap::ValueEnum;
use data::{Case, Memory};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use unisono_kernel::msg::PlanError;
use unisono_kernel::table::{Over, Plan};
use unisono_sim::{Class, Fate, Network, Outcome, Placement, Schedule, Topology, World};

/// A row of the report: bench's keys, and what the simulator knows beside.
#[derive(Debug, Serialize)]
struct Line<'a> {
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
    let (collective, known) = names(args.collective).ok_or_else(|| {
        let wanted = args.collective.to_possible_value().map_or_else(String::new, |value| value.get_name().into());
        Failure::Words(format!("{wanted} is no collective over messages"))
    })?;
    let topology = topology(args.network, (args.nodes_per_leaf, args.uplinks));
    let network = network(topology, args.parameters.as_deref())?;
    let nodes = args.nodes.unwrap_or(args.ranks);
    let placement = Placement::blocks(args.ranks, nodes).map_err(words)?;
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
        let default = decide::default(Over::Messages, args.collective, bytes, args.ranks)?;
        let chosen = match args.algorithm.as_str() {
            "auto" => default.iter().map(Plan::to_string).collect(),
            "all" => known.iter().map(|name| (*name).to_owned()).collect(),
            one => vec![one.to_owned()],
        };
        for name in &chosen {
            let choice = algorithms::choice(args.collective, name)?;
            let mut words = Vec::new();
            let tables = Tables::new(&choice, args.ranks, &mut words)?;
            let simulated = simulate(&schedules, &case, &choice, &tables, (network, &placement));
            let (samples, outcome) = match simulated {
                Err(Failure::Plan(inapplicable @ PlanError::Inapplicable { .. })) if args.algorithm == "all" => {
                    eprintln!("unisono: left out: {inapplicable}");
                    continue;
                }
                simulated => simulated?,
            };
            let sample = summary(samples, args.iterations);
            let row = Row {
                collective: collective.into(),
                default: default == Some(choice.plan()),
                algorithm: choice.name,
                form: Form::Blocking.name().into(),
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
                let line =
                    Line { row: &row, nodes, network: &network, seed: args.seed, traffic: traffic.into(), ends_ns };
                println!("{}", serde_json::to_string(&line)?);
            }
            rows.push(row);
        }
    }
    if let Some(file) = &args.plot {
        let title = format!("{collective}, {} ranks on {nodes} nodes, {}", args.ranks, kind(&network));
        let svg = plot::draw(&title, &rows)?;
        fs::write(file, svg).map_err(|e| Failure::Words(format!("{}: {e}", file.display())))?;
    }
    if !args.json {
        println!("{} ranks on {nodes} nodes, {}, virtual time", args.ranks, kind(&network));
        let mut table = Table::default();
        rows.into_iter().for_each(|row| table.push(row));
        print!("{table}");
    }
    Ok(())
}

/// How nodes hang together; fat trees with so many nodes and up-links per leaf switch.
pub(crate) const fn topology(shape: Shape, (nodes_per_leaf, uplinks): (u32, u32)) -> Topology {
    match shape {
        Shape::Star => Topology::Star,
        Shape::Crossbar => Topology::Crossbar,
        Shape::FatTree => Topology::FatTree { nodes_per_leaf, uplinks },
    }
}

/// The network of a file, else a cluster of today that hangs together so.
pub(crate) fn network(topology: Topology, parameters: Option<&Path>) -> Result<Network, Failure> {
    let Some(file) = parameters else { return Ok(Network::new(topology)) };
    let named = |e: &dyn std::fmt::Display| Failure::Words(format!("{}: {e}", file.display()));
    let text = fs::read_to_string(file).map_err(|e| named(&e))?;
    let network: Network = serde_json::from_str(&text).map_err(|e| named(&e))?;
    network.check().map_err(|e| named(&e))?;
    Ok(network)
}

/// Do all ranks' buffers together fit so many bytes?
pub(crate) fn holds(collective: Collective, ranks: u32, bytes: u64, most: u64) -> bool {
    let case = Case { collective, ranks, bytes, root: 0 };
    bytes.checked_mul(case.buffers()).is_some_and(|all| all <= most)
}

/// Virtual nanoseconds of one call among ranks with a node each; nothing where the algorithm does not apply.
pub(crate) fn price(
    collective: Collective,
    name: &str,
    of: (u32, u64),
    network: Network,
) -> Result<Option<f64>, Failure> {
    let times = times(collective, name, of, network, &[Schedule::default()])?;
    Ok(times.and_then(|times| times.first().copied()))
}

/// The same, once for each schedule.
pub(crate) fn times(
    collective: Collective,
    name: &str,
    (ranks, bytes): (u32, u64),
    network: Network,
    schedules: &[Schedule],
) -> Result<Option<Vec<f64>>, Failure> {
    let case = Case { collective, ranks, bytes, root: 0 };
    case.check()?;
    let choice = algorithms::choice(collective, name)?;
    let mut words_of_tables = Vec::new();
    let tables = Tables::new(&choice, ranks, &mut words_of_tables)?;
    let placement = Placement::blocks(ranks, ranks).map_err(words)?;
    match simulate(schedules, &case, &choice, &tables, (network, &placement)) {
        Err(Failure::Plan(PlanError::Inapplicable { .. })) => Ok(None),
        simulated => simulated.map(|(samples, _)| Some(samples)),
    }
}

/// Runs all iterations; answers their times and the last one's outcome.
fn simulate(
    schedules: &[Schedule],
    case: &Case,
    choice: &Choice,
    tables: &Tables<'_>,
    (network, placement): (Network, &Placement),
) -> Result<(Vec<f64>, Outcome), Failure> {
    let mut memory = vec![Memory::default(); case.ranks as usize];
    let mut last = None;
    let mut samples = Vec::new();
    for schedule in schedules {
        let named =
            |what: &dyn std::fmt::Display| Failure::Words(format!("{}, seed {}: {what}", choice.name, schedule.seed));
        let world = World::new(network, placement.clone(), schedule.clone()).map_err(words)?;
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

pub(crate) fn kind(network: &Network) -> String {
    match network.topology {
        Topology::Star => "star".into(),
        Topology::Crossbar => "crossbar".into(),
        Topology::FatTree { nodes_per_leaf, uplinks } => {
            format!("fat tree of {nodes_per_leaf} nodes and {uplinks} up-links per leaf switch")
        }
    }
}

fn words(error: unisono_sim::Unfit) -> Failure {
    Failure::Words(error.to_string())
}
