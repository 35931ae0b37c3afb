//! The loop of both engines (ours): an operation is a row of steps, in which a process posts fragments and takes
//! those of others.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `line(r, n)` | r | ranks that take from r in operation n | n; published data: the head, and the first fragment |
//! | `ready(r)` | r | ranks that take from r | r has posted its fragments below this |
//! | `acked(r)` | r | ranks that post | r needs no fragment below this any more, of any rank; published data: what r has folded into its own |
//!
//! In each step a process posts its fragment, if it has one, and then takes those of others. It posts up to half a
//! [lap](super::laps) of its queue ahead of what it takes: where several ranks share a core, each does more before the next one runs. All ranks
//! share one fragment clock. The fragment of step k lies in the slot of clock `base + k` of a queue, which may be
//! written when all ranks have taken the slot's last fragment. The line announces step 0: its head names the
//! collective and the length. Where all messages fit into lines, the lines take the place of the slots: there is one
//! step, and no queue is used. A process whose messages are all whole in one step, in lines or slots, goes through a shorter loop,
//! `in_one_step`.
//!
//! A process that [lends](super::loans) its message posts no fragments, unless a reader wants them, and waits at the
//! operation's end until all have taken what they need.
//!
//! The [`Engine`] says from which ranks a process takes fragments, and where these lie: for messages to all ranks
//! ([`exchange`](super::exchange)), or for a block of each pair of ranks ([`pairwise`](super::pairwise)).

use super::cut::Span;
use super::laps;
use super::line::{self, Body, Heading};
use super::loans::{self, Borrowers, Loans};
use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::PollError;
use crate::machine::poll::{Halt, Poll, Until, WaitSet};
use crate::machine::{Operation, over};
use crate::region::layout::LINE_PAYLOAD;
use crate::region::{Extent, Flag, FlagId, Lap, Region};
use core::hash::Hash;

/// The operation's number, and where its steps lie on the fragment clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clock {
    operation: u64,
    /// The fragment clock at step 0.
    base: u64,
    span: Span,
}

impl Clock {
    /// The operation's number.
    #[inline]
    pub(crate) const fn operation(&self) -> u64 {
        self.operation
    }

    /// The fragment clock at a step.
    #[inline]
    pub(crate) const fn at(&self, step: u64) -> u64 {
        self.base + step
    }

    /// The clock values that this operation takes.
    #[cfg(test)]
    pub(super) const fn advance(&self) -> u64 {
        self.span.advance
    }

    /// The payload of `writer`'s line.
    #[inline]
    pub(crate) const fn line(&self, me: &Member, writer: Rank) -> Extent {
        me.layout().line_body(writer, self.operation, 8 + LINE_PAYLOAD).part(8, LINE_PAYLOAD)
    }

    /// Where the fragment of `step` lies in a queue, which its writer passes through in such a `lap`.
    #[inline]
    pub(crate) fn fragment(&self, me: &Member, queue: Rank, step: u64, lap: Lap) -> Extent {
        me.layout().in_slot(queue, self.at(step), self.span.bytes, lap)
    }

    /// Posts the line, which publishes what was written for step 0: the fragment, or `lent`, the words of a loan. `None`:
    /// the line's payload has the fragment.
    #[inline]
    pub(crate) fn post_line<R: Region>(
        &self,
        region: &R,
        me: &Member,
        heading: Heading,
        lent: Option<[u64; loans::WORDS]>,
    ) {
        match lent {
            Some(words) => laps::post(region, me, self.operation, heading, words),
            None => line::publish(region, me, self.operation, heading, &mut Body::new(), 0),
        }
    }

    /// Publishes this process's fragment of `step`, which the line has not published.
    #[inline]
    pub(crate) fn publish<R: Region>(&self, region: &R, me: &Member, step: u64) {
        // publishes: the fragment of this step, read after ready > clock
        region.publish(me.layout().ready(me.rank()), self.at(step) + 1);
    }

    /// Is `peer`'s fragment of `step` published? Its line was received: where it has the fragment, it is. `late`: the
    /// fragment was lent first.
    ///
    /// # Errors
    /// Not yet: what to wait for.
    #[inline]
    pub(crate) fn published<R: Region>(
        &self,
        region: &R,
        me: &Member,
        peer: Rank,
        step: u64,
        late: bool,
    ) -> Result<(), Halt> {
        if step == 0 && !late {
            return Ok(());
        }
        // pairs with: publish
        self.beyond(region, me.layout().ready(peer), peer, step)
    }

    /// Has `peer` taken the fragments of `step`? Then what it has folded into its own one is complete.
    ///
    /// # Errors
    /// Not yet: what to wait for.
    #[inline]
    pub(crate) fn acknowledged<R: Region>(&self, region: &R, me: &Member, peer: Rank, step: u64) -> Result<(), Halt> {
        // pairs with: acknowledge
        self.beyond(region, me.layout().acked(peer), peer, step)
    }

    /// Is `flag`, of `peer`, beyond `step` on the fragment clock?
    ///
    /// # Errors
    /// Not yet: what to wait for.
    #[inline]
    fn beyond<R: Region>(&self, region: &R, flag: FlagId, peer: Rank, step: u64) -> Result<(), Halt> {
        let bound = self.at(step) + 1;
        if region.flag(flag).load_acquire().at_least(bound) {
            return Ok(());
        }
        Err(Halt::Wait(WaitSet::flag(flag, Until::AtLeast(bound), peer, self.operation)))
    }
}

/// How much of one step's fragments a process has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Taking {
    /// Index of the first peer from which it has not taken, in the order in which it takes from them.
    pub(crate) index: u32,
    /// Was that peer's line received?
    pub(crate) received: bool,
    /// Was it looked whether that peer lends the fragment? A poll that waits for the fragment does not look again.
    pub(crate) looked: bool,
    /// Does that peer lend it?
    pub(crate) lent: bool,
    /// Has it taken from another process in this step?
    pub(crate) any: bool,
}

impl Taking {
    /// The fragment of the peer at `index` is taken.
    #[inline(always)]
    pub(crate) const fn taken(index: u32) -> Self {
        Self { index, received: false, looked: false, lent: false, any: true }
    }
}

/// What one process posts and takes, as plain data. What other processes rely on is computed from values that all
/// ranks know.
pub trait Engine: Clone + Eq + Hash {
    /// Which collective this is: a line of another one is refused.
    fn kind(&self) -> Kind;

    /// Number of steps of this process: at least 1, and at most what the clock advances by.
    fn steps(&self) -> u64;

    /// Does this process take a fragment from any other in this operation?
    fn takes_any(&self) -> bool;

    /// The next step after `step` in which this process may take something.
    fn next(&self, step: u64) -> u64;

    /// `None` if this process posts nothing in `step`. `Some(n)`, with n ≤ `step`: it posts a fragment, once it has
    /// taken the fragments of all steps below n.
    fn posts(&self, step: u64) -> Option<u64>;

    /// The step in whose slot the fragment of `step` lies: this one, or an earlier one, whose fragment is complete now.
    #[inline(always)]
    fn slot(&self, step: u64) -> u64 {
        step
    }

    /// Returns to the state in which it was built, for the next operation.
    fn restart(&mut self);

    /// Writes this process's fragment of `step`, and publishes it; or lends its message, in step 0.
    ///
    /// # Errors
    /// The fragment's place is not free yet; the error says what to wait for.
    fn post<R: Region>(
        &mut self,
        region: &R,
        me: &mut Member,
        clock: &Clock,
        step: u64,
        loans: &mut Loans,
    ) -> Result<(), WaitSet>;

    /// Are all messages that this process sends or takes in lines, as far as it knows?
    fn all_in_lines(&self, me: &Member) -> bool;

    /// Where [they are](Self::all_in_lines): posts this process's line, if others take its message.
    ///
    /// # Errors
    /// The line is not free yet: what to wait for.
    fn post_line<R: Region>(&mut self, region: &R, me: &mut Member, clock: &Clock) -> Result<(), WaitSet>;

    /// Has this process one step, in which all messages that it sends or takes are whole, in lines or slots, as far as it knows?
    fn has_one_step(&self) -> bool;

    /// Where it has: takes the messages of others from their lines, and unless `LINES` from their slots, in its order, from the
    /// rank at `index` on. Returns whether it has taken one of another process. `None`: the line of the rank at `index` has come,
    /// and its message is elsewhere, or lent to others, or it can't be read.
    ///
    /// # Errors
    /// As [`Self::take`]; the line of the rank at `index` has not come.
    fn take_whole<const LINES: bool, R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        clock: &Clock,
        index: &mut u32,
        loans: &mut Loans,
    ) -> Result<Option<bool>, Halt>;

    /// Which ranks read what this process lends.
    fn borrowers(&self) -> Borrowers;

    /// Need the fragment of `step` not be posted where the message is lent?
    fn is_of_loan(&self, step: u64) -> bool;

    /// Takes the fragments of `step`, starting at `taking`.
    ///
    /// # Errors
    /// A fragment is not published yet; a peer's line or fragment has another collective or length than this process's
    /// call; what it lent can't be read any more.
    fn take<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        clock: &Clock,
        step: u64,
        taking: &mut Taking,
        loans: &mut Loans,
    ) -> Result<(), Halt>;

    /// This process begins.
    #[inline(always)]
    fn enter<R: Region>(&mut self, _region: &R) {}

    /// Does a part of what this process has to do with its own data alone, where it would wait; or `all` of it, when it needs nothing
    /// more of others. So they don't wait for it. `false`: nothing was left.
    #[inline(always)]
    fn work<R: Region>(&mut self, _region: &R, _me: &Member, _all: bool) -> bool {
        false
    }
}

/// One process's part of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Steps<E> {
    pub(super) clock: Clock,
    pub(super) engine: E,
    loans: Loans,
    /// The fragments of all steps below this are posted.
    posted: u64,
    /// The step whose fragments are taken now.
    step: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Enter,
    /// In an operation of one step: it has begun, and has not posted its message.
    Post,
    /// In such an operation: its message is posted, and those of the ranks below this index, in the order in which it takes them, are
    /// taken.
    Whole(u32),
    Publish,
    Take(Taking),
    /// All is taken here. What others still want is posted, and they may read what this process has lent.
    Return,
    Done,
}

impl<E: Engine> Steps<E> {
    /// All ranks give the same `span`.
    #[inline(always)]
    pub(super) const fn new(span: Span, engine: E) -> Self {
        let clock = Clock { operation: 0, base: 0, span };
        Self { clock, engine, loans: Loans::NONE, posted: 0, step: 0, state: State::Done }
    }

    /// The same as `operation`, which starts at `base` on the fragment clock: another machine has begun it, and has posted nothing.
    pub(crate) const fn entered(mut self, operation: u64, base: u64) -> Self {
        (self.clock.operation, self.clock.base, self.state) = (operation, base, State::Enter);
        self
    }

    /// The same as `operation`, of one step, which starts at `base` on the fragment clock: another machine has posted this process's
    /// message in its line, and has taken those of the ranks below `index`.
    pub(crate) const fn posted(mut self, operation: u64, base: u64, index: u32) -> Self {
        (self.clock.operation, self.clock.base, self.posted) = (operation, base, 1);
        self.state = State::Take(Taking { index, received: false, looked: false, lent: false, any: false });
        self
    }

    /// Posts this step's fragment, and those of later steps up to half a lap ahead. Here a process never waits for
    /// a rank that is in the same step or a later one: such a rank has taken all fragments that the slots in question
    /// held last.
    #[inline]
    fn post_ahead<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), WaitSet> {
        let ahead = (me.lap().slots / 2).max(1);
        // Of a fragment of several steps, the slot is this process's again after the last one.
        let end = self.engine.steps().min((self.engine.slot(self.step) + ahead).max(self.step + 1));
        if self.loans.is_open() && self.loans.may_ask(self.engine.takes_any()) {
            // A reader that has not answered is asked again later.
            let _unanswered = self.ask(region, me);
        }
        while self.posted < end && !(self.posted > 0 && self.loans.is_open()) {
            match self.engine.posts(self.posted) {
                Some(after) if after > self.step => break,
                Some(_) if self.loans.is_accepted() && self.engine.is_of_loan(self.posted) => {}
                // It is complete where it lies.
                Some(_) if self.loans.lends_results() || self.engine.slot(self.posted) < self.posted => {
                    self.clock.publish(region, me, self.posted)
                }
                Some(_) => self.engine.post(region, me, &self.clock, self.posted, &mut self.loans)?,
                None => {}
            }
            self.posted += 1;
        }
        Ok(())
    }

    /// A process that has lent its message waits: the rank that it waits for may want fragments of this one.
    ///
    /// # Errors
    /// Those of `halt`.
    #[cold]
    fn blocked<R: Region>(&mut self, region: &R, me: &mut Member, halt: Halt) -> Result<Poll, PollError> {
        match halt {
            Halt::Wait(on) => Ok(Poll::Wait(match self.serve(region, me) {
                Ok(()) => on,
                Err(asked) => WaitSet::either(*on.first(), *asked.first()),
            })),
            halt => halt.into(),
        }
    }

    /// Posts what is not posted yet; after a loan, waits until no rank reads it any more.
    ///
    /// # Errors
    /// What to wait for.
    #[cold]
    fn ends<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), WaitSet> {
        self.serve(region, me)?;
        let Clock { operation, base, span: Span { advance, .. } } = self.clock;
        if self.loans.lends() {
            self.loans.returned(region, me, operation, self.engine.borrowers(), base + advance)?;
        }
        Ok(())
    }

    /// After a loan: hears from its readers if it may ask them, and posts what they want.
    ///
    /// # Errors
    /// A reader has not answered, or a fragment's place is not free: what to wait for.
    fn serve<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), WaitSet> {
        if self.loans.may_ask(self.engine.takes_any()) {
            self.ask(region, me)?;
        }
        self.post_ahead(region, me)
    }

    /// After a loan: hears from its readers. If one of them wants fragments, they are posted from the first one on.
    ///
    /// # Errors
    /// A reader has not answered: what to wait for.
    #[cold]
    fn ask<R: Region>(&mut self, region: &R, me: &Member) -> Result<(), WaitSet> {
        if self.loans.is_open() && self.loans.ask(region, me, self.clock.operation, self.engine.borrowers())? {
            // What step 0 carries beside a loan is posted.
            self.posted = u64::from(!self.engine.is_of_loan(0));
        }
        Ok(())
    }
}

impl<E: Engine> Steps<E> {
    /// An operation of one step, in which this process sends and expects whole messages: in lines alone (`LINES`), or in slots, too,
    /// and lent. It posts its own, and then takes those of others. Where one of them is elsewhere, or can't be read, it goes on
    /// [there](Self::in_queues); and where it has lent its own, for the end.
    #[inline(never)]
    fn in_one_step<const LINES: bool, R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let Clock { operation, base, span: Span { advance, .. } } = self.clock;
        let mut index = match self.state {
            State::Whole(index) => index,
            _ if LINES => {
                if let Err(wait) = self.engine.post_line(region, me, &self.clock) {
                    return Ok(Poll::Wait(wait));
                }
                if advance > 0 && !self.engine.takes_any() {
                    me.acknowledge(region, base + advance);
                }
                self.engine.enter(region);
                self.posted = 1;
                0
            }
            _ => {
                if self.state == State::Enter {
                    self.enter(region, me);
                    self.state = State::Post;
                }
                if self.engine.posts(0).is_some()
                    && let Err(wait) = self.engine.post(region, me, &self.clock, 0, &mut self.loans)
                {
                    return Ok(Poll::Wait(wait));
                }
                self.posted = 1;
                0
            }
        };
        loop {
            match self.engine.take_whole::<LINES, R>(region, me, &self.clock, &mut index, &mut self.loans) {
                Ok(Some(any)) => {
                    if !LINES && self.engine.takes_any() {
                        self.loans.accept(region, me, operation, !any);
                    }
                    break;
                }
                Ok(None) => {
                    self.state = State::Take(Taking { index, received: true, ..Taking::default() });
                    return self.in_queues(region, me);
                }
                Err(halt) => {
                    // Who waits here has not answered its lenders, and so can't hear from its own readers yet.
                    debug_assert!(!self.loans.may_ask(self.engine.takes_any()));
                    self.state = State::Whole(index);
                    let halted: Result<Poll, PollError> = halt.into();
                    if LINES || halted.is_err() || !self.engine.work(region, me, false) {
                        return halted;
                    }
                }
            }
        }
        if advance > 0 && self.engine.takes_any() {
            me.acknowledge(region, base + advance);
        }
        if !LINES {
            self.engine.work(region, me, true);
            if self.loans.lends() {
                (self.step, self.state) = (self.engine.steps(), State::Return);
                return self.in_queues(region, me);
            }
        }
        me.finish(region, operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }

    /// The beginning of an operation with queues.
    #[inline(always)]
    fn enter<R: Region>(&mut self, region: &R, me: &mut Member) {
        let Clock { operation, base, span: Span { advance, .. } } = self.clock;
        me.choose_lap(region, operation, base);
        if !self.engine.takes_any() {
            // This process takes nothing: it acknowledges all at once, so that no rank waits for it.
            me.acknowledge(region, base + advance);
        }
        self.engine.enter(region);
    }

    /// An operation with queues, from its beginning or from within its first step on.
    fn in_queues<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let Clock { operation, base, span: Span { advance, .. } } = self.clock;
        loop {
            match self.state {
                State::Enter => {
                    self.enter(region, me);
                    self.state = State::Publish;
                }
                State::Publish if self.step == self.engine.steps() => {
                    if self.engine.takes_any() {
                        me.acknowledge(region, base + advance);
                    }
                    self.engine.work(region, me, true);
                    if self.loans.lends() || self.posted < self.engine.steps() {
                        self.state = State::Return;
                        continue;
                    }
                    me.finish(region, operation);
                    self.state = State::Done;
                }
                State::Publish => {
                    if let Err(wait) = self.post_ahead(region, me) {
                        if self.engine.work(region, me, false) {
                            continue;
                        }
                        return Ok(Poll::Wait(wait));
                    }
                    self.state = State::Take(Taking::default());
                }
                State::Take(mut taking) => {
                    let taken = self.engine.take(region, me, &self.clock, self.step, &mut taking, &mut self.loans);
                    if let Err(halt) = taken {
                        self.state = State::Take(taking);
                        let halted = if self.loans.lends() { self.blocked(region, me, halt) } else { halt.into() };
                        if halted.is_ok() && self.engine.work(region, me, false) {
                            continue;
                        }
                        return halted;
                    }
                    if self.step == 0 && self.engine.takes_any() {
                        self.loans.accept(region, me, operation, !taking.any);
                    }
                    self.step = self.engine.next(self.step).min(self.engine.steps());
                    let first = self.engine.slot(self.step) == self.step;
                    if self.engine.takes_any() && self.step < self.engine.steps() && first {
                        me.acknowledge(region, base + self.step);
                    }
                    self.state = State::Publish;
                }
                State::Return => {
                    if let Err(wait) = self.ends(region, me) {
                        return Ok(Poll::Wait(wait));
                    }
                    me.finish(region, operation);
                    self.state = State::Done;
                }
                State::Post | State::Whole(_) | State::Done => return over(operation),
            }
        }
    }
}

impl<E: Engine> Operation for Steps<E> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        let span = self.clock.span;
        self.clock =
            Clock { operation: me.begin(self.engine.kind()), base: me.take_clock(span.advance, span.bytes), span };
        (self.posted, self.step, self.state, self.loans) = (0, 0, State::Enter, Loans::NONE);
        self.engine.restart();
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        match self.state {
            State::Enter | State::Whole(_) if self.engine.all_in_lines(me) => self.in_one_step::<true, R>(region, me),
            State::Enter | State::Post | State::Whole(_) if self.engine.has_one_step() => {
                self.in_one_step::<false, R>(region, me)
            }
            _ => self.in_queues(region, me),
        }
    }
}
