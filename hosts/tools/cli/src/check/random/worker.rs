//! A rank that runs programs.

use super::programs::{Programs, Source};
use super::{Left, budget, read, report_of};
use crate::error::Failure;
use crate::team::Team;
use rustix::process::{Signal, getpid, kill_process};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use unisono_kernel::call::Call;
use unisono_kernel::call::progress::Progress;
use unisono_kernel::error::Error;
use unisono_posix::{Intracomm, PosixError};
use unisono_programs::Program;
use unisono_programs::interpret::{self, Body, Host, Making, Member, interpret};
use unisono_programs::judge::{Ending, Report, Tells, judge};

/// The error of a rank's call.
#[derive(Debug)]
struct Failed(PosixError);

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self(PosixError::Call(error))
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Tells for Failed {
    fn kernel(&self) -> Option<Error> {
        if let PosixError::Call(error) = self.0 { Some(error) } else { None }
    }
}

struct Process(Intracomm);

impl Member for Process {
    type Error = Failed;

    fn run(&mut self, call: &Call<'_>, others: &mut [&mut dyn Progress]) -> Result<(), Error> {
        interpret::run(&mut self.0, call, others)
    }

    fn scope<'buf>(&mut self, body: &mut Body<'_, 'buf>) -> Result<(), Error> {
        interpret::scope(&mut self.0, body)
    }

    fn make(&mut self, _: usize, made: Making, others: &mut [&mut dyn Progress]) -> Result<Option<Self>, Failed> {
        let made = match made {
            Making::Dup => self.0.dup_among(others).map(Some),
            Making::Split(color, key) => self.0.split_among(color, key, others),
        };
        Ok(made.map_err(Failed)?.map(Self))
    }
}

/// What a rank's report would say if it hung now.
#[derive(Debug)]
struct Now {
    until: Instant,
    at: usize,
    right: u64,
}

/// Ends this process with a report if a step takes too long, wherever it hangs.
#[derive(Clone, Debug)]
struct Watchdog {
    now: Arc<Mutex<Option<Now>>>,
    path: PathBuf,
}

impl Watchdog {
    fn start(path: PathBuf) -> Self {
        let dog = Self { now: Arc::default(), path };
        let own = dog.clone();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(50));
                let Ok(now) = own.now.lock() else { return };
                if let Some(Now { until, at, right }) = &*now
                    && Instant::now() > *until
                {
                    let last = Some(Report { end: Ending::Late, at: *at, wrong: Vec::new() });
                    own.leave(&Left { right: *right, last });
                    std::process::exit(0);
                }
            }
        });
        dog
    }

    fn set(&self, now: Option<Now>) {
        if let Ok(mut place) = self.now.lock() {
            *place = now;
        }
    }

    fn leave(&self, left: &Left) {
        if let Ok(bytes) = serde_json::to_vec(left) {
            let _ = std::fs::write(&self.path, bytes);
        }
    }
}

struct Me<'a> {
    dog: &'a Watchdog,
    /// The bound of time for a step, and the end of the present one's.
    limit: Duration,
    until: Instant,
}

impl Host for Me<'_> {
    fn kill(&mut self) {
        // This process may kill itself; then the call does not return.
        let _ = kill_process(getpid(), Signal::KILL);
    }

    fn late(&mut self) -> bool {
        Instant::now() > self.until
    }

    fn step(&mut self, number: usize) {
        if let Ok(mut now) = self.dog.now.lock()
            && let Some(now) = &mut *now
        {
            now.at = number;
            now.until = Instant::now() + 2 * self.limit;
        }
        self.until = Instant::now() + self.limit;
    }
}

/// Runs one program; returns this rank's report.
fn one(team: &mut Team, program: &Program, limit: Duration, dog: &Watchdog, right: u64) -> Result<Report, Failure> {
    let now = Instant::now();
    // First a rank that waits gives up, and its error names the late rank; then a rank that tests; then this process is
    // ended.
    dog.set(Some(Now { until: now + 2 * limit, at: usize::MAX, right }));
    let world = program.segment(0);
    let joined = team.join_from(world.params(program.ranks), Some(limit), world.begins())?;
    let mut me = Me { dog, limit, until: now + limit };
    let told = interpret(program, team.rank(), Process(joined.communicator), &mut me);
    dog.set(None);
    Ok(Report::of(told))
}

/// A rank of a team.
pub(crate) fn work(team: &mut Team, args: &Programs) -> Result<(), Failure> {
    let dog = Watchdog::start(report_of(&args.reports, team.rank()));
    let (first, time) = match &args.source {
        Source::File(path) => {
            let last = Some(one(team, &read(path)?, args.limit, &dog, 0)?);
            dog.leave(&Left { right: 0, last });
            return Ok(());
        }
        Source::Seeds(first, time) => (*first, *time),
    };
    let begin = Instant::now();
    for right in 0.. {
        let program = Program::draw(first + right, &budget(team.size(), false));
        let report = one(team, &program, args.limit, &dog, right)?;
        // A rank that fails here can't take part in further programs.
        dog.leave(&Left { right, last: Some(report.clone()) });
        let over = begin.elapsed() > time;
        dog.set(Some(Now { until: Instant::now() + 2 * args.limit, at: usize::MAX, right }));
        let all: Vec<(Report, bool)> = team.gather(&(report, over))?;
        dog.set(None);
        let reports: Vec<_> = all.iter().map(|(report, _)| report.clone()).collect();
        if judge(&program, &reports).is_err() {
            return Ok(());
        }
        if all.first().is_some_and(|first| first.1) {
            dog.leave(&Left { right: right + 1, last: None });
            return Ok(());
        }
    }
    Ok(())
}
