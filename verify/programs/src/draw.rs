//! Programs drawn from a seed: asymmetric by construction.
//!
//! Counts have many zeros, and lie around every bound of the code; the two sides of a call have datatypes of different shapes; ranks pause,
//! and complete what they started at different places. First a program is drawn whose ranks all make the same steps; then steps of single ranks
//! are moved, as far as the program stays [legal](Program::check).

use crate::legal::REQUESTS;
use crate::program::{Call, MOST, Name, Op, Program, Segment, Shape, Side, Step, Verb};
use unisono_kernel::region::Base;

/// How large programs become.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Number of ranks.
    pub ranks: u32,
    /// Calls, without those that make communicators.
    pub calls: usize,
    /// Bytes of a buffer, at most, roughly.
    pub bytes: u64,
    /// Longest pause in microseconds; 0: none.
    pub pause: u64,
    /// May segments have the papers' queues, and calls named algorithms?
    pub algorithms: bool,
    /// May counters begin near where they wrap?
    pub wraps: bool,
    /// May the segments of communicators that are made be chosen, beside the world's?
    pub segments: bool,
    /// Must blocking calls move requests of other communicators ([`Program::ends_unmoved`])?
    pub moving: bool,
    /// May a communicator with requests of its own be freed, and others be made from it? Where requests live in scopes, no
    /// ([`Program::fits_scopes`]).
    pub handles: bool,
    /// May calls be nonblocking, or persistent?
    pub requests: bool,
    /// Are segments and elements as small as they can be: for checkers that walk through all interleavings?
    pub tiny: bool,
    /// May a rank be killed?
    pub kills: bool,
}

impl Budget {
    /// What threads do in milliseconds.
    pub const fn new(ranks: u32) -> Self {
        Self {
            ranks,
            calls: 24,
            bytes: 200_000,
            pause: 500,
            algorithms: true,
            wraps: true,
            segments: true,
            moving: true,
            handles: false,
            requests: true,
            tiny: false,
            kills: false,
        }
    }

    /// What has some thousands of states.
    pub const fn tiny(ranks: u32) -> Self {
        Self { calls: 2, bytes: 500, pause: 0, tiny: true, ..Self::new(ranks) }
    }
}

/// Numbers that look random (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next one.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// Below `bound`, which is not 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True in `percent` of 100 cases.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of them.
    pub fn of<'a, V>(&mut self, values: &'a [V]) -> &'a V {
        &values[self.below(values.len() as u64) as usize]
    }
}

impl Program {
    /// The program of this seed and budget: legal, and always the same.
    pub fn draw(seed: u64, budget: &Budget) -> Self {
        let mut random = Random::new(seed ^ u64::from(budget.ranks) << 56);
        let program = Self { ranks: budget.ranks.max(1), seed: random.next() as u32, ..Self::default() };
        let (groups, ranks) = (program.groups(), program.ranks as usize);
        let mut draw = Draw {
            random,
            budget: *budget,
            program,
            groups,
            open: Vec::new(),
            scopes: vec![Vec::new(); ranks],
            freed: Vec::new(),
        };
        let segment = draw.segment();
        draw.program.segments.push(segment);
        draw.all();
        draw.program
    }
}

/// A call under way: how often it will be started again, if it is persistent.
#[derive(Clone, Copy, Debug)]
struct Open {
    call: usize,
    starts: Option<u64>,
    active: bool,
}

struct Draw {
    random: Random,
    budget: Budget,
    program: Program,
    groups: Vec<Vec<u32>>,
    open: Vec<Open>,
    /// Of each rank, the communicators whose scopes are open, the outermost first.
    scopes: Vec<Vec<usize>>,
    freed: Vec<usize>,
}

impl Draw {
    fn all(&mut self) {
        // Most programs are short of bytes: more of them are run.
        self.budget.bytes >>= self.random.below(if self.budget.tiny { 3 } else { 6 });
        let mut calls = 0;
        while calls < self.budget.calls {
            match self.random.below(20) {
                0 | 1 if self.groups.len() < 5 => self.make(),
                2 if self.groups.len() > 1 => self.free(),
                3 => calls += self.ahead(),
                4..9 => self.go_on(),
                _ => {
                    let comm = self.comm();
                    let call = self.call(comm, None);
                    self.enter(call);
                    calls += 1;
                }
            }
            if self.budget.pause > 0 && self.random.chance(12) {
                self.pause();
            }
        }
        self.finish();
        let moves = self.random.below(2 * self.budget.calls as u64 + 1);
        (0..moves).for_each(|_| self.shift());
        if self.budget.kills && self.random.chance(25) {
            let (at, who) = (self.position(), self.rank());
            self.program.steps.insert(at, Step { who: Some(who), verb: Verb::Kill, numbers: vec![0] });
        }
    }

    fn rank(&mut self) -> u32 {
        self.random.below(self.program.ranks.into()) as u32
    }

    fn position(&mut self) -> usize {
        self.random.below(self.program.steps.len() as u64 + 1) as usize
    }

    fn push(&mut self, verb: Verb, number: u64) {
        self.program.steps.push(Step { who: None, verb, numbers: vec![number] });
    }

    fn pause(&mut self) {
        let micros = self.budget.pause >> self.random.below(8);
        let (who, verb) = (Some(self.rank()), *self.random.of(&[Verb::Sleep, Verb::Sleep, Verb::Spin]));
        let numbers = vec![self.random.below(micros.max(1)) + 1];
        self.program.steps.push(Step { who, verb, numbers });
    }

    /// A communicator that is there: the world, more often than not.
    fn comm(&mut self) -> usize {
        let comm = self.random.below(self.groups.len() as u64) as usize;
        let there = !self.freed.contains(&comm) && self.groups.get(comm).is_some_and(|group| !group.is_empty());
        if there { comm } else { 0 }
    }

    fn segment(&mut self) -> Segment {
        let random = &mut self.random;
        /// Of how many lines, slots, bytes of a slot; of the papers' slots, and their bytes.
        type Sizes<'a> = (&'a [u32], &'a [u32], &'a [u64], &'a [u32], &'a [u64]);
        let (lines, slots, fragments, papers, parts): Sizes<'_> = match self.budget.tiny {
            true => (&[2, 4], &[1, 2, 2, 4, 4], &[64, 64, 128, 192], &[1, 2, 2], &[8, 24, 64]),
            false => (
                &[2, 4, 8, 64],
                &[1, 2, 2, 4, 4, 8, 16],
                &[64, 256, 512, 1024, 4096, 4096, 8192, 32 << 10],
                &[1, 2, 4, 8],
                &[64, 100, 1024, 4096],
            ),
        };
        let (lines, slots, fragment) = (*random.of(lines), *random.of(slots), *random.of(fragments));
        let papers = (self.budget.algorithms && random.chance(50)).then(|| {
            let (slots, fragment) = (*random.of(papers), *random.of(parts));
            (slots, fragment, (*random.of(&[1, 2, 4])).min(slots))
        });
        let mut base = [0; 4];
        if self.budget.wraps && random.chance(50) {
            for count in &mut base {
                let near = |random: &mut Random, bits: u32| (1u64 << bits) - 1 - random.below(12);
                *count = match *random.of(&[0, 8, 16, 24, 32, 40, 62]) {
                    0 => random.below(100),
                    bits => near(random, bits),
                };
            }
            base[3] = base[3].min(Base::MOST_CENTRALS - 1);
        }
        Segment { lines, slots, fragment, papers, base }
    }

    /// Completes all requests.
    fn finish(&mut self) {
        while !self.open.is_empty() {
            self.complete(0, true);
        }
    }

    /// Closes the scopes that need not be open any longer, the innermost first, as every rank does at its next step.
    fn settle(&mut self) {
        let comms: Vec<_> = self.open.iter().map(|open| self.program.calls[open.call].comm).collect();
        for scopes in &mut self.scopes {
            while scopes.pop_if(|inner| !comms.contains(inner)).is_some() {}
        }
    }

    /// Closes a communicator's scopes before others are made from it, or it is freed; where its requests may go on, not always.
    fn leave(&mut self, comm: usize) {
        if !self.budget.handles || self.random.chance(40) {
            self.close(comm);
        }
    }

    /// Closes a communicator's scopes, which needs that those that were opened after them are closed.
    fn close(&mut self, comm: usize) {
        loop {
            self.settle();
            let inside = |scopes: &Vec<usize>| Some(scopes[scopes.iter().position(|&open| open == comm)?..].to_vec());
            let Some(inside) = self.scopes.iter().find_map(inside) else { break };
            let is_inside = |open: &Open| inside.contains(&self.program.calls[open.call].comm);
            let Some(at) = self.open.iter().position(is_inside) else { break };
            self.complete(at, true);
        }
    }

    fn make(&mut self) {
        let (comm, parent) = (self.groups.len(), self.comm());
        self.leave(parent);
        let size = self.groups[parent].len();
        let split = self.random.chance(50);
        let (name, numbers) = if split {
            let colors = 1 + self.random.below(3);
            let color = |random: &mut Random| random.below(colors + 1) as i64 - 1;
            let mut numbers = Vec::new();
            for rank in 0..size {
                // The first rank says the first color, so that the communicator has a member.
                let color = if rank == 0 { 0 } else { color(&mut self.random) };
                numbers.push(if color < 0 { -1 } else { comm as i64 + color });
                numbers.push(self.random.below(5) as i64 - 2);
            }
            (Name::Split, numbers)
        } else {
            (Name::Dup, vec![comm as i64])
        };
        let call = self.plain(parent, name, numbers);
        let made = self.program.calls[call].makes();
        for _ in 0..made.len() {
            let segment = if self.budget.segments { self.segment() } else { Segment::default() };
            self.program.segments.push(segment);
        }
        // Colors that nobody said leave no gaps.
        let numbers = &mut self.program.calls[call].numbers;
        if split {
            for color in numbers.iter_mut().step_by(2).filter(|color| **color >= 0) {
                let place = made.iter().position(|&comm| comm as i64 == *color).unwrap_or(0);
                *color = (comm + place) as i64;
            }
        }
        self.groups = self.program.groups();
        self.push(Verb::Run, call as u64);
    }

    fn free(&mut self) {
        let comm = self.comm();
        if comm > 0 {
            self.leave(comm);
            // Nothing is started on what was freed.
            let starts = |draw: &Self, open: &Open| draw.program.calls[open.call].comm == comm && open.starts > Some(0);
            while let Some(at) = self.open.iter().position(|open| starts(self, open)) {
                self.complete(at, true);
            }
            let call = self.plain(comm, Name::Free, Vec::new());
            self.push(Verb::Run, call as u64);
            self.freed.push(comm);
        }
    }

    /// A call without buffers.
    fn plain(&mut self, comm: usize, name: Name, numbers: Vec<i64>) -> usize {
        self.program.calls.push(Call {
            comm,
            name,
            algorithm: "auto".into(),
            root: 0,
            in_place: false,
            op: Op::None,
            element: 1,
            order: 0,
            numbers,
            shapes: Vec::new(),
        });
        self.program.calls.len() - 1
    }

    /// Rooted calls of one root, while somebody sleeps: who only sends, or only receives, runs ahead.
    fn ahead(&mut self) -> usize {
        let comm = self.comm();
        let root = self.random.below(self.groups[comm].len() as u64) as u32;
        let calls = 2 + self.random.below(if self.budget.tiny { 2 } else { 7 });
        if self.budget.pause > 0 {
            self.pause();
        }
        for _ in 0..calls {
            let call = self.call(comm, Some(root));
            self.push(Verb::Run, call as u64);
        }
        calls as usize
    }

    fn enter(&mut self, call: usize) {
        let comm = self.program.calls[call].comm;
        self.settle();
        let requests = self.open.iter().filter(|open| self.program.calls[open.call].comm == comm).count();
        let full = requests + 1 >= REQUESTS;
        match self.random.below(10) {
            0..=4 => self.push(Verb::Run, call as u64),
            _ if full || !self.budget.requests => self.push(Verb::Run, call as u64),
            5..=7 => {
                self.push(Verb::Start, call as u64);
                self.begin(Open { call, starts: None, active: true });
            }
            _ => {
                self.push(Verb::Init, call as u64);
                let starts = Some(1 + self.random.below(4));
                self.begin(Open { call, starts, active: false });
            }
        }
    }

    fn begin(&mut self, open: Open) {
        let comm = self.program.calls[open.call].comm;
        for &rank in &self.groups[comm] {
            let scopes = &mut self.scopes[rank as usize];
            if !scopes.contains(&comm) {
                scopes.push(comm);
            }
        }
        self.open.push(open);
    }

    /// Something happens to a call that is under way.
    fn go_on(&mut self) {
        if self.open.is_empty() {
            return;
        }
        if self.random.chance(10) {
            return self.wait_all();
        }
        let at = self.random.below(self.open.len() as u64) as usize;
        let open = &mut self.open[at];
        if !open.active {
            (open.active, open.starts) = (true, open.starts.map(|starts| starts.saturating_sub(1)));
            let call = open.call as u64;
            return self.push(Verb::Start, call);
        }
        if self.random.chance(40) {
            let (call, tests) = (self.open[at].call as u64, 1 + self.random.below(3));
            (0..tests).for_each(|_| self.push(Verb::Test, call));
            return;
        }
        self.complete(at, false);
    }

    /// Ends what is active of a call; all that it was to do, if nothing may be left.
    fn complete(&mut self, at: usize, all: bool) {
        let Open { call, starts, active } = self.open[at];
        let verb = if self.random.chance(40) { Verb::Poll } else { Verb::Wait };
        if active {
            self.push(verb, call as u64);
        }
        let mut left = starts;
        while let (true, Some(more @ 1..)) = (all, left) {
            self.push(Verb::Start, call as u64);
            self.push(verb, call as u64);
            left = Some(more - 1);
        }
        match left {
            Some(1..) => self.open[at] = Open { call, starts: left, active: false },
            Some(0) => {
                self.push(Verb::Free, call as u64);
                self.open.remove(at);
            }
            None => {
                self.open.remove(at);
            }
        }
    }

    /// Each rank waits for all that it has under way.
    fn wait_all(&mut self) {
        let active: Vec<_> = self.open.iter().filter(|open| open.active).map(|open| open.call).collect();
        for rank in 0..self.program.ranks {
            let is_member = |call: &&usize| self.groups[self.program.calls[**call].comm].contains(&rank);
            let mut numbers: Vec<_> = active.iter().filter(is_member).map(|&call| call as u64).collect();
            if !numbers.is_empty() {
                numbers.sort_by_key(|_| self.random.next());
                self.program.steps.push(Step { who: Some(rank), verb: Verb::WaitAll, numbers });
            }
        }
        let ended: Vec<_> = self.open.iter().filter(|open| open.active && open.starts == Some(0)).copied().collect();
        for open in ended {
            self.push(Verb::Free, open.call as u64);
        }
        self.open.retain(|open| !open.active || open.starts.is_some_and(|starts| starts > 0));
        self.open.iter_mut().for_each(|open| open.active = false);
    }

    /// Bytes around a bound of the code.
    fn bytes(&mut self, comm: usize, most: u64) -> u64 {
        let Segment { slots, fragment, papers, .. } = self.program.segment(comm);
        let queue = u64::from(slots) * fragment;
        // So many of small slots are enough.
        let most = most.min(if self.budget.tiny { 5 } else { 256 } * fragment);
        let paper = papers.map_or(1024, |papers| papers.1);
        let bounds =
            [8, 48, 64, 104, 112, 128, 1024, 4096, 5 << 10, 16 << 10, fragment, queue / 2, queue, 3 * fragment, paper];
        let random = &mut self.random;
        let bytes = match random.below(8) {
            0 => random.below(130),
            1 => random.below(9),
            2 => random.below(most + 1),
            3 => random.of(&bounds) * (1 + random.below(5)),
            _ => *random.of(&bounds),
        };
        (bytes + random.of(&[0, 0, 1, 8, 16])).saturating_sub(*random.of(&[0, 0, 1, 8, 9])).min(most)
    }

    /// A drawn call; of this root, if any.
    fn call(&mut self, comm: usize, root: Option<u32>) -> usize {
        use Name::*;
        let size = self.groups[comm].len() as u32;
        let name = loop {
            let name = *self.random.of(Name::COLLECTIVES);
            // What each pair has a length of its own for comes more often.
            let name = if self.random.chance(15) { Alltoallv } else { name };
            if root.is_none() || name.rooted() {
                break name;
            }
        };
        let op = match name.folds() {
            false => Op::None,
            true => *self.random.of(&[Op::Sum8, Op::Sum64, Op::Xor64, Op::Max64, Op::Add, Op::Affine, Op::Affine]),
        };
        let (user, slot) = (matches!(op, Op::Add | Op::Affine), self.program.segment(comm).fragment);
        let tiny = self.budget.tiny;
        let mut element = match op.element() {
            Some(element) => element,
            None if name == Barrier => 1,
            None => match self.random.below(12) {
                0 if user => MOST.min(slot),
                1 if user => self.random.below(MOST.min(slot)) + 1,
                2 => self.random.below(64) + 1,
                3..6 => *self.random.of(&[2, 3, 4, 6, 8, 12, 16, 24]),
                6 => *self
                    .random
                    .of(&[100, 512, 1000, 4096].map(|bytes: u64| if user || tiny { bytes.min(slot) } else { bytes })),
                _ => 1,
            },
        };
        let counts = name.counts(size as usize).unwrap_or(0);
        let each = self.budget.bytes / if name.rooted() && !name.varies() { 1 } else { u64::from(size) };
        let zeros = if counts > 1 { *self.random.of(&[0, 30, 60, 90]) } else { 10 };
        let mut numbers = Vec::new();
        for _ in 0..counts {
            let bytes = if self.random.chance(zeros) { 0 } else { self.bytes(comm, each) };
            let up = self.random.chance(30) && bytes > 0;
            numbers.push((bytes / element + u64::from(up && bytes % element > 0)) as i64);
        }
        // Of what is longer than a slot there is nothing to fold.
        if user && slot < MOST && numbers.iter().all(|&count| count == 0) {
            element = slot + 1 + self.random.below(MOST - slot);
        }
        let in_place = name.may_be_in_place() && self.random.chance(20);
        if in_place && matches!(name, Alltoallv | Alltoallw) {
            let size = size as usize;
            (0..size).for_each(|i| (0..i).for_each(|j| numbers[i * size + j] = numbers[j * size + i]));
        }
        let call = self.plain(comm, name, numbers);
        let root = root.unwrap_or_else(|| self.random.below(size.into()) as u32);
        let order = *self.random.of(&[0, 0, 1, 2]);
        let shapes = if name.folds() || name == Barrier { Vec::new() } else { self.shapes(size, name, element) };
        let algorithm = self.algorithm(call);
        let root = if name.rooted() { root } else { 0 };
        let one = &mut self.program.calls[call];
        (one.root, one.in_place, one.op, one.element, one.order) = (root, in_place, op, element, order);
        (one.shapes, one.algorithm) = (shapes, algorithm);
        if self.program.check_call(&self.program.calls[call], size).is_err() {
            self.program.calls[call].algorithm = "auto".into();
        }
        call
    }

    fn shapes(&mut self, size: u32, name: Name, element: u64) -> Vec<(u32, Side, Shape)> {
        let (random, mut shapes) = (&mut self.random, Vec::new());
        if random.chance(50) {
            return shapes;
        }
        let divisors: Vec<u64> = (1..=element).filter(|&block| element.is_multiple_of(block)).collect();
        for rank in 0..size {
            for side in [Side::Send, Side::Receive] {
                let (block, gap) = (*random.of(&divisors), random.below(6));
                let shape = match random.below(5) {
                    0 => Shape::Vector { block, gap },
                    1 => Shape::Backwards { block, gap },
                    2 => Shape::Struct { block: random.below(element), gap },
                    _ => continue,
                };
                if side == Side::Send || name != Name::Bcast {
                    shapes.push((rank, side, shape));
                }
            }
        }
        shapes
    }

    fn algorithm(&mut self, call: usize) -> String {
        use Name::*;
        let call = &self.program.calls[call];
        let names: &[&str] = match call.name {
            _ if !self.budget.algorithms => &["auto"],
            Barrier => &["auto", "posted", "dissemination", "central", "combining-1", "combining-2", "combining-3"],
            Bcast => &["auto", "posted", "queue", "cico-flat", "cico-chain", "cico-binomial", "cico-kary-3"],
            Gather | Gatherv | Scatter | Scatterv | Allgather | Allgatherv => &["auto", "exchange", "cico"],
            Allreduce => &["auto", "auto", "posted", "slices"],
            _ => &["auto"],
        };
        if self.random.chance(50) { "auto".into() } else { (*self.random.of(names)).into() }
    }

    /// Moves one rank's part of a step, if the program stays legal.
    fn shift(&mut self) {
        if self.program.steps.is_empty() {
            return;
        }
        let from = self.random.below(self.program.steps.len() as u64) as usize;
        let mut step = self.program.steps[from].clone();
        let mut moved = self.program.clone();
        moved.steps.remove(from);
        let mut from = from;
        if step.who.is_none() {
            let ranks: Vec<_> = (0..moved.ranks).filter(|&rank| moved.is_for(&self.groups, &step, rank)).collect();
            let who = *self.random.of(&ranks);
            for rank in ranks.into_iter().filter(|&rank| rank != who) {
                moved.steps.insert(from, Step { who: Some(rank), ..step.clone() });
                from += 1;
            }
            step.who = Some(who);
        }
        let far = self.random.below(16) as usize;
        let to = if self.random.chance(65) { from + 1 + far } else { from.saturating_sub(1 + far) };
        moved.steps.insert(to.min(moved.steps.len()), step);
        let Budget { moving, handles, .. } = self.budget;
        let fits = if moving { moved.check().is_ok() } else { moved.ends_unmoved() };
        if fits && (handles || moved.fits_scopes().is_ok()) {
            self.program = moved;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_drawn_is_legal_and_reads_back() {
        for seed in 0..600 {
            let budget = Budget { kills: seed % 3 == 0, ..Budget::new(1 + seed as u32 % 9) };
            let program = Program::draw(seed, &budget);
            assert_eq!(program.check(), Ok(()), "seed {seed}\n{program}");
            assert_eq!(Program::parse(&program.to_string()), Ok(program.clone()), "seed {seed}");
            assert_eq!(Program::draw(seed, &budget), program);
        }
    }

    /// How often rank 0 duplicates, splits and frees communicators beside active requests; of the same one alone?
    fn beside(program: &Program, own: bool) -> [usize; 3] {
        let (mut active, mut beside) = (BTreeSet::new(), [0; 3]);
        for step in program.steps.iter().filter(|step| step.who.is_none_or(|who| who == 0)) {
            let call = program.calls_of(step).next().map(|call| &program.calls[call]);
            match (step.verb, call) {
                (Verb::Start, _) => active.extend(&step.numbers),
                (Verb::Poll | Verb::Wait | Verb::WaitAll, _) => active.retain(|call| !step.numbers.contains(call)),
                (Verb::Run, Some(call)) if call.name.manages() => {
                    let counts = |&other: &u64| !own || program.calls[other as usize].comm == call.comm;
                    beside[call.name as usize - Name::Dup as usize] += usize::from(active.iter().any(counts));
                }
                _ => {}
            }
        }
        beside
    }

    #[test]
    fn communicators_are_made_and_freed_beside_requests() {
        let (mut others, mut own) = ([0; 3], [0; 3]);
        let add = |to: &mut [usize; 3], more: [usize; 3]| to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
        for seed in 0..150 {
            let budget = Budget::new(1 + seed as u32 % 5);
            let program = Program::draw(seed, &budget);
            add(&mut others, beside(&program, false));
            assert_eq!(beside(&program, true), [0; 3], "seed {seed}\n{program}");
            let program = Program::draw(seed, &Budget { handles: true, ..budget });
            assert_eq!(program.check(), Ok(()), "seed {seed}\n{program}");
            let mine = beside(&program, true);
            assert!(program.fits_scopes().is_err() || mine == [0; 3], "seed {seed}\n{program}");
            add(&mut own, mine);
        }
        assert!(others.iter().chain(&own).all(|&times| times >= 10), "{others:?} {own:?}");
    }

    #[test]
    fn everything_is_drawn() {
        let (mut names, mut verbs, mut algorithms) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut ranks_differ = 0;
        for seed in 0..200 {
            let program = Program::draw(seed, &Budget { kills: true, ..Budget::new(4) });
            names.extend(program.calls.iter().map(|call| call.name));
            algorithms.extend(program.calls.iter().map(|call| call.algorithm.clone()));
            verbs.extend(program.steps.iter().map(|step| step.verb));
            let differs = |step: &Step| step.who.is_some() && matches!(step.verb, Verb::Run | Verb::Start);
            ranks_differ += usize::from(program.steps.iter().any(differs));
        }
        assert_eq!((names.len(), verbs.len()), (Name::ALL.len(), Verb::ALL.len()));
        assert!(algorithms.len() == 15 && ranks_differ > 50, "{algorithms:?} {ranks_differ}");
    }
}
