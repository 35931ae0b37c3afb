//! Checks whether a program is legal in MPI's sense.
//!
//! The check runs a program step by step as if every collective waited for all ranks: a program that ends then ends
//! under every implementation in which a rank that waits progresses its other requests. So every order is legal that
//! can't deadlock, and in which all ranks of a communicator call the same collectives on it, in the same order. Two
//! rules are ours: of one communicator a rank has at most [`REQUESTS`]; and an element that is folded is at most as
//! long as a slot of its communicator's segment, unless there is none.
//!
//! Where requests live in scopes ([`Program::fits_scopes`]), a communicator is freed, or another one made from it, by ranks that have no scope of
//! it open. A scope borrows its communicator: it opens with the first request, and closes when none is left and the scopes that were opened
//! after it are closed.

use crate::program::{COMMUNICATORS, Call, MOST, Name, Op, Program, Shape, Side, Verb};
use crate::text::RANKS;
use unisono_kernel::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm, ReduceAlgorithm,
    ReduceScatterAlgorithm, ScanAlgorithm,
};
use unisono_kernel::call::scope::ACTIVE;

/// Requests of a rank on one communicator, active and persistent.
pub const REQUESTS: usize = ACTIVE;

/// An event that all members of a communicator must have in common.
type Event = (usize, Verb, bool);

/// The state of a call on a rank.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    persistent: bool,
    /// Its place in the communicator's events, while it is active.
    active: Option<usize>,
}

/// The rules in which runners differ.
#[derive(Clone, Copy)]
struct Runner {
    /// Do blocking calls progress requests of other communicators?
    moving: bool,
    /// Do requests live in scopes?
    scopes: bool,
}

/// The rules that MPI guarantees.
const MPI: Runner = Runner { moving: true, scopes: false };

/// The outcome of a step on a rank.
enum Can {
    Go,
    Wait,
}

struct Walk<'p> {
    program: &'p Program,
    groups: Vec<Vec<u32>>,
    /// Of each communicator, the place of each rank of the program among its members.
    places: Vec<Vec<Option<usize>>>,
    /// Of each communicator: what its members call, in order; how many have taken up each of that; how much of it each has
    /// called; and how much of it each is known to have taken up.
    events: Vec<Vec<Event>>,
    arrived: Vec<Vec<usize>>,
    called: Vec<Vec<usize>>,
    reached: Vec<Vec<usize>>,
    runner: Runner,
    /// Of each rank and communicator: was it made, was it freed?
    there: Vec<Vec<[bool; 2]>>,
    requests: Vec<Vec<Request>>,
    /// Of each rank, the communicators whose scopes are open, the outermost first.
    scopes: Vec<Vec<usize>>,
    /// Was something taken up?
    news: bool,
    /// Has a rank entered the event of its step?
    entered: Vec<Option<usize>>,
}

impl Program {
    /// Is it legal?
    ///
    /// # Errors
    /// What is not, and where.
    pub fn check(&self) -> Result<(), String> {
        if self.ranks == 0 || self.ranks > RANKS {
            return Err(format!("{} ranks, must be 1 to {RANKS}", self.ranks));
        }
        let groups = self.groups();
        let mut made = vec![0];
        for (number, call) in self.calls.iter().enumerate() {
            let group = groups.get(call.comm).map(Vec::as_slice).unwrap_or_default();
            if !made.contains(&call.comm) {
                return Err(format!("call {number}: communicator {} is made by no call before", call.comm));
            }
            self.check_call(call, group.len() as u32).map_err(|what| format!("call {number}: {what}"))?;
            for comm in call.makes() {
                if made.contains(&comm) || comm >= COMMUNICATORS {
                    return Err(format!(
                        "call {number}: communicator {comm} is made twice, or not below {COMMUNICATORS}"
                    ));
                }
                made.push(comm);
            }
        }
        for (number, step) in self.steps.iter().enumerate() {
            let wrong = |what: &str| Err(format!("step {number} ({}): {what}", step.verb.name()));
            if step.who.is_some_and(|who| who >= self.ranks) {
                return wrong("no such rank");
            }
            if step.numbers.is_empty() || step.verb != Verb::WaitAll && step.numbers.len() > 1 {
                return wrong("must have one number");
            }
            if self.calls_of(step).any(|call| call >= self.calls.len()) {
                return wrong("no such call");
            }
            if step.verb == Verb::Kill && step.who.is_none() {
                return wrong("must be one rank");
            }
        }
        Walk::new(self, groups, MPI).walk()
    }

    /// Does it end too where blocking calls move no requests of other communicators? Waits for requests move all.
    pub fn ends_unmoved(&self) -> bool {
        self.check().is_ok() && Walk::new(self, self.groups(), Runner { moving: false, ..MPI }).walk().is_ok()
    }

    /// Can a runner run this legal program whose requests live in scopes, which borrow their communicators?
    ///
    /// # Errors
    /// The first step that it can't make, and why.
    pub fn fits_scopes(&self) -> Result<(), String> {
        Walk::new(self, self.groups(), Runner { scopes: true, ..MPI }).walk()
    }

    pub(crate) fn check_call(&self, call: &Call, size: u32) -> Result<(), String> {
        use Name::*;
        let Call { name, op, element, .. } = *call;
        if size == 0 {
            return Err("its communicator has no ranks".into());
        }
        match name.counts(size as usize) {
            Some(counts) if counts != call.numbers.len() => return Err(format!("must have {counts} counts")),
            Some(_) if call.numbers.iter().any(|count| !(0..=1 << 40).contains(count)) => {
                return Err("counts must be 0 to 2^40".into());
            }
            None if call.numbers.len() != if name == Dup { 1 } else { 2 * size as usize } => {
                return Err("must have a number, or a color and a key for each rank".into());
            }
            None if call.makes().contains(&0) || name == Dup && call.numbers[0] < 0 => {
                return Err("communicator 0 exists already".into());
            }
            _ => {}
        }
        if !(1..=MOST).contains(&element) {
            return Err(format!("element of {element} bytes, must be 1 to {MOST}"));
        }
        if call.root >= if name.rooted() { size } else { 1 } {
            return Err(format!("root {} is not a rank of the communicator", call.root));
        }
        if call.in_place && !name.may_be_in_place() {
            return Err("can't be in place".into());
        }
        if matches!(name, Alltoallv | Alltoallw) && call.in_place {
            let differ = |i: u32, j: u32| call.count(size, i, j) != call.count(size, j, i);
            if (0..size).any(|i| (0..i).any(|j| differ(i, j))) {
                return Err("in place, two ranks must send each other as much".into());
            }
        }
        if name.folds() != (op != Op::None) {
            return Err("must have an operation if it folds, and none if not".into());
        }
        if op.element().is_some_and(|bytes| bytes != element) {
            return Err(format!("elements of {} are of another length", op.name()));
        }
        let none = call.numbers.iter().all(|&count| count == 0);
        if name.folds() && element > self.segment(call.comm).fragment && !none {
            return Err(format!("element of {element} bytes, longer than a slot"));
        }
        if call.order > 2 {
            return Err(format!("order {}, must be at most 2", call.order));
        }
        for (rank, side, shape) in &call.shapes {
            let whole = match *shape {
                Shape::Dense => true,
                Shape::Vector { block, gap } | Shape::Backwards { block, gap } => {
                    block > 0 && element.is_multiple_of(block) && gap <= MOST
                }
                Shape::Struct { block, gap } => block < element && gap <= MOST,
            };
            let twice = call.shapes.iter().filter(|other| (other.0, other.1) == (*rank, *side)).count() > 1;
            if !whole || *rank >= size || twice || name.folds() || name.manages() || name == Barrier {
                return Err("a type that can't be".into());
            }
            if *side == Side::Receive && name == Bcast {
                return Err("a bcast has one side".into());
            }
        }
        self.check_algorithm(call)
    }

    /// Checks that the algorithm exists, and applies to the call.
    fn check_algorithm(&self, call: &Call) -> Result<(), String> {
        use Name::*;
        let name = call.algorithm.as_str();
        let (papers, bytes) = (self.segment(call.comm).papers.is_some(), call.count(1, 0, 0) * call.element);
        let fits = match call.name {
            _ if name == "auto" => true,
            Barrier => BarrierAlgorithm::from_name(name).is_some(),
            Bcast => match BcastAlgorithm::from_name(name) {
                Some(BcastAlgorithm::Posted | BcastAlgorithm::Groups) => {
                    bytes <= unisono_kernel::shm::bcast::posted::MOST
                }
                Some(BcastAlgorithm::Cico(_)) => papers,
                other => other.is_some(),
            },
            Gather | Gatherv | Scatter | Scatterv | Allgather | Allgatherv => match MoveAlgorithm::from_name(name) {
                Some(MoveAlgorithm::Cico) => papers,
                Some(MoveAlgorithm::Groups) => matches!(call.name, Gather | Allgather | Allgatherv),
                other => other.is_some(),
            },
            // By slices an element must fit a share of a slot: `auto` knows whether it does.
            Allreduce => match AllreduceAlgorithm::from_name(name) {
                Some(AllreduceAlgorithm::Posted) => bytes <= unisono_kernel::shm::reduce::tree::MOST,
                Some(AllreduceAlgorithm::Doubling) => bytes <= unisono_kernel::region::layout::PARTIAL,
                other => other.is_some(),
            },
            Reduce => match ReduceAlgorithm::from_name(name) {
                Some(ReduceAlgorithm::Tree) => bytes <= unisono_kernel::shm::reduce::tree::MOST,
                other => other.is_some(),
            },
            Alltoall => AlltoallAlgorithm::from_name(name).is_some(),
            ReduceScatter | ReduceScatterBlock => ReduceScatterAlgorithm::from_name(name).is_some(),
            Scan | Exscan => match ScanAlgorithm::from_name(name) {
                Some(ScanAlgorithm::Doubling) => bytes <= unisono_kernel::shm::scan::doubling::MOST,
                other => other.is_some(),
            },
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("algorithm \"{name}\" does not exist, or does not apply")) }
    }
}

impl<'p> Walk<'p> {
    fn new(program: &'p Program, groups: Vec<Vec<u32>>, runner: Runner) -> Self {
        let (ranks, comms) = (program.ranks as usize, groups.len());
        let mut there = vec![vec![[false; 2]; comms]; ranks];
        there.iter_mut().for_each(|comms| comms[0][0] = true);
        let reached: Vec<_> = groups.iter().map(|group| vec![0; group.len()]).collect();
        let requests = vec![vec![Request::default(); program.calls.len()]; ranks];
        let mut places = vec![vec![None; ranks]; comms];
        for (places, group) in places.iter_mut().zip(&groups) {
            group.iter().enumerate().for_each(|(place, &rank)| places[rank as usize] = Some(place));
        }
        Self {
            program,
            groups,
            places,
            events: vec![Vec::new(); comms],
            arrived: vec![Vec::new(); comms],
            called: reached.clone(),
            reached,
            runner,
            news: false,
            there,
            requests,
            scopes: vec![Vec::new(); ranks],
            entered: vec![None; ranks],
        }
    }

    fn walk(mut self) -> Result<(), String> {
        let steps = self.steps();
        let mut next = vec![0; steps.len()];
        loop {
            let mut moved = false;
            for rank in 0..steps.len() {
                while let Some(&step) = steps[rank].get(next[rank]) {
                    let entered = self.entered[rank].is_some();
                    match self.step(rank as u32, step) {
                        Ok(Can::Go) => (next[rank], moved) = (next[rank] + 1, true),
                        Ok(Can::Wait) => {
                            moved |= !entered && self.entered[rank].is_some() || std::mem::take(&mut self.news);
                            break;
                        }
                        Err(what) => return Err(format!("step {step}, rank {rank}: {what}")),
                    }
                }
            }
            if !moved {
                break;
            }
        }
        if let Some(rank) = (0..steps.len()).find(|&rank| next[rank] < steps[rank].len()) {
            return Err(format!("rank {rank} may wait for ever at step {}", steps[rank][next[rank]]));
        }
        for (rank, requests) in self.requests.iter().enumerate() {
            if let Some(call) = requests.iter().position(|request| request.persistent || request.active.is_some()) {
                return Err(format!("rank {rank} never completes call {call}, or never frees it"));
            }
        }
        for (comm, called) in self.called.iter().enumerate() {
            if called.iter().any(|&called| called < self.events[comm].len()) {
                return Err(format!("not all ranks of communicator {comm} make all its calls"));
            }
        }
        Ok(())
    }

    /// Each rank's steps, as [`Program::steps_of`] has them.
    fn steps(&self) -> Vec<Vec<usize>> {
        let program = self.program;
        let everyone: Vec<_> = (0..program.ranks).collect();
        let mut steps = vec![Vec::new(); everyone.len()];
        for (at, step) in program.steps.iter().enumerate() {
            let call = step.numbers.first().and_then(|&call| program.calls.get(call as usize));
            let ranks = match &step.who {
                Some(who) => std::slice::from_ref(who),
                None if !step.verb.calls() => &everyone[..],
                None => call.and_then(|call| self.groups.get(call.comm)).map_or(&[][..], Vec::as_slice),
            };
            for &rank in ranks {
                if let Some(steps) = steps.get_mut(rank as usize) {
                    steps.push(at);
                }
            }
        }
        steps
    }

    fn step(&mut self, rank: u32, at: usize) -> Result<Can, String> {
        let step = &self.program.steps[at];
        let calls: Vec<usize> = self.program.calls_of(step).collect();
        for &call in &calls {
            let comm = self.program.calls[call].comm;
            let [made, freed] = self.there[rank as usize][comm];
            // Requests outlive the communicator that they were started on.
            let calls = self.runner.scopes || matches!(step.verb, Verb::Run | Verb::Init | Verb::Start);
            if self.places[comm][rank as usize].is_none() || !made || freed && calls {
                return Err(format!("has no communicator {comm} for call {call}"));
            }
        }
        while let Some(&inner) = self.scopes[rank as usize].last()
            && self.requests_of(rank as usize, inner) == 0
        {
            self.scopes[rank as usize].pop();
        }
        match (step.verb, calls.first()) {
            (Verb::Run | Verb::Init | Verb::Start, Some(&call)) => self.enter(rank, step.verb, call),
            (Verb::Poll | Verb::Wait | Verb::WaitAll, Some(_)) => {
                self.take_up(rank, None);
                for &call in &calls {
                    let comm = self.program.calls[call].comm;
                    let request = self.requests[rank as usize][call];
                    if request.active.is_some_and(|event| !self.all_reached(comm, event)) {
                        return Ok(Can::Wait);
                    }
                }
                calls.iter().for_each(|&call| self.requests[rank as usize][call].active = None);
                Ok(Can::Go)
            }
            (Verb::Free, Some(&call)) => {
                let request = &mut self.requests[rank as usize][call];
                if !request.persistent || request.active.is_some() {
                    return Err(format!("call {call} is not persistent, or active"));
                }
                request.persistent = false;
                Ok(Can::Go)
            }
            _ => Ok(Can::Go),
        }
    }

    /// A rank's part of a call: it starts once, and is complete when it may be.
    fn enter(&mut self, rank: u32, verb: Verb, number: usize) -> Result<Can, String> {
        let (me, call) = (rank as usize, &self.program.calls[number]);
        let comm = call.comm;
        let event = match self.entered[me] {
            Some(event) => event,
            None => {
                let request = self.requests[me][number];
                if request.active.is_some() || request.persistent && verb != Verb::Start {
                    return Err(format!("call {number} is active, or persistent"));
                }
                if call.name.manages() && verb != Verb::Run {
                    return Err(format!("call {number} must be run"));
                }
                if call.name.manages() && self.runner.scopes && self.scopes[me].contains(&comm) {
                    return Err(format!(
                        "call {number} ({}) on communicator {comm}, which the open scope of its requests borrows; a runner in C can",
                        call.name.name()
                    ));
                }
                // A blocking call beside requests takes a request's place.
                let more = verb == Verb::Init || !request.persistent;
                if more && self.requests_of(me, comm) >= REQUESTS {
                    return Err(format!("more than {REQUESTS} requests of communicator {comm}"));
                }
                let place = self.places[comm][me].unwrap_or(0);
                let at = self.called[comm][place];
                let new = (number, verb, request.persistent);
                match self.events[comm].get(at) {
                    Some(&event) if event != new => {
                        return Err(format!("call {number}, where another rank makes call {}", event.0));
                    }
                    Some(_) => {}
                    None => {
                        self.events[comm].push(new);
                        self.arrived[comm].push(0);
                    }
                }
                self.called[comm][place] += 1;
                self.entered[me] = Some(at);
                if self.runner.moving || verb != Verb::Start {
                    self.take_up(rank, Some(comm));
                }
                at
            }
        };
        if verb != Verb::Start && !self.all_reached(comm, event) {
            return Ok(Can::Wait);
        }
        self.entered[me] = None;
        if matches!(verb, Verb::Init | Verb::Start) && !self.scopes[me].contains(&comm) {
            self.scopes[me].push(comm);
        }
        let request = &mut self.requests[me][number];
        match verb {
            Verb::Init => request.persistent = true,
            Verb::Start => request.active = Some(event),
            _ => self.manage(rank, number),
        }
        Ok(Can::Go)
    }

    /// A rank enters all calls that it has started, on one communicator or all.
    fn take_up(&mut self, rank: u32, only: Option<usize>) {
        for (comm, places) in self.places.iter().enumerate().filter(|(comm, _)| only.is_none_or(|only| only == *comm)) {
            if let Some(place) = places[rank as usize] {
                let new = self.reached[comm][place]..self.called[comm][place];
                self.news |= !new.is_empty();
                self.reached[comm][place] = new.end;
                self.arrived[comm][new].iter_mut().for_each(|arrived| *arrived += 1);
            }
        }
    }

    fn manage(&mut self, rank: u32, number: usize) {
        let call = &self.program.calls[number];
        if call.name == Name::Free {
            self.there[rank as usize][call.comm][1] = true;
        }
        for comm in call.makes() {
            self.there[rank as usize][comm][0] |= self.places[comm][rank as usize].is_some();
        }
    }

    fn all_reached(&self, comm: usize, event: usize) -> bool {
        self.arrived[comm][event] == self.groups[comm].len()
    }

    /// Requests of a rank on a communicator.
    fn requests_of(&self, me: usize, comm: usize) -> usize {
        let all = self.requests[me].iter().zip(&self.program.calls);
        let is_one = |request: &Request| request.persistent || request.active.is_some();
        all.filter(|(request, call)| is_one(request) && call.comm == comm).count()
    }
}
