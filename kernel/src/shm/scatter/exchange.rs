//! Scatter and scatterv by exchange (ours): the root posts a piece for each process, each takes its own.
//!
//! | who | per tick |
//! |---|---|
//! | root | posts the next piece of every block, side by side in one fragment |
//! | others | wait for the root's fragment, copy their piece out |

use crate::Rank;
use crate::blocks::{Blocks, absent};
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::{Extent, Region};
use crate::shm::copy::copy_private;
use crate::shm::exchange::{Exchange, Plan};
use crate::shm::line::Kind;
use crate::shm::pieces::{Lengths, UNKNOWN, Way};

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scatter<'a> {
    me: Rank,
    size: u32,
    root: Rank,
    /// Everyone's blocks, at the root.
    send: Option<Blocks<'a>>,
    /// This process's block; none at a root that keeps it in place.
    receive: Option<Data<'a>>,
    lengths: Lengths,
    ticks: u64,
}

impl<'a> Scatter<'a> {
    /// A scatter of equal blocks from `root`: `send` counts at the root alone, `receive` is this process's
    /// block, `None` where the root's stays in place.
    ///
    /// # Errors
    /// `root` is no rank; the root's blocks are not one per rank, or not of the length of its own.
    #[inline(always)]
    pub fn equal(
        me: &mut Member,
        send: Option<Blocks<'a>>,
        receive: Option<Data<'a>>,
        root: Rank,
    ) -> Result<Exchange<Self>, Refusal> {
        let bytes = Self::check(me, &send, &receive, root)?;
        let (way, lengths) = Lengths::known(me, bytes)?;
        let ticks = lengths.cut().ticks(bytes);
        let plan = Self::plan(me, send, receive, root, (lengths, ticks));
        Ok(Exchange::new(me, way, ticks, plan))
    }

    /// A scatter of blocks whose lengths only the root knows all of.
    ///
    /// # Errors
    /// As [`Self::equal`].
    #[inline(always)]
    pub fn vary(
        me: &mut Member,
        send: Option<Blocks<'a>>,
        receive: Option<Data<'a>>,
        root: Rank,
    ) -> Result<Exchange<Self>, Refusal> {
        let bytes = Self::check(me, &send, &receive, root)?;
        let most = if me.rank() == root { send.map_or(0, |blocks| blocks.most()) } else { bytes };
        let lengths = Lengths::unknown(me, most)?;
        let ticks = lengths.cut().bounded_ticks(most)?;
        let plan = Self::plan(me, send, receive, root, (lengths, ticks));
        Ok(Exchange::new(me, Way::Queues, UNKNOWN, plan))
    }

    /// Checks what was given; bytes of this process's block.
    #[inline(always)]
    fn check(me: &Member, send: &Option<Blocks<'a>>, receive: &Option<Data<'a>>, root: Rank) -> Result<u64, Refusal> {
        me.check_root(root)?;
        if me.rank() != root {
            return receive.map(|data| data.len()).ok_or(absent());
        }
        let blocks = send.as_ref().ok_or(absent())?;
        Refusal::check(Argument::Ranks, blocks.ranks().into(), Bound::Equals(me.size().into()))?;
        let bytes = blocks.bytes(root);
        if let Some(data) = receive {
            Refusal::check(Argument::Bytes, data.len(), Bound::Equals(bytes))?;
        }
        Ok(bytes)
    }

    #[inline(always)]
    fn plan(
        me: &Member,
        send: Option<Blocks<'a>>,
        receive: Option<Data<'a>>,
        root: Rank,
        (lengths, ticks): (Lengths, u64),
    ) -> Self {
        let send = send.filter(|_| me.rank() == root);
        Self { me: me.rank(), size: me.size(), root, send, receive, lengths, ticks }
    }
}

impl Plan for Scatter<'_> {
    fn kind(&self) -> Kind {
        Kind::Scatter
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
        self.send.is_some() && self.size > 1
    }

    fn takes_any(&self) -> bool {
        self.send.is_none()
    }

    fn takes(&self, _: u64, peer: Rank) -> bool {
        peer == self.root && self.receive.is_some()
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, tick: u64) {
        let Some(blocks) = &self.send else { return };
        for reader in (0..self.size).filter(|&reader| reader != self.me) {
            let pieces = self.lengths.pieces(true, tick);
            // SAFETY: the caller's promise.
            unsafe { pieces.put(region, place, (self.me, reader), tick, &blocks.block(reader)) };
        }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, place: Extent, tick: u64, peer: Rank) -> Result<(), PollError> {
        let Some(data) = &self.receive else { return Ok(()) };
        match &self.send {
            Some(blocks) => {
                let part = self.lengths.cut().part(data.len(), tick);
                // SAFETY: the caller's promise: both are this process's data.
                unsafe { copy_private(&blocks.block(self.me), data, part) };
                Ok(())
            }
            // SAFETY: the caller's promise.
            None => unsafe { self.lengths.pieces(false, tick).get(region, place, (peer, self.me), tick, data) },
        }
    }
}
