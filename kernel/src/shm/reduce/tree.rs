//! Reduce of small operands up a binomial tree of posted lines (ours): each rank posts the fold of its subtree once, and reads
//! the lines of its children. Among many processes nobody reads more than ⌈log2 p⌉ lines.
//!
//! | rank | what |
//! |---|---|
//! | each | for i = 0, 1, … while bit i of its rank is 0: waits for the line of rank + 2ⁱ, if there is one, and folds it from the right |
//! | each but 0 | posts the fold in its line, once the line is free |
//! | 0 | keeps the result, if it is the root, else posts it |
//! | root, if not 0 | waits for the line of rank 0 |
//!
//! The subtree of a rank has the ranks that follow it, so operands keep their order, whichever rank is the root: the op need
//! not commute.

use crate::Rank;
use crate::algorithm::LINE_REDUCED;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::absent;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::poll::{Halt, Poll};
use crate::machine::{Operation, over};
use crate::op::{Op, WORDS};
use crate::region::Region;
use crate::shm::engine::line::{self, Body, Heading};

/// The longest operand, in bytes.
pub const MOST: u64 = LINE_REDUCED;

/// One process's part of a reduce.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tree<'a> {
    operation: u64,
    root: Rank,
    send: Data<'a>,
    /// Where the root receives; `None` elsewhere.
    receive: Option<Data<'a>>,
    op: Op,
    count: u64,
    state: State,
}

/// The fold of this rank's operand and of the children so far lies in the member's scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Enter,
    /// The children below this bit are folded.
    Fold {
        bit: u32,
    },
    Publish,
    /// The root waits for the result.
    Hear,
    Done,
}

impl<'a> Tree<'a> {
    /// The fold of the `send` of all ranks into the root's `receive`, which is significant only there. In place: `receive` is
    /// `send`.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; the root's `receive` is missing, or has another length; `send` is longer than
    /// [`MOST`] or not a whole number of elements.
    #[inline(always)]
    pub fn new(me: &Member, send: Data<'a>, receive: Option<Data<'a>>, op: Op, root: Rank) -> Result<Self, Refusal> {
        me.check_root(root)?;
        Refusal::check(Argument::Bytes, send.len(), Bound::AtMost(MOST))?;
        let receive = if me.rank() == root { Some(receive.ok_or_else(absent)?) } else { None };
        if let Some(receive) = &receive {
            Refusal::check(Argument::Bytes, receive.len(), Bound::Equals(send.len()))?;
        }
        let count = op.count(send.len())?;
        Ok(Self { operation: 0, root, send, receive, op, count, state: State::Done })
    }

    const fn heading(&self) -> Heading {
        Heading { kind: Kind::Reduce, bytes: self.send.len() }
    }

    /// Words of an operand.
    const fn words(&self) -> usize {
        self.send.len().div_ceil(8) as usize
    }

    /// Goes on until this rank has nothing more to wait for; the root then has the result in its scratch.
    ///
    /// # Errors
    /// What to wait for; another collective or length than this process's call.
    fn go_on<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Halt> {
        let (operation, bytes, heading) = (self.operation, self.send.len(), self.heading());
        loop {
            match self.state {
                State::Enter => {
                    let mut body = Body::new();
                    body.gather(&self.send);
                    me.scratch.iter_mut().zip(body.words(bytes)).for_each(|(to, from)| *to = *from);
                    self.state = State::Fold { bit: 0 };
                }
                // The rank's subtree ends at its lowest bit; rank 0's, where there are no more ranks.
                State::Fold { bit } if me.rank() >> bit & 1 == 1 || 1 << bit >= u64::from(me.size()) => {
                    self.state = if me.rank() == 0 && self.root == 0 { State::Done } else { State::Publish };
                }
                State::Fold { bit } => {
                    if has(me, bit) {
                        let mut body = Body::new();
                        line::receive(region, me, me.rank() + (1 << bit), operation, heading, &mut body, bytes)?;
                        self.op.fold(&mut me.scratch[..self.words()], body.words(bytes), self.count);
                    }
                    self.state = State::Fold { bit: bit + 1 };
                }
                State::Publish => {
                    me.line_free(region, operation)?;
                    let mut body = Body::new();
                    body.assign(&me.scratch[..self.words()]);
                    line::publish(region, me, operation, heading, &mut body, bytes);
                    self.state = if me.rank() == self.root { State::Hear } else { State::Done };
                }
                State::Hear => {
                    let mut body = Body::new();
                    line::receive(region, me, 0, operation, heading, &mut body, bytes)?;
                    me.scratch.iter_mut().zip(body.words(bytes)).for_each(|(to, from)| *to = *from);
                    self.state = State::Done;
                }
                State::Done => return Ok(()),
            }
        }
    }
}

/// Has this rank a child at this bit?
const fn has(me: &Member, bit: u32) -> bool {
    me.rank() as u64 + (1 << bit) < me.size() as u64
}

impl Operation for Tree<'_> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        (self.operation, self.state) = (me.begin(Kind::Reduce), State::Enter);
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        if self.state == State::Done {
            return over(self.operation);
        }
        if let Err(halt) = self.go_on(region, me) {
            return halt.into();
        }
        if let Some(receive) = &self.receive {
            let mut body = Body::new();
            body.assign(&me.scratch[..self.words()]);
            body.scatter(receive);
            // The result has the operands of all ranks: so all have finished the operations before.
            me.all_reached(self.operation);
        }
        me.scratch = [0; WORDS];
        me.finish(region, self.operation);
        Ok(Poll::Done)
    }
}
