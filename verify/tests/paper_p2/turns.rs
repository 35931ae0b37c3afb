//! Ranks that take turns: one access to shared memory at a time, in the order that a schedule gives. The
//! printed loops and the machines that ship run under the same schedules.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Processes.
pub(crate) const P: usize = 3;

/// The choice of the next rank, of those that can go on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Schedule {
    /// The first rank of this list: the last one is as slow as possible.
    First([usize; P]),
    /// The next rank after the one that made the last access.
    Round,
    /// Any rank, by this seed.
    Random(u64),
}

impl Schedule {
    /// Every order of speed, lockstep, and some without a plan.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        orders.map(Self::First).into_iter().chain([Self::Round]).chain((1..5).map(Self::Random))
    }
}

/// The failure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A deadlock: all ranks that have not ended wait.
    Deadlock,
    /// A rank has received other bytes than were sent.
    Wrong,
    /// The memory after a rank's buffer is overwritten.
    Overrun,
}

/// By rank: the owner of the queue that it has read first.
pub(crate) type Firsts = [Option<usize>; P];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seat {
    /// Makes its access, and the private steps that follow.
    Busy,
    /// Can go on.
    Asks,
    /// Can't go on, by its last look.
    Waits,
    /// Has ended.
    Stuck,
    Ended,
}

#[derive(Debug)]
struct Table {
    schedule: Schedule,
    seats: [Seat; P],
    last: usize,
    random: u64,
    firsts: Firsts,
}

impl Table {
    /// Chooses the next rank, when no rank has the turn.
    fn give(&mut self) {
        if self.seats.contains(&Seat::Busy) {
            return;
        }
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let from = |start: usize| std::array::from_fn(|i| (start + i) % P);
        let order = match self.schedule {
            Schedule::First(order) => order,
            Schedule::Round => from(self.last + 1),
            Schedule::Random(_) => from((self.random >> 33) as usize),
        };
        if let Some(rank) = order.into_iter().find(|&rank| self.seats[rank] == Seat::Asks) {
            (self.seats[rank], self.last) = (Seat::Busy, rank);
        } else {
            self.turn_all(Seat::Waits, Seat::Stuck);
        }
    }

    fn turn_all(&mut self, old: Seat, new: Seat) {
        self.seats.iter_mut().filter(|seat| **seat == old).for_each(|seat| *seat = new);
    }
}

/// The ranks' turns.
#[derive(Debug)]
pub(crate) struct Turns {
    table: Mutex<Table>,
    given: Condvar,
}

impl Turns {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap()
    }

    /// Gives the turn back, and returns when it comes again, or never can.
    fn sit(&self, rank: usize, seat: Seat) -> Seat {
        let mut table = self.table();
        table.seats[rank] = seat;
        table.give();
        self.given.notify_all();
        while matches!(table.seats[rank], Seat::Asks | Seat::Waits) {
            table = self.given.wait(table).unwrap();
        }
        table.seats[rank]
    }

    /// Returns when it is `rank`'s turn for an access, for which other ranks may wait.
    pub(crate) fn turn(&self, rank: usize) {
        self.sit(rank, Seat::Asks);
        self.table().turn_all(Seat::Waits, Seat::Asks);
    }

    /// Lets `rank` look, at its turns, until it sees the awaited value.
    pub(crate) fn wait(&self, rank: usize, mut until: impl FnMut() -> bool) -> Result<(), Fault> {
        let mut seat = Seat::Asks;
        loop {
            if self.sit(rank, seat) == Seat::Stuck {
                return Err(Fault::Deadlock);
            }
            if until() {
                return Ok(());
            }
            seat = Seat::Waits;
        }
    }

    /// Notes that `rank` reads `owner`'s queue.
    pub(crate) fn reads(&self, rank: usize, owner: usize) {
        self.table().firsts[rank].get_or_insert(owner);
    }

    /// Runs `body` on every rank.
    pub(crate) fn run(
        schedule: Schedule,
        body: impl Fn(&Arc<Self>, usize) -> Result<(), Fault> + Sync,
    ) -> Result<Firsts, Fault> {
        let random = if let Schedule::Random(seed) = schedule { seed } else { 0 };
        let table = Table { schedule, seats: [Seat::Busy; P], last: P - 1, random, firsts: [None; P] };
        let turns = Arc::new(Self { table: Mutex::new(table), given: Condvar::new() });
        let answers = std::thread::scope(|scope| {
            let (body, turns) = (&body, &turns);
            let rank = move |rank| {
                let _end = End(turns, rank);
                body(turns, rank)
            };
            let threads: [_; P] = std::array::from_fn(|me| scope.spawn(move || rank(me)));
            threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        if answers.contains(&Err(Fault::Deadlock)) {
            return Err(Fault::Deadlock);
        }
        answers.into_iter().collect::<Result<(), Fault>>()?;
        let firsts = turns.table().firsts;
        Ok(firsts)
    }
}

/// Ends a rank's turns, even after a panic.
struct End<'a>(&'a Turns, usize);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.sit(self.1, Seat::Ended);
    }
}
