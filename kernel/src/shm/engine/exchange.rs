//! A message to all (ours): each process's message is the same for everyone who takes it. An engine of [`ticks`](super::ticks).
//!
//! A collective is a [`Plan`]: which bytes go into a fragment, and what happens to those of others. Where lengths are
//! not known to all, each writer chooses: what fits its line travels there, in tick 0, and the rest through its queue.

use super::line;
use super::pieces::Way;
use super::ticks::{Clock, Engine, Taking, Ticks};
use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::step::Awaits;
use crate::op::Op;
use crate::region::layout::LINE_PAYLOAD;
use crate::region::{Extent, Region};
use core::hash::Hash;

/// In which order a process takes the fragments of one tick.
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

    /// Ticks of this process.
    fn ticks(&self) -> u64;

    /// What this process's line says of its length.
    fn announced(&self) -> u64;

    /// What `peer`'s line must say.
    fn expected(&self, _peer: Rank) -> u64 {
        self.announced()
    }

    /// If this process has a fragment in `tick` (in tick 0: if anyone waits for its line): the ticks below this must have been
    /// taken before it can be written, `tick` at most.
    fn posts(&self, tick: u64) -> Option<u64>;

    /// Whom this process takes from at all: nobody's fragments are its own business if false.
    fn takes_any(&self) -> bool;

    /// Does it take `peer`'s fragment of `tick`? `peer` may be this process. In the first tick in which it takes any it takes one
    /// of each process that it ever takes from: then it hears their lines.
    fn takes(&self, tick: u64, peer: Rank) -> bool;

    /// In which order.
    fn order(&self) -> Order {
        Order::OwnFirst
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

/// One process's part in a collective of this plan.
pub type Exchange<P> = Ticks<ToAll<P>>;

/// The engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ToAll<P> {
    pub(super) way: Way,
    pub(super) plan: P,
    /// The lines of all from which this process takes were heard.
    heard: bool,
}

impl<P: Plan> Exchange<P> {
    /// All processes give the same `way` and the same `advance`: at least everyone's ticks.
    #[inline(always)]
    pub(crate) const fn of(way: Way, advance: u64, plan: P) -> Self {
        Self::new(if matches!(way, Way::Lines) { 0 } else { advance }, ToAll { way, plan, heard: false })
    }
}

impl<P: Plan> ToAll<P> {
    /// Does `writer`'s fragment of `tick` lie in its line?
    #[inline]
    pub(super) fn in_line(&self, me: &Member, tick: u64, writer: Rank) -> bool {
        let bytes = || if writer == me.rank() { self.plan.announced() } else { self.plan.expected(writer) };
        match self.way {
            Way::Lines => true,
            Way::Queues => false,
            Way::Either => tick == 0 && bytes() <= LINE_PAYLOAD,
        }
    }

    #[inline]
    pub(super) fn place(&self, me: &Member, clock: &Clock, tick: u64, writer: Rank) -> Extent {
        if self.in_line(me, tick, writer) { clock.line(me, writer) } else { clock.slot(me, writer, tick) }
    }

    /// Hears `peer`'s line: it must say what is expected.
    #[inline]
    fn hear<R: Region>(&self, region: &R, me: &Member, clock: &Clock, peer: Rank) -> Result<Option<Awaits>, PollError> {
        match line::hear_head(region, me, peer, clock.operation(), self.plan.kind())? {
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
    fn ticks(&self) -> u64 {
        self.plan.ticks()
    }

    #[inline]
    fn takes_any(&self) -> bool {
        self.plan.takes_any()
    }

    #[inline]
    fn next(&self, tick: u64) -> u64 {
        tick + 1
    }

    #[inline]
    fn posts(&self, tick: u64) -> Option<u64> {
        self.plan.posts(tick)
    }

    #[inline]
    fn restart(&mut self) {
        self.heard = false;
    }

    #[inline]
    fn post<R: Region>(&mut self, region: &R, me: &mut Member, clock: &Clock, tick: u64) -> Result<(), Awaits> {
        if tick == 0 {
            me.line_free(region, clock.operation())?;
        }
        if !self.in_line(me, tick, me.rank()) {
            me.take_slot(region, clock.operation(), clock.at(tick))?;
        }
        let place = self.place(me, clock, tick, me.rank());
        // SAFETY: R10 (checked as S2), the line is free, and everyone has taken the slot's last fragment, this process
        // too: it takes nothing, or posts less than a queue ahead of what it takes. The data is as the plan's constructor was promised.
        unsafe { self.plan.fill(region, place, tick) };
        clock.publish(region, me, (self.plan.kind(), self.plan.announced()), tick);
        Ok(())
    }

    #[inline]
    fn take<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        clock: &Clock,
        tick: u64,
        taking: &mut Taking,
    ) -> Result<Option<Awaits>, PollError> {
        for index in taking.index..me.size() {
            let peer = self.plan.order().peer(me.rank(), me.size(), index);
            if !self.plan.takes(tick, peer) {
                continue;
            }
            if peer != me.rank() {
                if !self.heard && !taking.heard {
                    let unheard = self.hear(region, me, clock, peer)?;
                    if unheard.is_some() {
                        taking.index = index;
                        return Ok(unheard);
                    }
                }
                // What lies in a line was published by it.
                let unpublished = clock.unpublished(region, me, peer, tick);
                if unpublished.is_some() {
                    *taking = Taking { index, heard: true, ..*taking };
                    return Ok(unpublished);
                }
                (taking.heard, taking.any) = (false, true);
            }
            let place = self.place(me, clock, tick, peer);
            // SAFETY: S3, heard, and reused only after our `taken` or `done`, which come later; the data is as the plan's
            // constructor was promised.
            unsafe { self.plan.take(region, place, tick, peer) }?;
        }
        self.heard |= taking.any;
        Ok(None)
    }
}
