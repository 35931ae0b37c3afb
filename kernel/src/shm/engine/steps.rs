//! An operation as a row of steps (ours): every process posts fragments, and takes the fragments of those that it needs.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `line(r, n)` | r | who takes from r in operation n | n; published data: the head, and the first fragment |
//! | `ready(r)` | r | who takes from r | r has posted its fragments below this |
//! | `acked(r)` | r | whoever posts | r is done with everyone's fragments below this |
//!
//! In each step a process posts its fragment, if it has one, and then takes those of others. It is half a queue ahead with
//! what it posts: who shares a core with others does much in its turn. The fragment of step k lies in the slot of clock
//! `base + k`, which all queues share, of a queue: it may be written when all have taken what it held before. The first
//! step is announced by the line, whose head names collective and length; where everything fits into lines they are the
//! slots, and the only step needs no queue.
//!
//! Whose fragments a process takes, and where they lie, is its [`Engine`]'s affair: a message to all
//! ([`exchange`](super::exchange)), or a block for each pair ([`pairwise`](super::pairwise)).

use super::line::{self, Body};
use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::PollError;
use crate::machine::poll::{Poll, Until, WaitSet};
use crate::machine::{Operation, over};
use crate::region::layout::LINE_PAYLOAD;
use crate::region::{Extent, Flag, Region};
use core::hash::Hash;

/// Which operation it is, and where its steps lie on the fragment clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clock {
    operation: u64,
    /// The clock of step 0.
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

    /// The clock at a step.
    #[inline]
    pub(crate) const fn at(&self, step: u64) -> u64 {
        self.base + step
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

    /// The slot of `step` in a queue.
    #[inline]
    pub(crate) fn slot(&self, me: &Member, queue: Rank, step: u64) -> Extent {
        me.layout().slot(queue, self.at(step))
    }

    /// Publishes the fragment of `step`, which is written: the first by the line, which says what is announced of its length.
    #[inline]
    pub(crate) fn publish<R: Region>(&self, region: &R, me: &Member, (kind, announced): (Kind, u64), step: u64) {
        if step == 0 {
            line::publish(region, me, self.operation, (kind, announced), &mut Body::new(), 0);
        } else {
            // publishes: the fragment of this step, read after ready > clock
            region.publish(me.layout().ready(me.rank()), self.at(step) + 1);
        }
    }

    /// What to wait for before `peer`'s fragment, whose line was received, is there: nothing where the line published it.
    #[inline]
    pub(crate) fn unpublished<R: Region>(&self, region: &R, me: &Member, peer: Rank, step: u64) -> Option<WaitSet> {
        if step == 0 {
            return None;
        }
        let (flag, bound) = (me.layout().ready(peer), self.at(step) + 1);
        // pairs with: publish
        let published = region.flag(flag).load_acquire().at_least(bound);
        (!published).then_some(WaitSet::flag(flag, Until::AtLeast(bound), peer, self.operation))
    }
}

/// How far a process has come with what it takes in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Taking {
    /// The first of its peers, in the order in which it takes from them, from which it has not taken.
    pub(crate) index: u32,
    /// That one's line was received.
    pub(crate) received: bool,
    /// It has taken from another process.
    pub(crate) any: bool,
}

/// What one process posts and takes: plain data, made of what all know alike where others depend on it.
pub trait Engine: Clone + Eq + Hash {
    /// Which collective this is: a line of another one is refused.
    fn kind(&self) -> Kind;

    /// Steps of this process: one at least, and no more than the clock advances by.
    fn steps(&self) -> u64;

    /// Whether this process takes from any other at all.
    fn takes_any(&self) -> bool;

    /// The step behind `step` in which this process may have anything to do.
    fn next(&self, step: u64) -> u64;

    /// If this process has a fragment in `step`: the steps below this must have been taken before, `step` at most.
    fn posts(&self, step: u64) -> Option<u64>;

    /// Becomes as it was built.
    fn restart(&mut self);

    /// Writes this process's fragment of `step`, and publishes it.
    ///
    /// # Errors
    /// Its place is not free: what to wait for.
    fn post<R: Region>(&mut self, region: &R, me: &mut Member, clock: &Clock, step: u64) -> Result<(), WaitSet>;

    /// Takes the fragments of `step`, from where `taking` stands. What is to be waited for, if it does not come to the end.
    ///
    /// # Errors
    /// A peer's line or fragment does not agree with what this process knows.
    fn take<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        clock: &Clock,
        step: u64,
        taking: &mut Taking,
    ) -> Result<Option<WaitSet>, PollError>;
}

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Steps<E> {
    pub(super) clock: Clock,
    pub(super) engine: E,
    /// Fragments of steps below this are posted.
    posted: u64,
    /// The step that is taken.
    step: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Enter,
    Publish,
    Take(Taking),
    Done,
}

impl<E: Engine> Steps<E> {
    /// All processes give the same `advance`: at least everyone's steps, or 0 where no queue is used.
    #[inline(always)]
    pub(super) const fn new(advance: u64, engine: E) -> Self {
        Self { clock: Clock { operation: 0, base: 0, advance }, engine, posted: 0, step: 0, state: State::Done }
    }

    /// Posts this step's fragment, and those of later steps up to half a queue: no process waits for one that is not
    /// as far as itself, since a slot's last fragment is taken by who has come to this step.
    #[inline]
    fn post_ahead<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), WaitSet> {
        let ahead = u64::from(me.layout().params().queue_slots / 2).max(1);
        let end = self.engine.steps().min(self.step + ahead);
        while self.posted < end {
            match self.engine.posts(self.posted) {
                Some(after) if after > self.step => break,
                Some(_) => self.engine.post(region, me, &self.clock, self.posted)?,
                None => {}
            }
            self.posted += 1;
        }
        Ok(())
    }
}

impl<E: Engine> Operation for Steps<E> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        let advance = self.clock.advance;
        self.clock = Clock { operation: me.begin(self.engine.kind()), base: me.take_clock(advance), advance };
        (self.posted, self.step, self.state) = (0, 0, State::Enter);
        self.engine.restart();
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let Clock { operation, base, advance } = self.clock;
        let queues = advance > 0;
        loop {
            match self.state {
                State::Enter => {
                    if queues && !self.engine.takes_any() {
                        // Nobody needs to wait for who takes nothing.
                        me.acknowledge(region, base + advance);
                    }
                    self.state = State::Publish;
                }
                State::Publish if self.step == self.engine.steps() => {
                    if queues && self.engine.takes_any() {
                        me.acknowledge(region, base + advance);
                    }
                    me.finish(region, operation);
                    self.state = State::Done;
                }
                State::Publish => {
                    if let Err(wait) = self.post_ahead(region, me) {
                        return Ok(Poll::Wait(wait));
                    }
                    self.state = State::Take(Taking::default());
                }
                State::Take(mut taking) => {
                    if let Some(wait) = self.engine.take(region, me, &self.clock, self.step, &mut taking)? {
                        self.state = State::Take(taking);
                        return Ok(Poll::Wait(wait));
                    }
                    self.step = self.engine.next(self.step).min(self.engine.steps());
                    if queues && self.engine.takes_any() && self.step < self.engine.steps() {
                        me.acknowledge(region, base + self.step);
                    }
                    self.state = State::Publish;
                }
                State::Done => return over(operation),
            }
        }
    }
}
