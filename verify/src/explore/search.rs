//! The search: every interleaving of one model, depth first, each state once; or random walks through it.
//!
//! One transition is one shared access of one process; a copy is two (begin, end). A process whose
//! poll returned `Wait` may be polled again at any time, whether the awaited event has happened or not.
//! Checked at every transition: no copy overlaps another process's copy of which one writes; the rules of
//! flags and mailwords; no poll fails; each operation leaves the right data; no process leaves a
//! barrier that another has not entered. Checked in every state: some process can go on (no deadlock);
//! a poll without the awaited event changes nothing, one with it goes on (no lost wake-up).

use super::access::{Access, overlap};
use super::hash::{Fingerprints, spread};
use super::names::Names;
use super::process::{Model, Next, Operation, Position, Processes};
use super::program::Program;
use super::series::Series;
use super::world::{Mutation, World};
use std::time::Instant;
use unisono_kernel::Rank;
use unisono_kernel::error::Refusal;

/// When to give a model up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most states of one model: each takes 32 bytes of memory.
    pub states: u64,
    /// The moment at which the search is given up.
    pub until: Option<Instant>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { states: 100_000_000, until: None }
    }
}

/// The outcome of a model.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Distinct states.
    pub states: u64,
    /// Transitions; polls that change nothing are not among them.
    pub transitions: u64,
    /// Were all states explored? False for a model that failed or met a limit.
    pub complete: bool,
    /// The first fault found, with the accesses that lead to it.
    pub failure: Option<String>,
}

/// One step of the path from the start.
struct Frame {
    /// The rank whose access led here, its position before, and the access's answer; the start has none.
    came: Option<(Rank, Position, u64)>,
    /// The rank that is tried next.
    next: Rank,
    /// The mark of the world before this step.
    mark: usize,
}

struct Search<'p, M: Model> {
    model: &'p M,
    processes: Processes<'p, M>,
    world: World,
    ranks: Rank,
}

/// Explores a program in all interleavings.
///
/// # Errors
/// The program's parameters do not make a segment.
pub fn explore(program: &Program, mutation: Mutation, limits: Limits) -> Result<Outcome, Refusal> {
    search(&Series::new(program)?, mutation, limits)
}

/// Walks through a program from its start to its end, again and again, each time in another interleaving, until it has counted as
/// many states as the limits allow: for a model with too many states. The same limits give the same walks.
///
/// # Errors
/// As [`explore`].
pub fn walk(program: &Program, mutation: Mutation, limits: Limits) -> Result<Outcome, Refusal> {
    Ok(Search::new(&Series::new(program)?, mutation)?.walk(limits))
}

/// The same as [`explore`] for any model.
pub(crate) fn search<M: Model>(model: &M, mutation: Mutation, limits: Limits) -> Result<Outcome, Refusal> {
    Ok(Search::new(model, mutation)?.run(limits))
}

impl<'p, M: Model> Search<'p, M> {
    fn new(model: &'p M, mutation: Mutation) -> Result<Self, Refusal> {
        let mut processes = Processes::new(model);
        let mut world = World::new(model.segments(), mutation);
        let ranks = world.ranks();
        for rank in 0..ranks {
            world.place(rank, processes.start(rank)?);
        }
        Ok(Search { model, processes, world, ranks })
    }

    fn run(&mut self, limits: Limits) -> Outcome {
        let (mut outcome, mut seen) = (Outcome { states: 1, ..Outcome::default() }, Fingerprints::default());
        let mut path = vec![Frame { came: None, next: 0, mark: self.world.mark() }];
        seen.insert(self.world.fingerprint());
        while let Some(frame) = path.last_mut() {
            let (rank, mark) = (frame.next, self.world.mark());
            if rank == self.ranks {
                self.world.back(frame.mark);
                path.pop();
                continue;
            }
            frame.next += 1;
            let from = self.world.position(rank);
            let step = match self.step(rank, from) {
                Ok(None) => continue,
                Ok(Some(answer)) => {
                    outcome.transitions += 1;
                    path.push(Frame { came: Some((rank, from, answer)), next: 0, mark });
                    if !seen.insert(self.world.fingerprint()) {
                        self.world.back(mark);
                        path.pop();
                        continue;
                    }
                    outcome.states += 1;
                    self.check()
                }
                Err(fault) => {
                    path.push(Frame { came: Some((rank, from, 0)), next: 0, mark });
                    Err(fault)
                }
            };
            if let Err(fault) = step {
                outcome.failure = Some(self.report(&path, &fault));
                return outcome;
            }
            let late = || limits.until.is_some_and(|until| Instant::now() >= until);
            if outcome.states >= limits.states || outcome.states.is_multiple_of(4096) && late() {
                return outcome;
            }
        }
        outcome.complete = true;
        outcome
    }

    /// Random walks. A rank goes on for some accesses, and some ranks more often than others: so some are far ahead, or late.
    fn walk(&mut self, limits: Limits) -> Outcome {
        let (ranks, begin) = (self.ranks, self.world.mark());
        let (mut outcome, mut draws) = (Outcome::default(), 0);
        let mut draw = || {
            draws += 1;
            spread(draws)
        };
        while outcome.states < limits.states && limits.until.is_none_or(|until| Instant::now() < until) {
            let mut path = Vec::new();
            let (mut rank, lasts) = (0, 1 + draw() % 32);
            let late = draw() as Rank % ranks;
            loop {
                if draw().is_multiple_of(lasts) {
                    rank = draw() as Rank % ranks;
                    // It is drawn a second time before it goes.
                    if rank == late {
                        rank = draw() as Rank % ranks;
                    }
                }
                // Who can't go on lets the next one go.
                let moves = (0..ranks).map(|next| (rank + next) % ranks).find_map(|next| {
                    let (from, mark) = (self.world.position(next), self.world.mark());
                    match self.step(next, from) {
                        Ok(None) => None,
                        Ok(Some(answer)) => Some((next, from, answer, mark, Ok(()))),
                        Err(fault) => Some((next, from, 0, mark, Err(fault))),
                    }
                });
                let Some((next, from, answer, mark, step)) = moves else { break };
                rank = next;
                outcome.transitions += 1;
                outcome.states += 1;
                path.push(Frame { came: Some((rank, from, answer)), next: 0, mark });
                if let Err(fault) = step.and_then(|()| self.check()) {
                    outcome.failure = Some(self.report(&path, &fault));
                    return outcome;
                }
            }
            self.world.back(begin);
            if path.is_empty() {
                // Nothing to do.
                break;
            }
        }
        outcome
    }

    /// One transition of `rank`: the access's answer, or nothing where `rank` can't move or a poll changes nothing.
    fn step(&mut self, rank: Rank, from: Position) -> Result<Option<u64>, String> {
        let Next::Access(access) = self.processes.node(from).next else { return Ok(None) };
        if let Some((at, writes)) = access.begins() {
            for peer in (0..self.ranks).filter(|&peer| peer != rank) {
                if let Next::Access(theirs) = &self.processes.node(self.world.position(peer)).next
                    && let Some((other, wrote)) = theirs.under_way()
                    && (writes || wrote)
                    && overlap(at, other)
                {
                    let verb = if wrote { "writes" } else { "reads" };
                    return Err(format!("overlap: rank {peer} {verb} there now"));
                }
            }
        }
        let answer = self.world.apply(rank, access, &mut self.processes.tape().payloads.borrow_mut())?;
        let to = self.processes.step(from, answer);
        if to == from && matches!(access, Access::Load(_)) {
            return Ok(None);
        }
        self.world.place(rank, to);
        if let Next::Failed(fault) = &self.processes.node(to).next {
            return Err(fault.clone());
        }
        let left = self.model.left(self.processes.node(from).body(), self.processes.node(to).body());
        if let Some(barrier) = left {
            self.all_entered(barrier)?;
        }
        Ok(Some(answer))
    }

    /// Have all ranks entered the barrier?
    fn all_entered(&self, barrier: Operation) -> Result<(), String> {
        for peer in self.model.members(barrier) {
            let node = self.processes.node(self.world.position(peer));
            if !self.model.has_entered(node.body(), barrier, node.looked()) {
                return Err(format!("leaves barrier {} that rank {peer} has not entered", barrier.0 + 1));
            }
        }
        Ok(())
    }

    /// The checks of a state: some process can go on, and polls return the right events.
    fn check(&mut self) -> Result<(), String> {
        let (mut stuck, mut unfinished) = (true, false);
        for rank in 0..self.ranks {
            let position = self.world.position(rank);
            let node = self.processes.node(position);
            if matches!(node.next, Next::Finished) {
                continue;
            }
            unfinished = true;
            if node.awaits().is_empty() {
                stuck = false;
                continue;
            }
            let ready = self.world.holds(node.awaits());
            stuck &= !ready;
            if self.progresses(position) != ready {
                let what = if ready { "an idle poll in spite of the awaited event" } else { "a lost wake-up" };
                return Err(format!("{what} of rank {rank}"));
            }
        }
        if stuck && unfinished { Err("deadlock: no process's awaited event holds".into()) } else { Ok(()) }
    }

    /// Would one poll from `start` change something, if no other process moved?
    fn progresses(&mut self, start: Position) -> bool {
        let mut position = start;
        while let Next::Access(Access::Load(word)) = self.processes.node(position).next {
            position = self.processes.step(position, self.world.load(word));
            if !self.processes.node(position).mid_poll() {
                return position != start;
            }
        }
        true
    }

    /// The path to a fault.
    fn report(&self, path: &[Frame], fault: &str) -> String {
        let path = path.iter().filter_map(|frame| frame.came);
        Names::report(self.model, &self.processes, &self.world, path, fault)
    }
}
