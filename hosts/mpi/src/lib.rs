//! Unisono under an MPI program: the functions that `shim/unisono_mpi.h` declares, and all of `unisono.h`.
//!
//! The shim in C calls MPI; this library does not. A communicator's ranks exchange [`offer`]s by two collectives of the
//! underlying MPI, and then share a slice of one rank's [`arena`](unisono_posix::arena).
//!
//! | module | contents |
//! |---|---|
//! | [`attach`] | attaching to an MPI communicator from Rust: collectives over messages |
//! | [`messages`] | messages of an MPI, as the kernel's point-to-point layer |
//! | [`compare`] | a collective's time beside that of the MPI's own |
//! | [`levels`] | a communicator over several nodes |
//! | [`program`] | an MPI that a program in Rust starts itself |
//! | [`process`] | a process's state: its arena, the peers' arenas; offer, attach, settle, release |
//! | [`network`] | the switch that connects a process's node to the others |
//! | [`offer`] | the offers, and the choice that all ranks make from them |
//! | [`node`] | which processes can share memory |
//! | [`wait`] | what a rank does while it waits |
//! | [`say`] | one line on stderr if the system refuses something |
//!
//! In a child of fork nothing of it is used: the child's offers are empty, and its releases do nothing.
//!
//! Nothing here panics or ends the process.

pub mod attach;
pub mod compare;
pub mod levels;
pub mod messages;
pub mod network;
pub mod node;
pub mod offer;
pub mod process;
pub mod program;
pub mod say;
pub mod wait;

pub use unisono_c::waiting::Bounded;

use crate::levels::{Levels, Waiting};
use crate::messages::Layer;
use crate::offer::{Owner, Reason, Words};
use crate::process::{Lease, Process, Sums};
use crate::wait::Progress;
use core::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use unisono_c::comm::Handle;
use unisono_c::error::answer;
use unisono_c::request::{Request, test_beside_calls};
use unisono_kernel::region::{Counter, Word};
use unisono_kernel::table::Collective;
use unisono_posix::heap;
use unisono_posix::lending::{Part, Windows};

/// 1 in the child of a fork.
static FORKED: Word = Word::zero();

/// This process's state, which is made at its first use and never freed. `None` in the child of a fork: the parent's
/// memory is not mapped there, and one of the parent's threads may have held a lock.
fn process() -> Option<&'static Process> {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    let forked = Counter::load_acquire(&FORKED).at_least(1);
    (!forked).then(|| PROCESS.get_or_init(Process::from_env))
}

/// Makes this process's arena and reads the machine's settings, so that the first communicator does not have to.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_mpi_prepare() {
    if let Some(process) = process() {
        process.prepare();
    }
}

/// Reserves memory for a communicator of `ranks` ranks in this process's arena, and writes the offer to `mine`.
///
/// # Safety
/// `mine` is null, which does nothing, or points to an offer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_offer(ranks: u32, mine: *mut Words) {
    if !mine.is_null() {
        // SAFETY: not null, writable by the caller's promise.
        unsafe {
            mine.write(process().map_or(Owner::default().refuse(ranks, Reason::Off), |process| process.offer(ranks)))
        }
    }
}

/// Number of ranks on `rank`'s node, which made the offers; 0 if an offer can't be read.
///
/// # Safety
/// `offers` is null, which is refused, or points to `ranks` offers that are not written during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_node_ranks(offers: *const Words, ranks: u32, rank: u32) -> u32 {
    if offers.is_null() {
        return 0;
    }
    // SAFETY: not null; `ranks` offers by the caller's promise.
    let offers = unsafe { core::slice::from_raw_parts(offers, ranks as usize) };
    let Some(nodes) = offer::nodes(offers) else { return 0 };
    nodes.get(rank as usize).map_or(0, |mine| nodes.iter().filter(|node| *node == mine).count() as u32)
}

/// Chooses among the offers of all ranks, maps the chosen memory, and writes a lease to `lease`, which must be settled.
/// Returns a [`Reason`].
///
/// # Safety
/// `offers` is null, which is refused, or points to `ranks` offers that are not written during the call; `lease` is
/// null, which is refused, or points to a pointer that may be written; `progress` is null or may be called as long as
/// the communicator lives, by every thread that calls collectives on it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_attach(
    offers: *const Words,
    ranks: u32,
    rank: u32,
    local_ranks: u32,
    progress: Option<Progress>,
    lease: *mut *mut Lease,
) -> c_int {
    if lease.is_null() {
        return Reason::Refused as c_int;
    }
    let offers = if offers.is_null() {
        &[]
    } else {
        // SAFETY: not null; `ranks` offers by the caller's promise.
        unsafe { core::slice::from_raw_parts(offers, ranks as usize) }
    };
    let (reason, made) = process()
        .map_or((Reason::Off, Lease::default()), |process| process.attach(offers, rank, local_ranks, progress));
    // SAFETY: not null, writable by the caller's promise.
    unsafe { lease.write(Box::into_raw(Box::new(made))) };
    reason as c_int
}

/// As `unisono_test`, while other threads may use the communicator ([`test_beside_calls`]).
///
/// # Safety
/// `request` and `done` as in `unisono_test`; no other thread uses the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_test(request: *mut *mut Request, done: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    let tested = unsafe { test_beside_calls(request) };
    if let (Ok(complete), false) = (&tested, done.is_null()) {
        // SAFETY: not null, writable by the caller's promise.
        unsafe { done.write((*complete).into()) };
    }
    answer(tested.map(drop))
}

/// Should ranks yield while they wait, if this process's node has `local_ranks` ranks?
#[unsafe(no_mangle)]
pub extern "C" fn unisono_mpi_crowded(local_ranks: u32) -> c_int {
    wait::crowded(core::iter::once(std::process::id()), local_ranks).into()
}

/// Returns the communicator, if all agreed on [`Reason::Attached`]; otherwise frees the lease and returns null.
///
/// # Safety
/// `lease` is null, or comes from [`unisono_mpi_attach`] and was not settled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_settle(lease: *mut Lease, agreed: c_int) -> *mut Handle {
    // SAFETY: the caller's promise.
    let (Some(process), Some(settled)) = (process(), unsafe { lease.as_mut() }) else { return core::ptr::null_mut() };
    if let Some(handle) = process.settle(settled, agreed == Reason::Attached as c_int) {
        return handle;
    }
    // SAFETY: a box of `unisono_mpi_attach`, which nothing uses any more.
    drop(unsafe { Box::from_raw(lease) });
    core::ptr::null_mut()
}

/// The number of a collective of MPI's in tables, whose name is `name` ("allgatherv"); −1: it has no rules there.
///
/// # Safety
/// `name` is null, or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_collective(name: *const c_char) -> c_int {
    if name.is_null() {
        return -1;
    }
    // SAFETY: not null; a string by the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    process::ruled(&name.to_string_lossy()).map_or(-1, |collective| collective as c_int)
}

/// Does the decision table of all ranks leave a call to the MPI? `collective`: of [`unisono_mpi_collective`]; `bytes` as tables
/// count them; whether the op `commutes`.
///
/// # Safety
/// `lease` is null, or was settled with a communicator, and was not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_leaves(
    lease: *const Lease,
    collective: c_int,
    bytes: u64,
    commutes: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let choices = unsafe { lease.as_ref() }.and_then(Lease::choices);
    let ruled = choices.zip(usize::try_from(collective).ok().and_then(|at| Collective::ALL.get(at)));
    ruled.is_some_and(|(choices, collective)| choices.leaves(*collective, bytes, commutes != 0)).into()
}

/// Does it leave any call of the collective?
///
/// # Safety
/// As [`unisono_mpi_leaves`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_leaves_any(lease: *const Lease, collective: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let choices = unsafe { lease.as_ref() }.and_then(Lease::choices);
    let ruled = choices.zip(usize::try_from(collective).ok().and_then(|at| Collective::ALL.get(at)));
    ruled.is_some_and(|(choices, collective)| choices.leaves_any(*collective)).into()
}

/// Writes the node of each rank to `nodes`, numbered in the order of their first ranks. Returns 1 if all offers can be
/// read, else 0; the result is the same on all ranks.
///
/// # Safety
/// `offers` points to `ranks` offers, `nodes` to as many numbers that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_nodes(offers: *const Words, ranks: u32, nodes: *mut u32) -> c_int {
    // SAFETY: the caller's promise.
    let offers = unsafe { core::slice::from_raw_parts(offers, ranks as usize) };
    let Some(found) = offer::nodes(offers) else { return 0 };
    // SAFETY: the caller's promise; as many as offers.
    unsafe { nodes.copy_from_nonoverlapping(found.as_ptr(), found.len()) };
    1
}

/// As [`unisono_mpi_offer`], for the ranks of one node of several; there may be one rank.
///
/// # Safety
/// As [`unisono_mpi_offer`], not null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_offer(ranks: u32, mine: *mut Words) {
    let words = process().map_or(Owner::default().refuse(ranks, Reason::Off), |process| process.offer_level(ranks));
    // SAFETY: writable by the caller's promise.
    unsafe { mine.write(words) }
}

/// As [`unisono_mpi_attach`], for the ranks of one node of several.
///
/// # Safety
/// As [`unisono_mpi_attach`], not null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_attach(
    offers: *const Words,
    ranks: u32,
    rank: u32,
    lease: *mut *mut Lease,
) -> c_int {
    // SAFETY: the caller's promise.
    let offers = unsafe { core::slice::from_raw_parts(offers, ranks as usize) };
    let (reason, made) =
        process().map_or((Reason::Off, Lease::default()), |process| process.attach_level(offers, rank));
    // SAFETY: writable by the caller's promise.
    unsafe { lease.write(Box::into_raw(Box::new(made))) };
    reason as c_int
}

/// Returns the communicator over nodes, if all agreed on [`Reason::Attached`]; otherwise frees the lease and returns
/// null.
///
/// # Safety
/// `lease` comes from [`unisono_mpi_levels_attach`] and was not settled. If all agreed, `layer` was connected over all
/// ranks, and belongs to the communicator from now on; `offers` are the `ranks` offers that were passed to
/// [`unisono_mpi_nodes`]; `progress` as in [`unisono_mpi_attach`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_settle(
    lease: *mut Lease,
    agreed: c_int,
    layer: *const Layer,
    offers: *const Words,
    ranks: u32,
    rank: u32,
    local_ranks: u32,
    progress: Option<Progress>,
) -> *mut Levels {
    // SAFETY: a box of `unisono_mpi_levels_attach`, which nothing else uses.
    let mut lease = unsafe { Box::from_raw(lease) };
    let Some(process) = process() else { return core::ptr::null_mut() };
    if process.settle(&mut lease, agreed == Reason::Attached as c_int).is_none() {
        return core::ptr::null_mut();
    }
    // SAFETY: the caller's promise.
    let offers = unsafe { core::slice::from_raw_parts(offers, ranks as usize) };
    let yields = wait::crowded(core::iter::once(std::process::id()), local_ranks);
    // SAFETY: the caller's promise.
    let levels = unsafe { levels::join(process, *lease, layer, offers, rank, Waiting { yields, progress }) };
    levels.map_or(core::ptr::null_mut(), |levels| Box::into_raw(Box::new(levels)))
}

/// Frees this rank's part of the communicator over nodes. Null is allowed.
///
/// # Safety
/// `levels` is null, or comes from [`unisono_mpi_levels_settle`], and no call uses it now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_release(levels: *mut Levels) {
    if let Some(process) = process()
        && !levels.is_null()
    {
        // SAFETY: a box of `unisono_mpi_levels_settle`, which nothing uses any more.
        process.release(unsafe { Box::from_raw(levels) }.into_lease());
    }
}

/// Frees this rank's part of the communicator. Null is allowed.
///
/// # Safety
/// `lease` is null, or was settled with a communicator that no call uses now or later, and was not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_release(lease: *mut Lease) {
    if let Some(process) = process()
        && !lease.is_null()
    {
        // SAFETY: a box of `unisono_mpi_attach`, which nothing uses any more.
        let lease = unsafe { Box::from_raw(lease) };
        process.release(*lease);
    }
}

/// Writes the sums since the process's start.
///
/// # Safety
/// `sums` is null, which does nothing, or points to a struct that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_sums(sums: *mut Sums) {
    if !sums.is_null() {
        // SAFETY: not null, writable by the caller's promise.
        unsafe { sums.write(process().map_or_else(Sums::default, Process::sums)) }
    }
}

/// Memory that the other ranks of the node read where it lies, in whole pages; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_mpi_alloc(bytes: u64) -> *mut c_void {
    let heap = process().and_then(|_| heap::of_process().ok());
    let block = heap.and_then(|heap| heap.allocate(usize::try_from(bytes).ok()?, 1));
    block.map_or(core::ptr::null_mut(), |block| block.address.as_ptr().cast())
}

/// Frees such memory; 0 if it is none, and nothing happens.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_mpi_free(memory: *mut c_void) -> c_int {
    heap::made().is_some_and(|heap| heap.holds(memory.cast()) && heap.release(memory.cast())).into()
}

/// A number for a new window, or 0: what lies in windows is not lent.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_mpi_window_number() -> u64 {
    process().and_then(Process::windows).map_or(0, |_| Windows::number())
}

/// Messages that lie in this rank's part of a window are lent from now on; `number` is of one rank's
/// [`unisono_mpi_window_number`]. Returns 0 if they are not.
///
/// # Safety
/// `parts` points to the parts of `ranks` ranks, null or not; they stay mapped until [`unisono_mpi_window_remove`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_window_add(number: u64, parts: *const Part, ranks: u32, rank: u32) -> c_int {
    let Some(windows) = process().and_then(Process::windows).filter(|_| !parts.is_null()) else { return 0 };
    // SAFETY: `ranks` parts, by the caller's promise.
    let parts = unsafe { core::slice::from_raw_parts(parts, ranks as usize) };
    // SAFETY: they are mapped, by the caller's promise.
    unsafe { windows.add(number, rank as usize, parts) }.into()
}

/// The window's memory is not lent or read any more, if it was.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_mpi_window_remove(number: u64) {
    if let Some(windows) = process().and_then(Process::windows) {
        windows.remove(number);
    }
}

/// Called in the child after a fork: from now on offers say [`Reason::Off`], and releases do nothing. It neither locks
/// nor allocates.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_mpi_forked() {
    Counter::store_release(&FORKED, 1);
}
