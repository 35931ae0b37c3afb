//! Barrier by recursive doubling (ours over a segment; over messages the `butterfly`): in round i, partners 2ⁱ apart signal each
//! other; ⌊log2 p⌋ rounds, two more where p is not a power of two.
//!
//! | word | writer | reader | value |
//! |---|---|---|---|
//! | `round(r, i)` | r | r's partner of round i | the last operation in which r has reached round i |
//!
//! | process | what |
//! |---|---|
//! | inside the [core](crate::pattern::power) | waits for its partner outside, if it has one; in each round: signals its partner, waits for its signal; signals its partner outside |
//! | outside | signals in round 0, waits for its partner's signal of the last round |
//!
//! [Dissemination](super::dissemination) goes round all ranks: in each of its rounds some signal comes from the other end of the
//! machine, and all wait for it in the end. Here the first rounds stay among neighbours, whose cores share a cache on many machines.
//!
//! Both barriers use the same words. A word only grows, and whoever reaches a round of a later operation has left this one, so
//! it needs nobody's leave to be written again.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::error::{PollError, Refusal};
use crate::machine::poll::{Poll, Until, WaitSet};
use crate::machine::{Operation, over};
use crate::pattern::Seat;
use crate::pattern::power::{Core, Role};
use crate::region::{Flag, Region};

/// One process's part of a barrier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Doubling {
    operation: u64,
    core: Core,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// The partner outside enters.
    Join,
    Signal {
        round: u32,
    },
    Meet {
        round: u32,
    },
    /// The partner inside has met all others.
    Wait,
    Done,
}

impl Doubling {
    /// The part of `me`.
    ///
    /// # Errors
    /// None for a member's rank and size.
    #[inline]
    pub fn new(me: &Member) -> Result<Self, Refusal> {
        Ok(Self { operation: 0, core: Core::new(Seat::new(me.rank(), me.size())?, 0), state: State::Done })
    }

    /// Signals that this process has reached `round`.
    fn signal<R: Region>(&self, region: &R, me: &Member, round: u32) {
        // publishes: all before the barrier of this process, and of those whose signals it has seen
        region.publish(me.layout().round(me.rank(), round), self.operation);
    }

    /// Has `peer` reached `round`?
    ///
    /// # Errors
    /// Not yet: what to wait for.
    fn reached<R: Region>(&self, region: &R, me: &Member, peer: Rank, round: u32) -> Result<(), WaitSet> {
        let flag = me.layout().round(peer, round);
        // pairs with: the signal
        if region.flag(flag).load_acquire().at_least(self.operation) {
            Ok(())
        } else {
            Err(WaitSet::flag(flag, Until::AtLeast(self.operation), peer, self.operation))
        }
    }

    /// Goes on until all have entered.
    ///
    /// # Errors
    /// What to wait for.
    fn go_on<R: Region>(&mut self, region: &R, me: &Member) -> Result<(), WaitSet> {
        let (last, role) = (self.core.log2(), self.core.role());
        loop {
            match (self.state, role) {
                (State::Join, Role::Inside { partner: Some(partner), .. }) => {
                    self.reached(region, me, partner, 0)?;
                    self.state = State::Signal { round: 0 };
                }
                (State::Join, Role::Inside { partner: None, .. }) => self.state = State::Signal { round: 0 },
                (State::Join, Role::Outside { .. }) => {
                    self.signal(region, me, 0);
                    self.state = State::Wait;
                }
                (State::Signal { round }, Role::Inside { partner, .. }) if round == last => {
                    if partner.is_some() {
                        self.signal(region, me, last);
                    }
                    return Ok(());
                }
                (State::Signal { round }, _) => {
                    self.signal(region, me, round);
                    self.state = State::Meet { round };
                }
                (State::Meet { round }, Role::Inside { number, .. }) => {
                    self.reached(region, me, self.core.rank_of(number ^ 1 << round), round)?;
                    self.state = State::Signal { round: round + 1 };
                }
                (State::Wait, Role::Outside { partner }) => return self.reached(region, me, partner, last),
                _ => return Ok(()),
            }
        }
    }
}

impl Operation for Doubling {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        (self.operation, self.state) = (me.begin(Kind::Barrier), State::Join);
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        if self.state == State::Done {
            return over(self.operation);
        }
        if let Err(wait) = self.go_on(region, me) {
            return Ok(Poll::Wait(wait));
        }
        me.all_reached(self.operation);
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}
