//! Barrier on posted lines (ours): everyone posts a line, and hears those of all others.
//!
//! A single round: where ranks share cores, each has to run once only between the last one's coming and its own leaving.
//! The price is p − 1 lines to look at.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::PollError;
use crate::machine::step::Step;
use crate::machine::{Operation, over};
use crate::region::Region;
use crate::shm::engine::line::{self, Body};

/// One process's part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Posted {
    operation: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    Post,
    /// Those below `next` have come.
    Hear {
        next: Rank,
    },
    #[default]
    Done,
}

impl Operation for Posted {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        *self = Self { operation: me.begin(Kind::Barrier), state: State::Post };
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Step, PollError> {
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
            return over(operation);
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
