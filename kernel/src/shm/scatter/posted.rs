//! Scatter and scatterv of short blocks on posted lines (ours): all blocks travel [side by side](crate::shm::engine::line_blocks)
//! in one line of the root.
//!
//! | rank | steps |
//! |---|---|
//! | root | *Publish*: wait until its line is free, write head and blocks, store the sequence; then copy its own block |
//! | others | *Receive*: wait for the root's sequence, copy their piece out |
//!
//! Where only the root knows all lengths, each piece has its block's length before it. A rank with a short block does not know
//! whether those of others are short, too: the head of the root's line says so, and if they are not, it goes on
//! [pairwise](super::pairwise), whose first fragment the line has published.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::PollError;
use crate::machine::poll::Poll;
use crate::machine::{Operation, over};
use crate::region::Region;
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::engine::cut::Span;
use crate::shm::engine::line_blocks::{Lengths, OnLines};
use crate::shm::engine::pairwise::Pairwise;

/// One process's part of a scatter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Posted<'a> {
    operation: u64,
    /// The fragment clock at the operation's begin.
    base: u64,
    root: Rank,
    lengths: Lengths,
    /// At the root: a block for each rank.
    send: Option<Blocks<'a>>,
    /// This rank's block; `None`: at the root, in place.
    receive: Option<Data<'a>>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Publish,
    Receive,
    /// The root's line has come, and the blocks are not in it.
    Elsewhere,
    Done,
}

impl<'a> Posted<'a> {
    /// The part of a process whose arguments were checked.
    #[inline(always)]
    pub(super) const fn new(lengths: Lengths, send: Option<Blocks<'a>>, receive: Option<Data<'a>>, root: Rank) -> Self {
        Self { operation: 0, base: 0, root, lengths, send, receive, state: State::Done }
    }
}

impl<'a> OnLines<'a> for Posted<'a> {
    #[inline(always)]
    fn is_elsewhere(&self) -> bool {
        self.state == State::Elsewhere
    }

    #[cold]
    #[inline(never)]
    fn elsewhere(&self, me: &Member) -> Result<Pairwise<'a>, PollError> {
        super::pairwise::scatterv(me, None, self.receive, self.root)
            .map(|pairwise| pairwise.entered(self.operation, self.base))
            .map_err(|refusal| PollError::Mismatch { peer: self.root, refusal })
    }
}

impl Operation for Posted<'_> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        self.operation = me.begin(Kind::Scatter);
        if self.lengths.do_vary() {
            self.base = me.take_clock(Span::UNKNOWN.advance, Span::UNKNOWN.bytes);
        }
        self.state = if me.rank() == self.root { State::Publish } else { State::Receive };
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        match (self.state, &self.send, &self.receive) {
            (State::Publish, Some(blocks), receive) => {
                if me.size() > 1
                    && let Err(wait) = self.lengths.post(region, me, self.operation, Kind::Scatter, blocks)
                {
                    return Ok(Poll::Wait(wait));
                }
                if let Some(receive) = receive {
                    let own = blocks.block(self.root);
                    // SAFETY: both are this process's data, as the constructor was promised; in place they are the same.
                    unsafe { copy_private(region, &own, receive, Part::first(receive.len())) };
                }
            }
            (State::Receive, _, Some(receive)) => {
                match self.lengths.take(region, me, self.operation, Kind::Scatter, self.root, receive) {
                    Ok(true) => {}
                    Ok(false) => {
                        self.state = State::Elsewhere;
                        return Ok(Poll::Done);
                    }
                    Err(halt) => return halt.into(),
                }
            }
            _ => return over(self.operation),
        }
        if self.lengths.do_vary() {
            me.acknowledge(region, self.base + Span::UNKNOWN.advance);
        }
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}
