//! `unisono measure caches`: what a line and a copy cost between two cores, as a machine of the simulator; and calls between
//! real processes beside the same calls on that machine.
//!
//! | parameter | measured as |
//! |---|---|
//! | `group.latency` | a quarter of a flag's round trip: each way, a writer takes the line from its reader, and the reader gets it |
//! | `group.stream` | a line of 64 KiB that are copied into a queue and out of it, the mean of both; the first line's latency is left out |
//! | `fresh` | how much longer lines take to copy out if there are 8 KiB of them, which their writer has in its first-level cache |
//! | `copy` | bytes copied into a slot that nobody reads |
//! | `fold` | bytes of a slot that nobody writes, folded |
//! | `call` | half of a broadcast of 8 B by two ranks on one core: one runs where the other would wait |
//! | `op` | half of such an allreduce, without `call` |
//!
//! The others are those of `near-pair`.

use super::args::Caches;
use crate::args::{Blocks, Collective, Method};
use crate::bench::{Calls, Contender, Floors, Plan, Subject, rate_times};
use crate::error::Failure;
use crate::form::Form;
use crate::model::table::show;
use crate::out::outln;
use crate::sim::segment::simulate;
use crate::team::Team;
use serde_json::json;
use std::path::Path;
use std::time::Instant;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Error, WaitError};
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::transport::{Observe, Transport, Wait};
use unisono_kernel::op::Op;
use unisono_kernel::region::{Params, Region};
use unisono_local::Segment;
use unisono_model::stats::Median;
use unisono_posix::Joined;
use unisono_sim::segment::{Distance, Machine};

/// Bytes whose copies are timed: few, and more than a first-level cache holds; and those of a line.
const COPIED: u64 = 8 << 10;
const LONG: u64 = 64 << 10;
const LINE: f64 = 64.0;

/// The calls that are compared.
const CELLS: [(Collective, u64); 9] = [
    (Collective::Barrier, 0),
    (Collective::Bcast, 8),
    (Collective::Bcast, 8 << 10),
    (Collective::Bcast, 512 << 10),
    (Collective::Allreduce, 8),
    (Collective::Allreduce, 8 << 10),
    (Collective::Allreduce, 512 << 10),
    (Collective::Allgather, 8 << 10),
    (Collective::Allgather, 512 << 10),
];

/// Nanoseconds for which a cell is measured in a round.
const BUDGET: f64 = 4e7;

/// Calls of a simulated cell.
const CALLS: u64 = 100;

/// A round counts if a line's way took this share of the median round's, before it and after it: hosts of virtual machines move
/// their cores.
const SAME: std::ops::RangeInclusive<f64> = 0.75..=1.35;

/// What a round measured, in nanoseconds.
#[derive(Debug)]
struct Round {
    /// One way of a line, before the round and after it.
    ways: [f64; 2],
    /// One line of a longer copy.
    stream: f64,
    /// How many times as long it takes to read one that was just written.
    fresh: f64,
    /// The parameters that need one core only: bytes in a nanosecond, and the same of a fold.
    copy: f64,
    fold: f64,
    call: f64,
    op: f64,
    /// By cell.
    cells: Vec<f64>,
}

impl Round {
    /// Did a long copy take any time beyond its first line? Other work on the cores may make that less than nothing.
    fn is_sound(&self) -> bool {
        self.stream > 0.0 && self.fresh.is_finite()
    }
}

pub(crate) fn work(team: &mut Team, args: &Caches) -> Result<(), Failure> {
    let params = Params::new(team.size());
    let mut joined = team.join(params)?;
    let mut contenders = Vec::new();
    for (collective, bytes) in CELLS {
        for subject in Subject::of(collective, Blocks::Equal, "auto", bytes, team.size(), false)? {
            contenders.push(Contender::join(team, &mut joined, subject, Form::Blocking)?);
        }
    }
    let mut rounds = Vec::new();
    for _ in 0..args.rounds {
        rounds.push(round(team, &mut joined, &mut contenders)?);
    }
    if team.rank() != 0 {
        return Ok(());
    }
    let typical = median(rounds.iter().flat_map(|round| round.ways))?.value;
    let same = |round: &&Round| round.ways.iter().all(|way| SAME.contains(&(way / typical)));
    let kept: Vec<&Round> = rounds.iter().filter(|round| round.is_sound()).filter(same).collect();
    if kept.is_empty() {
        return Err(Failure::Words("no round counts: other work was on these cores; measure again without it".into()));
    }
    let of = |value: fn(&Round) -> f64| median(kept.iter().map(|round| value(round))).map(|median| median.value);
    let machine = machine(
        of(|round| f64::midpoint(round.ways[0], round.ways[1]))?,
        [of(|round| round.stream)?, of(|round| round.fresh)?],
        [of(|round| round.copy)?, of(|round| round.fold)?],
        [of(|round| round.call)?, of(|round| round.op)?],
    )?;
    let rows = contenders.iter().enumerate().map(|(at, Contender { subject, .. })| {
        let measured = median(kept.iter().map(|round| round.cells[at]))?;
        let simulated = simulate(&machine, (subject, None), false, team.size(), 0, CALLS, Method::Rate)?.samples[0];
        Ok(vec![
            json!(subject.collective()),
            json!(subject.bytes),
            json!(measured.value / 1e3),
            json!(measured.low / 1e3),
            json!(measured.high / 1e3),
            json!(simulated / 1e3),
            json!(simulated / measured.value),
        ])
    });
    let rows = rows.collect::<Result<Vec<_>, Failure>>()?;
    let text = serde_json::to_string_pretty(&machine)?;
    if let Some(file) = &args.output {
        write(file, &text)?;
    }
    if !args.json {
        outln!("{text}")?;
    }
    let remark = format!(
        "\n{} of {} rounds count: those in which a line's way took {:.0} to {:.0} ns, before and after, and a long copy more than its first line.",
        kept.len(),
        rounds.len(),
        SAME.start() * typical,
        SAME.end() * typical,
    );
    show(&COLUMNS, &rows, &remark, args.json)
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|e| Failure::Words(format!("{}: {e}", file.display())))
}

const COLUMNS: [&str; 7] = ["collective", "bytes", "measured µs", "from", "to", "simulated µs", "simulated ÷ measured"];

fn median(values: impl Iterator<Item = f64>) -> Result<Median, Failure> {
    Ok(Median::new(&values.collect::<Vec<_>>(), unisono_measure::LEVEL)?)
}

/// Two cores that share a cache, with what was measured.
fn machine(
    way: f64,
    [stream, fresh]: [f64; 2],
    [copy, fold]: [f64; 2],
    [call, op]: [f64; 2],
) -> Result<Machine, Failure> {
    let near = Machine::named("near-pair").ok_or_else(|| Failure::Words("no machine near-pair".into()))?;
    let group = Distance { latency: way / 2.0, stream, ..near.group };
    Ok(Machine { call, op, copy, fold, group, package: group, far: group, fresh, ..near })
}

fn round(team: &mut Team, joined: &mut Joined, contenders: &mut [Contender]) -> Result<Round, Failure> {
    let before = Floors::measure(team, joined, &[COPIED, LONG], true)?;
    let way = before.notice();
    // A line into the queue and out of it, but for the first one.
    let both = |bytes| {
        let (inwards, outwards) = before.copies(bytes).unwrap_or((f64::NAN, f64::NAN));
        (inwards + outwards - way) / (bytes as f64 / LINE - 1.0)
    };
    let stream = both(LONG) / 2.0;
    let fresh = (both(COPIED) / stream - 1.0).clamp(1.0, 1e3);
    let [copy, fold] = alone(team, joined)?;
    let [call, op] = instructions()?;
    let plan = Plan { iterations: None, warm: true, lent: false, calls: Calls::InTurn, budget: BUDGET };
    let mut cells = Vec::new();
    for contender in contenders {
        let times = rate_times(team, joined, std::slice::from_mut(contender), plan)?;
        let ns = times.into_iter().flat_map(|times| times.ns);
        cells.push(median(ns)?.value);
    }
    let after = Floors::measure(team, joined, &[], true)?.notice();
    Ok(Round { ways: [way, after], stream, fresh, copy, fold, call, op, cells })
}

/// Bytes in a nanosecond that rank 0 copies into a slot of its own, and folds from there, while nobody else uses it.
fn alone(team: &mut Team, joined: &Joined) -> Result<[f64; 2], Failure> {
    const TIMES: u32 = 2000;
    let comm = joined.communicator.comm();
    let at = comm.member().layout().slot(team.rank(), 0).part(0, COPIED);
    let mut bytes = vec![0; COPIED as usize];
    let mut rate = |access: &mut dyn FnMut(&mut [u8])| {
        access(&mut bytes);
        let begin = Instant::now();
        for _ in 0..TIMES {
            access(&mut bytes);
        }
        f64::from(TIMES) * COPIED as f64 / begin.elapsed().as_nanos() as f64
    };
    team.gather(&())?;
    let region = comm.region();
    // SAFETY: the slot is this rank's own, and no operation runs; the bytes are ours.
    let copy = rate(&mut |bytes| unsafe { region.write(at, Buf::of_mut(bytes)) });
    // SAFETY: as above.
    let fold = rate(&mut |bytes| unsafe { region.fold(at, Buf::of_mut(bytes), &Op::SUM_F64) });
    team.gather(&())?;
    Ok([copy, fold])
}

/// Two ranks on one thread.
enum OneThread {}

impl Transport for OneThread {
    type Region = Segment;
    type Wait = Partner;
}

type Ranked = Communicator<OneThread>;
/// A collective call.
type Made = fn(&mut Ranked) -> Result<(), Error>;

/// Where a rank would wait, its partner makes its call.
struct Partner(Option<(Box<Ranked>, Made)>);

impl<X: Observe + ?Sized> Wait<X> for Partner {
    fn wait(&mut self, _: &mut X, on: &WaitSet) -> Result<(), WaitError> {
        let Some((partner, call)) = &mut self.0 else { return Err(on.late()) };
        call(partner).map_err(|_| on.late())
    }
}

/// Nanoseconds of the instructions of a broadcast of 8 B, and those that an allreduce takes more.
fn instructions() -> Result<[f64; 2], Failure> {
    let bcast = half(|communicator| communicator.bcast(&mut [0; 8], 1))?;
    let allreduce = half(|communicator| communicator.allreduce_in_place(&mut [0; 8], Op::SUM_F64))?;
    Ok([bcast, (allreduce - bcast).max(0.0)])
}

/// Half of the nanoseconds that both of two ranks take for their calls. Rank 0 waits.
fn half(call: Made) -> Result<f64, Failure> {
    const TIMES: u32 = 100_000;
    let segment = Segment::new(Params::new(2))?;
    let rank = |rank, wait| Communicator::new(segment.clone(), *segment.layout(), rank, wait);
    let mut first = rank(0, Partner(Some((Box::new(rank(1, Partner(None))?), call))))?;
    let begin = Instant::now();
    for _ in 0..TIMES {
        call(&mut first)?;
    }
    Ok(begin.elapsed().as_nanos() as f64 / f64::from(2 * TIMES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::segment;

    #[test]
    fn instructions_are_timed_where_nobody_waits() -> Result<(), Failure> {
        let [call, op] = instructions()?;
        assert!(call > 0.0 && op.is_finite() && op >= 0.0, "{call} {op}");
        let wrong = half(|communicator| communicator.bcast(&mut [0; 8], 2));
        assert!(wrong.is_err_and(|failure| failure.to_string().contains("root is 2")));
        Ok(())
    }

    #[test]
    fn a_round_beside_other_work_does_not_count() {
        let round = |stream, fresh| Round {
            ways: [80.0; 2],
            stream,
            fresh,
            copy: 21.0,
            fold: 9.5,
            call: 17.0,
            op: 31.0,
            cells: Vec::new(),
        };
        let sound =
            [(3.25, 1.75), (0.0, f64::NAN), (-1.5, 1.0), (f64::NAN, f64::NAN)].map(|(s, f)| round(s, f).is_sound());
        assert_eq!(sound, [true, false, false, false]);
    }

    #[test]
    fn the_simulator_reads_the_machine_that_is_written() -> Result<(), Failure> {
        let measured = machine(81.5, [3.25, 1.75], [21.0, 9.5], [17.0, 31.0])?;
        let file = std::env::temp_dir().join(format!("unisono-caches-{}.json", std::process::id()));
        write(&file, &serde_json::to_string_pretty(&measured)?)?;
        let read = segment::machine(&file.to_string_lossy());
        std::fs::remove_file(&file).map_err(|e| Failure::Words(e.to_string()))?;
        let read = read?;
        assert_eq!(read, measured);
        // What was measured, and both cores are as near as in one group; the others are those of near-pair.
        assert_eq!((read.group.latency, read.group.stream, read.fresh), (40.75, 3.25, 1.75));
        assert_eq!((read.copy, read.fold, read.call, read.op), (21.0, 9.5, 17.0, 31.0));
        assert_eq!((read.group, read.package), (read.package, read.far));
        let near = Machine::named("near-pair").ok_or_else(|| Failure::Words("no machine near-pair".into()))?;
        assert_eq!((read.all_cores(), read.memory, read.group.busy), (2, near.memory, near.group.busy));
        let subject = Subject::of(Collective::Bcast, Blocks::Equal, "auto", 8 << 10, 2, false)?.remove(0);
        let times = simulate(&read, (&subject, None), false, 2, 1, 3, Method::Window)?.samples;
        assert!(times.len() == 3 && times.iter().all(|time| *time > 0.0), "{times:?}");
        Ok(())
    }
}
