//! Unisono under an MPI program: what `shim/unisono_mpi.h` declares, with all of `unisono.h`.
//!
//! The shim in C knows MPI, this library does not: a communicator's ranks exchange [`offer`]s by two
//! collectives of the MPI beneath, and then share a slice of one rank's [`arena`](unisono_posix::arena).
//!
//! | module | what |
//! |---|---|
//! | [`algorithm`] | what runs a call, for statistics |
//! | [`attach`] | a communicator, from Rust: collectives over messages |
//! | [`messages`] | messages of an MPI, as the kernel's point-to-point layer |
//! | [`bounded`] | a bound of time on waiting |
//! | [`process`] | what a process keeps: its arena, the peers' arenas; offer, attach, settle, release |
//! | [`offer`] | what ranks tell each other, and what follows from all offers |
//! | [`node`] | which processes can share memory |
//! | [`wait`] | what a rank does while it waits |
//! | [`say`] | one line on stderr where the system refuses something |
//!
//! A child of fork has none of it: what it releases is let be, what it offers is nothing.
//!
//! Nothing here panics or ends the process.

pub mod algorithm;
pub mod attach;
pub mod bounded;
pub mod messages;
pub mod node;
pub mod offer;
pub mod process;
pub mod say;
pub mod wait;

use crate::offer::{Owner, Reason, Words};
use crate::process::{Lease, Process, Sums};
use crate::wait::Progress;
use core::ffi::c_int;
use std::sync::OnceLock;
use unisono::comm::Handle;
use unisono_kernel::region::{Counter, Word};

/// 1 in the child of a fork.
static FORKED: Word = Word::zero();

/// This process, made at its first use, for good. `None` in the child of a fork: the parent's memory is not
/// mapped there, and one of its threads may have held a lock.
fn process() -> Option<&'static Process> {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    let forked = Counter::load_acquire(&FORKED).at_least(1);
    (!forked).then(|| PROCESS.get_or_init(Process::from_env))
}

/// Makes this process's arena and looks at its surroundings, so that the first communicator need not.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_mpi_prepare() {
    if let Some(process) = process() {
        process.prepare();
    }
}

/// Reserves room for a communicator of `ranks` in this process's arena, and writes the offer to `mine`.
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

/// Chooses among the offers of all ranks, maps the chosen memory, and writes a lease to `lease`, which is to be
/// settled. Answers a [`Reason`].
///
/// # Safety
/// `offers` is null, which is refused, or points to `ranks` offers that nobody writes during the call; `lease` is
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

/// The communicator, if all agreed on [`Reason::Attached`]; else frees the lease and answers null.
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
    // SAFETY: a box of `unisono_mpi_attach`'s, which nobody uses any more.
    drop(unsafe { Box::from_raw(lease) });
    core::ptr::null_mut()
}

/// This rank is done with the communicator. Null is no error.
///
/// # Safety
/// `lease` is null, or was settled with a communicator that no call uses now or later, and was not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_release(lease: *mut Lease) {
    if let Some(process) = process()
        && !lease.is_null()
    {
        // SAFETY: a box of `unisono_mpi_attach`'s, which nobody uses any more.
        let lease = unsafe { Box::from_raw(lease) };
        process.release(*lease);
    }
}

/// Writes the sums since the start.
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

/// In the child after a fork: offers say [`Reason::Off`] from now on, and releases do nothing. Takes no lock and no memory.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_mpi_forked() {
    Counter::store_release(&FORKED, 1);
}
