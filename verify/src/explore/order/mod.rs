//! All interleavings of a model from one of them, where the order of its accesses is forced.
//!
//! Processes that share words which only grow, wait for values, and touch the same bytes only in an
//! order that those waits force, do the same in every interleaving (Thornley and Chandy, *Monotonic
//! Counters*, 2000). So one run decides the model, if it shows that everything in it is forced.
//! This module makes that run with the real machines, keeps a vector clock per process, and checks:
//!
//! | access | must be forced |
//! |---|---|
//! | a look at a flag | its machine waits for a bound (its poll returns it when it is shown too small a value); the first store that reached the bound happens before what follows |
//! | a store to a flag | one writer at a time, growing; a process that may see the value instead of an earlier one must do the same (below) |
//! | a mailword | set, taken and cleared in turn, each after the other |
//! | a counter | stored by a process that has it alone; additions commute, and a process that waits for their sum needs all of them |
//! | a copy | after the last write of each byte, and for a write, after all reads of it |
//! | a barrier's end | after all ranks have entered |
//!
//! Then each process alone goes through its accesses again, with all that it might have seen
//! instead: too small a value first, so that it waits and polls again, and all later values that no order
//! forbids. (Of two processes all combinations of values, up to a few hundred. Beyond, looks that follow one another all see
//! the least that is enough, or all the last there is, since machines keep the minimum of such looks; and
//! those that lead to the same place either way are not combined with others.) Each such way must come to the same accesses, with the same answers, and end; it may only
//! leave out looks whose outcome it knows from an earlier one.
//!
//! Only release stores and acquire loads make order here, so what is shown holds beyond sequential
//! consistency. What this can't decide is a fault: no model passes for want of a rule.

mod alternatives;

use super::access::{Access, Class, Word};
use super::names::Names;
use super::process::{Model, Next, Operation, Position, Processes};
use super::program::Program;
use super::search::{Limits, Outcome};
use super::series::Series;
use super::world::{Mutation, World};
use crate::shadow::bytes::{Bytes, Event, join};
use std::collections::BTreeMap;
use unisono_kernel::Rank;
use unisono_kernel::error::Refusal;
use unisono_kernel::machine::poll::Until;

/// The largest number of processes.
const RANKS: usize = 16;
/// For each process, the number of its accesses that happen before this point.
type Clock = [u32; RANKS];

/// The accesses to a word so far.
#[derive(Debug, Default)]
struct History {
    /// The values stored, with the clocks of their stores; for a counter, the last one and all additions since.
    stores: Vec<(u64, Event, Clock)>,
    additions: Vec<(Event, Clock)>,
    /// The looks at the word.
    looks: Vec<Event>,
    /// Is each value awaited? A word that a process reads as data must not change during that read.
    data: bool,
}

/// An access of one process, as it went.
#[derive(Debug)]
struct Done {
    from: Position,
    access: Access,
    answer: u64,
    /// The value for which the machine waits, if this is the look of a wait.
    until: Option<Until>,
    /// Later values that the access may have seen instead, since no order forbids them.
    later: Vec<u64>,
}

struct Run<'p, M: Model> {
    model: &'p M,
    processes: Processes<'p, M>,
    world: World,
    clocks: Vec<Clock>,
    words: BTreeMap<u64, History>,
    bytes: Bytes,
    traces: Vec<Vec<Done>>,
    /// The ranks of the accesses, in the order of the run; for reports.
    order: Vec<Rank>,
    /// By operation: each rank's first access there.
    entries: BTreeMap<Operation, [u32; RANKS]>,
    /// For the process that runs alone: does it see all combinations of values?
    all_combinations: bool,
    limits: Limits,
    /// Was a limit met?
    given_up: bool,
    outcome: Outcome,
}

/// Decides a program by the order that its waits force.
///
/// The outcome's transitions are accesses; its states are places of single processes, also those with other values
/// seen.
///
/// # Errors
/// The program's parameters do not make a segment.
pub fn order(program: &Program, mutation: Mutation, limits: Limits) -> Result<Outcome, Refusal> {
    decide(&Series::new(program)?, mutation, limits)
}

/// The same for any model whose processes make one operation after the other.
pub(crate) fn decide<M: Model>(model: &M, mutation: Mutation, limits: Limits) -> Result<Outcome, Refusal> {
    let mut processes = Processes::new(model);
    let mut world = World::new(model.segments(), mutation);
    let ranks = world.ranks() as usize;
    for rank in 0..world.ranks() {
        world.place(rank, processes.start(rank)?);
    }
    let mut run = Run {
        model,
        processes,
        world,
        clocks: vec![[0; RANKS]; ranks],
        words: BTreeMap::new(),
        bytes: Bytes::default(),
        traces: (0..ranks).map(|_| Vec::new()).collect(),
        order: Vec::new(),
        entries: BTreeMap::new(),
        all_combinations: false,
        limits,
        given_up: false,
        outcome: Outcome::default(),
    };
    let result = run.run().and_then(|()| run.alternatives());
    if let (Err(fault), false) = (result, run.given_up) {
        run.outcome.failure = Some(run.report(&fault));
    }
    run.outcome.complete = run.outcome.failure.is_none() && !run.given_up;
    Ok(run.outcome)
}

impl<M: Model> Run<'_, M> {
    fn ranks(&self) -> std::ops::Range<Rank> {
        0..self.clocks.len() as Rank
    }

    /// Makes one run: each process in turn, as far as it can go.
    fn run(&mut self) -> Result<(), String> {
        loop {
            let before = self.order.len();
            for rank in self.ranks() {
                while self.step(rank)? {}
            }
            let finished = |rank| matches!(self.processes.node(self.world.position(rank)).next, Next::Finished);
            if self.ranks().all(finished) {
                return Ok(());
            }
            if self.order.len() == before {
                return Err("deadlock: no process's awaited event holds".into());
            }
        }
    }

    /// The next access of `rank`, unless it has to wait for something or has finished.
    fn step(&mut self, rank: Rank) -> Result<bool, String> {
        let from = self.world.position(rank);
        let Next::Access(access) = self.processes.node(from).next else { return Ok(false) };
        let (until, forged) = match access {
            Access::Load(word) => (self.awaited(from, word), self.world.forges(word)),
            _ => (None, false),
        };
        if let (Some(until), Access::Load(word)) = (until, access)
            && !until.holds(self.world.load(word))
        {
            return Ok(false);
        }
        let event = Event { rank, number: self.clocks[rank as usize][rank as usize] + 1 };
        self.clocks[rank as usize][rank as usize] = event.number;
        if let Some(operation) = self.model.operation(self.processes.node(from).body()) {
            let entry = &mut self.entries.entry(operation).or_default()[rank as usize];
            if *entry == 0 {
                *entry = event.number;
            }
        }
        self.order.push(rank);
        self.traces[rank as usize].push(Done { from, access, answer: 0, until, later: Vec::new() });
        let answer = match access {
            Access::Load(word) if forged => self.world.look(rank, word)?,
            Access::Load(word) => self.look(event, word, until)?,
            _ => self.change(event, access)?,
        };
        if let Some(done) = self.traces[rank as usize].last_mut() {
            done.answer = answer;
        }
        let to = self.processes.step(from, answer);
        self.world.place(rank, to);
        self.outcome.transitions += 1;
        if let Next::Failed(fault) = &self.processes.node(to).next {
            return Err(fault.clone());
        }
        let left = self.model.left(self.processes.node(from).body(), self.processes.node(to).body());
        if let Some(barrier) = left {
            self.all_entered(rank, barrier)?;
        }
        Ok(true)
    }

    /// The value for which the machine at `position` waits in `word`: it is found by showing it 0, or too large a
    /// value.
    fn awaited(&mut self, position: Position, word: Word) -> Option<Until> {
        [0, u64::MAX].into_iter().find_map(|value| {
            let behind = self.processes.step(position, value);
            self.waits(behind, word)
        })
    }

    /// The awaited value of `word`, if a poll that has just ended at `position` waits for it.
    fn waits(&self, position: Position, word: Word) -> Option<Until> {
        let (segment, on) = self.processes.node(position).awaits().first()?;
        let (awaited, until) = self.world.awaited(*segment, on.first().source)?;
        (awaited.offset == word.offset).then_some(until)
    }

    /// A look that finds the awaited value, or that reads a word as data.
    fn look(&mut self, event: Event, word: Word, until: Option<Until>) -> Result<u64, String> {
        let value = self.world.look(event.rank, word)?;
        let clock = &mut self.clocks[event.rank as usize];
        let history = self.words.entry(word.offset).or_default();
        history.looks.push(event);
        let mut later = Vec::new();
        let answer = match (until, word.class) {
            // The least value that is enough; larger ones are among the alternatives.
            (Some(Until::AtLeast(bound)), Class::Flag) => {
                let enough = history.stores.iter().find(|(value, ..)| *value >= bound);
                let (_, _, store) = enough.ok_or("undecided: a bound that no store has reached")?;
                let known = history
                    .stores
                    .iter()
                    .filter(|(_, store, _)| store.is_before(clock))
                    .map(|(value, ..)| *value)
                    .max();
                let seen = history.stores.iter().map(|(value, ..)| *value).filter(|value| *value > bound);
                later.extend(seen.filter(|value| known.is_none_or(|known| *value >= known)));
                join(clock, store);
                bound
            }
            (Some(Until::Nonzero), Class::Mail) => {
                if let Some((_, _, store)) = history.stores.last() {
                    join(clock, store);
                }
                value
            }
            (Some(Until::AtLeast(sum) | Until::Equals(sum)), Class::Counter) => {
                if value != sum {
                    return Err(format!("undecided: a counter is {value} where {sum} is awaited"));
                }
                if let Some((_, _, store)) = history.stores.last() {
                    join(clock, store);
                }
                history.additions.iter().for_each(|(_, addition)| join(clock, addition));
                value
            }
            (None, _) => {
                history.data = true;
                if !history.stores.iter().all(|(_, store, _)| store.is_before(clock)) {
                    return Err("a word is read while it may be stored".into());
                }
                if !history.additions.is_empty() {
                    return Err("undecided: a sum is read without a wait".into());
                }
                value
            }
            _ => return Err(format!("undecided: {until:?} of a {:?}", word.class)),
        };
        if until.is_some_and(|until| !self.world.wakes(word, until)) {
            return Err(format!("a lost wake-up of rank {}", event.rank));
        }
        if let Some(done) = self.traces[event.rank as usize].last_mut() {
            done.later = later;
        }
        Ok(answer)
    }

    /// An access that changes something, or a copy.
    fn change(&mut self, event: Event, access: Access) -> Result<u64, String> {
        let answer = self.world.apply(event.rank, access, &mut self.processes.tape().payloads.borrow_mut())?;
        let clock = self.clocks[event.rank as usize];
        match access {
            Access::Store(word, value) if self.world.cell(word) == value => self.store(event, &clock, word, value)?,
            Access::Add(word, n) if self.world.cell(word) == answer.wrapping_add(n) => {
                let history = self.words.entry(word.offset).or_default();
                let last = history.stores.last().is_none_or(|(_, store, _)| store.is_before(&clock));
                if !last || !history.looks.iter().all(|look| look.is_before(&clock)) {
                    return Err("an addition may come before what it must follow".into());
                }
                history.additions.push((event, clock));
            }
            Access::Claim(..) => return Err("undecided: a claim".into()),
            Access::EndWrite(at, _) => self.bytes.touch(event, &clock, at, true)?,
            Access::EndRead(at) => self.bytes.touch(event, &clock, at, false)?,
            _ => {}
        }
        Ok(answer)
    }

    fn store(&mut self, event: Event, clock: &Clock, word: Word, value: u64) -> Result<(), String> {
        let history = self.words.entry(word.offset).or_default();
        if !history.stores.iter().all(|(_, store, _)| store.is_before(clock)) {
            return Err("two stores of a word in no order".into());
        }
        if word.class != Class::Flag || history.data {
            let looks = history.looks.iter().all(|look| look.is_before(clock));
            if !looks || !history.additions.iter().all(|(addition, _)| addition.is_before(clock)) {
                return Err("a word is stored while a process may look at it".into());
            }
            history.additions.clear();
        }
        for look in history.looks.iter().filter(|look| !look.is_before(clock)) {
            // Nothing keeps that process from seeing this value.
            self.traces[look.rank as usize][look.number as usize - 1].later.push(value);
        }
        history.stores.push((value, event, *clock));
        Ok(())
    }

    /// Have all ranks entered the barrier before `rank` goes on?
    fn all_entered(&self, rank: Rank, barrier: Operation) -> Result<(), String> {
        let clock = &self.clocks[rank as usize];
        for peer in self.model.members(barrier) {
            let entry = self.entries.get(&barrier).map_or(0, |entries| entries[peer as usize]);
            if entry == 0 || entry > clock[peer as usize] {
                return Err(format!("leaves barrier {} that rank {peer} has not entered", barrier.0 + 1));
            }
        }
        Ok(())
    }

    /// The accesses of the run, in its order, and a fault.
    fn report(&self, fault: &str) -> String {
        let mut at = vec![0; self.traces.len()];
        let path = self.order.iter().filter_map(|&rank| {
            let done = self.traces[rank as usize].get(at[rank as usize])?;
            at[rank as usize] += 1;
            Some((rank, done.from, done.answer))
        });
        Names::report(self.model, &self.processes, &self.world, path, fault)
    }
}
