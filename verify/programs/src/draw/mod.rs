//! Programs drawn from a seed: asymmetric by construction.
//!
//! Counts have many zeros, and lie around every bound of the code; the two sides of a call have datatypes of different shapes; ranks pause,
//! and complete what they started at different places. First a program is drawn whose ranks all make the same steps; then steps of single ranks
//! are moved, as far as the program stays [legal](Program::check).

mod calls;
mod steps;

use crate::program::{Program, Step, Verb};

/// The limits of drawn programs.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Number of ranks.
    pub ranks: u32,
    /// Calls, without those that make communicators.
    pub calls: usize,
    /// The most bytes of a buffer, roughly.
    pub bytes: u64,
    /// The longest pause in microseconds; 0: no pauses.
    pub pause: u64,
    /// May segments have the papers' queues, and calls named algorithms?
    pub algorithms: bool,
    /// May counters begin near where they wrap?
    pub wraps: bool,
    /// May the segments of communicators that the program makes be chosen, in addition to the first one's?
    pub segments: bool,
    /// Must blocking calls progress requests of other communicators ([`Program::ends_unmoved`])?
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
    /// Programs that threads run in milliseconds.
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

    /// Programs with some thousands of states.
    pub const fn tiny(ranks: u32) -> Self {
        Self { calls: 2, bytes: 500, pause: 0, tiny: true, ..Self::new(ranks) }
    }
}

/// Numbers that look random (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
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

/// A call in flight: how often it will be started again, if it is persistent.
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
    /// For each rank, the communicators whose scopes are open, the outermost first.
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

    /// A communicator that exists: more often than not that of all ranks.
    fn comm(&mut self) -> usize {
        let comm = self.random.below(self.groups.len() as u64) as usize;
        let there = !self.freed.contains(&comm) && self.groups.get(comm).is_some_and(|group| !group.is_empty());
        if there { comm } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Name;
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
        assert!(algorithms.len() == 18 && ranks_differ > 50, "{algorithms:?} {ranks_differ}");
    }
}
