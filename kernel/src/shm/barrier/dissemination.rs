//! Dissemination barrier (paper P4): in round i a process signals rank + 2ⁱ and waits for the signal of rank − 2ⁱ,
//! modulo p; ⌈log2 p⌉ rounds.
//!
//! | word | writer | reader | value |
//! |---|---|---|---|
//! | `round(r, i)` | r | r + 2ⁱ mod p | the last operation in which r has reached round i |

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::PollError;
use crate::machine::poll::{Poll, Until, WaitSet};
use crate::machine::{Operation, over};
use crate::region::{Flag, Region};

/// One process's part of a barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dissemination {
    operation: u64,
    round: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    Signal,
    Receive,
    #[default]
    Done,
}

/// The rank whose signal `me` waits for in `round`.
#[inline]
fn from(me: &Member, round: u32) -> Rank {
    let (rank, step) = (me.rank(), 1 << round);
    if rank >= step { rank - step } else { rank + me.size() - step }
}

impl Operation for Dissemination {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        *self = Self { operation: me.begin(Kind::Barrier), round: 0, state: State::Signal };
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        if self.state == State::Done {
            return over(self.operation);
        }
        while self.round < me.layout().rounds() {
            if self.state == State::Signal {
                // publishes: all before the barrier of this process, and of those whose signals it has seen
                region.publish(me.layout().round(me.rank(), self.round), self.operation);
                self.state = State::Receive;
            }
            let peer = from(me, self.round);
            let flag = me.layout().round(peer, self.round);
            // pairs with: the signal
            if !region.flag(flag).load_acquire().at_least(self.operation) {
                return Ok(Poll::Wait(WaitSet::flag(flag, Until::AtLeast(self.operation), peer, self.operation)));
            }
            self.round += 1;
            self.state = State::Signal;
        }
        me.all_reached(self.operation);
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}
