//! A block for each pair of processes (ours): alltoall, and scatter, where one process alone has blocks. An engine of
//! [`ticks`](super::ticks).
//!
//! Where blocks travel, and who knows their lengths, [`pairs`](super::pairs) says: in tick 0 side by side, a block for everyone
//! in one place; in later ticks a fragment is for one reader, and each process exchanges with one other.
//!
//! Where one process alone posts it goes on in its readers' queues when its own is full, so that much is posted before
//! readers must come.

use super::copy::copy_private;
use super::exchange::Order;
use super::line;
use super::pairs::Pairs;
use super::pieces::{UNKNOWN, Way};
use super::ticks::{Clock, Engine, Taking, Ticks};
use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::{PollError, Refusal};
use crate::machine::step::Awaits;
use crate::region::{Extent, Region};

/// One process's part.
pub type Pairwise<'a> = Ticks<Blockwise<'a>>;

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
        let (way, ticks, pairs) = Pairs::known(me, bytes)?;
        Ok(Self::new(if way == Way::Lines { 0 } else { ticks }, Blockwise { kind, pairs, send, receive }))
    }

    /// Blocks whose lengths only writer and reader know. The longest that this process receives from one has `most` bytes.
    ///
    /// # Errors
    /// More bytes than the clock's ticks for them.
    #[inline(always)]
    pub(crate) fn vary(
        me: &Member,
        kind: Kind,
        most: u64,
        send: Option<Blocks<'a>>,
        receive: Receive<'a>,
    ) -> Result<Self, Refusal> {
        let pairs = Pairs::unknown(me, send.map_or(0, |blocks| blocks.most()), most)?;
        Ok(Self::new(UNKNOWN, Blockwise { kind, pairs, send, receive }))
    }
}

impl<'a> Blockwise<'a> {
    /// What this process receives from `writer`.
    #[inline(always)]
    fn incoming(&self, writer: Rank) -> Option<Data<'a>> {
        match self.receive {
            Receive::Each(blocks) => Some(blocks.block(writer)),
            Receive::From(root, data) => data.filter(|_| writer == root),
        }
    }

    /// Does this process take a fragment of its block from `peer` in `tick`?
    #[inline]
    fn takes(&self, tick: u64, peer: Rank, block: &Data<'_>) -> bool {
        self.pairs.takes(tick, peer, || block.len())
    }

    /// Where `writer`'s fragment of `tick` for `reader` lies.
    #[inline]
    pub(super) fn place(&self, me: &Member, clock: &Clock, tick: u64, (writer, reader): (Rank, Rank)) -> Extent {
        if !self.pairs.in_slot(tick, writer) {
            clock.line(me, writer)
        } else if self.beyond(me, tick).is_some() {
            clock.slot(me, reader, tick)
        } else {
            clock.slot(me, writer, tick)
        }
    }

    /// If one process alone posts, and its queue is full with what is before `tick`, so that it goes on in its readers' queues:
    /// the ticks until it comes to the same slot again, when all slots, a power of two, have been through all turns, an odd number.
    #[inline]
    pub(super) fn beyond(&self, me: &Member, tick: u64) -> Option<u64> {
        let slots = u64::from(me.layout().params().queue_slots);
        (tick >= slots && matches!(self.receive, Receive::From(..))).then(|| slots * self.pairs.turns())
    }
}

impl Engine for Blockwise<'_> {
    #[inline]
    fn kind(&self) -> Kind {
        self.kind
    }

    #[inline]
    fn ticks(&self) -> u64 {
        self.pairs.ticks()
    }

    /// Where one process alone posts it takes from nobody.
    #[inline]
    fn takes_any(&self) -> bool {
        matches!(self.receive, Receive::Each(_)) || self.send.is_none()
    }

    /// Where one process alone posts, others have to do with that one alone.
    #[inline]
    fn next(&self, tick: u64) -> u64 {
        match self.receive {
            Receive::From(root, _) if self.send.is_none() => self.pairs.next_with(tick, root),
            _ => tick + 1,
        }
    }

    #[inline]
    fn posts(&self, tick: u64) -> Option<u64> {
        let blocks = self.send.as_ref()?;
        self.pairs.posts(tick, |reader| blocks.bytes(reader)).then_some(0)
    }

    #[inline]
    fn restart(&mut self) {}

    #[inline]
    fn post<R: Region>(&mut self, region: &R, me: &mut Member, clock: &Clock, tick: u64) -> Result<(), Awaits> {
        let Some(blocks) = &self.send else { return Ok(()) };
        if tick == 0 {
            me.line_free(region, clock.operation())?;
        }
        if self.pairs.in_slot(tick, me.rank()) {
            match self.beyond(me, tick) {
                // What a reader's queue held before this operation is not known here.
                Some(round) => {
                    let needed = clock.at(0).max((clock.at(tick) + 1).saturating_sub(round));
                    me.all_taken(region, clock.operation(), clock.at(tick), needed)?;
                }
                None => me.take_slot(region, clock.operation(), clock.at(tick))?,
            }
        }
        let reader = self.pairs.partner(tick).unwrap_or(me.rank());
        let place = self.place(me, clock, tick, (me.rank(), reader));
        // SAFETY: R10 (checked as S2), the line is free, and everyone has taken the slot's last fragment, this process
        // too: it takes nothing, or posts less than a queue ahead of what it takes. The data is as the constructor was promised.
        unsafe { self.pairs.put(region, place, tick, blocks) };
        clock.publish(region, me, (self.kind, self.pairs.announced()), tick);
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
        let partner = self.pairs.partner(tick);
        for index in taking.index..if partner.is_some() { 1 } else { me.size() } {
            let peer = partner.unwrap_or_else(|| Order::OwnFirst.peer(me.rank(), me.size(), index));
            let Some(data) = self.incoming(peer).filter(|data| self.takes(tick, peer, data)) else { continue };
            if peer == me.rank() {
                if let Some(blocks) = &self.send {
                    // SAFETY: both are this process's data, as the constructor was promised; in place they are the same.
                    unsafe { copy_private(&blocks.block(peer), &data, (0, data.len())) };
                }
                continue;
            }
            if self.pairs.hears(tick) && !taking.heard {
                match line::hear_head(region, me, peer, clock.operation(), self.kind)? {
                    Ok(announced) => self.pairs.heard(peer, announced)?,
                    Err(wait) => {
                        taking.index = index;
                        return Ok(Some(wait));
                    }
                }
            }
            let unpublished = clock.unpublished(region, me, peer, tick);
            if unpublished.is_some() {
                *taking = Taking { index, heard: true, ..*taking };
                return Ok(unpublished);
            }
            taking.heard = false;
            let place = self.place(me, clock, tick, (peer, me.rank()));
            // SAFETY: S3, heard, and reused only after our `taken` or `done`, which come later; the data is as the
            // constructor was promised.
            unsafe { self.pairs.get(region, place, (tick, peer), &data) }?;
        }
        Ok(None)
    }
}

#[cfg(test)]
impl Blockwise<'_> {
    /// Does this process take any of `peer`'s fragment of `tick`?
    pub(super) fn takes_of(&self, tick: u64, peer: Rank) -> bool {
        self.incoming(peer).is_some_and(|data| self.takes(tick, peer, &data))
    }

    /// Does one process alone post?
    pub(super) const fn is_rooted(&self) -> bool {
        matches!(self.receive, Receive::From(..))
    }
}
