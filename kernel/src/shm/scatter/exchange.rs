//! Scatter and scatterv by exchange (ours): the root posts a piece for each process, each takes its own.
//!
//! | who | per tick |
//! |---|---|
//! | root | posts the next piece of every block side by side in one fragment; longer ones in turns, a piece for one process, in its own queue and then in theirs |
//! | others | wait for the root's fragment, copy their piece out |

use crate::Rank;
use crate::blocks::{Blocks, absent};
use crate::collective::Kind;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::{Extent, Region};
use crate::shm::copy::copy_private;
use crate::shm::exchange::{Exchange, Plan};
use crate::shm::pairs::{Pairs, through_pairs};
use crate::shm::pieces::{UNKNOWN, Way};

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scatter<'a> {
    pairs: Pairs,
    root: Rank,
    /// Everyone's blocks, at the root.
    send: Option<Blocks<'a>>,
    /// This process's block; none at a root that keeps it in place.
    receive: Option<Data<'a>>,
}

impl<'a> Scatter<'a> {
    /// A scatter of equal blocks from `root`: `send` counts at the root alone, `receive` is this process's
    /// block, `None` where the root's stays in place.
    ///
    /// # Errors
    /// `root` is no rank; the root's blocks are not one per rank, or not of the length of its own.
    #[inline(always)]
    pub fn equal(
        me: &Member,
        send: Option<Blocks<'a>>,
        receive: Option<Data<'a>>,
        root: Rank,
    ) -> Result<Exchange<Self>, Refusal> {
        let bytes = Self::check(me, &send, &receive, root)?;
        let (way, ticks, pairs) = Pairs::known(me, bytes)?;
        let plan = Self { pairs, root, send: send.filter(|_| me.rank() == root), receive };
        Ok(Exchange::new(way, ticks, plan))
    }

    /// A scatter of blocks whose lengths only the root knows all of.
    ///
    /// # Errors
    /// As [`Self::equal`].
    #[inline(always)]
    pub fn vary(
        me: &Member,
        send: Option<Blocks<'a>>,
        receive: Option<Data<'a>>,
        root: Rank,
    ) -> Result<Exchange<Self>, Refusal> {
        let bytes = Self::check(me, &send, &receive, root)?;
        let send = send.filter(|_| me.rank() == root);
        let pairs = Pairs::unknown(me, send.map_or(0, |blocks| blocks.most()), bytes)?;
        Ok(Exchange::new(Way::Queues, UNKNOWN, Self { pairs, root, send, receive }))
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
}

impl Plan for Scatter<'_> {
    fn kind(&self) -> Kind {
        Kind::Scatter
    }

    through_pairs!(pairs);

    fn posts(&self, tick: u64) -> bool {
        self.send.is_some_and(|blocks| self.pairs.posts(tick, |reader| blocks.bytes(reader)))
    }

    fn takes_any(&self) -> bool {
        self.send.is_none()
    }

    fn alone(&self) -> Option<u64> {
        Some(self.pairs.turns())
    }

    /// Others have to do with the root alone.
    fn next(&self, tick: u64) -> u64 {
        if self.send.is_some() { tick + 1 } else { self.pairs.next_with(tick, self.root) }
    }

    fn takes(&self, tick: u64, peer: Rank) -> bool {
        peer == self.root && self.receive.is_some_and(|data| self.pairs.takes(tick, peer, || data.len()))
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, tick: u64) {
        let Some(blocks) = &self.send else { return };
        // SAFETY: the caller's promise.
        unsafe { self.pairs.put(region, place, tick, blocks) };
    }

    unsafe fn take<R: Region>(&mut self, region: &R, place: Extent, tick: u64, peer: Rank) -> Result<(), PollError> {
        let Some(data) = &self.receive else { return Ok(()) };
        match &self.send {
            Some(blocks) => {
                // SAFETY: the caller's promise: both are this process's data.
                unsafe { copy_private(&blocks.block(peer), data, (0, data.len())) };
                Ok(())
            }
            // SAFETY: the caller's promise.
            None => unsafe { self.pairs.get(region, place, (tick, peer), data) },
        }
    }
}
