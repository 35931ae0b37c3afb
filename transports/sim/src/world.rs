//! The simulation loop: takes one event after the other, and polls a rank's machine when the event for which it waits
//! has happened.

use crate::calendar::Event;
use crate::endpoint::Endpoint;
use crate::net::Net;
use crate::network::{Network, Unfit};
use crate::outcome::{Fate, Outcome};
use crate::placement::Placement;
use crate::schedule::{Chance, Schedule};
use crate::time::Time;
use std::cell::RefCell;
use std::rc::Rc;
use unisono_kernel::Rank;
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::poll::{Await, Poll, Slot, Source, WaitSet};

/// All ranks and their network, before a run.
#[derive(Debug)]
pub struct World {
    size: u32,
    /// When each rank starts, by rank.
    begin: Vec<Time>,
    schedule: Schedule,
    /// Is a waiting rank polled whenever any of its requests completes? Else only for the requests for which it waits.
    for_any: bool,
    net: Rc<RefCell<Net>>,
}

/// The state of a rank.
#[derive(Clone, Copy, Debug)]
enum State {
    /// A poll is in the calendar.
    Ready,
    /// It waits for these events, since this moment.
    Waits(WaitSet, Time),
    /// It has ended.
    Over(Fate),
}

impl World {
    /// The ranks of `placement` on this network.
    ///
    /// # Errors
    /// A parameter is out of its range.
    pub fn new(network: Network, placement: Placement, schedule: Schedule) -> Result<Self, Unfit> {
        network.check_for(placement.nodes(), placement.packages())?;
        let size = placement.ranks();
        schedule.check(size)?;
        let (chance, begin) = Chance::new(&schedule, size);
        Ok(Self {
            size,
            begin,
            schedule,
            for_any: false,
            net: Rc::new(RefCell::new(Net::new(network, placement, chance))),
        })
    }

    /// The same, but a waiting rank is polled whenever any of its requests completes: for machines that wait for
    /// more events than a [`WaitSet`] has room for.
    #[must_use]
    pub fn waking_for_any(self) -> Self {
        Self { for_any: true, ..self }
    }

    /// Number of ranks.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// The ranks' point-to-point layers, by rank.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        (0..self.size).map(|rank| Endpoint::new(rank, self.size, Rc::clone(&self.net))).collect()
    }

    /// Runs the machines, one per rank with its context, until each is done or can't continue, or until the deadline.
    ///
    /// A rank without a machine never runs, like a dropped one. Messages that are still in flight at the end are lost.
    pub fn run<X>(self, ranks: &mut [(X, impl Machine<X>)]) -> Outcome {
        let deadline = Time::from_ns(self.schedule.deadline);
        let mut states = vec![State::Over(Fate::Dropped); self.size as usize];
        let mut left = vec![u64::MAX; self.size as usize];
        for dropped in &self.schedule.dropped {
            left[dropped.rank as usize] = dropped.polls;
        }
        let mut net = self.net.borrow_mut();
        for (rank, at) in (0..).zip(self.begin.iter().copied()).take(ranks.len()) {
            states[rank as usize] = State::Ready;
            net.calendar.add(at, Event::Poll(rank));
        }
        drop(net);
        let mut polls = 0;
        loop {
            let next = self.net.borrow_mut().calendar.next();
            let Some((now, event)) = next.filter(|(at, _)| *at <= deadline) else { break };
            let Event::Poll(rank) = event else {
                // SAFETY: the machines and their buffers are borrowed or owned by `ranks` while this runs.
                let complete = unsafe { self.net.borrow_mut().happen(now, event) };
                if let Some((rank, slot)) = complete {
                    let only = (!self.for_any).then_some(slot);
                    wake(&mut self.net.borrow_mut(), &mut states[rank as usize], rank, only, now);
                }
                continue;
            };
            let (state, left) = (&mut states[rank as usize], &mut left[rank as usize]);
            let Some((context, machine)) = ranks.get_mut(rank as usize) else { continue };
            if *left == 0 {
                *state = State::Over(Fate::Dropped);
                continue;
            }
            *left -= 1;
            polls += 1;
            self.net.borrow_mut().advance(rank, now);
            let step = machine.poll(context);
            let mut net = self.net.borrow_mut();
            let clock = net.clock(rank);
            *state = match step {
                Ok(Poll::Done) => State::Over(Fate::Done(clock)),
                Err(error) => State::Over(Fate::Failed(error)),
                Ok(Poll::Wait(_)) if *left == 0 => State::Over(Fate::Dropped),
                Ok(Poll::Wait(on)) if messages(&on).any(|slot| net.is_complete(rank, slot)) => {
                    net.calendar.add(clock, Event::Poll(rank));
                    State::Ready
                }
                Ok(Poll::Wait(on)) => State::Waits(on, clock),
            };
        }
        let net = self.net.borrow();
        let in_world = |rank, on: Await| match on.source {
            Source::Message(slot) => Await { peer: net.peer(rank, slot), ..on },
            _ => on,
        };
        let events = |(rank, state): (Rank, &State)| match *state {
            State::Waits(on, _) => on.iter().map(|on| (rank, in_world(rank, *on))).collect(),
            _ => Vec::new(),
        };
        let waits = (0..).zip(&states).flat_map(events).collect();
        let fate = |state: &State| match *state {
            State::Ready => Fate::Late,
            State::Waits(_, since) => Fate::Waits(since),
            State::Over(fate) => fate,
        };
        let fates = states.iter().map(fate).collect();
        Outcome { begin: self.begin, fates, waits, traffic: net.traffic, polls }
    }
}

/// A request of `rank` is complete. If the rank waits for the one in `slot` (`None`: for any), a poll is added to the
/// calendar, not before the rank's clock.
fn wake(net: &mut Net, state: &mut State, rank: Rank, slot: Option<Slot>, now: Time) {
    if let State::Waits(on, _) = state
        && slot.is_none_or(|slot| messages(on).any(|awaited| awaited == slot))
    {
        net.calendar.add(now.max(net.clock(rank)), Event::Poll(rank));
        *state = State::Ready;
    }
}

/// The requests among the events of a wait.
fn messages(on: &WaitSet) -> impl Iterator<Item = Slot> {
    on.iter().filter_map(|event| match event.source {
        Source::Message(slot) => Some(slot),
        _ => None,
    })
}
