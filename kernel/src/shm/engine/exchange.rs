//! The engine for messages to all ranks (ours): all processes that take a message take the same bytes. Its loop is in
//! [`steps`](super::steps).
//!
//! A collective is a [`Plan`]: which bytes a process puts into a fragment, and what it does with the fragments of
//! others. Where not all ranks know all lengths, each writer chooses: a message that fits its line travels there, in
//! step 0; a longer one travels through its queue, or is [lent](super::loans).

use super::cut::{Medium, Span};
use super::laps;
use super::line::{self, Heading};
use super::loans::{Borrowers, Lent, Loans, NO_LOAN, Origin};
use super::steps::{Clock, Engine, Steps, Taking};
use crate::Rank;
use crate::algorithm::PAIR;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::poll::{Halt, WaitSet};
use crate::op::Op;
use crate::region::layout::LINE_PAYLOAD;
use crate::region::{Extent, Lap, Region, Unreadable};
use core::hash::Hash;

/// The order in which a process takes the fragments of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Its own fragment first, while the others post; then from the next rank on, so that not all start with the same
    /// rank.
    OwnFirst,
    /// From the last rank down to 0.
    Falling,
    /// From rank 0 up.
    Rising,
}

impl Order {
    /// The order for a result that only one process computes: an op that does not commute needs `Falling`.
    #[inline]
    pub(crate) const fn of(op: &Op) -> Self {
        if op.commutative() { Self::OwnFirst } else { Self::Falling }
    }

    /// The `index`-th rank in this order, for process `me` of `size`.
    #[inline]
    pub(crate) fn peer(self, me: Rank, size: u32, index: u32) -> Rank {
        match self {
            Self::Falling => return size - 1 - index,
            Self::Rising => return index,
            Self::OwnFirst => {}
        }
        let next = u64::from(me) + u64::from(index);
        (if next < size.into() { next } else { next - u64::from(size) }) as Rank
    }
}

/// What one process does in an exchange, as plain data. What other processes rely on is computed from values that all
/// ranks know.
pub trait Plan: Clone + PartialEq + Eq + Hash {
    /// Which collective this is.
    fn kind(&self) -> Kind;

    /// Number of steps of this process.
    fn steps(&self) -> u64;

    /// The message length, in bytes, that this process's line announces.
    fn announced(&self) -> u64;

    /// Bytes of the longest message that this process posts or takes.
    fn longest(&self) -> u64 {
        self.announced()
    }

    /// The message length, in bytes, that `peer`'s line must announce.
    fn expected(&self, _peer: Rank) -> u64 {
        self.announced()
    }

    /// `None` if this process posts nothing in `step`; in step 0 it posts where another rank waits for its line.
    /// `Some(n)`, with n ≤ `step`: it posts a fragment, once it has taken the fragments of all steps below n.
    fn posts(&self, step: u64) -> Option<u64>;

    /// Does this process take any fragment in this operation?
    fn takes_any(&self) -> bool;

    /// Does this process take `peer`'s fragment of `step`? `peer` may be this process. In the first step in which it
    /// takes anything it must take from each process from which it takes at all, since it receives their lines then.
    fn takes(&self, step: u64, peer: Rank) -> bool;

    /// Does it read `peer`'s fragment of `step`, which it [takes](Self::takes)? Else it receives the line alone: of a rank from which
    /// it takes in a later step.
    #[inline(always)]
    fn reads(&self, _step: u64, _peer: Rank) -> bool {
        true
    }

    /// The step in whose slot the fragments of `step` lie, the same on all ranks: this one; or an earlier one, where processes have
    /// folded into those that they posted then. Then these are not written again, and nobody acknowledges them before.
    #[inline(always)]
    fn slot(&self, step: u64) -> u64 {
        step
    }

    /// Does this process take what each peer has folded into its own fragment in `step` itself? It is there when the peer has
    /// acknowledged the step.
    #[inline(always)]
    fn takes_folded(&self, _step: u64) -> bool {
        false
    }

    /// Before this process takes the fragments of a step: its own one lies here. A part that no other process reads before this
    /// one has acknowledged the step may be written until then.
    #[inline(always)]
    fn folds_into(&mut self, _own: Extent) {}

    /// The order in which it takes the fragments of one step.
    fn order(&self) -> Order {
        Order::OwnFirst
    }

    /// Writes this process's fragment of `step` to `place`.
    ///
    /// # Safety
    /// No other process reads or writes the place now. The plan's data is valid for its side.
    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64);

    /// Takes `peer`'s fragment of `step` from `origin`: from the segment, or from the message that `peer` lent. If `peer`
    /// is this process: takes its own contribution, which need not have been posted.
    ///
    /// # Errors
    /// Lent memory can't be read.
    ///
    /// # Safety
    /// `peer` has published it and does not write it now. The plan's data is valid for its side.
    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable>;

    /// Are the fragments of the first step expected, while those of other ranks are taken?
    const EXPECTS: bool = false;

    /// Where in `peer`'s fragment, which lies at `place`, this process's bytes begin.
    #[inline(always)]
    fn piece(&self, place: Extent, peer: Rank) -> Extent {
        let _ = peer;
        place
    }

    /// Returns to the state in which it was built, for the next operation.
    #[inline(always)]
    fn restart(&mut self) {}

    /// This process begins.
    #[inline(always)]
    fn enter<R: Region>(&mut self, _region: &R) {}

    /// Does a part, or all, of what this process has to do with its own data alone: see [`Engine::work`].
    ///
    /// # Safety
    /// The plan's data is valid for its side.
    #[inline(always)]
    unsafe fn work<R: Region>(&mut self, _region: &R, _all: bool) -> bool {
        false
    }

    /// The memory that this process can lend: its whole message, which nothing overwrites before the operation ends.
    /// `None`: there is none, as where the message has holes.
    fn lendable(&self) -> Option<Buf> {
        None
    }

    /// Does the fragment of `step` come from [lent](Self::lendable) memory? Else it is posted in any case.
    fn is_of_loan(&self, step: u64) -> bool {
        let _ = step;
        true
    }

    /// The memory in which others may take the fragments that do not come from [lent](Self::lendable) memory, each from
    /// when it is posted on until the operation ends. `None`: they are written to the segment. So are results that lie where
    /// the operation before had its own; and a message that lies there too is not lent either.
    fn results(&self) -> Option<Buf> {
        None
    }

    /// Where this process's message starts in what `peer` lends.
    fn offset(&self, peer: Rank) -> u64 {
        let _ = peer;
        0
    }

    /// Which ranks take from this process.
    fn borrowers(&self) -> Borrowers {
        Borrowers::Others
    }
}

/// One process's part in a collective of this plan.
pub type Exchange<P> = Steps<ToAll<P>>;

/// The engine for messages to all ranks, which runs a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToAll<P> {
    pub(super) medium: Medium,
    pub(super) plan: P,
    /// Has this process received the lines of all ranks from which it takes?
    received: bool,
}

impl<P: Plan> Exchange<P> {
    /// All ranks give the same `medium` and the same `span`.
    #[inline(always)]
    pub(crate) const fn of(medium: Medium, span: Span, plan: P) -> Self {
        Self::new(span.within(medium), ToAll { medium, plan, received: false })
    }
}

impl<P: Plan> ToAll<P> {
    /// Does `writer`'s fragment of `step` lie in its line? Where writers choose, a line has all of a message, or the words of
    /// loans and laps.
    #[inline]
    pub(super) fn in_line(&self, me: &Member, step: u64, writer: Rank) -> bool {
        let bytes = || if writer == me.rank() { self.plan.announced() } else { self.plan.expected(writer) };
        match self.medium {
            Medium::Lines => true,
            Medium::Queues => false,
            Medium::Either => step == 0 && bytes() <= LINE_PAYLOAD.min(self.medium.room(me)),
        }
    }

    /// The place of `writer`'s fragment of `step`: its line or a slot of its queue, which has this `lap`.
    #[inline]
    pub(super) fn place(
        &self,
        me: &Member,
        clock: &Clock,
        step: u64,
        writer: Rank,
        lap: impl FnOnce() -> Lap,
    ) -> Extent {
        if self.in_line(me, step, writer) {
            clock.line(me, writer)
        } else {
            clock.fragment(me, writer, self.plan.slot(step), lap())
        }
    }

    /// This process is about to take the fragment of the rank at `index` in its first step: it expects those of the ranks after it
    /// that have posted theirs.
    #[inline(never)]
    fn expect<R: Region>(&self, region: &R, me: &Member, clock: &Clock, step: u64, index: u32) {
        for peer in line::after(me, index, |next| self.plan.order().peer(me.rank(), me.size(), next)) {
            if self.plan.takes(step, peer) && line::is_there(region, me, peer, clock.operation()) {
                let place = self.place(me, clock, step, peer, || laps::of(region, me, clock.operation(), peer));
                region.expect(self.plan.piece(place, peer).part(0, line::EXPECTED.min(self.plan.expected(peer))));
            }
        }
    }

    /// Receives `peer`'s line and compares the length in it with the expected one. Returns what to wait for where the
    /// line was not posted yet.
    #[inline]
    fn receive<R: Region>(&self, region: &R, me: &Member, clock: &Clock, peer: Rank) -> Result<(), Halt> {
        let announced = line::receive_head(region, me, peer, clock.operation(), self.plan.kind())?;
        if announced == self.plan.expected(peer) {
            return Ok(());
        }
        let refusal = Refusal::new(Argument::Bytes, self.plan.expected(peer), Bound::Equals(announced));
        Err(PollError::Mismatch { peer, refusal }.into())
    }
}

/// What became of a fragment that may have been lent.
enum Borrowed {
    NotLent,
    Taken,
    /// It was lent, and this process wants it posted.
    Wanted,
}

impl<P: Plan> ToAll<P> {
    /// Takes `peer`'s fragment of `step` where it lies, if it was lent and can be read.
    ///
    /// # Errors
    /// It could be read before, and can't now.
    #[inline(never)]
    fn take_lent<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        clock: &Clock,
        step: u64,
        peer: Rank,
        loans: &mut Loans,
    ) -> Result<Borrowed, PollError> {
        if !self.plan.is_of_loan(step) {
            return Ok(Borrowed::NotLent);
        }
        let Some(loan) = loans.of(region, me, clock.operation(), peer) else { return Ok(Borrowed::NotLent) };
        if !loans.wants() {
            let origin = Origin::Lent(Lent { lender: peer, loan, from: self.plan.offset(peer) });
            // SAFETY: S3, received; the lender writes its memory only after our `acked`; the data is as the plan's
            // constructor was promised.
            match unsafe { self.plan.take(region, origin, step, peer) } {
                Ok(()) => return Ok(Borrowed::Taken),
                Err(unreadable) => loans.refuse(region, me, clock.operation(), peer, unreadable)?,
            }
        }
        Ok(Borrowed::Wanted)
    }
}

impl<P: Plan> Engine for ToAll<P> {
    #[inline]
    fn kind(&self) -> Kind {
        self.plan.kind()
    }

    #[inline]
    fn steps(&self) -> u64 {
        self.plan.steps()
    }

    #[inline]
    fn takes_any(&self) -> bool {
        self.plan.takes_any()
    }

    #[inline]
    fn next(&self, step: u64) -> u64 {
        step + 1
    }

    #[inline]
    fn posts(&self, step: u64) -> Option<u64> {
        self.plan.posts(step)
    }

    #[inline(always)]
    fn slot(&self, step: u64) -> u64 {
        self.plan.slot(step)
    }

    #[inline]
    fn restart(&mut self) {
        self.received = false;
        self.plan.restart();
    }

    #[inline]
    fn post<R: Region>(
        &mut self,
        region: &R,
        me: &mut Member,
        clock: &Clock,
        step: u64,
        loans: &mut Loans,
    ) -> Result<(), WaitSet> {
        // A message that fits its line is posted by `post_line`.
        let heading = Heading { kind: self.plan.kind(), bytes: self.plan.announced() };
        // A process that has lent its memory in vain has posted its line.
        let first = step == 0 && !loans.lends();
        if first {
            me.line_free(region, clock.operation())?;
            me.uses_slot(heading.bytes);
            // Writing again what others have read takes longer than a copy through slots.
            let (message, results) = (self.plan.lendable(), self.plan.results());
            let again = results.filter(|results| me.receives(results.ptr().addr()));
            let in_place = again.is_some() && again == message;
            let lent = |memory: Option<Buf>, never| if never { None } else { memory };
            if let Some(words) =
                loans.offer(region, heading.kind, lent(message, in_place), lent(results, again.is_some()))
            {
                clock.post_line(region, me, heading, Some(words));
                return Ok(());
            }
        }
        me.take_slot(region, clock.operation(), clock.at(step))?;
        let place = self.place(me, clock, step, me.rank(), || me.lap());
        // SAFETY: R10 (checked as S2), the line is free, and all ranks have taken the slot's last fragment, this
        // process too: it takes nothing, or posts less than a lap ahead of what it takes. The data is as the plan's
        // constructor was promised.
        unsafe { self.plan.fill(region, place, step) };
        if first {
            clock.post_line(region, me, heading, Some(NO_LOAN));
        } else {
            clock.publish(region, me, step);
        }
        Ok(())
    }

    #[inline(always)]
    fn all_in_lines(&self, me: &Member) -> bool {
        match self.medium {
            Medium::Lines => true,
            Medium::Queues => false,
            Medium::Either => self.plan.longest() <= LINE_PAYLOAD.min(self.medium.room(me)),
        }
    }

    #[inline(always)]
    fn post_line<R: Region>(&mut self, region: &R, me: &mut Member, clock: &Clock) -> Result<(), WaitSet> {
        if self.plan.posts(0).is_none() {
            return Ok(());
        }
        me.line_free(region, clock.operation())?;
        me.uses_slot(0);
        // SAFETY: R10 (checked as S2), the line is free. The data is as the plan's constructor was promised.
        unsafe { self.plan.fill(region, clock.line(me, me.rank()), 0) };
        let heading = Heading { kind: self.plan.kind(), bytes: self.plan.announced() };
        clock.post_line(region, me, heading, None);
        Ok(())
    }

    #[inline(always)]
    fn has_one_step(&self) -> bool {
        self.plan.steps() == 1 && self.plan.is_of_loan(0) && !self.plan.takes_folded(0)
    }

    #[inline(always)]
    fn take_whole<const LINES: bool, R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        clock: &Clock,
        index: &mut u32,
        loans: &mut Loans,
    ) -> Result<Option<bool>, Halt> {
        let (first, order, size) = (*index, self.plan.order(), me.size());
        let mut any = false;
        while *index < size {
            let peer = order.peer(me.rank(), size, *index);
            if self.plan.takes(0, peer) {
                let in_line = LINES || self.in_line(me, 0, peer);
                let mut lap = me.lap();
                if peer != me.rank() {
                    any = true;
                    self.receive(region, me, clock, peer)?;
                    line::expect(region, me, clock.operation(), *index, *index == first, |next| {
                        order.peer(me.rank(), size, next)
                    });
                    if !in_line {
                        match laps::unlent(region, me, clock.operation(), peer) {
                            Some(unlent) => lap = unlent,
                            None => match self.take_lent(region, me, clock, 0, peer, loans)? {
                                Borrowed::Taken => {
                                    *index += 1;
                                    continue;
                                }
                                Borrowed::NotLent | Borrowed::Wanted => return Ok(None),
                            },
                        }
                        if P::EXPECTS && size > PAIR && region.expects() {
                            self.expect(region, me, clock, 0, *index);
                        }
                    }
                }
                let place = if in_line { clock.line(me, peer) } else { clock.fragment(me, peer, 0, lap) };
                // SAFETY: S3, received, and reused only after our `acked` or `done`; the data is as the plan's constructor was
                // promised.
                let taken = unsafe { self.plan.take(region, Origin::Segment(place), 0, peer) };
                taken.map_err(|_| PollError::Unreadable { peer })?;
            }
            *index += 1;
        }
        Ok(Some(any))
    }

    #[inline]
    fn borrowers(&self) -> Borrowers {
        self.plan.borrowers()
    }

    #[inline]
    fn is_of_loan(&self, step: u64) -> bool {
        self.plan.is_of_loan(step)
    }

    #[inline]
    fn take<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        clock: &Clock,
        step: u64,
        taking: &mut Taking,
        loans: &mut Loans,
    ) -> Result<(), Halt> {
        self.plan.folds_into(self.place(me, clock, step, me.rank(), || me.lap()));
        for index in taking.index..me.size() {
            let peer = self.plan.order().peer(me.rank(), me.size(), index);
            if !self.plan.takes(step, peer) {
                continue;
            }
            if peer != me.rank() {
                if !self.received && !taking.received {
                    taking.index = index;
                    self.receive(region, me, clock, peer)?;
                    let (order, size) = (self.plan.order(), me.size());
                    line::expect(region, me, clock.operation(), index, !taking.any, |next| {
                        order.peer(me.rank(), size, next)
                    });
                }
                // A fragment in a line was published together with the line.
                *taking = Taking { index, received: true, ..*taking };
                if !self.plan.reads(step, peer) {
                    *taking = Taking::taken(index);
                    continue;
                }
                // The payload of a line that has a fragment is no loan.
                if !taking.looked && !self.in_line(me, 0, peer) {
                    let borrowed = self.take_lent(region, me, clock, step, peer, loans)?;
                    if matches!(borrowed, Borrowed::Taken) {
                        *taking = Taking::taken(index);
                        continue;
                    }
                    (taking.looked, taking.lent) = (true, matches!(borrowed, Borrowed::Wanted));
                }
                if self.plan.takes_folded(step) {
                    clock.acknowledged(region, me, peer, step)?;
                } else {
                    clock.published(region, me, peer, step, taking.lent)?;
                }
                *taking = Taking::taken(index);
            }
            if peer != me.rank()
                && !self.plan.is_of_loan(step)
                && !self.in_line(me, 0, peer)
                && let Some(loan) = loans.results_of(region, me, clock.operation(), peer)
            {
                let origin = Origin::Lent(Lent { lender: peer, loan, from: 0 });
                // SAFETY: S3, published; the lender writes this part only after our `acked`; the data as below.
                let taken = unsafe { self.plan.take(region, origin, step, peer) };
                taken.map_err(|_| PollError::Unreadable { peer })?;
                continue;
            }
            if P::EXPECTS
                && me.size() > PAIR
                && !self.received
                && peer != me.rank()
                && !self.in_line(me, step, peer)
                && region.expects()
            {
                self.expect(region, me, clock, step, index);
            }
            let place = self.place(me, clock, step, peer, || laps::of(region, me, clock.operation(), peer));
            // SAFETY: S3, received, and reused only after our `acked` or `done`, which come later; the data is as the
            // plan's constructor was promised.
            let taken = unsafe { self.plan.take(region, Origin::Segment(place), step, peer) };
            taken.map_err(|_| PollError::Unreadable { peer })?;
        }
        self.received |= taking.any;
        Ok(())
    }

    #[inline(always)]
    fn enter<R: Region>(&mut self, region: &R) {
        self.plan.enter(region);
    }

    #[inline(always)]
    fn work<R: Region>(&mut self, region: &R, _me: &Member, all: bool) -> bool {
        // SAFETY: the data is as the plan's constructor was promised.
        unsafe { self.plan.work(region, all) }
    }
}
