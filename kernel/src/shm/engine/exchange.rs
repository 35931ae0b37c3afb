//! A message to all (ours): each process's message is the same for everyone who takes it. An engine of [`steps`](super::steps).
//!
//! A collective is a [`Plan`]: which bytes go into a fragment, and what happens to those of others. Where lengths are
//! not known to all, each writer chooses: what fits its line travels there, in step 0, and the rest through its queue.

use super::line;
use super::pieces::Medium;
use super::steps::{Clock, Engine, Steps, Taking};
use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::poll::WaitSet;
use crate::op::Op;
use crate::region::layout::LINE_PAYLOAD;
use crate::region::{Extent, Region};
use core::hash::Hash;

/// In which order a process takes the fragments of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Its own, while the others post; then theirs from the next rank on, so that not all begin with the same one.
    OwnFirst,
    /// From the last rank down to 0.
    Falling,
}

impl Order {
    /// For a fold into a result that one process alone computes.
    #[inline]
    pub(crate) const fn of(op: &Op) -> Self {
        if op.commutative() { Self::OwnFirst } else { Self::Falling }
    }

    /// The `index`-th, among `size` processes.
    #[inline]
    pub(super) fn peer(self, me: Rank, size: u32, index: u32) -> Rank {
        if self == Self::Falling {
            return size - 1 - index;
        }
        let next = u64::from(me) + u64::from(index);
        (if next < size.into() { next } else { next - u64::from(size) }) as Rank
    }
}

/// What one process does in an exchange: plain data, made of what all know alike where others depend on it.
pub trait Plan: Clone + PartialEq + Eq + Hash {
    /// Which collective this is.
    fn kind(&self) -> Kind;

    /// Steps of this process.
    fn steps(&self) -> u64;

    /// What this process's line says of its length.
    fn announced(&self) -> u64;

    /// What `peer`'s line must say.
    fn expected(&self, _peer: Rank) -> u64 {
        self.announced()
    }

    /// If this process has a fragment in `step` (in step 0: if anyone waits for its line): the steps below this must have been
    /// taken before it can be written, `step` at most.
    fn posts(&self, step: u64) -> Option<u64>;

    /// Whom this process takes from at all: nobody's fragments are its own business if false.
    fn takes_any(&self) -> bool;

    /// Does it take `peer`'s fragment of `step`? `peer` may be this process. In the first step in which it takes any it takes one
    /// of each process that it ever takes from: then it receives their lines.
    fn takes(&self, step: u64, peer: Rank) -> bool;

    /// In which order.
    fn order(&self) -> Order {
        Order::OwnFirst
    }

    /// Writes this process's fragment of `step` to its place.
    ///
    /// # Safety
    /// No other process reads or writes the place now. The plan's data is valid for its side.
    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64);

    /// Takes what `peer` has posted in `step` from its place; for this process itself, what it would have taken.
    ///
    /// # Errors
    /// What the place says does not agree with what this process knows.
    ///
    /// # Safety
    /// `peer` has published the place and does not write it now. The plan's data is valid for its side.
    unsafe fn take<R: Region>(&mut self, region: &R, place: Extent, step: u64, peer: Rank) -> Result<(), PollError>;
}

/// One process's part in a collective of this plan.
pub type Exchange<P> = Steps<ToAll<P>>;

/// The engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToAll<P> {
    pub(super) medium: Medium,
    pub(super) plan: P,
    /// The lines of all from which this process takes were received.
    received: bool,
}

impl<P: Plan> Exchange<P> {
    /// All processes give the same `medium` and the same `advance`: at least everyone's steps.
    #[inline(always)]
    pub(crate) const fn of(medium: Medium, advance: u64, plan: P) -> Self {
        Self::new(if matches!(medium, Medium::Lines) { 0 } else { advance }, ToAll { medium, plan, received: false })
    }
}

impl<P: Plan> ToAll<P> {
    /// Does `writer`'s fragment of `step` lie in its line?
    #[inline]
    pub(super) fn in_line(&self, me: &Member, step: u64, writer: Rank) -> bool {
        let bytes = || if writer == me.rank() { self.plan.announced() } else { self.plan.expected(writer) };
        match self.medium {
            Medium::Lines => true,
            Medium::Queues => false,
            Medium::Either => step == 0 && bytes() <= LINE_PAYLOAD,
        }
    }

    #[inline]
    pub(super) fn place(&self, me: &Member, clock: &Clock, step: u64, writer: Rank) -> Extent {
        if self.in_line(me, step, writer) { clock.line(me, writer) } else { clock.slot(me, writer, step) }
    }

    /// Receives `peer`'s line: it must say what is expected.
    #[inline]
    fn receive<R: Region>(
        &self,
        region: &R,
        me: &Member,
        clock: &Clock,
        peer: Rank,
    ) -> Result<Option<WaitSet>, PollError> {
        match line::receive_head(region, me, peer, clock.operation(), self.plan.kind())? {
            Ok(announced) if announced == self.plan.expected(peer) => Ok(None),
            Ok(announced) => {
                let refusal = Refusal::new(Argument::Bytes, self.plan.expected(peer), Bound::Equals(announced));
                Err(PollError::Mismatch { peer, refusal })
            }
            Err(wait) => Ok(Some(wait)),
        }
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

    #[inline]
    fn restart(&mut self) {
        self.received = false;
    }

    #[inline]
    fn post<R: Region>(&mut self, region: &R, me: &mut Member, clock: &Clock, step: u64) -> Result<(), WaitSet> {
        if step == 0 {
            me.line_free(region, clock.operation())?;
        }
        if !self.in_line(me, step, me.rank()) {
            me.take_slot(region, clock.operation(), clock.at(step))?;
        }
        let place = self.place(me, clock, step, me.rank());
        // SAFETY: R10 (checked as S2), the line is free, and everyone has taken the slot's last fragment, this process
        // too: it takes nothing, or posts less than a queue ahead of what it takes. The data is as the plan's constructor was promised.
        unsafe { self.plan.fill(region, place, step) };
        clock.publish(region, me, (self.plan.kind(), self.plan.announced()), step);
        Ok(())
    }

    #[inline]
    fn take<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        clock: &Clock,
        step: u64,
        taking: &mut Taking,
    ) -> Result<Option<WaitSet>, PollError> {
        for index in taking.index..me.size() {
            let peer = self.plan.order().peer(me.rank(), me.size(), index);
            if !self.plan.takes(step, peer) {
                continue;
            }
            if peer != me.rank() {
                if !self.received && !taking.received {
                    let unreceived = self.receive(region, me, clock, peer)?;
                    if unreceived.is_some() {
                        taking.index = index;
                        return Ok(unreceived);
                    }
                }
                // What lies in a line was published by it.
                let unpublished = clock.unpublished(region, me, peer, step);
                if unpublished.is_some() {
                    *taking = Taking { index, received: true, ..*taking };
                    return Ok(unpublished);
                }
                (taking.received, taking.any) = (false, true);
            }
            let place = self.place(me, clock, step, peer);
            // SAFETY: S3, received, and reused only after our `acked` or `done`, which come later; the data is as the plan's
            // constructor was promised.
            unsafe { self.plan.take(region, place, step, peer) }?;
        }
        self.received |= taking.any;
        Ok(None)
    }
}
