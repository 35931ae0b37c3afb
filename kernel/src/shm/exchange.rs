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
//! length; where everything fits into lines they are the slots, and the only tick needs no queue. Where
//! lengths are not known to all, each writer chooses: what fits its line travels there.
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
    #[inline(always)]
    pub(crate) const fn of(bytes: u64) -> Self {
        if bytes <= LINE_PAYLOAD { Self::Lines } else { Self::Queues }
    }

    /// Bytes of a fragment's place.
    #[inline(always)]
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

    /// What `peer`'s line must say; for the default of [`Plan::heard`].
    fn expected(&self, _peer: Rank) -> u64 {
        self.announced()
    }

    /// `peer`'s line says this of its length.
    ///
    /// # Errors
    /// Not what it must say.
    #[inline]
    fn heard(&mut self, peer: Rank, announced: u64) -> Result<(), PollError> {
        let expected = self.expected(peer);
        if announced == expected {
            return Ok(());
        }
        Err(PollError::Mismatch { peer, refusal: Refusal::new(Argument::Bytes, expected, Bound::Equals(announced)) })
    }

    /// Does all that `writer` posts travel in its line, although others need the queues? Asked of this process,
    /// and of a peer whose line was heard.
    #[inline]
    fn in_line(&self, _writer: Rank) -> bool {
        false
    }

    /// Has this process a fragment in `tick`? In tick 0: does anyone wait for its line?
    fn posts(&self, tick: u64) -> bool;

    /// Ticks below this must have been taken before this process's fragment of `tick` can be written; at most `tick`.
    #[inline]
    fn follows(&self, _tick: u64) -> u64 {
        0
    }

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
    /// Fragments of ticks below this are posted: those of the tick that is taken, and of others as far as slots
    /// were free, so that who shares a core with others does much in its turn.
    posted: u64,
    /// The tick that is taken.
    tick: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Enter,
    /// Turns of the tick that are over.
    Take {
        turns: u32,
    },
    Done,
}

/// What the clock advances by where nobody knows everyone's lengths: more ticks than any message has.
pub(crate) const UNKNOWN: u64 = 1 << 24;

impl<P: Plan> Exchange<P> {
    /// The next operation of `me`. All processes give the same `way` and the same `advance`: at least everyone's ticks.
    #[inline(always)]
    pub(crate) fn new(me: &mut Member, way: Way, advance: u64, plan: P) -> Self {
        let advance = if way == Way::Queues { advance } else { 0 };
        let (operation, base) = (me.begin(plan.kind()), me.take_clock(advance));
        Self { operation, way, base, advance, plan, posted: 0, tick: 0, state: State::Enter }
    }

    /// Where `rank`'s fragment of `tick` lies.
    #[inline]
    fn place(&self, me: &Member, tick: u64, rank: Rank) -> Extent {
        if self.is_line(tick, rank) {
            me.layout().line_body(rank, self.operation, 8 + LINE_PAYLOAD).part(8, LINE_PAYLOAD)
        } else {
            me.layout().slot(rank, self.base + tick)
        }
    }

    #[inline]
    fn is_line(&self, tick: u64, rank: Rank) -> bool {
        self.way == Way::Lines || tick == 0 && self.plan.in_line(rank)
    }

    /// Posts the fragments of as many ticks as slots are free for; errs if not even that of the tick that is taken.
    #[inline]
    fn post_ahead<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Awaits> {
        let end = self.plan.ticks().min(self.tick + u64::from(me.layout().params().queue_slots));
        while self.posted < end && self.plan.follows(self.posted) <= self.tick {
            if self.plan.posts(self.posted)
                && let Err(wait) = self.post(region, me, self.posted)
            {
                return if self.posted > self.tick { Ok(()) } else { Err(wait) };
            }
            self.posted += 1;
        }
        Ok(())
    }

    #[inline]
    fn post<R: Region>(&mut self, region: &R, me: &mut Member, tick: u64) -> Result<(), Awaits> {
        let clock = self.base + tick;
        if tick == 0 {
            me.line_free(region, self.operation)?;
        }
        if !self.is_line(tick, me.rank()) {
            me.slot_free(region, self.operation, clock)?;
        }
        let place = self.place(me, tick, me.rank());
        // SAFETY: R10, the line is free, and everyone has taken the slot's last fragment, this process
        // too: it posts less than a queue ahead of what it takes. The data is as the plan's constructor was promised.
        unsafe { self.plan.fill(region, place, tick) };
        if tick == 0 {
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
    fn heard<R: Region>(&mut self, region: &R, me: &Member, peer: Rank) -> Result<Option<Awaits>, PollError> {
        if self.tick == 0 {
            return match line::hear_head(region, me, peer, self.operation, self.plan.kind())? {
                Ok(announced) => self.plan.heard(peer, announced).map(|()| None),
                Err(wait) => Ok(Some(wait)),
            };
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
            let place = self.place(me, self.tick, peer);
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
                    self.state = State::Take { turns: 0 };
                }
                State::Take { .. } if self.tick == self.plan.ticks() => {
                    if queues && self.plan.takes_any() {
                        me.taken(region, self.base + self.advance);
                    }
                    me.finish(region, self.operation);
                    self.state = State::Done;
                }
                State::Take { turns } => {
                    if let Err(wait) = self.post_ahead(region, me) {
                        return Ok(Step::Wait(wait));
                    }
                    if let Some(wait) = self.take(region, me, turns)? {
                        return Ok(Step::Wait(wait));
                    }
                    self.tick += 1;
                    if queues && self.plan.takes_any() && self.tick < self.plan.ticks() {
                        me.taken(region, self.base + self.tick);
                    }
                    self.state = State::Take { turns: 0 };
                }
                State::Done => return Ok(Step::Done),
            }
        }
    }
}

/// How one message is cut into fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cut {
    /// Bytes of a fragment; a message's last one may be shorter.
    pub(crate) fragment: u64,
}

impl Cut {
    /// Fragments of at most `room` bytes for messages of up to `bytes`, whole elements of `element`. A long
    /// message is cut in four at least, so that copying in and out overlap.
    #[inline(always)]
    pub(crate) fn new(bytes: u64, room: u64, element: u64) -> Self {
        const LEAST: u64 = 4096;
        let fragment = (bytes / 4).next_multiple_of(64).clamp(room.min(LEAST.max(element)), room);
        Self { fragment: (fragment - if element > 1 { fragment % element } else { 0 }).max(1) }
    }

    /// The same for whole elements that may be long.
    ///
    /// # Errors
    /// An element is longer than `room`.
    #[inline(always)]
    pub(crate) fn whole(bytes: u64, room: u64, element: u64) -> Result<Self, Refusal> {
        Refusal::check(Argument::Element, element.min(bytes), Bound::AtMost(room))?;
        Ok(Self::new(bytes, room, element))
    }

    /// Ticks of a message: one at least.
    #[inline(always)]
    pub(crate) fn ticks(self, bytes: u64) -> u64 {
        if bytes <= self.fragment { 1 } else { bytes.div_ceil(self.fragment) }
    }

    /// Ticks of a message where nobody knows everyone's lengths.
    ///
    /// # Errors
    /// It has more than the clock advances by.
    #[inline(always)]
    pub(crate) fn bounded_ticks(self, bytes: u64) -> Result<u64, Refusal> {
        Refusal::check(Argument::Bytes, bytes, Bound::AtMost(UNKNOWN.saturating_mul(self.fragment)))?;
        Ok(self.ticks(bytes))
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

/// How a place is divided among those that take from it: a piece for each process but its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pieces {
    /// Bytes from one piece to the next one.
    stride: u64,
    /// Bytes before a piece in which its writer says how long the whole message for its reader is; or 0.
    header: u64,
    /// Has the writer a piece for itself?
    own: bool,
    /// How each message is cut.
    pub(crate) cut: Cut,
}

/// Who writes, and who reads.
type Pair = (Rank, Rank);

impl Pieces {
    /// Messages of up to `most` bytes between any two, known to all; whole elements of `element` bytes.
    ///
    /// # Errors
    /// More processes than a slot has room for, or longer elements.
    #[inline(always)]
    pub(crate) fn known(me: &Member, most: u64, element: u64, own: bool) -> Result<(Way, Self), Refusal> {
        let stride = most.next_multiple_of(8);
        if stride.checked_mul(Self::count(me, own)).is_some_and(|all| all <= LINE_PAYLOAD) {
            return Ok((Way::Lines, Self { stride, header: 0, own, cut: Cut { fragment: stride.max(1) } }));
        }
        Self::queued(me, most, element, own)
    }

    /// The same, through the queues whatever the length.
    ///
    /// # Errors
    /// As [`Self::known`].
    #[inline(always)]
    pub(crate) fn queued(me: &Member, most: u64, element: u64, own: bool) -> Result<(Way, Self), Refusal> {
        let stride = Self::stride(Way::Queues.room(me), me, own, 16)?;
        let cut = Cut::whole(most, stride, element)?;
        Ok((Way::Queues, Self { stride, header: 0, own, cut }))
    }

    /// Messages whose lengths only writer and reader know: in slots, and how they would lie in a line.
    ///
    /// # Errors
    /// More processes than a slot has room for.
    #[inline(always)]
    pub(crate) fn unknown(me: &Member) -> Result<(Self, Option<Self>), Refusal> {
        let of = |stride, header| Self { stride, header, own: false, cut: Cut { fragment: stride - header } };
        let stride = Self::stride(Way::Queues.room(me), me, false, 32)?;
        let line = LINE_PAYLOAD / Self::count(me, false) / 8 * 8;
        Ok((of(stride, if stride < 1024 { 16 } else { 64 }), (line >= 16).then(|| of(line, 8))))
    }

    #[inline(always)]
    fn count(me: &Member, own: bool) -> u64 {
        u64::from(if own { me.size() } else { (me.size() - 1).max(1) })
    }

    #[inline(always)]
    fn stride(room: u64, me: &Member, own: bool, least: u64) -> Result<u64, Refusal> {
        let count = Self::count(me, own);
        Refusal::check(Argument::Ranks, count, Bound::AtMost(room / least))?;
        let stride = room / count;
        Ok(stride - stride % if stride < 64 { 16 } else { 64 })
    }

    /// The piece of a reader, with its header.
    #[inline]
    fn whole(&self, place: Extent, (writer, reader): Pair) -> Extent {
        let index = reader - u32::from(!self.own && reader > writer);
        place.part(u64::from(index) * self.stride, self.stride)
    }

    /// The piece of a reader, behind its header.
    #[inline]
    pub(crate) fn of(&self, place: Extent, pair: Pair) -> Extent {
        self.whole(place, pair).part(self.header, self.stride)
    }

    /// Writes the piece of `tick`.
    ///
    /// # Safety
    /// As [`put`].
    #[inline]
    pub(crate) unsafe fn put<R: Region>(&self, region: &R, place: Extent, pair: Pair, tick: u64, data: &Data<'_>) {
        if self.header > 0 && tick == 0 {
            let len = data.len().to_ne_bytes();
            // SAFETY: the caller's promise for the place; the number is ours.
            unsafe { region.write(self.whole(place, pair).part(0, 8), Buf::of(&len)) };
        }
        // SAFETY: the caller's promise.
        unsafe { put(region, self.of(place, pair), data, self.cut.part(data.len(), tick)) }
    }

    /// Copies the piece of `tick` to `data`.
    ///
    /// # Errors
    /// The writer has another length for it.
    ///
    /// # Safety
    /// As [`get`].
    #[inline]
    pub(crate) unsafe fn get<R: Region>(
        &self,
        region: &R,
        place: Extent,
        pair: Pair,
        tick: u64,
        data: &Data<'_>,
    ) -> Result<(), PollError> {
        if self.header > 0 && tick == 0 {
            let mut found = [0; 8];
            // SAFETY: the caller's promise; the array is ours.
            unsafe { region.read(self.whole(place, pair).part(0, 8), Buf::of_mut(&mut found)) };
            let (found, bytes) = (u64::from_ne_bytes(found), data.len());
            if found != bytes {
                let refusal = Refusal::new(Argument::Bytes, bytes, Bound::Equals(found));
                return Err(PollError::Mismatch { peer: pair.0, refusal });
            }
        }
        // SAFETY: the caller's promise.
        unsafe { get(region, self.of(place, pair), data, self.cut.part(data.len(), tick)) };
        Ok(())
    }
}

/// Who knows how long messages are, and where their pieces lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lengths {
    /// All know that all have this length.
    Known { bytes: u64, pieces: Pieces },
    /// Writer and reader each know theirs: pieces are in the writer's line, if all of its own fit there.
    Unknown {
        slots: Pieces,
        line: Option<Pieces>,
        /// Are this process's pieces in its line; are those of the peer that was heard last?
        mine: bool,
        theirs: bool,
    },
}

impl Lengths {
    /// Messages of `bytes` between any two.
    ///
    /// # Errors
    /// More processes than a slot has room for.
    #[inline(always)]
    pub(crate) fn known(me: &Member, bytes: u64) -> Result<(Way, Self), Refusal> {
        let (way, pieces) = Pieces::known(me, bytes, 1, false)?;
        Ok((way, Self::Known { bytes, pieces }))
    }

    /// Messages of this process of at most `most` bytes.
    ///
    /// # Errors
    /// More processes than a slot has room for.
    #[inline(always)]
    pub(crate) fn unknown(me: &Member, most: u64) -> Result<Self, Refusal> {
        let (slots, line) = Pieces::unknown(me)?;
        let mine = line.is_some_and(|line| most <= line.cut.fragment);
        Ok(Self::Unknown { slots, line, mine, theirs: false })
    }

    /// How messages are cut that do not fit a line; those that do are one fragment either way.
    #[inline(always)]
    pub(crate) const fn cut(&self) -> Cut {
        match self {
            Self::Known { pieces, .. } => pieces.cut,
            Self::Unknown { slots, .. } => slots.cut,
        }
    }

    /// What the line says.
    pub(crate) fn announced(&self) -> u64 {
        match self {
            Self::Known { bytes, .. } => *bytes,
            Self::Unknown { mine, .. } => u64::from(*mine),
        }
    }

    /// What `peer`'s line says.
    ///
    /// # Errors
    /// Another length, or no place that this segment has.
    pub(crate) fn heard(&mut self, peer: Rank, announced: u64) -> Result<(), PollError> {
        let bound = match self {
            Self::Known { bytes, .. } if announced == *bytes => return Ok(()),
            Self::Known { bytes, .. } => {
                let refusal = Refusal::new(Argument::Bytes, *bytes, Bound::Equals(announced));
                return Err(PollError::Mismatch { peer, refusal });
            }
            Self::Unknown { line, theirs, .. } => {
                *theirs = announced == 1;
                u64::from(line.is_some())
            }
        };
        Refusal::check(Argument::Bytes, announced, Bound::AtMost(bound))
            .map(|_| ())
            .map_err(|refusal| PollError::Mismatch { peer, refusal })
    }

    /// Are this process's pieces, or those of the peer that was heard last, in the line?
    pub(crate) const fn in_line(&self, own: bool) -> bool {
        matches!((self, own), (Self::Unknown { mine: true, .. }, true) | (Self::Unknown { theirs: true, .. }, false))
    }

    /// Those pieces, in `tick`.
    pub(crate) fn pieces(&self, own: bool, tick: u64) -> Pieces {
        match *self {
            Self::Known { pieces, .. } => pieces,
            Self::Unknown { line: Some(line), .. } if tick == 0 && self.in_line(own) => line,
            Self::Unknown { slots, .. } => slots,
        }
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
