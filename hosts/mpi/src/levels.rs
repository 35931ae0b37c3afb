//! A communicator over several nodes under an MPI: a segment in each, the MPI's messages between them. The collectives are the
//! kernel's ([`hier::Communicator`]); here are C's entry points, and what an MPI's process brings.
//!
//! The shim makes one where the ranks of an MPI communicator live on several nodes, and calls it from then on. Each function of a
//! collective runs the call, where `request` is null, or starts it ([`started`]).

pub mod alltoall;
pub mod blocks;
mod calls;
pub mod folds;
pub mod started;

use crate::Bounded;
use crate::messages::{Endpoint, Layer};
use crate::offer::{self, Words};
use crate::process::{Lease, Process};
use crate::wait::{Patient, Progress};
use calls::{Calls, Task};
use core::ffi::{c_int, c_void};
use core::fmt;
use spin::relax::{RelaxStrategy, Yield};
use started::Started;
use std::sync::{Mutex, MutexGuard, PoisonError};
use unisono_c::error::{Failure, answer};
use unisono_kernel::Rank;
use unisono_kernel::comm::Comm;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Error, Refusal};
use unisono_kernel::hier::{self, Call, Home, Lists, NUMBERS, Places, Scratch, Spans, Switches};
use unisono_kernel::machine::transport::Observe;
use unisono_kernel::machine::wait::SpinThen;
use unisono_kernel::msg::Memory;
use unisono_kernel::op::Op;
use unisono_kernel::pattern::bagds;
use unisono_kernel::table::Between;
use unisono_kernel::topology::group::Place;
use unisono_shm::Mapped;

/// Bytes of working memory that are kept between calls.
const KEPT: usize = 16 << 20;

type Called = Result<(), Failure>;
type Communicator = hier::Communicator<Preload>;

/// What a process under an MPI brings.
enum Preload {}

impl hier::Host for Preload {
    type Region = Mapped;
    type Messages = Endpoint;
    type Wait = SpinThen<Bounded<Patient>>;
    type Places = Vectors;
    type Scratch = Kept;
}

/// The lists of ranks and nodes.
#[derive(Debug)]
struct Vectors {
    homes: Vec<Home>,
    leaders: Vec<Rank>,
    order: Vec<Rank>,
    places: Vec<Place>,
    by_switch: Vec<Rank>,
    line: Vec<Rank>,
    stages: Vec<u64>,
    numbers: Vec<[u64; NUMBERS]>,
}

impl Vectors {
    fn new(ranks: usize, switched: usize, stages: usize) -> Self {
        let home = Home { node: 0, rank: 0 };
        Self {
            homes: vec![home; ranks],
            leaders: vec![0; ranks],
            order: vec![0; ranks],
            places: vec![Place::default(); switched],
            by_switch: vec![0; switched],
            line: vec![0; switched],
            stages: vec![0; stages],
            numbers: vec![[0; NUMBERS]; ranks],
        }
    }
}

impl Places for Vectors {
    fn lists(&mut self) -> Lists<'_> {
        let Self { homes, leaders, order, places, by_switch, line, stages, numbers } = self;
        Lists { homes, leaders, order, places, by_switch, line, stages, numbers }
    }
}

/// Working memory, which grows as calls need it.
#[derive(Debug, Default)]
struct Kept(Vec<u8>);

impl Scratch for Kept {
    fn room(&mut self, bytes: u64) -> Option<&mut [u8]> {
        let short = (bytes as usize).saturating_sub(self.0.len());
        self.0.try_reserve(short).ok()?;
        self.0.resize((bytes as usize).max(self.0.len().min(KEPT)), 0);
        self.0.shrink_to(KEPT);
        Some(&mut self.0)
    }
}

/// How a rank waits: does it yield, and what moves the MPI?
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Ranks share cores.
    pub yields: bool,
    /// Moves the MPI's own pending operations.
    pub progress: Option<Progress>,
}

impl Waiting {
    /// Between two looks at a call that was started.
    fn pause(&self) {
        if let Some(progress) = self.progress {
            progress(1);
        }
        if self.yields {
            Yield::relax();
        }
    }
}

/// `unisono_mpi_levels`, opaque in C: one call at a time uses it.
pub struct Levels {
    /// With the communicator. A call has it until it has ended; who moves those that were started, for a moment.
    calls: Mutex<Calls>,
    /// Whoever makes a call.
    caller: Mutex<()>,
    rank: Rank,
    size: u32,
    waiting: Waiting,
    /// The segment; given back after the communicator is gone.
    lease: Lease,
}

impl fmt::Debug for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Levels").field("rank", &self.rank).field("size", &self.size).finish_non_exhaustive()
    }
}

impl Levels {
    /// Of the ranks that `messages` connects; `nodes` is each rank's, numbered in the order of their first ranks, `switches` each
    /// node's, or nothing; `between` is cut to their number and levels.
    ///
    /// # Errors
    /// The lease is none of a node's ranks; `nodes` are not those of the messages' ranks, or `switches` not those of the nodes.
    pub fn new(
        process: &Process,
        lease: Lease,
        messages: Endpoint,
        (nodes, switches): (&[u32], &[u32]),
        between: Between,
        waiting: Waiting,
    ) -> Result<Self, Failure> {
        // SAFETY: the lease goes with this value, after the communicator.
        let (segment, layout, rank) = unsafe { lease.level() }.ok_or(Failure::Memory)?;
        let mut comm = Comm::new(segment, layout, rank)?;
        comm.member_mut().set_choices(lease.choices());
        let wait = process.patient(waiting.yields, waiting.progress).map(Bounded::halved);
        let count = nodes.iter().max().map_or(0, |last| last + 1);
        let mut work = vec![0; if between.needs_stages() { bagds::work_words(count) } else { 0 }];
        let stages = if work.is_empty() { 0 } else { bagds::table_words(count, bagds::stages(count, &mut work)?) };
        let (places, levels) = (Vectors::new(nodes.len(), switches.len(), stages), hier::Levels { comm, messages });
        let mut communicator = Communicator::new(levels, wait, places, Kept::default(), nodes, between)?;
        if !switches.is_empty() {
            communicator = communicator.over(switches)?;
        }
        if !work.is_empty() {
            communicator = communicator.in_stages(&mut work)?;
        }
        let (rank, size) = (communicator.rank(), communicator.size());
        let calls = Calls::new(communicator, process.over_switches());
        Ok(Self { calls: Mutex::new(calls), caller: Mutex::new(()), rank, size, waiting, lease })
    }

    /// What is left when all calls have ended: the segment, to be released. Messages have ended, too; after an error the MPI may
    /// read what no receiver has taken for as long as it runs, so that stays.
    pub fn into_lease(self) -> Lease {
        let Self { calls, lease, .. } = self;
        let calls = calls.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut communicator) = calls.into_communicator()
            && communicator.levels().poison().is_some()
        {
            // Takes what others have told.
            communicator.failure();
            core::mem::forget(communicator);
        }
        lease
    }

    /// Tells all ranks, when all calls before have ended, that this one can't take part any more.
    pub fn report(&self) {
        if let Ok(_caller) = self.caller.try_lock() {
            self.calls().report();
        }
    }

    /// After a panic, which is none of this code's, the calls are as they were.
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of ranks.
    const fn ranks(&self) -> usize {
        self.size as usize
    }
}

/// The result of a call as C has it: a refusal for want of working memory has a number of its own.
fn ended(result: Result<(), Error>) -> Called {
    result.map_err(|error| match error {
        Error::Refused(Refusal { argument: Argument::Scratch, .. }) => Failure::Memory,
        Error::Refused(refusal) => Failure::Refused(refusal),
        other => other.into(),
    })
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

/// A number for each of so many ranks.
///
/// # Safety
/// The list is null, or has so many numbers for as long as the call runs.
unsafe fn list<'l>(numbers: *const u64, name: &'static str, ranks: usize) -> Result<&'l [u64], Failure> {
    if numbers.is_null() {
        return Err(Failure::Null(name));
    }
    // SAFETY: not null; the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(numbers, ranks) })
}

/// Blocks, one for each of so many ranks.
///
/// # Safety
/// As [`list`], of both.
unsafe fn lists<'l>(counts: *const u64, displacements: *const u64, ranks: usize) -> Result<Spans<'l>, Failure> {
    // SAFETY: the caller's promise.
    let lengths = unsafe { list(counts, "counts", ranks) }?;
    // SAFETY: the caller's promise.
    Ok(Spans { lengths, starts: unsafe { list(displacements, "displacements", ranks) }? })
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
    waiting: Waiting,
) -> Option<Levels> {
    let nodes = offer::nodes(offers)?;
    let switches = process.switches(&nodes, me, offers);
    let between = process.between(nodes.iter().max()? + 1, Switches::levels(&switches), me, offers)?;
    // SAFETY: the caller's promise: a layer.
    let layer = unsafe { layer.read() };
    // SAFETY: the caller's promise: connected, and nobody else's.
    let messages = unsafe { Endpoint::new(layer) };
    Levels::new(process, lease, messages, (&nodes, &switches), between, waiting).ok()
}

/// Runs a call on what is behind `levels`, or starts it and writes its request. What is refused here is told to all ranks, too.
///
/// # Safety
/// `levels` is null, or comes from `unisono_mpi_levels_settle` and was not released; `request` is null, or may be written; the task's
/// buffers and lists are as [`Call`] says until it has ended.
unsafe fn with(
    levels: *const Levels,
    request: *mut *mut Started,
    task: impl FnOnce(&Levels) -> Result<Task, Failure>,
) -> c_int {
    // SAFETY: the caller's promise; what changes is behind a lock.
    let asked = unsafe { levels.as_ref() }.ok_or(Failure::Null("levels"));
    answer(asked.and_then(|levels| {
        let _caller = levels.caller.try_lock().map_err(|_| Failure::Busy)?;
        let mut calls = levels.calls();
        let task = match task(levels) {
            Err(failure @ (Failure::Refused(_) | Failure::Memory)) => Task::Failed(failure),
            made => made?,
        };
        if request.is_null() {
            // SAFETY: the caller's promise.
            return unsafe { calls.run(task, &levels.waiting) };
        }
        let begun = Started::new(levels, calls.start(task)?);
        calls.advance();
        // SAFETY: not null, writable by the caller's promise.
        unsafe { request.write(Box::into_raw(Box::new(begun))) };
        Ok(())
    }))
}

/// As `unisono_barrier`, or `unisono_ibarrier`.
///
/// # Safety
/// `levels` comes from `unisono_mpi_levels_settle` and was not released; `request` is null, or points to a pointer that may be written,
/// and buffers and lists stay as they must be for the call until the request is complete: here, and of all below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_barrier(levels: *const Levels, request: *mut *mut Started) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, |_| Ok(Task::Call(Call::Barrier))) }
}

/// As `unisono_bcast`, or `unisono_ibcast`.
///
/// # Safety
/// `buffer` is `len` bytes: readable at the root, writable elsewhere. After an error the MPI may read it, as
/// docs/howto/messages-over-mpi.md says: here, and of all below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_bcast(
    levels: *const Levels,
    buffer: *mut c_void,
    len: u64,
    root: u32,
    request: *mut *mut Started,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(levels, request, |_| Ok(Task::Call(Call::Bcast { buffer: bytes(buffer, len)?, root }))) }
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
