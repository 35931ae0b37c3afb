//! Allreduce of small operands on posted lines (ours): post mine, read all, fold in rank order.
//!
//! | step | what |
//! |---|---|
//! | *Post* | wait until this process's line is free, write the operand, store the sequence |
//! | *Gather { next }* | wait for each rank's line, in rank order, and check its head |
//! | fold | read all lines in rank order, each operand folded from the right; publish `done` |
//!
//! Everyone folds the same operands in the same order: the same bits on all ranks, for any
//! operation, commutative or not. Having read everyone's line of operation n proves that everyone
//! has finished n − 1: lines become free without a load.

use crate::Rank;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Machine;
use crate::op::Op;
use crate::region::Region;
use crate::shm::line::{self, Body, Kind};
use crate::step::Step;
use crate::transport::Shared;

/// Longest operand, in bytes: what fits the first 64 bytes of a line.
pub const MOST: u64 = 48;

/// One process's part.
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
    Post,
    Gather { next: Rank },
    Done,
}

impl<'a> Posted<'a> {
    /// The next operation of `me`: `receive` becomes the fold of everyone's `send`. In place: the same data twice.
    ///
    /// # Errors
    /// Operands longer than [`MOST`], no whole number of elements, or of two lengths.
    #[inline]
    pub fn new(me: &mut Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Self, Refusal> {
        Refusal::check(Argument::Bytes, send.len(), Bound::AtMost(MOST))?;
        Refusal::check(Argument::Bytes, receive.len(), Bound::Equals(send.len()))?;
        let count = op.count(send.len())?;
        Ok(Self { operation: me.begin(), send, receive, op, count, state: State::Post })
    }
}

impl Posted<'_> {
    #[inline]
    const fn message(&self) -> (Kind, u64) {
        (Kind::Allreduce, self.send.len())
    }

    /// Folds all lines, which have arrived, in rank order.
    #[inline]
    fn fold<R: Region>(&self, region: &R, me: &Member) -> Result<(), PollError> {
        let bytes = self.send.len();
        let (mut sum, mut operand) = (Body::new(), Body::new());
        for peer in 0..me.size() {
            let into = if peer == 0 { &mut sum } else { &mut operand };
            if peer == me.rank() {
                // In place too: `receive` is written last.
                into.gather(&self.send);
            } else {
                line::take(region, me, peer, self.operation, self.message(), into, bytes)?;
            }
            if peer > 0 {
                self.op.fold(sum.words_mut(bytes), operand.words(bytes), self.count);
            }
        }
        sum.scatter(&self.receive);
        Ok(())
    }
}

impl<X: Shared + ?Sized> Machine<X> for Posted<'_> {
    #[inline]
    fn poll(&mut self, x: &mut X) -> Result<Step, PollError> {
        let (region, me) = x.shared();
        if self.state == State::Post {
            if let Err(wait) = me.line_free(region, self.operation) {
                return Ok(Step::Wait(wait));
            }
            let mut body = Body::new();
            body.gather(&self.send);
            line::post(region, me, self.operation, self.message(), &mut body, self.send.len());
            self.state = State::Gather { next: 0 };
        }
        if let State::Gather { next } = self.state {
            for peer in (next..me.size()).filter(|&peer| peer != me.rank()) {
                if let Some(wait) = line::arrived(region, me, peer, self.operation)? {
                    self.state = State::Gather { next: peer };
                    return Ok(Step::Wait(wait));
                }
                // At once: who runs another collective may never post the lines that come next.
                line::take(region, me, peer, self.operation, self.message(), &mut Body::new(), 0)?;
            }
            self.fold(region, me)?;
            me.all_reached(self.operation);
            me.finish(region, self.operation);
            self.state = State::Done;
        }
        Ok(Step::Done)
    }
}
