//! `unisono sim`: a collective between thousands of ranks on virtual time.

mod algorithms;
pub(crate) mod args;
mod plot;

use crate::bench::{Row, Sample, Table, summary};
use crate::error::Failure;
use crate::form::Form;
use algorithms::{Part, SUBJECTS, Subject};
use args::{Shape, Sim};
use clap::ValueEnum;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use unisono_kernel::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_sim::{Class, Fate, Network, Outcome, Placement, Schedule, Topology, World};

/// Bytes of all ranks' buffers together.
const MOST: u64 = 8 << 30;

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
    let subject = SUBJECTS.iter().find(|subject| subject.collective == args.collective).ok_or_else(|| {
        let known: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
        let wanted = args.collective.to_possible_value().map_or_else(String::new, |value| value.get_name().into());
        Failure::Words(format!("no algorithm over messages for {wanted}, only for {}", known.join(", ")))
    })?;
    let chosen = choose(subject, &args.algorithm)?;
    let network = network(args)?;
    let nodes = args.nodes.unwrap_or(args.ranks);
    let placement = Placement::blocks(args.ranks, nodes).map_err(words)?;
    Refusal::check(Argument::Root, args.root.into(), Bound::Below(args.ranks.into()))?;
    let mut rows = Vec::new();
    for &bytes in &args.bytes {
        Refusal::check(Argument::Bytes, bytes, Bound::AtMost(MOST / u64::from(args.ranks)))?;
        for &algorithm in &chosen {
            let (sample, outcome) = simulate(args, subject, algorithm, bytes, (network, &placement))?;
            let row = Row {
                collective: subject.name.into(),
                algorithm: subject.algorithms[algorithm].0.into(),
                form: Form::Blocking.name().into(),
                default: algorithm == 0,
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
        let title = format!("{}, {} ranks on {nodes} nodes, {}", subject.name, args.ranks, kind(&network));
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

/// Indices of the algorithms that a name stands for.
fn choose(subject: &Subject, name: &str) -> Result<Vec<usize>, Failure> {
    match name {
        "auto" => Ok(vec![0]),
        "all" => Ok((0..subject.algorithms.len()).collect()),
        _ => match subject.algorithms.iter().position(|(known, _)| *known == name) {
            Some(index) => Ok(vec![index]),
            None => {
                let known: Vec<_> = subject.algorithms.iter().map(|(known, _)| *known).collect();
                Err(Failure::Words(format!("no algorithm {name:?} for {}: {}", subject.name, known.join(", "))))
            }
        },
    }
}

fn network(args: &Sim) -> Result<Network, Failure> {
    let Some(file) = &args.parameters else {
        return Ok(Network::new(match args.network {
            Shape::Star => Topology::Star,
            Shape::Crossbar => Topology::Crossbar,
            Shape::FatTree => Topology::FatTree { nodes_per_leaf: args.nodes_per_leaf, uplinks: args.uplinks },
        }));
    };
    let named = |e: &dyn std::fmt::Display| Failure::Words(format!("{}: {e}", file.display()));
    let text = fs::read_to_string(file).map_err(|e| named(&e))?;
    let network: Network = serde_json::from_str(&text).map_err(|e| named(&e))?;
    network.check().map_err(|e| named(&e))?;
    Ok(network)
}

/// Runs all iterations; answers their times and the last one's outcome.
fn simulate(
    args: &Sim,
    subject: &Subject,
    algorithm: usize,
    bytes: u64,
    (network, placement): (Network, &Placement),
) -> Result<(Sample, Outcome), Failure> {
    let make = subject.algorithms[algorithm].1;
    let part = |rank| Part { rank, size: args.ranks, root: args.root };
    let mut memory: Vec<Vec<u8>> = (0..args.ranks).map(|_| vec![0; bytes as usize]).collect();
    let mut last = None;
    let mut samples = Vec::new();
    for seed in (0..args.iterations).map(|i| args.seed.wrapping_add(i)) {
        let named = |what: &dyn std::fmt::Display| Failure::Words(format!("{}, seed {seed}: {what}", subject.name));
        let schedule = Schedule {
            seed,
            delay: args.delay,
            skew: args.skew,
            stragglers: args.stragglers,
            slowdown: args.slowdown,
            dropped: args.drop.clone(),
            ..Schedule::default()
        };
        let world = World::new(network, placement.clone(), schedule).map_err(words)?;
        let mut machines = Vec::with_capacity(memory.len());
        for (rank, buffer) in (0..).zip(&mut memory) {
            (subject.fill)(part(rank), buffer);
            // SAFETY: each rank's buffer is its own; nobody touches it before the run is over.
            machines.push(unsafe { make(part(rank), Buf::of_mut(buffer)) }?);
        }
        let mut ranks: Vec<_> = world.endpoints().into_iter().zip(machines.iter_mut().map(Box::as_mut)).collect();
        let outcome = world.run(&mut ranks);
        let end = outcome.last().map_err(|stuck| named(&stuck))?;
        if let Some(rank) =
            (0..).zip(&memory).find_map(|(rank, buffer)| (!(subject.holds)(part(rank), buffer)).then_some(rank))
        {
            return Err(named(&format!("wrong data on rank {rank}")));
        }
        let begin = if subject.rooted { outcome.begin.get(args.root as usize) } else { outcome.begin.iter().min() };
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

fn kind(network: &Network) -> String {
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
