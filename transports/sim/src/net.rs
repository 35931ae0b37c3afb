//! The network while it runs: the ranks' clocks and requests, the messages in flight, and what events do to them.

use crate::calendar::{Calendar, Event};
use crate::endpoint::NO_SUCH_SLOT;
use crate::fabric::{Channel, Fabric, Passage, Path};
use crate::network::{Class, Network};
use crate::outcome::Traffic;
use crate::placement::Placement;
use crate::schedule::Chance;
use crate::time::Time;
use std::collections::{HashMap, VecDeque};
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::machine::p2p::{P2pError, Tag};
use unisono_kernel::machine::poll::Slot;

/// A message, from its posting until it is received.
#[derive(Debug)]
struct Message {
    channel: Channel,
    /// The sender's request.
    request: usize,
    /// The sender's buffer. It is read when the last byte leaves.
    buf: Buf,
    /// A copy of the bytes, from that moment on.
    bytes: Option<Box<[u8]>>,
    class: Class,
    path: Path,
    /// The receiver's request, if the message was matched.
    matched: Option<usize>,
    arrived: bool,
}

/// A slot for a request of a rank.
#[derive(Clone, Copy, Debug)]
enum Request {
    Free,
    Send {
        to: Rank,
        done: bool,
    },
    /// `message`: the number of the message with which it was matched.
    Receive {
        from: Rank,
        buf: Buf,
        message: Option<usize>,
    },
}

/// Messages or receives of one channel and tag that were not matched yet, in the order of posting.
#[derive(Debug)]
enum Waiting {
    /// Numbers of messages.
    Messages(VecDeque<usize>),
    /// The receiver's requests.
    Receives(VecDeque<usize>),
}

/// A message or a receive that is to be matched.
#[derive(Clone, Copy, Debug)]
enum Half {
    /// The number of a message.
    Message(usize),
    /// A request of the receiver.
    Receive(usize),
}

/// One rank's state.
#[derive(Debug, Default)]
struct Seat {
    clock: Time,
    requests: Vec<Request>,
    /// The free slots of `requests`.
    free: Vec<usize>,
    /// What was not matched yet, by sender and tag.
    waiting: HashMap<(Rank, Tag), Waiting>,
}

impl Seat {
    /// Puts a request into a free slot, and returns the slot's index.
    fn take(&mut self, request: Request) -> usize {
        match self.free.pop() {
            Some(at) => {
                self.requests[at] = request;
                at
            }
            None => {
                self.requests.push(request);
                self.requests.len() - 1
            }
        }
    }

    /// Frees a slot.
    fn release(&mut self, at: usize) {
        self.requests[at] = Request::Free;
        self.free.push(at);
    }
}

/// The state of all ranks and of the network.
#[derive(Debug)]
pub(crate) struct Net {
    network: Network,
    placement: Placement,
    fabric: Fabric,
    chance: Chance,
    /// By rank.
    seats: Vec<Seat>,
    /// By the message's number; `None`: a free number.
    messages: Vec<Option<Message>>,
    /// The free numbers of `messages`.
    free: Vec<usize>,
    pub(crate) calendar: Calendar,
    pub(crate) traffic: Traffic,
}

/// Ranks come from endpoints and message numbers from events, which this module made: both are in bounds.
impl Net {
    pub(crate) fn new(network: Network, placement: Placement, chance: Chance) -> Self {
        let mut seats = Vec::new();
        seats.resize_with(placement.ranks() as usize, Seat::default);
        Self {
            network,
            fabric: Fabric::new(network, &placement),
            placement,
            chance,
            seats,
            messages: Vec::new(),
            free: Vec::new(),
            calendar: Calendar::default(),
            traffic: Traffic::default(),
        }
    }

    /// The rank's clock.
    pub(crate) fn clock(&self, rank: Rank) -> Time {
        self.seats[rank as usize].clock
    }

    /// Advances the rank's clock to `at`, unless it is later already.
    pub(crate) fn advance(&mut self, rank: Rank, at: Time) {
        let clock = &mut self.seats[rank as usize].clock;
        *clock = at.max(*clock);
    }

    /// Is the request complete? A receive's bytes are copied by [`Self::test`].
    pub(crate) fn is_complete(&self, rank: Rank, Slot(slot): Slot) -> bool {
        match self.seats[rank as usize].requests.get(slot as usize) {
            Some(Request::Send { done, .. }) => *done,
            Some(Request::Receive { message: Some(message), .. }) => {
                self.messages[*message].as_ref().is_some_and(|message| message.arrived)
            }
            _ => false,
        }
    }

    /// The world rank on the other side of the request. (An endpoint in a group has other numbers.)
    pub(crate) fn peer(&self, rank: Rank, Slot(slot): Slot) -> Option<Rank> {
        match *self.seats[rank as usize].requests.get(slot as usize)? {
            Request::Free => None,
            Request::Send { to: peer, .. } | Request::Receive { from: peer, .. } => Some(peer),
        }
    }

    /// Posts a send. The sender is busy for o_s; then the message enters the network.
    ///
    /// # Safety
    /// As [`unisono_kernel::machine::p2p::P2p::post_send`].
    pub(crate) unsafe fn send(&mut self, channel: Channel, tag: Tag, buf: Buf) -> Slot {
        let Channel { from, to } = channel;
        let (class, path) = self.fabric.route(channel, &self.placement);
        let busy = self.chance.overhead(from, self.network.link(class).send);
        let seat = &mut self.seats[from as usize];
        seat.clock = seat.clock + busy;
        let (ready, request) = (seat.clock, seat.take(Request::Send { to, done: false }));
        let message = Message { channel, request, buf, bytes: None, class, path, matched: None, arrived: false };
        let number = match self.free.pop() {
            Some(at) => {
                self.messages[at] = Some(message);
                at
            }
            None => {
                self.messages.push(Some(message));
                self.messages.len() - 1
            }
        };
        self.pair(channel, tag, Half::Message(number));
        self.traffic.count(class, buf.len());
        self.calendar.add(ready, Event::Enter { message: number, stage: 0 });
        Slot(request as u32)
    }

    /// Posts a receive.
    ///
    /// # Safety
    /// As [`unisono_kernel::machine::p2p::P2p::post_recv`].
    pub(crate) unsafe fn receive(&mut self, channel: Channel, tag: Tag, buf: Buf) -> Slot {
        let Channel { from, to } = channel;
        let request = self.seats[to as usize].take(Request::Receive { from, buf, message: None });
        self.pair(channel, tag, Half::Receive(request));
        Slot(request as u32)
    }

    /// Matches a message or a receive with the oldest counterpart of the same channel and tag; without one, it waits.
    fn pair(&mut self, Channel { from, to }: Channel, tag: Tag, half: Half) {
        let waiting = &mut self.seats[to as usize].waiting;
        let (message, request) = match (waiting.get_mut(&(from, tag)), half) {
            (Some(Waiting::Receives(requests)), Half::Message(message)) => (Some(message), requests.pop_front()),
            (Some(Waiting::Messages(messages)), Half::Receive(request)) => (messages.pop_front(), Some(request)),
            (Some(Waiting::Messages(messages)), Half::Message(message)) => return messages.push_back(message),
            (Some(Waiting::Receives(requests)), Half::Receive(request)) => return requests.push_back(request),
            (None, half) => {
                let first = match half {
                    Half::Message(message) => Waiting::Messages([message].into()),
                    Half::Receive(request) => Waiting::Receives([request].into()),
                };
                waiting.insert((from, tag), first);
                return;
            }
        };
        if waiting.get(&(from, tag)).is_some_and(|left| match left {
            Waiting::Messages(queue) | Waiting::Receives(queue) => queue.is_empty(),
        }) {
            waiting.remove(&(from, tag));
        }
        if let (Some(number), Some(request)) = (message, request) {
            if let Some(message) = &mut self.messages[number] {
                message.matched = Some(request);
            }
            if let Request::Receive { message, .. } = &mut self.seats[to as usize].requests[request] {
                *message = Some(number);
            }
        }
    }

    /// Is the request complete? If so, its slot is freed; for a receive the bytes are copied, and o_r passes.
    pub(crate) fn test(&mut self, rank: Rank, slot: Slot) -> Result<bool, P2pError> {
        let at = slot.0 as usize;
        let request = self.seats[rank as usize].requests.get(at).copied().unwrap_or(Request::Free);
        if matches!(request, Request::Free) {
            return Err(NO_SUCH_SLOT);
        }
        if !self.is_complete(rank, slot) {
            return Ok(false);
        }
        if let Request::Receive { buf, message: Some(number), .. } = request
            && let Some(message) = self.messages[number].take()
        {
            self.free.push(number);
            let bytes = message.bytes.unwrap_or_default();
            if bytes.len() != buf.len() {
                return Err(P2pError::LENGTH);
            }
            // SAFETY: `receive`'s contract: writable and exclusive until this test; equally long.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buf.ptr(), bytes.len()) };
            let busy = self.chance.overhead(rank, self.network.link(message.class).receive);
            let clock = &mut self.seats[rank as usize].clock;
            *clock = *clock + busy;
        }
        self.seats[rank as usize].release(at);
        Ok(true)
    }

    /// Does what an event says. Returns the request that it completes, and its rank, if there is one.
    ///
    /// # Safety
    /// The buffers of sends whose last byte has not left are readable: no machine and no buffer was dropped.
    pub(crate) unsafe fn happen(&mut self, now: Time, event: Event) -> Option<(Rank, Slot)> {
        match event {
            Event::Poll(_) => None,
            Event::Enter { message: number, stage } => {
                let message = self.messages[number].as_ref()?;
                let (class, path) = (message.class, message.path);
                let Passage { first, last } = self.fabric.pass(path.port(stage)?, class, &path, message.buf.len(), now);
                if stage == 0 {
                    self.calendar.add(last, Event::Sent { message: number });
                }
                if stage == path.last() {
                    self.calendar.add(last, Event::Arrived { message: number });
                } else {
                    let stage = stage + 1;
                    let at = if stage == path.last() {
                        let crossings = f64::from(path.crossings) * self.network.link(Class::Socket).latency;
                        let latency = self.network.link(class).latency + crossings;
                        self.chance.delayed(message.channel, first + Time::from_ns(latency))
                    } else {
                        first
                    };
                    self.calendar.add(at, Event::Enter { message: number, stage });
                }
                None
            }
            Event::Sent { message } => {
                let message = self.messages[message].as_mut()?;
                let mut bytes = vec![0; message.buf.len()].into_boxed_slice();
                // SAFETY: the caller's promise with `send`'s: readable until its `test` returns true, which it can't
                // have done yet; the copy is as long, and private.
                unsafe { std::ptr::copy_nonoverlapping(message.buf.ptr(), bytes.as_mut_ptr(), bytes.len()) };
                message.bytes = Some(bytes);
                let Channel { from, to } = message.channel;
                let sent = self.seats[from as usize].requests.get_mut(message.request)?;
                *sent = Request::Send { to, done: true };
                Some((from, Slot(message.request as u32)))
            }
            Event::Arrived { message } => {
                let message = self.messages[message].as_mut()?;
                message.arrived = true;
                Some((message.channel.to, Slot(message.matched? as u32)))
            }
        }
    }
}
