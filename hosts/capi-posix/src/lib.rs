//! The C library for processes that `unisono run` starts: all of `unisono.h`, and `unisono_join`.
//!
//! It is a crate of its own, so that the plain C library maps nothing and starts nothing.

use core::ffi::c_int;
use core::fmt;
use memmap2::{MmapOptions, MmapRaw};
use std::os::fd::RawFd;
use unisono::comm::{Handle, Patience, Waiting};
use unisono::error::{Failure, answer};
use unisono_kernel::error::WaitError;
use unisono_kernel::region::Params;
use unisono_kernel::step::Awaits;
use unisono_kernel::wait::{Relax, SpinThen};
use unisono_posix::bootstrap::Launched;
use unisono_posix::{Joined, Options, join};
use unisono_shm::Mapped;

/// The start-up behind a handle: its way to wait and watch, and the map that the handle's region views.
#[derive(Debug)]
struct Job {
    joined: Joined,
    map: MmapRaw,
}

impl Relax for Job {
    fn begin(&mut self) {
        self.joined.communicator.wait_policy().host.begin();
    }

    fn relax(&mut self, on: &Awaits) -> Result<(), WaitError> {
        self.joined.communicator.wait_policy().host.relax(on)
    }
}

/// A failure with the words of `cause`. They are never freed: a job is joined once.
fn failure(cause: impl fmt::Display) -> Failure {
    Failure::Host(cause.to_string().leak())
}

impl Job {
    fn join() -> Result<Self, Failure> {
        let launched = Launched::from_env().map_err(failure)?;
        let mut launched = launched.ok_or(Failure::Host("no launcher: start the program by `unisono run`"))?;
        let joined = join(&mut launched, Params::new, &Options::default()).map_err(failure)?;
        // A map of the handle's own, at another address than the start-up's.
        let fd: RawFd = joined.segment.handle().map_err(failure)?.fd;
        let map = MmapOptions::new().len(joined.segment.bytes() as usize).populate().map_raw(fd).map_err(failure)?;
        Ok(Self { joined, map })
    }

    fn handle(self) -> Result<*mut Handle, Failure> {
        let (layout, rank) = (*self.joined.segment.layout(), self.joined.communicator.rank());
        // SAFETY: the map is of a segment, whole and sealed; it lives in the handle's way to wait, as
        // long as the handle; this process uses no other view of these addresses.
        let region = unsafe { Mapped::new(self.map.as_mut_ptr(), layout.bytes()) }?.with_level(unisono_shm::level!());
        let yields = self.joined.waiting.yields;
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
