//! A communicator over several nodes: a segment in each, messages between them (`unisono_kernel::hier`).
//!
//! The shim makes one where the ranks of an MPI communicator live on several nodes, and calls it from then on.

pub mod alltoall;
pub mod blocks;
mod row;

use crate::Bounded;
use crate::messages::{Endpoint, Layer};
use crate::offer::{self, Words};
use crate::process::{Lease, Process};
use crate::wait::{Patient, Progress};
use core::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};
use unisono_c::error::{Failure, answer};
use unisono_c::operation::{COp, operation};
use unisono_kernel::Rank;
use unisono_kernel::algorithm::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::comm::{Comm, Member};
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Cause, Error, Poison, PollError, Refusal, WaitError};
use unisono_kernel::hier::{self, Home, Nodes, SEGMENT, allreduce, barrier, bcast, reduce};
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::drive::Stop;
use unisono_kernel::machine::p2p::P2p;
use unisono_kernel::machine::poll::{Poll, Source, WaitSet};
use unisono_kernel::machine::transport::{Observe, Shared, Wait};
use unisono_kernel::machine::wait::{Relax, SpinThen};
use unisono_kernel::msg::{Memory, PlanError};
use unisono_kernel::op::Op;
use unisono_kernel::table::Between;
use unisono_shm::Mapped;

/// Bytes of working memory that are kept between calls.
const KEPT: usize = 16 << 20;

type Context = hier::Levels<Mapped, Endpoint>;
type Called = Result<(), Failure>;

/// `unisono_mpi_levels`, opaque in C: one call at a time uses it.
#[derive(Debug)]
pub struct Levels {
    state: Mutex<State>,
    /// The segment; given back after the state is gone.
    lease: Lease,
}

#[derive(Debug)]
struct State {
    place: Place,
    between: Between,
    engine: Engine,
}

/// Where everyone is.
#[derive(Debug)]
struct Place {
    homes: Vec<Home>,
    leaders: Vec<Rank>,
    /// The ranks, node by node.
    order: Vec<Rank>,
    me: Rank,
}

impl Place {
    fn new(nodes: &[u32], me: Rank) -> Self {
        let (homes, leaders) = homes(nodes);
        let mut order: Vec<Rank> = (0..homes.len() as u32).collect();
        order.sort_by_key(|&rank| nodes.get(rank as usize));
        Self { homes, leaders, order, me }
    }

    fn nodes(&self) -> Result<Nodes<'_>, Refusal> {
        Nodes::new(&self.homes, &self.leaders, self.me)
    }
}

/// What runs machines.
#[derive(Debug)]
struct Engine {
    x: Context,
    wait: SpinThen<Both>,
    scratch: Vec<u8>,
    /// The ranks of this node, and those of all others.
    inside: Vec<Rank>,
    outside: Vec<Rank>,
}

/// Waiting for words of this node's ranks, and for messages of any: who is late has the number that [`hier::Levels`] gives it.
#[derive(Debug)]
struct Both {
    host: Bounded<Patient>,
    /// Number of ranks of this node.
    inside: u32,
}

impl Relax for Both {
    fn begin(&mut self) {
        self.host.begin();
    }

    fn relax(&mut self, on: &WaitSet) -> Result<(), WaitError> {
        self.host.relax(on).map_err(|error| self.named(error, on))
    }
}

impl Both {
    const fn named(&self, error: WaitError, on: &WaitSet) -> WaitError {
        match (error, on.first().source) {
            (WaitError::Late(rank), Source::Message(_)) => WaitError::Late(self.inside.saturating_add(rank)),
            _ => error,
        }
    }
}

/// Where ranks live that are on these nodes, and each node's first rank.
fn homes(nodes: &[u32]) -> (Vec<Home>, Vec<Rank>) {
    let (mut counts, mut homes, mut leaders) = (Vec::new(), Vec::with_capacity(nodes.len()), Vec::new());
    for (rank, &node) in (0..).zip(nodes) {
        // Nodes are numbered in the order of their first ranks.
        if node as usize >= counts.len() {
            counts.push(0);
            leaders.push(rank);
        }
        let inside = counts.get_mut(node as usize).map_or(0, |count| std::mem::replace(count, *count + 1));
        homes.push(Home { node, rank: inside });
    }
    (homes, leaders)
}

impl Levels {
    /// Of rank `me`; `nodes` is each rank's, numbered in the order of their first ranks; `between` is cut to their number.
    ///
    /// # Errors
    /// The lease is none of a node's ranks; `me` is no rank.
    pub fn new(
        process: &Process,
        lease: Lease,
        messages: Endpoint,
        (nodes, between): (&[u32], Between),
        me: Rank,
        (yields, progress): (bool, Option<Progress>),
    ) -> Result<Self, Failure> {
        // SAFETY: the lease goes with this value, after the state.
        let (segment, layout, rank) = unsafe { lease.level() }.ok_or(Failure::Memory)?;
        let place = Place::new(nodes, me);
        place.nodes()?;
        let mut comm = Comm::new(segment, layout, rank)?;
        comm.member_mut().set_choices(lease.choices());
        let x = Context { comm, messages };
        let inside = layout.ranks();
        let wait = process.patient(yields, progress).map(|host| Both { host: host.halved(), inside });
        let here = nodes.get(me as usize);
        let (inside, outside) = place.order.iter().partition(|&&rank| nodes.get(rank as usize) == here);
        let engine = Engine { x, wait, scratch: Vec::new(), inside, outside };
        Ok(Self { state: Mutex::new(State { place, between, engine }), lease })
    }

    /// What is left when all calls have ended: the segment, to be released. Messages have ended, too; after an error the MPI may
    /// read what no receiver has taken for as long as it runs, so that stays.
    pub fn into_lease(self) -> Lease {
        let Self { state, lease } = self;
        let mut state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if state.engine.x.poison().is_some() {
            while state.engine.x.messages.news().is_some() {}
            core::mem::forget(state);
        }
        lease
    }

    /// Tells all ranks that this one can't take part any more.
    pub fn report(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            state.engine.poison(Cause::Died);
        }
    }

    /// Whatever this rank refuses is told to all: they shall not wait for it.
    fn call(&self, call: impl FnOnce(&mut State) -> Called) -> Called {
        let mut state = self.state.try_lock().map_err(|_| Failure::Busy)?;
        let result = call(&mut state);
        if let Err(Failure::Refused(refusal)) = &result
            && state.engine.x.poison().is_none()
        {
            state.engine.poison(Cause::Refused(*refusal));
        }
        result
    }
}

impl Engine {
    /// This rank can't take part: all others learn why.
    fn poison(&mut self, cause: Cause) {
        let me = self.x.comm.member();
        let mine = Poison { rank: me.rank(), operation: me.operation() + 1, cause };
        let counts = self.x.comm.poison_with(mine);
        self.tell(counts);
    }

    /// Tells the other nodes; this one's ranks look at their segment.
    fn tell(&mut self, poison: Poison) {
        let poison = self.named(poison);
        self.x.messages.tell(self.outside.iter().copied(), poison);
    }

    /// How a call ends that `stop` has ended. Who was told has nobody to tell.
    fn fail(&mut self, stop: Stop) -> Failure {
        let told = matches!(stop, Stop::Wait(WaitError::Poisoned(_)));
        let error = match self.x.comm.fail(stop) {
            Error::Poisoned(poison) => Error::Poisoned(self.named(poison)),
            Error::Poll(PollError::Mismatch { peer, refusal }) => {
                Error::Poll(PollError::Mismatch { peer: self.rank(peer), refusal })
            }
            Error::Poll(PollError::Overrun { peer, expected, found }) => {
                Error::Poll(PollError::Overrun { peer: self.rank(peer), expected, found })
            }
            other => other,
        };
        if let Some(poison) = self.x.poison()
            && !told
        {
            self.tell(poison);
        }
        self.x.messages.give_up();
        error.into()
    }

    /// Halves of the bound after which a rank is given up.
    fn halves(&self, number: Rank) -> u32 {
        if number as usize >= self.inside.len() {
            3
        } else if self.x.comm.waits(number) {
            4
        } else {
            2
        }
    }

    /// A rank of the communicator, by its number in poison.
    fn rank(&self, number: Rank) -> Rank {
        let other = number.saturating_sub(self.inside.len() as Rank);
        self.inside.get(number as usize).copied().unwrap_or(other)
    }

    fn named(&self, poison: Poison) -> Poison {
        Poison { rank: self.rank(poison.rank), ..poison }
    }

    /// So much working memory.
    fn scratch(&mut self, bytes: u64) -> Result<Buf, Failure> {
        let short = (bytes as usize).saturating_sub(self.scratch.len());
        if self.scratch.try_reserve(short).is_err() {
            // Nobody shall wait for this rank.
            self.poison(Cause::Died);
            return Err(Failure::Memory);
        }
        self.scratch.resize((bytes as usize).max(self.scratch.len().min(KEPT)), 0);
        self.scratch.shrink_to(KEPT);
        Ok(Buf::of_mut(&mut self.scratch))
    }

    /// Makes the machine of the next operation, in `scratch` bytes of working memory, and runs it.
    fn run<M: Machine<Context>>(
        &mut self,
        scratch: u64,
        make: impl FnOnce(&mut Member, Buf) -> Result<M, Refusal>,
    ) -> Called {
        if let Some(poison) = self.x.poison() {
            return Err(Error::Poisoned(self.named(poison)).into());
        }
        let scratch = self.scratch(scratch)?;
        let mut machine = make(self.x.shared().1, scratch)?;
        self.drive(&mut machine).map_err(|stop| self.fail(stop))
    }

    /// As [`unisono_kernel::machine::drive::run`], but a rank that is late may itself wait: whoever waits for the one that never came shall
    /// say so first. A rank of this node says whether it waits; one of another node may wait for its node.
    fn drive(&mut self, machine: &mut impl Machine<Context>) -> Result<(), Stop> {
        let mut halves = 1;
        while let Poll::Wait(on) = machine.poll(&mut self.x).map_err(Stop::Poll)? {
            match self.wait.wait(&mut self.x, &on) {
                Ok(()) => halves = 1,
                Err(WaitError::Late(number)) if halves < self.halves(number) => {
                    halves += 1;
                    // Says that this rank waits, and asks for news.
                    self.x.compare().map_err(Stop::Wait)?;
                }
                Err(error) => return Err(Stop::Wait(error)),
            }
        }
        Ok(())
    }

    /// What `peer` says does not fit what this rank says: told to all.
    fn disagree(&mut self, peer: Rank, refusal: Refusal) -> Failure {
        self.poison(Cause::Refused(refusal));
        Error::Poll(PollError::Mismatch { peer, refusal }).into()
    }
}

impl State {
    fn barrier(&mut self) -> Called {
        let how = (self.between.barrier(), BarrierAlgorithm::Auto);
        let nodes = self.place.nodes()?;
        self.engine.run(0, |me, _| barrier::machine(me, nodes, how))
    }

    fn bcast(&mut self, buffer: Buf, root: Rank) -> Called {
        let how = (self.between.bcast(buffer.len() as u64), BcastAlgorithm::Auto, SEGMENT);
        let nodes = self.place.nodes()?;
        // SAFETY: the caller's memory, for as long as the call runs; after an error the MPI may read it, as
        // docs/howto/messages-over-mpi.md says.
        self.engine.run(0, |me, _| unsafe { bcast::machine(me, nodes, buffer, root, how) })
    }

    fn reduce(&mut self, send: Buf, receive: Buf, op: Op, root: Rank) -> Called {
        let Self { place, between, engine } = self;
        let (bytes, nodes) = (send.len() as u64, place.nodes()?);
        let plan = reduce::plan(nodes, bytes, op, root, (between.reduce(bytes), SEGMENT)).map_err(refused)?;
        // SAFETY: as in `bcast`.
        engine.run(plan.scratch(), |me, scratch| unsafe { plan.machine(me, send, receive, scratch) })
    }

    fn allreduce(&mut self, send: Buf, receive: Buf, op: Op) -> Called {
        let Self { place, between, engine } = self;
        let (bytes, nodes) = (send.len() as u64, place.nodes()?);
        let plan = allreduce::plan(nodes, bytes, op, (between.allreduce(bytes, op.commutative()), SEGMENT));
        let plan = plan.map_err(refused)?;
        // SAFETY: as in `bcast`.
        engine.run(plan.scratch(), |me, scratch| unsafe { plan.machine(me, send, receive, scratch) })
    }
}

/// Why there is no plan. The algorithms that are chosen here apply to all predefined operations, and those commute.
fn refused(error: PlanError) -> Failure {
    match error {
        PlanError::Refused(refusal) => refusal,
        _ => Refusal::new(Argument::Operation, 0, Bound::AtLeast(1)),
    }
    .into()
}

/// `UNISONO_IN_PLACE`.
const IN_PLACE: usize = usize::MAX;

/// `count` elements at `address`.
fn elements(address: *const c_void, count: u64, op: &Op) -> Result<Buf, Refusal> {
    bytes(address, count.saturating_mul(op.element()))
}

fn bytes(address: *const c_void, bytes: u64) -> Result<Buf, Refusal> {
    let most = Refusal::check(Argument::Bytes, bytes, Bound::AtMost(isize::MAX as u64))?;
    Ok(if bytes == 0 { Memory::NOTHING } else { Buf::new(address.cast_mut().cast(), most as usize) })
}

/// `len` bytes at `address`, unless it is in place.
fn unless_in_place(address: *const c_void, len: u64) -> Result<Option<Buf>, Refusal> {
    if address.addr() == IN_PLACE { Ok(None) } else { bytes(address, len).map(Some) }
}

/// Lengths and places of blocks, one for each of so many ranks.
///
/// # Safety
/// Each list is null, or has so many numbers for as long as the call runs.
unsafe fn lists<'l>(
    counts: *const u64,
    displacements: *const u64,
    ranks: usize,
) -> Result<(&'l [u64], &'l [u64]), Failure> {
    for (list, name) in [(counts, "counts"), (displacements, "displacements")] {
        if list.is_null() {
            return Err(Failure::Null(name));
        }
    }
    // SAFETY: not null; the caller's promise.
    let counts = unsafe { core::slice::from_raw_parts(counts, ranks) };
    // SAFETY: as above.
    Ok((counts, unsafe { core::slice::from_raw_parts(displacements, ranks) }))
}

/// Both operands of a reduction.
fn sides(send: *const c_void, receive: *mut c_void, count: u64, op: &Op) -> Result<(Buf, Buf), Refusal> {
    let result = elements(receive, count, op)?;
    Ok((if send.addr() == IN_PLACE { result } else { elements(send, count, op)? }, result))
}

/// Joins the levels: `layer` is connected over all ranks, `lease` attached by [`Process::attach_level`] and agreed on.
///
/// # Safety
/// See [`crate::unisono_mpi_levels_attach`].
pub(crate) unsafe fn join(
    process: &Process,
    lease: Lease,
    layer: *const Layer,
    offers: &[Words],
    me: Rank,
    waiting: (bool, Option<Progress>),
) -> Option<Levels> {
    let nodes = offer::nodes(offers)?;
    let between = process.between(nodes.iter().max()? + 1, me, offers)?;
    // SAFETY: the caller's promise: a layer.
    let layer = unsafe { layer.read() };
    // SAFETY: the caller's promise: connected, and nobody else's.
    let messages = unsafe { Endpoint::new(layer) };
    Levels::new(process, lease, messages, (&nodes, between), me, waiting).ok()
}

/// Runs a call on what is behind `levels`.
///
/// # Safety
/// `levels` is null, or comes from `unisono_mpi_levels_settle` and was not released.
unsafe fn with(levels: *const Levels, call: impl FnOnce(&mut State) -> Called) -> c_int {
    // SAFETY: the caller's promise; what changes is behind a lock.
    let levels = unsafe { levels.as_ref() };
    answer(levels.ok_or(Failure::Null("levels")).and_then(|levels| levels.call(call)))
}

/// As `unisono_barrier`.
///
/// # Safety
/// `levels` comes from `unisono_mpi_levels_settle` and was not released: here, and of all below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_barrier(levels: *const Levels) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(levels, State::barrier) }
}

/// As `unisono_bcast`.
///
/// # Safety
/// `buffer` is `len` bytes: readable at the root, writable elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_bcast(
    levels: *const Levels,
    buffer: *mut c_void,
    len: u64,
    root: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(levels, |state| state.bcast(bytes(buffer, len)?, root)) }
}

/// As `unisono_reduce`.
///
/// # Safety
/// `send` is `UNISONO_IN_PLACE` or points to `count` elements; at the root `receive` does, writable, apart from `send`. `op` is
/// a number, or as `unisono.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_reduce(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
    root: u32,
) -> c_int {
    let call = |state: &mut State| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        let (send, receive) = match state.place.me == root {
            true => sides(send, receive, count, &op)?,
            false => (elements(send, count, &op)?, Memory::NOTHING),
        };
        state.reduce(send, receive, op, root)
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_allreduce`.
///
/// # Safety
/// As [`unisono_mpi_levels_reduce`], on every rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_allreduce(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    count: u64,
    datatype: c_int,
    op: *const COp,
) -> c_int {
    let call = |state: &mut State| {
        // SAFETY: the caller's promise.
        let op = unsafe { operation(datatype, op) }?;
        let (send, receive) = sides(send, receive, count, &op)?;
        state.allreduce(send, receive, op)
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// Tells all ranks that this one can't take part any more.
///
/// # Safety
/// As [`unisono_mpi_levels_barrier`], or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_report(levels: *const Levels) {
    // SAFETY: the caller's promise.
    if let Some(levels) = unsafe { levels.as_ref() } {
        levels.report();
    }
}

#[cfg(test)]
mod tests;
