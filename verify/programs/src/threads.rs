//! Ranks as threads, each communicator on a segment of its own with the program's parameters.

use crate::interpret::{self, Body, Host, Making, Member, interpret, wait_out};
use crate::judge::{Ending, Report};
use crate::program::{Program, Verb};
use crate::turns::{InTurns, Turns};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use unisono_kernel::Rank;
use unisono_kernel::algorithm::BarrierAlgorithm;
use unisono_kernel::call::Call;
use unisono_kernel::call::progress::Progress;
use unisono_kernel::comm::Communicator;
use unisono_kernel::error::{Error, Refusal, WaitError};
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::transport::Transport;
use unisono_kernel::machine::wait::{Relax, SpinThen};
use unisono_kernel::region::{Base, Counter, Layout, Region};
use unisono_local::Segment;

/// Threads whose waits see deaths and then end.
#[derive(Debug)]
struct Threads<R>(PhantomData<R>);

impl<R: Region> Transport for Threads<R> {
    type Region = R;
    type Wait = SpinThen<Watch>;
}

/// The state of a run that all ranks share.
#[derive(Debug)]
struct Run {
    segments: Vec<(Segment, Base)>,
    groups: Vec<Vec<u32>>,
    dead: Vec<AtomicBool>,
    /// Ranks that have ended; dead ones have not.
    ended: AtomicUsize,
    /// The run is ended: no rank waits any more.
    over: AtomicBool,
    crowded: bool,
    /// The rank whose turn it is, if ranks take turns.
    turns: Option<Arc<Turns>>,
    /// The run's start; the milliseconds from it to the last start of a step on any rank; the longest time without one.
    begin: Instant,
    stepped: AtomicU64,
    limit: Duration,
}

impl Run {
    /// Lets other ranks go on.
    fn yields(&self, rank: u32) {
        match &self.turns {
            Some(turns) => turns.pass(rank as usize),
            None => std::thread::yield_now(),
        }
    }

    /// Stops a rank for good.
    fn leaves(&self, rank: usize) {
        if let Some(turns) = &self.turns {
            turns.leave(rank);
        }
    }

    fn is_over(&self) -> bool {
        let until = Duration::from_millis(self.stepped.load(Ordering::Relaxed)) + self.limit;
        self.over.load(Ordering::Relaxed) || self.begin.elapsed() > until
    }
}

/// One of so many calls of the host looks at the peers.
const LOOKS: u32 = 16;

/// Looks at the peers of a communicator.
#[derive(Clone, Debug)]
struct Watch {
    run: Arc<Run>,
    comm: usize,
    world: u32,
    looks: u32,
}

impl Watch {
    /// Is an awaited peer dead, or is there no more time?
    fn look(&self, on: &WaitSet) -> Result<(), WaitError> {
        let group = &self.run.groups[self.comm];
        let is_dead = |peer: &Rank| {
            group.get(*peer as usize).is_some_and(|&rank| self.run.dead[rank as usize].load(Ordering::Acquire))
        };
        let dead = match on.first().peer {
            Some(peer) => Some(peer).filter(is_dead),
            None => (0..group.len() as Rank).find(is_dead),
        };
        match dead {
            Some(peer) => Err(WaitError::Died(peer)),
            None if self.run.is_over() => Err(WaitError::Late(on.first().peer.unwrap_or(0))),
            None => Ok(()),
        }
    }
}

impl Relax for Watch {
    fn relax(&mut self, on: &WaitSet) -> Result<(), WaitError> {
        self.run.yields(self.world);
        self.looks += 1;
        if self.looks.is_multiple_of(LOOKS) { self.look(on) } else { Ok(()) }
    }

    fn glance(&mut self, on: &WaitSet) -> Result<u32, WaitError> {
        self.run.yields(self.world);
        self.look(on).map(|()| LOOKS)
    }
}

/// A member's view of a communicator's segment, by the communicator's number and the rank there.
pub type View<'v, R> = dyn Fn((usize, &Segment, Base), Rank) -> R + Sync + 'v;

/// A rank's communicator.
struct Thread<'v, R: Region> {
    communicator: Communicator<Threads<R>>,
    run: Arc<Run>,
    world: u32,
    view: &'v View<'v, R>,
}

impl<'v, R: Region> Thread<'v, R> {
    /// A rank's handle of communicator `comm`, if it is a member.
    fn new(run: &Arc<Run>, comm: usize, world: u32, view: &'v View<'v, R>) -> Result<Option<Self>, Refusal> {
        let place = run.groups[comm].iter().position(|&rank| rank == world);
        let Some(place) = place else { return Ok(None) };
        let (segment, base) = &run.segments[comm];
        let watch = Watch { run: run.clone(), comm, world, looks: 0 };
        let wait = if run.crowded { SpinThen::crowded(watch) } else { SpinThen::spinning(watch) };
        let (region, place) = (view((comm, segment, *base), place as Rank), place as Rank);
        let communicator = Communicator::resume(region, *segment.layout(), place, *base, wait)?;
        Ok(Some(Self { communicator, run: run.clone(), world, view }))
    }
}

impl<R: Region> Member for Thread<'_, R> {
    type Error = Error;

    fn run(&mut self, call: &Call<'_>, others: &mut [&mut dyn Progress]) -> Result<(), Error> {
        interpret::run(&mut self.communicator, call, others)
    }

    fn scope<'buf>(&mut self, body: &mut Body<'_, 'buf>) -> Result<(), Error> {
        interpret::scope(&mut self.communicator, body)
    }

    fn make(&mut self, comm: usize, _: Making, others: &mut [&mut dyn Progress]) -> Result<Option<Self>, Error> {
        self.run(&Call::Barrier { algorithm: BarrierAlgorithm::Auto }, others)?;
        if comm >= self.run.segments.len() {
            return Ok(None);
        }
        Self::new(&self.run, comm, self.world, self.view).map_err(Error::Refused)
    }
}

/// The layout of a communicator's memory.
///
/// # Errors
/// Parameters that do not fit.
pub fn segment(program: &Program, comm: usize, ranks: u32) -> Result<(Segment, Base), Refusal> {
    let wanted = program.segment(comm);
    let (segment, base) = (Segment::new(wanted.params(ranks))?, wanted.begins());
    count_on(&segment, segment.layout(), base);
    Ok((segment, base))
}

/// Prepares zeroed memory so that a communicator may begin there at `base`: only the word of the central counter
/// barrier must be set, since all other words are below the values for which the first operations wait.
pub fn count_on<R: Region>(region: &R, layout: &Layout, base: Base) {
    region.counter(layout.central_count()).store_release(base.arrivals(layout.ranks()));
}

struct Me {
    run: Arc<Run>,
    rank: usize,
}

impl Host for Me {
    fn kill(&mut self) {
        self.run.dead[self.rank].store(true, Ordering::Release);
        self.run.ended.fetch_add(1, Ordering::AcqRel);
        self.run.leaves(self.rank);
        // The other ranks find out by themselves.
        while self.run.ended.load(Ordering::Acquire) < self.run.dead.len() && !self.run.is_over() {
            std::thread::sleep(Duration::from_micros(100));
        }
        self.run.over.store(true, Ordering::Release);
    }

    fn late(&mut self) -> bool {
        self.run.is_over()
    }

    fn yields(&mut self) {
        self.run.yields(self.rank as u32);
    }

    fn step(&mut self, _: usize) {
        self.run.stepped.store(self.run.begin.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn pause(&mut self, verb: Verb, pause: Duration) {
        match &self.run.turns {
            // Where ranks take turns, a microsecond is one turn.
            Some(turns) => (0..pause.as_micros()).for_each(|_| turns.pass(self.rank)),
            None => wait_out(verb, pause),
        }
    }
}

/// Runs a program, until no rank has begun a step for `limit`; returns each rank's report.
///
/// # Errors
/// A segment's parameters do not fit.
pub fn run(program: &Program, limit: Duration) -> Result<Vec<Report>, Refusal> {
    run_on(program, limit, &|(_, segment, _), _| segment.clone())
}

/// As [`run`], but one rank moves at a time, which `seed` chooses: between any two of its accesses to a segment another
/// one may go on. One seed is one interleaving, unless the time is up.
///
/// # Errors
/// A segment's parameters do not fit.
pub fn run_in_turns(program: &Program, limit: Duration, seed: u64) -> Result<Vec<Report>, Refusal> {
    run_in_turns_on(program, limit, seed, &|(_, segment, _), _| segment.clone())
}

/// As [`run_in_turns`]; returns a number, too, that follows from all turns.
///
/// # Errors
/// A segment's parameters do not fit.
pub fn run_in_counted_turns(program: &Program, limit: Duration, seed: u64) -> Result<(Vec<Report>, u64), Refusal> {
    let turns = Arc::new(Turns::new(seed, program.ranks as usize));
    let reports = run_in(&turns, program, limit, &|(_, segment, _), _| segment.clone())?;
    Ok((reports, turns.so_far()))
}

/// Runs a program in turns, on the views of segments that `view` makes.
///
/// # Errors
/// A segment's parameters do not fit.
pub fn run_in_turns_on<R: Region>(
    program: &Program,
    limit: Duration,
    seed: u64,
    view: &View<'_, R>,
) -> Result<Vec<Report>, Refusal> {
    run_in(&Arc::new(Turns::new(seed, program.ranks as usize)), program, limit, view)
}

fn run_in<R: Region>(
    turns: &Arc<Turns>,
    program: &Program,
    limit: Duration,
    view: &View<'_, R>,
) -> Result<Vec<Report>, Refusal> {
    let groups = program.groups();
    let view = |segment: (usize, &Segment, Base), place: Rank| {
        let world = groups[segment.0].get(place as usize).copied().unwrap_or(0);
        InTurns::new(view(segment, place), turns.clone(), world as usize)
    };
    run_all(program, limit, &view, Some(turns.clone()))
}

/// As [`run`], on the views of segments that `view` makes, by which a checker observes the accesses.
///
/// # Errors
/// A segment's parameters do not fit.
pub fn run_on<R: Region>(program: &Program, limit: Duration, view: &View<'_, R>) -> Result<Vec<Report>, Refusal> {
    run_all(program, limit, view, None)
}

fn run_all<R: Region>(
    program: &Program,
    limit: Duration,
    view: &View<'_, R>,
    turns: Option<Arc<Turns>>,
) -> Result<Vec<Report>, Refusal> {
    let groups = program.groups();
    let segments = groups
        .iter()
        .enumerate()
        .map(|(comm, group)| segment(program, comm, group.len().max(1) as u32))
        .collect::<Result<Vec<_>, _>>()?;
    let ranks = program.ranks as usize;
    let run = Arc::new(Run {
        segments,
        groups,
        dead: (0..ranks).map(|_| AtomicBool::new(false)).collect(),
        ended: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        // Half of all programs run as if there were a core for each rank. Miri has one for all.
        crowded: program.seed.is_multiple_of(2) || turns.is_some() || cfg!(miri),
        turns,
        begin: Instant::now(),
        stepped: AtomicU64::new(0),
        limit,
    });
    let one = |rank: usize| -> Report {
        let (mut host, run) = (Me { run: run.clone(), rank }, &run);
        let body = || match Thread::new(run, 0, rank as u32, view) {
            Ok(Some(world)) => Report::of(interpret(program, rank as u32, world, &mut host)),
            other => Report::failed(format!("no world: {:?}", other.err())),
        };
        if let Some(turns) = &run.turns {
            turns.begin(rank);
        }
        let report = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or(panic.downcast_ref::<&str>().copied());
            Report::failed(format!("panic: {}", words.unwrap_or("without words")))
        });
        // A rank that ends early counts as dead for the others.
        if !matches!(report.end, Ending::Done | Ending::Killed) {
            run.dead[rank].store(true, Ordering::Release);
        }
        if report.end != Ending::Killed {
            run.ended.fetch_add(1, Ordering::AcqRel);
        }
        run.leaves(rank);
        report
    };
    Ok(std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..ranks).map(|rank| scope.spawn(move || one(rank))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|told| told.unwrap_or_else(|_| Report::failed("panic".into()))).collect()
    }))
}
