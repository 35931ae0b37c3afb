//! Which rank runs: the one whose clock is the earliest, until its next access.

use super::caches::{BUFFERED, Caches, LINE, Load, Traffic};
use super::machine::Machine;
use crate::Time;
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use unisono_kernel::Rank;
use unisono_kernel::error::WaitError;
use unisono_kernel::machine::poll::{Source, Until, WaitSet};
use unisono_kernel::machine::transport::{Observe, Wait};
use unisono_kernel::region::Region;
use unisono_local::Segment;

/// A word that a rank waits for.
type Awaited = (u64, Until);

/// What a rank does.
#[derive(Clone, Copy, Debug)]
enum Doing {
    /// Its thread has not come yet.
    Starts,
    Runs,
    /// For either of these words.
    Waits([Option<Awaited>; 2]),
    /// For all others, at [`Clock::meet`].
    Meets,
    Ended,
}

#[derive(Debug)]
struct State {
    doing: Vec<Doing>,
    clocks: Vec<Time>,
    /// By rank: when all that it has stored can be read.
    drained: Vec<Time>,
    /// By rank: when it has all that it has loaded. Its stores wait for that.
    loaded: Vec<Time>,
    /// By rank: it has got a line by a load, and waited for nothing since, so that its next load overlaps with that one.
    missed: Vec<bool>,
    /// Whose turn it is.
    turn: Option<usize>,
    /// By rank: what it waited for can't happen any more.
    failed: Vec<bool>,
    caches: Caches,
}

impl State {
    /// The time of a rank that has all that it has loaded.
    fn now(&self, rank: usize) -> Time {
        self.clocks[rank].max(self.loaded[rank])
    }

    /// What a rank stores now can't be read earlier.
    fn before(&self, rank: usize) -> Time {
        self.drained[rank].max(self.loaded[rank])
    }

    /// The rank that runs next.
    fn earliest(&self) -> Option<usize> {
        let runs = |&rank: &usize| matches!(self.doing[rank], Doing::Runs);
        (0..self.doing.len()).filter(runs).min_by_key(|&rank| (self.clocks[rank], rank))
    }

    /// The turn passes on. If no rank can run, those that meet go on together, or else those that wait get an error.
    fn pass(&mut self) {
        if self.doing.iter().any(|doing| matches!(doing, Doing::Starts)) {
            self.turn = None;
            return;
        }
        if self.earliest().is_none() {
            let waits = self.doing.iter().any(|doing| matches!(doing, Doing::Waits(_)));
            let last = self.clocks.iter().copied().max().unwrap_or(Time::ZERO);
            for ((doing, clock), failed) in self.doing.iter_mut().zip(&mut self.clocks).zip(&mut self.failed) {
                match doing {
                    Doing::Waits(_) => (*doing, *failed) = (Doing::Runs, true),
                    Doing::Meets if !waits => (*doing, *clock) = (Doing::Runs, last),
                    _ => {}
                }
            }
        }
        self.turn = self.earliest();
    }

    /// A word has a new value, which can be read at `seen`: those that wait for it run again, and those that wait for another
    /// value, or another word of its line, look again.
    fn stored(&mut self, by: usize, offset: u64, value: u64, seen: Time) {
        for rank in 0..self.doing.len() {
            let Doing::Waits(words) = self.doing[rank] else { continue };
            let mut words = words.iter().flatten();
            if words.clone().any(|&(at, until)| at == offset && until.holds(value)) {
                self.doing[rank] = Doing::Runs;
                self.clocks[rank] = self.clocks[rank].max(self.clocks[by]);
            } else if words.any(|&(at, _)| at / LINE == offset / LINE) {
                self.caches.look_again(rank, offset, seen);
            }
        }
    }
}

/// Where bytes lie.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// At this offset of the segment.
    Segment(u64),
    /// At this address of memory that a rank lends.
    Lent { lender: Rank, address: usize },
}

/// The turns of all ranks of a run.
#[derive(Debug)]
pub(super) struct Turns {
    /// The address of the segment's first byte.
    base: usize,
    /// The bytes of the segment.
    bytes: u64,
    state: Mutex<State>,
    wake: Vec<Condvar>,
}

impl Turns {
    pub(super) fn new(machine: &Machine, segment: &Segment) -> Self {
        let layout = segment.layout();
        let ranks = layout.ranks() as usize;
        // The word of the segment's state has a known place, so its address tells where the segment begins.
        let state = layout.state();
        let base = std::ptr::from_ref(segment.counter(state)).addr() - state.offset() as usize;
        let caches = Caches::new(machine, layout.bytes());
        let state = State {
            doing: vec![Doing::Starts; ranks],
            clocks: vec![Time::ZERO; ranks],
            drained: vec![Time::ZERO; ranks],
            loaded: vec![Time::ZERO; ranks],
            missed: vec![false; ranks],
            turn: None,
            failed: vec![false; ranks],
            caches,
        };
        Self {
            base,
            bytes: layout.bytes(),
            state: Mutex::new(state),
            wake: (0..ranks).map(|_| Condvar::new()).collect(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A body that panics holds no lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the turn to whoever is the earliest.
    fn pass(&self, state: &mut State) {
        state.pass();
        if let Some(next) = state.turn {
            self.wake[next].notify_one();
        }
    }

    /// Passes the turn on, and waits until it comes back.
    fn back<'a>(&'a self, mut state: MutexGuard<'a, State>, me: usize) -> MutexGuard<'a, State> {
        self.pass(&mut state);
        while state.turn != Some(me) {
            state = self.wake[me].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// An access: it happens when no other rank is earlier.
    fn access<A>(&self, me: usize, access: impl FnOnce(&mut State) -> A) -> A {
        access(&mut self.earliest(self.state(), me))
    }

    /// Goes on when no other rank is earlier.
    fn earliest<'a>(&'a self, state: MutexGuard<'a, State>, me: usize) -> MutexGuard<'a, State> {
        if state.earliest() == Some(me) { state } else { self.back(state, me) }
    }
}

thread_local! {
    static MINE: RefCell<Option<Clock>> = const { RefCell::new(None) };
}

/// A rank's clock, which also runs its accesses.
#[derive(Clone)]
pub struct Clock {
    turns: Arc<Turns>,
    rank: usize,
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("rank", &self.rank).finish_non_exhaustive()
    }
}

/// The rank's body ends when this is dropped.
#[derive(Debug)]
pub(super) struct Ending(Clock);

impl Drop for Ending {
    fn drop(&mut self) {
        let Clock { turns, rank } = &self.0;
        MINE.set(None);
        let mut state = turns.state();
        state.doing[*rank] = Doing::Ended;
        turns.pass(&mut state);
    }
}

impl Clock {
    pub(super) const fn new(turns: Arc<Turns>, rank: Rank) -> Self {
        Self { turns, rank: rank as usize }
    }

    /// The rank's thread begins; it returns when it is its turn.
    pub(super) fn enter(&self) -> Ending {
        MINE.set(Some(self.clone()));
        let mut state = self.turns.state();
        state.doing[self.rank] = Doing::Runs;
        drop(self.turns.back(state, self.rank));
        Ending(self.clone())
    }

    /// The clock of the rank whose thread calls this; none outside of a run, where nothing is charged.
    pub(super) fn mine() -> Option<Self> {
        MINE.with_borrow(Clone::clone)
    }

    /// The time of this rank.
    pub fn now(&self) -> Time {
        self.turns.state().now(self.rank)
    }

    /// The rank computes for so many nanoseconds.
    pub fn compute(&self, ns: f64) {
        let mut state = self.turns.state();
        let now = state.clocks[self.rank];
        state.clocks[self.rank] = now + Time::from_ns(ns);
        state.missed[self.rank] = false;
    }

    /// Waits until all other ranks that have not ended are here; all go on at the time of the last one, and nothing is charged.
    pub fn meet(&self) {
        let (mut state, me) = (self.turns.state(), self.rank);
        state.clocks[me] = state.now(me);
        state.missed[me] = false;
        state.doing[me] = Doing::Meets;
        drop(self.turns.back(state, me));
    }

    /// The lines that came from each place until now.
    pub fn traffic(&self) -> Traffic {
        self.turns.state().caches.traffic
    }

    /// Copies `len` bytes of this process's memory, at the address `from`, to `offset` of the segment, by `access`.
    pub(super) fn write(&self, offset: u64, len: u64, from: usize, access: impl FnOnce()) {
        let me = self.rank;
        self.turns.access(me, |state| {
            let now = state.caches.private(me, from, len, state.clocks[me], false);
            if len <= BUFFERED {
                (state.clocks[me], state.drained[me]) = state.caches.buffer(me, offset, len, now, state.before(me));
            } else {
                let rate = state.caches.machine().copy;
                let end = state.caches.stream(me, offset, len, now, true, rate);
                state.clocks[me] = end;
                state.drained[me] = state.before(me).max(end);
            }
            access();
        });
    }

    /// Copies `len` bytes that lie at `from` to `into`, an address of this process's own memory, or folds them if `folds`, by `access`.
    pub(super) fn read<A>(&self, from: At, len: u64, into: usize, folds: bool, access: impl FnOnce() -> A) -> A {
        let me = self.rank;
        self.turns.access(me, |state| {
            let (now, caches) = (state.clocks[me], &mut state.caches);
            let rate = if folds { caches.machine().fold } else { caches.machine().copy };
            let offset = match from {
                At::Segment(offset) => Some(offset),
                At::Lent { lender, address } => caches.lent(lender as usize, address, len),
            };
            let read = offset.map_or(now, |offset| caches.stream(me, offset, len, now, false, rate));
            let end = caches.private(me, into, len, read, true);
            state.clocks[me] = end;
            if end > read {
                state.drained[me] = state.before(me).max(end);
            }
            access()
        })
    }

    /// Lends `len` bytes of this process's own memory, which is in its cache.
    pub(super) fn lend(&self, address: usize, len: u64) {
        self.turns.access(self.rank, |state| state.caches.lend(self.rank, address, len, state.clocks[self.rank]));
    }

    /// This core has `len` bytes at `offset` in its cache, and no other one has; `access` writes them. Nothing is charged.
    pub(super) fn has(&self, offset: u64, len: u64, access: impl FnOnce()) {
        self.turns.access(self.rank, |state| {
            state.caches.place(self.rank, offset, len, state.clocks[self.rank]);
            access();
        });
    }

    /// Folds `len` bytes at `offset` of the segment into those at `into`, by `access`. Lines that are written cost nothing more where
    /// the core has them.
    pub(super) fn stream_within(&self, offset: u64, into: u64, len: u64, access: impl FnOnce()) {
        let me = self.rank;
        self.turns.access(me, |state| {
            let rate = state.caches.machine().fold;
            let read = state.caches.stream(me, offset, len, state.clocks[me], false, rate);
            let end = state.caches.stream(me, into, len, read, true, f64::INFINITY);
            state.clocks[me] = end;
            state.drained[me] = state.before(me).max(end);
            access();
        });
    }

    /// Claims lines. Those who wait for a word of one of them read it again, and so take it back.
    pub(super) fn claim(&self, offset: u64, len: u64) {
        let me = self.rank;
        self.turns.access(me, |state| {
            let has = state.caches.claim(me, offset, len, state.clocks[me]);
            let lines = offset / LINE..=(offset + len.max(1) - 1) / LINE;
            for rank in 0..state.doing.len() {
                let Doing::Waits(words) = state.doing[rank] else { continue };
                for (at, _) in words.into_iter().flatten().filter(|(at, _)| lines.contains(&(at / LINE))) {
                    state.caches.look_again(rank, at, has);
                }
            }
        });
    }

    /// Reads the word at this address.
    pub(super) fn load<A>(&self, word: usize, access: impl FnOnce() -> A) -> A {
        let me = self.rank;
        let mut state = self.turns.earliest(self.turns.state(), me);
        let now = state.clocks[me];
        let overlaps = state.missed[me];
        let Load { on, done, seen, missed } = state.caches.load(me, self.offset(word), now, overlaps);
        if seen > now {
            state.clocks[me] = seen;
            state = self.turns.earliest(state, me);
        }
        (state.clocks[me], state.missed[me]) = (on, overlaps || missed);
        state.loaded[me] = state.loaded[me].max(done);
        access()
    }

    /// Stores `value` in the word at this address.
    pub(super) fn store(&self, word: usize, value: u64, access: impl FnOnce()) {
        let me = self.rank;
        self.turns.access(me, |state| {
            let offset = self.offset(word);
            let (goes_on, seen) = state.caches.store(me, offset, state.clocks[me], state.before(me));
            (state.clocks[me], state.drained[me]) = (goes_on, seen);
            access();
            state.stored(me, offset, value, seen);
        });
    }

    /// Changes the word at this address atomically; `access` returns the value before, and the one after.
    pub(super) fn exchange<A>(&self, word: usize, access: impl FnOnce() -> (A, u64)) -> A {
        let me = self.rank;
        self.turns.access(me, |state| {
            let offset = self.offset(word);
            let done = state.caches.exchange(me, offset, state.clocks[me], state.before(me));
            (state.clocks[me], state.drained[me], state.missed[me]) = (done, done, false);
            let (before, value) = access();
            state.stored(me, offset, value, done);
            before
        })
    }

    /// A word's offset in the segment. One that is private, since its id is beyond the segment, is taken to be the last one.
    fn offset(&self, word: usize) -> u64 {
        (word.wrapping_sub(self.turns.base) as u64).min(self.turns.bytes - 1)
    }

    /// Waits until one of these words is stored with such a value. False: that can't happen any more.
    pub(super) fn sleep(&self, words: [Option<Awaited>; 2]) -> bool {
        let mut state = self.turns.state();
        state.doing[self.rank] = Doing::Waits(words);
        let mut state = self.turns.back(state, self.rank);
        state.missed[self.rank] = false;
        !std::mem::take(&mut state.failed[self.rank])
    }

    /// `len` bytes of this process's own memory at the address `from` are folded into those at `into`.
    pub(super) fn fold(&self, from: usize, into: usize, len: u64) {
        self.within(from, into, len, |machine| machine.fold);
    }

    /// The same, copied.
    pub(super) fn copy(&self, from: usize, into: usize, len: u64) {
        self.within(from, into, len, |machine| machine.copy);
    }

    fn within(&self, from: usize, into: usize, len: u64, rate: fn(&Machine) -> f64) {
        let me = self.rank;
        self.turns.access(me, |state| {
            let caches = &mut state.caches;
            let read = caches.private(me, from, len, state.clocks[me], false);
            let done = read + Time::from_ns(len as f64 / rate(caches.machine()));
            state.clocks[me] = caches.private(me, into, len, done, true);
            state.missed[me] = false;
        });
    }
}

/// How a rank waits: it is not run until one of the words that it waits for is stored.
#[derive(Debug)]
pub struct Sleep(Clock);

impl Sleep {
    pub(super) const fn new(clock: Clock) -> Self {
        Self(clock)
    }
}

impl<X: Observe + ?Sized> Wait<X> for Sleep {
    fn wait(&mut self, x: &mut X, on: &WaitSet) -> Result<(), WaitError> {
        if x.ready(on) {
            return Ok(());
        }
        let mut words = [None; 2];
        for (word, awaited) in words.iter_mut().zip(on.iter()) {
            *word = match awaited.source {
                Source::Flag(id, until) => Some((id.offset(), until)),
                Source::Mail(id, until) => Some((id.offset(), until)),
                Source::Counter(id, until) => Some((id.offset(), until)),
                Source::Message(_) => None,
            };
        }
        if self.0.sleep(words) {
            return Ok(());
        }
        Err(x.poison().map_or_else(|| on.late(), WaitError::Poisoned))
    }
}
