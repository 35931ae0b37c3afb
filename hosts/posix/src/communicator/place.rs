//! A process's place in a communicator: the members and the memory, and how further communicators are made from it.
//!
//! | call | called by | how the members learn of the memory |
//! |---|---|---|
//! | dup | all ranks | a broadcast from the owner; the ranks own new communicators by rotation |
//! | split | all ranks | an allgather of color, key and offered memory; all ranks choose the same |
//! | create group, renew | the group; all ranks | the owner's announcement ([`super::announcements`]) |
//! | free | each rank for itself | a word says `left`; the owner looks at these words later |
//!
//! An owner offers memory that is zero, or that all members of the communicator before have left. So a rank that learns
//! of it may start operations at once: it has waited for the owner's message only.

use super::announcements;
use super::birth::{Birth, to_bytes, to_words};
use super::commons::{Commons, Own};
use super::part::{self, Memory, Part, Warm};
use super::tenancy::Tenancy;
use crate::arena::{Plan, Queues, Reserved, WorldRank};
use crate::decisions::decisions;
use crate::error::{Limit, PosixError};
use crate::host::Host;
use crate::placement::{self, Placement};
use crate::segment::View;
use crate::watch::Watch;
use std::sync::Arc;
use std::time::Duration;
use unisono_kernel::Rank;
use unisono_kernel::algorithm::{BcastAlgorithm, MoveAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::call::progress::{Among, Progress};
use unisono_kernel::comm::{Comm, Communicator};
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{Argument, Bound, Cause, Error, Poison, Refusal};
use unisono_kernel::machine::transport::{Transport, Wait};
use unisono_kernel::region::{Base, Layout, Term, state};
use unisono_kernel::table::Choices;

/// The members of a communicator to be made, and this process's rank in it.
struct Group {
    members: Arc<[WorldRank]>,
    rank: Rank,
}

/// A process's place in a communicator.
#[derive(Debug)]
pub struct Place {
    commons: Arc<Commons>,
    /// The processes, by rank.
    members: Arc<[WorldRank]>,
    rank: Rank,
    region: View,
    layout: Layout,
    /// The counts with which the communicator starts.
    base: Base,
    /// This process's use of a slice; `None` on the job's first segment.
    tenancy: Option<Arc<Tenancy>>,
    /// A hash of owner, slice and term, the same on all members. No two live communicators have the same three.
    name: u64,
    /// Number of communicators made from this one; it says which rank owns the next one.
    births: u64,
    /// Number of ranks of the communicator that the last split gave to this process.
    parts: u32,
    /// The longest wait here, and in communicators that are made from this one.
    timeout: Option<Duration>,
}

/// Runs a call on a communicator.
type Run<'r, T> = dyn FnMut(&mut Communicator<T>, &Call<'_>) -> Result<(), Error> + 'r;

/// The tag of a renewal. A caller's tags have 32 bits, so they differ from it.
const RENEWAL: u64 = 1 << 32;

/// FNV-1a over words, with a rotation after each.
fn hash(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23))
}

fn full(needed: u64, available: u64) -> PosixError {
    PosixError::Space { needed, available, limit: Limit::Arena }
}

impl Place {
    /// The place in the communicator of all processes of the job, on its segment; `base`: the counts with which it
    /// starts.
    pub(crate) fn world(
        commons: Arc<Commons>,
        region: View,
        layout: Layout,
        base: Base,
        timeout: Option<Duration>,
    ) -> Self {
        let (members, rank): (Arc<[_]>, _) = ((0..layout.ranks()).collect(), commons.me);
        let region = region.with_lenders(commons.lenders(&members));
        Self { commons, members, rank, region, layout, base, tenancy: None, name: 0, births: 0, parts: 0, timeout }
    }

    /// The members by rank, each by its rank in the job.
    pub fn members(&self) -> &[WorldRank] {
        &self.members
    }

    /// Bytes of the communicator's memory.
    pub const fn bytes(&self) -> u64 {
        self.layout.bytes()
    }

    /// Does a rank that waits yield at once?
    pub fn yields(&self) -> bool {
        self.commons.yields()
    }

    /// The region. This process has not left the memory as long as a view of it lives.
    pub fn region(&self) -> View {
        self.region.clone()
    }

    fn watch(&self) -> Watch {
        let (descriptors, members) = (Arc::clone(&self.commons.descriptors), Arc::clone(&self.members));
        Watch::new(self.region(), self.layout, descriptors, members, self.rank)
    }

    /// What a rank here does while it waits.
    pub fn host(&self) -> Host {
        self.commons.host(self.timeout, self.watch())
    }

    /// Sets the longest wait in communicators that are made from this one from now on.
    pub const fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// Poisons the communicator because this process can't open its place, so that no rank waits for it there.
    pub fn give_up(&self) {
        let poison = Poison { rank: self.rank, operation: self.base.operation + 1, cause: Cause::Died };
        state::poison(&self.region, &self.layout, self.rank, poison);
    }

    /// Opens the communicator; to be called once. `region` is this place's, as the transport sees it.
    ///
    /// # Errors
    /// As [`Communicator::resume`]; a place causes none of them.
    pub fn open<T: Transport>(&self, region: T::Region, wait: T::Wait) -> Result<Communicator<T>, Refusal>
    where
        T::Wait: Wait<Comm<T::Region>>,
    {
        Ok(Communicator::resume(region, self.layout, self.rank, self.base, wait)?.with_choices(self.choices()))
    }

    /// What `Auto` means in the communicator, by the table that all ranks agreed on when they joined; `None`: the
    /// built-in rules.
    pub fn choices(&self) -> Option<&'static Choices> {
        decisions().ok().and_then(|decisions| decisions.choices(&self.layout))
    }

    /// The layout of its memory, this process's rank, and the counts with which the communicator starts: for hosts that
    /// make a communicator of their own type.
    pub const fn plan(&self) -> (Layout, Rank, Base) {
        (self.layout, self.rank, self.base)
    }

    /// A communicator of the same processes in the same order. `on` is this place's communicator; all its ranks call.
    ///
    /// # Errors
    /// No member's arena has room ([`PosixError::Space`]; `on` can be used as before); a member has died; the broadcast
    /// on `on` fails.
    ///
    /// # Standard section
    /// MPI 4.1, 7.4.2.
    pub fn dup<T: Transport>(&mut self, on: &mut Communicator<T>) -> Result<Self, PosixError>
    where
        T::Wait: Wait<Comm<T::Region>>,
    {
        self.dup_by(on, &mut |on, call| on.run(call).map(drop))
    }

    /// [`Self::dup`] that also makes progress on `others`, scopes of other communicators, while it waits.
    ///
    /// # Errors
    /// As [`Self::dup`].
    pub fn dup_among<T: Transport>(
        &mut self,
        on: &mut Communicator<T>,
        others: &mut [&mut dyn Progress],
    ) -> Result<Self, PosixError>
    where
        T::Wait: Wait<Comm<T::Region>> + for<'x> Wait<Among<'x, Comm<T::Region>>>,
    {
        self.dup_by(on, &mut |on, call| on.run_among(call, others))
    }

    fn dup_by<T: Transport>(&mut self, on: &mut Communicator<T>, run: &mut Run<'_, T>) -> Result<Self, PosixError>
    where
        T::Wait: Wait<Comm<T::Region>>,
    {
        let mut lack = (0, 0);
        for _ in 0..self.layout.ranks() {
            let owner = self.next_owner();
            let mine = (owner == self.rank).then(|| self.offer(&self.members));
            let mut bytes: [u8; 64] = to_bytes(&mine.map_or([0; 8], |birth| birth.encode(self.name)));
            let call = Call::Bcast { data: Data::bytes_mut(&mut bytes), root: owner, algorithm: BcastAlgorithm::Auto };
            if let Err(error) = run(on, &call) {
                // A root that fails has not posted: no rank knows of the slice.
                self.take_back(mine);
                return Err(error.into());
            }
            match Birth::decode(&to_words(&bytes), self.name) {
                Some(Birth::Full { needed, free }) => lack = (needed, free.max(lack.1)),
                birth => {
                    return self.enter(birth, owner, Group { members: Arc::clone(&self.members), rank: self.rank });
                }
            }
        }
        Err(full(lack.0, lack.1))
    }

    /// A communicator of the ranks that pass the same color, in the order of their keys, then of their ranks here;
    /// `None` on a rank that passes no color. `on` is this place's communicator; all its ranks call.
    ///
    /// # Errors
    /// No arena of the color's members has room ([`PosixError::Space`]; `on` can be used as before); a member has died;
    /// the allgather on `on` fails.
    ///
    /// # Standard section
    /// MPI 4.1, 7.4.2.
    pub fn split<T: Transport>(
        &mut self,
        on: &mut Communicator<T>,
        color: Option<u32>,
        key: i64,
    ) -> Result<Option<Self>, PosixError>
    where
        T::Wait: Wait<Comm<T::Region>>,
    {
        self.split_by(on, color, key, &mut |on, call| on.run(call).map(drop))
    }

    /// [`Self::split`] that also makes progress on `others`, scopes of other communicators, while it waits.
    ///
    /// # Errors
    /// As [`Self::split`].
    pub fn split_among<T: Transport>(
        &mut self,
        on: &mut Communicator<T>,
        color: Option<u32>,
        key: i64,
        others: &mut [&mut dyn Progress],
    ) -> Result<Option<Self>, PosixError>
    where
        T::Wait: Wait<Comm<T::Region>> + for<'x> Wait<Among<'x, Comm<T::Region>>>,
    {
        self.split_by(on, color, key, &mut |on, call| on.run_among(call, others))
    }

    fn split_by<T: Transport>(
        &mut self,
        on: &mut Communicator<T>,
        color: Option<u32>,
        key: i64,
        run: &mut Run<'_, T>,
    ) -> Result<Option<Self>, PosixError>
    where
        T::Wait: Wait<Comm<T::Region>>,
    {
        let size = self.layout.ranks();
        let mine = self.offer_part(color, key);
        let (mut bytes, before): ([u8; part::BYTES], _) = (to_bytes(&mine.encode()), on.comm().member().operation());
        let mut all = vec![0; part::BYTES * size as usize];
        let blocks = Blocks::equal_mut(&mut all, size, part::BYTES as u64, Datatype::BYTE);
        let told = blocks.map_err(Error::from).and_then(|receive| {
            let send = Some(Data::bytes_mut(&mut bytes));
            run(on, &Call::Allgather { send, receive, algorithm: MoveAlgorithm::Auto })
        });
        if let Err(error) = told {
            // Once the operation has started, other ranks may know the offer and use it: then it stays in use for ever.
            if on.comm().member().operation() == before {
                self.withdraw(&mine);
            }
            return Err(error.into());
        }
        let round = self.births;
        self.births += 1;
        let (chunks, _) = all.as_chunks::<{ part::BYTES }>();
        let parts: Option<Vec<_>> = chunks.iter().map(|chunk| Part::decode(&to_words(chunk))).collect();
        let (Some(parts), Some(color)) = (parts, color) else {
            // A rank without a color has offered nothing.
            return if color.is_none() { Ok(None) } else { Err(self.corrupt(on)) };
        };
        let ranks = part::members(&parts, color);
        self.parts = ranks.len() as u32;
        let worlds: Arc<[WorldRank]> =
            ranks.iter().filter_map(|&rank| self.members.get(rank as usize)).copied().collect();
        let memory =
            part::choose(&parts, &ranks, self.commons.digest(&worlds), round, self.commons.own().arena.queues());
        self.settle(&mine, memory, &worlds);
        let of = |rank: Rank| parts.get(rank as usize).copied().unwrap_or_default();
        let (owner, birth) = match memory {
            Memory::Warm(rank) => (rank, of(rank).warm.map(|warm| warm.reserved.into())),
            Memory::Room { rank, queues } => {
                // The first term is the same in every rank's arena.
                let term = self.commons.own().arena.first();
                (rank, Some(Birth::At { offset: of(rank).room.offset, queues, term }))
            }
            Memory::Full { needed, free } => return Err(full(needed, free)),
        };
        let me = ranks.iter().position(|&rank| rank == self.rank).unwrap_or(0) as Rank;
        let group = Group { members: worlds, rank: me };
        self.enter(birth, owner, group).map(Some)
    }

    /// A communicator of these ranks of this one, in this order. Only they call, each with the same ranks and the same
    /// tag. Groups that have no process in common, or have different tags, may be made at the same time, also by
    /// several threads. It works on a poisoned communicator too, among ranks that live.
    ///
    /// # Errors
    /// A rank out of range, one named twice, or this process's own rank missing; no member's arena has room; a member
    /// has died.
    ///
    /// # Standard section
    /// MPI 4.1, 7.4.2 (MPI_Comm_create_group).
    pub fn create_group(&mut self, ranks: &[Rank], tag: u32) -> Result<Self, PosixError> {
        self.create(ranks, tag.into())
    }

    /// A communicator of the same processes in the same order, in place of this one, which is over because a rank refused
    /// an argument, was late, or found a fault. All its ranks call, each after an operation has returned the error to
    /// it; a rank that had completed the failed operation gets the error from its next one. All ranks read the same
    /// error, so they need not agree on it ([`state::renewable`]). The members learn of the memory as in
    /// [`Self::create_group`].
    ///
    /// # Errors
    /// The communicator is not over; a rank died (make a group of the others); no member's arena has room. The place is
    /// unchanged then.
    pub fn renew(&self) -> Result<Self, PosixError> {
        state::renewable(&self.region, &self.layout)?;
        let all: Vec<Rank> = (0..self.layout.ranks()).collect();
        self.create(&all, RENEWAL)
    }

    /// A communicator of these ranks of this one; all of them call with this tag. Its memory is from the arena of the
    /// member that a hash of communicator, group and tag selects, or of the next member that has room.
    fn create(&self, ranks: &[Rank], tag: u64) -> Result<Self, PosixError> {
        let group = self.group(ranks)?;
        let (worlds, me) = (&group.members, group.rank);
        let key = hash([self.name, tag].into_iter().chain(worlds.iter().map(|&world| world.into())));
        let size = ranks.len() as u64;
        let first = key.checked_rem(size).unwrap_or(0);
        let mut lack = (0, 0);
        for leader in (0..size).map(|next| ((first + next) % size) as Rank) {
            let owner = ranks.get(leader as usize).copied().unwrap_or(0);
            let birth = if leader == me { self.announce(worlds, key)? } else { self.listen(worlds, leader, key)? };
            match Birth::decode(&birth, self.name) {
                Some(Birth::Full { needed, free }) => lack = (needed, free.max(lack.1)),
                birth => return self.enter(birth, owner, group),
            }
        }
        Err(full(lack.0, lack.1))
    }

    /// The processes of a group, and this one's rank in it.
    fn group(&self, ranks: &[Rank]) -> Result<Group, PosixError> {
        let wrong = || PosixError::Setting {
            name: "group",
            value: format!("{ranks:?}"),
            bound: "distinct ranks of the communicator, this process's among them",
        };
        let worlds: Option<Arc<[WorldRank]>> =
            ranks.iter().map(|&rank| self.members.get(rank as usize).copied()).collect();
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let me = ranks.iter().position(|&rank| rank == self.rank);
        match (worlds, me) {
            (Some(members), Some(me)) if sorted.len() == ranks.len() => Ok(Group { members, rank: me as Rank }),
            _ => Err(wrong()),
        }
    }

    /// The owner's part of a group's creation: reserves memory and announces it.
    fn announce(&self, worlds: &Arc<[WorldRank]>, key: u64) -> Result<super::birth::Words, PosixError> {
        let commons = &*self.commons;
        let birth = self.offer(worlds);
        let words = birth.encode(self.name);
        let posted = commons.wait(worlds, &[], self.timeout, || {
            let Own { arena, announcements } = &mut *commons.own();
            // This waits for members of an earlier group, not of this one.
            let free = announcements.is_free(&commons.arenas, commons.me, |process| commons.gone(process));
            free.then(|| {
                announcements.post(&commons.arenas, commons.me, worlds, key, &words);
                if let Birth::At { offset, .. } = birth {
                    arena.lease(offset, Arc::clone(worlds), commons.digest(worlds));
                }
                words
            })
        });
        posted.map_err(|error| {
            // The wait took too long: nothing was posted.
            if let Birth::At { offset, .. } = birth {
                commons.own().arena.give_up(offset);
            }
            error.into()
        })
    }

    /// The other members' part: waits for the owner's announcement.
    fn listen(&self, worlds: &Arc<[WorldRank]>, leader: Rank, key: u64) -> Result<super::birth::Words, PosixError> {
        let commons = &*self.commons;
        let owner = worlds.get(leader as usize).copied().unwrap_or(commons.me);
        Ok(commons
            .wait(worlds, &[leader], self.timeout, || announcements::take(&commons.arenas, owner, commons.me, key))?)
    }

    /// The rank that owns the next communicator: all ranks by rotation.
    const fn next_owner(&mut self) -> Rank {
        let owner = self.births % self.layout.ranks() as u64;
        self.births += 1;
        owner as Rank
    }

    /// Reserves a slice of this process's arena for these processes. It becomes a lease when they know of it.
    fn offer(&self, members: &[WorldRank]) -> Birth {
        let (commons, ranks) = (&*self.commons, members.len() as u32);
        let arena = &mut commons.own().arena;
        match arena.reserve(ranks, commons.digest(members), &mut |process| commons.gone(process)) {
            Some(reserved) => reserved.into(),
            None => {
                let needed = Plan::new(ranks, Queues::Small).map_or(u64::MAX, |plan| plan.bytes());
                Birth::Full { needed, free: arena.room().longest() }
            }
        }
    }

    fn take_back(&self, birth: Option<Birth>) {
        if let Some(Birth::At { offset, .. }) = birth {
            self.commons.own().arena.give_up(offset);
        }
    }

    fn offer_part(&self, color: Option<u32>, key: i64) -> Part {
        if color.is_none() {
            return Part { key, ..Part::default() };
        }
        let (commons, size) = (&*self.commons, self.layout.ranks());
        let arena = &mut commons.own().arena;
        let bytes = |queues| Plan::most_bytes(size, queues);
        let warm =
            arena.reserve_warm(|ranks, _| ranks == self.parts).or_else(|| arena.reserve_warm(|ranks, _| ranks <= size));
        let warm = warm.and_then(|reserved| {
            let ranks = arena.reserved(reserved.offset)?.plan().ranks();
            Some(Warm { ranks, nodes: arena.nodes(reserved.offset), reserved })
        });
        let short = arena.used() >= arena.room().total() / 2;
        let most = bytes(if short { Queues::Small } else { arena.queues() });
        let mut gone = |process| commons.gone(process);
        let mut room = arena.take_most(most, &mut gone);
        // Memory that suffices for any number of ranks is more useful than a warm slice, which may fit no color.
        let warm = if room.len < bytes(Queues::Small)
            && let Some(Warm { reserved, .. }) = warm
        {
            arena.give_up(reserved.offset);
            arena.cut(room, None);
            room = arena.take_most(most, &mut gone);
            None
        } else {
            warm
        };
        Part { color, key, room, free: room.len.max(arena.room().longest()), warm }
    }

    /// Takes back an offer that no other rank knows of.
    fn withdraw(&self, mine: &Part) {
        self.settle(mine, Memory::Full { needed: 0, free: 0 }, &[]);
    }

    /// After all ranks have chosen `memory` for these processes: leases what they take of this process's offer, and frees
    /// the rest.
    fn settle(&self, mine: &Part, memory: Memory, worlds: &[WorldRank]) {
        let arena = &mut self.commons.own().arena;
        let plan = match memory {
            Memory::Room { rank, queues } if rank == self.rank => Plan::new(worlds.len() as u32, queues),
            _ => None,
        };
        let cut: Option<Reserved> = arena.cut(mine.room, plan.as_ref());
        let warm = mine.warm.map(|warm| warm.reserved);
        let taken = if memory == Memory::Warm(self.rank) { warm } else { cut };
        if let Some(reserved) = taken {
            arena.lease(reserved.offset, worlds.into(), self.commons.digest(worlds));
        }
        if let Some(warm) = warm.filter(|_| memory != Memory::Warm(self.rank)) {
            arena.give_up(warm.offset);
        }
    }

    /// Refuses a message that no rank of this communicator can have sent.
    fn corrupt<T: Transport>(&self, on: &mut Communicator<T>) -> PosixError
    where
        T::Wait: Wait<Comm<T::Region>>,
    {
        on.refuse(Refusal::new(Argument::Magic, 0, Bound::AtLeast(1))).into()
    }

    /// The place in a new communicator of this group, in the arena of `owner`, a rank of this one.
    fn enter(&self, birth: Option<Birth>, owner: Rank, Group { members, rank }: Group) -> Result<Self, PosixError> {
        let malformed = || Error::from(Refusal::new(Argument::Address, 0, Bound::AtLeast(1)));
        let Some(Birth::At { offset, queues, term: Term { epoch, base } }) = birth else {
            return Err(malformed().into());
        };
        let owner = self.members.get(owner as usize).copied().ok_or_else(malformed)?;
        let plan = Plan::new(members.len() as u32, queues).ok_or_else(malformed)?;
        let plan = plan.with_crowded(self.commons.crowded);
        let slice = self.commons.arenas.slice(owner, offset, plan).ok_or_else(malformed)?;
        if owner == self.commons.me {
            self.commons.own().arena.lease(offset, Arc::clone(&members), self.commons.digest(&members));
        }
        self.commons.place(&slice, &members, rank);
        let tenancy = Arc::new(Tenancy::new(Arc::clone(&self.commons), slice, epoch, owner, rank));
        let lenders = self.commons.lenders(&members);
        let (region, layout) = (View::of(&tenancy).with_lenders(lenders), *plan.layout());
        let name = hash([owner.into(), offset, epoch.into()].into_iter());
        let (commons, tenancy) = (Arc::clone(&self.commons), Some(tenancy));
        let (births, parts, timeout) = (0, 0, self.timeout);
        // A process that has ended by now may have left the new communicator already, all its operations complete. So
        // this is not an error; a rank that waits for it learns of its death.
        Ok(Self { commons, members, rank, region, layout, base, tenancy, name, births, parts, timeout })
    }

    /// The communicator on this place ended; `end`: its counts, if all its operations are complete. The process leaves
    /// the memory when its last [view](Self::region) is dropped.
    pub fn leave(&mut self, end: Option<Base>) {
        if let Some(tenancy) = self.tenancy.take() {
            tenancy.end_at(end);
        }
    }

    /// Where the pages are that this rank owns and has mapped; `None` for the job's first segment, whose pages were
    /// [placed](crate::join::Joined::placement) when all joined.
    pub fn placement(&self) -> Option<Placement> {
        let tenancy = self.tenancy.as_ref()?;
        Some(placement::verify_slice(tenancy.slice(), self.rank, self.commons.node(self.commons.me)))
    }

    /// How much of this process's arena is in use, after a look at all its leases.
    pub fn usage(&self) -> Usage {
        let commons = &*self.commons;
        let arena = &mut commons.own().arena;
        arena.collect(usize::MAX, &mut |process| commons.gone(process));
        let (total, leased, warm, touched) = (arena.room().total(), arena.used(), arena.warm(), arena.touched());
        Usage { total, leased, warm, touched }
    }
}

/// How much of a process's arena is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes for communicators.
    pub total: u64,
    /// Bytes of communicators that not all their ranks have freed.
    pub leased: u64,
    /// Number of slices that are kept unchanged for a next communicator.
    pub warm: usize,
    /// Bytes of the pages that exist, including the arena's head and warm slices: the memory that communicators cost.
    pub touched: u64,
}
