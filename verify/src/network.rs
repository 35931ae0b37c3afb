//! A network in one thread, for machines over messages: every order of deliveries and polls that a seed gives.
//!
//! It is strict: a receive's bytes are overwritten with junk when it is posted and written when it is delivered; a
//! send's bytes are read when it is delivered; in rendezvous mode a send is complete only then. A process is polled
//! when one of the events that it named has happened, and now and then when none has, which must change nothing.

use crate::oracle::mix;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::p2p::{P2p, P2pError, Tag};
use unisono_kernel::machine::poll::{Poll, Slot, Source, WaitSet};
use unisono_kernel::machine::transport::Messages;

/// When a send is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At once: its bytes are copied.
    Eager,
    /// When its receive has its bytes.
    Rendezvous,
}

/// The rank or the slot does not exist.
const UNKNOWN: P2pError = P2pError(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Free,
    Active,
    Complete,
    Failed,
}

#[derive(Debug)]
enum Content {
    Copied(Vec<u8>),
    Lent(Buf),
}

#[derive(Debug)]
struct Sent {
    slot: Slot,
    content: Content,
}

#[derive(Debug, Default)]
struct Channel {
    sent: VecDeque<Sent>,
    posted: VecDeque<(Slot, Buf)>,
}

/// Messages with the same route are received in the order of their posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Route {
    from: Rank,
    to: Rank,
    tag: u64,
}

#[derive(Debug)]
struct World {
    mode: Mode,
    requests: Vec<Vec<Status>>,
    /// The messages of each route in the order of their posts.
    channels: BTreeMap<Route, Channel>,
}

impl World {
    fn request(&mut self, rank: Rank, status: Status) -> Slot {
        let slots = &mut self.requests[rank as usize];
        let free = slots.iter().position(|status| *status == Status::Free).unwrap_or_else(|| {
            slots.push(Status::Free);
            slots.len() - 1
        });
        slots[free] = status;
        Slot(free as u32)
    }

    fn set(&mut self, rank: Rank, slot: Slot, status: Status) {
        self.requests[rank as usize][slot.0 as usize] = status;
    }

    /// Routes whose next message matches a posted receive.
    fn deliverable(&self) -> Vec<Route> {
        let met = |channel: &Channel| !channel.sent.is_empty() && !channel.posted.is_empty();
        self.channels.iter().filter(|(_, channel)| met(channel)).map(|(route, _)| *route).collect()
    }

    fn deliver(&mut self, route: Route) {
        let Some(channel) = self.channels.get_mut(&route) else { return };
        let (Some(sent), Some((slot, to))) = (channel.sent.pop_front(), channel.posted.pop_front()) else { return };
        let from = match &sent.content {
            Content::Copied(bytes) => Buf::of(bytes),
            Content::Lent(buf) => *buf,
        };
        let fits = from.len() == to.len();
        if fits {
            // SAFETY: the contracts of `post_send` and `post_recv`: neither request is complete yet.
            unsafe { core::ptr::copy(from.ptr(), to.ptr(), to.len()) };
        }
        let status = if fits { Status::Complete } else { Status::Failed };
        self.set(route.to, slot, status);
        if let Content::Lent(_) = sent.content {
            self.set(route.from, sent.slot, status);
        }
    }
}

/// One process's endpoint.
#[derive(Debug)]
pub struct Endpoint {
    rank: Rank,
    size: u32,
    world: Rc<RefCell<World>>,
}

impl Endpoint {
    fn check(&self, rank: Rank) -> Result<(), P2pError> {
        if rank < self.size { Ok(()) } else { Err(UNKNOWN) }
    }

    fn has_happened(&self, on: &WaitSet) -> bool {
        let world = self.world.borrow();
        let status = |slot: Slot| world.requests[self.rank as usize][slot.0 as usize];
        on.iter().any(|event| matches!(event.source, Source::Message(slot) if status(slot) != Status::Active))
    }
}

impl P2p for Endpoint {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    unsafe fn post_send(&mut self, to: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        self.check(to)?;
        let mut world = self.world.borrow_mut();
        let (status, content) = match world.mode {
            Mode::Rendezvous => (Status::Active, Content::Lent(buf)),
            Mode::Eager => {
                let mut bytes = vec![0; buf.len()];
                // SAFETY: the caller's promise; the copy is as long, and ours.
                unsafe { core::ptr::copy(buf.ptr(), bytes.as_mut_ptr(), buf.len()) };
                (Status::Complete, Content::Copied(bytes))
            }
        };
        let slot = world.request(self.rank, status);
        world
            .channels
            .entry(Route { from: self.rank, to, tag: tag.0 })
            .or_default()
            .sent
            .push_back(Sent { slot, content });
        Ok(slot)
    }

    unsafe fn post_recv(&mut self, from: Rank, tag: Tag, buf: Buf) -> Result<Slot, P2pError> {
        self.check(from)?;
        let mut world = self.world.borrow_mut();
        let slot = world.request(self.rank, Status::Active);
        // SAFETY: the caller's promise: writable from now on. A process that reads before the end sees junk.
        unsafe { core::ptr::write_bytes(buf.ptr(), 0xee, buf.len()) };
        world.channels.entry(Route { from, to: self.rank, tag: tag.0 }).or_default().posted.push_back((slot, buf));
        Ok(slot)
    }

    fn test(&mut self, slot: Slot) -> Result<bool, P2pError> {
        let mut world = self.world.borrow_mut();
        let status = world.requests[self.rank as usize].get_mut(slot.0 as usize).ok_or(UNKNOWN)?;
        match *status {
            Status::Free => Err(UNKNOWN),
            Status::Active => Ok(false),
            Status::Failed => Err(P2pError::LENGTH),
            Status::Complete => {
                *status = Status::Free;
                Ok(true)
            }
        }
    }
}

impl Messages for Endpoint {
    type P2p = Self;
    fn messages(&mut self) -> &mut Self {
        self
    }
}

/// Runs one machine per rank until all are done, in the order that `seed` gives.
///
/// # Errors
/// A poll that fails, a spurious poll that changes something, a deadlock (which process waits for which), a message
/// that was not received.
pub fn run<M: Machine<Endpoint> + Clone + PartialEq>(machines: &mut [M], mode: Mode, seed: u64) -> Result<(), String> {
    let size = machines.len() as u32;
    let requests = vec![Vec::new(); machines.len()];
    let world = Rc::new(RefCell::new(World { mode, requests, channels: BTreeMap::new() }));
    let mut ends: Vec<_> = (0..size).map(|rank| Endpoint { rank, size, world: Rc::clone(&world) }).collect();
    let mut steps: Vec<Option<Poll>> = vec![None; machines.len()];
    let mut random = seed;
    let mut choose = |among: usize| {
        random = mix(random);
        (random >> 16) as usize % among.max(1)
    };
    loop {
        let ready: Vec<usize> = (0..machines.len())
            .filter(|&rank| match &steps[rank] {
                None => true,
                Some(Poll::Done) => false,
                Some(Poll::Wait(on)) => ends[rank].has_happened(on),
            })
            .collect();
        let deliverable = world.borrow().deliverable();
        let choice = choose(ready.len() + deliverable.len());
        if let Some(&rank) = ready.get(choice) {
            let step = machines[rank].poll(&mut ends[rank]).map_err(|error| format!("rank {rank}: {error}"))?;
            if choose(8) == 0 {
                spurious(&mut machines[rank], &mut ends[rank], step)?;
            }
            steps[rank] = Some(step);
        } else if let Some(&route) = deliverable.get(choice - ready.len()) {
            world.borrow_mut().deliver(route);
        } else if steps.iter().all(|step| *step == Some(Poll::Done)) {
            break;
        } else {
            return Err(format!("deadlock: {steps:?}"));
        }
    }
    let left = world.borrow().channels.values().any(|channel| !channel.sent.is_empty() || !channel.posted.is_empty());
    if left { Err("a message that was not received, or a receive without a message".into()) } else { Ok(()) }
}

/// Polls a second time, when nothing has happened since the first poll: nothing may change.
fn spurious<M: Machine<Endpoint> + Clone + PartialEq>(
    machine: &mut M,
    end: &mut Endpoint,
    step: Poll,
) -> Result<(), String> {
    if matches!(&step, Poll::Wait(on) if end.has_happened(on)) {
        return Ok(());
    }
    let before = machine.clone();
    let again = machine.poll(end).map_err(|error| format!("rank {}: {error}", end.rank))?;
    if again == step && *machine == before { Ok(()) } else { Err(format!("a spurious poll of rank {}", end.rank)) }
}
