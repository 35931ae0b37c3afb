//! A process's state, and the life of one communicator in it.
//!
//! ```text
//! offer   -> a slice of the process's own arena is reserved
//! attach  -> all offers are known: the own slice is chosen or given up; the chosen one is mapped, the handle made
//! settle  -> all ranks could attach: the handle is used; otherwise handle and slice are given up
//! release -> the handle is freed, then the rank leaves the slice; the owner reuses it when all ranks have left
//! ```

mod agreed;

pub use agreed::ruled;

use crate::Bounded;
use crate::network::Switch;
use crate::node;
use crate::offer::{self, Offer, Owner, Reason, Words};
use crate::say::{Cause, once};
use crate::wait::{self, Patient, Progress};
use core::fmt;
use core::ptr::NonNull;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use unisono_c::comm::{Handle as Comm, HostState, unisono_free};
use unisono_c::error::UNISONO_OK;
use unisono_c::waiting::{Patience, Waiting};
use unisono_kernel::Rank;
use unisono_kernel::machine::wait::SpinThen;
use unisono_kernel::region::{Base, Counter, Layout, Term, Word};
use unisono_kernel::table::Choices;
use unisono_posix::PosixError;
use unisono_posix::arena::{self, Arena, Plan, Queues, Slice};
use unisono_posix::binding;
use unisono_posix::decisions::{Decisions, decisions};
use unisono_posix::heap::{self, Heap};
use unisono_posix::lending::{self, LendFrom, Lenders, Windows};
use unisono_posix::pages::{Kind, Pages};
use unisono_posix::placement::{self, Summary};
use unisono_posix::policy::Policy;
use unisono_posix::sealed::{Handle, Map, Sealed};
use unisono_posix::timeout;
use unisono_shm::Mapped;

/// Environment variable: with `off` all calls go to the underlying MPI.
pub const SWITCH: &str = "UNISONO";

/// Environment variable: statistics are printed at the end.
const STATS: &str = "UNISONO_STATS";

/// Sums since the process's start: `unisono_mpi_sums_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sums {
    /// Number of waits that did not end at once.
    pub waits: u64,
    /// Bytes of this process's arena; 0 until it is made.
    pub arena: u64,
    /// Bytes of it that are in use or offered.
    pub used: u64,
    /// The largest value of `used` so far.
    pub most_used: u64,
    /// Number of communicators attached.
    pub attached: u64,
    /// Number of communicators released.
    pub released: u64,
    /// Number of messages that were lent, and read where they lay.
    pub lent: u64,
    /// Number of messages that were lent, and went through the segment because a rank could not read them.
    pub refused: u64,
    /// Number of pages of this process's parts of communicators that were looked up, if the environment asks for
    /// statistics: those that it has mapped.
    pub pages: u64,
    /// Number of them on another NUMA node than this process, or on one that is not known.
    pub elsewhere: u64,
    /// Number of calls in which messages between nodes went over their switches.
    pub over_switches: u64,
    /// What this process's heap holds, if it was made.
    pub heap: heap::Usage,
}

/// One communicator's memory in this process: `unisono_mpi_lease`.
#[derive(Debug, Default)]
pub struct Lease(Option<Attached>);

impl Lease {
    /// The segment of a node's ranks, its layout, and this process's rank in it.
    ///
    /// # Safety
    /// The lease lives as long as the view or a copy of it is used.
    pub unsafe fn level(&self) -> Option<(Mapped, Layout, Rank)> {
        let attached = self.0.as_ref()?;
        // SAFETY: the caller's promise.
        Some((unsafe { attached.segment() }, *attached.slice.plan().layout(), attached.rank))
    }

    /// What `Auto` means in the communicator; `None`: the built-in rules.
    pub fn choices(&self) -> Option<&'static Choices> {
        self.0.as_ref().and_then(|attached| attached.choices)
    }
}

#[derive(Debug)]
struct Attached {
    slice: Slice,
    rank: Rank,
    /// The slice is in this process's own arena.
    own: bool,
    /// The choices by the table that all ranks have.
    choices: Option<&'static Choices>,
    /// The loans among the ranks of the segment.
    lenders: Box<Lenders>,
    /// Null in a communicator over several nodes.
    comm: *mut Comm,
}

impl Attached {
    /// The segment, whose ranks lend each other memory.
    ///
    /// # Safety
    /// This value lives as long as the view or a copy of it is used.
    unsafe fn segment(&self) -> Mapped {
        let lenders = NonNull::from_ref(&*self.lenders as &dyn unisono_shm::Lenders);
        // SAFETY: the caller's promise.
        let segment = unsafe { self.slice.segment() };
        // SAFETY: as above; the box keeps its address.
        unsafe { segment.with_lenders(lenders) }
    }
}

/// The host's state of a communicator's handle: its choices.
struct TableChoices(Option<&'static Choices>);

impl HostState for TableChoices {
    fn ended(&mut self, _: Option<Base>) {}

    fn choices(&self) -> Option<&'static Choices> {
        self.0
    }
}

// SAFETY: only this lease owns the handle, which any thread may use, one at a time.
unsafe impl Send for Attached {}

/// The state of a process.
#[derive(Debug)]
pub struct Process {
    on: bool,
    arena_bytes: u64,
    /// Its decision table.
    decisions: Option<&'static Decisions>,
    /// From which length on messages are lent that do not lie in the heap.
    lend_from: LendFrom,
    /// The longest wait.
    bound: Option<Duration>,
    /// How parts of communicators are placed on NUMA nodes.
    policy: Policy,
    /// Which switch connects its node to others.
    switch: Switch,
    /// Are pages looked up, for statistics?
    looks: bool,
    attached: Word,
    released: Word,
    waits: Arc<Word>,
    over_switches: Arc<Word>,
    loans: Arc<lending::Tally>,
    windows: Arc<Windows>,
    state: Mutex<State>,
}

/// The part that is made at first use.
#[derive(Debug, Default)]
struct State {
    /// `None`: not tried yet.
    own: Option<Result<Own, PosixError>>,
    /// The slices in use whose pages are looked up, with this process's rank in each.
    used: Vec<(Slice, Rank)>,
    /// Pages that were looked up when they were released, and how many of them lay elsewhere.
    pages: (u64, u64),
    /// The arenas of other processes that are mapped.
    peers: Vec<(Handle, Arc<Map>)>,
    /// How the memory of other processes is reached, by process; as long as a communicator needs it.
    reached: BTreeMap<(u32, u64), Weak<lending::Peer>>,
}

/// This process's node and arena.
#[derive(Debug)]
struct Own {
    node: u64,
    arena: Arena,
}

/// The slice of a chosen offer.
struct Taken {
    slice: Slice,
    /// It is in this process's own arena.
    own: bool,
}

impl Process {
    /// A process with the environment's settings. A wrong value is reported by one line on stderr, and the default is
    /// used.
    pub fn from_env() -> Self {
        let on = std::env::var_os(SWITCH).is_none_or(|value| value != OsStr::new("off"));
        let bytes = arena::from_env().unwrap_or_else(|error| {
            once(Cause::Setting, format_args!("{error}: it is 512M now"));
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
        match heap::Setting::from_env() {
            Err(error) => once(Cause::Setting, format_args!("{error}: it is off now")),
            Ok(Some(heap::Setting::Shared)) if on && !heap::is_preloaded() => {
                let missing = "needs libunisono_heap.so in LD_PRELOAD, too: the program's memory is its own now";
                once(Cause::Setting, format_args!("{}=shared {missing}", heap::VARIABLE));
            }
            Ok(_) => {}
        }
        let lend_from = LendFrom::setting().unwrap_or_else(|error| {
            once(Cause::Setting, format_args!("{error}: it is off now"));
            LendFrom::OFF
        });
        let policy = Policy::default().decide().unwrap_or_else(|error| {
            once(Cause::Setting, format_args!("{error}: it is none now"));
            Policy::FirstTouch
        });
        if let Err(error) = Pages::default().decide() {
            once(Cause::Setting, format_args!("{error}: it is default now"));
        }
        let looks =
            std::env::var_os(STATS).is_some_and(|value| !["", "0", "off"].iter().any(|off| value == OsStr::new(off)));
        let switch = if on { Switch::from_env() } else { Switch::Untold };
        Self { decisions, lend_from, policy, switch, looks, ..Self::new(on, bytes) }.bounded(bound)
    }

    /// A process with an arena of at most `arena_bytes` bytes; `on`: communicators may be attached.
    pub fn new(on: bool, arena_bytes: u64) -> Self {
        let (attached, released) = (Word::zero(), Word::zero());
        // In a larger arena an offer can't name every slice.
        let arena_bytes = arena_bytes.min(offer::MOST);
        let (waits, loans, windows, state) = (Arc::default(), Arc::default(), Arc::default(), Mutex::default());
        let over_switches = Arc::new(Word::zero());
        Self {
            on,
            arena_bytes,
            decisions: None,
            lend_from: LendFrom::OFF,
            bound: None,
            policy: Policy::default(),
            switch: Switch::Untold,
            looks: false,
            attached,
            released,
            waits,
            over_switches,
            loans,
            windows,
            state,
        }
    }

    /// The same with a longest wait.
    pub fn bounded(self, bound: Option<Duration>) -> Self {
        Self { bound, ..self }
    }

    /// Locks the state. Code under the lock does not panic; if it did, the state would still be consistent.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queues of the communicators that this process offers memory for.
    fn queues(&self) -> Queues {
        self.decisions.map_or(Queues::Large, Decisions::queues)
    }

    /// Does now what otherwise the first offer and the first attachment would do.
    pub fn prepare(&self) {
        if self.on {
            self.state().own(self.arena_bytes, self.queues());
            // Without a heap this process lends nothing that lies in one.
            let _none = own_heap();
            wait::crowded(core::iter::once(std::process::id()), 1);
        }
    }

    /// Reserves memory for a communicator of `ranks` ranks; returns the offer.
    pub fn offer(&self, ranks: u32) -> Words {
        if self.on && ranks <= 1 {
            return Owner::default().refuse(ranks, Reason::Alone);
        }
        self.offer_level(ranks)
    }

    /// The same for the ranks of one node among several; there may be one rank.
    pub fn offer_level(&self, ranks: u32) -> Words {
        if !self.on {
            return Owner::default().refuse(ranks, Reason::Off);
        }
        let mut state = self.state();
        let Some(&mut Own { node, ref mut arena }) = state.own(self.arena_bytes, self.queues()) else {
            return Owner::default().refuse(ranks, Reason::Refused);
        };
        let reserved = arena.reserve(ranks, 0, &mut arena::alive);
        say(arena);
        let offer = match reserved {
            Some(reserved) => {
                let (handle, arena) = (*arena.handle(), arena.bytes());
                let crowded = ranks > wait::cores();
                Offer { node, handle, arena, reserved, crowded }.encode(ranks)
            }
            None => Owner { node, pid: arena.handle().pid }.refuse(ranks, Reason::Full),
        };
        let offer = own_heap().map_or(offer, |heap| offer::with_heap(offer, heap.place()));
        let offer = offer::with_table(offer, self.decisions.map_or(0, Decisions::hash));
        offer::with_switch(offer, &self.switch)
    }

    /// Attaches to the best of all offers; `rank` is this process's.
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
        self.take(offers, rank, offer::choose(offers), |Taken { slice, own }| {
            self.hear_of_switches(rank, offers);
            let yields = wait::crowded(offer::pids(offers), local_ranks);
            let (choices, lenders) = (self.choices(&slice, rank, offers), self.lenders(offers, yields));
            let attached = Attached { slice, rank, own, choices, lenders, comm: core::ptr::null_mut() };
            self.handle(attached, yields, progress)
        })
    }

    /// The same for the ranks of one node among several. The lease has no communicator, but a segment
    /// ([`Lease::level`]).
    pub fn attach_level(&self, offers: &[Words], rank: Rank) -> (Reason, Lease) {
        if !self.on {
            return (Reason::Off, Lease::default());
        }
        let chosen = match offers {
            [_] => offer::slice_of(offers, 0).map(|offer| (0, offer)).ok_or(Reason::Full),
            _ => offer::choose(offers),
        };
        self.take(offers, rank, chosen, |Taken { slice, own }| {
            let crowded = wait::crowded(offer::pids(offers), offers.len() as u32);
            let (choices, lenders) = (self.choices(&slice, rank, offers), self.lenders(offers, crowded));
            Ok(Attached { slice, rank, own, choices, lenders, comm: core::ptr::null_mut() })
        })
    }

    /// The loans among the ranks of these offers; `crowded`: they share cores.
    fn lenders(&self, offers: &[Words], crowded: bool) -> Box<Lenders> {
        let reached = &mut self.state().reached;
        reached.retain(|_, peer| peer.strong_count() > 0);
        let peer = |(number, heap): (u32, Option<heap::Place>)| {
            let known = reached.entry((number, heap.map_or(0, |heap| heap.handle.inode))).or_default();
            known.upgrade().unwrap_or_else(|| {
                let peer = Arc::new(lending::Peer::new(number, heap));
                *known = Arc::downgrade(&peer);
                peer
            })
        };
        let peers = offer::owners(offers).map(peer).collect();
        let log = |words: fmt::Arguments<'_>| once(Cause::Copy, words);
        let lenders = Lenders::new(peers, heap::made(), self.lend_from, crowded, Some(log));
        Box::new(lenders.counted(Arc::clone(&self.loans)).with_windows(Arc::clone(&self.windows)))
    }

    /// Takes the slice of the chosen offer and calls `attach` with it; gives this process's own offer up if it was not
    /// chosen.
    fn take(
        &self,
        offers: &[Words],
        rank: Rank,
        chosen: Result<(Rank, Offer), Reason>,
        attach: impl FnOnce(Taken) -> Result<Attached, Reason>,
    ) -> (Reason, Lease) {
        let chosen = chosen.and_then(|chosen| {
            // A rank out of range has no offer.
            if (rank as usize) < offers.len() { Ok(chosen) } else { Err(Reason::Refused) }
        });
        let mine = offer::slice_of(offers, rank);
        let taken = {
            let mut state = self.state();
            let taken = chosen.and_then(|(owner, offer)| state.take(&offer, owner == rank, offers.len() as u32));
            match (&taken, mine) {
                (Ok(Taken { own: true, .. }), _) | (_, None) => {}
                (_, Some(mine)) => state.give_up(&mine),
            }
            taken
        };
        let placed = taken.inspect(|taken| self.place(&taken.slice, rank));
        match placed.and_then(attach) {
            Ok(attached) => (Reason::Attached, Lease(Some(attached))),
            Err(reason) => (reason, Lease::default()),
        }
    }

    /// Places this process's part of a communicator's memory on its NUMA node: before it accesses the memory, and before
    /// all ranks agree to use it, so before any does.
    fn place(&self, slice: &Slice, me: Rank) {
        let node = |rank| (rank == me).then(|| binding::numa_node().ok()).flatten();
        let placed = placement::of_slice(slice, me, (0..slice.plan().ranks()).map(node), self.policy);
        if let Err(error) = placed {
            once(Cause::Place, format_args!("{error}; each rank touches its part first"));
        }
    }

    /// Where calls are counted that go over the switches of nodes.
    pub fn over_switches(&self) -> Arc<Word> {
        Arc::clone(&self.over_switches)
    }

    /// How this process waits.
    pub fn patient(&self, yields: bool, progress: Option<Progress>) -> SpinThen<Bounded<Patient>> {
        let host = Bounded::new(Patient::new(yields, progress, Arc::clone(&self.waits)), self.bound);
        if yields { SpinThen::crowded(host) } else { SpinThen::spinning(host) }
    }

    /// Makes the handle of what was attached.
    fn handle(&self, attached: Attached, yields: bool, progress: Option<Progress>) -> Result<Attached, Reason> {
        let Attached { ref slice, rank, own, choices, .. } = attached;
        let wait: Waiting = self.patient(yields, progress).map(|host| Patience(Box::new(host)));
        // SAFETY: the lease keeps this with the handle, and drops it after the handle was freed.
        let segment = unsafe { attached.segment() };
        let layout = *slice.plan().layout();
        let host = choices.map(|_| Box::new(TableChoices(choices)) as Box<dyn HostState>);
        match Comm::allocate_with_host(segment, layout, rank, Base::default(), wait, host).ok() {
            Some(comm) => Ok(Attached { comm, ..attached }),
            None => {
                if own && let Some(Own { arena, .. }) = self.state().made() {
                    arena.give_up(slice.offset());
                }
                once(Cause::Handle, "no memory for a communicator");
                Err(Reason::Refused)
            }
        }
    }

    /// If all ranks agreed, returns the communicator; otherwise gives up what was attached.
    pub fn settle(&self, lease: &mut Lease, agreed: bool) -> Option<*mut Comm> {
        if agreed {
            let Attached { slice, rank, own, comm, .. } = lease.0.as_ref()?;
            if *own && let Some(Own { arena, .. }) = self.state().made() {
                arena.lease(slice.offset(), Arc::default(), 0);
            }
            if self.looks {
                self.state().used.push((slice.clone(), *rank));
            }
            if self.attached.fetch_add(1).is(0) {
                // The world's: it is used most, and from the start on.
                slice.populate(*rank);
            }
            return Some(*comm);
        }
        let Attached { slice, own, comm, .. } = lease.0.take()?;
        // SAFETY: made by `handle`, and not given out.
        unsafe { unisono_free(comm) };
        if own && let Some(Own { arena, .. }) = self.state().made() {
            arena.give_up(slice.offset());
        }
        None
    }

    /// Frees this rank's part of a communicator.
    pub fn release(&self, lease: Lease) {
        let Some(Attached { slice, rank, lenders, comm, .. }) = lease.0 else { return };
        // SAFETY: made by `handle`; the caller of `unisono_mpi_release` promises that it is not used any more.
        if unsafe { unisono_free(comm) } != UNISONO_OK {
            // A call still uses the handle: then this rank never leaves, and the slice stays in use.
            core::mem::forget((slice, lenders));
            return;
        }
        if self.looks {
            let (mut state, (pages, elsewhere)) = (self.state(), look_up(&slice, rank));
            state.used.retain(|(used, _)| !used.is(&slice));
            state.pages = (state.pages.0 + pages, state.pages.1 + elsewhere);
        }
        // Slices are zeroed for their next communicator, so its term is always the first.
        slice.leave(rank, Term::FIRST.epoch, None);
        self.released.fetch_add(1);
        if let Some(Own { arena, .. }) = self.state().made() {
            arena.collect_some();
            say(arena);
        }
    }

    /// The windows of the MPI in which messages are lent.
    pub fn windows(&self) -> Option<&Windows> {
        self.on.then_some(&*self.windows)
    }

    /// The sums, after a look at all leases.
    pub fn sums(&self) -> Sums {
        let mut state = self.state();
        let live = state.used.iter().map(|(slice, rank)| look_up(slice, *rank));
        let (pages, elsewhere) = live.fold(state.pages, |sum, found| (sum.0 + found.0, sum.1 + found.1));
        let room = state.made().map(|Own { arena, .. }| {
            arena.collect(usize::MAX, &mut arena::alive);
            say(arena);
            (arena.used(), arena.room())
        });
        let sum = |word: &Word| Counter::load_acquire(word).unchecked();
        Sums {
            pages,
            elsewhere,
            waits: sum(&self.waits),
            arena: room.map_or(0, |(_, room)| room.total()),
            used: room.map_or(0, |(used, _)| used),
            most_used: room.map_or(0, |(_, room)| room.most_used()),
            attached: sum(&self.attached),
            released: sum(&self.released),
            lent: sum(&self.loans.taken),
            refused: sum(&self.loans.refused),
            over_switches: sum(&self.over_switches),
            heap: heap::made().map(Heap::usage).unwrap_or_default(),
        }
    }
}

/// This process's heap, if it can be made. If huge pages were asked for, and it has ordinary ones, a line says why.
fn own_heap() -> Option<&'static Heap> {
    let heap = heap::of_process().ok()?;
    if heap.asked() == Pages::Huge && heap.place().kind == Kind::Ordinary {
        let why = heap.why();
        once(Cause::Pages, format_args!("huge pages were asked for, the heap has ordinary pages: {why}"));
    }
    Some(heap)
}

/// Looks up the pages of `rank`'s part of a slice that this process has mapped: their number, and how many of them are not
/// known to lie on this process's NUMA node.
fn look_up(slice: &Slice, rank: Rank) -> (u64, u64) {
    let Ok(node) = binding::numa_node() else { return (0, 0) };
    let Summary { checked, misplaced, unknown, .. } = placement::verify_slice(slice, rank, node).summary();
    (checked, misplaced + unknown)
}

/// Prints once that the system did not take memory back.
fn say(arena: &mut Arena) {
    if let Some(error) = arena.take_refusal() {
        once(Cause::Punch, format_args!("{error}; freed communicators keep their memory for later ones"));
    }
}

impl State {
    /// Node and arena, if they were made.
    fn made(&mut self) -> Option<&mut Own> {
        self.own.as_mut()?.as_mut().ok()
    }

    /// The same; makes them if that was not tried yet.
    fn own(&mut self, bytes: u64, queues: Queues) -> Option<&mut Own> {
        if self.own.is_none() {
            let arena = || Arena::create(0, bytes).map(|arena| arena.with_queues(queues));
            let made = node::identity().and_then(|node| Ok(Own { node, arena: arena()? }));
            if let Err(error) = &made {
                once(
                    Cause::Arena,
                    format_args!("no arena ({}): {error}; communicators stay with the MPI", arena::VARIABLE),
                );
            }
            self.own = Some(made);
        }
        self.made()
    }

    /// The slice of an offer; `own`: this process has made the offer.
    fn take(&mut self, offer: &Offer, own: bool, ranks: u32) -> Result<Taken, Reason> {
        if own {
            let slice = self.made().and_then(|Own { arena, .. }| arena.reserved(offer.reserved.offset).cloned());
            // The plan is the one that this process has reserved, not that of the words.
            return slice
                .filter(|slice| slice.plan().ranks() == ranks)
                .map(|slice| slice.with_crowded(offer.crowded))
                .map(|slice| Taken { slice, own: true })
                .ok_or(Reason::Refused);
        }
        let plan = Plan::new(ranks, offer.reserved.queues).ok_or(Reason::Refused)?.with_crowded(offer.crowded);
        let map = self.peer(&offer.handle, offer.arena).map_err(|error| {
            once(Cause::Peer, format_args!("{error}; communicators stay with the MPI"));
            Reason::Refused
        })?;
        let slice = Slice::new(map, offer.reserved.offset, plan).ok_or(Reason::Refused)?;
        Ok(Taken { slice, own: false })
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
        if let Some(Own { arena, .. }) = self.made() {
            arena.give_up(offer.reserved.offset);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
