//! Gather and gatherv by exchange (ours): each rank but the root posts its block, and the root takes all blocks.
//!
//! | rank | per step |
//! |---|---|
//! | root | for each other rank: waits for its fragment, copies it to its block. Its own block it copies in step 0; a long one in parts, while it waits and at the end |
//! | others | post the next fragment of their block |
//!
//! An allgather is the same plan without a root: each rank posts its block, and takes those of all others.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::{Blocks, absent};
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, Refusal};
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::copy::{Apart, Part, copy_private};
use crate::shm::engine::cut::{Cut, Medium, ROOTED, Span};
use crate::shm::engine::exchange::{Exchange, Plan};
use crate::shm::engine::loans::{Borrowers, Origin};
use crate::shm::engine::pieces::{put, take};

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
    /// A root's own block, where it is copied apart. Not in an allgather, where others copy theirs at the same time.
    apart: Apart,
    /// The ranks that take this one's block.
    borrowers: Borrowers,
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
        me.check_root(root)?;
        let receive = if me.rank() == root { receive } else { None };
        let own = check(me, send.as_ref(), receive.as_ref(), me.rank() == root)?;
        let medium = Medium::of(own);
        let cut = Cut::new(own, medium.room(me), 1, ROOTED);
        let plan = Self::plan(Kind::Gather, me, send, receive, me.rank() != root, Borrowers::One(root), cut);
        Ok(Exchange::of(medium, cut.span(own), plan))
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
        me.check_root(root)?;
        let receive = if me.rank() == root { receive } else { None };
        let own = check(me, send.as_ref(), receive.as_ref(), me.rank() == root)?;
        let cut = Cut { fragment: Medium::Either.room(me) };
        cut.bounded_steps(longest(own, receive.as_ref()), 1)?;
        let plan = Self::plan(Kind::Gather, me, send, receive, me.rank() != root, Borrowers::One(root), cut);
        Ok(Exchange::of(Medium::Either, Span::UNKNOWN, plan))
    }

    /// The plan for arguments that [`check`] has accepted.
    #[inline(always)]
    pub(crate) fn plan(
        kind: Kind,
        me: &Member,
        send: Option<Data<'a>>,
        receive: Option<Blocks<'a>>,
        posts: bool,
        borrowers: Borrowers,
        cut: Cut,
    ) -> Self {
        let in_place = send.is_none();
        let own = match (send, &receive) {
            (None, Some(blocks)) => blocks.block(me.rank()),
            (Some(send), _) => send,
            (None, None) => Data::EMPTY,
        };
        let steps = cut.steps(longest(own.len(), receive.as_ref()));
        Self { kind, me: me.rank(), posts, own, receive, in_place, apart: Apart::NONE, borrowers, cut, steps }
    }
}

/// Bytes of this process's block, if what it sends and what it receives fit each other. A process that `receives` has blocks.
///
/// # Errors
/// A side is missing; blocks overlap, are not one for each rank, or not as long as what is sent.
#[inline(always)]
pub(crate) fn check(
    me: &Member,
    send: Option<&Data<'_>>,
    receive: Option<&Blocks<'_>>,
    receives: bool,
) -> Result<u64, Refusal> {
    let blocks = match (receive, send) {
        (Some(blocks), _) => blocks,
        (None, Some(send)) if !receives => return Ok(send.len()),
        _ => return Err(absent()),
    };
    blocks.apart()?;
    Refusal::check(Argument::Ranks, blocks.ranks().into(), Bound::Equals(me.size().into()))?;
    let expected = blocks.bytes(me.rank());
    match send {
        Some(send) => Refusal::check(Argument::Bytes, send.len(), Bound::Equals(expected)),
        None => Ok(expected),
    }
}

/// Bytes of the longest block that this process sends or receives, its own having `own`.
#[inline(always)]
fn longest(own: u64, receive: Option<&Blocks<'_>>) -> u64 {
    match receive {
        Some(blocks) => own.max(blocks.most()),
        None => own,
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

    fn longest(&self) -> u64 {
        longest(self.own.len(), self.receive.as_ref())
    }

    fn expected(&self, peer: Rank) -> u64 {
        match &self.receive {
            Some(blocks) => blocks.bytes(peer),
            None => 0,
        }
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
            // This rank's own block is copied as a whole in step 0, while the others post; or a root's apart.
            return step == 0 && !self.in_place && (self.posts || !Apart::has(self.own.len()));
        }
        step == 0 || self.cut.part(blocks.bytes(peer), step).len > 0
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        // SAFETY: the caller's promise.
        unsafe { put(region, place, &self.own, self.cut.part(self.own.len(), step)) }
    }

    #[inline(always)]
    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable> {
        let Some(blocks) = &self.receive else { return Ok(()) };
        let block = blocks.block(peer);
        if peer == self.me {
            // SAFETY: the caller's promise: both are this process's data.
            unsafe { copy_private(region, &self.own, &block, Part::first(block.len())) };
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { take(region, origin, &block, self.cut.part_from(origin, block.len(), step)) }
    }

    #[inline(always)]
    fn restart(&mut self) {
        self.apart = Apart::NONE;
    }

    #[inline(always)]
    unsafe fn work<R: Region>(&mut self, region: &R, all: bool) -> bool {
        match &self.receive {
            // SAFETY: the caller's promise: both are this process's data.
            Some(blocks) if !self.posts && !self.in_place => unsafe {
                self.apart.copy(region, &self.own, &blocks.block(self.me), all)
            },
            _ => false,
        }
    }

    fn lendable(&self) -> Option<Buf> {
        self.own.as_contiguous()
    }

    fn borrowers(&self) -> Borrowers {
        self.borrowers
    }
}
