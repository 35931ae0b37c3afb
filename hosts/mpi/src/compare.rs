//! Unisono's collectives beside the MPI's own, in one process: what the preloaded library times (`shim/compare.c`).

use crate::attach::AttachError;
use core::ffi::{CStr, c_char, c_int};
use unisono_kernel::machine::p2p::P2pError;

/// The preloaded library's function.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    compare: Compare,
}

type Compare = unsafe extern "C" fn(*const c_char, u64, c_int, c_int, u32, *mut f64, *mut *const c_char) -> c_int;

/// How a call is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Method {
    /// As the OSU benchmarks: the mean over ranks of each rank's own time in the call, from root 0, in the same buffers each time, with
    /// a barrier after each call.
    Osu = 0,
    /// As IMB with `-sync off -root_shift on`: back to back, the time of the slowest rank.
    Imb = 1,
    /// The same in buffers that rotate over more than the private caches.
    Rate = 2,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Osu, Self::Imb, Self::Rate];
}

/// Who runs a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Unisono, whatever a decision table leaves to the MPI.
    Unisono,
    /// The MPI itself.
    Mpi,
}

impl Comparison {
    /// That of the preloaded library.
    ///
    /// # Errors
    /// None is preloaded.
    ///
    /// # Safety
    /// If the process has a function `unisono_time`, it is Unisono's.
    pub unsafe fn of_process() -> Result<Self, AttachError> {
        // SAFETY: a string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"unisono_time".as_ptr()) };
        if found.is_null() {
            return Err(AttachError::Library("no library of Unisono for an MPI is preloaded".into()));
        }
        // SAFETY: the function of shim/compare.c, by the caller's promise.
        Ok(Self { compare: unsafe { core::mem::transmute::<*mut core::ffi::c_void, Compare>(found) } })
    }

    /// Times `calls` calls of a collective on `MPI_COMM_WORLD`, and some before them: `collective` is its name in lower case
    /// (`allgatherv`), `bytes` are those that decision tables count, a multiple of 8. Returns the nanoseconds of a call, the same on all
    /// ranks. Collective.
    ///
    /// # Errors
    /// No such collective; no memory on some rank; the ranks are not taken over; the MPI's.
    pub fn time(self, collective: &CStr, bytes: u64, method: Method, by: By, calls: u32) -> Result<f64, AttachError> {
        let (mut ns, mut refused, theirs) = (0.0, core::ptr::null(), (by == By::Mpi).into());
        let (name, method, ns_to, refused_to) = (collective.as_ptr(), method as c_int, &raw mut ns, &raw mut refused);
        // SAFETY: a string, and two places that are written.
        let code = unsafe { (self.compare)(name, bytes, method, theirs, calls, ns_to, refused_to) };
        if code != 0 {
            return Err(P2pError(code).into());
        }
        if refused.is_null() {
            return Ok(ns);
        }
        // SAFETY: a string of the library that is never freed.
        let refused = unsafe { CStr::from_ptr(refused) };
        Err(AttachError::Library(refused.to_string_lossy().into_owned()))
    }
}
