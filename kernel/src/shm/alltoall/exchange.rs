//! Alltoall, alltoallv and alltoallw by exchange (ours): everyone posts a piece for each process, and takes
//! its own from each.
//!
//! In place needs no other memory: the pieces that a tick receives are those that it has just posted.

use crate::Rank;
use crate::blocks::Blocks;
use crate::comm::Member;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::{Extent, Region};
use crate::shm::copy::copy_private;
use crate::shm::exchange::{Exchange, Plan};
use crate::shm::line::Kind;
use crate::shm::pieces::{Lengths, UNKNOWN, Way};

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alltoall<'a> {
    me: Rank,
    size: u32,
    send: Blocks<'a>,
    receive: Blocks<'a>,
    lengths: Lengths,
    ticks: u64,
}

impl<'a> Alltoall<'a> {
    /// Block r of `send` goes to block `me` of rank r's `receive`; `None`: in place. All blocks of all
    /// processes have one length.
    ///
    /// # Errors
    /// Not one block per rank, or blocks of two lengths.
    #[inline(always)]
    pub fn equal(me: &mut Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Exchange<Self>, Refusal> {
        let send = Self::check(me, send, receive)?;
        let bytes = receive.most();
        send.check_all(bytes)?;
        receive.check_all(bytes)?;
        let (way, lengths) = Lengths::known(me, bytes)?;
        let ticks = lengths.cut().ticks(bytes);
        let plan = Self { me: me.rank(), size: me.size(), send, receive, lengths, ticks };
        Ok(Exchange::new(me, way, ticks, plan))
    }

    /// The same for blocks whose lengths only sender and receiver know.
    ///
    /// # Errors
    /// Not one block per rank, blocks of `receive` that overlap, or this process's own have two lengths.
    #[inline(always)]
    pub fn vary(me: &mut Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Exchange<Self>, Refusal> {
        let receive = receive.apart()?;
        let send = Self::check(me, send, receive)?;
        let own = (send.bytes(me.rank()), receive.bytes(me.rank()));
        Refusal::check(Argument::Bytes, own.0, Bound::Equals(own.1))?;
        let lengths = Lengths::unknown(me, send.most())?;
        let ticks = lengths.cut().bounded_ticks(send.most().max(receive.most()))?;
        let plan = Self { me: me.rank(), size: me.size(), send, receive, lengths, ticks };
        Ok(Exchange::new(me, Way::Queues, UNKNOWN, plan))
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

    fn ticks(&self) -> u64 {
        self.ticks
    }

    fn announced(&self) -> u64 {
        self.lengths.announced()
    }

    fn heard(&mut self, peer: Rank, announced: u64) -> Result<(), PollError> {
        self.lengths.heard(peer, announced)
    }

    fn in_line(&self, writer: Rank) -> bool {
        self.lengths.in_line(writer == self.me)
    }

    fn posts(&self, _: u64) -> bool {
        self.size > 1
    }

    fn takes_any(&self) -> bool {
        true
    }

    fn takes(&self, tick: u64, peer: Rank) -> bool {
        tick == 0 || self.lengths.cut().part(self.receive.bytes(peer), tick).1 > 0
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, tick: u64) {
        for reader in (0..self.size).filter(|&reader| reader != self.me) {
            let pieces = self.lengths.pieces(true, tick);
            // SAFETY: the caller's promise.
            unsafe { pieces.put(region, place, (self.me, reader), tick, &self.send.block(reader)) };
        }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, place: Extent, tick: u64, peer: Rank) -> Result<(), PollError> {
        let block = self.receive.block(peer);
        if peer == self.me {
            let part = self.lengths.cut().part(block.len(), tick);
            // SAFETY: the caller's promise: both are this process's data; in place they are the same.
            unsafe { copy_private(&self.send.block(peer), &block, part) };
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.lengths.pieces(false, tick).get(region, place, (peer, self.me), tick, &block) }
    }
}
