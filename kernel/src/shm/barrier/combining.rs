//! Combining tree barrier (paper P4): arrivals go up an n-ary tree, the release goes down a binomial tree.
//!
//! Here the arity n is the number of a vertex's children. (The paper's formula fits groups of n that include the
//! parent.)
//!
//! | word | writer | reader | value |
//! |---|---|---|---|
//! | `arrive(r)` | r | r's parent in the n-ary tree | the last operation in which r's subtree has arrived |
//! | `release(r)` | r | r's children in the binomial tree | the last operation that r has released |

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::{PollError, Refusal};
use crate::machine::poll::{Poll, Until, WaitSet};
use crate::machine::{Operation, over};
use crate::pattern::tree::{Position, Tree};
use crate::region::{Flag, FlagId, Region};

/// One process's part of a barrier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Combining {
    operation: u64,
    up: Position,
    down: Position,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Waits for the children; the subtrees of the first `arrived` ones have arrived.
    Acquire {
        arrived: u32,
    },
    Release,
    Done,
}

impl Combining {
    /// The part of `me`, with up to `arity` children per vertex on the way up.
    ///
    /// # Errors
    /// `arity` is 0.
    pub fn new(me: &Member, arity: u32) -> Result<Self, Refusal> {
        let up = Tree::Kary(arity).check()?.position(me.rank(), 0, me.size());
        let down = Tree::BINOMIAL.position(me.rank(), 0, me.size());
        Ok(Self { operation: 0, up, down, state: State::Done })
    }

    /// Has a flag of `peer` reached this operation? The error says what to wait for.
    fn reached<R: Region>(&self, region: &R, flag: FlagId, peer: Rank) -> Result<(), WaitSet> {
        // pairs with: the publications of `arrive` and `release`
        if region.flag(flag).load_acquire().at_least(self.operation) {
            Ok(())
        } else {
            Err(WaitSet::flag(flag, Until::AtLeast(self.operation), peer, self.operation))
        }
    }
}

impl Operation for Combining {
    fn start(&mut self, me: &mut Member) {
        (self.operation, self.state) = (me.begin(Kind::Barrier), State::Acquire { arrived: 0 });
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        let layout = *me.layout();
        if let State::Acquire { arrived } = self.state {
            for (index, child) in (0..).zip(self.up.children()).skip(arrived as usize) {
                if let Err(wait) = self.reached(region, layout.arrive(child), child) {
                    self.state = State::Acquire { arrived: index };
                    return Ok(Poll::Wait(wait));
                }
            }
            if self.up.parent().is_some() {
                // publishes: all that this subtree's ranks did before the barrier, to the parent
                region.publish(layout.arrive(me.rank()), self.operation);
            }
            self.state = State::Release;
        }
        if self.state == State::Release {
            if let Some(parent) = self.down.parent()
                && let Err(wait) = self.reached(region, layout.release(parent), parent)
            {
                return Ok(Poll::Wait(wait));
            }
            // publishes: all that any rank did before the barrier, to the children
            region.publish(layout.release(me.rank()), self.operation);
            me.all_reached(self.operation);
            me.finish(region, self.operation);
            self.state = State::Done;
        }
        over(self.operation)
    }
}
