//! Alltoall, alltoallv and alltoallw by exchange (ours): everyone posts a piece for each process, and takes
//! its own from each.
//!
//! In place needs no other memory: the pieces that a tick receives are those that it has just posted.

use crate::Rank;
use crate::blocks::Blocks;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::{Extent, Region};
use crate::shm::copy::copy_private;
use crate::shm::exchange::{Exchange, Plan};
use crate::shm::pairs::{Pairs, through_pairs};
use crate::shm::pieces::{UNKNOWN, Way};

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alltoall<'a> {
    pairs: Pairs,
    send: Blocks<'a>,
    receive: Blocks<'a>,
}

impl<'a> Alltoall<'a> {
    /// Block r of `send` goes to block `me` of rank r's `receive`; `None`: in place. All blocks of all
    /// processes have one length.
    ///
    /// # Errors
    /// Not one block per rank, or blocks of two lengths.
    #[inline(always)]
    pub fn equal(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Exchange<Self>, Refusal> {
        let send = Self::check(me, send, receive)?;
        let bytes = receive.most();
        send.check_all(bytes)?;
        receive.check_all(bytes)?;
        let (way, ticks, pairs) = Pairs::known(me, bytes)?;
        Ok(Exchange::new(way, ticks, Self { pairs, send, receive }))
    }

    /// The same for blocks whose lengths only sender and receiver know.
    ///
    /// # Errors
    /// Not one block per rank, blocks of `receive` that overlap, or this process's own have two lengths.
    #[inline(always)]
    pub fn vary(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Exchange<Self>, Refusal> {
        let receive = receive.apart()?;
        let send = Self::check(me, send, receive)?;
        let own = (send.bytes(me.rank()), receive.bytes(me.rank()));
        Refusal::check(Argument::Bytes, own.0, Bound::Equals(own.1))?;
        let pairs = Pairs::unknown(me, send.most(), receive.most())?;
        Ok(Exchange::new(Way::Queues, UNKNOWN, Self { pairs, send, receive }))
    }

    #[inline(always)]
    fn check(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Blocks<'a>, Refusal> {
        let send = send.unwrap_or(receive);
        Refusal::check(Argument::Ranks, send.ranks().into(), Bound::Equals(me.size().into()))?;
        Refusal::check(Argument::Ranks, receive.ranks().into(), Bound::Equals(me.size().into()))?;
        Ok(send)
    }
}

impl Plan for Alltoall<'_> {
    fn kind(&self) -> Kind {
        Kind::Alltoall
    }

    through_pairs!(pairs);

    fn posts(&self, tick: u64) -> bool {
        self.pairs.posts(tick, |reader| self.send.bytes(reader))
    }

    fn takes_any(&self) -> bool {
        true
    }

    fn takes(&self, tick: u64, peer: Rank) -> bool {
        self.pairs.takes(tick, peer, || self.receive.bytes(peer))
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, tick: u64) {
        // SAFETY: the caller's promise.
        unsafe { self.pairs.put(region, place, tick, &self.send) };
    }

    unsafe fn take<R: Region>(&mut self, region: &R, place: Extent, tick: u64, peer: Rank) -> Result<(), PollError> {
        let block = self.receive.block(peer);
        if peer == self.pairs.me() {
            // SAFETY: the caller's promise: both are this process's data; in place they are the same.
            unsafe { copy_private(&self.send.block(peer), &block, (0, block.len())) };
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.pairs.get(region, place, (tick, peer), &block) }
    }
}
