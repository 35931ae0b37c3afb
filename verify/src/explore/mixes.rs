//! Families of models: all mixes of some operations, and how to run many within a budget.

use super::exchanges::{Collective, Exchange};
use super::operation::Operation;
use super::program::Program;
use super::search::{Limits, Outcome};
use super::world::Mutation;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use unisono_kernel::algorithm::BarrierAlgorithm;
use unisono_kernel::error::Refusal;
use unisono_kernel::pattern::tree::Tree;

/// One operation of each kind with every root: broadcasts on posted lines, through the queue and
/// P1's along each of `trees` (of so many fragments), an allreduce whose operation does not commute, four barriers.
pub fn alphabet(ranks: u32, trees: &[Tree], fragments: usize) -> Vec<Operation> {
    let rooted = (0..ranks).flat_map(|root| {
        let cico = trees.iter().map(move |&tree| Operation::cico(root, tree, fragments));
        [Operation::posted(root), Operation::queue(root, fragments)].into_iter().chain(cico)
    });
    let barriers = [
        BarrierAlgorithm::Posted,
        BarrierAlgorithm::Dissemination,
        BarrierAlgorithm::Central,
        BarrierAlgorithm::Combining(2),
    ];
    rooted.chain([Operation::Fold]).chain(barriers.map(Operation::Barrier)).collect()
}

/// Paper P2's operations with every root, of so many fragments.
pub fn papers(ranks: u32, fragments: usize) -> Vec<Operation> {
    let rooted =
        (0..ranks).flat_map(|root| [Operation::scatterv(root, fragments), Operation::gatherv(root, fragments)]);
    rooted.chain([Operation::allgatherv(fragments)]).collect()
}

/// The exchange operations with every root, of so many fragments; 0: in lines.
pub fn exchanges(ranks: u32, fragments: usize) -> Vec<Operation> {
    let roots = |rooted: bool| 0..if rooted { ranks } else { 1 };
    let all = Collective::ALL.into_iter().flat_map(move |(collective, rooted)| {
        roots(rooted).map(move |root| Operation::Exchange(Exchange { collective, root, fragments }))
    });
    all.collect()
}

/// All mixes of one length.
#[derive(Clone, Debug)]
pub struct Family {
    /// Number of processes.
    pub ranks: u32,
    /// P1's sets in two slots: 1 or 2.
    pub sets: u32,
    /// The operations of which mixes are made.
    pub alphabet: Vec<Operation>,
    /// Operations in a mix.
    pub length: u32,
}

impl Family {
    /// Number of mixes.
    pub fn models(&self) -> u64 {
        (self.alphabet.len() as u64).pow(self.length)
    }

    /// Mix `index`, its digits in base `alphabet.len()` being the operations.
    pub fn model(&self, index: u64) -> Program {
        let base = self.alphabet.len() as u64;
        let digit = |place| self.alphabet[(index / base.pow(place) % base) as usize];
        Program::new(self.ranks, self.sets, (0..self.length).map(digit).collect())
    }

    /// The mixes in an order that is spread over the whole family, so that a budget may cut it anywhere.
    pub fn spread(&self) -> impl Iterator<Item = Program> + '_ {
        let models = self.models();
        let stride = (models * 5 / 8..).find(|&stride| coprime(stride.max(1), models)).unwrap_or(1).max(1);
        (0..models).map(move |k| self.model((u128::from(k) * u128::from(stride) % u128::from(models)) as u64))
    }
}

const fn coprime(mut a: u64, mut b: u64) -> bool {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

/// The outcome of many models.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Models explored to the end, failed ones among them.
    pub models: u64,
    /// States of all models, cut ones included.
    pub states: u64,
    /// Transitions likewise.
    pub transitions: u64,
    /// States of the largest model that was explored to the end, and its name.
    pub largest: (u64, String),
    /// Models given up at a limit.
    pub cut: Vec<String>,
    /// Models that were not started.
    pub skipped: u64,
    /// Models that failed: the fault and the accesses that lead to it.
    pub failures: Vec<String>,
    /// Wall time.
    pub time: Duration,
}

impl Report {
    fn add(&mut self, program: &Program, outcome: Outcome) {
        self.states += outcome.states;
        self.transitions += outcome.transitions;
        if outcome.complete && outcome.states > self.largest.0 {
            self.largest = (outcome.states, program.name());
        }
        match outcome.failure {
            Some(failure) => self.failures.push(failure),
            None if !outcome.complete => {
                self.cut.push(program.name());
                return;
            }
            None => {}
        }
        self.models += 1;
    }

    /// Adds another report to this one.
    pub fn absorb(&mut self, other: Self) {
        self.models += other.models;
        self.states += other.states;
        self.transitions += other.transitions;
        self.skipped += other.skipped;
        self.time += other.time;
        self.cut.extend(other.cut);
        self.failures.extend(other.failures);
        if other.largest.0 > self.largest.0 {
            self.largest = other.largest;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { models, states, transitions, failures, .. } = self;
        write!(f, "{models} models, {states} states, {transitions} transitions, {} failed", failures.len())
    }
}

/// A way to decide a model: [`explore`](super::explore) or [`order`](super::order); or to search it, [`walk`](super::walk).
pub type Check = fn(&Program, Mutation, Limits) -> Result<Outcome, Refusal>;

/// Checks models on `threads` threads, in order; each has the same limits.
pub fn run(
    check: Check,
    models: impl Iterator<Item = Program> + Send,
    mutation: Mutation,
    limits: Limits,
    threads: usize,
) -> Report {
    let start = Instant::now();
    let (models, report) = (Mutex::new(models), Mutex::new(Report::default()));
    let take = || models.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(program) = take() {
            let late = limits.until.is_some_and(|until| Instant::now() >= until);
            let outcome = (!late).then(|| check(&program, mutation, limits));
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            match outcome {
                None => report.skipped += 1,
                Some(Ok(outcome)) => report.add(&program, outcome),
                Some(Err(refusal)) => report.failures.push(format!("{}: {refusal}", program.name())),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.time = start.elapsed();
    report
}
