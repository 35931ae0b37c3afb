//! The C library for processes that `unisono run` starts: all of `unisono.h`, `unisono_join`, and communicators.
//!
//! It is a separate crate, so that the plain C library has no code that maps memory or starts processes.

use core::any::Any;
use core::ffi::{c_int, c_void};
use core::fmt;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use unisono_c::comm::{Handle, HostState, free_after, unisono_free, with_host_state};
use unisono_c::error::{Failure, UNISONO_OK, answer};
use unisono_c::request::State;
use unisono_c::waiting::{Patience, Waiting};
use unisono_kernel::class::Class;
use unisono_kernel::error::{Argument, Bound, Condition, Refusal};
use unisono_kernel::machine::wait::SpinThen;
use unisono_kernel::region::Base;
use unisono_kernel::table::Choices;
use unisono_posix::bootstrap::Launched;
use unisono_posix::decisions::decisions;
use unisono_posix::segment::View;
use unisono_posix::{Allocation, Options, Place, PosixError, join_place};

/// The host's state of a handle: the communicator's place, and a view that keeps its memory.
#[derive(Debug)]
struct PlaceState {
    place: Place,
    has_ended: bool,
    _view: View,
}

impl HostState for PlaceState {
    fn ended(&mut self, end: Option<Base>) {
        self.has_ended = true;
        self.place.leave(end);
    }

    fn set_timeout(&mut self, most: Option<Duration>) {
        self.place.set_timeout(most);
    }

    fn choices(&self) -> Option<&'static Choices> {
        self.place.choices()
    }
}

impl Drop for PlaceState {
    /// If there was no memory for the handle, poisons the communicator, so that no other rank waits for this one.
    fn drop(&mut self) {
        if !self.has_ended {
            self.place.give_up();
        }
    }
}

/// A failure with the text of `cause`, which is never freed: a process joins a job once.
fn failure(cause: PosixError) -> Failure {
    Failure::Host(cause.class(), cause.to_string().leak())
}

/// Writes to stderr which options of the environment could not be fulfilled: the C caller has passed no place for it. A
/// closed stderr is ignored.
fn say(line: fmt::Arguments<'_>) {
    let _ = std::io::stderr().write_all(format!("unisono: {line}\n").as_bytes());
}

/// The failure of a call that makes a communicator.
fn refusal(error: PosixError) -> Failure {
    match error {
        PosixError::Refused(refusal) => Failure::Refused(refusal),
        PosixError::Call(error) => Failure::Collective(error),
        PosixError::Space { needed, available, .. } => Failure::Full { needed, free: available },
        PosixError::Setting { .. } => Failure::Group,
        other => Failure::Host(other.class(), "the system refused a communicator"),
    }
}

fn handle(place: Place) -> Result<*mut Handle, Failure> {
    let (view, (layout, rank, base), yields) = (place.region(), place.plan(), place.yields());
    // SAFETY: the handle keeps the view with the communicator, and drops both together.
    let region = unsafe { view.mapped() };
    let state = PlaceState { place, has_ended: false, _view: view };
    let host = Patience::new(state.place.host())?;
    let wait: Waiting = if yields { SpinThen::crowded(host) } else { SpinThen::spinning(host) };
    Handle::allocate_with_host(region, layout, rank, base, wait, Some(Box::new(state)))
}

/// Makes a handle and writes it to `made`, null on an error. `name` is the argument's name for an error.
///
/// # Safety
/// `made` is null or points to a pointer that may be written.
unsafe fn write(
    made: *mut *mut Handle,
    name: &'static str,
    make: impl FnOnce() -> Result<*mut Handle, Failure>,
) -> Result<(), Failure> {
    if made.is_null() {
        return Err(Failure::Null(name));
    }
    // SAFETY: not null, writable by the caller's promise.
    unsafe { made.write(core::ptr::null_mut()) };
    let handle = make()?;
    // SAFETY: as above.
    unsafe { made.write(handle) };
    Ok(())
}

/// Joins the job whose launcher started this process, and writes the new handle to `comm`.
///
/// # Safety
/// `comm` is null or points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_join(comm: *mut *mut Handle) -> c_int {
    let make = || {
        let launched = Launched::from_env().map_err(failure)?;
        let mut launched =
            launched.ok_or(Failure::Host(Class::Host, "no launcher: start the program by `unisono run`"))?;
        let options = Options { log: Some(say), ..Options::default() };
        let decisions = decisions().map_err(failure)?;
        let joined = join_place(&mut launched, |ranks| decisions.params(ranks), &options).map_err(failure)?;
        joined.segment.populate();
        handle(joined.communicator)
    };
    // SAFETY: the caller's promise.
    answer(unsafe { write(comm, "comm", make) })
}

/// The place in a handle's host state.
fn place(host: Option<&mut dyn Any>) -> Result<&mut Place, Failure> {
    let state = host.and_then(|host| host.downcast_mut::<PlaceState>());
    let foreign = "the communicator does not belong to a job: it must come from unisono_join";
    state.map(|state| &mut state.place).ok_or(Failure::Host(Class::Host, foreign))
}

/// Makes a communicator from `comm`, and writes its handle to `made`; null if there is none for this rank. `name` is
/// the argument's name for an error.
///
/// # Safety
/// `comm` is null, or a handle of this library that was not freed; `made` is null or points to a pointer that may be
/// written.
unsafe fn derive(
    comm: *const Handle,
    made: *mut *mut Handle,
    name: &'static str,
    make: impl FnOnce(&mut State, &mut Place) -> Result<Option<Place>, PosixError>,
) -> c_int {
    let call = |on: &mut State, host: Option<&mut dyn Any>| {
        let make = || make(on, place(host)?).map_err(refusal)?.map_or(Ok(core::ptr::null_mut()), handle);
        // SAFETY: the caller's promise.
        unsafe { write(made, name, make) }
    };
    // SAFETY: the caller's promise.
    unsafe { with_host_state(comm, call) }
}

/// What was allocated and not released, by address.
static ALLOCATIONS: Mutex<BTreeMap<usize, Allocation>> = Mutex::new(BTreeMap::new());

fn allocations() -> MutexGuard<'static, BTreeMap<usize, Allocation>> {
    // No code panics under the lock.
    ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocates memory that the other processes of the job read where it lies.
///
/// # Safety
/// `comm` is null, or a handle of this library that was not freed; `memory` is null or points to a pointer that may be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn unisono_alloc(comm: *const Handle, bytes: usize, memory: *mut *mut c_void) -> c_int {
    let call = |_: &mut State, host: Option<&mut dyn Any>| {
        if memory.is_null() {
            return Err(Failure::Null("memory"));
        }
        // SAFETY: not null, writable by the caller's promise.
        unsafe { memory.write(core::ptr::null_mut()) };
        place(host)?;
        let allocation = Allocation::new(bytes).map_err(|error| match error {
            PosixError::Space { needed, available, .. } => Failure::Heap { needed, free: available },
            other => refusal(other),
        })?;
        let address = allocation.buf().ptr();
        allocations().insert(address.addr(), allocation);
        // SAFETY: as above.
        unsafe { memory.write(address.cast()) };
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with_host_state(comm, call) }
}

/// Releases memory of `unisono_alloc`; null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_release(memory: *mut c_void) -> c_int {
    let found = memory.is_null() || allocations().remove(&memory.addr()).is_some();
    let address = memory.addr() as u64;
    let foreign = Refusal::new(Argument::Buffer, address, Bound::Is(Condition::Allocated));
    answer(if found { Ok(()) } else { Err(Failure::Refused(foreign)) })
}

/// Makes a communicator of the same processes in the same order.
///
/// # Safety
/// `comm` is null, or a handle of this library that was not freed; `dup` is null or points to a pointer that may be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn unisono_comm_dup(comm: *const Handle, dup: *mut *mut Handle) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { derive(comm, dup, "dup", |on, place| place.dup(on.drained()?).map(Some)) }
}

/// `UNISONO_UNDEFINED`: no color.
const UNDEFINED: u32 = u32::MAX;

/// Makes a communicator of the ranks that pass the same color.
///
/// # Safety
/// As [`unisono_comm_dup`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn unisono_comm_split(
    comm: *const Handle,
    color: u32,
    key: i64,
    part: *mut *mut Handle,
) -> c_int {
    let color = (color != UNDEFINED).then_some(color);
    // SAFETY: the caller's promise.
    unsafe { derive(comm, part, "part", |on, place| place.split(on.drained()?, color, key)) }
}

/// Makes a communicator of these ranks; only they call.
///
/// # Safety
/// As [`unisono_comm_dup`]; `ranks` is null or points to `count` ranks that are not written during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_comm_create_group(
    comm: *const Handle,
    ranks: *const u32,
    count: u32,
    tag: u32,
    group: *mut *mut Handle,
) -> c_int {
    if ranks.is_null() {
        return answer(Err(Failure::Null("ranks")));
    }
    // SAFETY: not null; `count` ranks by the caller's promise.
    let ranks = unsafe { core::slice::from_raw_parts(ranks, count as usize) };
    // SAFETY: the caller's promise.
    unsafe { derive(comm, group, "group", |_, place| place.create_group(ranks, tag).map(Some)) }
}

/// Replaces a communicator that failed by one of the same processes.
///
/// # Safety
/// As [`unisono_comm_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_comm_renew(comm: *mut *mut Handle) -> c_int {
    answer((|| {
        // SAFETY: the caller's promise.
        let comm = unsafe { comm.as_mut() }.ok_or(Failure::Null("comm"))?;
        let renew = |host: Option<&mut dyn Any>| handle(place(host)?.renew().map_err(refusal)?);
        // SAFETY: the caller's promise.
        *comm = unsafe { free_after(*comm, renew) }?;
        Ok(())
    })())
}

/// Frees the communicator, and sets the caller's pointer to null.
///
/// # Safety
/// `comm` is null, or points to null or to a handle of this library that no later call uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_comm_free(comm: *mut *mut Handle) -> c_int {
    if comm.is_null() {
        return answer(Err(Failure::Null("comm")));
    }
    // SAFETY: not null, readable by the caller's promise.
    let handle = unsafe { comm.read() };
    // SAFETY: the caller's promise.
    let freed = unsafe { unisono_free(handle) };
    if freed == UNISONO_OK {
        // SAFETY: not null, writable by the caller's promise.
        unsafe { comm.write(core::ptr::null_mut()) };
    }
    freed
}
