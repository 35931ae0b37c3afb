//! Exchange (ours): every process posts fragments, and takes the fragments of those that it needs.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `line(r, n)` | r | who takes from r in operation n | n; published data: the head, and the first fragment |
//! | `ready(r)` | r | who takes from r | r has posted its fragments below this |
//! | `taken(r)` | r | whoever posts | r is done with everyone's fragments below this |
//!
//! An operation is a row of ticks. In each, a process posts its fragment, if its [`Plan`] has one, and then
//! takes the fragments of others, one after the other, as the plan says. It is half a queue ahead with what it
//! posts: who shares a core with others does much in its turn. The fragment of tick k lies in the slot
//! of clock `base + k`, which all queues share, of its writer's queue: it may be written when all have taken
//! what it held before. Where one process alone posts, for one reader in each tick, it goes on in the
//! readers' queues when its own is full, so that much is posted before readers must come. The first tick is announced
//! by the line, whose head names collective and length; where everything fits into lines they are the slots, and the
//! only tick needs no queue. Where lengths are not known to all, each writer chooses: what fits its line travels there.
//!
//! A collective is a plan: which bytes go into a fragment, and what happens to those of others.

use super::line::{self, Body};
use super::pieces::{Pair, Way};
use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Operation;
use crate::region::layout::LINE_PAYLOAD;
use crate::region::{Extent, Flag, Region};
use crate::step::{Awaits, Step, Until};
use core::hash::Hash;

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

    /// Must the line of who is taken from be heard in `tick`?
    #[inline]
    fn hears(&self, tick: u64) -> bool {
        tick == 0
    }

    /// The tick whose slot has `writer`'s fragment of `tick`, where others need the queues; `None`: its line has. Asked
    /// of this process, and of the peer whose line was heard last.
    #[inline]
    fn slot(&self, tick: u64, _writer: Rank) -> Option<u64> {
        Some(tick)
    }

    /// Has this process a fragment in `tick`? In tick 0: does anyone wait for its line?
    fn posts(&self, tick: u64) -> bool;

    /// If one process alone posts, for one partner in each tick but the first: in how many ticks each one's turn comes
    /// again, an odd number. Then it may write to the partners' queues.
    #[inline]
    fn alone(&self) -> Option<u64> {
        None
    }

    /// Ticks below this must have been taken before this process's fragment of `tick` can be written; at most `tick`.
    #[inline]
    fn follows(&self, _tick: u64) -> u64 {
        0
    }

    /// Whom this process takes from at all: nobody's fragments are its own business if false.
    fn takes_any(&self) -> bool;

    /// Does it take `peer`'s fragment of `tick`? `peer` may be this process.
    fn takes(&self, tick: u64, peer: Rank) -> bool;

    /// The tick behind `tick` in which this process may have anything to do.
    #[inline]
    fn next(&self, tick: u64) -> u64 {
        tick + 1
    }

    /// Who alone takes and is taken from in `tick`; `None`: everyone, each in its turn.
    #[inline]
    fn partner(&self, _tick: u64) -> Option<Rank> {
        None
    }

    /// Whose turn is the `index`-th in a tick, of `size` processes. Default: this process, while the others post; then they
    /// from the next rank on, so that not all begin with the same one.
    #[inline]
    fn turn(&self, me: Rank, size: u32, index: u32) -> Rank {
        let next = u64::from(me) + u64::from(index);
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
    /// Fragments of ticks below this are posted.
    posted: u64,
    /// The tick that is taken.
    tick: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Enter,
    Post,
    /// Turns of the tick that are over; the line of whose turn it is was heard.
    Take {
        turns: u32,
        heard: bool,
    },
    Done,
}

impl<P: Plan> Exchange<P> {
    /// All processes give the same `way` and the same `advance`: at least everyone's ticks.
    #[inline(always)]
    pub(crate) fn new(way: Way, advance: u64, plan: P) -> Self {
        let advance = if way == Way::Queues { advance } else { 0 };
        Self { operation: 0, way, base: 0, advance, plan, posted: 0, tick: 0, state: State::Done }
    }

    /// The tick in whose slot `rank`'s fragment of `tick` lies; `None`: in its line.
    #[inline]
    fn slot(&self, tick: u64, rank: Rank) -> Option<u64> {
        if self.way == Way::Lines { None } else { self.plan.slot(tick, rank) }
    }

    /// Where `writer`'s fragment of `tick` for `reader` lies.
    #[inline]
    fn place(&self, me: &Member, tick: u64, (writer, reader): Pair) -> Extent {
        match self.slot(tick, writer) {
            None => me.layout().line_body(writer, self.operation, 8 + LINE_PAYLOAD).part(8, LINE_PAYLOAD),
            Some(tick) if self.beyond(me, tick).is_some() => me.layout().slot(reader, self.base + tick),
            Some(tick) => me.layout().slot(writer, self.base + tick),
        }
    }

    /// If the writer's own queue is full with what is before `tick`, so that it goes on in its readers' queues: the ticks
    /// until it comes to the same slot again, when all slots, a power of two, have been through all turns.
    #[inline]
    fn beyond(&self, me: &Member, tick: u64) -> Option<u64> {
        let slots = u64::from(me.layout().params().queue_slots);
        self.plan.alone().filter(|_| tick >= slots).map(|turns| slots * turns)
    }

    /// Posts this tick's fragment, and those of later ticks up to half a queue: no process waits for one that is not
    /// as far as itself, since a slot's last fragment is taken by who has come to this tick.
    #[inline]
    fn post_ahead<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Awaits> {
        let ahead = u64::from(me.layout().params().queue_slots / 2).max(1);
        let end = self.plan.ticks().min(self.tick + ahead);
        while self.posted < end && self.plan.follows(self.posted) <= self.tick {
            if self.plan.posts(self.posted) {
                self.post(region, me, self.posted)?;
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
        if self.slot(tick, me.rank()).is_some() {
            match self.beyond(me, tick) {
                // What a reader's queue held before this operation is not known here.
                Some(round) => {
                    let needed = self.base.max((clock + 1).saturating_sub(round));
                    me.all_taken(region, self.operation, clock, needed)?;
                }
                None => me.take_slot(region, self.operation, clock)?,
            }
        }
        let reader = self.plan.partner(tick).unwrap_or(me.rank());
        let place = self.place(me, tick, (me.rank(), reader));
        // SAFETY: R10 (checked as S2), the line is free, and everyone has taken the slot's last fragment, this process
        // too: it takes nothing, or posts less than a queue ahead of what it takes. The data is as the plan's constructor was promised.
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

    /// Hears `peer`'s line, if this tick needs it.
    #[inline]
    fn hear<R: Region>(&mut self, region: &R, me: &Member, peer: Rank) -> Result<Option<Awaits>, PollError> {
        if !self.plan.hears(self.tick) {
            return Ok(None);
        }
        match line::hear_head(region, me, peer, self.operation, self.plan.kind())? {
            Ok(announced) => self.plan.heard(peer, announced).map(|()| None),
            Err(wait) => Ok(Some(wait)),
        }
    }

    /// What to wait for if `peer`'s fragment of this tick is in its queue, not yet posted.
    #[inline]
    fn unposted<R: Region>(&self, region: &R, me: &Member, peer: Rank) -> Option<Awaits> {
        // A first fragment travels with the line.
        let Some(tick @ 1..) = self.slot(self.tick, peer) else { return None };
        let (flag, bound) = (me.layout().ready(peer), self.base + tick + 1);
        // pairs with: post
        let posted = region.flag(flag).load_acquire().at_least(bound);
        (!posted).then_some(Awaits::flag(flag, Until::AtLeast(bound), peer, self.operation))
    }

    /// Takes from the turn on at which this tick stands.
    #[inline]
    fn take<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        (turns, mut heard): (u32, bool),
    ) -> Result<Option<Awaits>, PollError> {
        let alone = self.plan.partner(self.tick);
        for index in turns..if alone.is_some() { 1 } else { me.size() } {
            let peer = alone.unwrap_or_else(|| self.plan.turn(me.rank(), me.size(), index));
            if !self.plan.takes(self.tick, peer) {
                continue;
            }
            if peer != me.rank() {
                let unheard = if heard { None } else { self.hear(region, me, peer)? };
                heard = unheard.is_none();
                if let Some(wait) = unheard.or_else(|| self.unposted(region, me, peer)) {
                    self.state = State::Take { turns: index, heard };
                    return Ok(Some(wait));
                }
            }
            let place = self.place(me, self.tick, (peer, me.rank()));
            // SAFETY: S3, heard, and reused only after our `taken` or `done`, which come later; the data is as the plan's
            // constructor was promised.
            unsafe { self.plan.take(region, place, self.tick, peer) }?;
            heard = false;
        }
        Ok(None)
    }
}

impl<P: Plan> Operation for Exchange<P> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        (self.operation, self.base) = (me.begin(self.plan.kind()), me.take_clock(self.advance));
        (self.posted, self.tick, self.state) = (0, 0, State::Enter);
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Step, PollError> {
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
                    if let Err(wait) = self.post_ahead(region, me) {
                        return Ok(Step::Wait(wait));
                    }
                    self.state = State::Take { turns: 0, heard: false };
                }
                State::Take { turns, heard } => {
                    if let Some(wait) = self.take(region, me, (turns, heard))? {
                        return Ok(Step::Wait(wait));
                    }
                    self.tick = self.plan.next(self.tick).min(self.plan.ticks());
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

#[cfg(test)]
mod tests;
