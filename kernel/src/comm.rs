//! A communicator as one process sees it: the region, and private state that all keep in lockstep.

use crate::Rank;
use crate::error::{Argument, Bound, Poison, Refusal, WaitError};
use crate::op::WORDS;
use crate::region::{Base, Counter, Flag, Layout, Mailword, Region, state};
use crate::shm::line::{self, Kind, Mark};
use crate::step::{Awaits, Source, Until};
use crate::table::{Choices, Chooser};
use crate::transport::{Observe, Shared};

/// Slots of the own queue whose last use is known one by one.
const TRACKED: usize = 16;

/// Last operations whose marks are known: more than a scope has under way.
const MARKS: usize = 16;

/// Last operations whose kinds are told: four bits each, in a word.
const TOLD: u64 = 16;
const _: () = assert!(TOLD as usize <= MARKS);

/// Private state of one process on one communicator: who it is, and how far everything has come.
///
/// The counts are in lockstep: every process makes the same operations in the same order, so all
/// compute the same numbers without asking.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    layout: Layout,
    rank: Rank,
    /// Last operation made here; the first is 1.
    operation: u64,
    /// The marks of the last operations, each at its number modulo their count.
    marks: [Mark; MARKS],
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
            operation,
            marks: [Mark::START; MARKS],
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
        let Self { operation, clock, sets, centrals, .. } = *self;
        Base { operation, clock, sets, centrals }
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
        self.operation
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
        let mark = self.marks[Self::place(self.operation)].next(kind);
        self.operation += 1;
        self.marks[Self::place(self.operation)] = mark;
        self.operation
    }

    /// What `make` makes, checked, its numbers given back: it begins later.
    #[inline]
    pub(crate) fn plan<M>(&mut self, make: impl FnOnce(&mut Self) -> M) -> M {
        let (operation, clock, centrals) = (self.operation, self.clock, self.centrals);
        let next = Self::place(operation.wrapping_add(1));
        let mark = self.marks[next];
        let made = make(self);
        (self.operation, self.clock, self.centrals, self.marks[next]) = (operation, clock, centrals, mark);
        made
    }

    const fn place(operation: u64) -> usize {
        operation as usize % MARKS
    }

    /// What the lines of `operation`, of this kind, must say of the collectives up to it.
    #[inline(always)]
    pub(crate) const fn mark(&self, operation: u64, kind: Kind) -> Mark {
        if self.knows(operation) { self.marks[Self::place(operation)] } else { Mark::alone(kind) }
    }

    #[inline(always)]
    const fn knows(&self, operation: u64) -> bool {
        self.operation.wrapping_sub(operation) < MARKS as u64
    }

    /// Says which collectives this process has made of late, and looks whether another process has made a
    /// different one in the same place: a program that would hang.
    ///
    /// # Errors
    /// One has.
    #[cold]
    fn compare<R: Region>(&self, region: &R) -> Result<(), WaitError> {
        self.tell(region);
        let mine = self.marks[Self::place(self.operation)];
        for peer in self.peers() {
            let refusal = match self.both_know(region, peer).next() {
                Some((_, Some(refusal))) => Err(refusal),
                _ => match line::head_of(region, self, peer, self.operation) {
                    Some(head) => line::agree(region, self, (peer, self.operation), mine, None, head),
                    None => Ok(()),
                },
            };
            refusal.map_err(|refusal| WaitError::Diverged { peer, refusal })?;
        }
        Ok(())
    }

    /// `peer`'s line of `operation` names the same collective, but other ones before it: how they differ first,
    /// as far as `peer`'s lines and its record still tell.
    #[cold]
    pub(crate) fn differ_before<R: Region>(&self, region: &R, peer: Rank, operation: u64) -> Refusal {
        self.tell(region);
        let by_lines = (operation.saturating_sub(MARKS as u64)..operation).rev().find_map(|at| {
            let mine = self.knows(at).then(|| self.marks[Self::place(at)])?;
            let theirs = Mark::of(line::head_of(region, self, peer, at)?);
            if theirs.same_before(mine) { Self::differ(mine.kind(), theirs.kind()) } else { None }
        });
        let by_record =
            || self.both_know(region, peer).filter(|&(at, _)| at < operation).filter_map(|(_, differ)| differ).last();
        let (value, bound) = by_lines.or_else(by_record).map_or((0, Bound::Equals(0)), |how| (how.value, how.bound));
        Refusal::new(Argument::EarlierCollective, value, bound)
    }

    /// Says which collectives this process has made of late. The operation's word is 0 while the other one changes.
    // publishes: each word the stores before it
    fn tell<R: Region>(&self, region: &R) {
        let [operation, kinds] = self.layout.calling(self.rank).map(|id| region.counter(id));
        operation.store_release(0);
        kinds.store_release(self.kinds());
        operation.store_release(self.operation);
    }

    /// What `peer` has told: its operation, and the kinds of its last collectives. `None`: nothing yet, or it is telling
    /// just now.
    // pairs with: tell. Who sees the kinds of a later telling sees the 0 before them, too.
    fn told<R: Region>(&self, region: &R, peer: Rank) -> Option<(u64, u64)> {
        let [operation, kinds] = self.layout.calling(peer).map(|id| region.counter(id));
        let before = operation.load_acquire();
        let kinds = kinds.load_acquire().unchecked();
        let after = operation.load_acquire().unchecked();
        (after != 0 && before.is(after)).then_some((after, kinds))
    }

    /// Has `peer` waited long in the operation in which this process is, or a later one?
    fn waits<R: Region>(&self, region: &R, peer: Rank) -> bool {
        self.told(region, peer).is_some_and(|(operation, _)| operation >= self.operation)
    }

    /// The kinds of the last operations, the latest in the lowest bits.
    fn kinds(&self) -> u64 {
        let kind = |back| self.marks[Self::place(self.operation.wrapping_sub(back))].kind();
        (0..TOLD).fold(0, |kinds, back| kinds | kind(back) << (4 * back))
    }

    /// The operations that `peer` has told of and this process knows, the latest first: whether their kinds differ.
    fn both_know<R: Region>(&self, region: &R, peer: Rank) -> impl Iterator<Item = (u64, Option<Refusal>)> + use<R> {
        let (operation, mine) = (self.operation, self.kinds());
        let (theirs, kinds) = self.told(region, peer).unwrap_or_default();
        let (behind, ahead) = (operation.saturating_sub(theirs), theirs.saturating_sub(operation));
        let both = TOLD.saturating_sub(behind.saturating_add(ahead));
        let kind = |kinds: u64, back: u64| kinds >> (4 * back) & 15;
        (0..both).map(move |back| {
            let kinds = (kind(mine, behind + back), kind(kinds, ahead + back));
            (operation.saturating_sub(behind + back), Self::differ(kinds.0, kinds.1))
        })
    }

    /// How the kinds of one operation differ; 0: it is none.
    fn differ(mine: u64, theirs: u64) -> Option<Refusal> {
        (mine != theirs && mine != 0 && theirs != 0).then_some(Refusal::new(
            Argument::Collective,
            mine,
            Bound::Equals(theirs),
        ))
    }

    /// Takes `fragments` ticks of the fragment clock; answers the first.
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
    pub(crate) fn line_free<R: Region>(&mut self, region: &R, operation: u64) -> Result<(), Awaits> {
        let lines = u64::from(self.layout.params().lines);
        if operation <= self.acknowledged + lines {
            Ok(())
        } else {
            self.ask_done(region, operation, operation - lines)
        }
    }

    /// Loads everyone's `done`, at once and rarely: the cached minimum grows by up to a ring.
    #[cold]
    fn ask_done<R: Region>(&mut self, region: &R, operation: u64, needed: u64) -> Result<(), Awaits> {
        let mut least = operation - 1;
        for peer in self.peers() {
            // pairs with: finish
            let done = region.flag(self.layout.done(peer)).load_acquire();
            if !done.at_least(needed) {
                return Err(Awaits::flag(self.layout.done(peer), Until::AtLeast(needed), peer, operation));
            }
            least = done.capped(least);
        }
        self.acknowledged = least;
        Ok(())
    }

    /// Takes the slot of fragment `clock` in this process's queue, to write it now: everyone must be done with what
    /// it last held. That is known without a load where the queue was little used.
    #[inline]
    pub(crate) fn take_slot<R: Region>(&mut self, region: &R, operation: u64, clock: u64) -> Result<(), Awaits> {
        let slots = u64::from(self.layout.params().queue_slots);
        let entry = (clock & (slots - 1)) as usize % TRACKED;
        // The slot's own last fragment is one queue back at least, whatever its entry's other slots held.
        let needed = self.written[entry].min((clock + 1).saturating_sub(slots));
        self.all_taken(region, operation, clock, needed)?;
        self.written[entry] = clock + 1;
        Ok(())
    }

    /// Is everyone done with the fragments below `needed`, before that of `clock` is written?
    #[inline]
    pub(crate) fn all_taken<R: Region>(
        &mut self,
        region: &R,
        operation: u64,
        clock: u64,
        needed: u64,
    ) -> Result<(), Awaits> {
        if needed > self.drained { self.ask_taken(region, operation, clock, needed) } else { Ok(()) }
    }

    #[cold]
    fn ask_taken<R: Region>(&mut self, region: &R, operation: u64, clock: u64, needed: u64) -> Result<(), Awaits> {
        let mut least = clock;
        for peer in self.peers() {
            // pairs with: taken
            let taken = region.flag(self.layout.taken(peer)).load_acquire();
            if !taken.at_least(needed) {
                return Err(Awaits::flag(self.layout.taken(peer), Until::AtLeast(needed), peer, operation));
            }
            least = taken.capped(least);
        }
        self.drained = least;
        Ok(())
    }

    /// Publishes that this process is done with all queue fragments below `clock`.
    // publishes: the copies out of those fragments, to the root that reuses their slots
    #[inline]
    pub(crate) fn taken<R: Region>(&self, region: &R, clock: u64) {
        region.publish(self.layout.taken(self.rank), clock);
    }

    fn peers(&self) -> impl Iterator<Item = Rank> + use<> {
        let me = self.rank;
        (0..self.size()).filter(move |&peer| peer != me)
    }
}

/// The context of shared-memory machines: a region and a member.
#[derive(Clone, Debug)]
pub struct Comm<R> {
    region: R,
    member: Member,
}

impl<R: Region> Comm<R> {
    /// Process `rank` on a fresh segment that has this layout.
    ///
    /// # Errors
    /// `rank` is not below the layout's number of ranks.
    pub fn new(region: R, layout: Layout, rank: Rank) -> Result<Self, Refusal> {
        Self::resume(region, layout, rank, Base::default())
    }

    /// The same where a communicator was before: as [`Member::resume`].
    ///
    /// # Errors
    /// `rank` is not below the layout's number of ranks.
    pub fn resume(region: R, layout: Layout, rank: Rank, base: Base) -> Result<Self, Refusal> {
        Ok(Self { region, member: Member::resume(layout, rank, base)? })
    }

    /// Where this process stands, if it has finished all that it began and nobody has poisoned the communicator: where
    /// the next one on this memory may begin.
    pub fn end(&self) -> Option<Base> {
        let (base, done) = (self.member.base(), self.member.layout.done(self.member.rank));
        let finished = self.region.flag(done).load_acquire().is(base.operation);
        (finished && state::look(&self.region, &self.member.layout).is_none()).then_some(base)
    }

    /// The same process with private state that was saved: how a checker restores a snapshot.
    pub const fn with_member(region: R, member: Member) -> Self {
        Self { region, member }
    }

    /// The private state.
    #[inline]
    pub const fn member(&self) -> &Member {
        &self.member
    }

    /// The private state, for building machines on it.
    #[inline]
    pub const fn member_mut(&mut self) -> &mut Member {
        &mut self.member
    }

    /// The region.
    #[inline]
    pub const fn region(&self) -> &R {
        &self.region
    }

    /// Poisons the communicator; answers the poison that counts (the first).
    pub fn poison_with(&self, poison: Poison) -> Poison {
        state::poison(&self.region, &self.member.layout, self.member.rank, poison)
    }

    /// Has `peer` waited long in the operation in which this process is, or a later one? Then it is not who is late.
    pub fn waits(&self, peer: Rank) -> bool {
        peer < self.member.size() && self.member.waits(&self.region, peer)
    }

    /// Has the awaited word reached its value?
    #[inline]
    fn holds(&self, source: Source) -> bool {
        match source {
            Source::Flag(id, until) => until.holds(self.region.flag(id).load_acquire().unchecked()),
            Source::Mail(id, until) => until.holds(self.region.mail(id).peek_acquire().unchecked()),
            Source::Counter(id, until) => until.holds(self.region.counter(id).load_acquire().unchecked()),
            // Messages make progress by polling alone.
            Source::Message(_) => true,
        }
    }
}

impl<R: Region> Shared for Comm<R> {
    type Region = R;
    #[inline]
    fn shared(&mut self) -> (&R, &mut Member) {
        (&self.region, &mut self.member)
    }
}

impl<R: Region> Observe for Comm<R> {
    #[inline]
    fn ready(&mut self, on: &Awaits) -> bool {
        on.iter().any(|event| self.holds(event.source))
    }
    #[inline]
    fn poison(&self) -> Option<Poison> {
        state::look(&self.region, &self.member.layout)
    }
    fn compare(&mut self) -> Result<(), WaitError> {
        self.member.compare(&self.region)
    }
    fn late(&self, peer: Option<Rank>) -> Rank {
        let done = |rank: Rank| self.region.flag(self.member.layout.done(rank)).load_acquire().unchecked();
        // Who says that it waits is not late; of the others, who is furthest behind.
        let others = self.member.peers().filter(|&rank| !self.waits(rank));
        let awaited = peer.filter(|&peer| !self.waits(peer));
        awaited.or_else(|| others.min_by_key(|&rank| done(rank))).or(peer).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
