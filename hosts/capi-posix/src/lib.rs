//! The C library for processes that `unisono run` starts: all of `unisono.h`, and `unisono_join`.
//!
//! It is a crate of its own, so that the plain C library maps nothing and starts nothing.

use core::ffi::c_int;
use core::fmt;
use std::io::Write;
use unisono::comm::{Handle, Patience, Waiting};
use unisono::error::{Failure, answer};
use unisono_kernel::class::Class;
use unisono_kernel::error::WaitError;
use unisono_kernel::region::Params;
use unisono_kernel::step::Awaits;
use unisono_kernel::wait::{Relax, SpinThen};
use unisono_posix::bootstrap::Launched;
use unisono_posix::{Joined, Options, PosixError, join};

/// The start-up behind a handle: its way to wait and watch, and the segment that the handle's region views.
#[derive(Debug)]
struct Job(Joined);

impl Relax for Job {
    fn begin(&mut self) {
        self.0.communicator.wait_policy().host.begin();
    }

    fn relax(&mut self, on: &Awaits) -> Result<(), WaitError> {
        self.0.communicator.wait_policy().host.relax(on)
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

impl Job {
    fn join() -> Result<Self, Failure> {
        let launched = Launched::from_env().map_err(failure)?;
        let mut launched =
            launched.ok_or(Failure::Host(Class::Host, "no launcher: start the program by `unisono run`"))?;
        let joined =
            join(&mut launched, Params::new, &Options { log: Some(say), ..Options::default() }).map_err(failure)?;
        joined.segment.populate();
        Ok(Self(joined))
    }

    fn handle(self) -> Result<*mut Handle, Failure> {
        let Joined { segment, communicator, waiting, .. } = &self.0;
        let (layout, rank, yields) = (*segment.layout(), communicator.rank(), waiting.yields);
        // SAFETY: the segment lives in the handle's way to wait, as long as the handle.
        let region = unsafe { segment.mapped() };
        let host = Patience(Box::new(self));
        let wait: Waiting = if yields { SpinThen::crowded(host) } else { SpinThen::spinning(host) };
        Handle::allocate(region, layout, rank, wait)
    }
}

/// Joins the job whose launcher started this process, and writes the new handle to `comm`.
///
/// # Safety
/// `comm` is null or points to a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_join(comm: *mut *mut Handle) -> c_int {
    answer((|| {
        if comm.is_null() {
            return Err(Failure::Null("comm"));
        }
        // SAFETY: not null, writable by the caller's promise.
        unsafe { comm.write(core::ptr::null_mut()) };
        let handle = Job::join()?.handle()?;
        // SAFETY: as above.
        unsafe { comm.write(handle) };
        Ok(())
    })())
}
