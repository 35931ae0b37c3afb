//! The tables of `unisono model`.

use super::args::{Model, Table};
use super::{BARRIER, NETWORK, QUEUE, barriers, hockney, logp, logs, times};
use crate::error::Failure;
use crate::out::out;
use serde_json::{Value, json};
use std::fmt::Write;
use unisono_model::ModelError;
use unisono_model::adaptive::Adaptive;
use unisono_model::bagds::{Algorithm, Schedule};
use unisono_model::barrier::Barrier;
use unisono_model::hockney::Network;
use unisono_model::queue::{self, Shape, table1};

/// Page size of P1's rules.
const PAGE: u64 = 4096;

/// Process counts of the table of crossings.
const RANKS: [u32; 12] = [3, 4, 5, 6, 7, 8, 9, 16, 17, 33, 64, 100];

pub(crate) fn run(args: &Model) -> Result<(), Failure> {
    let (columns, rows, remark) = match args.table {
        Some(Table::P1Rules) => rules(args)?,
        Some(Table::P4Choices) => choices(args)?,
        Some(Table::P5Crossings) => crossings(args)?,
        Some(Table::P1Queues) | None => queues(args)?,
    };
    show(&columns, &rows, remark, args.json)
}

/// Prints rows as a table with a remark below, or a JSON object for each row.
pub(crate) fn show(columns: &[&str], rows: &[Vec<Value>], remark: &str, as_json: bool) -> Result<(), Failure> {
    let mut text = String::new();
    if as_json {
        for row in rows {
            let object: serde_json::Map<_, _> =
                columns.iter().map(|name| (*name).to_owned()).zip(row.iter().cloned()).collect();
            writeln!(text, "{}", Value::Object(object))?;
        }
        return out!("{text}");
    }
    let cell = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => short(number.as_f64().unwrap_or_default()),
        Value::Null => "-".into(),
        other => other.to_string(),
    };
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([columns[column].chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: &[&str]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        cells.collect::<Vec<_>>().join("  ")
    };
    writeln!(text, "{}", line(columns))?;
    for row in &rows {
        writeln!(text, "{}", line(&row.iter().map(String::as_str).collect::<Vec<_>>()))?;
    }
    writeln!(text, "{remark}")?;
    out!("{text}")
}

type Columns = (Vec<&'static str>, Vec<Vec<Value>>, &'static str);

/// A number for people to read: 1152, 4.5, 0.031.
fn short(value: f64) -> String {
    if value >= 1000.0 {
        return format!("{value:.0}");
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn queues(args: &Model) -> Result<Columns, Failure> {
    args.only(&[])?;
    let columns = vec!["f", "s=f/2", "s=f/4", "s=f/8", "s=f/16", "s=f/32", "s=f/64", "s=f/128", "s=f/256", "s=f/512"];
    let row = |fragment: u64| {
        let cells = table1::DIVISORS.iter().map(|divisor| json!(table1::mebibytes(fragment, *divisor)));
        [json!(fragment)].into_iter().chain(cells).collect()
    };
    let remark = "\nb in MiB. A column s = f/k is the best queue of its memory where t_W/t = k.";
    Ok((columns, table1::fragments().map(row).collect(), remark))
}

fn rules(args: &Model) -> Result<Columns, Failure> {
    args.only(&[&QUEUE[..], &["--message", "--queue-bytes", "--fragment", "--slots"]].concat())?;
    let times = times(args)?;
    let message = args.queue.message.unwrap_or(16 << 20);
    let bytes = args.queue.queue_bytes.unwrap_or(4 << 20);
    let (fragment, slots) = (args.queue.fragment.unwrap_or(8192), args.queue.slots.unwrap_or(32));
    let row = |rule: &str, given: String, shape: Shape| -> Result<Vec<Value>, ModelError> {
        let Shape { fragment, slots } = shape;
        let queue = queue::Queue { message, fragment, slots, sets: 1 };
        let time = times.slots(queue)?.total() / 1e3;
        Ok(vec![
            json!(rule),
            json!(given),
            json!(fragment),
            json!(slots),
            json!(fragment.saturating_mul(slots)),
            json!(time),
        ])
    };
    let (best, _) = times.best(bytes)?;
    let whole = (best.round() as u64).max(1);
    let best = Shape { fragment: whole, slots: (bytes / whole).max(1) };
    let rows = vec![
        row("formula f*", format!("b = {bytes}"), best)?,
        row("no measurement", format!("b = {bytes}"), queue::for_budget(bytes, PAGE)?)?,
        row("1: m known", format!("m = {message}"), queue::for_message(message, PAGE)?)?,
        row("2: f fixed", format!("m_max = {message}, f = {fragment}"), queue::for_fragment(message, fragment)?)?,
        row("3: s fixed", format!("m_max = {message}, s = {slots}"), queue::for_slots(message, slots, PAGE)?)?,
    ];
    let remark = "\nTime: t(m, s) of the message. Rule 3 takes f for b = m_max, though f·s is then another b.";
    Ok((vec!["rule", "given", "f", "s", "f·s", "µs"], rows, remark))
}

fn choices(args: &Model) -> Result<Columns, Failure> {
    args.only(&BARRIER)?;
    let last = args.barrier.most_ranks.unwrap_or(100);
    let mut adaptive = Adaptive::new(logp(args)?, &barriers(args), logs(args))?;
    let claim = |barrier| match barrier {
        Barrier::Dissemination => json!(96),
        Barrier::CombiningGroups { .. } => json!(3),
        Barrier::Central => json!(1),
        _ => Value::Null,
    };
    let row = |share: unisono_model::adaptive::Share| {
        let (first, last) = share.span.map_or((Value::Null, Value::Null), |(first, last)| (json!(first), json!(last)));
        let name = share.barrier.to_string();
        vec![json!(name), json!(share.sizes), json!(share.share * 100.0), first, last, claim(share.barrier)]
    };
    let rows = adaptive.shares(2, last)?.into_iter().map(row).collect();
    let remark = "\nThe paper's claim (P = 2 to 100) does not follow from its formulas with its parameters: M·log2 P, all\n\
                  that dissemination takes, is the combining tree's release alone, and the central counter takes\n\
                  2M or more.";
    Ok((vec!["barrier", "sizes", "share %", "least P", "greatest P", "paper's claim %"], rows, remark))
}

fn crossings(args: &Model) -> Result<Columns, Failure> {
    args.only(&NETWORK)?;
    let hockney = hockney(args)?;
    let row = |ranks: u32| -> Result<Vec<Value>, ModelError> {
        let schedule = Schedule::new(ranks)?;
        let cost = |algorithm: Algorithm, network| algorithm.cost(network, ranks);
        let star = |bagds, direct| {
            let (bagds, direct) = (cost(bagds, Network::Star)?, cost(direct, Network::Star)?);
            let first = bagds.time(&hockney, 1.0) < direct.time(&hockney, 1.0);
            Ok(match bagds.crossing(&direct, &hockney) {
                Some(elements) => json!(elements),
                None => json!(if first { "always" } else { "never" }),
            })
        };
        let faster = |direct, elements| {
            let time = |algorithm: Algorithm| Ok(cost(algorithm, Network::Crossbar)?.time(&hockney, elements));
            Ok(time(direct)? / time(Algorithm::Bagds)?)
        };
        Ok(vec![
            json!(ranks),
            json!(schedule.stages.len()),
            json!(schedule.transfers()),
            star(Algorithm::BagdsPrinted, Algorithm::DirectPrinted)?,
            star(Algorithm::Bagds, Algorithm::DirectPrinted)?,
            star(Algorithm::Bagds, Algorithm::Direct)?,
            json!(faster(Algorithm::DirectPrinted, 1.0)?),
            json!(faster(Algorithm::Direct, 1.0)?),
        ])
    };
    let rows = RANKS.into_iter().map(row).collect::<Result<Vec<_>, _>>()?;
    let columns = vec![
        "p",
        "stages",
        "transfers",
        "star: bound/printed",
        "BAGDS/printed",
        "BAGDS/direct",
        "crossbar: printed÷BAGDS",
        "direct÷BAGDS",
    ];
    let remark = "\nStar: elements in all, N, below which BAGDS (by the paper's bound, by its schedule) is faster than\n\
                  the direct exchange (with the paper's (p-1)² transfers, with all p(p-1)). Crossbar: ratios for N = 1.";
    Ok((columns, rows, remark))
}
