//! Allgatherv of paper P2 (Romanyuta and Kurnosov 2022): through the queues of all ranks, with control words for each
//! pair.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `set_op(k)` | rank 0 | all | P2's `op`: the number of the set that was opened last in place k; 0: none yet |
//! | `set_readers(k)` | rank 0 sets, all subtract | rank 0 | P2's `nproc`: processes that have not left set k |
//! | `set_bytes(k)` | rank 0 | the others | which collective opened the set; published by `set_op` |
//! | `set_typesize(k)`, `set_count(k, r)` | rank 0 | the others | its counts, to compare; published by `set_op` |
//! | `control_all(r, slot, j)` | r puts, j clears | j | P2's `ctrlall`: bytes of the fragment in r's slot, for j |
//!
//! All ranks know the counts. Set `op` lies in place k = op mod q of the queues. The paper's steps, for each set
//! (`sets` has those that all three collectives share):
//!
//! | rank | step | what |
//! |---|---|---|
//! | rank 0 | A1 | wait until `readers` is 0, store `readers` = p, in the first set write the counts, store `op` |
//! | others | A1 | wait for `op`: the set is open; in the first set compare the counts with their own |
//! | all | A2 | in the first set: copy this rank's block from `send` to its place in `receive` |
//! | | A3 | for each slot of its block: copy a fragment into its own queue, put the size into the receivers' words |
//! | | A4 | for each slot, for each other rank: wait for its own word there, clear it, copy the fragment out |
//! | | L | subtract 1 from `readers`: this process has left the set |
//!
//! The control words take O(p²·s) bytes ([`pairs`](crate::region::Cico::pairs));
//! [`crate::shm::allgather::exchange`] needs only O(p).
//!
//! Corrected against the printed pseudocode (docs/explanation/papers.md): all ranks go through
//! max(1, ⌈longest block / (f·s/q)⌉) sets (f·s/q: the bytes of one set) and subtract in each, where the printed
//! algorithm deadlocks on unequal blocks; each rank starts reading at the next rank, not at rank 0, where all would
//! meet; `op` starts at 1 and words start at 0; counts and bytes have 64 bits. Added: ranks whose counts differ get
//! an error, where the printed algorithm hangs.

use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Operation;
use crate::machine::poll::Halt;
use crate::machine::poll::Poll;
use crate::region::{Mailword, Region};
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::papers::sets::{PerSet, Sets};

/// One process's part of an allgatherv.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct P2Allgather<'a> {
    send: Data<'a>,
    receive: Blocks<'a>,
    sets: Sets,
}

impl<'a> P2Allgather<'a> {
    /// The part of `me`: `send` of rank r goes to block r of the `receive` of all ranks. `send` is `None`
    /// where this rank's block is in place.
    ///
    /// # Errors
    /// `receive` does not have one block per rank, or its blocks overlap; this rank's block and `send` differ in
    /// length; the segment has no queues of the papers.
    ///
    /// # Standard section
    /// MPI 4.1, 7.7.
    pub fn new(me: &Member, send: Option<Data<'a>>, receive: Blocks<'a>) -> Result<Self, Refusal> {
        receive.apart()?;
        Refusal::check(Argument::Ranks, receive.ranks().into(), Bound::Equals(me.size().into()))?;
        let send = send.unwrap_or(receive.block(me.rank()));
        Refusal::check(Argument::Bytes, send.len(), Bound::Equals(receive.bytes(me.rank())))?;
        Ok(Self { send, receive, sets: Sets::new(me, Kind::Allgather, 0)? })
    }

    /// Rank 0, A1: opens the set, the first one with the counts. Returns true if this poll opened it, false if an
    /// earlier one did.
    fn open<R: Region>(&mut self, region: &R, me: &Member) -> Result<bool, Halt> {
        let opened = self.sets.claim(region, me)?;
        if opened {
            if self.sets.is_first() {
                self.sets.write_counts(region, me, &self.receive);
            }
            self.sets.open(region, me);
        }
        Ok(opened)
    }

    /// Others, A1: wait until the set is open, and compare the counts in the first one. Returns true if this poll
    /// entered the set, false if an earlier one did.
    fn enter<R: Region>(&mut self, region: &R, me: &Member) -> Result<bool, Halt> {
        let entered = self.sets.enter(region, me)?;
        if entered && self.sets.is_first() {
            let told = self.sets.told(region, me);
            for rank in 0..me.size() {
                self.sets.agree(self.receive.bytes(rank), told(rank))?;
            }
        }
        Ok(entered)
    }

    /// A3: fills this process's slots, for all receivers.
    fn fill<R: Region>(&self, region: &R, me: &Member) {
        for fragment in self.sets.fragments() {
            let slot = self.sets.slot(fragment);
            let at = me.layout().fragment(me.rank(), slot);
            // SAFETY: S2, only this process writes its slots, in a set that it has entered; the caller may read `send`.
            if let Some(size) = unsafe { self.sets.fill(region, at, fragment, &self.send) } {
                for receiver in (1..me.size()).map(|step| me.after(step)) {
                    // publishes: the fragment
                    region.mail(me.layout().control_all(me.rank(), slot, receiver)).put_release(size);
                }
            }
        }
    }

    /// A4: takes the fragments of the other ranks.
    fn take<R: Region>(&mut self, region: &R, me: &Member) -> Result<(), Halt> {
        while let Some((fragment, step)) = self.sets.next(me.size() - 1) {
            let (peer, slot) = (me.after(step + 1), self.sets.slot(fragment));
            let (at, control) = (me.layout().fragment(peer, slot), me.layout().control_all(peer, slot, me.rank()));
            // SAFETY: S3, `control` is the slot's word for this process; the caller may write the block.
            unsafe { self.sets.take(region, peer, control, at, fragment, &self.receive.block(peer)) }?;
        }
        Ok(())
    }
}

impl PerSet for P2Allgather<'_> {
    fn sets(&mut self) -> &mut Sets {
        &mut self.sets
    }

    fn set<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Halt> {
        let new = if me.rank() == 0 { self.open(region, me)? } else { self.enter(region, me)? };
        if new {
            if self.sets.is_first() {
                self.sets.learn(me, self.receive.most());
                // A2.
                // SAFETY: both are this process's memory; the block is as long, and the caller may write it.
                unsafe {
                    copy_private(region, &self.send, &self.receive.block(me.rank()), Part::first(self.send.len()))
                };
            }
            self.fill(region, me);
        }
        self.take(region, me)
    }
}

impl Operation for P2Allgather<'_> {
    fn start(&mut self, me: &mut Member) {
        self.sets.start(me);
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        self.go(region, me)
    }
}
