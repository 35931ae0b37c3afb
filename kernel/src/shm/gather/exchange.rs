//! Gather and gatherv by exchange (ours): each rank but the root posts its block, and the root takes all blocks.
//!
//! | rank | per step |
//! |---|---|
//! | root | in step 0 copies its own block; for each other rank: waits for its fragment, copies it to its block |
//! | others | post the next fragment of their block |
//!
//! An allgather is the same plan without a root: each rank posts its block, and takes those of all others.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::{Blocks, absent};
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::{Extent, Region};
use crate::shm::engine::copy::copy_private;
use crate::shm::engine::exchange::{Exchange, Plan};
use crate::shm::engine::pieces::{Cut, Medium, Part, UNKNOWN_ADVANCE, get, put};

/// One process's part of a gather or an allgather.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gather<'a> {
    kind: Kind,
    me: Rank,
    /// Does another rank take this one's block?
    posts: bool,
    /// This rank's block.
    own: Data<'a>,
    /// The blocks of all ranks, where this one receives them.
    receive: Option<Blocks<'a>>,
    in_place: bool,
    cut: Cut,
    steps: u64,
}

impl<'a> Gather<'a> {
    /// A gather of equal blocks to `root`. `send` is this rank's block; `None` at a root whose block is in
    /// place. `receive` is significant only at the root.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; the root's `receive` does not have one block per rank, or blocks
    /// that overlap; the root's `send` and its block in `receive` differ in length; an argument that this rank needs
    /// is missing.
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

    /// A gather of blocks of any lengths; only the root knows all of them.
    ///
    /// # Errors
    /// As [`Self::equal`]; a block has more bytes than the steps of such an operation can carry.
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
        Ok(Exchange::of(Medium::Either, UNKNOWN_ADVANCE, plan))
    }

    #[inline(always)]
    fn to_root(me: &Member, send: Option<Data<'a>>, receive: Option<Blocks<'a>>, root: Rank) -> Result<Self, Refusal> {
        me.check_root(root)?;
        let receive = if me.rank() == root { Some(receive.ok_or(absent())?) } else { None };
        Self::plan(Kind::Gather, me, send, receive, me.rank() != root)
    }

    /// A gather to all ranks, not cut into fragments yet.
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

    /// The same plan, with its blocks cut into these fragments.
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
        (self.posts && (step == 0 || self.cut.part(self.own.len(), step).len > 0)).then_some(0)
    }

    fn takes_any(&self) -> bool {
        self.receive.is_some()
    }

    fn takes(&self, step: u64, peer: Rank) -> bool {
        let Some(blocks) = &self.receive else { return false };
        if peer == self.me {
            // This rank's own block is copied as a whole in step 0, while the others post.
            return step == 0 && !self.in_place;
        }
        step == 0 || self.cut.part(blocks.bytes(peer), step).len > 0
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
            unsafe { copy_private(&self.own, &block, Part::first(block.len())) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { get(region, place, &block, self.cut.part(block.len(), step)) };
        }
        Ok(())
    }
}
