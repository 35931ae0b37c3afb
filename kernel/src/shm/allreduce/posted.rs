//! Allreduce of small operands on posted lines (ours): each rank posts its operand, reads all operands, and folds
//! them in rank order.
//!
//! | step | what |
//! |---|---|
//! | *Publish* | wait until this process's line is free, write the operand, store the sequence |
//! | *Gather { next }* | for each rank in order: wait for its line, fold its operand from the right |
//!
//! All ranks fold the same operands in the same order, so all get the same bits, for any op, commutative or not.
//! A rank that has received all lines of operation n knows that all ranks have finished n − 1: it needs no load of
//! `done` to know that its next line is free.

use crate::Rank;
use crate::algorithm::LINE_REDUCED;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::poll::Poll;
use crate::machine::{Operation, over};
use crate::op::Op;
use crate::region::Region;
use crate::shm::engine::line::{self, Body, Heading};

/// The longest operand, in bytes.
pub const MOST: u64 = LINE_REDUCED;

/// One process's part of an allreduce.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Posted<'a> {
    operation: u64,
    send: Data<'a>,
    receive: Data<'a>,
    op: Op,
    count: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Publish,
    /// The fold of the ranks below `next` lies in the member's scratch.
    Gather {
        next: Rank,
    },
    Done,
}

impl<'a> Posted<'a> {
    /// The part of any process: `receive` becomes the fold of the `send` of all ranks. In place: `receive` is `send`.
    ///
    /// # Errors
    /// `send` is longer than [`MOST`] or not a whole number of elements, or `receive` has another length.
    #[inline(always)]
    pub fn new(send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Self, Refusal> {
        Refusal::check(Argument::Bytes, send.len(), Bound::AtMost(MOST))?;
        Refusal::check(Argument::Bytes, receive.len(), Bound::Equals(send.len()))?;
        let count = op.count(send.len())?;
        Ok(Self { operation: 0, send, receive, op, count, state: State::Done })
    }
}

impl Operation for Posted<'_> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        (self.operation, self.state) = (me.begin(Kind::Allreduce), State::Publish);
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let (operation, bytes) = (self.operation, self.send.len());
        let heading = Heading { kind: Kind::Allreduce, bytes };
        let mut body = Body::new();
        if self.state == State::Publish {
            if let Err(wait) = me.line_free(region, operation) {
                return Ok(Poll::Wait(wait));
            }
            body.gather(&self.send);
            line::publish(region, me, operation, heading, &mut body, bytes);
            self.state = State::Gather { next: 0 };
        }
        let State::Gather { next } = self.state else {
            return over(operation);
        };
        for peer in next..me.size() {
            if peer == me.rank() {
                // This is right in place, too: `receive` is written last.
                body.gather(&self.send);
            } else if let Err(halt) = line::receive(region, me, peer, operation, heading, &mut body, bytes) {
                self.state = State::Gather { next: peer };
                return halt.into();
            } else {
                line::expect(region, me, operation, peer, peer == next, |peer| peer);
            }
            let operand = body.words(bytes);
            let sum = &mut me.scratch[..operand.len()];
            if peer == 0 {
                sum.iter_mut().zip(operand).for_each(|(to, from)| *to = *from);
            } else {
                self.op.fold(sum, operand, self.count);
            }
        }
        let sum = &mut me.scratch[..bytes.div_ceil(8) as usize];
        body.assign(sum);
        sum.iter_mut().for_each(|word| *word = 0);
        body.scatter(&self.receive);
        me.all_reached(operation);
        me.finish(region, operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}
