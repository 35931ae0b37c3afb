//! Scatterv of paper P2 (Romanyuta and Kurnosov 2022): through the receivers' queues, counts told by the root.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `set_op(k)` | the root | all | P2's `op`: the number of the set that was opened last in place k; 0: none yet |
//! | `set_readers(k)` | root sets, all subtract | the root | P2's `nproc`: processes that have not left set k |
//! | `set_bytes(k)` | the root | the others | which collective opened the set; published by `set_op` |
//! | `set_typesize(k)`, `set_count(k, r)` | the root | the others | one element's bytes, elements of r's block |
//! | `set_rootready(k, r)` | the root puts, r clears | r | 1: typesize and counts are there |
//! | `control(r, slot)` | the root puts, r clears | r | P2's `ctrl`: bytes of the fragment in r's slot |
//!
//! Set `op` lies in place k = op mod q of the queue. The paper's steps, for each set (`sets` has those that all three
//! collectives share):
//!
//! | rank | step | what |
//! |---|---|---|
//! | root | R1 | wait until `readers` is 0, store `readers` = p |
//! | | R2 | store `op`: the set is open |
//! | | R3 | in the first set: write the counts, put 1 into each `rootready`, copy the root's own block |
//! | | R4 | for each slot, for each rank with bytes left: copy a fragment into *its* queue, the size into its `ctrl` |
//! | others | T1 | wait for `op`: the set is open |
//! | | T2 | in the first set: wait for `rootready`, read the counts, clear the word |
//! | | T3 | for each slot of its block: wait for `ctrl`, clear it, copy the fragment out |
//! | all | L | subtract 1 from `readers`: this process has left the set |
//!
//! Corrected against the printed pseudocode (docs/explanation/papers.md): the waits on `rootready` and `ctrl` wait
//! until these are set, not until they are clear; a reader clears `rootready[rank]`, not `counts[rank]`; a rank that
//! is not the root computes the number of sets from the counts after it has read them; *all* ranks go through max(1,
//! ⌈longest block but the root's / (f·s/q)⌉) sets (f·s/q: the bytes of one set) and subtract in each, where the
//! printed algorithm deadlocks on unequal blocks; there is at least one set, and each rank clears its `rootready`, so
//! that an old 1 never shows old counts; `op` starts at 1 and words start at 0 (the print lost the minus of −1);
//! counts and bytes have 64 bits. Added: ranks that call another collective, which `set_bytes` names, or whose length
//! differs from the root's get an error, where the printed algorithm hangs or copies too much.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::{Blocks, absent};
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Operation;
use crate::machine::poll::Halt;
use crate::machine::poll::Poll;
use crate::region::{Mailword, Region};
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::papers::sets::{PerSet, Sets};

/// One process's part of a scatterv.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct P2Scatter<'a> {
    /// The blocks of all ranks, at the root.
    send: Option<Blocks<'a>>,
    receive: Data<'a>,
    sets: Sets,
}

impl<'a> P2Scatter<'a> {
    /// The part of `me`: block r of the root's `send` goes to `receive` of rank r. `send` is significant only at the
    /// root; the root's `receive` is `None` where its block stays in place.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; the root's `send` is missing or does not have one block per rank;
    /// the root's block and its `receive` differ in length; another rank's `receive` is missing; the segment has no
    /// queues of the papers.
    ///
    /// # Standard section
    /// MPI 4.1, 7.6.
    pub fn new(me: &Member, send: Option<Blocks<'a>>, receive: Option<Data<'a>>, root: Rank) -> Result<Self, Refusal> {
        me.check_root(root)?;
        if me.rank() != root {
            let receive = receive.ok_or(absent())?;
            return Ok(Self { send: None, receive, sets: Sets::new(me, Kind::Scatter, root)? });
        }
        let blocks = send.ok_or(absent())?;
        Refusal::check(Argument::Ranks, blocks.ranks().into(), Bound::Equals(me.size().into()))?;
        let receive = receive.unwrap_or(blocks.block(root));
        Refusal::check(Argument::Bytes, receive.len(), Bound::Equals(blocks.bytes(root)))?;
        Ok(Self { send, receive, sets: Sets::new(me, Kind::Scatter, root)? })
    }

    /// Root, R1 to R4: opens the set, tells the counts, and fills the slots of all ranks.
    fn give<R: Region>(&mut self, region: &R, me: &mut Member, send: &Blocks<'_>) -> Result<(), Halt> {
        self.sets.claim(region, me)?;
        self.sets.open(region, me);
        if self.sets.is_first() {
            self.sets.tell(region, me, send);
            // SAFETY: both are this process's memory; `receive` is as long, and the caller may write it.
            unsafe { copy_private(region, &send.block(me.rank()), &self.receive, Part::first(self.receive.len())) };
        }
        for fragment in self.sets.fragments() {
            for peer in (1..me.size()).map(|step| me.after(step)) {
                let slot = self.sets.slot(fragment);
                let (at, control) = (me.layout().fragment(peer, slot), me.layout().control(peer, slot));
                // SAFETY: S2, only the root writes in a set that it has opened; the caller may read the block.
                if let Some(size) = unsafe { self.sets.fill(region, at, fragment, &send.block(peer)) } {
                    // publishes: the fragment
                    region.mail(control).put_release(size);
                }
            }
        }
        Ok(())
    }

    /// Others, T1 to T3: wait until the set is open and the counts are there, and take their fragments.
    fn take<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Halt> {
        self.sets.enter(region, me)?;
        self.sets.receive(region, me, self.receive.len())?;
        while let Some((fragment, _)) = self.sets.next(1) {
            let slot = self.sets.slot(fragment);
            let (at, control) = (me.layout().fragment(me.rank(), slot), me.layout().control(me.rank(), slot));
            let root = self.sets.opener();
            // SAFETY: S3, `control` is the slot's; the caller may write `receive`.
            unsafe { self.sets.take(region, root, control, at, fragment, &self.receive) }?;
        }
        Ok(())
    }
}

impl PerSet for P2Scatter<'_> {
    fn sets(&mut self) -> &mut Sets {
        &mut self.sets
    }

    fn set<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Halt> {
        match self.send {
            Some(send) => self.give(region, me, &send),
            None => self.take(region, me),
        }
    }
}

impl Operation for P2Scatter<'_> {
    fn start(&mut self, me: &mut Member) {
        self.sets.start(me);
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        self.go(region, me)
    }
}
