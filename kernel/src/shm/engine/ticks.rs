//! An operation as a row of ticks (ours): every process posts fragments, and takes the fragments of those that it needs.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `line(r, n)` | r | who takes from r in operation n | n; published data: the head, and the first fragment |
//! | `ready(r)` | r | who takes from r | r has posted its fragments below this |
//! | `taken(r)` | r | whoever posts | r is done with everyone's fragments below this |
//!
//! In each tick a process posts its fragment, if it has one, and then takes those of others. It is half a queue ahead with
//! what it posts: who shares a core with others does much in its turn. The fragment of tick k lies in the slot of clock
//! `base + k`, which all queues share, of a queue: it may be written when all have taken what it held before. The first
//! tick is announced by the line, whose head names collective and length; where everything fits into lines they are the
//! slots, and the only tick needs no queue.
//!
//! Whose fragments a process takes, and where they lie, is its [`Engine`]'s affair: a message to all
//! ([`exchange`](super::exchange)), or a block for each pair ([`pairwise`](super::pairwise)).

use super::line::{self, Body};
use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::PollError;
use crate::machine::step::{Awaits, Step, Until};
use crate::machine::{Operation, over};
use crate::region::layout::LINE_PAYLOAD;
use crate::region::{Extent, Flag, Region};
use core::hash::Hash;

/// Which operation it is, and where its ticks lie on the fragment clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clock {
    operation: u64,
    /// The clock of tick 0.
    base: u64,
    /// What it has advanced by for all when the operation is done; 0: no queue is used.
    advance: u64,
}

impl Clock {
    /// The operation's number.
    #[inline]
    pub(crate) const fn operation(&self) -> u64 {
        self.operation
    }

    /// The clock at a tick.
    #[inline]
    pub(crate) const fn at(&self, tick: u64) -> u64 {
        self.base + tick
    }

    /// What the clock advances by.
    #[cfg(test)]
    pub(super) const fn advance(&self) -> u64 {
        self.advance
    }

    /// The place in `writer`'s line.
    #[inline]
    pub(crate) const fn line(&self, me: &Member, writer: Rank) -> Extent {
        me.layout().line_body(writer, self.operation, 8 + LINE_PAYLOAD).part(8, LINE_PAYLOAD)
    }

    /// The slot of `tick` in a queue.
    #[inline]
    pub(crate) fn slot(&self, me: &Member, queue: Rank, tick: u64) -> Extent {
        me.layout().slot(queue, self.at(tick))
    }

    /// Publishes the fragment of `tick`, which is written: the first by the line, which says what is announced of its length.
    #[inline]
    pub(crate) fn publish<R: Region>(&self, region: &R, me: &Member, (kind, announced): (Kind, u64), tick: u64) {
        if tick == 0 {
            line::post(region, me, self.operation, (kind, announced), &mut Body::new(), 0);
        } else {
            // publishes: the fragment of this tick, read after ready > clock
            region.publish(me.layout().ready(me.rank()), self.at(tick) + 1);
        }
    }

    /// What to wait for before `peer`'s fragment, whose line was heard, is there: nothing where the line published it.
    #[inline]
    pub(crate) fn unpublished<R: Region>(&self, region: &R, me: &Member, peer: Rank, tick: u64) -> Option<Awaits> {
        if tick == 0 {
            return None;
        }
        let (flag, bound) = (me.layout().ready(peer), self.at(tick) + 1);
        // pairs with: publish
        let published = region.flag(flag).load_acquire().at_least(bound);
        (!published).then_some(Awaits::flag(flag, Until::AtLeast(bound), peer, self.operation))
    }
}

/// How far a process has come with what it takes in one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Taking {
    /// The first of its peers, in the order in which it takes from them, from which it has not taken.
    pub(crate) index: u32,
    /// That one's line was heard.
    pub(crate) heard: bool,
    /// It has taken from another process.
    pub(crate) any: bool,
}

/// What one process posts and takes: plain data, made of what all know alike where others depend on it.
pub trait Engine: Clone + Eq + Hash {
    /// Which collective this is: a line of another one is refused.
    fn kind(&self) -> Kind;

    /// Ticks of this process: one at least, and no more than the clock advances by.
    fn ticks(&self) -> u64;

    /// Whether this process takes from any other at all.
    fn takes_any(&self) -> bool;

    /// The tick behind `tick` in which this process may have anything to do.
    fn next(&self, tick: u64) -> u64;

    /// If this process has a fragment in `tick`: the ticks below this must have been taken before, `tick` at most.
    fn posts(&self, tick: u64) -> Option<u64>;

    /// Becomes as it was built.
    fn restart(&mut self);

    /// Writes this process's fragment of `tick`, and publishes it.
    ///
    /// # Errors
    /// Its place is not free: what to wait for.
    fn post<R: Region>(&mut self, region: &R, me: &mut Member, clock: &Clock, tick: u64) -> Result<(), Awaits>;

    /// Takes the fragments of `tick`, from where `taking` stands. What is to be waited for, if it does not come to the end.
    ///
    /// # Errors
    /// A peer's line or fragment does not agree with what this process knows.
    fn take<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        clock: &Clock,
        tick: u64,
        taking: &mut Taking,
    ) -> Result<Option<Awaits>, PollError>;
}

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ticks<E> {
    pub(super) clock: Clock,
    pub(super) engine: E,
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
    Take(Taking),
    Done,
}

impl<E: Engine> Ticks<E> {
    /// All processes give the same `advance`: at least everyone's ticks, or 0 where no queue is used.
    #[inline(always)]
    pub(super) const fn new(advance: u64, engine: E) -> Self {
        Self { clock: Clock { operation: 0, base: 0, advance }, engine, posted: 0, tick: 0, state: State::Done }
    }

    /// Posts this tick's fragment, and those of later ticks up to half a queue: no process waits for one that is not
    /// as far as itself, since a slot's last fragment is taken by who has come to this tick.
    #[inline]
    fn post_ahead<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Awaits> {
        let ahead = u64::from(me.layout().params().queue_slots / 2).max(1);
        let end = self.engine.ticks().min(self.tick + ahead);
        while self.posted < end {
            match self.engine.posts(self.posted) {
                Some(after) if after > self.tick => break,
                Some(_) => self.engine.post(region, me, &self.clock, self.posted)?,
                None => {}
            }
            self.posted += 1;
        }
        Ok(())
    }
}

impl<E: Engine> Operation for Ticks<E> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        let advance = self.clock.advance;
        self.clock = Clock { operation: me.begin(self.engine.kind()), base: me.take_clock(advance), advance };
        (self.posted, self.tick, self.state) = (0, 0, State::Enter);
        self.engine.restart();
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Step, PollError> {
        let Clock { operation, base, advance } = self.clock;
        let queues = advance > 0;
        loop {
            match self.state {
                State::Enter => {
                    if queues && !self.engine.takes_any() {
                        // Nobody needs to wait for who takes nothing.
                        me.taken(region, base + advance);
                    }
                    self.state = State::Post;
                }
                State::Post if self.tick == self.engine.ticks() => {
                    if queues && self.engine.takes_any() {
                        me.taken(region, base + advance);
                    }
                    me.finish(region, operation);
                    self.state = State::Done;
                }
                State::Post => {
                    if let Err(wait) = self.post_ahead(region, me) {
                        return Ok(Step::Wait(wait));
                    }
                    self.state = State::Take(Taking::default());
                }
                State::Take(mut taking) => {
                    if let Some(wait) = self.engine.take(region, me, &self.clock, self.tick, &mut taking)? {
                        self.state = State::Take(taking);
                        return Ok(Step::Wait(wait));
                    }
                    self.tick = self.engine.next(self.tick).min(self.engine.ticks());
                    if queues && self.engine.takes_any() && self.tick < self.engine.ticks() {
                        me.taken(region, base + self.tick);
                    }
                    self.state = State::Post;
                }
                State::Done => return over(operation),
            }
        }
    }
}
