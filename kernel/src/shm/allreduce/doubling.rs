//! Allreduce, scan and exscan of small operands by recursive doubling on lines (ours): in round i, partners 2ⁱ apart exchange what
//! they have folded so far; ⌊log2 p⌋ rounds. Among many processes it takes far fewer transfers than if each reads the operands of all.
//!
//! | word | writer | reader | value |
//! |---|---|---|---|
//! | `partial(r, turn, i)` | r | r's partner of round i | the operation, stored last; published data: head and payload |
//!
//! | process | what |
//! |---|---|
//! | inside the [core](crate::pattern::power) | if it has a partner outside: folds its operand, from the right; in each round: posts its partial result, waits for its partner's, folds both in rank order; posts the result for its partner outside |
//! | outside | posts its operand in round 0's line, waits for the result |
//!
//! Both partners fold the same two operands in the same order, so in an allreduce all ranks get the same bits, for any op,
//! commutative or not.
//!
//! In a scan a process keeps a second fold, of what it has heard from lower ranks alone. A partner outside follows its partner
//! inside, whose result of a scan is all that it needs.
//!
//! A line is written again in the second next operation of this kind: all processes have posted something in the next one that
//! its writer's result depends on, and that after they had read the line. So two lines for each round are enough, and no
//! process asks whether a line is free.

use crate::Rank;
use crate::algorithm::LINE_REDUCED;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::poll::{Halt, Poll};
use crate::machine::{Operation, over};
use crate::op::Op;
use crate::pattern::Seat;
use crate::pattern::power::{Core, Role};
use crate::region::Region;
use crate::shm::engine::line::{self, Body, Heading};

/// The longest operand, in bytes.
pub const MOST: u64 = LINE_REDUCED;

/// Its words.
const WORDS: usize = (MOST / 8) as usize;

/// One process's part of an allreduce, a scan or an exscan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Doubling<'a> {
    kind: Kind,
    operation: u64,
    /// Which of the two lines of each round are used.
    turn: bool,
    send: Data<'a>,
    receive: Data<'a>,
    op: Op,
    count: u64,
    core: Core,
    /// The fold of all operands so far lies in the member's scratch. In a scan or an exscan, here is the fold of what was heard
    /// from lower ranks; `None`: nothing yet.
    below: Option<[u64; WORDS]>,
    state: State,
}

/// Where a process is, with operands of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    Enter,
    /// The partner outside gives its operand.
    Join,
    Post {
        round: u32,
    },
    Meet {
        round: u32,
    },
    /// The partner inside gives the result.
    Wait,
    Done,
}

impl<'a> Doubling<'a> {
    /// The part of any process: `receive` becomes the fold of the `send` of all ranks. In place: `receive` is `send`.
    ///
    /// # Errors
    /// `send` is longer than [`MOST`] or not a whole number of elements, or `receive` has another length.
    #[inline(always)]
    pub fn new(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Self, Refusal> {
        Self::of(Kind::Allreduce, me, send, receive, op)
    }

    /// The same for another kind: a scan, whose ranks receive the fold of those up to themselves, or an exscan, of those below.
    ///
    /// # Errors
    /// As of [`Self::new`].
    #[inline(always)]
    pub(crate) fn of(kind: Kind, me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Self, Refusal> {
        Refusal::check(Argument::Bytes, send.len(), Bound::AtMost(MOST))?;
        Refusal::check(Argument::Bytes, receive.len(), Bound::Equals(send.len()))?;
        let count = op.count(send.len())?;
        let core = Core::new(Seat::new(me.rank(), me.size())?, 0);
        Ok(Self { kind, operation: 0, turn: false, send, receive, op, count, core, below: None, state: State::Done })
    }

    const fn heading(&self) -> Heading {
        Heading { kind: self.kind, bytes: self.send.len() }
    }

    /// Posts what this process has folded so far in its line of this round.
    fn post<R: Region>(&self, region: &R, me: &Member, round: u32) {
        let mut body = Body::new();
        body.assign(&me.scratch[..self.words()]);
        let line = me.layout().partial(me.rank(), self.turn, round);
        line::publish_at(region, me, line, self.operation, self.heading(), &mut body, self.send.len());
    }

    /// What `peer` has posted in its line of this round.
    ///
    /// # Errors
    /// It has not posted it yet; another collective or length than this process's call.
    fn hear<R: Region>(&self, region: &R, me: &Member, peer: Rank, round: u32) -> Result<[u64; WORDS], Halt> {
        let mut body = Body::new();
        let line = me.layout().partial(peer, self.turn, round);
        line::receive_at(region, me, (peer, line), self.operation, self.heading(), &mut body, self.send.len())?;
        let mut words = [0; WORDS];
        words.iter_mut().zip(body.words(self.send.len())).for_each(|(to, from)| *to = *from);
        Ok(words)
    }

    /// Words of an operand.
    const fn words(&self) -> usize {
        self.send.len().div_ceil(8) as usize
    }

    /// This process's operand to its scratch.
    fn enter(&self, me: &mut Member) {
        let mut body = Body::new();
        body.gather(&self.send);
        me.scratch.iter_mut().zip(body.words(self.send.len())).for_each(|(to, from)| *to = *from);
    }

    /// The fold up to this process: `below` it, and its own operand.
    fn include(&self, me: &mut Member, below: Option<[u64; WORDS]>) {
        self.enter(me);
        if let Some(mut below) = below {
            let words = self.words();
            self.op.fold(&mut below[..words], &me.scratch[..words], self.count);
            keep(me, &below);
        }
    }

    /// Waits for what `peer` posts in this round, and folds it with what there is, the lower rank's operand on the left.
    fn meet<R: Region>(&mut self, region: &R, me: &mut Member, peer: Rank, round: u32) -> Result<(), Halt> {
        let (mut theirs, words) = (self.hear(region, me, peer, round)?, self.words());
        let lower = peer < me.rank();
        if lower && self.kind != Kind::Allreduce {
            let mut below = theirs;
            if let Some(nearer) = &self.below {
                self.op.fold(&mut below[..words], &nearer[..words], self.count);
            }
            self.below = Some(below);
        }
        let (theirs, mine) = (&mut theirs[..words], &mut me.scratch[..words]);
        if lower {
            self.op.fold(theirs, mine, self.count);
            mine.copy_from_slice(theirs);
        } else {
            self.op.fold(mine, theirs, self.count);
        }
        Ok(())
    }
}

impl Operation for Doubling<'_> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        self.operation = me.begin(self.kind);
        (self.turn, self.below, self.state) = (me.take_turn(self.operation, self.send.len()), None, State::Enter);
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        match self.go_on(region, me) {
            Ok(()) => {}
            Err(halt) => return halt.into(),
        }
        if self.state == State::Done {
            return over(self.operation);
        }
        // Below rank 0 is nothing.
        if self.kind != Kind::Exscan || me.rank() > 0 {
            let mut body = Body::new();
            body.assign(&me.scratch[..self.words()]);
            body.scatter(&self.receive);
        }
        keep(me, &[0; WORDS]);
        self.below = None;
        me.all_reached(self.operation);
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}

/// Keeps these words in the scratch.
fn keep(me: &mut Member, words: &[u64; WORDS]) {
    me.scratch[..WORDS].copy_from_slice(words);
}

impl Doubling<'_> {
    /// Goes on until the result lies in the member's scratch.
    ///
    /// # Errors
    /// What to wait for; another collective or length than this process's call.
    fn go_on<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Halt> {
        loop {
            match (self.state, self.core.role()) {
                (State::Enter, role) => {
                    self.enter(me);
                    self.state = match role {
                        Role::Inside { partner: Some(_), .. } => State::Join,
                        Role::Inside { partner: None, .. } => State::Post { round: 0 },
                        Role::Outside { .. } => {
                            self.post(region, me, 0);
                            State::Wait
                        }
                    };
                }
                (State::Join, Role::Inside { partner: Some(partner), .. }) => {
                    self.meet(region, me, partner, 0)?;
                    self.state = State::Post { round: 0 };
                }
                (State::Post { round }, Role::Inside { partner, .. }) if round == self.core.log2() => {
                    if self.kind != Kind::Allreduce {
                        self.include(me, self.below);
                    }
                    if partner.is_some() {
                        self.post(region, me, round);
                    }
                    if let (Kind::Exscan, Some(below)) = (self.kind, self.below) {
                        keep(me, &below);
                    }
                    return Ok(());
                }
                (State::Post { round }, _) => {
                    self.post(region, me, round);
                    self.state = State::Meet { round };
                }
                (State::Meet { round }, Role::Inside { number, .. }) => {
                    self.meet(region, me, self.core.rank_of(number ^ 1 << round), round)?;
                    self.state = State::Post { round: round + 1 };
                }
                (State::Wait, Role::Outside { partner }) => {
                    let heard = self.hear(region, me, partner, self.core.log2())?;
                    match self.kind {
                        Kind::Scan => self.include(me, Some(heard)),
                        _ => keep(me, &heard),
                    }
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
    }
}
