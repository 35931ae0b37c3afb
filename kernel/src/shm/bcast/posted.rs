//! Broadcast of small messages on posted lines (ours): one line transfer.
//!
//! | who | step |
//! |---|---|
//! | root | *Post*: wait until its line is free, write length and payload, store the sequence; done |
//! | others | *Hear*: wait for the root's sequence, copy the payload out, publish `done` |
//!
//! The root's return says nothing of the others: a broadcast does not synchronise.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::step::Step;
use crate::machine::{Operation, over};
use crate::region::Region;
use crate::region::layout::LINE_PAYLOAD;
use crate::shm::engine::line::{self, Body};

/// Longest message, in bytes.
pub const MOST: u64 = LINE_PAYLOAD;

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Posted<'a> {
    operation: u64,
    root: Rank,
    data: Data<'a>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Post,
    Hear,
    Done,
}

impl<'a> Posted<'a> {
    /// The part of `me`: `data` goes from `root` to everyone.
    ///
    /// # Errors
    /// `root` is no rank, `data` is longer than [`MOST`].
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
        self.state = if me.rank() == self.root { State::Post } else { State::Hear };
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Step, PollError> {
        let bytes = self.data.len();
        let message = (Kind::Bcast, bytes);
        let mut body = Body::new();
        match self.state {
            State::Post => {
                if let Err(wait) = me.line_free(region, self.operation) {
                    return Ok(Step::Wait(wait));
                }
                body.gather(&self.data);
                line::post(region, me, self.operation, message, &mut body, bytes);
            }
            State::Hear => {
                if let Some(wait) = line::hear(region, me, self.root, self.operation, message, &mut body, bytes)? {
                    return Ok(Step::Wait(wait));
                }
                body.scatter(&self.data);
            }
            State::Done => return over(self.operation),
        }
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Step::Done)
    }
}
