//! The machine that runs a schedule, round by round. The receives and sends of a round are in flight together.
//!
//! A round has these parts: the work before its messages; receives and sends are posted, [`WINDOW`] of each at a
//! time, and are completed in order of their index; the work to be done meanwhile; when all messages are complete,
//! the work after them. The machine waits for its oldest receive or its oldest send. All its messages have the
//! operation's number as their tag.
//!
//! There is no deadlock, even where a send is complete only when its receive is posted: the i-th message of a
//! round waits only for the one before, and the messages between two processes are sent and received in the same order.

use super::schedule::{Area, Message, Moment, Place, Schedule, Work};
use crate::Rank;
use crate::data::buffer::Buf;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Machine;
use crate::machine::p2p::{P2p, P2pError, Tag};
use crate::machine::poll::{Await, Poll, Slot, Source, WaitSet};
use crate::machine::transport::Messages;
use core::ptr::NonNull;

/// Most sends that are in flight at once, and most receives.
pub const WINDOW: u32 = 8;

/// A process's memory for one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Memory {
    /// The user's input; no bytes in place.
    pub send: Buf,
    /// The user's result.
    pub receive: Buf,
    /// Working memory, given by the caller.
    pub scratch: Buf,
}

impl Memory {
    /// No bytes.
    pub const NOTHING: Buf = Buf::new(NonNull::dangling().as_ptr(), 0);

    /// The memory of a place, cut to the end of its area.
    #[inline]
    fn at(&self, place: Place) -> Buf {
        let all = match place.area {
            Area::Send => self.send,
            Area::Receive => self.receive,
            Area::Scratch => self.scratch,
        };
        let at = place.at.min(all.len() as u64) as usize;
        Buf::new(all.ptr().wrapping_add(at), place.len.min((all.len() - at) as u64) as usize)
    }
}

/// One process's part of the collective that `S` schedules.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rounds<S> {
    schedule: S,
    memory: Memory,
    operation: u64,
    round: u64,
    state: State,
    sends: Flight,
    receives: Flight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// The current round has not started.
    Begin,
    /// The round's messages are in flight.
    Fly,
    Done,
}

/// Messages of a round in one direction, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Flight {
    /// The messages below this index are complete.
    complete: u32,
    /// The messages below this index are posted.
    posted: u32,
    /// There are no further messages.
    all: bool,
    /// The request of message i, and its peer, is at i modulo the window; 0: no request.
    slots: [(u32, Rank); WINDOW as usize],
}

impl Flight {
    /// Posts further messages, as far as the window has room.
    #[inline]
    fn post(
        &mut self,
        message: impl Fn(u32) -> Option<Message>,
        mut post: impl FnMut(Message) -> Result<Slot, P2pError>,
    ) -> Result<(), PollError> {
        while self.has_room() {
            let Some(message) = message(self.posted) else {
                self.all = true;
                break;
            };
            let slot = post(message).map_err(failed(message.peer))?;
            if let Some(at) = self.slots.get_mut((self.posted % WINDOW) as usize) {
                *at = (slot.0, message.peer);
            }
            self.posted += 1;
        }
        Ok(())
    }

    /// Can further messages be posted?
    const fn has_room(&self) -> bool {
        !self.all && self.posted - self.complete < WINDOW
    }

    /// Tests requests from the oldest on. Returns the first that is not complete, and its peer; `None` if all that
    /// are posted are complete.
    #[inline]
    fn test(&mut self, layer: &mut (impl P2p + ?Sized)) -> Result<Option<(Slot, Rank)>, PollError> {
        while self.complete < self.posted {
            let Some(at) = self.slots.get_mut((self.complete % WINDOW) as usize) else { break };
            let (slot, peer) = (Slot(at.0), at.1);
            if !layer.test(slot).map_err(failed(peer))? {
                return Ok(Some((slot, peer)));
            }
            *at = (0, 0);
            self.complete += 1;
        }
        Ok(None)
    }
}

fn failed(peer: Rank) -> impl FnOnce(P2pError) -> PollError {
    move |P2pError(code)| PollError::Messages { peer, code }
}

impl<S: Schedule> Rounds<S> {
    /// A machine that runs `schedule` in `memory`. `operation` is the tag of its messages, which no other operation
    /// in flight has.
    ///
    /// # Errors
    /// An area has fewer bytes than the schedule needs.
    ///
    /// # Safety
    /// The input is readable; the result and the working memory are writable, and nothing else accesses them, until
    /// the machine is done or the point-to-point layer is dropped. The three don't overlap. A user's op keeps
    /// `User::new`'s promise.
    pub unsafe fn of(schedule: S, memory: Memory, operation: u64) -> Result<Self, Refusal> {
        let bytes = schedule.bytes();
        Refusal::check(Argument::Bytes, memory.send.len() as u64, Bound::AtLeast(bytes.send))?;
        Refusal::check(Argument::Bytes, memory.receive.len() as u64, Bound::AtLeast(bytes.receive))?;
        Refusal::check(Argument::Scratch, memory.scratch.len() as u64, Bound::AtLeast(bytes.scratch))?;
        let (sends, receives) = Default::default();
        Ok(Self { schedule, memory, operation, round: 0, state: State::Begin, sends, receives })
    }

    /// The schedule.
    pub const fn schedule(&self) -> &S {
        &self.schedule
    }

    /// Does the round's work of this moment.
    fn work(&self, moment: Moment) {
        for index in 0.. {
            match self.schedule.work(self.round, moment, index) {
                None => break,
                Some(Work::Copy { from, to }) => {
                    let (from, to) = (self.memory.at(from), self.memory.at(to));
                    let len = from.len().min(to.len());
                    // SAFETY: parts of areas that are readable and writable by `of`'s contract; no message of this
                    // moment touches them.
                    unsafe { core::ptr::copy(from.ptr(), to.ptr(), len) };
                }
                Some(Work::Fold { left, right }) => {
                    let (left, right) = (self.memory.at(left), self.memory.at(right));
                    let len = left.len().min(right.len()) as u64;
                    if let Some(op) = self.schedule.op() {
                        // SAFETY: as above, and apart: the schedule's contract.
                        unsafe { op.fold_raw(left.ptr(), right.ptr(), op.whole(len)) };
                    }
                }
            }
        }
    }

    /// Posts and tests until nothing advances. Returns what to wait for; `None` if all of the round's messages are
    /// complete.
    fn fly<P: P2p + ?Sized>(&mut self, layer: &mut P) -> Result<Option<WaitSet>, PollError> {
        let Self { schedule, memory, operation, round, sends, receives, .. } = self;
        let (tag, operation) = (Tag(*operation), *operation);
        let incoming = |index| schedule.receive(*round, index);
        let outgoing = |index| schedule.send(*round, index);
        loop {
            receives.post(incoming, |Message { peer, place }| {
                // SAFETY: `of`'s contract; by the schedule's contract nothing else accesses the place in this round.
                unsafe { layer.post_recv(peer, tag, memory.at(place)) }
            })?;
            sends.post(outgoing, |Message { peer, place }| {
                // SAFETY: `of`'s contract; the place is only read in this round.
                unsafe { layer.post_send(peer, tag, memory.at(place)) }
            })?;
            let late = (receives.test(layer)?, sends.test(layer)?);
            if receives.has_room() || sends.has_room() {
                continue;
            }
            // Many messages may use the same slot, one after the other: the number of complete ones tells them apart.
            let stage = *round << 32 | u64::from(receives.complete.wrapping_add(sends.complete));
            let event = |(slot, peer)| Await { source: Source::Message(slot), peer: Some(peer), operation, stage };
            return Ok(match late {
                (None, None) => None,
                (Some(one), None) | (None, Some(one)) => Some(WaitSet::one(event(one))),
                (Some(receive), Some(send)) => Some(WaitSet::either(event(receive), event(send))),
            });
        }
    }
}

impl<S: Schedule, X: Messages + ?Sized> Machine<X> for Rounds<S> {
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError> {
        let layer = x.messages();
        loop {
            match self.state {
                State::Begin if self.round == self.schedule.rounds() => self.state = State::Done,
                State::Begin => {
                    self.work(Moment::Before);
                    self.state = State::Fly;
                    // Even if all messages are complete at once, the work meanwhile comes before the work after them.
                    let late = self.fly(layer)?;
                    self.work(Moment::Meanwhile);
                    if let Some(wait) = late {
                        return Ok(Poll::Wait(wait));
                    }
                    self.end();
                }
                State::Fly => match self.fly(layer)? {
                    Some(wait) => return Ok(Poll::Wait(wait)),
                    None => self.end(),
                },
                State::Done => return Ok(Poll::Done),
            }
        }
    }
}

impl<S: Schedule> Rounds<S> {
    /// Ends a round whose messages are complete, and goes to the next.
    fn end(&mut self) {
        self.work(Moment::After);
        self.round += 1;
        (self.sends, self.receives) = Default::default();
        self.state = State::Begin;
    }
}
