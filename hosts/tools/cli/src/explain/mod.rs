//! `unisono explain`: which algorithm runs a call, why, and how long the others would take.
//!
//! Predictions over a segment come from the formulas of `unisono_model::segment`, those over messages from the
//! simulator, unless the call is huge; those of barriers over messages from LogP, where it was measured. Measurements are those of `unisono tune` in exactly this cell.

pub(crate) mod args;

use crate::args::Collective;
use crate::error::Failure;
use crate::measure::logp::barrier;
use crate::out::out;
use crate::tune::costs::{Costs, Network, Speeds, beside, cached, topology_hash};
use crate::{decide, sim};
use args::Explain;
use serde::Serialize;
use std::fmt::{self, Write as _};
use std::path::Path;
use unisono_kernel::table::{Ask, BUILT_IN, Choice, Chosen, Over, Rule, Site, select};
use unisono_model::barrier::Logs;
use unisono_posix::decisions::{Decisions, TABLE, decisions};
use unisono_posix::lending::{self, CROWDED_LEAST, LEAST, LendFrom, Lengths, Measured};
use unisono_table::Line;

/// The most bytes of all simulated ranks' buffers together: with more, a prediction would take minutes.
const MOST: u64 = 256 << 20;

/// A candidate.
#[derive(Debug, Serialize)]
struct Row {
    over: &'static str,
    collective: &'static str,
    bytes: u64,
    ranks: u32,
    algorithm: String,
    chosen: bool,
    /// For the chosen algorithm the rule; for one that does not apply to the call, why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    predicted_ns: Option<f64>,
    measured_ns: Option<f64>,
    /// The measured median's interval, with 95 % confidence.
    interval_ns: Option<(f64, f64)>,
}

pub(crate) fn run(args: &Explain) -> Result<(), Failure> {
    let own;
    let table = match &args.table {
        Some(path) => {
            own = Decisions::read(Some(path), None)?;
            &own
        }
        None => decisions()?,
    };
    let costs = costs(args)?;
    let mut text = String::new();
    for over in [Over::Segment, Over::Messages] {
        let rows = rows(args, over, table.rules(), costs.as_ref())?;
        if rows.is_empty() {
            return Err(Failure::Words(format!("{:?} is not a collective with algorithms", args.collective)));
        }
        if args.json {
            rows.iter().try_for_each(|row| Ok::<_, Failure>(writeln!(text, "{}", serde_json::to_string(row)?)?))?;
        } else {
            write!(text, "{}", Section { args, over, rows })?;
        }
    }
    if args.collective != Collective::Barrier {
        let copies = copies(args)?;
        if !args.json {
            writeln!(
                text,
                "copies between processes (one from {LEAST} B on in lent memory, and from {CROWDED_LEAST} where ranks share cores):"
            )?;
        }
        for copies in &copies {
            if args.json { writeln!(text, "{}", serde_json::to_string(copies)?)? } else { write!(text, "{copies}")? }
        }
    }
    if !args.json && costs.is_none() {
        writeln!(text, "measured: nothing; `unisono tune` measures")?;
    }
    out!("{text}")?;
    Ok(())
}

/// By which way the bytes are copied between processes that do not lend their memory, from buffers that are used again and
/// again (*warm*) or from others; and what `unisono doctor --keep` has measured nearest to that, if it has.
#[derive(Debug, Serialize)]
struct Copies {
    copies: String,
    bytes: u64,
    buffers: &'static str,
    /// `two`: through the segment; `one`: by `process_vm_readv`.
    ways: &'static str,
    /// The lengths at which one copy is made; `below`: `None` if there is no longest.
    one_from: Option<usize>,
    one_below: Option<usize>,
    measured_bytes: Option<u64>,
    measured_ranks: Option<u32>,
    two_ns: Option<f64>,
    one_ns: Option<f64>,
    lent_ns: Option<f64>,
    /// What lies in the heap goes through the segment, too.
    heap_posted: bool,
}

fn copies(args: &Explain) -> Result<[Copies; 2], Failure> {
    let name = decide::name(args.collective);
    let setting = LendFrom::setting()?;
    let measured = Measured::here().unwrap_or_default();
    let crowded = decide::crowded(args.ranks);
    let lends = setting.among(args.ranks as usize, crowded);
    // Ranks that share cores go by nothing that was measured; what was measured between few is shown.
    let ranks = if crowded { 1 } else { args.ranks };
    Ok([true, false].map(|warm| {
        let stands = lending::stands_for(&name);
        let lengths = stands.and_then(|(_, kind)| lends.ordinary.lengths(kind, warm));
        let posted = stands.and_then(|(_, kind)| lends.posted.lengths(kind, warm));
        let cell = stands.and_then(|(name, _)| measured.nearest(name, ranks, args.bytes, warm));
        Copies {
            copies: name.clone(),
            bytes: args.bytes,
            buffers: if warm { "warm" } else { "cold" },
            ways: if lengths.is_some_and(|lengths| lengths.contains(args.bytes as usize)) { "one" } else { "two" },
            one_from: lengths.map(|lengths| lengths.from),
            one_below: lengths.map(|lengths| lengths.below).filter(|below| *below < usize::MAX),
            measured_bytes: cell.map(|cell| cell.bytes),
            measured_ranks: cell.map(|cell| cell.ranks),
            two_ns: cell.map(|cell| cell.segment_ns),
            one_ns: cell.and_then(|cell| cell.across_ns),
            lent_ns: cell.map(|cell| cell.lent_ns),
            heap_posted: posted.is_some_and(|lengths| lengths.contains(args.bytes as usize)),
        }
    }))
}

impl fmt::Display for Copies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ways = if self.ways == "one" { "one, by process_vm_readv" } else { "two, through the segment" };
        let buffers = if self.buffers == "warm" { "used again and again" } else { "that change" };
        let lengths = match (self.one_from, self.one_below) {
            (None, _) => "off".into(),
            (Some(from), below) => Lengths { from, below: below.unwrap_or(usize::MAX) }.to_string(),
        };
        write!(f, "  buffers {buffers}: {ways} ({}: {lengths}); ", lending::VARIABLE)?;
        let place = self.measured_bytes.zip(self.measured_ranks);
        let Some((((bytes, ranks), two), lent)) = place.zip(self.two_ns).zip(self.lent_ns) else {
            return writeln!(f, "measured: nothing; `unisono doctor --keep` measures");
        };
        let us = |ns: f64| format!("{:.2}", ns / 1e3);
        let one = self.one_ns.map_or("not possible".into(), |one| format!("{}, {:.2} of that", us(one), one / two));
        let (two, lent, part) = (us(two), us(lent), lending::clearly(self.buffers == "warm"));
        writeln!(
            f,
            "measured at {bytes} B, {ranks} ranks, µs: two {two}, one {one} (it counts below {part}), lent {lent}{}",
            if self.heap_posted { " (not lent: two are faster)" } else { "" }
        )
    }
}

/// The measurements: those of the file that is named, else of the file that `tune` writes, if there is one.
fn costs(args: &Explain) -> Result<Option<Costs>, Failure> {
    if let Some(path) = &args.costs {
        return Costs::read(path).map(Some);
    }
    let set = std::env::var_os(TABLE).filter(|path| !path.is_empty());
    let table = args.table.clone().or_else(|| set.map(Into::into));
    let path = match table {
        Some(table) => beside(Path::new(&table)),
        None => match cached(&topology_hash()) {
            Ok(table) => beside(&table),
            Err(_) => return Ok(None),
        },
    };
    if path.exists() { Costs::read(&path).map(Some) } else { Ok(None) }
}

fn rows(args: &Explain, over: Over, table: &[Rule], costs: Option<&Costs>) -> Result<Vec<Row>, Failure> {
    let Some(ask) = decide::ask(over, args.collective, args.bytes, args.ranks, decide::crowded(args.ranks)) else {
        return Ok(Vec::new());
    };
    let site = Site { papers: !args.no_papers, ..ask.site };
    let ask = Ask { commutative: !(args.ordered && ask.collective.folds()), site, ..ask };
    let chosen = select(table, &ask);
    let mut plans = decide::candidates(over, args.collective);
    if let Some(Chosen { plan, .. }) = chosen
        && !plans.contains(&plan)
    {
        plans.push(plan);
    }
    let network = sim::network(sim::topology(args.network, 16, 8), args.parameters.as_deref())?;
    let machine = costs.map_or_else(Speeds::default, |costs| costs.machine).machine()?;
    let logp = costs.and_then(|costs| costs.network).map(Network::logp).transpose()?;
    let formula = |plan: Choice| {
        let (logp, barrier) = logp.zip(barrier(&plan.to_string())).filter(|_| args.ranks > 1)?;
        Some(barrier.time(&logp, args.ranks, Logs::Rounds))
    };
    let row = |plan: Choice| {
        let serves = plan.applies(&ask);
        let chosen = chosen.filter(|chosen| chosen.plan == plan);
        let predicted = match (over, serves) {
            (_, Err(_)) => None,
            (Over::Segment, _) => machine.time(ask.collective, plan, args.ranks, ask.bytes)?,
            (Over::Messages, _) if args.collective == Collective::Barrier && logp.is_some() => {
                formula(plan).transpose()?
            }
            (Over::Messages, _) if decide::stands_for(args.collective).is_some() => None,
            (Over::Messages, _) if !sim::holds(args.collective, args.ranks, ask.bytes, MOST) => None,
            (Over::Messages, _) => sim::price(args.collective, &plan.to_string(), args.ranks, ask.bytes, network)?,
        };
        let measured = costs.and_then(|costs| costs.of(over, ask.collective, plan, args.ranks, ask.bytes));
        Ok(Row {
            over: over.name(),
            collective: ask.collective.name(),
            bytes: ask.bytes,
            ranks: args.ranks,
            algorithm: plan.to_string(),
            chosen: chosen.is_some(),
            reason: chosen
                .map(|chosen| reason(chosen, table, &ask))
                .or_else(|| serves.err().map(|why| why.to_string())),
            predicted_ns: predicted,
            measured_ns: measured.map(|cell| cell.p50_ns),
            interval_ns: measured.map(|cell| (cell.low_ns, cell.high_ns)),
        })
    };
    plans.into_iter().map(row).collect()
}

/// The rule that won.
fn reason(chosen: Chosen, table: &[Rule], ask: &Ask) -> String {
    let built_in = || BUILT_IN.iter().find(|rule| rule.matches(ask) && rule.plan.applies(ask).is_ok());
    let (whose, rule) = match chosen.rule {
        Some(at) => ("the table says", table.get(at)),
        None => ("built in", built_in()),
    };
    let line = rule.map_or_else(String::new, |rule| Line(rule).to_string());
    format!("{whose}: {}", line.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The candidates over one kind of transport, for people to read.
struct Section<'a> {
    args: &'a Explain,
    over: Over,
    rows: Vec<Row>,
}

impl fmt::Display for Section<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let over = match self.over {
            Over::Segment => "a segment",
            Over::Messages => "messages",
        };
        let bytes = self.rows.first().map_or(0, |row| row.bytes);
        let of = if bytes == 0 { String::new() } else { format!(" of {}", unisono_plot::bytes(bytes)) };
        writeln!(f, "{}{of}, {} ranks, over {over}", decide::name(self.args.collective), self.args.ranks)?;
        writeln!(f, "  {:<20} {:>12} {:>12} {:>20}", "algorithm", "predicted µs", "measured µs", "95 %")?;
        let us = |ns: Option<f64>| ns.map_or("-".into(), |ns| format!("{:.3}", ns / 1e3));
        for row in &self.rows {
            let interval =
                row.interval_ns.map_or("-".into(), |(low, high)| format!("{:.3}…{:.3}", low / 1e3, high / 1e3));
            let mark = if row.chosen { "*" } else { " " };
            let (predicted, measured) = (us(row.predicted_ns), us(row.measured_ns));
            write!(f, "{mark} {:<20} {predicted:>12} {measured:>12} {interval:>20}", row.algorithm)?;
            writeln!(f, "  {}", row.reason.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }
}
