//! Reductions of small operands on posted lines (ours): each rank whose operand another one folds posts it, and each rank that gets
//! a result reads the lines of those below a bound, and folds them in rank order.
//!
//! | step | what |
//! |---|---|
//! | *Publish* | wait until this process's line is free, write the operand, store the sequence |
//! | *Gather { next }* | for each rank in order: wait for its line, fold its operand |
//!
//! | | posts | folds |
//! |---|---|---|
//! | allreduce | each rank | all operands |
//! | reduce | each rank but the root | the root: all operands |
//! | scan | each rank but the last | those of the ranks up to itself |
//! | exscan | each rank but the last | those of the ranks below itself |
//!
//! Ranks are folded from 0 up; of a scan and an exscan from the highest one down, so that not all begin with the line of rank 0.
//! In an allreduce all ranks fold the same operands in the same order, so all get the same bits, for any op, commutative or not.
//! A rank that has received the lines of all others of operation n knows that all ranks have finished n − 1: it needs no load of
//! `done` to know that its next line is free.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::absent;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::poll::Poll;
use crate::machine::{Operation, over};
use crate::op::{Op, WORDS};
use crate::region::Region;
use crate::region::layout::LINE_PAYLOAD;
use crate::shm::engine::fold::Operand;
use crate::shm::engine::line::{self, Body, Heading};

/// The longest operand, in bytes.
pub const MOST: u64 = LINE_PAYLOAD;

// The member's scratch has room for an operand.
const _: () = assert!(8 * WORDS as u64 == MOST);

/// One process's part of a reduction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Posted<'a> {
    operation: u64,
    kind: Kind,
    /// Does another rank fold this one's operand?
    posts: bool,
    /// The operands of the ranks below this one are folded here.
    end: Rank,
    send: Data<'a>,
    /// For the result, where there is one.
    receive: Data<'a>,
    op: Op,
    count: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Publish,
    /// The fold of the first `next` ranks lies in the member's scratch.
    Gather {
        next: u32,
    },
    Done,
}

impl<'a> Posted<'a> {
    /// An allreduce: `receive` becomes the fold of the `send` of all ranks. In place: `receive` is `send`.
    ///
    /// # Errors
    /// `send` is longer than [`MOST`] or not a whole number of elements, or `receive` has another length.
    #[inline(always)]
    pub fn to_all(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Self, Refusal> {
        Refusal::check(Argument::Bytes, send.len(), Bound::AtMost(MOST))?;
        Refusal::check(Argument::Bytes, receive.len(), Bound::Equals(send.len()))?;
        Ok(Self::new(Kind::Allreduce, (true, me.size()), send, receive, op, op.count(send.len())?))
    }

    /// A reduce: `receive` of the `root`, which is significant only there, becomes the fold of the `send` of all ranks.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; `send` is longer than [`MOST`]; and as
    /// [`Reduce::to_root`](super::exchange::Reduce::to_root).
    #[inline(always)]
    pub fn to_root(
        me: &Member,
        send: Data<'a>,
        receive: Option<Data<'a>>,
        op: Op,
        root: Rank,
    ) -> Result<Self, Refusal> {
        me.check_root(root)?;
        let (posts, receive) = match receive {
            _ if me.rank() != root => (true, send),
            Some(receive) => (false, receive),
            None => return Err(absent()),
        };
        Self::checked(Kind::Reduce, (posts, if posts { 0 } else { me.size() }), send, receive, op)
    }

    /// A scan: `receive` becomes the fold of the `send` of ranks 0 … this one.
    ///
    /// # Errors
    /// `send` is longer than [`MOST`]; and as [`scan`](crate::shm::scan::exchange::scan).
    #[inline(always)]
    pub fn scan(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Self, Refusal> {
        Self::checked(Kind::Scan, (me.rank() + 1 < me.size(), me.rank() + 1), send, receive, op)
    }

    /// An exscan: `receive` becomes the fold of the `send` of the ranks below this one. Rank 0's stays as it is.
    ///
    /// # Errors
    /// As [`Self::scan`].
    #[inline(always)]
    pub fn exscan(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Self, Refusal> {
        Self::checked(Kind::Exscan, (me.rank() + 1 < me.size(), me.rank()), send, receive, op)
    }

    #[inline(always)]
    fn checked(kind: Kind, part: (bool, Rank), send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Self, Refusal> {
        Refusal::check(Argument::Bytes, send.len(), Bound::AtMost(MOST))?;
        let count = Operand::check(&send, Some(&receive), &op)?;
        Ok(Self::new(kind, part, send, receive, op, count))
    }

    /// The part of a process that posts or not, and folds the operands of the ranks below `end`.
    #[inline(always)]
    const fn new(
        kind: Kind,
        (posts, end): (bool, Rank),
        send: Data<'a>,
        receive: Data<'a>,
        op: Op,
        count: u64,
    ) -> Self {
        Self { operation: 0, kind, posts, end, send, receive, op, count, state: State::Done }
    }

    /// Does it fold from the highest rank down?
    #[inline(always)]
    const fn falls(&self) -> bool {
        matches!(self.kind, Kind::Scan | Kind::Exscan)
    }

    /// Does this process receive the lines of all others?
    #[inline(always)]
    fn hears_all(&self, me: &Member) -> bool {
        self.end == me.size() || self.end + 1 == me.size() && me.rank() == self.end
    }
}

impl Operation for Posted<'_> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        (self.operation, self.state) = (me.begin(self.kind), State::Publish);
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let (operation, bytes) = (self.operation, self.send.len());
        let heading = Heading { kind: self.kind, bytes };
        let mut body = Body::new();
        if self.state == State::Publish {
            if self.posts {
                if let Err(wait) = me.line_free(region, operation) {
                    return Ok(Poll::Wait(wait));
                }
                me.uses_slot(0);
                body.gather(&self.send);
                line::publish(region, me, operation, heading, &mut body, bytes);
            }
            self.state = State::Gather { next: 0 };
        }
        let State::Gather { next } = self.state else {
            return over(operation);
        };
        let (mut sum, words) = (Body::new(), bytes.div_ceil(8) as usize);
        if next > 0 {
            sum.assign(&me.scratch[..words]);
        }
        let (end, falls) = (self.end, self.falls());
        // Beyond the last one: the last one again, which is as good a hint as none.
        let peer_at = |index: u32| if falls { end - 1 - index.min(end - 1) } else { index };
        for index in next..end {
            let peer = peer_at(index);
            if peer == me.rank() {
                // This is right in place, too: `receive` is written last.
                body.gather(&self.send);
            } else if let Err(halt) = line::receive(region, me, peer, operation, heading, &mut body, bytes) {
                if index > 0 {
                    me.scratch[..words].copy_from_slice(sum.words(bytes));
                }
                self.state = State::Gather { next: index };
                return halt.into();
            } else {
                line::expect(region, me, operation, index, index == next, peer_at);
            }
            if index == 0 {
                sum.assign(body.words(bytes));
            } else if falls {
                self.op.fold(body.words_mut(bytes), sum.words(bytes), self.count);
                sum.assign(body.words(bytes));
            } else {
                self.op.fold(sum.words_mut(bytes), body.words(bytes), self.count);
            }
        }
        if self.end > 0 {
            sum.scatter(&self.receive);
        }
        if next > 0 {
            me.scratch = [0; WORDS];
        }
        if self.hears_all(me) {
            me.all_reached(operation);
        }
        me.finish(region, operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}
