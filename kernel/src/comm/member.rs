//! One process's private state on a communicator: who it is, and how far everything has come.

use super::history::{Digest, History};
use crate::Rank;
use crate::collective::Kind;
use crate::error::{Argument, Bound, Refusal};
use crate::machine::poll::{Until, WaitSet};
use crate::op::WORDS;
use crate::region::{Base, Flag, Layout, Region};
use crate::table::{Choices, Chooser};

/// Slots of the own queue whose last use is known one by one.
const TRACKED: usize = 16;

/// Private state of one process on one communicator: who it is, and how far everything has come.
///
/// The counts are in lockstep: every process makes the same operations in the same order, so all
/// compute the same numbers without asking.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    layout: Layout,
    rank: Rank,
    /// The operations made here.
    history: History,
    /// Every process is known to have finished this operation: lines of it and before are free.
    acknowledged: u64,
    /// Queue fragments of all operations made so far: the fragment clock.
    clock: u64,
    /// Every process is known to be done with fragments below this.
    drained: u64,
    /// What this process has written to its queue: the clock behind each slot's last fragment, of slots that share
    /// an entry the latest.
    written: [u64; TRACKED],
    /// The papers' `op`: sets opened by all operations made so far.
    sets: u64,
    /// Central counter barriers made so far.
    centrals: u64,
    /// What `Auto` means here; `None`: the built-in rules.
    choices: Option<&'static Choices>,
    /// A partial result of the operation that is polled now; zero between operations. Here, not in
    /// the machine, so that machines stay small enough to live in registers.
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

    /// Process `rank` of a segment whose last communicator ended at `base`, and which all of its members have
    /// [left](crate::region::lease): all lines and slots are free.
    ///
    /// # Errors
    /// `rank` is not below the layout's number of ranks; no communicator ends at `base`.
    pub fn resume(layout: Layout, rank: Rank, base: Base) -> Result<Self, Refusal> {
        Refusal::check(Argument::Rank, rank.into(), Bound::Below(layout.ranks().into()))?;
        let Base { operation, clock, sets, centrals } = base.check()?;
        Ok(Self {
            layout,
            rank,
            history: History::behind(operation),
            acknowledged: operation,
            clock,
            drained: clock,
            written: [0; TRACKED],
            sets,
            centrals,
            choices: None,
            scratch: [0; WORDS],
        })
    }

    /// What has been counted so far.
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

    /// The `step`-th rank after this one, `step` being below the size; behind the last comes the first.
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
        let papers = self.layout.params().cico.is_some();
        Chooser { choices: self.choices, ranks: self.layout.ranks(), papers }
    }

    /// Says what `Auto` means here: the same on all ranks, before the first operation.
    pub const fn set_choices(&mut self, choices: Option<&'static Choices>) {
        self.choices = choices;
    }

    /// The last operation made here; the first is 1.
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
        self.history.begin(kind)
    }

    /// What the lines of `operation`, of this kind, must say of the collectives up to it.
    #[inline(always)]
    pub(crate) const fn digest(&self, operation: u64, kind: Kind) -> Digest {
        self.history.digest(operation, kind)
    }

    /// What it has called.
    pub(super) const fn history(&self) -> &History {
        &self.history
    }

    /// Takes `fragments` steps of the fragment clock; answers the first.
    pub(crate) fn take_clock(&mut self, fragments: u64) -> u64 {
        let base = self.clock;
        self.clock += fragments;
        base
    }

    /// Takes `sets` of the papers' operation counter, while the operation runs: P2's learn how many they need.
    /// Answers the first, which is at least 1.
    pub(crate) fn take_sets(&mut self, sets: u64) -> u64 {
        let base = self.sets + 1;
        self.sets += sets;
        base
    }

    /// Sets that there may still be: more than any members make.
    pub(crate) const fn sets_left(&self) -> u64 {
        (2 * Base::MOST).saturating_sub(self.sets)
    }

    /// Takes the next central counter barrier's number; the first is 1.
    pub(crate) fn take_central(&mut self) -> u64 {
        self.centrals += 1;
        self.centrals
    }

    /// Publishes that this process has finished `operation`.
    // publishes: every read of a line or slot that the operation made, to whoever reuses the line
    #[inline]
    pub(crate) fn finish<R: Region>(&self, region: &R, operation: u64) {
        region.publish(self.layout.done(self.rank), operation);
    }

    /// Everyone has been seen inside `operation`: all before it is finished everywhere.
    #[inline]
    pub(crate) fn all_reached(&mut self, operation: u64) {
        self.acknowledged = self.acknowledged.max(operation - 1);
    }

    /// May this process write its line of `operation`? Its last use lies one ring back, and every
    /// reader must have finished that operation. Usually known without a load.
    #[inline]
    pub(crate) fn line_free<R: Region>(&mut self, region: &R, operation: u64) -> Result<(), WaitSet> {
        let lines = u64::from(self.layout.params().lines);
        if operation <= self.acknowledged + lines {
            Ok(())
        } else {
            self.ask_done(region, operation, operation - lines)
        }
    }

    /// Loads everyone's `done`, at once and rarely: the cached minimum grows by up to a ring.
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

    /// Takes the slot of fragment `clock` in this process's queue, to write it now: everyone must be done with what
    /// it last held. That is known without a load where the queue was little used.
    #[inline]
    pub(crate) fn take_slot<R: Region>(&mut self, region: &R, operation: u64, clock: u64) -> Result<(), WaitSet> {
        let slots = u64::from(self.layout.params().queue_slots);
        let entry = (clock & (slots - 1)) as usize % TRACKED;
        // The slot's own last fragment is one queue back at least, whatever its entry's other slots held.
        let needed = self.written[entry].min((clock + 1).saturating_sub(slots));
        self.all_acked(region, operation, clock, needed)?;
        self.written[entry] = clock + 1;
        Ok(())
    }

    /// Is everyone done with the fragments below `needed`, before that of `clock` is written?
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

    /// The others.
    pub(super) fn peers(&self) -> impl Iterator<Item = Rank> + use<> {
        let me = self.rank;
        (0..self.size()).filter(move |&peer| peer != me)
    }
}

#[cfg(test)]
pub(super) mod tests;
