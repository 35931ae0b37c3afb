//! `unisono model`: the papers' figures and tables that follow from formulas (docs/explanation/papers.md).

pub(crate) mod args;
pub(crate) mod table;

use crate::error::Failure;
use crate::out::{out, outln};
use args::{Barriers, Logarithms, Model, Which};
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;
use unisono_model::ModelError;
use unisono_model::barrier::{Barrier, Logs};
use unisono_model::figure::{self, Figure};
use unisono_model::hockney::{Hockney, Network};
use unisono_model::logp::LogP;
use unisono_model::queue::Times;

/// The most lines of a figure that is printed as text.
const LINES: usize = 40;

/// Options that set times.
const QUEUE: [&str; 4] = ["--byte-time", "--set-wait", "--decrement", "--slot-wait"];
const BARRIER: [&str; 8] = [
    "--latency",
    "--send-overhead",
    "--receive-overhead",
    "--gap",
    "--members",
    "--most-ranks",
    "--logarithms",
    "--barriers",
];
const NETWORK: [&str; 2] = ["--startup", "--element-time"];

pub(crate) fn run(args: &Model) -> Result<(), Failure> {
    let Some(which) = args.figure else { return table::run(args) };
    let figure = make(args, which)?;
    if let Some(path) = &args.plot {
        return write(path, &figure);
    }
    if args.json {
        let series: Vec<_> =
            figure.series.iter().map(|line| json!({"name": line.name, "points": line.points})).collect();
        let object = json!({"title": figure.title, "x": figure.x, "y": figure.y, "series": series});
        return outln!("{object}");
    }
    out!("{}", lines(&figure)?)
}

fn make(args: &Model, which: Which) -> Result<Figure, Failure> {
    let message = args.queue.message.unwrap_or(16 << 20);
    Ok(match which {
        Which::P1Fragment => {
            args.only(&[&QUEUE[..], &["--message", "--queue-bytes"]].concat())?;
            figure::p1_4(&times(args)?, message, args.queue.queue_bytes.unwrap_or(4 << 20))?
        }
        Which::P1Slots => {
            args.only(&[&QUEUE[..], &["--message", "--fragment"]].concat())?;
            figure::p1_6(&times(args)?, message, args.queue.fragment.unwrap_or(8192))?
        }
        Which::P1Saw => {
            args.only(&[&QUEUE[..], &["--message", "--slots"]].concat())?;
            figure::p1_8(&times(args)?, message, args.queue.slots.unwrap_or(32))?
        }
        Which::P4Barriers => {
            args.only(&BARRIER)?;
            let most = args.barrier.most_ranks.unwrap_or(100);
            figure::p4_6(&logp(args)?, &barriers(args), most, logs(args))?
        }
        Which::P5Star | Which::P5Crossbar => {
            args.only(&[&NETWORK[..], &["--ranks", "--elements"]].concat())?;
            let network = if which == Which::P5Star { Network::Star } else { Network::Crossbar };
            let (ranks, elements) = (args.network.ranks.unwrap_or(8), args.network.elements.unwrap_or(400));
            figure::p5(network, &hockney(args)?, ranks, elements)?
        }
    })
}

/// Times of P1, in nanoseconds.
fn times(args: &Model) -> Result<Times, ModelError> {
    let queue = &args.queue;
    Times::new(
        queue.byte_time.unwrap_or(1.0),
        queue.set_wait.unwrap_or(100.0),
        queue.decrement.unwrap_or(10.0),
        queue.slot_wait.unwrap_or(50.0),
    )
}

fn logp(args: &Model) -> Result<LogP, ModelError> {
    let given = &args.barrier;
    LogP::new(
        given.latency.unwrap_or(125.6),
        given.send_overhead.unwrap_or(0.43),
        given.receive_overhead.unwrap_or(123.8),
        given.gap.unwrap_or(0.22),
    )
}

fn barriers(args: &Model) -> Vec<Barrier> {
    let all = match args.barrier.barriers.unwrap_or(Barriers::Paper) {
        Barriers::Paper => &Barrier::PAPER[..],
        Barriers::All => &Barrier::ALL,
    };
    let with_members = |barrier: &Barrier| match (*barrier, args.barrier.members) {
        (Barrier::CombiningGroups { .. }, Some(members)) => Barrier::CombiningGroups { members },
        (other, _) => other,
    };
    all.iter().map(with_members).collect()
}

fn logs(args: &Model) -> Logs {
    match args.barrier.logarithms {
        None | Some(Logarithms::Printed) => Logs::Printed,
        Some(Logarithms::Rounds) => Logs::Rounds,
    }
}

fn hockney(args: &Model) -> Result<Hockney, ModelError> {
    Hockney::new(args.network.startup.unwrap_or(65.8), args.network.element_time.unwrap_or(0.437))
}

fn write(path: &Path, figure: &Figure) -> Result<(), Failure> {
    let svg = unisono_plot::figure::draw(figure)?;
    std::fs::write(path, svg).map_err(|e| Failure::Words(format!("{}: {e}", path.display())))?;
    outln!("{}: {}", path.display(), figure.title)
}

fn lines(figure: &Figure) -> Result<String, Failure> {
    let width = |name: &str| name.chars().count().max(12);
    let mut text = format!("{}; {}\n\n{:>20}", figure.title, figure.y, figure.x);
    for line in &figure.series {
        write!(text, "  {:>1$}", line.name, width(&line.name))?;
    }
    let points = figure.series.first().map_or(0, |line| line.points.len());
    for row in (0..points).step_by(points.div_ceil(LINES).max(1)) {
        write!(text, "\n{:>20}", figure.series[0].points[row].0)?;
        for line in &figure.series {
            write!(text, "  {:>1$.6}", line.points[row].1, width(&line.name))?;
        }
    }
    if points > LINES {
        write!(text, "\n\n({points} points: --json prints all)")?;
    }
    text.push('\n');
    Ok(text)
}
