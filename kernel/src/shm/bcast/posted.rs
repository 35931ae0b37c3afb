//! Broadcast of small messages on posted lines (ours): the message travels in one line of the root.
//!
//! | rank | steps |
//! |---|---|
//! | root | *Publish*: wait until its line is free, write head and payload, store the sequence, publish `done` |
//! | others | *Receive*: wait for the root's sequence, copy the payload out, publish `done` |
//!
//! The root may return before the others have entered: a broadcast does not synchronise.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::poll::Poll;
use crate::machine::{Operation, over};
use crate::region::Region;
use crate::region::layout::LINE_PAYLOAD;
use crate::shm::engine::line::{self, Body, Heading};

/// The longest message, in bytes.
pub const MOST: u64 = LINE_PAYLOAD;

/// One process's part of a broadcast.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Posted<'a> {
    operation: u64,
    root: Rank,
    data: Data<'a>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Publish,
    Receive,
    Done,
}

impl<'a> Posted<'a> {
    /// The part of `me`: `data` goes from `root` to all ranks.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator, or `data` is longer than [`MOST`].
    #[inline(always)]
    pub fn new(me: &Member, data: Data<'a>, root: Rank) -> Result<Self, Refusal> {
        me.check_root(root)?;
        Refusal::check(Argument::Bytes, data.len(), Bound::AtMost(MOST))?;
        Ok(Self { operation: 0, root, data, state: State::Done })
    }
}

impl Operation for Posted<'_> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        self.operation = me.begin(Kind::Bcast);
        self.state = if me.rank() == self.root { State::Publish } else { State::Receive };
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let bytes = self.data.len();
        let heading = Heading { kind: Kind::Bcast, bytes };
        let mut body = Body::new();
        match self.state {
            State::Publish => {
                if let Err(wait) = me.line_free(region, self.operation) {
                    return Ok(Poll::Wait(wait));
                }
                body.gather(&self.data);
                line::publish(region, me, self.operation, heading, &mut body, bytes);
            }
            State::Receive => {
                if let Err(halt) = line::receive(region, me, self.root, self.operation, heading, &mut body, bytes) {
                    return halt.into();
                }
                body.scatter(&self.data);
            }
            State::Done => return over(self.operation),
        }
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}
