//! Barrier on posted lines (ours): everyone posts a line, and hears those of all others.
//!
//! A single round: where ranks share cores, each has to run once only between the last one's coming and its own leaving.
//! The price is p − 1 lines to look at.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::PollError;
use crate::machine::Machine;
use crate::shm::line::{self, Body};
use crate::step::Step;
use crate::transport::Shared;

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Posted {
    operation: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Post,
    /// Those below `next` have come.
    Hear {
        next: Rank,
    },
    Done,
}

impl Posted {
    /// The next operation of `me`.
    #[inline(always)]
    pub fn new(me: &mut Member) -> Self {
        Self { operation: me.begin(Kind::Barrier), state: State::Post }
    }

    /// The same again, as the next operation of `me`.
    #[inline]
    pub(crate) fn begin(&mut self, me: &mut Member) {
        *self = Self::new(me);
    }
}

impl<X: Shared + ?Sized> Machine<X> for Posted {
    #[inline(always)]
    fn poll(&mut self, x: &mut X) -> Result<Step, PollError> {
        let (region, me) = x.shared();
        let (operation, message) = (self.operation, (Kind::Barrier, 0));
        let mut body = Body::new();
        if self.state == State::Post {
            if let Err(wait) = me.line_free(region, operation) {
                return Ok(Step::Wait(wait));
            }
            line::post(region, me, operation, message, &mut body, 0);
            self.state = State::Hear { next: 0 };
        }
        let State::Hear { next } = self.state else {
            return Ok(Step::Done);
        };
        for peer in (next..me.size()).filter(|&peer| peer != me.rank()) {
            if let Some(wait) = line::hear(region, me, peer, operation, message, &mut body, 0)? {
                self.state = State::Hear { next: peer };
                return Ok(Step::Wait(wait));
            }
        }
        me.all_reached(operation);
        me.finish(region, operation);
        self.state = State::Done;
        Ok(Step::Done)
    }
}
