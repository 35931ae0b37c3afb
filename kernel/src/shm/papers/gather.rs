//! Gatherv of paper P2 (Romanyuta and Kurnosov 2022): through the senders' queues, counts told by the root.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `set_op(k)`, `set_readers(k)`, `set_bytes(k)` | | | as in scatterv ([`crate::shm::papers::scatter`]) |
//! | `set_typesize(k)`, `set_count(k, r)`, `set_rootready(k, r)` | | | likewise |
//! | `control(r, slot)` | r puts, the root clears | the root | P2's `ctrl`: bytes of the fragment in r's slot |
//!
//! The paper's steps, for each set, the mirror of scatterv's (`sets` has those that all three collectives share):
//!
//! | rank | step | what |
//! |---|---|---|
//! | root | R1 | wait until `readers` is 0, store `readers` = p |
//! | | R2 | store `op`: the set is open |
//! | | R3 | in the first set: write the counts, put 1 into each `rootready`, copy the root's own block |
//! | | R4 | for each slot, for each rank with bytes left: wait for its `ctrl`, clear it, copy the fragment out |
//! | others | T1 | wait for `op`: the set is open |
//! | | T2 | in the first set: wait for `rootready`, read the counts, clear the word |
//! | | T3 | for each slot of its block: copy a fragment into its own queue, put the size into its own `ctrl` |
//! | all | L | subtract 1 from `readers`: this process has left the set; the root after it has taken all fragments |
//!
//! Corrected against the printed pseudocode as scatterv is.

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

/// One process's part of a gatherv.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct P2Gather<'a> {
    send: Data<'a>,
    /// The blocks of all ranks, at the root.
    receive: Option<Blocks<'a>>,
    sets: Sets,
}

impl<'a> P2Gather<'a> {
    /// The part of `me`: `send` of rank r goes to block r of the root's `receive`. `receive` is significant only at
    /// the root; the root's `send` is `None` where its block is in place.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; the root's `receive` is missing, or does not have one block per
    /// rank, or its blocks overlap; the root's block and its `send` differ in length; another rank's `send` is
    /// missing; the segment has no queues of the papers.
    ///
    /// # Standard section
    /// MPI 4.1, 7.5.
    pub fn new(me: &Member, send: Option<Data<'a>>, receive: Option<Blocks<'a>>, root: Rank) -> Result<Self, Refusal> {
        me.check_root(root)?;
        if me.rank() != root {
            let send = send.ok_or(absent())?;
            return Ok(Self { send, receive: None, sets: Sets::new(me, Kind::Gather, root)? });
        }
        let blocks = receive.ok_or(absent())?;
        blocks.apart()?;
        Refusal::check(Argument::Ranks, blocks.ranks().into(), Bound::Equals(me.size().into()))?;
        let send = send.unwrap_or(blocks.block(root));
        Refusal::check(Argument::Bytes, send.len(), Bound::Equals(blocks.bytes(root)))?;
        Ok(Self { send, receive, sets: Sets::new(me, Kind::Gather, root)? })
    }

    /// Root, R1 to R4: opens the set, tells the counts, and takes the fragments of all ranks.
    fn collect<R: Region>(&mut self, region: &R, me: &mut Member, receive: &Blocks<'_>) -> Result<(), Halt> {
        if self.sets.claim(region, me)? {
            self.sets.open(region, me);
            if self.sets.is_first() {
                self.sets.tell(region, me, receive);
                // SAFETY: both are this process's memory; the block is as long, and the caller may write it.
                unsafe { copy_private(region, &self.send, &receive.block(me.rank()), Part::first(self.send.len())) };
            }
        }
        while let Some((fragment, step)) = self.sets.next(me.size() - 1) {
            let (peer, slot) = (me.after(step + 1), self.sets.slot(fragment));
            let (at, control) = (me.layout().fragment(peer, slot), me.layout().control(peer, slot));
            // SAFETY: S3, `control` is the slot's; the caller may write the block.
            unsafe { self.sets.take(region, peer, control, at, fragment, &receive.block(peer)) }?;
        }
        Ok(())
    }

    /// Others, T1 to T3: wait until the set is open and the counts are there, and fill their slots.
    fn give<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Halt> {
        self.sets.enter(region, me)?;
        self.sets.receive(region, me, self.send.len())?;
        for fragment in self.sets.fragments() {
            let slot = self.sets.slot(fragment);
            let (at, control) = (me.layout().fragment(me.rank(), slot), me.layout().control(me.rank(), slot));
            // SAFETY: S2, only this process writes its slots, in a set that it has entered; the caller may read `send`.
            if let Some(size) = unsafe { self.sets.fill(region, at, fragment, &self.send) } {
                // publishes: the fragment
                region.mail(control).put_release(size);
            }
        }
        Ok(())
    }
}

impl PerSet for P2Gather<'_> {
    fn sets(&mut self) -> &mut Sets {
        &mut self.sets
    }

    fn set<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Halt> {
        match self.receive {
            Some(receive) => self.collect(region, me, &receive),
            None => self.give(region, me),
        }
    }
}

impl Operation for P2Gather<'_> {
    fn start(&mut self, me: &mut Member) {
        self.sets.start(me);
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        self.go(region, me)
    }
}
