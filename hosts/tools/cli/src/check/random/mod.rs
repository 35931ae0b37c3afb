//! Legal programs, drawn from seeds, on real processes (`unisono check --random`).
//!
//! The launcher starts teams of ranks; a team draws and runs one program after the other, each on memory of its own. A program in which
//! a rank is killed has a team for itself. Each rank writes a report into a folder, where the launcher reads what
//! happened, also after a team that hung or crashed.

mod command;
pub(crate) mod programs;
mod worker;

use crate::out::{out, outln};
pub(crate) use worker::work;

use crate::args::Check;
use crate::error::Failure;
use crate::job::Job;
use crate::team::launch_for;
use programs::{Programs, Source};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use unisono_posix::launch::{Exit, Outcome};
use unisono_programs::draw::Budget;
use unisono_programs::judge::{Ending, Report, judge};
use unisono_programs::shrink::shrink_by_running;
use unisono_programs::{Program, Verb};

/// The time for which a team draws programs.
const TEAM: Duration = Duration::from_secs(5);
/// The bound of time for a step of few ranks ([`bound`]): it takes microseconds, on a machine that does nothing else.
const LIMIT: Duration = Duration::from_secs(10);
/// While a program that failed is shrunk: the bound for a step, the time for the whole shrinking, and the runs of each
/// attempt.
const SHORT: Duration = Duration::from_secs(2);
const SHRINK: Duration = Duration::from_secs(60);
const TRIES: u32 = 3;
/// The signal that ends a rank which a program kills.
const KILL: i32 = Signal::KILL.as_raw();

/// The bound for a step of so many ranks, from that of few. Many share cores: a call of a thousand short fragments has as many waits,
/// in each of which all others run, and what else the machine does.
fn bound(few: Duration, ranks: u32) -> Duration {
    few * ranks.div_ceil(8)
}

/// A rank's report: how many programs were right, and its words about the next one.
#[derive(Debug, Deserialize, Serialize)]
struct Left {
    right: u64,
    last: Option<Report>,
}

/// The limits of programs that are drawn for processes. The memory of communicators that a program makes is not drawn,
/// but their counts begin where the first communicator's do.
fn budget(ranks: u32, kills: bool) -> Budget {
    Budget { segments: false, pause: 1000, kills, ..Budget::new(ranks) }
}

/// A folder that is removed with its owner.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Result<Self, Failure> {
        let name = format!("unisono-programs-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).map_err(|e| Failure::Words(format!("{}: {e}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn report_of(reports: &Path, rank: u32) -> PathBuf {
    reports.join(format!("rank-{rank}"))
}

struct Runner<'a> {
    args: &'a Check,
    directory: Directory,
}

impl Runner<'_> {
    /// Runs a team; returns how many of its programs were right, and each rank's words about the next one.
    fn team(&self, ranks: u32, source: Source, limit: Duration) -> Result<(u64, Vec<Option<Report>>), Failure> {
        let reports = &self.directory.0;
        for rank in 0..ranks {
            let _ = std::fs::remove_file(report_of(reports, rank));
        }
        let job = Job::Programs(Programs { source, limit, reports: reports.clone() });
        let (bind, env) = (self.args.bind, self.args.memory.variables());
        let outcome = launch_for(ranks, bind, env, &job, 3 * limit)?;
        let left: Vec<_> = (0..ranks).map(|rank| left(reports, rank, &outcome)).collect();
        let right = left.iter().map(|left| left.right).max().unwrap_or(0);
        // A rank that was not in the last program yet, or not any more, has no report about it.
        Ok((right, left.into_iter().map(|left| left.last).collect()))
    }

    /// Runs one program; the error says what is wrong.
    fn one(&self, program: &Program, limit: Duration) -> Result<(), String> {
        let file = self.directory.0.join("program");
        std::fs::write(&file, program.to_string()).map_err(|e| format!("{}: {e}", file.display()))?;
        let team = self.team(program.ranks, Source::File(file), limit);
        let (_, reports) = team.map_err(|failure| failure.to_string())?;
        say(program, reports)
    }

    /// Prints a program that failed, and the program to which it was shrunk.
    fn failed(&self, program: Program, seed: Option<u64>, words: String) -> Result<(), Failure> {
        match seed {
            Some(seed) => outln!("seed {seed}, {} ranks: FAILED\n{words}", program.ranks)?,
            None => outln!("FAILED\n{words}")?,
        }
        let until = Instant::now() + SHRINK;
        let (short, words) =
            shrink_by_running(program, words, (TRIES, until), |program| self.one(program, bound(SHORT, program.ranks)));
        outln!("shrunk: {}\n{short}", words.replace('\n', "\n        "))?;
        Err(Failure::Silent(1))
    }
}

fn left(reports: &Path, rank: u32, outcome: &Outcome) -> Left {
    let read = std::fs::read(report_of(reports, rank)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    read.unwrap_or_else(|| {
        let exit = outcome.exits.get(rank as usize).copied();
        let last = match exit {
            Some(_) if outcome.killed.contains(&rank) => {
                Report { end: Ending::Late, at: usize::MAX, wrong: Vec::new() }
            }
            Some(Exit::Signal(KILL)) => Report { end: Ending::Killed, at: usize::MAX, wrong: Vec::new() },
            Some(exit) => Report::failed(format!("the process {exit}")),
            None => Report::failed("the process is not known".into()),
        };
        Left { right: 0, last: Some(last) }
    })
}

fn say(program: &Program, reports: Vec<Option<Report>>) -> Result<(), String> {
    let done = Report { end: Ending::Done, at: 0, wrong: Vec::new() };
    let reports: Vec<_> = reports.into_iter().map(|report| report.unwrap_or_else(|| done.clone())).collect();
    judge(program, &reports)
}

fn read(path: &Path) -> Result<Program, Failure> {
    let words = |e: &dyn std::fmt::Display| Failure::Words(format!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| words(&e))?;
    Program::parse(&text).map_err(|e| words(&e))
}

pub(crate) fn run(args: &Check) -> Result<(), Failure> {
    let program = args.program.as_deref().map(read).transpose()?;
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let seed = args.seed.unwrap_or_else(clock);
    if args.print {
        let budget = if args.by.is_some() { command::budget(args.ranks) } else { budget(args.ranks, false) };
        out!("{}", Program::draw(seed, &budget))?;
        return Ok(());
    }
    if let Some(by) = &args.by {
        return command::check(args, by, program, seed);
    }
    let runner = Runner { args, directory: Directory::new()? };
    if let Some(program) = program {
        program
            .fits_scopes()
            .and_then(|()| runner.one(&program, bound(LIMIT, program.ranks)))
            .map_err(Failure::Words)?;
        outln!("1 program passed")?;
        return Ok(());
    }
    let until = Instant::now() + Duration::from_secs(args.random.unwrap_or(0));
    let (mut next, mut passed, mut killed) = (seed, 0, 0);
    while Instant::now() < until {
        let time = TEAM.min(until.saturating_duration_since(Instant::now()));
        let (right, reports) = runner.team(args.ranks, Source::Seeds(next, time), bound(LIMIT, args.ranks))?;
        (next, passed) = (next + right, passed + right);
        if reports.iter().any(Option::is_some) {
            let program = Program::draw(next, &budget(args.ranks, false));
            if let Err(words) = say(&program, reports) {
                return runner.failed(program, Some(next), words);
            }
        }
        // As many programs with a killed rank as take about a second.
        let begin = Instant::now();
        while begin.elapsed() < TEAM / 5 && Instant::now() < until {
            let program = Program::draw(next, &budget(args.ranks, true));
            next += 1;
            if program.steps.iter().any(|step| step.verb == Verb::Kill) {
                if let Err(words) = runner.one(&program, bound(LIMIT, program.ranks)) {
                    return runner.failed(program, Some(next - 1), words);
                }
                killed += 1;
            }
        }
    }
    outln!("{passed} programs passed, {killed} more in which a rank was killed; seeds {seed} to {}", next - 1)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{LIMIT, bound};

    #[test]
    fn many_ranks_have_more_time_for_a_step() {
        assert_eq!([1, 8, 9, 128].map(|ranks| bound(LIMIT, ranks)), [1, 1, 2, 16].map(|times| times * LIMIT));
    }
}
