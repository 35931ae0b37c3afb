//! Explores drawn programs' texts, one after the other, until one fails or the time is up.

use super::search::{Limits, Outcome};
use super::world::Mutation;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use unisono_kernel::error::Refusal;
use unisono_programs::Program;
use unisono_programs::draw::Budget;
use unisono_programs::shrink::shrink_by_running;

/// A way to decide a text: [`explore_text`](super::explore_text) or [`order_text`](super::order_text).
pub type TextCheck = fn(&Program, Mutation, Limits) -> Result<Outcome, Refusal>;

/// The time for shrinking a program that fails.
const SHRINKING: Duration = Duration::from_secs(60);

/// The outcome of drawn programs.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// Programs explored to the end.
    pub complete: u64,
    /// Programs given up at a limit.
    pub cut: u64,
    /// States of all of them.
    pub states: u64,
    /// Transitions likewise.
    pub transitions: u64,
    /// The first program that failed: its seed, the fault, and the shrunk program.
    pub failure: Option<String>,
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { complete, cut, states, transitions, failure } = self;
        let all = complete + cut + u64::from(failure.is_some());
        write!(f, "{all} drawn programs, {complete} in all interleavings, {cut} cut short, {states} states, ")?;
        write!(f, "{transitions} transitions, {} failed", u64::from(failure.is_some()))
    }
}

/// Checks the programs of the seeds from `first` on, on `threads` threads, until the limits' moment or the first
/// failure.
pub fn drawn(
    check: TextCheck,
    budget: impl Fn(u64) -> Budget + Sync,
    first: u64,
    limits: Limits,
    threads: usize,
) -> Drawn {
    let (seeds, all) = (Mutex::new(first..), Mutex::new(Drawn::default()));
    let late = || limits.until.is_some_and(|until| Instant::now() >= until);
    let work = || {
        while !late() && lock(&all).failure.is_none() {
            let Some(seed) = lock(&seeds).next() else { break };
            let program = Program::draw(seed, &budget(seed));
            let outcome = checked(check, &program, limits);
            let mut all = lock(&all);
            match outcome {
                Ok(outcome) => {
                    all.states += outcome.states;
                    all.transitions += outcome.transitions;
                    *if outcome.complete { &mut all.complete } else { &mut all.cut } += 1;
                }
                Err(_) if all.failure.is_some() => break,
                Err(fault) => all.failure = Some(shrunk(check, seed, program, fault, limits.states)),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock<V>(mutex: &Mutex<V>) -> std::sync::MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The outcome, or the fault and the accesses that led to it.
fn checked(check: TextCheck, program: &Program, limits: Limits) -> Result<Outcome, String> {
    match check(program, Mutation::None, limits) {
        Ok(Outcome { failure: Some(fault), .. }) => Err(fault),
        Ok(outcome) => Ok(outcome),
        Err(refusal) => Err(refusal.to_string()),
    }
}

/// The report of a program that failed: the shrunk program, and the accesses that lead to the fault.
fn shrunk(check: TextCheck, seed: u64, program: Program, fault: String, states: u64) -> String {
    let until = Instant::now() + SHRINKING;
    let words = |fault: &str| fault.lines().next().unwrap_or_default().to_string();
    let limits = Limits { states, until: Some(until) };
    let (short, _) = shrink_by_running(program, words(&fault), (1, until), |program| {
        checked(check, program, limits).map(drop).map_err(|fault| words(&fault))
    });
    let path = checked(check, &short, Limits { until: None, ..limits }).err().unwrap_or(fault);
    format!("seed {seed}, shrunk:\n{short}\n{path}")
}
