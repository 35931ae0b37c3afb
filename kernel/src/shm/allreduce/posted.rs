//! Allreduce of small operands on posted lines (ours): post mine, read all, fold in rank order.
//!
//! | step | what |
//! |---|---|
//! | *Post* | wait until this process's line is free, write the operand, store the sequence |
//! | *Gather { next }* | for each rank in order: wait for its line, fold its operand from the right |
//!
//! Everyone folds the same operands in the same order: the same bits on all ranks, for any
//! operation, commutative or not. Having read everyone's line of operation n proves that everyone
//! has finished n − 1: lines become free without a load.

use crate::Rank;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Machine;
use crate::op::{Op, Operand};
use crate::shm::line::{self, Kind};
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
    Gather { mine: Operand, sum: Operand, next: Rank },
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

impl<X: Shared + ?Sized> Machine<X> for Posted<'_> {
    #[inline]
    fn poll(&mut self, x: &mut X) -> Result<Step, PollError> {
        let (region, me) = x.shared();
        let bytes = self.send.len();
        if self.state == State::Post {
            if let Err(wait) = me.line_free(region, self.operation) {
                return Ok(Step::Wait(wait));
            }
            let mine = Operand::gather(&self.send);
            line::post(region, me, self.operation, Kind::Allreduce, bytes, &mine, bytes);
            self.state = State::Gather { mine, sum: mine, next: 0 };
        }
        let State::Gather { mine, sum, next } = &mut self.state else {
            return Ok(Step::Done);
        };
        while *next < me.size() {
            let operand = if *next == me.rank() {
                *mine
            } else {
                match line::hear(region, me, *next, self.operation, Kind::Allreduce, bytes, bytes)? {
                    Err(wait) => return Ok(Step::Wait(wait)),
                    Ok(operand) => operand,
                }
            };
            if *next == 0 {
                *sum = operand;
            } else {
                self.op.fold(sum, &operand, self.count);
            }
            *next += 1;
        }
        sum.scatter(&self.receive);
        me.all_reached(self.operation);
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Step::Done)
    }
}
