//! Gatherv of paper P2 (Romanyuta and Kurnosov 2022): through the senders' queues, counts told by the root.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `set_op(k)`, `set_readers(k)`, `set_bytes(k)` | | | as in scatterv ([`crate::shm::scatter::cico`]) |
//! | `set_typesize(k)`, `set_count(k, r)`, `set_rootready(k, r)` | | | likewise |
//! | `control(r, slot)` | r puts, the root clears | the root | P2's `ctrl`: bytes of the fragment in r's slot |
//!
//! The mirror of scatterv: the root opens the sets and tells the counts; each process copies its fragments into its
//! own queue and puts the sizes into its own controls; the root copies them out and clears the controls, before
//! it leaves the set itself. Everyone subtracts from `readers` after each set.
//!
//! Mended against the print: as scatterv.

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
    send: Data<'a>,
    /// Everyone's blocks, at the root.
    receive: Option<Blocks<'a>>,
    sets: Sets,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Root: waits until the set is free, opens it.
    Open,
    /// Root: the fragment that is waited for, of the `step`-th rank after the root.
    Drain {
        fragment: u64,
        step: u32,
    },
    /// Others: wait until the set is open.
    Enter,
    /// Others: wait for the counts.
    Hear,
    /// Others: fill their slots of the set.
    Fill,
    Done,
}

impl<'a> Cico<'a> {
    /// The next operation of `me`: `send` of rank r goes to block r of the root's `receive`. The others' `receive`
    /// is not looked at; the root's `send` is `None` where its block is in place.
    ///
    /// # Errors
    /// `root` is no rank; the root's `receive` is missing, has not a block per rank, blocks that overlap, or another
    /// length for the root than `send`; another's `send` is missing; the segment has no queues of the papers.
    ///
    /// # Standard section
    /// MPI 4.1, 7.5.
    pub fn new(
        me: &mut Member,
        send: Option<Data<'a>>,
        receive: Option<Blocks<'a>>,
        root: Rank,
    ) -> Result<Self, Refusal> {
        me.check_root(root)?;
        if me.rank() != root {
            let send = send.ok_or(absent())?;
            let sets = Sets::new(me, Kind::Gather, root)?;
            return Ok(Self { root, send, receive: None, sets, state: State::Enter });
        }
        let blocks = receive.ok_or(absent())?.apart()?;
        Refusal::check(Argument::Ranks, blocks.ranks().into(), Bound::Equals(me.size().into()))?;
        let send = send.unwrap_or(blocks.block(root));
        Refusal::check(Argument::Bytes, send.len(), Bound::Equals(blocks.bytes(root)))?;
        Ok(Self { root, send, receive, sets: Sets::new(me, Kind::Gather, root)?, state: State::Open })
    }

    fn open<R: Region>(&mut self, region: &R, me: &mut Member) -> Option<Awaits> {
        if let Some(wait) = self.sets.claim(region, me) {
            return Some(wait);
        }
        self.sets.open(region, me);
        if let Some(receive) = self.receive.as_ref().filter(|_| self.sets.is_first()) {
            self.sets.tell(region, me, receive);
            self.sets.learn(me, most_but(receive, self.root));
            // SAFETY: both are this process's own; the block is as long, and the caller's to write.
            unsafe { copy_private(&self.send, &receive.block(self.root), (0, self.send.len())) };
        }
        self.state = State::Drain { fragment: self.sets.fragments().start, step: 1 };
        None
    }

    fn drain<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        receive: &Blocks<'_>,
        (first, step): (u64, u32),
    ) -> Result<Option<Awaits>, PollError> {
        let layout = me.layout();
        for fragment in first..self.sets.fragments().end {
            let slot = self.sets.slot(fragment);
            for step in if fragment == first { step } else { 1 }..me.size() {
                let peer = me.after(step);
                let (from, size) = self.sets.cut(fragment, receive.bytes(peer));
                if size == 0 {
                    continue;
                }
                let control = layout.control(peer, slot);
                // pairs with: fill
                if let Some(wait) = self.sets.announced(region, control, peer, size)? {
                    self.state = State::Drain { fragment, step };
                    return Ok(Some(wait));
                }
                region.mail(control).clear();
                let at = layout.fragment(peer, slot).part(0, size);
                // SAFETY: the fragment was published by its control; its writer reuses the slot in a set that
                // is opened after we have left this one.
                unsafe { copy_out(region, at, &receive.block(peer), from) };
            }
        }
        Ok(None)
    }

    fn enter<R: Region>(&mut self, region: &R, me: &Member) -> Result<Option<Awaits>, PollError> {
        let wait = self.sets.enter(region, me)?;
        if wait.is_none() {
            self.state = if self.sets.is_first() { State::Hear } else { State::Fill };
        }
        Ok(wait)
    }

    fn hear<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Option<Awaits>, PollError> {
        let wait = self.sets.hear(region, me, self.send.len())?;
        if wait.is_none() {
            self.state = State::Fill;
        }
        Ok(wait)
    }

    fn fill<R: Region>(&mut self, region: &R, me: &Member) {
        let layout = me.layout();
        for fragment in self.sets.fragments() {
            let ((from, size), slot) = (self.sets.cut(fragment, self.send.len()), self.sets.slot(fragment));
            if size > 0 {
                // SAFETY: R10, the root has seen `readers` of the set at 0: all copies out of its slots are complete.
                unsafe { copy_in(region, layout.fragment(me.rank(), slot).part(0, size), &self.send, from) };
                // publishes: the fragment
                region.mail(layout.control(me.rank(), slot)).put_release(size);
            }
        }
        self.leave(region, me, State::Enter);
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
                State::Drain { fragment, step } => {
                    let wait = match self.receive {
                        Some(receive) => self.drain(region, me, &receive, (fragment, step))?,
                        None => None,
                    };
                    if wait.is_none() {
                        self.leave(region, me, State::Open);
                    }
                    wait
                }
                State::Enter => self.enter(region, me)?,
                State::Hear => self.hear(region, me)?,
                State::Fill => {
                    self.fill(region, me);
                    None
                }
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
