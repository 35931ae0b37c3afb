//! `unisono measure logp`: LogGP's parameters, and the barriers that the model chooses by them; as a decision table they run in
//! any program (paper P4).

use super::args::{Logp, Over};
use super::mpi;
use crate::error::Failure;
use crate::model::table::show;
use crate::out::{out, outln};
use crate::tune::costs::{Cell, Costs, Speeds, beside};
use crate::tune::write;
use serde_json::{Value, json};
use std::path::Path;
use unisono_kernel::table::{self, Choice, Collective, Rule, Span};
use unisono_measure::logp::{Measured, Plan, measure};
use unisono_measure::{Simulated, Threads};
use unisono_model::adaptive::{Adaptive, Share};
use unisono_model::barrier::{Barrier, Logs};
use unisono_model::logp::LogP;
use unisono_posix::decisions::TABLE;
use unisono_table::Table;

/// All barriers over messages.
pub(super) const BARRIERS: [Barrier; 6] = [
    Barrier::Central,
    Barrier::Combining { children: 4 },
    Barrier::Dissemination,
    Barrier::Tournament,
    Barrier::Bruck { radix: 2 },
    Barrier::Butterfly,
];

/// A barrier's name over messages.
pub(super) fn name(barrier: Barrier) -> String {
    if let Barrier::Bruck { .. } = barrier { "bruck".into() } else { barrier.to_string() }
}

/// Those of paper P4.
const PAPERS: [Barrier; 3] = [Barrier::Central, Barrier::Combining { children: 4 }, Barrier::Dissemination];

pub(super) fn run(args: &Logp) -> Result<(), Failure> {
    let plan = Plan { repetitions: args.repetitions, ..Plan::default() };
    let measured = match args.layer.over {
        Over::Threads => measure(&mut Threads::default(), &plan)?,
        Over::Sim => {
            let (network, schedule) = args.layer.simulator.parts()?;
            measure(&mut Simulated::new(network, schedule), &plan)?
        }
        Over::Mpi => match mpi::on(&args.layer.libraries, |job| measure(job, &plan))? {
            Some(measured) => measured,
            None => return Ok(()),
        },
    };
    let Measured { latency, send, receive, gap, byte_gap } = measured;
    let all = [("L", latency), ("o_s", send), ("o_r", receive), ("g", gap), ("G", byte_gap)];
    let row = |(name, median): (&str, unisono_model::stats::Median)| {
        let ns = |value: f64| json!((value * 1e4).round() / 1e4);
        vec![json!(name), ns(median.value), ns(median.low), ns(median.high)]
    };
    let noisy = all.iter().filter(|(_, median)| median.spread() > 0.1).map(|(name, _)| *name).collect::<Vec<_>>();
    let hidden: Vec<_> = all.iter().filter(|(_, median)| median.value <= 0.0).map(|(name, _)| *name).collect();
    let mut remark = String::from("\nMedians, with intervals of 95 %.");
    if !noisy.is_empty() {
        remark += &format!(" Noisy, known to ±10 % or worse: {}.", noisy.join(", "));
    }
    if !hidden.is_empty() {
        let names = hidden.join(", ");
        remark += &format!(
            "\nHidden, but not zero: {names}. The network adds less to a message than the processes spend on it."
        );
    }
    show(&["parameter", "ns", "from", "to"], &all.map(row), &remark, args.json)?;
    if !args.json {
        out!("\n")?;
    }
    let logp = measured.logp()?;
    choices(logp, args.most_ranks, args.json)?;
    let Some(path) = &args.output else { return Ok(()) };
    keep(path, logp, args.most_ranks, Vec::new(), args.json)
}

/// Writes the choice by these parameters for 2 to `most` processes as a decision table, and beside it the parameters and what
/// was measured: `unisono explain barrier` reads both.
pub(super) fn keep(path: &Path, logp: LogP, most: u32, cells: Vec<Cell>, as_json: bool) -> Result<(), Failure> {
    let table = chosen(logp, most)?;
    write(path, &table.to_string())?;
    let (topology, network) = (String::from("of the network"), Some(logp.into()));
    let costs = Costs { format: Costs::FORMAT, topology, machine: Speeds::default(), network, cells };
    write(&beside(path), &serde_json::to_string_pretty(&costs)?)?;
    if !as_json {
        let (rules, path) = (table.rules().len(), path.display());
        outln!("\n{path}: {rules} rules; beside it what was measured\nexport {TABLE}={path}")?;
    }
    Ok(())
}

/// The model's barrier of a name over messages.
pub(crate) fn barrier(named: &str) -> Option<Barrier> {
    BARRIERS.into_iter().find(|barrier| name(*barrier) == named)
}

/// AdaptiveBarrierLogP as rules: for each number of processes the barrier with the least formula. What holds for the
/// greatest measured number holds for greater ones.
fn chosen(logp: LogP, most: u32) -> Result<Table, Failure> {
    let mut adaptive = Adaptive::new(logp, &BARRIERS, Logs::Rounds)?;
    let mut rules: Vec<Rule> = Vec::new();
    for ranks in 2..=most {
        let name = name(adaptive.choose(ranks)?.barrier);
        let plan = Choice::from_name(table::Over::Messages, Collective::Barrier, &name)
            .ok_or_else(|| Failure::Words(format!("{name}: no table has this barrier")))?;
        match rules.last_mut() {
            Some(last) if last.plan == plan => last.ranks.most = ranks,
            _ => rules.push(Rule { ranks: Span::new(ranks, ranks), ..Rule::all(Collective::Barrier, plan) }),
        }
    }
    if let Some(last) = rules.last_mut() {
        last.ranks.most = u32::MAX;
    }
    Table::new(rules).map_err(|error| Failure::Words(error.to_string()))
}

/// How often each barrier is chosen: among all, and among the paper's three, with these parameters and with the
/// paper's.
fn choices(logp: LogP, most: u32, as_json: bool) -> Result<(), Failure> {
    let shares = |logp, barriers: &[Barrier]| Adaptive::new(logp, barriers, Logs::Rounds)?.shares(2, most);
    let measured = shares(logp, &BARRIERS)?;
    let (three, paper) = (shares(logp, &PAPERS)?, shares(LogP::PAPER, &PAPERS)?);
    let claim = |barrier| match barrier {
        Barrier::Dissemination => json!(96),
        Barrier::Combining { .. } => json!(3),
        Barrier::Central => json!(1),
        _ => Value::Null,
    };
    let percent = |share: &Share| json!((share.share * 1e3).round() / 10.0);
    let among =
        |shares: &[Share], barrier| shares.iter().find(|share| share.barrier == barrier).map_or(Value::Null, percent);
    let row = |mine: Share| {
        let (least, greatest) = mine.span.map_or((Value::Null, Value::Null), |(a, b)| (json!(a), json!(b)));
        let (ours, papers) = (among(&three, mine.barrier), among(&paper, mine.barrier));
        vec![json!(mine.barrier.to_string()), percent(&mine), least, greatest, ours, papers, claim(mine.barrier)]
    };
    let rows: Vec<_> = measured.into_iter().map(row).collect();
    let columns = [
        "barrier",
        "chosen %",
        "least P",
        "greatest P",
        "of the paper's three %",
        "with the paper's parameters %",
        "paper's claim %",
    ];
    let remark = format!("\nThe least formula for P = 2 to {most}; of equal ones the first.");
    show(&columns, &rows, &remark, as_json)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where latency is far above all else, the choice depends on the number of processes (docs/explanation/papers.md, P4).
    #[test]
    fn rules_say_what_the_model_chooses() {
        let far = LogP::new(20.0, 1.0, 1.0, 1.0).unwrap();
        let table = chosen(far, 64).unwrap();
        let mut adaptive = Adaptive::new(far, &BARRIERS, Logs::Rounds).unwrap();
        assert!(table.rules().len() > 1, "{table}");
        for ranks in 2..=64 {
            let barrier = name(adaptive.choose(ranks).unwrap().barrier);
            let of = table.rules().iter().filter(|rule| rule.ranks.has(ranks)).map(|rule| rule.plan.to_string());
            assert_eq!(of.collect::<Vec<_>>(), [barrier], "{ranks}");
        }
        assert_eq!(table.rules().last().map(|rule| rule.ranks.most), Some(u32::MAX));
    }
}
