//! Broadcast of paper P1 (Kurnosov and Tokmasheva 2020, section 4): copy-in, copy-out, sets, notification trees.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `set_op(k)` | the root | all | P1's `op`: the number of the set that was opened last in place k; 0: none yet |
//! | `set_bytes(k)` | the root | all | that it is a broadcast, and the message's length; published by `set_op` |
//! | `set_readers(k)` | root sets, readers subtract | the root | readers that have not finished set k |
//! | `control(r, slot)` | r's tree parent puts, r clears | r | bytes of the fragment in the root's slot |
//!
//! All operations of a communicator together number their sets with `op`, from 1; set `op` lies in place k = op mod q
//! of the queue. The paper's steps, for each set of the message:
//!
//! | rank | step | what |
//! |---|---|---|
//! | root | R1 | wait until `readers` is 0: all ranks have left the last use of place k |
//! | | R2 | store `readers` = p − 1, then `op`: the set is open |
//! | | R3 | for each slot of the set: copy a fragment in, put its size into the children's control words |
//! | others | T1 | wait for `op`: the set is open |
//! | | T2 | for each slot of the set: wait for its own control word, and clear it |
//! | | T3 | put the fragment's size into the control words of its own children in the tree |
//! | | T4 | copy the fragment out of the root's slot; go on with T2 for the next slot |
//! | | T5 | subtract 1 from `readers` |
//!
//! Corrected against the printed pseudocode (docs/explanation/papers.md): `op` starts at 1 and words start at 0, so
//! that a set that was never opened can't look open (the printed "1" lost its minus); a fragment is cut per slot, not
//! per set; loads acquire and the subtraction releases, where the print has write barriers only; `q` divides `s` and
//! is at most `s` (the layout refuses other values); a leaf copies from the *root's* queue; `op` has 64 bits. Added:
//! an empty message opens one set, too; ranks whose lengths differ get an error, by `set_bytes`, where the printed
//! algorithm hangs.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, Condition, PollError, Refusal};
use crate::machine::poll::{Await, Poll, Source, Until, WaitSet};
use crate::machine::{Operation, over};
use crate::pattern::tree::{Position, Tree};
use crate::region::{Cico as Queues, Counter, Flag, Mailword, Region};
use crate::shm::engine::copy::{Part, copy_in, copy_out};
use crate::shm::papers::sets::{check_head, head};
use core::cmp::Ordering::{Equal, Greater, Less};

/// One process's part of a broadcast.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct P1Bcast<'a> {
    operation: u64,
    root: Rank,
    data: Data<'a>,
    tree: Position,
    queues: Queues,
    /// P1's `op` of this message's first set; 0 before the first poll, which takes it.
    first_set: u64,
    /// Number of sets of this message, at least one.
    sets: u64,
    /// Number of fragments of this message.
    fragments: u64,
    /// Index of the set in which this process is, from 0.
    set: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Root, R1 and R2.
    Open,
    /// Root, R3.
    CopyIn,
    /// Others, T1.
    WaitOpen,
    /// Others, T2 to T5; `fragment`, from 0, is the message's fragment for which this process waits.
    CopyOut {
        fragment: u64,
    },
    Done,
}

impl<'a> P1Bcast<'a> {
    /// The part of `me`: `data` goes from `root` to all ranks, which are notified along `tree`.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator, the tree's arity is too small, or the segment has no queues of P1.
    pub fn new(me: &Member, data: Data<'a>, root: Rank, tree: Tree) -> Result<Self, Refusal> {
        me.check_root(root)?;
        let tree = tree.check()?.position(me.rank(), root, me.size());
        let queues = me.layout().params().cico.ok_or(Refusal::not(Argument::Slots, Condition::PaperQueues))?;
        let fragments = data.len().div_ceil(queues.fragment);
        let sets = fragments.div_ceil(u64::from(queues.slots / queues.sets)).max(1);
        let (operation, first_set, set, state) = (0, 0, 0, State::Done);
        Ok(Self { operation, root, data, tree, queues, first_set, sets, fragments, set, state })
    }

    /// `op` of the current set.
    fn op(&self) -> u64 {
        self.first_set + self.set
    }

    /// k = op mod q: the current set's place in the queue.
    fn k(&self) -> u32 {
        (self.op() % u64::from(self.queues.sets)) as u32
    }

    /// The fragments of the current set, by their index in the message. The i-th of them lies in slot k·s/q + i.
    fn fragments_of_set(&self) -> core::ops::Range<u64> {
        let per_set = u64::from(self.queues.slots / self.queues.sets);
        let first = self.set * per_set;
        first..(first + per_set).min(self.fragments)
    }

    /// The slot of a fragment of the current set.
    fn slot(&self, fragment: u64) -> u32 {
        let per_set = self.queues.slots / self.queues.sets;
        self.k() * per_set + (fragment - self.set * u64::from(per_set)) as u32
    }

    /// P1's `get_next_fragment`: the packed bytes of a fragment.
    fn cut(&self, fragment: u64) -> Part {
        let from = fragment * self.queues.fragment;
        Part { from, len: self.queues.fragment.min(self.data.len() - from) }
    }

    /// In R3 and T3: puts the size of a fragment into the control words of this process's children in the tree.
    // publishes: the fragment (the root's copy-in, passed on from parent to child)
    fn notify<R: Region>(&self, region: &R, me: &Member, slot: u32, size: u64) {
        for child in self.tree.children() {
            region.mail(me.layout().control(child, slot)).put_release(size);
        }
    }

    /// After a set: `first` is the state in which the next set starts, if there is one.
    fn advance(&mut self, first: State) {
        self.set += 1;
        self.state = if self.set < self.sets { first } else { State::Done };
    }

    /// Root, R1: waits until all ranks have left the last use of the set's place. R2: opens the set.
    fn open<R: Region>(&mut self, region: &R, me: &Member) -> Option<WaitSet> {
        let (layout, k) = (me.layout(), self.k());
        let readers = region.counter(layout.set_readers(k));
        // pairs with: the readers' subtractions; their copies and clears are complete
        if !readers.load_acquire().is(0) {
            let source = Source::Counter(layout.set_readers(k), Until::Equals(0));
            let on = Await { source, peer: None, operation: self.operation, stage: self.op() };
            return Some(WaitSet::one(on));
        }
        readers.store_release((me.size() - 1).into());
        region.counter(layout.set_bytes(k)).store_release(head(Kind::Bcast, self.data.len()));
        // publishes: the set's `readers` and `bytes`
        region.publish(layout.set_op(k), self.op());
        self.state = State::CopyIn;
        None
    }

    /// Root, R3: copies the set's fragments in, and notifies the children of each.
    fn copy_in<R: Region>(&mut self, region: &R, me: &Member) {
        for fragment in self.fragments_of_set() {
            let (Part { from, len }, slot) = (self.cut(fragment), self.slot(fragment));
            let at = me.layout().fragment(self.root, slot).part(0, len);
            // SAFETY: R10 (S2), `readers` of the set was 0: all ranks have left it, with all copies out.
            unsafe { copy_in(region, at, &self.data, from) };
            self.notify(region, me, slot, len);
        }
        self.advance(State::Open);
    }

    /// Others, T1: wait until the set is open, and compare the call with the root's.
    fn wait_open<R: Region>(&mut self, region: &R, me: &Member) -> Result<Option<WaitSet>, PollError> {
        let (layout, k, op) = (me.layout(), self.k(), self.op());
        // pairs with: open
        let found = region.flag(layout.set_op(k)).load_acquire();
        match found.against(op) {
            Less => {
                return Ok(Some(WaitSet::flag(layout.set_op(k), Until::AtLeast(op), self.root, self.operation)));
            }
            Equal => {}
            // The root can't open the set again before this process has left it.
            Greater => return Err(PollError::Overrun { peer: self.root, expected: op, found: found.unchecked() }),
        }
        check_head(region, layout.set_bytes(k), self.root, Kind::Bcast, self.data.len())?;
        self.state = State::CopyOut { fragment: self.fragments_of_set().start };
        Ok(None)
    }

    /// Others, T2 to T4 for each fragment of the set from `first` on; then T5.
    fn copy_out<R: Region>(&mut self, region: &R, me: &Member, first: u64) -> Result<Option<WaitSet>, PollError> {
        let (layout, op) = (me.layout(), self.op());
        for fragment in first..self.fragments_of_set().end {
            let (Part { from, len }, slot) = (self.cut(fragment), self.slot(fragment));
            let control = layout.control(me.rank(), slot);
            let parent = self.tree.parent().unwrap_or(self.root);
            // T2.
            // pairs with: notify
            let found = region.mail(control).peek_acquire();
            if found.is(0) {
                self.state = State::CopyOut { fragment };
                let source = Source::Mail(control, Until::Nonzero);
                let on = Await { source, peer: Some(parent), operation: self.operation, stage: op };
                return Ok(Some(WaitSet::one(on)));
            }
            if !found.is(len) {
                let refusal = Refusal::new(Argument::Fragment, len, Bound::Equals(found.unchecked()));
                return Err(PollError::Mismatch { peer: parent, refusal });
            }
            region.mail(control).clear();
            // T3.
            self.notify(region, me, slot, len);
            // T4.
            // SAFETY: S3, our control word told of the fragment; the set is opened again only after our subtraction.
            unsafe { copy_out(region, layout.fragment(self.root, slot).part(0, len), &self.data, from) };
        }
        // T5.
        // publishes: the copies out of the set's slots and the clears of its control words, to the next root
        region.counter(layout.set_readers(self.k())).fetch_sub(1);
        self.advance(State::WaitOpen);
        Ok(None)
    }
}

impl Operation for P1Bcast<'_> {
    fn start(&mut self, me: &mut Member) {
        (self.operation, self.first_set, self.set) = (me.begin(Kind::Bcast), 0, 0);
        self.state = if me.rank() == self.root { State::Open } else { State::WaitOpen };
    }

    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        if self.first_set == 0 && self.state != State::Done {
            self.first_set = me.take_sets(self.sets);
        }
        loop {
            let wait = match self.state {
                State::Open => self.open(region, me),
                State::CopyIn => {
                    self.copy_in(region, me);
                    None
                }
                State::WaitOpen => self.wait_open(region, me)?,
                State::CopyOut { fragment } => self.copy_out(region, me, fragment)?,
                State::Done => return over(self.operation),
            };
            if let Some(wait) = wait {
                return Ok(Poll::Wait(wait));
            }
            if self.state == State::Done {
                me.finish(region, self.operation);
            }
        }
    }
}
