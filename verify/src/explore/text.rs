//! Texts of drawn programs (`verify/programs`), small ones, as models with their oracle.
//!
//! The machines are the real ones. What a communicator's scope and a rank's steps do with them is written here on plain
//! data, which can be hashed: operations of a communicator start and complete in order, any call on it moves the
//! oldest, and a rank that waits moves those of other communicators. A communicator that the program makes has its
//! segment from the beginning.

use super::order::decide;
use super::process::{Awaited, Model, Operation, Segment, Turn};
use super::search::{Limits, Outcome, search};
use super::tape::Probes;
use super::world::Mutation;
use std::collections::VecDeque;
use unisono_kernel::Rank;
use unisono_kernel::call::any::Any;
use unisono_kernel::call::in_flight::{InFlight, Storage};
use unisono_kernel::comm::{Comm, Member};
use unisono_kernel::error::{PollError, Refusal};
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::Operation as _;
use unisono_kernel::machine::poll::{Poll, WaitSet};
use unisono_kernel::region::{Layout, Params};
use unisono_programs::memory::{Memory, View};
use unisono_programs::{Name, Program, Verb};

/// Explores a program's text in all interleavings.
///
/// # Errors
/// A segment's parameters do not fit, or a first argument is refused.
pub fn explore_text(program: &Program, mutation: Mutation, limits: Limits) -> Result<Outcome, Refusal> {
    let groups = program.groups();
    with_views(program, &groups, |views| search(&Text::new(program, &groups, views)?, mutation, limits))
}

/// Decides a program's text of blocking calls by the order that its waits force, as [`order`](super::order) does.
///
/// # Errors
/// As [`explore_text`].
pub fn order_text(program: &Program, mutation: Mutation, limits: Limits) -> Result<Outcome, Refusal> {
    let groups = program.groups();
    with_views(program, &groups, |views| decide(&Text::new(program, &groups, views)?, mutation, limits))
}

/// A rank's views of its calls' buffers.
type Views<'m> = Vec<Option<View<'m>>>;

fn with_views<A>(program: &Program, groups: &[Vec<Rank>], then: impl FnOnce(&[Views<'_>]) -> A) -> A {
    let memories: Vec<_> = (0..program.ranks).map(|rank| Memory::all(program, groups, rank)).collect();
    let views: Vec<Views<'_>> =
        memories.iter().map(|of_rank| of_rank.iter().map(|memory| memory.as_ref().map(View::new)).collect()).collect();
    then(&views)
}

/// A program's text as a model.
struct Text<'m> {
    program: &'m Program,
    groups: &'m [Vec<Rank>],
    segments: Vec<Segment>,
    /// The buffers of each rank.
    steps: Vec<Vec<usize>>,
    views: &'m [Views<'m>],
}

/// A rank between two polls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Body<'m> {
    rank: Rank,
    /// The number of its present step.
    at: usize,
    /// Calls of the step that are done: those for which it has waited, or the one that was entered.
    behind: usize,
    /// By the communicator's number.
    comms: Vec<Option<Seat<'m>>>,
    calls: Vec<CallState<'m>>,
    memory: Box<[u8]>,
}

/// A rank on a communicator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Seat<'m> {
    member: Member,
    in_flight: InFlight<Calls<'m>>,
}

/// Calls in flight, by number, and their machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Calls<'m> {
    /// The operations in flight, the oldest first.
    active: VecDeque<(usize, Any<'m>)>,
    /// The last one that was complete, until the rank asks for it.
    complete: Option<(usize, Any<'m>)>,
}

impl<'m> Storage<'m> for Calls<'m> {
    fn len(&self) -> usize {
        self.active.len()
    }

    fn oldest(&mut self) -> Option<&mut Any<'m>> {
        self.active.front_mut().map(|(_, machine)| machine)
    }

    fn retire_oldest(&mut self) {
        self.complete = self.active.pop_front();
    }
}

/// The state of a call on a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct CallState<'m> {
    started: u32,
    completed: u32,
    persistent: bool,
    /// The machine of a persistent one that is not active.
    idle: Option<Any<'m>>,
}

impl<'m> Text<'m> {
    fn new(program: &'m Program, groups: &'m [Vec<Rank>], views: &'m [Views<'m>]) -> Result<Self, Refusal> {
        let segment = |(comm, group): (usize, &Vec<Rank>)| {
            let wanted = program.segment(comm);
            let params = Params { page: 256, ..wanted.params(group.len().max(1) as u32) };
            Ok(Segment { layout: Layout::new(params)?, base: wanted.begins(), group: group.clone(), lent: 0 })
        };
        let segments = groups.iter().enumerate().map(segment).collect::<Result<_, Refusal>>()?;
        let steps = |rank| program.steps_of(groups, rank).map(|(at, _)| at).collect();
        Ok(Self { program, groups, segments, steps: (0..program.ranks).map(steps).collect(), views })
    }

    fn memories(&self, rank: Rank) -> impl Iterator<Item = &'m Memory<'m>> {
        self.views[rank as usize].iter().flatten().map(View::memory)
    }

    fn seat(&self, rank: Rank, comm: usize) -> Result<Option<Seat<'m>>, Refusal> {
        let Segment { layout, base, ref group, .. } = self.segments[comm];
        let place = group.iter().position(|&member| member == rank);
        let member = place.map(|place| Member::resume(layout, place as Rank, base)).transpose()?;
        Ok(member.map(|member| Seat { member, in_flight: InFlight::default() }))
    }

    /// Makes one step, as far as it can go at once.
    fn step(&self, body: &mut Body<'m>, probes: &[Probes]) -> Result<Turn, String> {
        let step = &self.program.steps[self.steps[body.rank as usize][body.at]];
        let calls: Vec<usize> = self.program.calls_of(step).collect();
        if let Some(&number) = calls.first() {
            let call = &self.program.calls[number];
            match step.verb {
                Verb::Run if call.name == Name::Free => body.comms[call.comm] = None,
                Verb::Run => {
                    if body.behind == 0 {
                        self.start(body, number)?;
                        body.behind = 1;
                    }
                    if let Some(on) = self.wait(body, probes, number, false)? {
                        return Ok(Turn::Waits(on));
                    }
                    for comm in call.makes() {
                        body.comms[comm] = self.seat(body.rank, comm).map_err(|refusal| refusal.to_string())?;
                    }
                }
                Verb::Start => {
                    self.start(body, number)?;
                    self.move_oldest(body, probes, call.comm)?;
                }
                Verb::Init => {
                    let idle = Some(self.build(body, number)?);
                    body.calls[number] = CallState { persistent: true, idle, ..body.calls[number].clone() };
                }
                Verb::Test => {
                    self.move_oldest(body, probes, call.comm)?;
                }
                Verb::Poll | Verb::Wait | Verb::WaitAll => {
                    while let Some(&number) = calls.get(body.behind) {
                        if let Some(on) = self.wait(body, probes, number, step.verb == Verb::Poll)? {
                            return Ok(Turn::Waits(on));
                        }
                        body.behind += 1;
                    }
                }
                Verb::Free => {
                    body.calls[number] = CallState { persistent: false, idle: None, ..body.calls[number].clone() }
                }
                Verb::Sleep | Verb::Spin | Verb::Kill => {}
            }
        }
        (body.at, body.behind) = (body.at + 1, 0);
        Ok(Turn::Goes)
    }

    /// A machine whose arguments are checked: it takes its number when it is started.
    fn build(&self, body: &mut Body<'m>, number: usize) -> Result<Any<'m>, String> {
        let (comm, view) = (self.program.calls[number].comm, &self.views[body.rank as usize][number]);
        let (Some(seat), Some(view)) = (&body.comms[comm], view) else { return Err("no communicator".into()) };
        let call = view.call().map_err(|refusal| refusal.to_string())?;
        call.build(&seat.member).map_err(|refusal| refusal.to_string())
    }

    /// The call becomes the youngest in flight on its communicator.
    fn start(&self, body: &mut Body<'m>, number: usize) -> Result<(), String> {
        let machine = match body.calls[number].idle.take() {
            Some(machine) => machine,
            None => self.build(body, number)?,
        };
        let made = &mut body.calls[number];
        if let Some(view) = &self.views[body.rank as usize][number] {
            view.memory().fill(made.started);
        }
        made.started += 1;
        if let Some(seat) = &mut body.comms[self.program.calls[number].comm] {
            seat.in_flight.storage_mut().active.push_back((number, machine));
        }
        Ok(())
    }

    /// Moves the operations before the call, then the other communicators; returns the awaited events, if the call is
    /// not complete. A rank that tests again and again moves all operations of the call's communicator.
    fn wait(
        &self,
        body: &mut Body<'m>,
        probes: &[Probes],
        number: usize,
        looks: bool,
    ) -> Result<Option<Vec<Awaited>>, String> {
        let comm = self.program.calls[number].comm;
        let is_complete = |body: &Body<'_>| body.calls[number].completed == body.calls[number].started;
        let mut on = Vec::new();
        while on.is_empty() && (looks || !is_complete(body)) {
            match self.poll(body, probes, comm)? {
                Some(Poll::Wait(awaits)) => on.push((comm, awaits)),
                Some(Poll::Done) => {}
                None => break,
            }
        }
        if is_complete(body) {
            return Ok(None);
        }
        for other in (0..self.groups.len()).filter(|&other| other != comm) {
            on.extend(self.move_oldest(body, probes, other)?.map(|awaits| (other, awaits)));
        }
        Ok(Some(on))
    }

    /// Polls the oldest operations of a communicator until one of them waits; returns its events.
    fn move_oldest(&self, body: &mut Body<'m>, probes: &[Probes], comm: usize) -> Result<Option<WaitSet>, String> {
        loop {
            match self.poll(body, probes, comm)? {
                Some(Poll::Wait(awaits)) => return Ok(Some(awaits)),
                Some(Poll::Done) => {}
                None => return Ok(None),
            }
        }
    }

    /// Polls the oldest operation of a communicator, if there is one.
    fn poll(&self, body: &mut Body<'m>, probes: &[Probes], comm: usize) -> Result<Option<Poll>, String> {
        let Some(seat) = &mut body.comms[comm] else { return Ok(None) };
        let mut x = Comm::with_member(&probes[comm], seat.member.clone());
        let mut step = None;
        let start = |x: &mut Comm<_>, oldest: &mut Any<'m>| {
            oldest.start(x.member_mut());
            Ok(())
        };
        seat.in_flight.move_oldest(&mut x, start, |x, oldest| {
            let polled = oldest.poll(x).map_err(|error: PollError| error.to_string())?;
            step = Some(polled);
            Ok::<_, String>(polled == Poll::Done)
        })?;
        seat.member = x.member().clone();
        if let Some((number, machine)) = seat.in_flight.storage_mut().complete.take() {
            let made = &mut body.calls[number];
            made.idle = made.persistent.then_some(machine);
            made.completed += 1;
            let view = &self.views[body.rank as usize][number];
            if let Some(wrong) = view.as_ref().and_then(|view| view.memory().wrong(made.completed - 1)) {
                return Err(format!("wrong data: {wrong}"));
            }
        }
        Ok(step)
    }

    /// The call that a rank's step is about.
    fn call(&self, body: &Body<'_>) -> Option<(Verb, usize)> {
        let step = &self.program.steps[*self.steps[body.rank as usize].get(body.at)?];
        Some((step.verb, self.program.calls_of(step).nth(body.behind).or(self.program.calls_of(step).last())?))
    }
}

impl<'m> Model for Text<'m> {
    type Body = Body<'m>;

    fn segments(&self) -> Vec<Segment> {
        self.segments.clone()
    }

    fn start(&self, rank: Rank) -> Result<Body<'m>, Refusal> {
        let mut comms = vec![None; self.groups.len()];
        comms[0] = self.seat(rank, 0)?;
        let calls = vec![CallState::default(); self.program.calls.len()];
        let memory = self.memories(rank).flat_map(Memory::cells).map(|cell| cell.get()).collect();
        Ok(Body { rank, at: 0, behind: 0, comms, calls, memory })
    }

    fn poll(&self, body: &mut Body<'m>, probes: &[Probes]) -> Result<Turn, String> {
        let cells = || self.memories(body.rank).flat_map(Memory::cells);
        cells().zip(&body.memory).for_each(|(cell, byte)| cell.set(*byte));
        let rank = body.rank;
        let turn = self.step(body, probes);
        body.memory = self.memories(rank).flat_map(Memory::cells).map(|cell| cell.get()).collect();
        turn
    }

    fn is_finished(&self, body: &Body<'m>) -> bool {
        body.at == self.steps[body.rank as usize].len()
    }

    fn operation(&self, body: &Body<'m>) -> Option<Operation> {
        self.call(body).map(|(_, call)| (call, 0))
    }

    fn has_entered(&self, body: &Body<'m>, (call, round): Operation, looked: bool) -> bool {
        let enters = || matches!(self.call(body), Some((Verb::Run | Verb::Start, number)) if number == call);
        let started = body.calls[call].started;
        started > round || looked && started == round && enters()
    }

    fn left(&self, from: &Body<'m>, to: &Body<'m>) -> Option<Operation> {
        let calls = self.program.calls.iter().enumerate().filter(|(_, call)| call.name == Name::Barrier);
        let mut rounds = calls.map(|(number, _)| (number, from.calls[number].completed, to.calls[number].completed));
        rounds.find(|(_, from, to)| from < to).map(|(number, round, _)| (number, round))
    }

    fn members(&self, (call, _): Operation) -> Vec<Rank> {
        self.groups[self.program.calls[call].comm].clone()
    }

    fn name(&self) -> String {
        format!("a program of {} ranks", self.program.ranks)
    }

    fn describe(&self, body: &Body<'m>) -> String {
        let Some((verb, call)) = self.call(body) else { return String::new() };
        format!("{} {call} {}", verb.name(), self.program.calls[call].name.name())
    }
}
