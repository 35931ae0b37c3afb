//! `unisono tune --preload`: which calls the preload had better leave to the MPI, by its own time and ours in turn. Each rank of the
//! MPI's launcher is this program; all ranks find the same times, and decide alike.

use super::args::Tune;
use super::rules::{WORTH, around};
use crate::decide::{self, forms};
use crate::error::Failure;
use crate::measure::args::Libraries;
use crate::measure::mpi;
use crate::near::{self, Place, Reading};
use crate::out::outln;
use crate::progress::progress;
use serde::Serialize;
use std::ffi::CString;
use std::fmt;
use std::path::Path;
use unisono_kernel::table::{Choice, Collective, Rule, Span};
use unisono_model::stats::Median;
use unisono_mpi::compare::{By, Comparison, Method};
use unisono_posix::decisions::TABLE;
use unisono_table::{HEADER, Line, Table};

/// Rounds of each cell, in which ours and the MPI's take turns.
const ROUNDS: usize = 11;
/// Rounds elsewhere than where the cores are to be, at most.
const ELSEWHERE: usize = 11;
/// With fewer rounds than this where the cores are to be, all count: a median's interval of 95 % needs as many.
const LEAST: usize = 6;
/// Bytes of messages whose time hardly depends on their length: shorter ones than the shortest of these that is measured are as that.
const SHORT: u64 = 64;
/// The most seconds of one sample.
const SAMPLE: f64 = 3e-3;

/// Our time as a part of the MPI's, in one collective and length: the geometric mean of all methods, by rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Cell {
    #[serde(skip)]
    kind: Collective,
    /// MPI's name.
    collective: String,
    ranks: u32,
    bytes: u64,
    /// The median, and its interval of 95 %.
    ratio: f64,
    low: f64,
    high: f64,
    /// Medians of both, by `osu`.
    ours_ns: f64,
    mpi_ns: f64,
    /// Were the cores where they were to be?
    near: bool,
}

impl Cell {
    /// Does ours take longer, beyond doubt, by more than is worth a rule?
    fn loses(&self) -> bool {
        self.low > 1.0 && self.ratio > 1.0 + WORTH
    }

    /// Does ours take less, beyond doubt?
    fn wins(&self) -> bool {
        self.high < 1.0
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collective, bytes, ratio, low, high, ours_ns, mpi_ns, .. } = self;
        write!(
            f,
            "{collective} {bytes} B: {ratio:.2} ({low:.2} to {high:.2}) of the MPI's time; osu {:.2} and {:.2} µs",
            ours_ns / 1e3,
            mpi_ns / 1e3
        )
    }
}

pub(super) fn run(args: &Tune) -> Result<(), Failure> {
    let path = args.output.as_deref();
    if path.is_none() && !args.check {
        return Err(Failure::Words("--preload: give --output, the table's file, or --check".into()));
    }
    if let Some(bytes) = args.bytes.iter().find(|bytes| !bytes.is_multiple_of(8)) {
        return Err(Failure::Words(format!("bytes is {bytes}: a reduction of f64 takes multiples of 8")));
    }
    let kinds = kinds(args)?;
    let libraries = Libraries { library: None, mpi: args.mpi.clone() };
    let measured =
        mpi::on(&libraries, |job| measure(args, &kinds, job.rank() == 0, job.size()).map(|cells| (job.mpi(), cells)))?;
    // The other ranks are done.
    let Some((mpi, cells)) = measured else { return Ok(()) };
    let ranks = cells.first().map_or(0, |cell| cell.ranks);
    for cell in &cells {
        match args.json {
            true => outln!("{}", serde_json::to_string(cell)?)?,
            false if cell.loses() => outln!("{cell}")?,
            false => {}
        }
    }
    let left = left(&cells, &args.bytes);
    if let Some(path) = path.filter(|_| !args.check) {
        let table = text(&read(path)?, &left, ranks)?;
        super::write(path, &table)?;
    }
    if !args.json {
        let mean = (cells.iter().map(|cell| cell.ratio.ln()).sum::<f64>() / cells.len().max(1) as f64).exp();
        let losing = cells.iter().filter(|cell| cell.loses()).count();
        let (all, elsewhere) = (cells.len(), cells.iter().filter(|cell| !cell.near).count());
        outln!(
            "{all} cells of {ranks} ranks: {mean:.2} of the MPI's time in the mean; {losing} take longer beyond doubt ({mpi})"
        )?;
        if elsewhere > 0 {
            outln!("{elsewhere} cells were measured while the cores were farther from each other than they often are")?;
        }
        if let Some(path) = path.filter(|_| !args.check) {
            outln!("{}: {} rules for {ranks} ranks", path.display(), left.len())?;
            outln!("export {TABLE}={}", path.display())?;
        }
    }
    Ok(())
}

/// The collectives that tables have rules for, among those that the user named.
fn kinds(args: &Tune) -> Result<Vec<Collective>, Failure> {
    let mut kinds: Vec<Collective> = Vec::new();
    for &one in &args.collectives {
        let none = || Failure::Words(format!("{} is not a collective of MPI's", decide::name(one)));
        kinds.push(decide::kind(one).ok_or_else(none)?);
    }
    kinds.dedup();
    Ok(if args.collectives.is_empty() { Collective::ALL.to_vec() } else { kinds })
}

/// Measures all cells; shows progress on one rank.
fn measure(args: &Tune, kinds: &[Collective], shows: bool, ranks: u32) -> Result<Vec<Cell>, Failure> {
    // SAFETY: a library with such a function is ours.
    let comparison = unsafe { Comparison::of_process() }.map_err(|error| {
        Failure::Words(format!("--preload: {error}: unisono preload -- mpirun -n {ranks} unisono tune --preload …"))
    })?;
    let wanted: Vec<_> = kinds.iter().flat_map(|kind| cells_of(*kind, &args.bytes)).collect();
    let seconds = args.minutes * 60.0 / (wanted.len() * ROUNDS * Method::ALL.len() * 2) as f64;
    let sample = 1e9 * seconds.min(SAMPLE);
    let mut place = Place::survey(decide::crowded(ranks), &mut || barrier(comparison))?;
    let bar = progress(shows && !args.json, wanted.len() as u64);
    let mut cells = Vec::new();
    for (kind, name, bytes) in wanted {
        bar.set_message(format!("{name} {bytes} B"));
        cells.push(cell(comparison, &mut place, kind, &name, bytes, ranks, sample)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(cells)
}

/// Where the cores are.
fn barrier(comparison: Comparison) -> Result<Reading, Failure> {
    let timed = comparison.time(c"barrier", 0, Method::Imb, By::Unisono, near::CALLS);
    let least = timed.map_err(|error| Failure::Words(format!("barrier: {error}")))?;
    Ok(Reading { least, all: least * f64::from(near::CALLS) })
}

/// What is measured of a collective: its forms, in all lengths.
fn cells_of(kind: Collective, lengths: &[u64]) -> impl Iterator<Item = (Collective, String, u64)> {
    let lengths = if kind == Collective::Barrier { &[0] } else { lengths };
    forms(kind).iter().flat_map(move |form| lengths.iter().map(move |bytes| (kind, decide::name(*form), *bytes)))
}

/// One round of a cell.
struct Round {
    /// Our time as a part of the MPI's.
    ratio: f64,
    /// Both, by `osu`.
    by_osu: [f64; 2],
    near: bool,
}

/// Measures one cell, in samples of so many nanoseconds.
fn cell(
    comparison: Comparison,
    place: &mut Place,
    kind: Collective,
    name: &str,
    bytes: u64,
    ranks: u32,
    sample: f64,
) -> Result<Cell, Failure> {
    let collective = CString::new(name).map_err(|error| Failure::Words(error.to_string()))?;
    let time = |method, by, calls| {
        let timed = comparison.time(&collective, bytes, method, by, calls);
        timed.map_err(|error| Failure::Words(format!("{name} of {bytes} bytes: {error}")))
    };
    let sides = [By::Unisono, By::Mpi];
    // The time is the same on all ranks, and so the number of calls is.
    let mut calls = Vec::new();
    for method in Method::ALL {
        let longest = time(method, By::Unisono, 2)?.max(time(method, By::Mpi, 2)?);
        calls.push((sample / longest.max(100.0)).clamp(1.0, 1e4) as u32);
    }
    let mut rounds = Vec::new();
    let there = |rounds: &[Round]| rounds.iter().filter(|round| round.near).count();
    while there(&rounds) < ROUNDS && rounds.len() - there(&rounds) < ELSEWHERE {
        let reached = place.reached(&mut || barrier(comparison))?;
        let round = rounds.len();
        let (mut sum, mut by_osu) = (0.0, [0.0; 2]);
        for (&method, &calls) in Method::ALL.iter().zip(&calls) {
            let mut ns = [0.0; 2];
            for turn in 0..2 {
                let side = (round + turn) % 2;
                ns[side] = time(method, sides[side], calls)?.max(1.0);
            }
            sum += (ns[0] / ns[1]).ln();
            if method == Method::Osu {
                by_osu = ns;
            }
        }
        let near = reached && place.is_there(&mut || barrier(comparison))?;
        rounds.push(Round { ratio: (sum / Method::ALL.len() as f64).exp(), by_osu, near });
    }
    let near = there(&rounds) >= LEAST;
    rounds.retain(|round| round.near || !near);
    let of = |value: fn(&Round) -> f64| rounds.iter().map(value).collect::<Vec<_>>();
    let median = |samples: &[f64]| Median::new(samples, 0.95).map_err(|error| Failure::Words(error.to_string()));
    let Median { value: ratio, low, high } = median(&of(|round| round.ratio))?;
    let [ours_ns, mpi_ns] = [median(&of(|round| round.by_osu[0]))?.value, median(&of(|round| round.by_osu[1]))?.value];
    Ok(Cell { kind, collective: name.into(), ranks, bytes, ratio, low, high, ours_ns, mpi_ns, near })
}

/// A rule, and the least and the greatest ratio of the cells behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Left {
    rule: Rule,
    ratios: Span<f64>,
}

/// The lengths that a rule is for which was measured `at` one of these: those around it; of the shortest one, if that is short, also all
/// below it.
fn reach(at: u64, lengths: &[u64]) -> Span<u64> {
    let around = around(at, lengths);
    let shortest = at <= SHORT && around.least == at;
    Span::new(if shortest { Span::<u64>::ANY.least } else { around.least }, around.most)
}

/// The rules: a collective and range of lengths is left to the MPI where one of its forms loses, and none wins.
fn left(cells: &[Cell], lengths: &[u64]) -> Vec<Left> {
    let mut left: Vec<Left> = Vec::new();
    for kind in Collective::ALL {
        let of_kind: Vec<_> = cells.iter().filter(|cell| cell.kind == kind).collect();
        let Some(ranks) = of_kind.first().map(|cell| Span::new(cell.ranks, cell.ranks)) else { continue };
        let ranges = if kind.has_bytes() { lengths.iter().copied().map(Some).collect() } else { vec![None] };
        for at in ranges {
            let of_rule: Vec<_> = of_kind.iter().filter(|cell| at.is_none_or(|at| cell.bytes == at)).collect();
            if of_rule.iter().any(|cell| cell.wins()) || !of_rule.iter().any(|cell| cell.loses()) {
                continue;
            }
            let bytes = at.map_or(Span::<u64>::ANY, |at| reach(at, lengths));
            let rule = Rule { bytes, ranks, ..Rule::all(kind, Choice::Mpi) };
            let ratios = of_rule.iter().map(|cell| cell.ratio);
            let ratios = Span::new(ratios.clone().fold(f64::INFINITY, f64::min), ratios.fold(0.0, f64::max));
            match left.last_mut() {
                Some(Left { rule: last, ratios: both })
                    if Rule { bytes, ..*last } == rule && last.bytes.most.saturating_add(1) == bytes.least =>
                {
                    last.bytes.most = bytes.most;
                    *both = Span::new(both.least.min(ratios.least), both.most.max(ratios.most));
                }
                _ => left.push(Left { rule, ratios }),
            }
        }
    }
    left
}

/// The table that is there.
fn read(path: &Path) -> Result<Table, Failure> {
    let named = |error: &dyn fmt::Display| Failure::Words(format!("{}: {error}", path.display()));
    match std::fs::read_to_string(path) {
        Ok(text) => Table::read(&path.display().to_string(), &text).map_err(|error| Failure::Words(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Table::default()),
        Err(error) => Err(named(&error)),
    }
}

/// The text of a table: the rules that were `there`, but those of an earlier measurement of as many ranks, then what is `left`.
fn text(there: &Table, left: &[Left], ranks: u32) -> Result<String, Failure> {
    let earlier = |rule: &Rule| rule.plan == Choice::Mpi && rule.ranks == Span::new(ranks, ranks);
    let kept: Vec<_> = there.rules().iter().copied().filter(|rule| !earlier(rule)).collect();
    let all = kept.iter().copied().chain(left.iter().map(|left| left.rule)).collect();
    Table::new(all).map_err(|error| Failure::Words(error.to_string()))?;
    let kept = kept.iter().map(|rule| format!("{}\n", Line(rule)));
    let found = left.iter().map(|Left { rule, ratios }| {
        let Span { least, most } = ratios;
        format!("{} # ours takes {least:.2} to {most:.2} of its time\n", Line(rule))
    });
    Ok(std::iter::once(format!("{HEADER}\n")).chain(kept).chain(found).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(kind: Collective, collective: &str, bytes: u64, (low, ratio, high): (f64, f64, f64)) -> Cell {
        Cell {
            kind,
            collective: collective.into(),
            ranks: 2,
            bytes,
            ratio,
            low,
            high,
            ours_ns: ratio,
            mpi_ns: 1.0,
            near: true,
        }
    }

    const LENGTHS: [u64; 4] = [64, 1024, 16384, 1 << 18];
    const LOSES: (f64, f64, f64) = (1.1, 1.2, 1.3);
    const WINS: (f64, f64, f64) = (0.5, 0.6, 0.7);
    const LEVEL: (f64, f64, f64) = (0.9, 1.2, 1.3);

    fn lines(left: &[Left]) -> Vec<String> {
        let text = text(&Table::default(), left, 2).unwrap();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().skip(1).map(words).collect()
    }

    #[test]
    fn what_loses_beyond_doubt_is_left_in_ranges() {
        let of = |each: [(f64, f64, f64); 4]| {
            let cells =
                LENGTHS.into_iter().zip(each).map(|(bytes, found)| cell(Collective::Bcast, "bcast", bytes, found));
            lines(&left(&cells.collect::<Vec<_>>(), &LENGTHS))
        };
        assert_eq!(of([WINS, LEVEL, LEVEL, WINS]), Vec::<String>::new());
        // 4096 = √(1024 · 16384); 65536 = √(16384 · 2¹⁸).
        let one = "shm bcast bytes 4097..65536 ranks 2 use mpi # ours takes 1.20 to 1.20 of its time";
        assert_eq!(of([WINS, LEVEL, LOSES, WINS]), [one]);
        let wide = "shm bcast bytes 4097..262144 ranks 2 use mpi # ours takes 1.20 to 1.50 of its time";
        assert_eq!(of([WINS, LEVEL, LOSES, (1.4, 1.5, 1.6)]), [wide]);
        let slightly = (1.01, 1.02, 1.05);
        assert_eq!(of([slightly; 4]), Vec::<String>::new(), "not worth a rule");
        let short = "shm bcast bytes ..256 ranks 2 use mpi # ours takes 1.20 to 1.20 of its time";
        assert_eq!(of([LOSES, WINS, WINS, WINS]), [short], "and shorter ones");
        let long = [cell(Collective::Bcast, "bcast", 200_000, LOSES)];
        assert_eq!(reach(200_000, &[200_000]).least, 200_000);
        assert_eq!(lines(&left(&long, &[200_000])).len(), 1);
    }

    #[test]
    fn forms_that_share_rules_are_left_together_or_not() {
        let of = |one, other| {
            let cells = [
                cell(Collective::Allgather, "allgather", 64, one),
                cell(Collective::Allgather, "allgatherv", 64, other),
            ];
            lines(&left(&cells, &[64])).len()
        };
        assert_eq!((of(LOSES, LOSES), of(LOSES, LEVEL), of(LOSES, WINS), of(LEVEL, LEVEL)), (1, 1, 0, 0));
        // Not all ranks know the lengths: one rule for all.
        let of = |long| {
            let cells =
                [cell(Collective::Gatherv, "gatherv", 64, LOSES), cell(Collective::Gatherv, "gatherv", 1024, long)];
            lines(&left(&cells, &LENGTHS))
        };
        assert_eq!(of(LEVEL), ["shm gatherv ranks 2 use mpi # ours takes 1.20 to 1.20 of its time"]);
        assert_eq!(of(WINS), Vec::<String>::new());
    }

    #[test]
    fn rules_of_the_same_ranks_are_measured_anew_and_others_kept() {
        let there = "shm bcast ranks 2 use mpi; shm bcast ranks 4 use mpi; shm barrier ranks 2 use central";
        let there = Table::read_rules("there", there).unwrap();
        let left = left(&[cell(Collective::Reduce, "reduce", 64, LOSES)], &[64]);
        let found = text(&there, &left, 2).unwrap();
        let table = Table::read("found", &found).unwrap();
        let kept: Vec<_> = table.rules().iter().map(|rule| (rule.collective, rule.ranks.least)).collect();
        assert_eq!(kept, [(Collective::Bcast, 4), (Collective::Barrier, 2), (Collective::Reduce, 2)]);
        let other = Table::read_rules("other", "shm reduce bytes ..100 use slices").unwrap();
        assert!(text(&other, &left, 2).is_err(), "another rule is for these calls");
    }
}
