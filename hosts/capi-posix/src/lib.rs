//! The C library for processes that `unisono run` starts: all of `unisono.h`, `unisono_join`, and communicators.
//!
//! It is a crate of its own, so that the plain C library maps nothing and starts nothing.

use core::any::Any;
use core::ffi::c_int;
use core::fmt;
use std::io::Write;
use std::time::Duration;
use unisono_c::comm::{Beside, Handle, free_after, unisono_free, with_beside};
use unisono_c::error::{Failure, UNISONO_OK, answer};
use unisono_c::request::State;
use unisono_c::waiting::{Patience, Waiting};
use unisono_kernel::class::Class;
use unisono_kernel::machine::wait::SpinThen;
use unisono_kernel::region::Base;
use unisono_kernel::table::Choices;
use unisono_posix::bootstrap::Launched;
use unisono_posix::decisions::decisions;
use unisono_posix::segment::View;
use unisono_posix::{Options, Place, PosixError, join_place};

/// What lies beside a handle's communicator: its place among the processes, and a hold on its memory.
#[derive(Debug)]
struct Seat {
    place: Place,
    has_ended: bool,
    _view: View,
}

impl Beside for Seat {
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

impl Drop for Seat {
    /// Where there was no memory for the handle: the others shall not wait for this rank.
    fn drop(&mut self) {
        if !self.has_ended {
            self.place.give_up();
        }
    }
}

/// A failure with the words of `cause`. They are never freed: a job is joined once.
fn failure(cause: PosixError) -> Failure {
    Failure::Host(cause.class(), cause.to_string().leak())
}

/// What the environment asks for and is not to be had: there is nobody else to tell. A closed stderr is no error.
fn say(line: fmt::Arguments<'_>) {
    let _ = std::io::stderr().write_all(format!("unisono: {line}\n").as_bytes());
}

/// A failure of a call that makes a communicator.
fn refusal(error: PosixError) -> Failure {
    match error {
        PosixError::Refused(refusal) => Failure::Refused(refusal),
        PosixError::Call(error) => Failure::Collective(error),
        PosixError::Space { needed, available, .. } => Failure::Full(needed, available),
        PosixError::Setting { .. } => Failure::Group,
        other => Failure::Host(other.class(), "the system refused a communicator"),
    }
}

fn handle(place: Place) -> Result<*mut Handle, Failure> {
    let (view, plan, yields) = (place.region(), place.plan(), place.yields());
    // SAFETY: the view lies beside the communicator, and goes with it.
    let region = unsafe { view.mapped() };
    let seat = Seat { place, has_ended: false, _view: view };
    let host = Patience::new(seat.place.host())?;
    let wait: Waiting = if yields { SpinThen::crowded(host) } else { SpinThen::spinning(host) };
    Handle::allocate_beside(region, plan, wait, Some(Box::new(seat)))
}

/// Makes a handle, and writes it to `made`, or null.
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

/// The place beside a handle.
fn place(beside: Option<&mut dyn Any>) -> Result<&mut Place, Failure> {
    let seat = beside.and_then(|beside| beside.downcast_mut::<Seat>());
    seat.map(|seat| &mut seat.place)
        .ok_or(Failure::Host(Class::Host, "the communicator is of no job: it must come from unisono_join"))
}

/// Makes a communicator from `comm`'s, and writes its handle to `made`, or null where it makes none.
///
/// # Safety
/// `comm` is null, or a handle of this library's that was not freed; `made` is null or points to a pointer that may be written.
unsafe fn derive(
    comm: *const Handle,
    (made, name): (*mut *mut Handle, &'static str),
    make: impl FnOnce(&mut State, &mut Place) -> Result<Option<Place>, PosixError>,
) -> c_int {
    let call = |on: &mut State, beside: Option<&mut dyn Any>| {
        let make = || make(on, place(beside)?).map_err(refusal)?.map_or(Ok(core::ptr::null_mut()), handle);
        // SAFETY: the caller's promise.
        unsafe { write(made, name, make) }
    };
    // SAFETY: the caller's promise.
    unsafe { with_beside(comm, call) }
}

/// Makes a communicator of the same processes.
///
/// # Safety
/// `comm` is null, or a handle of this library's that was not freed; `dup` is null or points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn unisono_comm_dup(comm: *const Handle, dup: *mut *mut Handle) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { derive(comm, (dup, "dup"), |on, place| place.dup(on.drained()?).map(Some)) }
}

/// No color.
const UNDEFINED: u32 = u32::MAX;

/// Makes a communicator of those with this color.
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
    unsafe { derive(comm, (part, "part"), |on, place| place.split(on.drained()?, color, key)) }
}

/// Makes a communicator of these ranks, who alone call.
///
/// # Safety
/// As [`unisono_comm_dup`]; `ranks` is null or points to `count` ranks that nobody writes during the call.
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
    unsafe { derive(comm, (group, "group"), |_, place| place.create_group(ranks, tag).map(Some)) }
}

/// Puts a communicator of the same processes in the place of one that failed.
///
/// # Safety
/// As [`unisono_comm_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_comm_renew(comm: *mut *mut Handle) -> c_int {
    answer((|| {
        // SAFETY: the caller's promise.
        let comm = unsafe { comm.as_mut() }.ok_or(Failure::Null("comm"))?;
        let renew = |beside: Option<&mut dyn Any>| handle(place(beside)?.renew().map_err(refusal)?);
        // SAFETY: the caller's promise.
        *comm = unsafe { free_after(*comm, renew) }?;
        Ok(())
    })())
}

/// Frees the communicator, and makes the caller's pointer null.
///
/// # Safety
/// `comm` is null, or points to null or to a handle of this library's that no call uses that starts later.
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
