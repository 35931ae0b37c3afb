//! The processes whose groups are shown: on described machines, or real ones on this machine.

use super::show;
use crate::args::Topo;
use crate::error::Failure;
use crate::job::Job;
use crate::out::{out, outln};
use crate::team::{self, Team};
use std::collections::HashSet;
use std::time::Instant;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::topology::Levels;
use unisono_posix::binding::{self, PuSet};
use unisono_posix::launch::Bind;
use unisono_posix::locality::{Processes, Storage};
use unisono_posix::switches::Switches;
use unisono_posix::topology::{Kind, Topology};

/// Is any option of groups given?
pub(super) const fn wanted(args: &Topo) -> bool {
    let Topo { groups, synthetic, switches, levels, ranks, bind, plot, .. } = args;
    groups.is_some()
        || synthetic.is_some()
        || switches.is_some()
        || levels.is_some()
        || ranks.is_some()
        || bind.is_some()
        || plot.is_some()
}

pub(super) fn run(args: Topo) -> Result<(), Failure> {
    if let Some(description) = &args.synthetic {
        return report(&args, &described(&args, &Topology::synthetic(description)?)?);
    }
    let ranks = args.ranks.map_or_else(|| binding::affinity().map(|pus| pus.len() as u32), Ok)?;
    team::launch(ranks, args.bind.unwrap_or_default(), Vec::new(), &Job::Topo(args))
}

/// A rank on this machine: it tells rank 0 where it may run; rank 0 prints.
pub(crate) fn work(team: &mut Team, args: &Topo) -> Result<(), Failure> {
    let all = team.gather(&binding::affinity()?.words().to_vec())?;
    if team.rank() != 0 {
        return Ok(());
    }
    let bindings: Vec<_> = all.into_iter().map(PuSet::from_words).collect();
    let machine = rustix::system::uname();
    let name = machine.nodename().to_string_lossy();
    let mut processes = Processes::default();
    processes.add_node(&Topology::read(), switch(network(args)?.as_ref(), &name, args)?, &bindings);
    report(args, &processes)
}

/// A process on each core of the described machines, machine by machine, up to the number that the user gave.
fn described(args: &Topo, topology: &Topology) -> Result<Processes, Failure> {
    let network = network(args)?;
    let one = ["localhost".to_owned()];
    let nodes = if args.nodes.is_empty() { &one[..] } else { &args.nodes };
    let mut seen = HashSet::new();
    if let Some(name) = nodes.iter().find(|name| name.is_empty() || !seen.insert(name.as_str())) {
        return Err(Failure::Words(format!("--nodes: {name:?}, must be a name that is not in the list already")));
    }
    let pus = topology.pus();
    let memories: Vec<_> = topology.of(Kind::NumaNode).map(|node| node.pus.clone()).collect();
    let mut places = Bind::from(args.bind.unwrap_or_default()).places(&topology.cores(), &memories, &pus);
    if places.is_empty() {
        places.push(pus.clone());
    }
    let cores = topology.cores().len();
    let each = if cores == 0 { pus.len() } else { cores };
    let bindings: Vec<_> = places.into_iter().cycle().take(each).collect();
    let most = (each * nodes.len()) as u64;
    let ranks = args.ranks.map_or(most, u64::from);
    Refusal::check(Argument::Ranks, ranks, Bound::AtLeast(1))?;
    let mut rest = Refusal::check(Argument::Ranks, ranks, Bound::AtMost(most))? as usize;
    let mut processes = Processes::default();
    for name in nodes {
        let here = bindings.get(..rest.min(each)).unwrap_or_default();
        processes.add_node(topology, switch(network.as_ref(), name, args)?, here);
        rest -= here.len();
    }
    Ok(processes)
}

fn network(args: &Topo) -> Result<Option<Switches>, Failure> {
    let read = |path: &std::path::PathBuf| {
        Switches::read(path).map_err(|error| Failure::Words(format!("{}: {error}", path.display())))
    };
    args.switches.as_ref().map(read).transpose()
}

/// The switch of a node, where there is a file of switches.
fn switch(network: Option<&Switches>, node: &str, args: &Topo) -> Result<Option<u32>, Failure> {
    let file = args.switches.as_deref().unwrap_or(std::path::Path::new("")).display();
    let of = |network: &Switches| network.of(node).map_err(|error| Failure::Words(format!("{file}: {error}")));
    network.map(of).transpose()
}

fn report(args: &Topo, processes: &Processes) -> Result<(), Failure> {
    let levels = args.levels.as_deref().map_or(Ok(Levels::EVERY), str::parse);
    let levels = levels.map_err(|error| Failure::Words(format!("--levels: {error}")))?;
    let mut storage = Storage::default();
    let begin = Instant::now();
    let groups = processes.groups(levels, &mut storage)?;
    let took = begin.elapsed();
    for &rank in args.groups.iter().flatten() {
        Refusal::check(Argument::Rank, rank.into(), Bound::Below(groups.ranks().into()))?;
    }
    if let Some(warning) = processes.warning() {
        eprintln!("unisono: {warning}");
    }
    if let Some(path) = &args.plot {
        let done = std::fs::write(path, unisono_plot::groups::draw(&groups)?);
        done.map_err(|error| Failure::Words(format!("{}: {error}", path.display())))?;
    }
    match (&args.groups, args.json) {
        (ranks, true) => outln!("{}", show::json(processes, &groups, ranks.as_deref(), took))?,
        (Some(ranks), false) => out!("{}", show::lines(&groups, ranks))?,
        (None, false) => out!("{}", show::tree(processes, &groups))?,
    }
    Ok(())
}
