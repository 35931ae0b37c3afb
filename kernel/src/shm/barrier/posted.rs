//! Barrier on posted lines (ours): each rank posts a line, and receives those of all others.
//!
//! There is one round only: where ranks share cores, each has to run only once after the last one has entered.
//! The price is that each rank reads p − 1 lines.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::PollError;
use crate::machine::poll::Poll;
use crate::machine::{Operation, over};
use crate::region::Region;
use crate::shm::engine::line::{self, Body, Heading};

/// One process's part of a barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Posted {
    operation: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    Publish,
    /// The lines of all ranks below `next` were received.
    Receive {
        next: Rank,
    },
    #[default]
    Done,
}

impl Operation for Posted {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        *self = Self { operation: me.begin(Kind::Barrier), state: State::Publish };
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let (operation, heading) = (self.operation, Heading { kind: Kind::Barrier, bytes: 0 });
        let mut body = Body::new();
        if self.state == State::Publish {
            if let Err(wait) = me.line_free(region, operation) {
                return Ok(Poll::Wait(wait));
            }
            line::publish(region, me, operation, heading, &mut body, 0);
            self.state = State::Receive { next: 0 };
        }
        let State::Receive { next } = self.state else {
            return over(operation);
        };
        for peer in (next..me.size()).filter(|&peer| peer != me.rank()) {
            if let Err(halt) = line::receive(region, me, peer, operation, heading, &mut body, 0) {
                self.state = State::Receive { next: peer };
                return halt.into();
            }
            line::expect(region, me, operation, peer, peer == next, |peer| peer);
        }
        me.all_reached(operation);
        me.finish(region, operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}
