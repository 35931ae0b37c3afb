//! Drawn programs on virtual time: each collective by an algorithm over messages, requests of all communicators in flight
//! together, under drawn delays.
//!
//! Message machines move plain bytes, so datatypes have no holes. `SIM_PROGRAMS` is the number of seeds (600),
//! `SIM_RANKS` the number of ranks (by the seed: 2 … 9).

use crate::calls::Any;
use crate::{Case, number};
use std::rc::Rc;
use std::time::{Duration, Instant};
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::PollError;
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::msg::{
    Memory as Rooms, Named, Parts, PlanError, Rounds, Schedule, allgather, allreduce, alltoall, barrier, bcast, gather,
    reduce, reduce_scatter, scan, scatter,
};
use unisono_kernel::pattern::Seat;
use unisono_programs::draw::{Budget, Random};
use unisono_programs::memory::{Blocks, Memory};
use unisono_programs::program::Side;
use unisono_programs::shrink::shrink_by_running;
use unisono_programs::{Name, Program, Verb};
use unisono_sim::{Endpoint, Time, World};

/// A rank's part of a call.
struct Part<'p> {
    memory: Memory<'p>,
    place: Rank,
    size: u32,
    send: Option<Blocks>,
    receive: Option<Blocks>,
    one_buffer: bool,
    /// The blocks of all ranks, where the call has them.
    parts: Blocks,
}

impl<'p> Part<'p> {
    fn new(program: &Program, number: usize, memory: Memory<'p>, group: &[Rank], rank: Rank) -> Self {
        let (call, size) = (&program.calls[number], group.len() as u32);
        let (send, receive) = (memory.side(Side::Send), memory.side(Side::Receive));
        let all = [&receive, &send].into_iter().flatten().find(|blocks| blocks.bytes.len() == group.len());
        let parts = all.cloned().unwrap_or_else(|| {
            // Who is not the root knows how long blocks are, here, but not where they lie.
            let bytes = (0..size).map(|rank| call.count(size, rank, rank) * call.element).collect();
            Blocks { memory: Rooms::NOTHING, bytes, begins: vec![0; group.len()] }
        });
        let place = group.iter().position(|&member| member == rank).expect("a member") as Rank;
        let one_buffer = call.name == Name::Bcast;
        Self { memory, place, size, send, receive, one_buffer, parts }
    }

    /// The machine of a schedule on the call's memory.
    fn run(&self, plan: impl Schedule + 'p, tag: u64) -> Result<Machinery<'p>, PlanError> {
        let mut scratch = vec![0; plan.bytes().scratch as usize].into_boxed_slice();
        let of = |blocks: &Option<Blocks>| blocks.as_ref().map_or(Rooms::NOTHING, |blocks| blocks.memory);
        let (send, receive) = (of(&self.send), of(&self.receive));
        // A bcast's only buffer is where its result goes.
        let (send, receive) = if self.one_buffer { (Rooms::NOTHING, send) } else { (send, receive) };
        let rooms = Rooms { send, receive, scratch: Buf::of_mut(&mut scratch) };
        // SAFETY: the call's buffers outlive the machine, which is kept beside its working memory; nobody else uses them meanwhile.
        let machine = unsafe { Rounds::of(plan, rooms, tag) }?;
        Ok(Machinery { machine: Box::new(machine), _scratch: scratch })
    }
}

/// A machine and its working memory.
struct Machinery<'m> {
    machine: Any<'m>,
    _scratch: Box<[u8]>,
}

/// The tag of a call's messages, by its number and how often it was started before.
type Tags = fn(usize, u32) -> u64;

fn own_tag(number: usize, round: u32) -> u64 {
    (number as u64) << 32 | u64::from(round)
}

/// A rank during a program.
struct Walk<'m> {
    program: &'m Program,
    groups: Vec<Rc<[Rank]>>,
    parts: &'m [Option<Part<'m>>],
    steps: Vec<usize>,
    /// The number of the present step, and of the call in it.
    at: usize,
    behind: usize,
    /// Starts of each call, and how many are complete.
    started: Vec<u32>,
    completed: Vec<u32>,
    active: Vec<(usize, Machinery<'m>)>,
    tag: Tags,
    wrong: Vec<String>,
}

impl<'m> Walk<'m> {
    fn new(program: &'m Program, groups: &[Vec<Rank>], parts: &'m [Option<Part<'m>>], rank: Rank, tag: Tags) -> Self {
        let calls = program.calls.len();
        Self {
            program,
            groups: groups.iter().map(|group| Rc::from(&group[..])).collect(),
            parts,
            steps: program.steps_of(groups, rank).map(|(at, _)| at).collect(),
            at: 0,
            behind: 0,
            started: vec![0; calls],
            completed: vec![0; calls],
            active: Vec::new(),
            tag,
            wrong: Vec::new(),
        }
    }

    /// The next start of a call.
    fn start(&mut self, number: usize) {
        let Some(part) = &self.parts[number] else { return };
        let round = self.started[number];
        part.memory.fill(round);
        self.started[number] += 1;
        let machine = machine(self.program, number, part, (self.tag)(number, round)).expect("arguments");
        self.active.push((number, machine));
    }

    /// Polls all calls in flight; returns the events for which one of them waits.
    fn go_on(&mut self, end: &mut Endpoint) -> Result<Option<Poll>, PollError> {
        let (mut at, mut waits) = (0, None);
        while let Some((call, Machinery { machine, .. })) = self.active.get_mut(at) {
            let group = &self.groups[self.program.calls[*call].comm];
            let mut end = end.among(group).expect("a member");
            if let step @ Poll::Wait(_) = machine.poll(&mut end)? {
                (at, waits) = (at + 1, Some(step));
                continue;
            }
            let call = self.active.remove(at).0;
            let part = self.parts[call].as_ref();
            self.wrong.extend(part.and_then(|part| part.memory.wrong(self.completed[call])));
            self.completed[call] += 1;
        }
        Ok(waits)
    }
}

impl Machine<Endpoint> for Walk<'_> {
    fn poll(&mut self, end: &mut Endpoint) -> Result<Poll, PollError> {
        while let Some(&at) = self.steps.get(self.at) {
            let step = &self.program.steps[at];
            let calls: Vec<usize> = self.program.calls_of(step).collect();
            match (step.verb, calls.first()) {
                (Verb::Sleep | Verb::Spin, _) => end.work(Time::from_ns(1e3 * step.numbers[0] as f64)),
                (Verb::Run, Some(&call)) if self.program.calls[call].name.manages() => {}
                (Verb::Run | Verb::Start, Some(&call)) if self.behind == 0 => self.start(call),
                _ => {}
            }
            if step.verb.calls() && !matches!(step.verb, Verb::Init | Verb::Free) {
                self.behind = 1;
                let waits = self.go_on(end)?;
                let is_open = |&call: &usize| self.completed[call] < self.started[call];
                let blocks = !matches!(step.verb, Verb::Start | Verb::Test);
                if let (true, Some(waits)) = (blocks && calls.iter().any(is_open), waits) {
                    return Ok(waits);
                }
            }
            (self.at, self.behind) = (self.at + 1, 0);
        }
        Ok(Poll::Done)
    }
}

/// An algorithm that follows from the chance, and its plan for which it applies.
fn fit<A: Named, S>(random: &mut Random, plan: impl Fn(A) -> Result<S, PlanError>) -> Result<S, PlanError> {
    loop {
        let (name, has_number) = *random.of(A::NAMES);
        let number = random.of(&["-1", "-2", "-3", "-64", "-1000"]);
        let algorithm = A::from_name(&if has_number { format!("{name}{number}") } else { name.into() });
        match algorithm.map(&plan) {
            Some(Err(PlanError::Inapplicable { .. })) | None => {}
            Some(planned) => return planned,
        }
    }
}

/// The machine of a call's part, by an algorithm that follows from the program's seed and the call's number.
fn machine<'m>(program: &Program, number: usize, part: &'m Part<'m>, tag: u64) -> Result<Machinery<'m>, PlanError> {
    use Name::*;
    let (call, seat, size) = (&program.calls[number], Seat::new(part.place, part.size)?, part.size);
    let (op, in_place, root) = (part.memory.op(), part.memory.in_place(), call.root);
    let own = call.count(size, part.place, part.place) * call.element;
    let blocks = |blocks: &'m Blocks| {
        let Blocks { bytes, begins, .. } = blocks;
        if call.name.varies() { Parts::vary(size, bytes, begins, 1) } else { Parts::equal(size, bytes[0]) }
    };
    let (parts, sent) = (blocks(&part.parts)?, part.send.as_ref().map(blocks).transpose());
    let mut random = Random::new(u64::from(program.seed) << 32 | number as u64);
    let random = &mut random;
    match call.name {
        Barrier | Dup | Split | Free => part.run(fit(random, |how| Ok(barrier::plan(seat, how)?))?, tag),
        Bcast => part.run(fit(random, |how| Ok(bcast::plan(seat, own, root, how)?))?, tag),
        Gather => part.run(fit(random, |how| gather::plan(seat, own, parts, root, in_place, how))?, tag),
        // Whether blocks that vary are equal by chance only the root knows.
        Gatherv => part.run(gather::plan(seat, own, parts, root, in_place, gather::Algorithm::Linear)?, tag),
        Scatter => part.run(fit(random, |how| scatter::plan(seat, own, parts, root, in_place, how))?, tag),
        Scatterv => part.run(scatter::plan(seat, own, parts, root, in_place, scatter::Algorithm::Linear)?, tag),
        Allgather | Allgatherv => part.run(fit(random, |how| allgather::plan(seat, parts, in_place, how, None))?, tag),
        Alltoall => part.run(fit(random, |how| alltoall::plan(seat, sent?, parts, how))?, tag),
        Alltoallv | Alltoallw => {
            let how = *random.of(&[alltoall::Algorithm::Linear, alltoall::Algorithm::Pairwise]);
            part.run(alltoall::plan(seat, sent?, parts, how)?, tag)
        }
        Reduce => part.run(fit(random, |how| Ok(reduce::plan(seat, own, op, root, in_place, how)?))?, tag),
        Allreduce => part.run(fit(random, |how| allreduce::plan(seat, own, op, in_place, how))?, tag),
        ReduceScatter | ReduceScatterBlock => {
            part.run(fit(random, |how| reduce_scatter::plan(seat, parts, op, in_place, how))?, tag)
        }
        Scan | Exscan => {
            let exclusive = call.name == Exscan;
            part.run(fit(random, |how| Ok(scan::plan(seat, own, op, in_place, exclusive, how)?))?, tag)
        }
    }
}

/// Runs a program on the network and the schedule of a case.
fn run(program: &Program, case: &Case, tag: Tags) -> Result<(), String> {
    let groups = program.groups();
    let parts = |rank| -> Vec<Option<Part<'_>>> {
        let memories = Memory::all(program, &groups, rank).into_iter().enumerate();
        let group = |number: usize| &groups[program.calls[number].comm];
        memories.map(|(number, memory)| Some(Part::new(program, number, memory?, group(number), rank))).collect()
    };
    let parts: Vec<_> = (0..program.ranks).map(parts).collect();
    let world = World::new(case.network, case.placement.clone(), case.schedule.clone()).expect("parameters");
    let world = world.waking_for_any();
    let walk = |(rank, end)| (end, Walk::new(program, &groups, &parts[rank as usize], rank, tag));
    let mut ranks: Vec<_> = (0..).zip(world.endpoints()).map(walk).collect();
    let outcome = world.run(&mut ranks);
    if let Err(stuck) = outcome.last() {
        return Err(format!("did not end: {stuck}"));
    }
    match ranks.iter().enumerate().find_map(|(rank, (_, walk))| Some((rank, walk.wrong.first()?))) {
        Some((rank, wrong)) => Err(format!("rank {rank}: {wrong}")),
        None => Ok(()),
    }
}

/// The case of a seed: a program whose datatypes have no holes, and a network with its schedule.
fn drawn(seed: u64) -> (Program, Case) {
    let ranks = crate::ranks().unwrap_or(2 + (seed % 8) as u32);
    let (calls, bytes) = if ranks > 9 { (6, 20_000) } else { (12, 20_000) };
    let budget = Budget { calls, bytes, pause: 50, algorithms: false, wraps: false, ..Budget::new(ranks) };
    let mut program = Program::draw(seed, &budget);
    program.calls.iter_mut().for_each(|call| call.shapes.clear());
    (program, Case::of(seed, Some(ranks)))
}

#[test]
fn drawn_programs_pass() {
    for seed in 0..number("SIM_PROGRAMS").unwrap_or(600) {
        let (program, case) = drawn(seed);
        if let Err(words) = run(&program, &case, own_tag) {
            let until = Instant::now() + Duration::from_secs(60);
            let again = |program: &Program| run(program, &Case::of(seed, Some(program.ranks)), own_tag);
            let (short, words) = shrink_by_running(program, words, (1, until), again);
            panic!("seed {seed}: {words}\n{short}");
        }
    }
}

/// Requests in flight together are told apart by their tags: with one tag for all, some rank gets another call's bytes.
#[test]
fn calls_with_one_tag_are_mixed_up() {
    let fails = |seed| {
        let (program, case) = drawn(seed);
        run(&program, &case, |_, _| 0).is_err()
    };
    assert!((0..50).any(fails));
}
