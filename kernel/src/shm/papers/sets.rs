//! How one operation of paper P2 goes through the sets of the papers' queues.
//!
//! A queue's s slots are split into q sets of s/q slots. One rank opens a set when all ranks have left its last use;
//! then each rank copies its fragments of that set, and leaves it. The longest block says how many sets an operation
//! takes, and all ranks go through all of them: a rank whose block ends earlier enters and leaves the others, too.
//! The operation's sets get consecutive numbers, `op`, from a private counter that is equal on all ranks. A process
//! takes the first number at its first poll, and the others when it knows the counts. This is possible since the
//! operations on one communicator run one after the other.
//!
//! | the paper's step | function |
//! |---|---|
//! | wait until `readers` is 0, store `readers` = p | [`claim`](Sets::claim) |
//! | store `op` | [`open`](Sets::open) |
//! | wait for `op` | [`enter`](Sets::enter) |
//! | write the counts, put `rootready` | [`tell`](Sets::tell) |
//! | wait for `rootready`, read the counts, clear it | [`receive`](Sets::receive) |
//! | copy a fragment in | [`fill`](Sets::fill) |
//! | wait for `ctrl`, clear it, copy a fragment out | [`take`](Sets::take) |
//! | subtract 1 from `readers` | `leave` |
//!
//! A collective says what a process does in one set ([`PerSet::set`]), in the paper's order. A step that has to wait
//! ends the poll ([`Halt`]). The next poll runs `set` from its start again; steps that were done then do nothing.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, Condition, PollError, Refusal};
use crate::machine::over;
use crate::machine::poll::{Await, Halt, Poll, Source, Until, WaitSet};
use crate::region::{Cico as Queues, Counter, CounterId, Extent, Flag, MailId, Mailword, Region};
use crate::shm::engine::copy::{Part, copy_in, copy_out};
use core::cmp::Ordering::{Equal, Greater, Less};
use core::ops::Range;

/// The lowest bit of the collective in `set_bytes`; the bits below are the message's bytes.
const KIND: u32 = 56;

/// The value of `set_bytes`: the collective that opened the set, and the bytes of its message.
#[inline]
pub(crate) const fn head(kind: Kind, bytes: u64) -> u64 {
    (kind as u64) << KIND | bytes
}

/// Compares `set_bytes`, which `peer` wrote, with this process's collective and length.
pub(crate) fn check_head<R: Region>(
    region: &R,
    word: CounterId,
    peer: Rank,
    kind: Kind,
    bytes: u64,
) -> Result<(), PollError> {
    let found = region.counter(word).load_acquire();
    if found.is(head(kind, bytes)) {
        return Ok(());
    }
    let (theirs, their_bytes) = (found.unchecked() >> KIND, found.unchecked() & ((1 << KIND) - 1));
    let refusal = if theirs == kind as u64 {
        Refusal::new(Argument::Bytes, bytes, Bound::Equals(their_bytes))
    } else {
        Refusal::new(Argument::Collective, kind as u64, Bound::Equals(theirs))
    };
    Err(PollError::Mismatch { peer, refusal })
}

/// A collective of paper P2: what a process does in one set.
pub(crate) trait PerSet {
    /// The operation's sets.
    fn sets(&mut self) -> &mut Sets;

    /// Does all that this process does in the current set, but for leaving it.
    fn set<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<(), Halt>;

    /// Polls the operation: goes from set to set as far as possible.
    fn go<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        while !self.sets().are_done() {
            self.sets().enroll(me);
            match self.set(region, me) {
                Ok(()) => self.sets().leave(region, me),
                Err(halt) => return halt.into(),
            }
        }
        over(self.sets().operation)
    }
}

/// The sets of one operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sets {
    operation: u64,
    kind: Kind,
    /// The rank that opens the sets.
    opener: Rank,
    queues: Queues,
    /// The papers' `op` of the first set; 0 before it is taken.
    first: u64,
    /// Index of the set in which this process is, from 0.
    at: u64,
    /// Number of sets of this operation, at least one; 0 before the counts are known.
    count: u64,
    /// Number of fragments of the current set that this process has taken; `None` before it has entered the set.
    taken: Option<u64>,
}

impl Sets {
    /// The sets of an operation of `me` that was not started yet: as those of a complete one.
    ///
    /// Errors: the segment has no queues of the papers.
    pub(crate) fn new(me: &Member, kind: Kind, opener: Rank) -> Result<Self, Refusal> {
        let queues = me.layout().params().cico.ok_or(Refusal::not(Argument::Slots, Condition::PaperQueues))?;
        Ok(Self { operation: 0, kind, opener, queues, first: 0, at: 1, count: 1, taken: None })
    }

    /// Becomes the sets of the next operation of `me`.
    pub(crate) fn start(&mut self, me: &mut Member) {
        self.operation = me.begin(self.kind);
        (self.first, self.at, self.count, self.taken) = (0, 0, 0, None);
    }

    /// The rank that opens the sets.
    pub(crate) const fn opener(&self) -> Rank {
        self.opener
    }

    /// Takes the number of the first set, once. There is a set even if no bytes go through the queues, since a rank
    /// that receives none can't know that before the root has told it.
    fn enroll(&mut self, me: &mut Member) {
        if self.first == 0 {
            self.first = me.take_sets(1);
        }
    }

    /// Number of sets of an operation whose longest block through the queues has `most` bytes.
    fn sets_of(&self, most: u64) -> u64 {
        let per_set = u64::from(self.queues.slots / self.queues.sets);
        most.div_ceil(self.queues.fragment).div_ceil(per_set).max(1)
    }

    /// Computes the number of sets and takes the other sets' numbers: the longest block that goes through the queues
    /// has `most` bytes.
    pub(crate) fn learn(&mut self, me: &mut Member, most: u64) {
        self.count = self.sets_of(most);
        me.take_sets(self.count - 1);
    }

    /// Has this process left the last set?
    const fn are_done(&self) -> bool {
        self.count > 0 && self.at == self.count
    }

    /// Is this the operation's first set?
    pub(crate) const fn is_first(&self) -> bool {
        self.at == 0
    }

    /// The papers' `op` of the current set.
    const fn op(&self) -> u64 {
        self.first + self.at
    }

    /// k = op mod q: the current set's place in the queue.
    pub(crate) const fn k(&self) -> u32 {
        (self.op() % self.queues.sets as u64) as u32
    }

    /// The fragments of the current set, by their index in a block.
    pub(crate) const fn fragments(&self) -> Range<u64> {
        let per_set = (self.queues.slots / self.queues.sets) as u64;
        self.at * per_set..(self.at + 1) * per_set
    }

    /// The fragment of the current set that this process takes next, and the index of the queue in which it lies: it
    /// takes each fragment from `owners` queues in turn. `None` after the last.
    pub(crate) fn next(&self, owners: u32) -> Option<(u64, u32)> {
        let (taken, owners) = (self.taken?, u64::from(owners));
        let fragment = self.fragments().start + taken.checked_div(owners)?;
        (fragment < self.fragments().end).then_some((fragment, (taken % owners) as u32))
    }

    /// The slot of a fragment of the current set.
    pub(crate) const fn slot(&self, fragment: u64) -> u32 {
        let per_set = self.queues.slots / self.queues.sets;
        self.k() * per_set + (fragment - self.at * per_set as u64) as u32
    }

    /// The packed bytes of a fragment of a block of `bytes`; none after the block's end.
    fn cut(&self, fragment: u64, bytes: u64) -> Part {
        let from = fragment.saturating_mul(self.queues.fragment);
        Part { from, len: self.queues.fragment.min(bytes.saturating_sub(from)) }
    }

    /// The opener waits until all ranks have left the set's last use; then no other rank is in the set. Returns true
    /// if this poll claimed it, false if an earlier one did.
    pub(crate) fn claim<R: Region>(&mut self, region: &R, me: &Member) -> Result<bool, Halt> {
        if self.taken.is_some() {
            return Ok(false);
        }
        let (layout, k) = (me.layout(), self.k());
        let readers = region.counter(layout.set_readers(k));
        // pairs with: leave; the copies and clears of all are complete
        if !readers.load_acquire().is(0) {
            let source = Source::Counter(layout.set_readers(k), Until::Equals(0));
            return Err(self.until(source, None));
        }
        readers.store_release(me.size().into());
        region.counter(layout.set_bytes(k)).store_release(head(self.kind, 0));
        self.taken = Some(0);
        Ok(true)
    }

    /// The opener lets the others into the set.
    // publishes: all that was written since `claim`
    pub(crate) fn open<R: Region>(&self, region: &R, me: &Member) {
        region.publish(me.layout().set_op(self.k()), self.op());
    }

    /// The others wait until the set is open for this operation. Returns true if this poll entered it, false if an
    /// earlier one did.
    pub(crate) fn enter<R: Region>(&mut self, region: &R, me: &Member) -> Result<bool, Halt> {
        if self.taken.is_some() {
            return Ok(false);
        }
        let (layout, k, op) = (me.layout(), self.k(), self.op());
        // pairs with: open
        let found = region.flag(layout.set_op(k)).load_acquire();
        match found.against(op) {
            Less => {
                let on = WaitSet::flag(layout.set_op(k), Until::AtLeast(op), self.opener, self.operation);
                return Err(Halt::Wait(on));
            }
            Equal => check_head(region, layout.set_bytes(k), self.opener, self.kind, 0)?,
            // The opener can't open the set again before this process has left it.
            Greater => {
                return Err(PollError::Overrun { peer: self.opener, expected: op, found: found.unchecked() }.into());
            }
        }
        self.taken = Some(0);
        Ok(true)
    }

    /// Leaves the set. After the last one this process has finished the operation.
    // publishes: the copies out of the set's slots and the clears of its words, to the rank that opens it next
    fn leave<R: Region>(&mut self, region: &R, me: &mut Member) {
        region.counter(me.layout().set_readers(self.k())).fetch_sub(1);
        self.at += 1;
        self.taken = None;
        if self.are_done() {
            me.finish(region, self.operation);
        }
    }

    /// The opener writes the counts of all ranks, in the first set.
    pub(crate) fn write_counts<R: Region>(&self, region: &R, me: &Member, blocks: &Blocks<'_>) {
        let (layout, k) = (me.layout(), self.k());
        region.counter(layout.set_typesize(k)).store_release(blocks.element());
        for rank in 0..me.size() {
            region.counter(layout.set_count(k, rank)).store_release(blocks.count(rank));
        }
    }

    /// Returns a function that reads the bytes of a rank's block from the opener's words, which are not trusted.
    pub(crate) fn told<'r, R: Region>(&self, region: &'r R, me: &Member) -> impl Fn(Rank) -> u64 + use<'r, R> {
        let (layout, k) = (*me.layout(), self.k());
        let typesize = region.counter(layout.set_typesize(k)).load_acquire().unchecked();
        move |rank| {
            let count = region.counter(layout.set_count(k, rank)).load_acquire().unchecked();
            typesize.saturating_mul(count)
        }
    }

    /// Compares the bytes of a block that the opener `told` with those that this process knows.
    pub(crate) fn agree(&self, own: u64, told: u64) -> Result<(), PollError> {
        let disagree = |refusal| PollError::Mismatch { peer: self.opener, refusal };
        Refusal::check(Argument::Bytes, own, Bound::Equals(told)).map(|_| ()).map_err(disagree)
    }

    /// The root tells the others the counts. From these all compute the number of sets.
    pub(crate) fn tell<R: Region>(&mut self, region: &R, me: &mut Member, blocks: &Blocks<'_>) {
        self.write_counts(region, me, blocks);
        for rank in (0..me.size()).filter(|&rank| rank != self.opener) {
            // publishes: typesize and counts
            region.mail(me.layout().set_rootready(self.k(), rank)).put_release(1);
        }
        self.learn(me, most_but(blocks, self.opener));
    }

    /// The others of a rooted operation wait for the counts, once; they compare their own with `own`, in bytes, and
    /// compute the number of sets.
    pub(crate) fn receive<R: Region>(&mut self, region: &R, me: &mut Member, own: u64) -> Result<(), Halt> {
        if self.count > 0 {
            return Ok(());
        }
        let rootready = me.layout().set_rootready(self.k(), me.rank());
        // pairs with: tell
        if region.mail(rootready).peek_acquire().is(0) {
            return Err(self.until_put(rootready, self.opener));
        }
        let (told, mut most) = (self.told(region, me), 0);
        for rank in (0..me.size()).filter(|&rank| rank != self.opener) {
            let bytes = told(rank);
            if rank == me.rank() {
                self.agree(own, bytes)?;
            }
            most = most.max(bytes);
        }
        // No memory holds more bytes: a larger number was not written by a member that keeps the protocol.
        let mismatch = |refusal| PollError::Mismatch { peer: self.opener, refusal };
        Refusal::check(Argument::Bytes, most, Bound::AtMost(i64::MAX as u64)).map_err(mismatch)?;
        Refusal::check(Argument::Sets, self.sets_of(most), Bound::AtMost(me.sets_left())).map_err(mismatch)?;
        region.mail(rootready).clear();
        self.learn(me, most);
        Ok(())
    }

    /// Copies a fragment of `data` into `slot`. Returns its size; `None` after the end of `data`.
    ///
    /// # Safety
    /// This process has entered the set and is the only writer of the slot in it; `data`'s memory is readable.
    pub(crate) unsafe fn fill<R: Region>(
        &self,
        region: &R,
        slot: Extent,
        fragment: u64,
        data: &Data<'_>,
    ) -> Option<u64> {
        let Part { from, len } = self.cut(fragment, data.len());
        // SAFETY: R10 (S2), the opener has seen the set's `readers` at 0: all ranks have left it, with all copies out.
        (len > 0).then(|| unsafe { copy_in(region, slot.part(0, len), data, from) }).map(|()| len)
    }

    /// Takes the next fragment: waits for `control`, into which `peer` puts its size, clears the word, and
    /// copies the fragment from `slot` to `data`. After the end of `data` there is nothing to wait for.
    ///
    /// # Safety
    /// `control` is the slot's; `data`'s memory is writable and exclusive.
    pub(crate) unsafe fn take<R: Region>(
        &mut self,
        region: &R,
        peer: Rank,
        control: MailId,
        slot: Extent,
        fragment: u64,
        data: &Data<'_>,
    ) -> Result<(), Halt> {
        let Part { from, len } = self.cut(fragment, data.len());
        if len > 0 {
            // pairs with: the caller's put after `fill`
            let found = region.mail(control).peek_acquire();
            if found.is(0) {
                return Err(self.until_put(control, peer));
            }
            let disagree = |refusal| PollError::Mismatch { peer, refusal };
            Refusal::check(Argument::Fragment, len, Bound::Equals(found.unchecked())).map_err(disagree)?;
            region.mail(control).clear();
            // SAFETY: S3, `control` told of the fragment; its writer reuses the slot in a set that is opened only after
            // we have left this one.
            unsafe { copy_out(region, slot.part(0, len), data, from) };
        }
        self.taken = self.taken.map(|taken| taken + 1);
        Ok(())
    }

    /// A wait for a word that `peer` puts.
    fn until_put(&self, word: MailId, peer: Rank) -> Halt {
        self.until(Source::Mail(word, Until::Nonzero), Some(peer))
    }

    /// A wait for a word that every use of the set has; `stage` tells the uses apart.
    const fn until(&self, source: Source, peer: Option<Rank>) -> Halt {
        Halt::Wait(WaitSet::one(Await { source, peer, operation: self.operation, stage: self.op() }))
    }
}

/// Bytes of the longest block that goes from or to `root` through the queues; the root's own block does not.
fn most_but(blocks: &Blocks<'_>, root: Rank) -> u64 {
    (0..blocks.ranks()).filter(|&rank| rank != root).map(|rank| blocks.bytes(rank)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::buffer::Buf;
    use crate::data::datatype::Datatype;
    use crate::region::words::Words;
    use crate::region::{Layout, Params};

    fn sets(slots: u32, fragment: u64, sets: u32) -> (Member, Sets) {
        let cico = Some(Queues { slots, fragment, sets });
        let layout = Layout::new(Params { cico, ..Params::new(2) }).unwrap();
        let mut me = Member::new(layout, 0).unwrap();
        let mut sets = Sets::new(&me, Kind::Scatter, 0).unwrap();
        sets.start(&mut me);
        (me, sets)
    }

    #[test]
    fn bytes_and_sets_beyond_32_bits() {
        let (mut me, mut sets) = sets(8, 8192, 2);
        sets.enroll(&mut me);
        let bytes = (5 << 32) + 3;
        sets.learn(&mut me, bytes);
        assert_eq!(sets.count, bytes.div_ceil(4 * 8192));
        assert_eq!(sets.cut(bytes / 8192, bytes), Part { from: 5 << 32, len: 3 });
        assert_eq!(sets.cut(bytes / 8192 + 1, bytes).len, 0);
        assert_eq!(sets.cut(u64::MAX, bytes).len, 0);
        // The next operation starts after this one's last set.
        assert_eq!(me.take_sets(1), 1 + sets.count);
    }

    #[test]
    fn no_bytes_take_one_set_and_slots_alternate_between_sets() {
        let (mut me, mut sets) = sets(6, 10, 3);
        sets.enroll(&mut me);
        sets.enroll(&mut me);
        sets.learn(&mut me, 0);
        assert_eq!((sets.count, sets.k(), sets.fragments(), sets.slot(0), sets.slot(1)), (1, 1, 0..2, 2, 3));
        sets.at = 1;
        assert_eq!((sets.k(), sets.fragments(), sets.slot(2), sets.slot(3)), (2, 2..4, 4, 5));
        sets.at = 2;
        assert_eq!((sets.k(), sets.slot(4)), (0, 0));
    }

    #[test]
    fn the_roots_own_block_takes_no_set() {
        let (counts, displacements) = ([1, 100, 7], [0, 1, 101]);
        let mut memory = [0; 108];
        // SAFETY: the array is a local variable.
        let blocks = unsafe { Blocks::vary(Buf::of_mut(&mut memory), &counts, &displacements, Datatype::BYTE) };
        let blocks = blocks.unwrap();
        assert_eq!([0, 1, 2].map(|root| most_but(&blocks, root)), [100, 7, 100]);
    }

    #[test]
    fn a_set_that_was_opened_for_another_call_is_an_error() {
        let layout = Layout::new(Params::new(2).with_cico()).unwrap();
        let (region, word) = (Words::new(&layout), layout.set_bytes(0));
        Counter::store_release(region.counter(word), head(Kind::Bcast, 1000));
        assert_eq!(head(Kind::Barrier, 1000), 11 << 56 | 1000);
        let check = |kind, bytes| check_head(&region, word, 1, kind, bytes);
        let mismatch = |refusal| Err(PollError::Mismatch { peer: 1, refusal });
        assert_eq!(check(Kind::Bcast, 1000), Ok(()));
        assert_eq!(check(Kind::Bcast, 1001), mismatch(Refusal::new(Argument::Bytes, 1001, Bound::Equals(1000))));
        assert_eq!(check(Kind::Gather, 1000), mismatch(Refusal::new(Argument::Collective, 3, Bound::Equals(1))));
        let sets = Sets::new(&Member::new(layout, 0).unwrap(), Kind::Gather, 1).unwrap();
        assert_eq!(sets.agree(8, 8), Ok(()));
        assert_eq!(sets.agree(8, 9), mismatch(Refusal::new(Argument::Bytes, 8, Bound::Equals(9))));
    }
}
