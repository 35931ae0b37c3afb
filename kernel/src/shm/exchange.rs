//! Exchange (ours): every process posts fragments, and takes the fragments of those that it needs.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `line(r, n)` | r | who takes from r in operation n | n; published data: the head, and the first fragment |
//! | `ready(r)` | r | who takes from r | r has posted its fragments below this |
//! | `taken(r)` | r | whoever posts | r is done with everyone's fragments below this |
//!
//! An operation is a row of ticks. In each, a process posts its fragment, if its [`Plan`] has one, and then
//! takes the fragments of others, one after the other, as the plan says. The fragment of tick k lies in the slot
//! of clock `base + k` of its writer's queue, which all queues share: a slot may be written when all have taken
//! what it held one queue ago. The first tick is announced by the line, whose head names collective and
//! length; where everything fits into lines they are the slots, and the only tick needs no queue.
//!
//! A collective is a plan: which bytes go into a fragment, and what happens to those of others.

use super::copy::{copy_in, copy_out};
use super::line::{self, Body, Kind};
use crate::Rank;
use crate::buffer::Buf;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Machine;
use crate::region::layout::LINE_PAYLOAD;
use crate::region::{Extent, Flag, Region};
use crate::step::{Awaits, Step, Until};
use crate::transport::Shared;
use core::hash::Hash;

/// Where fragments lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// In posted lines: one tick, at most [`LINE_PAYLOAD`] bytes.
    Lines,
    /// In the queues' slots.
    Queues,
}

impl Way {
    /// Lines for what fits them.
    pub(crate) const fn of(bytes: u64) -> Self {
        if bytes <= LINE_PAYLOAD { Self::Lines } else { Self::Queues }
    }

    /// Bytes of a fragment's place.
    pub(crate) const fn room(self, me: &Member) -> u64 {
        match self {
            Self::Lines => LINE_PAYLOAD,
            Self::Queues => me.layout().params().queue_fragment,
        }
    }
}

/// What one process does in an exchange: plain data, made of what all know alike where others depend on it.
pub trait Plan: Clone + PartialEq + Eq + Hash {
    /// Which collective this is: a line of another one is refused.
    fn kind(&self) -> Kind;

    /// Ticks of this process.
    fn ticks(&self) -> u64;

    /// What this process's line says of its length.
    fn announced(&self) -> u64;

    /// What `peer`'s line must say.
    fn expected(&self, peer: Rank) -> u64;

    /// Has this process a fragment in `tick`? In tick 0: does anyone wait for its line?
    fn posts(&self, tick: u64) -> bool;

    /// Whom this process takes from at all: nobody's fragments are its own business if false.
    fn takes_any(&self) -> bool;

    /// Does it take `peer`'s fragment of `tick`? `peer` may be this process.
    fn takes(&self, tick: u64, peer: Rank) -> bool;

    /// Whose turn is the `index`-th in a tick, of `size` processes. Default: the others from the next
    /// rank on, so that not all begin with the same one; then this process.
    #[inline]
    fn turn(&self, me: Rank, size: u32, index: u32) -> Rank {
        let next = u64::from(me) + 1 + u64::from(index);
        (if next < size.into() { next } else { next - u64::from(size) }) as Rank
    }

    /// Writes this process's fragment of `tick` to its place.
    ///
    /// # Safety
    /// No other process reads or writes the place now. The plan's data is valid for its side.
    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, tick: u64);

    /// Takes what `peer` has posted in `tick` from its place; for this process itself, what it would have taken.
    ///
    /// # Errors
    /// What the place says does not agree with what this process knows.
    ///
    /// # Safety
    /// `peer` has published the place and does not write it now. The plan's data is valid for its side.
    unsafe fn take<R: Region>(&mut self, region: &R, place: Extent, tick: u64, peer: Rank) -> Result<(), PollError>;
}

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exchange<P> {
    operation: u64,
    way: Way,
    /// The clock of tick 0, and what it has advanced by for all when the operation is done.
    base: u64,
    advance: u64,
    plan: P,
    tick: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Enter,
    Post,
    /// Turns of this tick that are over.
    Take {
        turns: u32,
    },
    Done,
}

/// What the clock advances by where nobody knows everyone's lengths: more ticks than any message has.
pub(crate) const UNKNOWN: u64 = 1 << 24;

impl<P: Plan> Exchange<P> {
    /// The next operation of `me`. All processes give the same `way` and the same `advance`: at least everyone's ticks.
    #[inline]
    pub(crate) fn new(me: &mut Member, way: Way, advance: u64, plan: P) -> Self {
        let advance = if way == Way::Queues { advance } else { 0 };
        let (operation, base) = (me.begin(plan.kind()), me.take_clock(advance));
        Self { operation, way, base, advance, plan, tick: 0, state: State::Enter }
    }

    /// Where `rank`'s fragment of this tick lies.
    #[inline]
    fn place(&self, me: &Member, rank: Rank) -> Extent {
        match self.way {
            Way::Lines => me.layout().line_body(rank, self.operation, 8 + LINE_PAYLOAD).part(8, LINE_PAYLOAD),
            Way::Queues => me.layout().slot(rank, self.base + self.tick),
        }
    }

    #[inline]
    fn post<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Awaits> {
        let clock = self.base + self.tick;
        if self.tick == 0 {
            me.line_free(region, self.operation)?;
        }
        if self.way == Way::Queues {
            me.slot_free(region, self.operation, clock)?;
        }
        let place = self.place(me, me.rank());
        // SAFETY: R10, the line is free, and everyone has taken the slot's last fragment; the data is
        // as the plan's constructor was promised.
        unsafe { self.plan.fill(region, place, self.tick) };
        if self.tick == 0 {
            let message = (self.plan.kind(), self.plan.announced());
            line::post(region, me, self.operation, message, &mut Body::new(), 0);
        } else {
            // publishes: the fragment of this tick, read after ready > clock
            region.publish(me.layout().ready(me.rank()), clock + 1);
        }
        Ok(())
    }

    /// Has `peer` posted this tick's fragment?
    #[inline]
    fn heard<R: Region>(&self, region: &R, me: &Member, peer: Rank) -> Result<Option<Awaits>, PollError> {
        if self.tick == 0 {
            let message = (self.plan.kind(), self.plan.expected(peer));
            return line::hear(region, me, peer, self.operation, message, &mut Body::new(), 0);
        }
        let (flag, bound) = (me.layout().ready(peer), self.base + self.tick + 1);
        // pairs with: post
        if region.flag(flag).load_acquire().at_least(bound) {
            return Ok(None);
        }
        Ok(Some(Awaits::flag(flag, Until::AtLeast(bound), peer, self.operation)))
    }

    /// Takes from the turn on at which this tick stands.
    #[inline]
    fn take<R: Region>(&mut self, region: &R, me: &Member, turns: u32) -> Result<Option<Awaits>, PollError> {
        for index in turns..me.size() {
            let peer = self.plan.turn(me.rank(), me.size(), index);
            if !self.plan.takes(self.tick, peer) {
                continue;
            }
            if peer != me.rank()
                && let Some(wait) = self.heard(region, me, peer)?
            {
                self.state = State::Take { turns: index };
                return Ok(Some(wait));
            }
            let place = self.place(me, peer);
            // SAFETY: heard, and reused only after our `taken` or `done`; the data is as the plan's
            // constructor was promised.
            unsafe { self.plan.take(region, place, self.tick, peer) }?;
        }
        Ok(None)
    }
}

impl<X: Shared + ?Sized, P: Plan> Machine<X> for Exchange<P> {
    fn poll(&mut self, x: &mut X) -> Result<Step, PollError> {
        let (region, me) = x.shared();
        let queues = self.way == Way::Queues;
        loop {
            match self.state {
                State::Enter => {
                    if queues && !self.plan.takes_any() {
                        // Nobody needs to wait for who takes nothing.
                        me.taken(region, self.base + self.advance);
                    }
                    self.state = State::Post;
                }
                State::Post if self.tick == self.plan.ticks() => {
                    if queues && self.plan.takes_any() {
                        me.taken(region, self.base + self.advance);
                    }
                    me.finish(region, self.operation);
                    self.state = State::Done;
                }
                State::Post => {
                    if self.plan.posts(self.tick)
                        && let Err(wait) = self.post(region, me)
                    {
                        return Ok(Step::Wait(wait));
                    }
                    self.state = State::Take { turns: 0 };
                }
                State::Take { turns } => {
                    if let Some(wait) = self.take(region, me, turns)? {
                        return Ok(Step::Wait(wait));
                    }
                    self.tick += 1;
                    if queues && self.plan.takes_any() && self.tick < self.plan.ticks() {
                        me.taken(region, self.base + self.tick);
                    }
                    self.state = State::Post;
                }
                State::Done => return Ok(Step::Done),
            }
        }
    }
}

/// How one message is cut into fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cut {
    /// Bytes of a fragment, and of the message.
    pub(crate) fragment: u64,
}

impl Cut {
    /// Fragments of at most `room` bytes for messages of up to `bytes`, whole elements of `element`. A long
    /// message is cut in four at least, so that copying in and out overlap.
    pub(crate) fn new(bytes: u64, room: u64, element: u64) -> Self {
        const LEAST: u64 = 4096;
        let fragment = (bytes / 4).next_multiple_of(64).clamp(room.min(LEAST.max(element)), room);
        Self { fragment: (fragment - if element > 1 { fragment % element } else { 0 }).max(1) }
    }

    /// The same for whole elements that may be long.
    ///
    /// # Errors
    /// An element is longer than `room`.
    pub(crate) fn whole(bytes: u64, room: u64, element: u64) -> Result<Self, Refusal> {
        Refusal::check(Argument::Element, element.min(bytes), Bound::AtMost(room))?;
        Ok(Self::new(bytes, room, element))
    }

    /// Ticks of a message: one at least.
    pub(crate) fn ticks(self, bytes: u64) -> u64 {
        if bytes <= self.fragment { 1 } else { bytes.div_ceil(self.fragment) }
    }

    /// The part of a message of `bytes` that is in `tick`: first byte and length.
    #[inline]
    pub(crate) const fn part(self, bytes: u64, tick: u64) -> (u64, u64) {
        let from = tick.saturating_mul(self.fragment);
        if from >= bytes {
            return (bytes, 0);
        }
        let rest = bytes - from;
        (from, if rest < self.fragment { rest } else { self.fragment })
    }
}

/// How a place is divided among those that take from it: a piece for each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pieces {
    /// Bytes from one piece to the next one.
    stride: u64,
    /// Bytes before a piece in which its writer says how long the whole message for its reader is; or 0.
    header: u64,
    /// How each message is cut.
    pub(crate) cut: Cut,
}

impl Pieces {
    const HEADER: u64 = 16;

    /// Messages of up to `most` bytes between any two, known to all; whole elements of `element` bytes.
    ///
    /// # Errors
    /// More processes than a slot has room for, or longer elements.
    pub(crate) fn known(me: &Member, most: u64, element: u64) -> Result<(Way, Self), Refusal> {
        let ranks = u64::from(me.size());
        let stride = most.next_multiple_of(8);
        if stride.checked_mul(ranks).is_some_and(|all| all <= LINE_PAYLOAD) {
            return Ok((Way::Lines, Self { stride, header: 0, cut: Cut { fragment: stride } }));
        }
        Self::queued(me, most, element)
    }

    /// The same, through the queues whatever the length.
    ///
    /// # Errors
    /// As [`Self::known`].
    pub(crate) fn queued(me: &Member, most: u64, element: u64) -> Result<(Way, Self), Refusal> {
        let stride = Self::stride(me)?;
        Refusal::check(Argument::Element, element, Bound::AtMost(stride))?;
        Ok((Way::Queues, Self { stride, header: 0, cut: Cut::new(most, stride, element) }))
    }

    /// Messages whose lengths only writer and reader know.
    ///
    /// # Errors
    /// More processes than a slot has room for.
    pub(crate) fn unknown(me: &Member) -> Result<(Way, Self), Refusal> {
        let stride = Self::stride(me)?;
        Ok((Way::Queues, Self { stride, header: Self::HEADER, cut: Cut { fragment: stride - Self::HEADER } }))
    }

    fn stride(me: &Member) -> Result<u64, Refusal> {
        let room = Way::Queues.room(me);
        let stride = room / u64::from(me.size());
        let least = 2 * Self::HEADER;
        Refusal::check(Argument::Ranks, me.size().into(), Bound::AtMost(room / least))?;
        Ok(stride - stride % if stride < 64 { Self::HEADER } else { 64 })
    }

    /// The piece for `reader`, behind its header.
    #[inline]
    pub(crate) fn of(&self, place: Extent, reader: Rank) -> Extent {
        place.part(u64::from(reader) * self.stride, self.stride).part(self.header, self.stride)
    }

    /// Writes the piece of `tick` for `reader`.
    ///
    /// # Safety
    /// As [`put`].
    #[inline]
    pub(crate) unsafe fn put<R: Region>(&self, region: &R, place: Extent, reader: Rank, tick: u64, data: &Data<'_>) {
        if self.header > 0 && tick == 0 {
            let len = data.len().to_ne_bytes();
            let at = place.part(u64::from(reader) * self.stride, 8);
            // SAFETY: the caller's promise for the place; the number is ours.
            unsafe { region.write(at, Buf::of(&len)) };
        }
        // SAFETY: the caller's promise.
        unsafe { put(region, self.of(place, reader), data, self.cut.part(data.len(), tick)) }
    }

    /// Checks the length that `peer` has announced for this process.
    ///
    /// # Errors
    /// It is not `bytes`.
    ///
    /// # Safety
    /// `peer` has published the place.
    pub(crate) unsafe fn check<R: Region>(
        &self,
        region: &R,
        place: Extent,
        (me, peer): (Rank, Rank),
        bytes: u64,
    ) -> Result<(), PollError> {
        let mut found = [0; 8];
        // SAFETY: the caller's promise; the array is ours.
        unsafe { region.read(place.part(u64::from(me) * self.stride, 8), Buf::of_mut(&mut found)) };
        let found = u64::from_ne_bytes(found);
        if found == bytes {
            return Ok(());
        }
        Err(PollError::Mismatch { peer, refusal: Refusal::new(Argument::Bytes, bytes, Bound::Equals(found)) })
    }

    /// Copies the piece of `tick` for `me` from `peer`'s place to `data`.
    ///
    /// # Errors
    /// `peer` has another length for it.
    ///
    /// # Safety
    /// As [`get`].
    #[inline]
    pub(crate) unsafe fn get<R: Region>(
        &self,
        region: &R,
        place: Extent,
        (me, peer): (Rank, Rank),
        tick: u64,
        data: &Data<'_>,
    ) -> Result<(), PollError> {
        if self.header > 0 && tick == 0 {
            // SAFETY: the caller's promise.
            unsafe { self.check(region, place, (me, peer), data.len()) }?;
        }
        // SAFETY: the caller's promise.
        unsafe { get(region, self.of(place, me), data, self.cut.part(data.len(), tick)) };
        Ok(())
    }
}

/// Copies a part of `data` into the segment.
///
/// # Safety
/// As [`copy_in`].
#[inline]
pub(crate) unsafe fn put<R: Region>(region: &R, place: Extent, data: &Data<'_>, (from, len): (u64, u64)) {
    // SAFETY: the caller's promise.
    unsafe { copy_in(region, place.part(0, len), data, from) }
}

/// Copies the segment's bytes to a part of `data`.
///
/// # Safety
/// As [`copy_out`].
#[inline]
pub(crate) unsafe fn get<R: Region>(region: &R, place: Extent, data: &Data<'_>, (from, len): (u64, u64)) {
    // SAFETY: the caller's promise.
    unsafe { copy_out(region, place.part(0, len), data, from) }
}
