//! Gather and gatherv by exchange (ours): everyone but the root posts its block, the root takes them all.
//!
//! | who | per step |
//! |---|---|
//! | root | the first time, copies its own block; for each rank behind it: waits for the rank's fragment, copies it to the rank's block |
//! | others | post the next fragment of their block |
//!
//! A gather to everyone is an allgather: the same plan without a root.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::{Blocks, absent};
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::{Extent, Region};
use crate::shm::engine::copy::copy_private;
use crate::shm::engine::exchange::{Exchange, Plan};
use crate::shm::engine::pieces::{Cut, Medium, UNKNOWN, get, put};

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gather<'a> {
    kind: Kind,
    me: Rank,
    /// Does another process take this one's block?
    posts: bool,
    own: Data<'a>,
    /// Everyone's blocks, where they are received.
    receive: Option<Blocks<'a>>,
    in_place: bool,
    cut: Cut,
    steps: u64,
}

impl<'a> Gather<'a> {
    /// A gather of equal blocks to `root`: `send` is this process's block, `None` where the root's is in
    /// place; `receive` counts at the root alone.
    ///
    /// # Errors
    /// `root` is no rank; the root's blocks are not one per rank, or not of the length of its own.
    #[inline(always)]
    pub fn equal(
        me: &Member,
        send: Option<Data<'a>>,
        receive: Option<Blocks<'a>>,
        root: Rank,
    ) -> Result<Exchange<Self>, Refusal> {
        let plan = Self::to_root(me, send, receive, root)?;
        let bytes = plan.own.len();
        let medium = Medium::of(bytes);
        let cut = Cut::new(bytes, medium.room(me), 1);
        Ok(Exchange::of(medium, cut.steps(bytes), plan.cut(cut)))
    }

    /// A gather of blocks whose lengths only the root knows all of.
    ///
    /// # Errors
    /// As [`Self::equal`].
    #[inline(always)]
    pub fn vary(
        me: &Member,
        send: Option<Data<'a>>,
        receive: Option<Blocks<'a>>,
        root: Rank,
    ) -> Result<Exchange<Self>, Refusal> {
        let plan = Self::to_root(me, send, receive, root)?;
        let cut = Cut { fragment: Medium::Either.room(me) };
        let plan = plan.cut(cut);
        cut.bounded_steps(plan.own.len().max(plan.receive.map_or(0, |blocks| blocks.most())), 1)?;
        Ok(Exchange::of(Medium::Either, UNKNOWN, plan))
    }

    #[inline(always)]
    fn to_root(me: &Member, send: Option<Data<'a>>, receive: Option<Blocks<'a>>, root: Rank) -> Result<Self, Refusal> {
        me.check_root(root)?;
        let receive = if me.rank() == root { Some(receive.ok_or(absent())?) } else { None };
        Self::plan(Kind::Gather, me, send, receive, me.rank() != root)
    }

    /// A gather to everyone.
    #[inline(always)]
    pub(crate) fn to_all(me: &Member, send: Option<Data<'a>>, receive: Blocks<'a>) -> Result<Self, Refusal> {
        Self::plan(Kind::Allgather, me, send, Some(receive), me.size() > 1)
    }

    #[inline(always)]
    fn plan(
        kind: Kind,
        me: &Member,
        send: Option<Data<'a>>,
        receive: Option<Blocks<'a>>,
        posts: bool,
    ) -> Result<Self, Refusal> {
        let receive = receive.map(Blocks::apart).transpose()?;
        if let Some(blocks) = &receive {
            Refusal::check(Argument::Ranks, blocks.ranks().into(), Bound::Equals(me.size().into()))?;
        }
        let own = match (send, &receive) {
            (Some(send), _) => send,
            (None, Some(blocks)) => blocks.block(me.rank()),
            (None, None) => return Err(absent()),
        };
        if let Some(blocks) = &receive {
            Refusal::check(Argument::Bytes, own.len(), Bound::Equals(blocks.bytes(me.rank())))?;
        }
        let cut = Cut { fragment: 1 };
        Ok(Self { kind, me: me.rank(), posts, own, receive, in_place: send.is_none(), cut, steps: 0 })
    }

    #[inline(always)]
    pub(crate) fn cut(mut self, cut: Cut) -> Self {
        let most = self.receive.map_or(0, |blocks| blocks.most());
        (self.cut, self.steps) = (cut, cut.steps(self.own.len().max(most)));
        self
    }
}

impl Plan for Gather<'_> {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn announced(&self) -> u64 {
        self.own.len()
    }

    fn expected(&self, peer: Rank) -> u64 {
        self.receive.map_or(0, |blocks| blocks.bytes(peer))
    }

    fn posts(&self, step: u64) -> Option<u64> {
        (self.posts && (step == 0 || self.cut.part(self.own.len(), step).1 > 0)).then_some(0)
    }

    fn takes_any(&self) -> bool {
        self.receive.is_some()
    }

    fn takes(&self, step: u64, peer: Rank) -> bool {
        let Some(blocks) = &self.receive else { return false };
        if peer == self.me {
            // All of its own block at once, while the others post.
            return step == 0 && !self.in_place;
        }
        step == 0 || self.cut.part(blocks.bytes(peer), step).1 > 0
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        // SAFETY: the caller's promise.
        unsafe { put(region, place, &self.own, self.cut.part(self.own.len(), step)) }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, place: Extent, step: u64, peer: Rank) -> Result<(), PollError> {
        let Some(blocks) = &self.receive else { return Ok(()) };
        let block = blocks.block(peer);
        if peer == self.me {
            // SAFETY: the caller's promise: both are this process's data.
            unsafe { copy_private(&self.own, &block, (0, block.len())) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { get(region, place, &block, self.cut.part(block.len(), step)) };
        }
        Ok(())
    }
}
