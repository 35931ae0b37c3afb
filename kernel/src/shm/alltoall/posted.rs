//! Alltoall, alltoallv and alltoallw of short blocks on posted lines (ours): the blocks of each rank travel
//! [side by side](crate::shm::engine::line_blocks) in its line.
//!
//! | rank | steps |
//! |---|---|
//! | all | *Publish*: wait until its line is free, write head and blocks, store the sequence |
//! | all | *Take*: copy its own block; of each other rank, from the next one on, wait for the sequence, copy the piece out |
//!
//! In place it needs no other memory: all blocks are posted before one is taken. Where only two ranks know a block's length, one
//! whose blocks are all short does not know whether all of another are: the head of that one's line says so, and if they are not,
//! it goes on [pairwise](super::pairwise).

use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::error::PollError;
use crate::machine::poll::{Halt, Poll};
use crate::machine::{Operation, over};
use crate::region::Region;
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::engine::cut::Span;
use crate::shm::engine::exchange::Order;
use crate::shm::engine::line_blocks::{Lengths, OnLines};
use crate::shm::engine::pairwise::Pairwise;

/// One process's part of an alltoall.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Posted<'a> {
    operation: u64,
    /// The fragment clock at the operation's begin.
    base: u64,
    lengths: Lengths,
    send: Blocks<'a>,
    receive: Blocks<'a>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Publish,
    /// The blocks of the ranks below this index, in the order in which it takes them, are taken.
    Take(u32),
    /// The line of the rank at this index has come, and the blocks are not in it.
    Elsewhere(u32),
    Done,
}

impl<'a> Posted<'a> {
    /// The part of a process whose arguments were checked.
    #[inline(always)]
    pub(super) const fn new(lengths: Lengths, send: Blocks<'a>, receive: Blocks<'a>) -> Self {
        Self { operation: 0, base: 0, lengths, send, receive, state: State::Done }
    }

    /// Takes the blocks from lines, from the rank at `index` on. Returns whether all were there.
    #[inline(always)]
    fn take<R: Region>(&self, region: &R, me: &Member, index: &mut u32) -> Result<bool, Halt> {
        while *index < me.size() {
            let peer = Order::OwnFirst.peer(me.rank(), me.size(), *index);
            let block = self.receive.block(peer);
            if peer == me.rank() {
                let own = self.send.block(peer);
                // SAFETY: both are this process's data, as the constructor was promised; in place they are the same.
                unsafe { copy_private(region, &own, &block, Part::first(block.len())) };
            } else if !self.lengths.take(region, me, self.operation, Kind::Alltoall, peer, &block)? {
                return Ok(false);
            }
            *index += 1;
        }
        Ok(true)
    }
}

impl<'a> OnLines<'a> for Posted<'a> {
    #[inline(always)]
    fn is_elsewhere(&self) -> bool {
        matches!(self.state, State::Elsewhere(_))
    }

    #[cold]
    #[inline(never)]
    fn elsewhere(&self, me: &Member) -> Result<Pairwise<'a>, PollError> {
        let State::Elsewhere(index) = self.state else { return Err(PollError::NotStarted) };
        super::pairwise::alltoallv(me, Some(self.send), self.receive)
            .map(|pairwise| pairwise.posted(self.operation, self.base, index))
            .map_err(|refusal| PollError::Mismatch { peer: me.rank(), refusal })
    }
}

impl Operation for Posted<'_> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        self.operation = me.begin(Kind::Alltoall);
        if self.lengths.do_vary() {
            self.base = me.take_clock(Span::UNKNOWN.advance, Span::UNKNOWN.bytes);
        }
        self.state = State::Publish;
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let mut index = match self.state {
            State::Publish => {
                if me.size() > 1
                    && let Err(wait) = self.lengths.post(region, me, self.operation, Kind::Alltoall, &self.send)
                {
                    return Ok(Poll::Wait(wait));
                }
                0
            }
            State::Take(index) => index,
            State::Elsewhere(_) | State::Done => return over(self.operation),
        };
        match self.take(region, me, &mut index) {
            Ok(true) => {}
            Ok(false) => {
                self.state = State::Elsewhere(index);
                return Ok(Poll::Done);
            }
            Err(halt) => {
                self.state = State::Take(index);
                return halt.into();
            }
        }
        if self.lengths.do_vary() {
            me.acknowledge(region, self.base + Span::UNKNOWN.advance);
        }
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}
