//! One process's private state on a communicator: its rank, and what it has counted.

use super::history::{Digest, History};
use crate::Rank;
use crate::algorithm::PAIR;
use crate::collective::Kind;
use crate::error::{Argument, Bound, Refusal};
use crate::machine::poll::{Until, WaitSet};
use crate::op::WORDS;
use crate::region::{Base, Flag, Lap, Layout, Params, Region};
use crate::table::{Choices, Chooser};
use core::ops::RangeInclusive;

/// Slots of this process's queue whose last use is known one by one.
const TRACKED: usize = 16;

/// Bytes of a slot that are claimed before they are written: as many as the longest fragment of the operation before, but at
/// least and at most so many (docs/explanation/parameters.md).
const CLAIMED: RangeInclusive<u64> = 640..=4096;

/// The most processes that claim lines. Among more, so many wait for a line that those who look at it before it is written, and
/// so take it back, cost more than is gained (docs/explanation/parameters.md). A root claims its slot among any number: nobody looks
/// there before.
const CLAIMANTS: u32 = 16;

/// The most processes among which a root claims the line that all others await. More of them take it back before it is written.
const AWAITING: u32 = 8;

/// Operations after one with longer fragments, that one included, in which nothing is claimed.
const UNCLAIMED: u8 = 2;

/// Private state of one process on one communicator: its rank, and what it has counted.
///
/// The counts are equal on all ranks: every process starts the same operations in the same order, so all
/// compute the same numbers without communication.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    layout: Layout,
    rank: Rank,
    /// The operations that this process has started.
    history: History,
    /// Every process is known to have finished this operation: lines of it and before are free.
    acknowledged: u64,
    /// Queue fragments of all operations so far: the fragment clock.
    clock: u64,
    /// Every process is known to be done with fragments below this.
    drained: u64,
    /// For each slot of this process's queue, the clock after its last fragment. Slots may share an entry, which then
    /// has the latest.
    written: [u64; TRACKED],
    /// How this process's fragments pass through its queue.
    lap: Lap,
    /// The fragment clock since which that is so.
    lap_since: u64,
    /// The operation in which this process has last claimed what it writes next.
    claimed_in: u64,
    /// The fragment clock of the slot that was claimed last.
    claimed: u64,
    /// Bytes of its next fragment that are claimed.
    expected: u64,
    /// Bytes of the longest fragment of the last operation with fragments; `u64::MAX`: that was not known.
    longest: u64,
    /// Operations that end before something is claimed again.
    unclaimed: u8,
    /// Will this process write into a slot next? Its last message decides, where others' lengths are not known.
    slots: bool,
    /// Has it written into a slot in this operation?
    wrote: bool,
    /// Do all others wait for one process's line in this operation, and so probably in the next?
    awaited: bool,
    /// Where the last operation that asks has received: the address. 0: it has been sent on since.
    received: usize,
    /// The papers' `op`: sets of all operations so far.
    sets: u64,
    /// Central counter barriers so far.
    centrals: u64,
    /// Which of their two sets of lines the last allreduce or scan by doubling has used.
    turn: bool,
    /// The last operation that posts no line, although it has a length; and that length.
    lineless: (u64, u64),
    /// What `Auto` means here; `None`: the built-in rules.
    choices: Option<&'static Choices>,
    /// A partial result of the operation that is polled now; zero between operations. It is kept here, not in
    /// the machine, so that machines stay small enough for registers.
    pub(crate) scratch: [u64; WORDS],
}

impl Member {
    /// Process `rank` of a fresh segment.
    ///
    /// # Errors
    /// `rank` is not below the layout's number of ranks.
    pub fn new(layout: Layout, rank: Rank) -> Result<Self, Refusal> {
        Self::resume(layout, rank, Base::default())
    }

    /// Process `rank` of a segment whose last communicator ended with the counts `base`, and was
    /// [left](crate::region::lease) by all its members: all lines and slots are free.
    ///
    /// # Errors
    /// `rank` is not below the layout's number of ranks; a count of `base` is larger than a communicator can reach.
    pub fn resume(layout: Layout, rank: Rank, base: Base) -> Result<Self, Refusal> {
        Refusal::check(Argument::Rank, rank.into(), Bound::Below(layout.ranks().into()))?;
        let Base { operation, clock, sets, centrals } = base.check()?;
        Ok(Self {
            layout,
            rank,
            history: History::after(operation),
            acknowledged: operation,
            clock,
            drained: clock,
            written: [0; TRACKED],
            lap: layout.lap(Lap::ALL),
            lap_since: clock,
            claimed_in: 0,
            claimed: u64::MAX,
            expected: *CLAIMED.start(),
            longest: 0,
            wrote: false,
            awaited: false,
            unclaimed: 0,
            slots: true,
            received: 0,
            sets,
            centrals,
            turn: false,
            lineless: (u64::MAX, 0),
            choices: None,
            scratch: [0; WORDS],
        })
    }

    /// The counts so far.
    pub const fn base(&self) -> Base {
        let Self { clock, sets, centrals, .. } = *self;
        Base { operation: self.operation(), clock, sets, centrals }
    }

    /// This process.
    #[inline]
    pub const fn rank(&self) -> Rank {
        self.rank
    }

    /// Number of processes.
    #[inline]
    pub const fn size(&self) -> u32 {
        self.layout.ranks()
    }

    /// The rank `step` after this one; rank 0 follows the last one. `step` is below the size.
    #[inline]
    pub(crate) const fn after(&self, step: u32) -> Rank {
        (self.rank + step) % self.layout.ranks()
    }

    /// The segment's layout.
    #[inline]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What `Auto` means here.
    #[inline(always)]
    #[must_use]
    pub const fn chooser(&self) -> Chooser {
        let Params { ranks, crowded, .. } = *self.layout.params();
        Chooser { choices: self.choices, ranks, crowded }
    }

    /// Sets what `Auto` means here: the same on all ranks, before the first operation.
    pub const fn set_choices(&mut self, choices: Option<&'static Choices>) {
        self.choices = choices;
    }

    /// The number of the last operation started here; the first is 1.
    #[inline]
    pub const fn operation(&self) -> u64 {
        self.history.operation()
    }

    /// Checks a root.
    #[inline]
    pub(crate) fn check_root(&self, root: Rank) -> Result<Rank, Refusal> {
        Refusal::check(Argument::Root, root.into(), Bound::Below(self.size().into()))?;
        Ok(root)
    }

    /// Takes the next operation's number, for a collective of this kind.
    #[inline]
    pub(crate) fn begin(&mut self, kind: Kind) -> u64 {
        self.awaited = matches!(kind, Kind::Bcast | Kind::Scatter);
        self.history.begin(kind)
    }

    /// The digest that the lines of `operation`, of this kind, must have.
    #[inline(always)]
    pub(crate) const fn digest(&self, operation: u64, kind: Kind) -> Digest {
        self.history.digest(operation, kind)
    }

    /// The collectives that this process has called.
    pub(super) const fn history(&self) -> &History {
        &self.history
    }

    /// Takes `fragments` steps of the fragment clock; returns the first. None has more than `bytes` bytes; `u64::MAX`: that is
    /// not known.
    pub(crate) fn take_clock(&mut self, fragments: u64, bytes: u64) -> u64 {
        let base = self.clock;
        if fragments > 0 {
            self.longest = bytes;
        }
        if fragments > 0 && bytes < u64::MAX {
            if bytes > *CLAIMED.end() {
                self.unclaimed = UNCLAIMED;
            }
            self.expected = bytes.clamp(*CLAIMED.start(), *CLAIMED.end());
        }
        self.slots |= fragments > 0 && bytes < u64::MAX;
        self.clock += fragments;
        base
    }

    /// Takes `sets` of the papers' operation counter. Paper P2's operations call it while they run, when they learn how
    /// many they need. Returns the first, which is at least 1.
    pub(crate) fn take_sets(&mut self, sets: u64) -> u64 {
        let base = self.sets + 1;
        self.sets += sets;
        base
    }

    /// Sets that may still be counted: more than a communicator ever uses.
    pub(crate) const fn sets_left(&self) -> u64 {
        (2 * Base::MOST).saturating_sub(self.sets)
    }

    /// This operation receives into the memory at `address`: did the last one, too?
    #[inline]
    pub(crate) const fn receives(&mut self, address: usize) -> bool {
        let again = self.received == address;
        self.received = address;
        again
    }

    /// This operation sends from the memory at `address`: did the last one receive there?
    #[inline]
    pub(crate) const fn sends_on(&mut self, address: usize) -> bool {
        let received = self.received == address;
        self.received = 0;
        received
    }

    /// Takes the next central counter barrier's number; the first is 1.
    pub(crate) fn take_central(&mut self) -> u64 {
        self.centrals += 1;
        self.centrals
    }

    /// Which of their two sets of lines `operation`, an allreduce or a scan of `bytes` by doubling, uses.
    #[inline]
    pub(crate) const fn take_turn(&mut self, operation: u64, bytes: u64) -> bool {
        (self.turn, self.lineless) = (!self.turn, (operation, bytes));
        self.turn
    }

    /// The length of the present operation, if all ranks must have the same, and none of them posts a line.
    pub(super) const fn lineless(&self) -> Option<u64> {
        let (operation, bytes) = self.lineless;
        if operation == self.operation() { Some(bytes) } else { None }
    }

    /// Publishes that this process has finished `operation`.
    // publishes: every read of a line or slot in this operation, to the process that reuses the line
    #[inline]
    pub(crate) fn finish<R: Region>(&mut self, region: &R, operation: u64) {
        region.publish(self.layout.done(self.rank), operation);
        self.claim(region, operation);
        self.unclaimed = self.unclaimed.saturating_sub(1);
        self.wrote = false;
    }

    /// This process waits, so it has time to claim what it writes in the next operation.
    #[inline]
    pub(super) fn idle<R: Region>(&mut self, region: &R) {
        self.claim(region, self.operation());
    }

    /// Claims what this process writes in the operation after this one, once, while it waits or its caller computes: then a message
    /// costs its readers one transfer, and its writer none. Not around long fragments: while they are copied into the queue
    /// readers that wait for the line take it back.
    #[inline]
    fn claim<R: Region>(&mut self, region: &R, operation: u64) {
        if self.claimed_in == operation || self.unclaimed > 0 || self.size() > CLAIMANTS && !self.awaited {
            return;
        }
        self.claimed_in = operation;
        if !self.awaited || self.size() <= AWAITING {
            region.claim(self.layout.line_body(self.rank, operation + 1, u64::MAX));
        }
        // One of two ranks may be the next root; of many, the one that was.
        if self.claimed != self.clock && self.slots && (self.wrote || self.size() <= PAIR) {
            self.claim_slot(region);
        }
    }

    /// So many bytes of this process's message of the current operation lie in a slot; 0: it lies in its line.
    #[inline(always)]
    pub(crate) const fn uses_slot(&mut self, bytes: u64) {
        self.slots = bytes > 0;
        if self.longest == u64::MAX {
            let (least, most) = (*CLAIMED.start(), *CLAIMED.end());
            self.expected = if bytes > least && bytes <= most { bytes } else { least };
        }
    }

    #[cold]
    fn claim_slot<R: Region>(&mut self, region: &R) {
        self.claimed = self.clock;
        let slot = self.layout.in_slot(self.rank, self.clock, self.longest, self.lap);
        region.claim(slot.part(0, self.expected));
    }

    /// Every rank has been seen inside `operation`: all operations before it are finished on all ranks.
    #[inline]
    pub(crate) fn all_reached(&mut self, operation: u64) {
        self.acknowledged = self.acknowledged.max(operation - 1);
    }

    /// May this process write its line of `operation`? The line was last used one ring of operations ago, and every
    /// rank must have finished that operation. Usually known without a load.
    #[inline]
    pub(crate) fn line_free<R: Region>(&mut self, region: &R, operation: u64) -> Result<(), WaitSet> {
        let lines = u64::from(self.layout.params().lines);
        if operation <= self.acknowledged + lines {
            Ok(())
        } else {
            self.ask_done(region, operation, operation - lines)
        }
    }

    /// Have all ranks finished the operations before this one? Then no rank reads or writes a slot for them.
    #[inline]
    pub(crate) fn all_finished<R: Region>(&mut self, region: &R, operation: u64) -> Result<(), WaitSet> {
        if self.acknowledged + 1 >= operation { Ok(()) } else { self.ask_done(region, operation, operation - 1) }
    }

    /// Loads `done` of all ranks: rarely, since the cached minimum then serves for up to a ring of operations.
    #[cold]
    fn ask_done<R: Region>(&mut self, region: &R, operation: u64, needed: u64) -> Result<(), WaitSet> {
        let mut least = operation - 1;
        for peer in self.peers() {
            // pairs with: finish
            let done = region.flag(self.layout.done(peer)).load_acquire();
            if !done.at_least(needed) {
                return Err(WaitSet::flag(self.layout.done(peer), Until::AtLeast(needed), peer, operation));
            }
            least = done.capped(least);
        }
        self.acknowledged = least;
        Ok(())
    }

    /// How this process's fragments pass through its queue, in the operation that it is in.
    #[inline]
    pub(crate) const fn lap(&self) -> Lap {
        self.lap
    }

    /// Chooses the lap of this process's queue for `operation`, which starts at `base` on the fragment clock.
    #[inline]
    pub(crate) fn choose_lap<R: Region>(&mut self, region: &R, operation: u64, base: u64) {
        let lap = self.layout.lap(region.lap(operation));
        if lap != self.lap {
            (self.lap, self.lap_since) = (lap, base);
        }
    }

    /// Takes the slot of fragment `clock` in this process's queue, to write it now: all ranks must be done with what
    /// it last held. If the queue was little used, that is known without a load.
    #[inline]
    pub(crate) fn take_slot<R: Region>(&mut self, region: &R, operation: u64, clock: u64) -> Result<(), WaitSet> {
        let slots = self.lap.slots;
        let entry = (clock & (slots - 1)) as usize % TRACKED;
        // The slot's last fragment is at least one lap ago, or from before this lap, whatever other slots of the entry held.
        let needed = self.written[entry].min((clock + 1).saturating_sub(slots).max(self.lap_since));
        self.all_acked(region, operation, clock, needed)?;
        self.written[entry] = clock + 1;
        self.wrote = true;
        Ok(())
    }

    /// Are all ranks done with the fragments below `needed`? Asked before the fragment of `clock` is written.
    #[inline]
    pub(crate) fn all_acked<R: Region>(
        &mut self,
        region: &R,
        operation: u64,
        clock: u64,
        needed: u64,
    ) -> Result<(), WaitSet> {
        if needed > self.drained { self.ask_acked(region, operation, clock, needed) } else { Ok(()) }
    }

    #[cold]
    fn ask_acked<R: Region>(&mut self, region: &R, operation: u64, clock: u64, needed: u64) -> Result<(), WaitSet> {
        let mut least = clock;
        for peer in self.peers() {
            // pairs with: acknowledge
            let acked = region.flag(self.layout.acked(peer)).load_acquire();
            if !acked.at_least(needed) {
                return Err(WaitSet::flag(self.layout.acked(peer), Until::AtLeast(needed), peer, operation));
            }
            least = acked.capped(least);
        }
        self.drained = least;
        Ok(())
    }

    /// Publishes that this process is done with all queue fragments below `clock`.
    // publishes: the copies out of those fragments, to the root that reuses their slots
    #[inline]
    pub(crate) fn acknowledge<R: Region>(&self, region: &R, clock: u64) {
        region.publish(self.layout.acked(self.rank), clock);
    }

    /// The other ranks.
    pub(super) fn peers(&self) -> impl Iterator<Item = Rank> + use<> {
        let me = self.rank;
        (0..self.size()).filter(move |&peer| peer != me)
    }
}

#[cfg(test)]
pub(super) mod tests;
