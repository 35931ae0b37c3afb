//! Allgatherv of paper P2 (Romanyuta and Kurnosov 2022): everyone's queue, a control word per pair of ranks.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `set_op(k)` | rank 0 | all | the operation that opened set k, counted in sets; 0: never opened |
//! | `set_readers(k)` | rank 0 sets, all subtract | who opens | P2's `nproc`: processes that have not left set k |
//! | `set_bytes(k)` | rank 0 | the others | which collective opened the set; published by `set_op` |
//! | `set_typesize(k)`, `set_count(k, r)` | rank 0 | the others | its counts, to compare; published by `set_op` |
//! | `control_all(r, slot, j)` | r puts, j clears | j | P2's `ctrlall`: bytes of the fragment in r's slot, for j |
//!
//! Everyone knows the counts. Rank 0 opens the sets. Everyone, per set: wait `op`; copy the own fragments into
//! the own queue and put their sizes into the words of all receivers; copy the others' fragments out and clear
//! the own words; subtract from `readers`. The words take O(p²·s) bytes
//! ([`pairs`](crate::region::layout::Cico::pairs)); [`super::exchange`] does with O(p).
//!
//! Mended against the print (PAPERS.md): everyone runs `max(1, ⌈longest block / (f·s/w)⌉)` sets and counts in
//! each, where the print deadlocks on unequal blocks; reading begins at the next rank, not at rank 0, where all would
//! meet; operations start at 1 over zeroed words; counts and bytes are 64 bits wide. Added: ranks whose
//! counts differ are an error, where the print hangs.

use crate::blocks::Blocks;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Machine;
use crate::region::{Mailword, Region};
use crate::shm::copy::{copy_in, copy_out, copy_private};
use crate::shm::line::Kind;
use crate::shm::set::Sets;
use crate::step::{Awaits, Step};
use crate::transport::Shared;

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cico<'a> {
    send: Data<'a>,
    receive: Blocks<'a>,
    sets: Sets,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Rank 0: waits until the set is free, opens it.
    Open,
    /// Others: wait until the set is open.
    Enter,
    /// Fills the own slots of the set.
    Fill,
    /// The fragment that is waited for, of the `step`-th rank after this one.
    Drain {
        fragment: u64,
        step: u32,
    },
    Done,
}

impl<'a> Cico<'a> {
    /// The next operation of `me`: `send` of rank r goes to block r of everyone's `receive`. `send` is `None`
    /// where the own block is in place.
    ///
    /// # Errors
    /// `receive` has not a block per rank, blocks that overlap, or another length for this rank than `send`; the
    /// segment has no queues of the papers.
    ///
    /// # Standard section
    /// MPI 4.1, 7.7.
    pub fn new(me: &mut Member, send: Option<Data<'a>>, receive: Blocks<'a>) -> Result<Self, Refusal> {
        let receive = receive.apart()?;
        Refusal::check(Argument::Ranks, receive.ranks().into(), Bound::Equals(me.size().into()))?;
        let send = send.unwrap_or(receive.block(me.rank()));
        Refusal::check(Argument::Bytes, send.len(), Bound::Equals(receive.bytes(me.rank())))?;
        let state = if me.rank() == 0 { State::Open } else { State::Enter };
        Ok(Self { send, receive, sets: Sets::new(me, Kind::Allgather, 0)?, state })
    }

    /// Once, before the first set: how many sets there are, and the own block.
    fn begin(&mut self, me: &mut Member) {
        self.sets.learn(me, self.receive.most());
        // SAFETY: both are this process's own; the block is as long, and the caller's to write.
        unsafe { copy_private(&self.send, &self.receive.block(me.rank()), (0, self.send.len())) };
    }

    fn open<R: Region>(&mut self, region: &R, me: &mut Member) -> Option<Awaits> {
        if let Some(wait) = self.sets.claim(region, me) {
            return Some(wait);
        }
        if self.sets.is_first() {
            self.sets.write_counts(region, me, &self.receive);
        }
        self.sets.open(region, me);
        if self.sets.is_first() {
            self.begin(me);
        }
        self.state = State::Fill;
        None
    }

    fn enter<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Option<Awaits>, PollError> {
        let wait = self.sets.enter(region, me)?;
        if wait.is_none() {
            if self.sets.is_first() {
                let told = self.sets.told(region, me);
                for rank in 0..me.size() {
                    self.sets.agree(self.receive.bytes(rank), told(rank))?;
                }
                self.begin(me);
            }
            self.state = State::Fill;
        }
        Ok(wait)
    }

    fn fill<R: Region>(&mut self, region: &R, me: &Member) {
        let layout = me.layout();
        for fragment in self.sets.fragments() {
            let ((from, size), slot) = (self.sets.cut(fragment, self.send.len()), self.sets.slot(fragment));
            if size > 0 {
                // SAFETY: R10, rank 0 has seen `readers` of the set at 0: all copies out of its slots are complete.
                unsafe { copy_in(region, layout.fragment(me.rank(), slot).part(0, size), &self.send, from) };
                for receiver in (1..me.size()).map(|step| me.after(step)) {
                    // publishes: the fragment
                    region.mail(layout.control_all(me.rank(), slot, receiver)).put_release(size);
                }
            }
        }
        self.state = State::Drain { fragment: self.sets.fragments().start, step: 1 };
    }

    fn drain<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        (first, step): (u64, u32),
    ) -> Result<Option<Awaits>, PollError> {
        let layout = me.layout();
        for fragment in first..self.sets.fragments().end {
            let slot = self.sets.slot(fragment);
            for step in if fragment == first { step } else { 1 }..me.size() {
                let peer = me.after(step);
                let (from, size) = self.sets.cut(fragment, self.receive.bytes(peer));
                if size == 0 {
                    continue;
                }
                let control = layout.control_all(peer, slot, me.rank());
                // pairs with: fill
                if let Some(wait) = self.sets.announced(region, control, peer, size)? {
                    self.state = State::Drain { fragment, step };
                    return Ok(Some(wait));
                }
                region.mail(control).clear();
                let at = layout.fragment(peer, slot).part(0, size);
                // SAFETY: the fragment was published by the word for us; its writer reuses the slot in a set that
                // is opened after we have left this one.
                unsafe { copy_out(region, at, &self.receive.block(peer), from) };
            }
        }
        let again = if me.rank() == 0 { State::Open } else { State::Enter };
        self.state = if self.sets.leave(region, me) { again } else { State::Done };
        Ok(None)
    }
}

impl<X: Shared + ?Sized> Machine<X> for Cico<'_> {
    fn poll(&mut self, x: &mut X) -> Result<Step, PollError> {
        let (region, me) = x.shared();
        self.sets.begin(me);
        loop {
            let wait = match self.state {
                State::Open => self.open(region, me),
                State::Enter => self.enter(region, me)?,
                State::Fill => {
                    self.fill(region, me);
                    None
                }
                State::Drain { fragment, step } => self.drain(region, me, (fragment, step))?,
                State::Done => return Ok(Step::Done),
            };
            if let Some(wait) = wait {
                return Ok(Step::Wait(wait));
            }
            if self.state == State::Done {
                me.finish(region, self.sets.operation());
            }
        }
    }
}
