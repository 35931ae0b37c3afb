//! A block for each pair of processes (ours): alltoall, and scatter, where one process alone has blocks. An engine of
//! [`steps`](super::steps).
//!
//! Where blocks travel, and who knows their lengths, `pairs` says: in step 0 side by side, a block for everyone
//! in one place; in later steps a fragment is for one reader, and each process exchanges with one other.
//!
//! Where one process alone posts it goes on in its readers' queues when its own is full, so that much is posted before
//! readers must come.

use super::copy::copy_private;
use super::exchange::Order;
use super::line;
use super::pairs::Pairs;
use super::pieces::{Medium, UNKNOWN};
use super::steps::{Clock, Engine, Steps, Taking};
use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::{PollError, Refusal};
use crate::machine::poll::WaitSet;
use crate::region::{Extent, Region};

/// One process's part.
pub type Pairwise<'a> = Steps<Blockwise<'a>>;

/// Where blocks are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Receive<'a> {
    /// One from each process.
    Each(Blocks<'a>),
    /// One from this process, who alone has blocks; none where that one's own stays in place.
    From(Rank, Option<Data<'a>>),
}

/// The engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Blockwise<'a> {
    kind: Kind,
    pub(super) pairs: Pairs,
    /// A block for each process, where this one has any.
    send: Option<Blocks<'a>>,
    receive: Receive<'a>,
}

impl<'a> Pairwise<'a> {
    /// Blocks of `bytes` between any two, as all know.
    ///
    /// # Errors
    /// More processes than a slot has room for.
    #[inline(always)]
    pub(crate) fn equal(
        me: &Member,
        kind: Kind,
        bytes: u64,
        send: Option<Blocks<'a>>,
        receive: Receive<'a>,
    ) -> Result<Self, Refusal> {
        let (medium, steps, pairs) = Pairs::known(me, bytes)?;
        Ok(Self::new(if medium == Medium::Lines { 0 } else { steps }, Blockwise { kind, pairs, send, receive }))
    }

    /// Blocks whose lengths only writer and reader know. The longest that this process receives from one has `most` bytes.
    ///
    /// # Errors
    /// More bytes than the clock's steps for them.
    #[inline(always)]
    pub(crate) fn vary(
        me: &Member,
        kind: Kind,
        most: u64,
        send: Option<Blocks<'a>>,
        receive: Receive<'a>,
    ) -> Result<Self, Refusal> {
        let sent = match &send {
            Some(blocks) => blocks.most(),
            None => 0,
        };
        let pairs = Pairs::unknown(me, sent, most)?;
        Ok(Self::new(UNKNOWN, Blockwise { kind, pairs, send, receive }))
    }
}

impl<'a> Blockwise<'a> {
    /// Where this process receives `writer`'s block.
    #[inline(always)]
    fn incoming(&self, writer: Rank) -> Data<'a> {
        match &self.receive {
            Receive::Each(blocks) => blocks.block(writer),
            Receive::From(_, Some(data)) => *data,
            Receive::From(_, None) => Data::EMPTY,
        }
    }

    /// Does this process take a fragment of its block from `peer` in `step`?
    #[inline]
    fn takes(&self, step: u64, peer: Rank) -> bool {
        match &self.receive {
            Receive::Each(blocks) => self.pairs.takes(step, peer, || blocks.bytes(peer)),
            Receive::From(root, Some(data)) => peer == *root && self.pairs.takes(step, peer, || data.len()),
            Receive::From(_, None) => false,
        }
    }

    /// Where `writer`'s fragment of `step` for `reader` lies.
    #[inline]
    pub(super) fn place(&self, me: &Member, clock: &Clock, step: u64, (writer, reader): (Rank, Rank)) -> Extent {
        if !self.pairs.in_slot(step, writer) {
            clock.line(me, writer)
        } else if self.beyond(me, step).is_some() {
            clock.slot(me, reader, step)
        } else {
            clock.slot(me, writer, step)
        }
    }

    /// If one process alone posts, and its queue is full with what is before `step`, so that it goes on in its readers' queues:
    /// the steps until it comes to the same slot again, when all slots, a power of two, have been through all rounds, an odd number.
    #[inline]
    pub(super) fn beyond(&self, me: &Member, step: u64) -> Option<u64> {
        let slots = u64::from(me.layout().params().queue_slots);
        (step >= slots && matches!(self.receive, Receive::From(..))).then(|| slots * self.pairs.rounds())
    }
}

impl Engine for Blockwise<'_> {
    #[inline]
    fn kind(&self) -> Kind {
        self.kind
    }

    #[inline]
    fn steps(&self) -> u64 {
        self.pairs.steps()
    }

    /// Where one process alone posts it takes from nobody.
    #[inline]
    fn takes_any(&self) -> bool {
        matches!(self.receive, Receive::Each(_)) || self.send.is_none()
    }

    /// Where one process alone posts, others have to do with that one alone.
    #[inline]
    fn next(&self, step: u64) -> u64 {
        match self.receive {
            Receive::From(root, _) if self.send.is_none() => self.pairs.next_with(step, root),
            _ => step + 1,
        }
    }

    #[inline]
    fn posts(&self, step: u64) -> Option<u64> {
        let blocks = self.send.as_ref()?;
        self.pairs.posts(step, |reader| blocks.bytes(reader)).then_some(0)
    }

    #[inline]
    fn restart(&mut self) {}

    #[inline]
    fn post<R: Region>(&mut self, region: &R, me: &mut Member, clock: &Clock, step: u64) -> Result<(), WaitSet> {
        let Some(blocks) = &self.send else { return Ok(()) };
        if step == 0 {
            me.line_free(region, clock.operation())?;
        }
        if self.pairs.in_slot(step, me.rank()) {
            match self.beyond(me, step) {
                // What a reader's queue held before this operation is not known here.
                Some(round) => {
                    let needed = clock.at(0).max((clock.at(step) + 1).saturating_sub(round));
                    me.all_acked(region, clock.operation(), clock.at(step), needed)?;
                }
                None => me.take_slot(region, clock.operation(), clock.at(step))?,
            }
        }
        let reader = self.pairs.partner(step).unwrap_or(me.rank());
        let place = self.place(me, clock, step, (me.rank(), reader));
        // SAFETY: R10 (checked as S2), the line is free, and everyone has taken the slot's last fragment, this process
        // too: it takes nothing, or posts less than a queue ahead of what it takes. The data is as the constructor was promised.
        unsafe { self.pairs.put(region, place, step, blocks) };
        clock.publish(region, me, (self.kind, self.pairs.announced()), step);
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
        let partner = self.pairs.partner(step);
        for index in taking.index..if partner.is_some() { 1 } else { me.size() } {
            let peer = partner.unwrap_or_else(|| Order::OwnFirst.peer(me.rank(), me.size(), index));
            if !self.takes(step, peer) {
                continue;
            }
            if peer == me.rank() {
                if let Some(blocks) = &self.send {
                    let (own, data) = (blocks.block(peer), self.incoming(peer));
                    // SAFETY: both are this process's data, as the constructor was promised; in place they are the same.
                    unsafe { copy_private(&own, &data, (0, data.len())) };
                }
                continue;
            }
            if self.pairs.receives(step) && !taking.received {
                match line::receive_head(region, me, peer, clock.operation(), self.kind)? {
                    Ok(announced) => self.pairs.received(peer, announced)?,
                    Err(wait) => {
                        taking.index = index;
                        return Ok(Some(wait));
                    }
                }
            }
            let unpublished = clock.unpublished(region, me, peer, step);
            if unpublished.is_some() {
                *taking = Taking { index, received: true, ..*taking };
                return Ok(unpublished);
            }
            taking.received = false;
            let place = self.place(me, clock, step, (peer, me.rank()));
            // SAFETY: S3, received, and reused only after our `acked` or `done`, which come later; the data is as the
            // constructor was promised.
            unsafe { self.pairs.get(region, place, (step, peer), &self.incoming(peer)) }?;
        }
        Ok(None)
    }
}

#[cfg(test)]
impl Blockwise<'_> {
    /// Does this process take any of `peer`'s fragment of `step`?
    pub(super) fn takes_of(&self, step: u64, peer: Rank) -> bool {
        self.takes(step, peer)
    }

    /// Does one process alone post?
    pub(super) const fn is_rooted(&self) -> bool {
        matches!(self.receive, Receive::From(..))
    }
}
