//! Allreduce by recursive doubling, of operands that are longer than a [line](super::doubling) (ours): up to
//! [2 KiB](crate::region::layout::PARTIAL). The rounds, the words and the two sets of lines are the same; what a process has folded
//! so far lies in `receive`, and in its line of each round behind the head.
//!
//! | process | what |
//! |---|---|
//! | inside the [core](crate::pattern::power) | if it has a partner outside: folds its operand, from the right; in each round: posts its partial result, waits for its partner's, folds both in rank order; posts the result for its partner outside |
//! | outside | posts its operand in round 0's line, waits for the result |
//!
//! Among p ranks it takes ⌊log2 p⌋ rounds of one transfer, where [groups](super::groups) take four rounds in which each rank reads
//! what many have posted. But each rank reads and folds ⌊log2 p⌋ operands, not two: long ones are better shared.

use super::doubling::State;
use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::poll::{Halt, Poll};
use crate::machine::{Operation, over};
use crate::op::Op;
use crate::pattern::Seat;
use crate::pattern::power::{Core, Role};
use crate::region::layout::PARTIAL;
use crate::region::{Extent, Region};
use crate::shm::engine::copy::{Part, copy_in, copy_out, copy_private};
use crate::shm::engine::fold::{Operand, fold_shared};
use crate::shm::engine::line::{self, Body, Heading};
use crate::shm::engine::loans::Origin;

/// One process's part of an allreduce.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Doubling<'a> {
    operation: u64,
    /// Which of the two lines of each round are used.
    turn: bool,
    send: Data<'a>,
    receive: Data<'a>,
    op: Op,
    core: Core,
    state: State,
}

impl<'a> Doubling<'a> {
    /// Do so many bytes fit a line of a partial result here? If there are more than [`PARTIAL`], they fit nowhere.
    #[inline]
    pub fn applies(me: &Member, bytes: u64) -> bool {
        bytes <= me.layout().partial_room() || bytes > PARTIAL
    }

    /// The part of any process: `receive` becomes the fold of the `send` of all ranks. In place: `receive` is `send`.
    ///
    /// # Errors
    /// `send` is longer than a line of a partial result or not a whole number of elements, or has holes, or `receive` has another
    /// length.
    pub fn new(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Self, Refusal> {
        Refusal::check(Argument::Bytes, send.len(), Bound::AtMost(me.layout().partial_room()))?;
        Operand::check(&send, Some(&receive), &op)?;
        let core = Core::new(Seat::new(me.rank(), me.size())?, 0);
        Ok(Self { operation: 0, turn: false, send, receive, op, core, state: State::Done })
    }

    const fn heading(&self) -> Heading {
        Heading { kind: Kind::Allreduce, bytes: self.send.len() }
    }

    const fn whole(&self) -> Part {
        Part::first(self.send.len())
    }

    /// The payload of `rank`'s line of this round.
    const fn payload(&self, me: &Member, rank: Rank, round: u32) -> Extent {
        me.layout().partial_body(rank, self.turn, round).part(8, self.send.len())
    }

    /// Writes `data` to this process's line of this round, which nobody reads before it is posted.
    fn write<R: Region>(&self, region: &R, me: &Member, round: u32, data: &Data<'_>) {
        // SAFETY: R10 (S2), the line is free: whoever read it two operations of this kind ago has posted since what this process
        // has folded. The data is as the constructor was promised.
        unsafe { copy_in(region, self.payload(me, me.rank(), round), data, 0) };
    }

    /// Posts `data` in this process's line of this round.
    fn post<R: Region>(&self, region: &R, me: &Member, round: u32, data: &Data<'_>) {
        self.write(region, me, round, data);
        let line = me.layout().partial(me.rank(), self.turn, round);
        line::publish_at(region, me, line, self.operation, self.heading(), &mut Body::new(), 0);
    }

    /// Has `peer` posted its line of this round?
    ///
    /// # Errors
    /// Not yet; another collective or length than this process's call.
    fn hear<R: Region>(&self, region: &R, me: &Member, peer: Rank, round: u32) -> Result<(), Halt> {
        let line = me.layout().partial(peer, self.turn, round);
        line::receive_at(region, me, (peer, line), self.operation, self.heading(), &mut Body::new(), 0)
    }

    /// What `peer`'s line of this round has, which was heard, to `receive`.
    fn copy<R: Region>(&self, region: &R, me: &Member, peer: Rank, round: u32) {
        // SAFETY: S3, `peer` published it and reuses it only after it has heard of our read; `receive` as the constructor was
        // promised.
        unsafe { copy_out(region, self.payload(me, peer, round), &self.receive, 0) };
    }

    /// Folds what `rank`'s line of this round has into `receive`, from the left. It was heard, or is this process's own.
    fn fold<R: Region>(&self, region: &R, me: &Member, rank: Rank, round: u32) {
        let origin = Origin::Segment(self.payload(me, rank, round));
        // SAFETY: as in `copy`. The segment can be read.
        let _readable = unsafe { fold_shared(region, origin, &self.receive, self.whole(), &self.op) };
    }

    /// Folds what `peer` has posted with this process's own partial result, which lies in `receive` and in its own line, the lower
    /// rank's on the left: both partners fold the same two operands in the same order.
    fn meet<R: Region>(&self, region: &R, me: &Member, peer: Rank, round: u32) {
        if peer < me.rank() {
            self.fold(region, me, peer, round);
        } else {
            self.copy(region, me, peer, round);
            self.fold(region, me, me.rank(), round);
        }
    }

    /// Goes on until the result lies in `receive`.
    ///
    /// # Errors
    /// What to wait for; another collective or length than this process's call.
    fn go_on<R: Region>(&mut self, region: &R, me: &Member) -> Result<(), Halt> {
        loop {
            match (self.state, self.core.role()) {
                (State::Enter, Role::Outside { .. }) => {
                    self.post(region, me, 0, &self.send);
                    self.state = State::Wait;
                }
                (State::Enter, Role::Inside { partner, .. }) => {
                    // SAFETY: both are this process's data; in place they are the same.
                    unsafe { copy_private(region, &self.send, &self.receive, self.whole()) };
                    self.state = if partner.is_some() { State::Join } else { State::Post { round: 0 } };
                }
                (State::Join, Role::Inside { partner: Some(partner), .. }) => {
                    self.hear(region, me, partner, 0)?;
                    // Its own operand lies in its line for a moment, which it posts with the fold of both.
                    self.write(region, me, 0, &self.receive);
                    self.meet(region, me, partner, 0);
                    self.state = State::Post { round: 0 };
                }
                (State::Post { round }, Role::Inside { partner, .. }) if round == self.core.log2() => {
                    if partner.is_some() {
                        self.post(region, me, round, &self.receive);
                    }
                    return Ok(());
                }
                (State::Post { round }, _) => {
                    self.post(region, me, round, &self.receive);
                    self.state = State::Meet { round };
                }
                (State::Meet { round }, Role::Inside { number, .. }) => {
                    let peer = self.core.rank_of(number ^ 1 << round);
                    self.hear(region, me, peer, round)?;
                    self.meet(region, me, peer, round);
                    self.state = State::Post { round: round + 1 };
                }
                (State::Wait, Role::Outside { partner }) => {
                    self.hear(region, me, partner, self.core.log2())?;
                    self.copy(region, me, partner, self.core.log2());
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
    }
}

impl Operation for Doubling<'_> {
    fn start(&mut self, me: &mut Member) {
        self.operation = me.begin(Kind::Allreduce);
        (self.turn, self.state) = (me.take_turn(self.operation, self.send.len()), State::Enter);
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        if self.state == State::Done {
            return over(self.operation);
        }
        if let Err(halt) = self.go_on(region, me) {
            return halt.into();
        }
        me.all_reached(self.operation);
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}
