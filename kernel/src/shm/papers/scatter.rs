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
//! Mended against the print (docs/explanation/papers.md): the waits on `rootready` and `ctrl` wait for what they need,
//! not for its absence; a reader clears `rootready[rank]`, not `counts[rank]`; a process that is not the root learns
//! the number of sets from what it was told, after it was told; *everyone* runs `max(1, ⌈longest block but the root's /
//! (f·s/w)⌉)` sets and counts in each, where the print deadlocks on unequal blocks; one set at least, and everyone
//! consumes
//! `rootready`, so that a stale 1 never shows old counts; operations start at 1 over zeroed words (the print lost
//! the minus of −1); counts and bytes are 64 bits wide. Added: `set_bytes` names another collective, and a length
//! that differs from the root's is an error, where the print hangs or copies too much.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::{Blocks, absent};
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Operation;
use crate::machine::poll::Poll;
use crate::region::{Mailword, Region};
use crate::shm::engine::copy::copy_private;
use crate::shm::papers::sets::{Halt, PerSet, Sets};

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct P2Scatter<'a> {
    /// Everyone's blocks: the root has them.
    send: Option<Blocks<'a>>,
    receive: Data<'a>,
    sets: Sets,
}

impl<'a> P2Scatter<'a> {
    /// The part of `me`: block r of the root's `send` goes to `receive` of rank r. The others' `send` is
    /// not looked at; the root's `receive` is `None` where its block stays in place.
    ///
    /// # Errors
    /// `root` is no rank; the root's `send` is missing, has not a block per rank, or another length for the root than
    /// `receive`; another's `receive` is missing; the segment has no queues of the papers.
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

    /// Root: opens the set, tells the counts, and fills everyone's slots.
    fn give<R: Region>(&mut self, region: &R, me: &mut Member, send: &Blocks<'_>) -> Result<(), Halt> {
        self.sets.claim(region, me)?;
        self.sets.open(region, me);
        if self.sets.is_first() {
            self.sets.tell(region, me, send);
            // SAFETY: both are this process's own; `receive` is as long, and the caller's to write.
            unsafe { copy_private(&send.block(me.rank()), &self.receive, (0, self.receive.len())) };
        }
        for fragment in self.sets.fragments() {
            for peer in (1..me.size()).map(|step| me.after(step)) {
                let slot = self.sets.slot(fragment);
                let (at, control) = (me.layout().fragment(peer, slot), me.layout().control(peer, slot));
                // SAFETY: S2, the root alone writes in a set that it has opened; the block is the caller's to read.
                if let Some(size) = unsafe { self.sets.fill(region, at, fragment, &send.block(peer)) } {
                    // publishes: the fragment
                    region.mail(control).put_release(size);
                }
            }
        }
        Ok(())
    }

    /// Others: wait until the set is open and for the counts, and take their fragments.
    fn take<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Halt> {
        self.sets.enter(region, me)?;
        self.sets.receive(region, me, self.receive.len())?;
        while let Some((fragment, _)) = self.sets.next(1) {
            let slot = self.sets.slot(fragment);
            let (at, control) = (me.layout().fragment(me.rank(), slot), me.layout().control(me.rank(), slot));
            let root = self.sets.opener();
            // SAFETY: S3, the slot's own control; `receive` is the caller's to write.
            unsafe { self.sets.take(region, (root, control), at, fragment, &self.receive) }?;
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
