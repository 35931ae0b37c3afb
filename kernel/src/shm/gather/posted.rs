//! Gather, gatherv and allgather(v) of short blocks on posted lines (ours): each rank whose block another one takes posts it in its
//! line.
//!
//! | rank | steps |
//! |---|---|
//! | each but the root | *Publish*: wait until its line is free, write head and block, store the sequence |
//! | the root; in an allgather each | *Take*: copy its own block; then for each other rank, from the next one on, wait for its line and copy its block |
//!
//! Of a gatherv only the root knows all lengths. A rank with a long block posts it [by exchange](super::exchange), and so a root
//! that takes one takes all of them like that: a short block lies in its rank's line either way.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::{PollError, Refusal};
use crate::machine::poll::{Halt, Poll, WaitSet};
use crate::machine::{Operation, over};
use crate::region::Region;
use crate::region::layout::LINE_PAYLOAD;
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::engine::cut::Span;
use crate::shm::engine::exchange::Order;
use crate::shm::engine::line::{self, Body, Heading};
use crate::shm::gather::exchange::check;

/// The longest block, in bytes.
pub const MOST: u64 = LINE_PAYLOAD;

/// One process's part of a gather or an allgather.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Posted<'a> {
    operation: u64,
    kind: Kind,
    /// What it takes of the fragment clock: nothing, where all ranks know that no block is long.
    advance: u64,
    /// The fragment clock at the operation's begin.
    base: u64,
    /// Does another rank take this one's block?
    posts: bool,
    /// This rank's block.
    own: Data<'a>,
    /// The blocks of all ranks, where this one receives them.
    receive: Option<Blocks<'a>>,
    in_place: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Publish,
    /// The blocks of the ranks before this index are taken, in the order in which this process takes them.
    Take(u32),
    Done,
}

/// Does the block of a rank of a gatherv lie in its line? All ranks have the same rule.
#[inline(always)]
pub fn fits(me: &Member, bytes: u64) -> bool {
    bytes <= MOST.min(me.layout().params().queue_fragment)
}

/// Do all blocks of a gatherv that this process knows [fit](fits) lines?
#[inline(always)]
pub fn all_fit(me: &Member, send: Option<&Data<'_>>, receive: Option<&Blocks<'_>>, root: Rank) -> bool {
    let most = match receive {
        Some(blocks) if me.rank() == root => blocks.most(),
        _ => 0,
    };
    fits(me, send.map_or(0, Data::len).max(most))
}

impl<'a> Posted<'a> {
    /// A gather of equal blocks of up to [`MOST`] bytes to `root`. `send` is this rank's block; `None` at a root whose block is in
    /// place. `receive` is significant only at the root.
    ///
    /// # Errors
    /// As [`Gather::equal`](super::exchange::Gather::equal).
    #[inline(always)]
    pub fn gather(
        me: &Member,
        send: Option<Data<'a>>,
        receive: Option<Blocks<'a>>,
        root: Rank,
    ) -> Result<Self, Refusal> {
        Self::rooted(me, send, receive, root, 0)
    }

    /// A gather of blocks that [fit](all_fit), as far as this process knows.
    ///
    /// # Errors
    /// As [`Gather::equal`](super::exchange::Gather::equal).
    #[inline(always)]
    pub fn gatherv(
        me: &Member,
        send: Option<Data<'a>>,
        receive: Option<Blocks<'a>>,
        root: Rank,
    ) -> Result<Self, Refusal> {
        Self::rooted(me, send, receive, root, Span::UNKNOWN.advance)
    }

    /// An allgather, of blocks of up to [`MOST`] bytes, equal or not.
    ///
    /// # Errors
    /// As [`allgather`](crate::shm::allgather::exchange::allgather).
    #[inline(always)]
    pub fn allgather(me: &Member, send: Option<Data<'a>>, receive: Blocks<'a>) -> Result<Self, Refusal> {
        check(me, send.as_ref(), Some(&receive), true)?;
        Ok(Self::new(me, Kind::Allgather, me.size() > 1, send, Some(receive), 0))
    }

    #[inline(always)]
    fn rooted(
        me: &Member,
        send: Option<Data<'a>>,
        receive: Option<Blocks<'a>>,
        root: Rank,
        advance: u64,
    ) -> Result<Self, Refusal> {
        me.check_root(root)?;
        let mine = me.rank() == root;
        let receive = if mine { receive } else { None };
        check(me, send.as_ref(), receive.as_ref(), mine)?;
        Ok(Self::new(me, Kind::Gather, !mine, send, receive, advance))
    }

    #[inline(always)]
    fn new(
        me: &Member,
        kind: Kind,
        posts: bool,
        send: Option<Data<'a>>,
        receive: Option<Blocks<'a>>,
        advance: u64,
    ) -> Self {
        let in_place = send.is_none();
        let own = match (send, &receive) {
            (Some(send), _) => send,
            (None, Some(blocks)) => blocks.block(me.rank()),
            (None, None) => Data::EMPTY,
        };
        Self { operation: 0, kind, advance, base: 0, posts, own, receive, in_place, state: State::Done }
    }

    #[inline(always)]
    fn publish<R: Region>(&self, region: &R, me: &mut Member) -> Result<(), WaitSet> {
        me.line_free(region, self.operation)?;
        me.uses_slot(0);
        let (bytes, mut body) = (self.own.len(), Body::new());
        body.gather(&self.own);
        line::publish(region, me, self.operation, Heading { kind: self.kind, bytes }, &mut body, bytes);
        Ok(())
    }

    /// Takes the blocks of the ranks from `index` on.
    #[inline(always)]
    fn take<R: Region>(&self, region: &R, me: &Member, blocks: &Blocks<'_>, index: &mut u32) -> Result<(), Halt> {
        let (rank, size, first) = (me.rank(), me.size(), *index);
        let peer_at = |index| Order::OwnFirst.peer(rank, size, index);
        if first == 0 {
            if !self.in_place {
                // SAFETY: both are this process's data, as the constructor was promised.
                unsafe { copy_private(region, &self.own, &blocks.block(rank), Part::first(self.own.len())) };
            }
            *index = 1;
        }
        while *index < size {
            let peer = peer_at(*index);
            let (bytes, mut body) = (blocks.bytes(peer), Body::new());
            let heading = Heading { kind: self.kind, bytes };
            line::receive(region, me, peer, self.operation, heading, &mut body, bytes)?;
            line::expect(region, me, self.operation, *index, *index == first.max(1), peer_at);
            match blocks.dense(peer) {
                // SAFETY: the block's memory, which the caller may write.
                Some(memory) => unsafe { body.scatter_into(0, memory) },
                None => body.scatter(&blocks.block(peer)),
            }
            *index += 1;
        }
        Ok(())
    }
}

impl Operation for Posted<'_> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        self.operation = me.begin(self.kind);
        if self.advance > 0 {
            self.base = me.take_clock(self.advance, Span::UNKNOWN.bytes);
        }
        self.state = State::Publish;
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let mut index = match self.state {
            State::Publish => {
                if self.posts
                    && let Err(wait) = self.publish(region, me)
                {
                    return Ok(Poll::Wait(wait));
                }
                0
            }
            State::Take(index) => index,
            State::Done => return over(self.operation),
        };
        if let Some(blocks) = &self.receive {
            if let Err(halt) = self.take(region, me, blocks, &mut index) {
                self.state = State::Take(index);
                return halt.into();
            }
            me.all_reached(self.operation);
        }
        if self.advance > 0 {
            me.acknowledge(region, self.base + self.advance);
        }
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}
