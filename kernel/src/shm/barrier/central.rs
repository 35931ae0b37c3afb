//! Central counter barrier (paper P4): all ranks add to one counter; when all have, rank 0 releases them.
//!
//! | word | writers | readers | value |
//! |---|---|---|---|
//! | `central_count` | all add 1 | rank 0 | arrivals of all central barriers so far: the b-th one is full at b·p |
//! | `release(0)` | rank 0 | all | the last operation that rank 0 has released |

use crate::collective::Kind;
use crate::comm::Member;
use crate::error::PollError;
use crate::machine::poll::{Await, Poll, Source, Until, WaitSet};
use crate::machine::{Operation, over};
use crate::region::{Counter, Flag, Region};

/// One process's part of a barrier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Central {
    operation: u64,
    /// The counter's value when all ranks have arrived.
    full: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    Arrive,
    Release,
    #[default]
    Done,
}

impl Operation for Central {
    fn start(&mut self, me: &mut Member) {
        let full = me.take_central() * u64::from(me.size());
        *self = Self { operation: me.begin(Kind::Barrier), full, state: State::Arrive };
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let (count, release) = (me.layout().central_count(), me.layout().release(0));
        if self.state == State::Arrive {
            // publishes: all that this process did before the barrier, along the chain of additions, to rank 0
            region.counter(count).fetch_add(1);
            self.state = State::Release;
        }
        if self.state == State::Release {
            let operation = self.operation;
            if me.rank() == 0 {
                // pairs with: the arrivals
                if !region.counter(count).load_acquire().at_least(self.full) {
                    let source = Source::Counter(count, Until::AtLeast(self.full));
                    return Ok(Poll::Wait(WaitSet::one(Await { source, peer: None, operation, stage: 0 })));
                }
                // publishes: all that any rank did before the barrier, to all ranks
                region.publish(release, operation);
            } else if !region.flag(release).load_acquire().at_least(operation) {
                return Ok(Poll::Wait(WaitSet::flag(release, Until::AtLeast(operation), 0, operation)));
            }
            me.all_reached(operation);
            me.finish(region, operation);
            self.state = State::Done;
        }
        over(self.operation)
    }
}
