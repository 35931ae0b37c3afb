//! What a process keeps between communicators, and the life of one communicator in it.
//!
//! ```text
//! offer   -> a slice of the own arena is reserved
//! attach  -> all offers are known: the own slice is given up, or leased; the chosen one is mapped, the handle made
//! settle  -> all could, and the handle is used; or not, and all is as before
//! release -> the handle is freed, then the rank leaves; the owner reuses the slice when all have left
//! ```

use crate::Bounded;
use crate::node;
use crate::offer::{self, Offer, Owner, Reason, Words};
use crate::say::{Cause, once};
use crate::wait::{self, Patient, Progress, Waits};
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use unisono_c::comm::{Beside, Handle as Comm, unisono_free};
use unisono_c::error::UNISONO_OK;
use unisono_c::waiting::{Patience, Waiting};
use unisono_kernel::Rank;
use unisono_kernel::machine::wait::SpinThen;
use unisono_kernel::region::{Base, Counter, Layout, Term, Word};
use unisono_kernel::table::{Between, Choices};
use unisono_posix::PosixError;
use unisono_posix::arena::{self, Arena, Plan, Slice};
use unisono_posix::decisions::{Decisions, RULES, TABLE, decisions};
use unisono_posix::sealed::{Handle, Map, Sealed};
use unisono_posix::timeout;
use unisono_shm::Mapped;

/// Environment: `off` takes nothing over.
pub const SWITCH: &str = "UNISONO";

/// Sums since the start: `unisono_mpi_sums_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sums {
    /// Waits that were not over at once.
    pub waits: u64,
    /// Calls of the progress function.
    pub progressed: u64,
    /// Bytes of this process's arena; 0 until it is made.
    pub arena: u64,
    /// Bytes of it in use, offered ones included.
    pub used: u64,
    /// The same, at most.
    pub most_used: u64,
    /// Communicators attached.
    pub attached: u64,
    /// Communicators released.
    pub released: u64,
}

/// One communicator's memory in this process: `unisono_mpi_lease`.
#[derive(Debug, Default)]
pub struct Lease(Option<Attached>);

impl Lease {
    /// The segment of a node's ranks, and this rank there.
    ///
    /// # Safety
    /// The lease lives as long as the view or a copy of it is used.
    pub unsafe fn level(&self) -> Option<(Mapped, Layout, Rank)> {
        let Attached { slice, rank, .. } = self.0.as_ref()?;
        // SAFETY: the caller's promise.
        Some((unsafe { slice.segment() }, *slice.plan().layout(), *rank))
    }

    /// What `Auto` means there, where it is not as built in.
    pub fn choices(&self) -> Option<&'static Choices> {
        self.0.as_ref().and_then(|attached| attached.choices)
    }
}

#[derive(Debug)]
struct Attached {
    slice: Slice,
    rank: Rank,
    /// The slice is one of this process's own arena.
    own: bool,
    /// Of the table that all ranks have.
    choices: Option<&'static Choices>,
    /// Null on one node among several.
    comm: *mut Comm,
}

/// The choices go with the communicator.
struct Chosen(Option<&'static Choices>);

impl Beside for Chosen {
    fn ended(&mut self, _: Option<Base>) {}

    fn choices(&self) -> Option<&'static Choices> {
        self.0
    }
}

// SAFETY: the handle is this lease's alone, and may be used from any thread, by one at a time.
unsafe impl Send for Attached {}

/// The state of a process.
#[derive(Debug)]
pub struct Process {
    on: bool,
    arena_bytes: u64,
    /// Its decision table.
    decisions: Option<&'static Decisions>,
    /// Of each wait.
    bound: Option<Duration>,
    attached: Word,
    released: Word,
    waits: Arc<Waits>,
    state: Mutex<State>,
}

/// What is made at first use, and kept.
#[derive(Debug, Default)]
struct State {
    /// Node and arena; or they could not be made.
    own: Option<Result<(u64, Arena), PosixError>>,
    peers: Vec<(Handle, Arc<Map>)>,
}

impl Process {
    /// As the environment says. A value that can't be is one line on stderr, and the default.
    pub fn from_env() -> Self {
        let on = std::env::var_os(SWITCH).is_none_or(|value| value != OsStr::new("off"));
        let bytes = arena::from_env().unwrap_or_else(|error| {
            once(Cause::Setting, format_args!("{error}: it is 256M now"));
            arena::DEFAULT
        });
        let read = || {
            let named = |error| once(Cause::Table, format_args!("{error}: choices are built in"));
            decisions().map_err(named).ok()
        };
        let decisions = if on { read() } else { None };
        let bound = timeout::from_env().unwrap_or_else(|error| {
            once(Cause::Setting, format_args!("{error}: there is no bound now"));
            None
        });
        Self { decisions, ..Self::new(on, bytes) }.bounded(bound)
    }

    /// With an arena of at most `arena_bytes`.
    pub fn new(on: bool, arena_bytes: u64) -> Self {
        let (attached, released) = (Word::zero(), Word::zero());
        // Beyond, an offer can't name a slice.
        let arena_bytes = arena_bytes.min(offer::MOST);
        let (waits, state) = (Arc::default(), Mutex::default());
        Self { on, arena_bytes, decisions: None, bound: None, attached, released, waits, state }
    }

    /// The same with a bound of each wait.
    pub fn bounded(self, bound: Option<Duration>) -> Self {
        Self { bound, ..self }
    }

    /// Nothing that panics runs under the lock; if it did, the state is one between two whole steps.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does now what else the first offer and the first attachment would.
    pub fn prepare(&self) {
        if self.on {
            self.state().own(self.arena_bytes);
            wait::crowded(core::iter::once(std::process::id()), 1);
        }
    }

    /// Reserves room for a communicator of `ranks`; answers the offer.
    pub fn offer(&self, ranks: u32) -> Words {
        if self.on && ranks <= 1 {
            return Owner::default().refuse(ranks, Reason::Alone);
        }
        self.offer_level(ranks)
    }

    /// The same for the ranks of one node among several: it may be one.
    pub fn offer_level(&self, ranks: u32) -> Words {
        if !self.on {
            return Owner::default().refuse(ranks, Reason::Off);
        }
        let mut state = self.state();
        let Some((node, arena)) = state.own(self.arena_bytes) else {
            return Owner::default().refuse(ranks, Reason::Refused);
        };
        let reserved = arena.reserve(ranks, &mut arena::alive);
        say(arena);
        let offer = match reserved {
            Some(reserved) => {
                let (handle, arena) = (*arena.handle(), arena.bytes());
                Offer { node, handle, arena, reserved }.encode(ranks)
            }
            None => Owner { node, pid: arena.handle().pid }.refuse(ranks, Reason::Full),
        };
        offer::with_table(offer, self.decisions.map_or(0, Decisions::hash))
    }

    /// Takes the best of all offers; `rank` is this process's.
    pub fn attach(
        &self,
        offers: &[Words],
        rank: Rank,
        local_ranks: u32,
        progress: Option<Progress>,
    ) -> (Reason, Lease) {
        if !self.on {
            return (Reason::Off, Lease::default());
        }
        let yields = |offers| wait::crowded(offer::pids(offers), local_ranks);
        self.take(offers, rank, offer::choose(offers), |slice, own| {
            let choices = self.choices(&slice, rank, offers);
            self.handle((slice, own, rank, choices), yields(offers), progress)
        })
    }

    /// The same for the ranks of one node among several. The lease has no communicator: [`Lease::level`] is what it has.
    pub fn attach_level(&self, offers: &[Words], rank: Rank) -> (Reason, Lease) {
        if !self.on {
            return (Reason::Off, Lease::default());
        }
        let chosen = match offers {
            [_] => offer::slice_of(offers, 0).map(|offer| (0, offer)).ok_or(Reason::Full),
            _ => offer::choose(offers),
        };
        self.take(offers, rank, chosen, |slice, own| {
            let choices = self.choices(&slice, rank, offers);
            Ok(Attached { slice, rank, own, choices, comm: core::ptr::null_mut() })
        })
    }

    /// What `Auto` means on a slice: by the table that all ranks have, else as built in, on each of them.
    fn choices(&self, slice: &Slice, rank: Rank, offers: &[Words]) -> Option<&'static Choices> {
        self.agreed(rank, offers, "choices are built in")?.choices(slice.plan().layout())
    }

    /// How messages go between `nodes` nodes: by the table that the ranks of all of them have, whose offers these are, else as
    /// built in.
    pub fn between(&self, nodes: u32, rank: Rank, offers: &[Words]) -> Option<Between> {
        let rules = self.agreed(rank, offers, "choices between nodes are built in").map_or(&[][..], Decisions::rules);
        // A table that can't be cut was refused when it was read.
        Between::cut(rules, nodes).ok()
    }

    /// The table, if all ranks have the same; rank 0 says what follows if not.
    fn agreed(&self, rank: Rank, offers: &[Words], else_: &str) -> Option<&'static Decisions> {
        let Some(other) = offer::other_table(offers) else { return self.decisions };
        if rank == 0 {
            let text = "another decision table than rank 0";
            once(Cause::Table, format_args!("rank {other} has {text} ({TABLE}, {RULES}): {else_}"));
        }
        None
    }

    fn take(
        &self,
        offers: &[Words],
        rank: Rank,
        chosen: Result<(Rank, Offer), Reason>,
        attach: impl FnOnce(Slice, bool) -> Result<Attached, Reason>,
    ) -> (Reason, Lease) {
        let chosen = chosen.and_then(|chosen| {
            // A rank that is none has no offer.
            if (rank as usize) < offers.len() { Ok(chosen) } else { Err(Reason::Refused) }
        });
        let mine = offer::slice_of(offers, rank);
        let taken = {
            let mut state = self.state();
            let taken = chosen.and_then(|(owner, offer)| state.take(&offer, owner == rank, offers.len() as u32));
            match (&taken, mine) {
                (Ok((_, true)), _) | (_, None) => {}
                (_, Some(mine)) => state.give_up(&mine),
            }
            taken
        };
        match taken.and_then(|(slice, own)| attach(slice, own)) {
            Ok(attached) => (Reason::Attached, Lease(Some(attached))),
            Err(reason) => (reason, Lease::default()),
        }
    }

    /// How this process waits.
    pub fn patient(&self, yields: bool, progress: Option<Progress>) -> SpinThen<Bounded<Patient>> {
        let host = Bounded::new(Patient::new(yields, progress, Arc::clone(&self.waits)), self.bound);
        if yields { SpinThen::crowded(host) } else { SpinThen::spinning(host) }
    }

    fn handle(
        &self,
        (slice, own, rank, choices): (Slice, bool, Rank, Option<&'static Choices>),
        yields: bool,
        progress: Option<Progress>,
    ) -> Result<Attached, Reason> {
        let wait: Waiting = self.patient(yields, progress).map(|host| Patience(Box::new(host)));
        // SAFETY: the slice lies beside the handle in the lease, and is dropped after it was freed.
        let segment = unsafe { slice.segment() };
        let layout = *slice.plan().layout();
        let beside = choices.map(|_| Box::new(Chosen(choices)) as Box<dyn Beside>);
        match Comm::allocate_beside(segment, (layout, rank, Base::default()), wait, beside).ok() {
            Some(comm) => Ok(Attached { slice, rank, own, choices, comm }),
            None => {
                if own && let Some((_, arena)) = self.state().arena() {
                    arena.give_up(slice.offset());
                }
                once(Cause::Handle, "no memory for a communicator");
                Err(Reason::Refused)
            }
        }
    }

    /// All agreed, or not: answers the communicator, or gives up what was attached.
    pub fn settle(&self, lease: &mut Lease, agreed: bool) -> Option<*mut Comm> {
        if agreed {
            let Attached { slice, own, comm, .. } = lease.0.as_ref()?;
            if *own && let Some((_, arena)) = self.state().arena() {
                arena.lease(slice.offset(), Arc::default());
            }
            self.attached.fetch_add(1);
            return Some(*comm);
        }
        let Attached { slice, own, comm, .. } = lease.0.take()?;
        // SAFETY: made by `handle`, and given to nobody.
        unsafe { unisono_free(comm) };
        if own && let Some((_, arena)) = self.state().arena() {
            arena.give_up(slice.offset());
        }
        None
    }

    /// This rank is done.
    pub fn release(&self, lease: Lease) {
        let Some(Attached { slice, rank, comm, .. }) = lease.0 else { return };
        // SAFETY: made by `handle`; the caller of `unisono_mpi_release` promises that it is not used any more.
        if unsafe { unisono_free(comm) } != UNISONO_OK {
            // A call uses it all the same: then this rank never leaves, and the slice stays in use.
            core::mem::forget(slice);
            return;
        }
        // Slices are made zero for their next communicator, which is always the first there.
        slice.leave(rank, Term::FIRST.epoch, None);
        self.released.fetch_add(1);
        if let Some((_, arena)) = self.state().arena() {
            arena.collect_some();
            say(arena);
        }
    }

    /// The sums, after looking which leases are free.
    pub fn sums(&self) -> Sums {
        let mut state = self.state();
        let room = state.arena().map(|(_, arena)| {
            arena.collect(usize::MAX, &mut arena::alive);
            say(arena);
            (arena.used(), arena.room())
        });
        let sum = |word: &Word| Counter::load_acquire(word).unchecked();
        Sums {
            waits: sum(&self.waits.waits),
            progressed: sum(&self.waits.progressed),
            arena: room.map_or(0, |(_, room)| room.total()),
            used: room.map_or(0, |(used, _)| used),
            most_used: room.map_or(0, |(_, room)| room.most_used()),
            attached: sum(&self.attached),
            released: sum(&self.released),
        }
    }
}

/// Says once that the system took no memory back.
fn say(arena: &mut Arena) {
    if let Some(error) = arena.take_refusal() {
        once(Cause::Punch, format_args!("{error}; freed communicators keep their memory for later ones"));
    }
}

impl State {
    /// Node and arena, if they were made.
    fn arena(&mut self) -> Option<(u64, &mut Arena)> {
        let (node, arena) = self.own.as_mut()?.as_mut().ok()?;
        Some((*node, arena))
    }

    /// The same, made now if nobody has tried yet.
    fn own(&mut self, bytes: u64) -> Option<(u64, &mut Arena)> {
        if self.own.is_none() {
            let made = node::identity().and_then(|node| Ok((node, Arena::create(0, bytes)?)));
            if let Err(error) = &made {
                once(
                    Cause::Arena,
                    format_args!("no arena ({}): {error}; communicators stay with the MPI", arena::VARIABLE),
                );
            }
            self.own = Some(made);
        }
        self.arena()
    }

    /// The slice on offer, and whether it is one of this process's own arena.
    fn take(&mut self, offer: &Offer, own: bool, ranks: u32) -> Result<(Slice, bool), Reason> {
        if own {
            let slice = self.arena().and_then(|(_, arena)| arena.reserved(offer.reserved.offset).cloned());
            // What this process has on offer it knows: the plan is its own.
            return slice
                .filter(|slice| slice.plan().ranks() == ranks)
                .map(|slice| (slice, true))
                .ok_or(Reason::Refused);
        }
        let plan = Plan::new(ranks, offer.reserved.small).ok_or(Reason::Refused)?;
        let map = self.peer(&offer.handle, offer.arena).map_err(|error| {
            once(Cause::Peer, format_args!("{error}; communicators stay with the MPI"));
            Reason::Refused
        })?;
        Slice::new(map, offer.reserved.offset, plan).map(|slice| (slice, false)).ok_or(Reason::Refused)
    }

    /// The map of another process's arena: opened, checked and mapped once.
    fn peer(&mut self, handle: &Handle, bytes: u64) -> Result<Arc<Map>, PosixError> {
        let known = self.peers.iter().find(|(known, _)| known == handle);
        if let Some((_, map)) = known {
            return Ok(Arc::clone(map));
        }
        let map = Sealed::open(handle, bytes)?.map()?;
        map.keep_from_children()?;
        let map = Arc::new(map);
        self.peers.push((*handle, Arc::clone(&map)));
        Ok(map)
    }

    fn give_up(&mut self, offer: &Offer) {
        if let Some((_, arena)) = self.arena() {
            arena.give_up(offer.reserved.offset);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
