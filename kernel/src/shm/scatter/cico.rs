//! Scatterv of paper P2 (Romanyuta and Kurnosov 2022): through the receivers' queues, counts told by the root.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `set_op(k)` | the root | all | the operation that opened set k, counted in sets; 0: never opened |
//! | `set_readers(k)` | root sets, all subtract | who opens | P2's `nproc`: processes that have not left set k |
//! | `set_bytes(k)` | the root | the others | which collective opened the set; published by `set_op` |
//! | `set_typesize(k)`, `set_count(k, r)` | the root | the others | one element's bytes, elements of r's block |
//! | `set_rootready(k, r)` | the root puts, r clears | r | 1: typesize and counts are there |
//! | `control(r, slot)` | the root puts, r clears | r | P2's `ctrl`: bytes of the fragment in r's slot |
//!
//! Root, per set: wait `readers == 0`, store `readers = p`, store `op`; in the first set write the counts, then
//! `rootready`; per slot, for each process that is owed bytes: copy a fragment into *its* queue, put the size into
//! its control. Others, per set: wait `op`; in the first set wait for `rootready`, read the counts, clear the
//! word; per slot: wait for the control, copy out, clear it. Everyone subtracts from `readers` after each set.
//!
//! Mended against the print (PAPERS.md): the waits on `rootready` and `ctrl` wait for what they need, not for its
//! absence; a reader clears `rootready[rank]`, not `counts[rank]`; a process that is not the root learns the number of sets
//! from what it was told, after it was told; *everyone* runs `max(1, ⌈longest block but the root's / (f·s/w)⌉)`
//! sets and counts in each, where the print deadlocks on unequal blocks; one set at least, and everyone consumes
//! `rootready`, so that a stale 1 never shows old counts; operations start at 1 over zeroed words (the print lost
//! the minus of −1); counts and bytes are 64 bits wide. Added: `set_bytes` names another collective, and a length
//! that differs from the root's is an error, where the print hangs or copies too much.

use crate::Rank;
use crate::blocks::Blocks;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Machine;
use crate::region::{Mailword, Region};
use crate::shm::copy::{copy_in, copy_out, copy_private};
use crate::shm::line::Kind;
use crate::shm::set::{Sets, absent, most_but};
use crate::step::{Awaits, Step};
use crate::transport::Shared;

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cico<'a> {
    root: Rank,
    /// Everyone's blocks, at the root.
    send: Option<Blocks<'a>>,
    receive: Data<'a>,
    sets: Sets,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Root: waits until the set is free, opens it.
    Open,
    /// Root: fills everyone's slots of the set.
    Fill,
    /// Others: wait until the set is open.
    Enter,
    /// Others: wait for the counts.
    Hear,
    /// Others: the fragment that is waited for, from 0.
    Drain {
        fragment: u64,
    },
    Done,
}

impl<'a> Cico<'a> {
    /// The next operation of `me`: block r of the root's `send` goes to `receive` of rank r. The others' `send` is
    /// not looked at; the root's `receive` is `None` where its block stays in place.
    ///
    /// # Errors
    /// `root` is no rank; the root's `send` is missing, has not a block per rank, or another length for the root than
    /// `receive`; another's `receive` is missing; the segment has no queues of the papers.
    ///
    /// # Standard section
    /// MPI 4.1, 7.6.
    pub fn new(
        me: &mut Member,
        send: Option<Blocks<'a>>,
        receive: Option<Data<'a>>,
        root: Rank,
    ) -> Result<Self, Refusal> {
        me.check_root(root)?;
        if me.rank() != root {
            let receive = receive.ok_or(absent())?;
            let sets = Sets::new(me, Kind::Scatter, root)?;
            return Ok(Self { root, send: None, receive, sets, state: State::Enter });
        }
        let blocks = send.ok_or(absent())?;
        Refusal::check(Argument::Ranks, blocks.ranks().into(), Bound::Equals(me.size().into()))?;
        let receive = receive.unwrap_or(blocks.block(root));
        Refusal::check(Argument::Bytes, receive.len(), Bound::Equals(blocks.bytes(root)))?;
        Ok(Self { root, send, receive, sets: Sets::new(me, Kind::Scatter, root)?, state: State::Open })
    }

    fn open<R: Region>(&mut self, region: &R, me: &mut Member) -> Option<Awaits> {
        if let Some(wait) = self.sets.claim(region, me) {
            return Some(wait);
        }
        self.sets.open(region, me);
        if let Some(send) = self.send.as_ref().filter(|_| self.sets.is_first()) {
            self.sets.tell(region, me, send);
            self.sets.learn(me, most_but(send, self.root));
            // SAFETY: both are this process's own; `receive` is as long, and the caller's to write.
            unsafe { copy_private(&send.block(self.root), &self.receive, (0, self.receive.len())) };
        }
        self.state = State::Fill;
        None
    }

    fn fill<R: Region>(&self, region: &R, me: &Member, send: &Blocks<'_>) {
        for fragment in self.sets.fragments() {
            for peer in (1..me.size()).map(|step| me.after(step)) {
                let (from, size) = self.sets.cut(fragment, send.bytes(peer));
                if size > 0 {
                    let slot = self.sets.slot(fragment);
                    let at = me.layout().fragment(peer, slot).part(0, size);
                    // SAFETY: R10, `readers` of the set was 0: all copies out of its slots are complete.
                    unsafe { copy_in(region, at, &send.block(peer), from) };
                    // publishes: the fragment
                    region.mail(me.layout().control(peer, slot)).put_release(size);
                }
            }
        }
    }

    fn enter<R: Region>(&mut self, region: &R, me: &Member) -> Result<Option<Awaits>, PollError> {
        let wait = self.sets.enter(region, me)?;
        if wait.is_none() {
            self.state = match self.sets.is_first() {
                true => State::Hear,
                false => State::Drain { fragment: self.sets.fragments().start },
            };
        }
        Ok(wait)
    }

    fn hear<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Option<Awaits>, PollError> {
        let wait = self.sets.hear(region, me, self.receive.len())?;
        if wait.is_none() {
            self.state = State::Drain { fragment: 0 };
        }
        Ok(wait)
    }

    fn drain<R: Region>(&mut self, region: &R, me: &Member, first: u64) -> Result<Option<Awaits>, PollError> {
        let layout = me.layout();
        for fragment in first..self.sets.fragments().end {
            let ((from, size), slot) = (self.sets.cut(fragment, self.receive.len()), self.sets.slot(fragment));
            if size == 0 {
                break;
            }
            let control = layout.control(me.rank(), slot);
            // pairs with: fill
            if let Some(wait) = self.sets.announced(region, control, self.root, size)? {
                self.state = State::Drain { fragment };
                return Ok(Some(wait));
            }
            region.mail(control).clear();
            // SAFETY: the fragment was published by its control; the root reuses the slot after we have left the set.
            unsafe { copy_out(region, layout.fragment(me.rank(), slot).part(0, size), &self.receive, from) };
        }
        self.leave(region, me, State::Enter);
        Ok(None)
    }

    /// After a set: the next one, or the end.
    fn leave<R: Region>(&mut self, region: &R, me: &Member, again: State) {
        self.state = if self.sets.leave(region, me) { again } else { State::Done };
    }
}

impl<X: Shared + ?Sized> Machine<X> for Cico<'_> {
    fn poll(&mut self, x: &mut X) -> Result<Step, PollError> {
        let (region, me) = x.shared();
        self.sets.begin(me);
        loop {
            let wait = match self.state {
                State::Open => self.open(region, me),
                State::Fill => {
                    if let Some(send) = self.send {
                        self.fill(region, me, &send);
                    }
                    self.leave(region, me, State::Open);
                    None
                }
                State::Enter => self.enter(region, me)?,
                State::Hear => self.hear(region, me)?,
                State::Drain { fragment } => self.drain(region, me, fragment)?,
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
