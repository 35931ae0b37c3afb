//! A process's place in a communicator: with whom, on which memory; and how further communicators follow from it.
//!
//! | call | who | how many learn of the memory |
//! |---|---|---|
//! | dup | all | a broadcast from the owner, whose turn it is |
//! | split | all | an allgather of color, key and offer; all choose alike |
//! | create group, renew | the group, all | the owner's announcement ([`super::announcements`]) |
//! | free | each for itself | a word says `left`; the owner finds all of them sometime |
//!
//! An owner names memory that is zero, or that all members of the communicator before have left. So whoever
//! learns of it may begin at once: nobody waits for anybody but for the owner's words.

use super::announcements;
use super::birth::{Birth, to_bytes, to_words};
use super::commons::{Commons, Own};
use super::part::{self, Memory, Part};
use super::tenancy::Tenancy;
use crate::arena::{Plan, Reserved, Slice, World};
use crate::decisions::decisions;
use crate::error::{Limit, PosixError};
use crate::host::Host;
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

/// A process's place in a communicator.
#[derive(Debug)]
pub struct Place {
    commons: Arc<Commons>,
    /// The processes, by rank.
    members: Arc<[World]>,
    rank: Rank,
    region: View,
    layout: Layout,
    /// Where the communicator begins.
    base: Base,
    /// None: on the job's own segment.
    tenancy: Option<Arc<Tenancy>>,
    /// What all members call the communicator among themselves: no two that live have the same owner, slice and term.
    name: u64,
    /// Communicators that all members have asked for: whose turn it is to own the next one.
    births: u64,
    /// Ranks of the part that this process got of the last split.
    parts: u32,
    /// Bound on one wait here, and in communicators that are made from this one.
    timeout: Option<Duration>,
}

/// How a call on a communicator is run.
type Run<'r, T> = dyn FnMut(&mut Communicator<T>, &Call<'_>) -> Result<(), Error> + 'r;

/// The tag of a group that is a communicator's next: no caller's, which has 32 bits.
const RENEWAL: u64 = 1 << 32;

/// FNV-1a over words, stirred.
fn hash(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23))
}

fn full(needed: u64, available: u64) -> PosixError {
    PosixError::Space { needed, available, limit: Limit::Arena }
}

impl Place {
    /// In the communicator of all processes of the job, on its segment, which begins there.
    pub(crate) fn world(
        commons: Arc<Commons>,
        region: View,
        (layout, base): (Layout, Base),
        timeout: Option<Duration>,
    ) -> Self {
        let (members, rank) = ((0..layout.ranks()).collect(), commons.me);
        Self { commons, members, rank, region, layout, base, tenancy: None, name: 0, births: 0, parts: 0, timeout }
    }

    /// The processes by rank: their ranks in the job.
    pub fn members(&self) -> &[World] {
        &self.members
    }

    /// Bytes of its memory.
    pub const fn bytes(&self) -> u64 {
        self.layout.bytes()
    }

    /// Does whoever waits yield at once?
    pub fn yields(&self) -> bool {
        self.commons.yields()
    }

    /// The region; its view holds the memory.
    pub fn region(&self) -> View {
        self.region.clone()
    }

    fn watch(&self) -> Watch {
        Watch::new(self.region(), self.layout, Arc::clone(&self.commons.descriptors), &self.members)
    }

    /// What a rank here does while it waits.
    pub fn host(&self) -> Host {
        self.commons.host(self.timeout, self.watch())
    }

    /// Bounds each wait of communicators that are made from this one, from now on.
    pub const fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// This process can't open its place: nobody shall wait for it there.
    pub fn give_up(&self) {
        let poison = Poison { rank: self.rank, operation: self.base.operation + 1, cause: Cause::Died };
        state::poison(&self.region, &self.layout, self.rank, poison);
    }

    /// The communicator, once: on `region`, which is this place's, seen in the transport's way.
    ///
    /// # Errors
    /// None that a place makes: as [`Communicator::resume`].
    pub fn open<T: Transport>(&self, region: T::Region, wait: T::Wait) -> Result<Communicator<T>, Refusal>
    where
        T::Wait: Wait<Comm<T::Region>>,
    {
        Ok(Communicator::resume(region, self.layout, self.rank, self.base, wait)?.with_choices(self.choices()))
    }

    /// What `Auto` means in the communicator, by the table that all ranks agreed on when they joined; `None`: as built in.
    pub fn choices(&self) -> Option<&'static Choices> {
        decisions().ok().and_then(|decisions| decisions.choices(&self.layout))
    }

    /// The layout of its memory, this process's rank, and where the communicator begins: for hosts that make their own of it.
    pub const fn plan(&self) -> (Layout, Rank, Base) {
        (self.layout, self.rank, self.base)
    }

    /// A communicator of the same processes in the same order; `on` is this place's, and all its members call.
    ///
    /// # Errors
    /// No member's arena has room ([`PosixError::Space`]; `on` is as good as before); a member is gone; `on` fails.
    ///
    /// # Standard section
    /// MPI 4.1, 7.4.2.
    pub fn dup<T: Transport>(&mut self, on: &mut Communicator<T>) -> Result<Self, PosixError>
    where
        T::Wait: Wait<Comm<T::Region>>,
    {
        self.dup_by(on, &mut |on, call| on.run(call).map(drop))
    }

    /// [`Self::dup`] that moves `others` meanwhile: scopes of other communicators.
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
        let size = self.layout.ranks();
        let mut lack = (0, 0);
        for _ in 0..size {
            let owner = self.turn();
            let mine = (owner == self.rank).then(|| self.offer(size));
            let mut bytes: [u8; 64] = to_bytes(&mine.map_or([0; 8], |birth| birth.encode(self.name)));
            let call = Call::Bcast { data: Data::bytes_mut(&mut bytes), root: owner, algorithm: BcastAlgorithm::Auto };
            if let Err(error) = run(on, &call) {
                // The root fails before it posts, or not at all: nobody has heard of the slice.
                self.take_back(mine);
                return Err(error.into());
            }
            match Birth::decode(&to_words(&bytes), self.name) {
                Some(Birth::Full { needed, free }) => lack = (needed, free.max(lack.1)),
                birth => return self.enter(birth, owner, (Arc::clone(&self.members), self.rank)),
            }
        }
        Err(full(lack.0, lack.1))
    }

    /// A communicator of those who say the same color, in the order of their keys, then of their ranks here; `None` for who says
    /// no color. `on` is this place's, and all its members call.
    ///
    /// # Errors
    /// No arena of the color's members has room ([`PosixError::Space`]; `on` is as good as before); a member is gone; `on` fails.
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
        self.split_by(on, (color, key), &mut |on, call| on.run(call).map(drop))
    }

    /// [`Self::split`] that moves `others` meanwhile: scopes of other communicators.
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
        self.split_by(on, (color, key), &mut |on, call| on.run_among(call, others))
    }

    fn split_by<T: Transport>(
        &mut self,
        on: &mut Communicator<T>,
        (color, key): (Option<u32>, i64),
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
            // Others may have heard the offer once the operation has begun, and use it: then it stays in use for good.
            if on.comm().member().operation() == before {
                self.withdraw(&mine);
            }
            return Err(error.into());
        }
        let turn = self.births;
        self.births += 1;
        let (chunks, _) = all.as_chunks::<{ part::BYTES }>();
        let parts: Option<Vec<_>> = chunks.iter().map(|chunk| Part::decode(&to_words(chunk))).collect();
        let (Some(parts), Some(color)) = (parts, color) else {
            // A rank without a color has offered nothing.
            return if color.is_none() { Ok(None) } else { Err(self.corrupt(on)) };
        };
        let ranks = part::members(&parts, color);
        self.parts = ranks.len() as u32;
        let memory = part::choose(&parts, &ranks, turn);
        self.settle(&mine, memory, &ranks);
        let worlds: Arc<[World]> = ranks.iter().filter_map(|&rank| self.members.get(rank as usize)).copied().collect();
        let of = |rank: Rank| parts.get(rank as usize).copied().unwrap_or_default();
        let (owner, birth) = match memory {
            Memory::Warm(rank) => (rank, of(rank).warm.map(|(_, reserved)| reserved.into())),
            Memory::Room(rank, small) => {
                // Every rank's arena has the same.
                let term = self.commons.own().arena.first();
                (rank, Some(Birth::At { offset: of(rank).room.0, small, term }))
            }
            Memory::Full(needed, free) => return Err(full(needed, free)),
        };
        let me = ranks.iter().position(|&rank| rank == self.rank).unwrap_or(0) as Rank;
        self.enter(birth, owner, (worlds, me)).map(Some)
    }

    /// A communicator of these ranks of this one, in this order; they alone call, each with the same ranks and the same
    /// tag. Groups that have no process in common, or other tags, may be made at the same time, by several threads too. Works
    /// on a communicator that is poisoned, among those who live.
    ///
    /// # Errors
    /// Ranks that are none, one twice, or not this process's; no member's arena has room; a member is gone.
    ///
    /// # Standard section
    /// MPI 4.1, 7.4.2 (MPI_Comm_create_group).
    pub fn create_group(&mut self, ranks: &[Rank], tag: u32) -> Result<Self, PosixError> {
        self.create(ranks, tag.into())
    }

    /// A communicator of the same processes in the same order, in place of this one, which is over because a rank refused
    /// an argument, was late, or found a fault. All its ranks call, once each has its error: who has finished the operation
    /// in which it happened has one at its next operation. That they are all told alike needs no agreement
    /// ([`state::renewable`]); the memory is told of as a group's ([`Self::create_group`]).
    ///
    /// # Errors
    /// The communicator is not over; a rank died (make a group of the others); no member's arena has room. The place is as before.
    pub fn renew(&self) -> Result<Self, PosixError> {
        state::renewable(&self.region, &self.layout)?;
        let everyone: Vec<Rank> = (0..self.layout.ranks()).collect();
        self.create(&everyone, RENEWAL)
    }

    /// A communicator of these ranks of this one, which all of them ask for by this tag: on memory of the member whose turn
    /// it is by the key, or of the next one that has room.
    fn create(&self, ranks: &[Rank], tag: u64) -> Result<Self, PosixError> {
        let (worlds, me) = self.group(ranks)?;
        let key = hash([self.name, tag].into_iter().chain(worlds.iter().map(|&world| world.into())));
        let size = ranks.len() as u64;
        let first = key.checked_rem(size).unwrap_or(0);
        let mut lack = (0, 0);
        for leader in (0..size).map(|turn| ((first + turn) % size) as Rank) {
            let owner = ranks.get(leader as usize).copied().unwrap_or(0);
            let birth = if leader == me { self.announce(&worlds, key)? } else { self.listen(&worlds, leader, key)? };
            match Birth::decode(&birth, self.name) {
                Some(Birth::Full { needed, free }) => lack = (needed, free.max(lack.1)),
                birth => return self.enter(birth, owner, (worlds, me)),
            }
        }
        Err(full(lack.0, lack.1))
    }

    /// The processes of a group, and this one's rank in it.
    fn group(&self, ranks: &[Rank]) -> Result<(Arc<[World]>, Rank), PosixError> {
        let wrong = || PosixError::Setting {
            name: "group",
            value: format!("{ranks:?}"),
            bound: "distinct ranks of the communicator, this process's among them",
        };
        let worlds: Option<Arc<[World]>> = ranks.iter().map(|&rank| self.members.get(rank as usize).copied()).collect();
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let me = ranks.iter().position(|&rank| rank == self.rank);
        match (worlds, me) {
            (Some(worlds), Some(me)) if sorted.len() == ranks.len() => Ok((worlds, me as Rank)),
            _ => Err(wrong()),
        }
    }

    /// The owner's part of a group's creation.
    fn announce(&self, worlds: &Arc<[World]>, key: u64) -> Result<super::birth::Words, PosixError> {
        let commons = &*self.commons;
        let birth = self.offer(worlds.len() as u32);
        let words = birth.encode(self.name);
        let posted = commons.wait(worlds, &[], self.timeout, || {
            let Own { arena, announcements } = &mut *commons.own();
            // Members of an earlier group are awaited here, none of this one.
            let free = announcements.is_free(&commons.maps, commons.me, |process| commons.gone(process));
            free.then(|| {
                announcements.post(arena.map(), worlds, key, &words);
                if let Birth::At { offset, .. } = birth {
                    arena.lease(offset, Arc::clone(worlds));
                }
                words
            })
        });
        posted.map_err(|error| {
            // Too late: nothing was posted.
            if let Birth::At { offset, .. } = birth {
                commons.own().arena.give_up(offset);
            }
            error.into()
        })
    }

    /// The others' part.
    fn listen(&self, worlds: &Arc<[World]>, leader: Rank, key: u64) -> Result<super::birth::Words, PosixError> {
        let commons = &*self.commons;
        let owner = worlds.get(leader as usize).copied().unwrap_or(commons.me);
        Ok(commons
            .wait(worlds, &[leader], self.timeout, || announcements::take(&commons.maps, owner, commons.me, key))?)
    }

    /// Whose turn it is to own the next communicator.
    const fn turn(&mut self) -> Rank {
        let turn = self.births % self.layout.ranks() as u64;
        self.births += 1;
        turn as Rank
    }

    /// A slice for `ranks` of this process's arena; leased where the members follow from the call.
    fn offer(&self, ranks: u32) -> Birth {
        let commons = &*self.commons;
        let arena = &mut commons.own().arena;
        match arena.reserve(ranks, &mut |process| commons.gone(process)) {
            Some(reserved) => reserved.into(),
            None => {
                let needed = Plan::new(ranks, true).map_or(u64::MAX, |plan| plan.bytes());
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
        let bytes = |small| Plan::new(size, small).map_or(0, |plan| plan.bytes());
        let warm =
            arena.reserve_warm(|ranks| ranks == self.parts).or_else(|| arena.reserve_warm(|ranks| ranks <= size));
        let warm = warm.and_then(|reserved| Some((arena.reserved(reserved.offset)?.plan().ranks(), reserved)));
        let most = bytes(arena.used() >= arena.room().total() / 2);
        let mut gone = |process| commons.gone(process);
        let mut room = arena.take_most(most, &mut gone);
        // Room for a part of any size comes before a warm slice that may fit none.
        let warm = if room.1 < bytes(true)
            && let Some((_, reserved)) = warm
        {
            arena.give_up(reserved.offset);
            arena.cut(room, None);
            room = arena.take_most(most, &mut gone);
            None
        } else {
            warm
        };
        Part { color, key, room, free: room.1.max(arena.room().longest()), warm }
    }

    /// Nobody has heard of the offer.
    fn withdraw(&self, mine: &Part) {
        self.settle(mine, Memory::Full(0, 0), &[]);
    }

    /// All have chosen: what of this process's offer was not taken is as before.
    fn settle(&self, mine: &Part, memory: Memory, ranks: &[Rank]) {
        let arena = &mut self.commons.own().arena;
        let plan = match memory {
            Memory::Room(rank, small) if rank == self.rank => Plan::new(ranks.len() as u32, small),
            _ => None,
        };
        let cut: Option<Reserved> = arena.cut(mine.room, plan.as_ref());
        let warm = mine.warm.map(|(_, reserved)| reserved);
        let taken = if memory == Memory::Warm(self.rank) { warm } else { cut };
        if let Some(reserved) = taken {
            let worlds = ranks.iter().filter_map(|&rank| self.members.get(rank as usize)).copied().collect();
            arena.lease(reserved.offset, worlds);
        }
        if let Some(warm) = warm.filter(|_| memory != Memory::Warm(self.rank)) {
            arena.give_up(warm.offset);
        }
    }

    /// The words of another rank are no member's.
    fn corrupt<T: Transport>(&self, on: &mut Communicator<T>) -> PosixError
    where
        T::Wait: Wait<Comm<T::Region>>,
    {
        on.refuse(Refusal::new(Argument::Magic, 0, Bound::AtLeast(1))).into()
    }

    /// The place in a new communicator, of these processes, on memory of `owner`, a rank of this one.
    fn enter(
        &self,
        birth: Option<Birth>,
        owner: Rank,
        (members, rank): (Arc<[World]>, Rank),
    ) -> Result<Self, PosixError> {
        let malformed = || Error::from(Refusal::new(Argument::Address, 0, Bound::AtLeast(1)));
        let Some(Birth::At { offset, small, term: Term { epoch, base } }) = birth else {
            return Err(malformed().into());
        };
        let owner = self.members.get(owner as usize).copied().ok_or_else(malformed)?;
        let plan = Plan::new(members.len() as u32, small).ok_or_else(malformed)?;
        let map = self.commons.maps.get(owner as usize).ok_or_else(malformed)?;
        let slice = Slice::new(Arc::clone(map), offset, plan).ok_or_else(malformed)?;
        if owner == self.commons.me {
            self.commons.own().arena.lease(offset, Arc::clone(&members));
        }
        let tenancy = Arc::new(Tenancy::new(Arc::clone(&self.commons), (slice, epoch), owner, rank));
        let (region, layout) = (View::of(&tenancy), *plan.layout());
        let name = hash([owner.into(), offset, epoch.into()].into_iter());
        let (commons, tenancy) = (Arc::clone(&self.commons), Some(tenancy));
        let (births, parts, timeout) = (0, 0, self.timeout);
        // Who is gone by now may have left it before, with all that it had to do there: whoever waits for it learns of its death.
        Ok(Self { commons, members, rank, region, layout, base, tenancy, name, births, parts, timeout })
    }

    /// The communicator on this place ended; `end`: where it stands, if it finished all that it began. The process leaves the
    /// memory with the last [view](Self::region) of it.
    pub fn leave(&mut self, end: Option<Base>) {
        if let Some(tenancy) = self.tenancy.take() {
            tenancy.end_at(end);
        }
    }

    /// This process's arena, after looking at all that it has given out.
    pub fn usage(&self) -> Usage {
        let commons = &*self.commons;
        let arena = &mut commons.own().arena;
        arena.collect(usize::MAX, &mut |process| commons.gone(process));
        let (total, leased, warm, touched) = (arena.room().total(), arena.used(), arena.warm(), arena.touched());
        Usage { total, leased, warm, touched }
    }
}

/// What is in use of a process's arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes for communicators.
    pub total: u64,
    /// Bytes of communicators that not all members have freed.
    pub leased: u64,
    /// Slices that wait, as they are, for their next communicator.
    pub warm: usize,
    /// Bytes of pages that exist, the arena's head and warm slices among them: what communicators cost in memory.
    pub touched: u64,
}
