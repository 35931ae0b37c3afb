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
//! ([`pairs`](crate::region::layout::Cico::pairs)); [`crate::shm::allgather::exchange`] does with O(p).
//!
//! Mended against the print (docs/explanation/papers.md): everyone runs `max(1, ⌈longest block / (f·s/w)⌉)` sets and
//! counts in each, where the print deadlocks on unequal blocks; reading begins at the next rank, not at rank 0, where
//! all would meet; operations start at 1 over zeroed words; counts and bytes are 64 bits wide. Added: ranks whose
//! counts differ are an error, where the print hangs.

use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Operation;
use crate::machine::poll::Poll;
use crate::region::{Mailword, Region};
use crate::shm::engine::copy::copy_private;
use crate::shm::papers::sets::{Halt, PerSet, Sets};

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct P2Allgather<'a> {
    send: Data<'a>,
    receive: Blocks<'a>,
    sets: Sets,
}

impl<'a> P2Allgather<'a> {
    /// The part of `me`: `send` of rank r goes to block r of everyone's `receive`. `send` is `None`
    /// where the own block is in place.
    ///
    /// # Errors
    /// `receive` has not a block per rank, blocks that overlap, or another length for this rank than `send`; the
    /// segment has no queues of the papers.
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

    /// Rank 0: opens the set, the first with its counts. True: just now.
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

    /// Others: wait until the set is open, and compare the first one's counts. True: just now.
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

    /// Fills the own slots, for every receiver.
    fn fill<R: Region>(&self, region: &R, me: &Member) {
        for fragment in self.sets.fragments() {
            let slot = self.sets.slot(fragment);
            let at = me.layout().fragment(me.rank(), slot);
            // SAFETY: S2, this process alone writes its slots, in a set that it is in; `send` is the caller's to read.
            if let Some(size) = unsafe { self.sets.fill(region, at, fragment, &self.send) } {
                for receiver in (1..me.size()).map(|step| me.after(step)) {
                    // publishes: the fragment
                    region.mail(me.layout().control_all(me.rank(), slot, receiver)).put_release(size);
                }
            }
        }
    }

    /// Takes the others' fragments.
    fn take<R: Region>(&mut self, region: &R, me: &Member) -> Result<(), Halt> {
        while let Some((fragment, step)) = self.sets.next(me.size() - 1) {
            let (peer, slot) = (me.after(step + 1), self.sets.slot(fragment));
            let (at, control) = (me.layout().fragment(peer, slot), me.layout().control_all(peer, slot, me.rank()));
            // SAFETY: S3, the slot's control for us; the block is the caller's to write.
            unsafe { self.sets.take(region, (peer, control), at, fragment, &self.receive.block(peer)) }?;
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
                // SAFETY: both are this process's own; the block is as long, and the caller's to write.
                unsafe { copy_private(&self.send, &self.receive.block(me.rank()), (0, self.send.len())) };
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
