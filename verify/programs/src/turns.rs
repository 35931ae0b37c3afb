//! One rank moves at a time: a seed chooses the next one.

use crate::draw::Random;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use unisono_kernel::forward_region;
use unisono_kernel::region::Region;

/// After one of so many accesses to a segment, another rank gets its turn.
const ACCESSES: u64 = 4;

/// The rank whose turn it is.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    random: Random,
    now: usize,
    /// Ranks that still take turns.
    there: Vec<bool>,
}

impl State {
    fn next(&mut self) {
        let there = self.there.iter().filter(|there| **there).count() as u64;
        if there > 0 {
            let nth = self.random.below(there) as usize;
            let mut those = self.there.iter().enumerate().filter(|(_, there)| **there).map(|(rank, _)| rank);
            self.now = those.nth(nth).unwrap_or(0);
        }
    }
}

impl Turns {
    pub(crate) fn new(seed: u64, ranks: usize) -> Self {
        let mut state = State { random: Random::new(seed), now: 0, there: vec![true; ranks] };
        state.next();
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, mut state: MutexGuard<'_, State>, rank: usize) {
        while state.now != rank && state.there[rank] {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the first turn of a rank, before it does anything.
    pub(crate) fn begin(&self, rank: usize) {
        self.wait(self.lock(), rank);
    }

    /// Gives the turn to a rank, perhaps the same one. A rank that has left goes on freely.
    pub(crate) fn pass(&self, rank: usize) {
        let mut state = self.lock();
        if state.there[rank] {
            state.next();
            if state.now != rank {
                self.changed.notify_all();
            }
            self.wait(state, rank);
        }
    }

    /// As [`Self::pass`], now and then.
    fn may_pass(&self, rank: usize) {
        let passes = self.lock().random.below(ACCESSES) == 0;
        if passes {
            self.pass(rank);
        }
    }

    /// A number that follows from all turns so far.
    pub(crate) fn so_far(&self) -> u64 {
        self.lock().random.next()
    }

    /// Ends a rank's turns.
    pub(crate) fn leave(&self, rank: usize) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.there[rank], false) && state.now == rank {
            state.next();
            self.changed.notify_all();
        }
    }
}

/// A segment between two of whose accesses another rank may go on.
#[derive(Clone, Debug)]
pub(crate) struct InTurns<R> {
    region: R,
    turns: Arc<Turns>,
    rank: usize,
}

impl<R> InTurns<R> {
    pub(crate) const fn new(region: R, turns: Arc<Turns>, rank: usize) -> Self {
        Self { region, turns, rank }
    }

    fn accessed(&self) -> &R {
        self.turns.may_pass(self.rank);
        &self.region
    }
}

// SAFETY: forwards to an implementation that keeps the contract, after a pause. A claim is no access.
unsafe impl<R: Region> Region for InTurns<R> {
    forward_region!(R, |this| this.accessed(); own claims);
}
