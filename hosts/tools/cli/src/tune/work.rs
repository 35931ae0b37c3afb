//! A rank's part: repetitions of all algorithms of a cell, in turn, until their medians are known well or the cell's
//! time is spent.

use super::args::Work;
use super::costs::{Cell, Speeds};
use crate::args::Collective;
use crate::bench::{Calls, Contender, Floors, Plan, Subject, rate_times};
use crate::decide::names;
use crate::error::Failure;
use crate::form::Form;
use crate::progress::progress;
use crate::team::Team;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use unisono_kernel::region::Params;
use unisono_kernel::table::Over;
use unisono_model::stats::Median;
use unisono_posix::Joined;

/// What the ranks measured.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Found {
    pub(super) speeds: Speeds,
    pub(super) cells: Vec<Cell>,
}

/// Bytes whose copies are timed.
const COPIED: u64 = 64 << 10;

/// A median is known well if half of its interval, divided by the median, is at most this.
pub(super) const GOOD: f64 = 0.05;
/// The intervals' level of confidence.
const LEVEL: f64 = 0.95;

/// The lengths of a collective's cells: one cell for a barrier.
pub(super) fn lengths(collective: Collective, bytes: &[u64]) -> &[u64] {
    if collective == Collective::Barrier { &[0] } else { bytes }
}

pub(crate) fn work(team: &mut Team, work: &Work) -> Result<(), Failure> {
    let mut joined = team.join(Params::new(team.size()).with_cico())?;
    let cells = || work.collectives.iter().flat_map(|&one| lengths(one, &work.bytes).iter().map(move |&at| (one, at)));
    let all: usize = cells().map(|(collective, _)| names(collective).len()).sum();
    let bar = progress(team.rank() == 0 && !work.quiet, all as u64);
    bar.set_message("lines and copies");
    let speeds = speeds(team, &joined)?;
    let mut found = Vec::new();
    for (collective, bytes) in cells() {
        bar.set_message(format!("{} ranks: {collective:?} {}", team.size(), unisono_plot::bytes(bytes)));
        let share = work.seconds * names(collective).len() as f64 / all as f64;
        found.extend(cell(team, &mut joined, collective, bytes, share)?);
        bar.inc(names(collective).len() as u64);
    }
    bar.finish_and_clear();
    if team.rank() == 0 {
        let path = &work.found;
        let named = |e| Failure::Words(format!("{}: {e}", path.display()));
        std::fs::write(path, serde_json::to_string(&Found { speeds, cells: found })?).map_err(named)?;
    }
    Ok(())
}

/// The machine's speeds between these processes.
fn speeds(team: &mut Team, joined: &Joined) -> Result<Speeds, Failure> {
    let floors = Floors::measure(team, joined, &[COPIED], false)?;
    let notice = Some(floors.notice());
    let (line_ns, turn_ns) = if joined.waiting.yields { (None, floors.turn()) } else { (notice, None) };
    let byte = |(inwards, outwards)| f64::midpoint(inwards, outwards) / COPIED as f64;
    Ok(Speeds { line_ns, turn_ns, byte_ns: floors.copies(COPIED).map(byte) })
}

/// Measures all algorithms that apply to a call.
fn cell(
    team: &mut Team,
    joined: &mut Joined,
    collective: Collective,
    bytes: u64,
    seconds: f64,
) -> Result<Vec<Cell>, Failure> {
    let subjects = Subject::by_name(collective, "all", bytes, team.size())?;
    let own = subjects.into_iter().filter(|subject| subject.by_hand().is_none());
    let mut contenders =
        own.map(|subject| Contender::join(team, joined, subject, Form::Blocking)).collect::<Result<Vec<_>, _>>()?;
    // Half of the time for the first pass, the rest for further ones.
    let plan = Plan {
        iterations: None,
        warm: false,
        lent: false,
        calls: Calls::InTurn,
        budget: seconds * 1e9 / (2 * contenders.len().max(1)) as f64,
    };
    let begin = Instant::now();
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
    loop {
        let more = rate_times(team, joined, &mut contenders, plan)?;
        times.iter_mut().zip(more).for_each(|(times, more)| times.extend(more.ns));
        let medians = times.iter().map(|times| Median::new(times, LEVEL)).collect::<Result<Vec<_>, _>>()?;
        let enough = medians.iter().all(|median| median.spread() <= GOOD);
        let over = begin.elapsed().as_secs_f64() >= seconds;
        // All ranks do what rank 0 decides.
        if team.gather(&(enough || over))?.first() != Some(&false) {
            let one = |((contender, median), times): ((&Contender, &Median), &Vec<f64>)| Cell {
                over: Over::Segment.name().into(),
                collective: contender.subject.collective().into(),
                algorithm: contender.subject.algorithm(),
                ranks: team.size(),
                bytes,
                p50_ns: median.value,
                low_ns: median.low,
                high_ns: median.high,
                samples: times.len() as u64,
            };
            return Ok(contenders.iter().zip(&medians).zip(&times).map(one).collect());
        }
    }
}
