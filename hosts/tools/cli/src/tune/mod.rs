//! `unisono tune`: measures the algorithms of each collective, and writes a decision table
//! (docs/howto/tuning.md).
//!
//! | file | what |
//! |---|---|
//! | `work` | a rank's part: repetitions until medians are known well |
//! | `rules` | from cells to a table, and to misses |
//! | `costs` | the file of measurements, and the paths of files |
//! | `preload` | ours beside an MPI's own collectives, in its ranks |

pub(crate) mod args;
pub(crate) mod costs;
mod preload;
mod rules;
mod work;

use crate::args::Collective;
use crate::error::Failure;
use crate::job::Job;
use crate::out::outln;
use crate::progress::progress;
use crate::team;
use crate::{decide, sim};
use args::{Tune, Work};
use clap::ValueEnum;
use costs::{Cell, Costs, Speeds, beside, cached, topology_hash};
use rules::{calls, misses};
use serde_json::json;
use std::path::Path;
use unisono_kernel::table::{Over, Rule};
use unisono_posix::decisions::{TABLE, decisions};
use work::Found;
pub(crate) use work::work;

/// The most bytes of all simulated ranks' buffers together; longer cells are left out.
const MOST: u64 = 1 << 30;

pub(crate) fn run(args: &Tune) -> Result<(), Failure> {
    if args.preload {
        return preload::run(args);
    }
    let topology = if args.messages { String::from("simulated") } else { topology_hash() };
    let path = match (&args.output, args.messages) {
        (Some(path), _) => path.clone(),
        (None, false) => cached(&topology)?,
        (None, true) if args.check => cached(&topology)?,
        (None, true) => {
            return Err(Failure::Words(
                "--messages: a table of the simulator does not belong to a machine: give --output".into(),
            ));
        }
    };
    if path.exists() && !args.check && !args.force {
        let path = path.display();
        outln!("{path}: there is a table of this topology ({topology}); --force measures anew")?;
        outln!("export {TABLE}={path}")?;
        return Ok(());
    }
    let (machine, cells) = if args.messages { (Speeds::default(), simulate(args)?) } else { measure(args)? };
    let calls = calls(&cells);
    if calls.is_empty() {
        return Err(Failure::Words("nothing was measured: there are too few cells".into()));
    }
    if args.json {
        for cell in &cells {
            outln!("{}", serde_json::to_string(cell)?)?;
        }
    }
    noise(&cells);
    if args.check {
        return report(args.json, &calls, decisions()?.rules(), "what is chosen now");
    }
    let table = rules::rules(&calls)?;
    report(args.json, &calls, table.rules(), "the table written")?;
    let costs = Costs { format: Costs::FORMAT, topology, machine, network: None, cells: cells.clone() };
    write(&path, &table.to_string())?;
    write(&beside(&path), &serde_json::to_string_pretty(&costs)?)?;
    if !args.json {
        outln!("{}: {} rules; beside it what was measured", path.display(), table.rules().len())?;
        outln!("export {TABLE}={}", path.display())?;
    }
    Ok(())
}

/// Writes a file as a whole: an error leaves no part of it.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let named = |e: std::io::Error| Failure::Words(format!("{}: {e}", path.display()));
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory).map_err(named)?;
    }
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    std::fs::write(&draft, text).map_err(named)?;
    std::fs::rename(&draft, path).map_err(named)
}

/// The collectives with several algorithms, among those that the user named.
fn collectives(args: &Tune, over: Over) -> Result<Vec<Collective>, Failure> {
    let several = |one: &Collective| decide::stands_for(*one).is_none() && decide::candidates(over, *one).len() > 1;
    if args.collectives.is_empty() {
        return Ok(Collective::value_variants().iter().copied().filter(several).collect());
    }
    let Some(&one) = args.collectives.iter().find(|one| !several(one)) else { return Ok(args.collectives.clone()) };
    let name = decide::name(one);
    Err(Failure::Words(match decide::stands_for(one) {
        Some(other) => format!("{name} is not measured here; {} is", decide::name(other)),
        None => format!("{name} has one algorithm at most: there is nothing to choose"),
    }))
}

/// Measures on real processes, for one number of processes after the other.
fn measure(args: &Tune) -> Result<(Speeds, Vec<Cell>), Failure> {
    let collectives = collectives(args, Over::Segment)?;
    if let Some(bytes) = args.bytes.iter().find(|bytes| !bytes.is_multiple_of(8)) {
        return Err(Failure::Words(format!("bytes is {bytes}: a reduction of f64 takes multiples of 8")));
    }
    let numbers = if args.ranks.is_empty() { &[2, 4, 8] } else { &args.ranks[..] };
    let found = std::env::temp_dir().join(format!("unisono-tune-{}.json", std::process::id()));
    let (mut cells, mut speeds) = (Vec::new(), Speeds::default());
    for &ranks in numbers {
        let work = Work {
            collectives: collectives.clone(),
            bytes: args.bytes.clone(),
            seconds: args.minutes * 60.0 / numbers.len() as f64,
            found: found.clone(),
            quiet: args.json,
        };
        let done = team::launch(ranks, args.bind, Vec::new(), &Job::Tune(work));
        let text = done.and_then(|()| {
            std::fs::read_to_string(&found).map_err(|e| Failure::Words(format!("{}: {e}", found.display())))
        });
        // A rank that failed left no file.
        let _ = std::fs::remove_file(&found);
        let found: Found = serde_json::from_str(&text?)?;
        speeds = speeds.or(found.speeds);
        cells.extend(found.cells);
    }
    Ok((speeds, cells))
}

/// Times in the simulator, which are exact, since it has no noise.
fn simulate(args: &Tune) -> Result<Vec<Cell>, Failure> {
    let topology = sim::topology(args.network, 16, 8);
    let network = sim::network(topology, args.parameters.as_deref())?;
    let numbers = if args.ranks.is_empty() { &[2, 4, 8, 16, 64, 256, 1024] } else { &args.ranks[..] };
    let collectives = collectives(args, Over::Messages)?;
    let bar = progress(!args.json, (numbers.len() * collectives.len()) as u64);
    let mut cells = Vec::new();
    for &ranks in numbers {
        for &collective in &collectives {
            bar.set_message(format!("{ranks} ranks: {collective:?}"));
            for &bytes in work::lengths(collective, &args.bytes) {
                if !sim::holds(collective, ranks, bytes, MOST) {
                    continue;
                }
                for plan in decide::candidates(Over::Messages, collective) {
                    let serves = decide::ask(Over::Messages, collective, bytes, ranks, false)
                        .is_some_and(|ask| plan.applies(&ask).is_ok());
                    let name = plan.to_string();
                    let Some(ns) = (if serves { sim::price(collective, &name, ranks, bytes, network)? } else { None })
                    else {
                        continue;
                    };
                    cells.push(Cell {
                        over: Over::Messages.name().into(),
                        collective: decide::name(collective),
                        algorithm: name,
                        ranks,
                        bytes,
                        p50_ns: ns,
                        low_ns: ns,
                        high_ns: ns,
                        samples: 1,
                    });
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(cells)
}

/// Prints a line if the machine is noisy. The measurements and their intervals stay as they are.
fn noise(cells: &[Cell]) {
    let noisy = |cell: &&Cell| cell.spread() > 2.0 * work::GOOD;
    let widest = cells.iter().filter(noisy).max_by(|one, other| one.spread().total_cmp(&other.spread()));
    if let Some(widest) = widest {
        eprintln!(
            "unisono: a noisy machine: {} of {} medians are known to ±{:.0} % or worse, the worst is {} of {widest}: ±{:.0} %; \
             what is not beyond doubt is not chosen",
            cells.iter().filter(noisy).count(),
            cells.len(),
            200.0 * work::GOOD,
            widest.algorithm,
            100.0 * widest.spread()
        );
    }
}

/// Prints every miss on a line, and their number.
fn report(as_json: bool, calls: &[rules::Call<'_>], table: &[Rule], whose: &str) -> Result<(), Failure> {
    let misses = misses(calls, table);
    for miss in &misses {
        let (chosen, best) = (miss.chosen, miss.best);
        if as_json {
            let object = json!({
                "miss": true, "over": chosen.over, "collective": chosen.collective, "ranks": chosen.ranks, "bytes": chosen.bytes,
                "chosen": chosen.algorithm, "chosen_ns": chosen.p50_ns, "best": best.algorithm, "best_ns": best.p50_ns,
                "doubtful": miss.doubtful,
            });
            outln!("{object}")?;
            continue;
        }
        outln!(
            "miss: {chosen}: {} takes {:.2} µs, {} {:.2} µs: {:.0} % more{}",
            chosen.algorithm,
            chosen.p50_ns / 1e3,
            best.algorithm,
            best.p50_ns / 1e3,
            100.0 * miss.excess,
            if miss.doubtful { ", within the noise" } else { "" }
        )?;
    }
    if !as_json {
        outln!("{} cells, {whose} misses the best by more than 10 % in {}", calls.len(), misses.len())?;
    }
    Ok(())
}
