//! Broadcast of small messages by groups on posted lines (ours): one rank of each group reads the root's line and posts it on, for
//! the others of its group.
//!
//! | rank | steps |
//! |---|---|
//! | root | *Publish*: wait until its line is free, write head and payload, store the sequence |
//! | leaders | *Receive* from the root, then *Publish* |
//! | others | *Receive* from the leader of their group |
//!
//! Eight ranks in a row are a group, of fewer than sixteen ranks half of them; the last group may have fewer. Its first rank leads
//! it, in the root's group the root. A line is given to its readers one after the other: p − 1 readers of one line wait for each
//! other, and here it has about p / 8 + 8.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::poll::Poll;
use crate::machine::{Operation, over};
use crate::region::Region;
use crate::shm::bcast::posted::MOST;
use crate::shm::engine::line::{self, Body, Heading};

/// Most ranks of a group: those of a level-3 cache of many machines.
const GROUP: u32 = 8;

/// One process's part of a broadcast.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grouped<'a> {
    operation: u64,
    root: Rank,
    /// Ranks of a group.
    group: u32,
    data: Data<'a>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Receive,
    Publish,
    Done,
}

impl<'a> Grouped<'a> {
    /// The part of `me`: `data` goes from `root` to all ranks.
    ///
    /// # Errors
    /// As of [`Posted::new`](super::posted::Posted::new).
    #[inline(always)]
    pub fn new(me: &Member, data: Data<'a>, root: Rank) -> Result<Self, Refusal> {
        me.check_root(root)?;
        Refusal::check(Argument::Bytes, data.len(), Bound::AtMost(MOST))?;
        Ok(Self { operation: 0, root, group: (me.size() / 2).clamp(1, GROUP), data, state: State::Done })
    }

    /// The leader of the group of `rank`.
    const fn leader(&self, rank: Rank) -> Rank {
        if rank / self.group == self.root / self.group { self.root } else { rank - rank % self.group }
    }
}

impl Operation for Grouped<'_> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        self.operation = me.begin(Kind::Bcast);
        self.state = if me.rank() == self.root { State::Publish } else { State::Receive };
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let (bytes, leader) = (self.data.len(), self.leader(me.rank()));
        let heading = Heading { kind: Kind::Bcast, bytes };
        let mut body = Body::new();
        if self.state == State::Done {
            return over(self.operation);
        }
        if self.state == State::Receive {
            let from = if leader == me.rank() { self.root } else { leader };
            if let Err(halt) = line::receive(region, me, from, self.operation, heading, &mut body, bytes) {
                return halt.into();
            }
            body.scatter(&self.data);
            self.state = State::Publish;
        }
        if leader == me.rank() {
            if let Err(wait) = me.line_free(region, self.operation) {
                return Ok(Poll::Wait(wait));
            }
            body.gather(&self.data);
            line::publish(region, me, self.operation, heading, &mut body, bytes);
        }
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}
