//! Attaching to an MPI communicator from Rust.
//!
//! `libunisono_openmpi.so` and `libunisono_mpich.so` know the MPIs' handles; this crate does not. One of them is
//! preloaded, or linked, or loaded here; the MPI itself is the one that the process has loaded and initialised. A
//! communicator is given by its Fortran handle (`MPI_Comm_c2f`), which is an integer in every MPI.
//!
//! ```no_run
//! use unisono_kernel::{machine::p2p::P2p, msg, op::Op, pattern::Seat};
//! # let world = 0;
//! let (send, mut receive) = ([0; 64], [0; 64]);
//! // SAFETY: the library is Unisono's; MPI is initialised, and all ranks of the communicator do this.
//! let library = unsafe { unisono_mpi::attach::Library::load(c"libunisono_openmpi.so") }?;
//! let mut team = unsafe { library.connect(world) }.map(unisono_mpi::attach::Team::new)?;
//! let seat = Seat::new(team.messages().rank(), team.messages().size())?;
//! let plan = msg::allreduce::plan(seat, 64, Op::SUM_F64, false, msg::allreduce::Algorithm::Rabenseifner)?;
//! // SAFETY: the buffers outlive the team.
//! unsafe { team.run(plan, &send, &mut receive) }?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::Bounded;
use crate::messages::{Endpoint, Layer, describe};
use core::ffi::{CStr, c_int, c_void};
use core::fmt;
use spin::relax::Yield;
use std::time::Duration;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{PollError, Refusal, WaitError};
use unisono_kernel::machine::drive::{self, Stop};
use unisono_kernel::machine::p2p::P2pError;
use unisono_kernel::machine::wait::{Only, SpinThen};
use unisono_kernel::msg::{Memory, Rounds, Schedule};

/// Why a process was not attached, or a collective of a [`Team`] failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttachError {
    /// The library could not be loaded, or is not Unisono's: the loader's text.
    Library(String),
    /// An error of the MPI or of the layer.
    Messages(P2pError),
    /// An argument was refused.
    Refused(Refusal),
    /// A message failed.
    Poll(PollError),
    /// A rank is late.
    Wait(WaitError),
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(words) => f.write_str(words),
            Self::Messages(error) => describe(*error).fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Poll(PollError::Messages { peer, code }) => {
                write!(f, "message to or from rank {peer}: {}", describe(P2pError(*code)))
            }
            Self::Poll(error) => error.fmt(f),
            Self::Wait(WaitError::Late(rank)) => write!(f, "rank {rank} is late"),
            Self::Wait(error) => write!(f, "{error:?}"),
        }
    }
}

impl core::error::Error for AttachError {}

impl AttachError {
    /// The loader's last error.
    pub(crate) fn of_loader() -> Self {
        // SAFETY: returns null or a string of this thread.
        let text = unsafe { libc::dlerror() };
        if text.is_null() {
            return Self::Library("the loader found nothing".into());
        }
        // SAFETY: a string, which is valid until the loader is called again.
        Self::Library(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }
}

impl From<P2pError> for AttachError {
    fn from(error: P2pError) -> Self {
        Self::Messages(error)
    }
}

impl From<Refusal> for AttachError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Stop> for AttachError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Poll(error) => Self::Poll(error),
            Stop::Wait(error) => Self::Wait(error),
        }
    }
}

/// `libunisono_openmpi.so` or `libunisono_mpich.so`, which stays loaded in this process.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    connect: Connect,
}

type Connect = unsafe extern "C" fn(c_int, *mut Layer) -> c_int;

impl Library {
    /// The library that is preloaded or linked.
    ///
    /// # Errors
    /// No such library is in the process.
    ///
    /// # Safety
    /// If the process has a function `unisono_messages_connect`, it is Unisono's.
    pub unsafe fn of_process() -> Result<Self, AttachError> {
        // SAFETY: the caller's promise.
        unsafe { Self::of(libc::RTLD_DEFAULT) }
    }

    /// The library at `path`, or of this name in the loader's folders. Loaded in this way it does not take over the
    /// program's collectives: for that it must be preloaded or linked.
    ///
    /// # Errors
    /// The loader's.
    ///
    /// # Safety
    /// The file is Unisono's.
    pub unsafe fn load(path: &CStr) -> Result<Self, AttachError> {
        // SAFETY: a string; what the file does when it is loaded is the caller's promise.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(AttachError::of_loader());
        }
        // SAFETY: the caller's promise.
        unsafe { Self::of(handle) }
    }

    /// # Safety
    /// `handle` is a handle of the loader, for Unisono's library.
    unsafe fn of(handle: *mut c_void) -> Result<Self, AttachError> {
        // SAFETY: a handle and a string.
        let found = unsafe { libc::dlsym(handle, c"unisono_messages_connect".as_ptr()) };
        if found.is_null() {
            return Err(AttachError::of_loader());
        }
        // SAFETY: the function that include/unisono_messages.h declares, by the caller's promise.
        let connect = unsafe { core::mem::transmute::<*mut c_void, Connect>(found) };
        Ok(Self { connect })
    }

    /// This process's end of an intra-communicator, given by its Fortran handle. Collective.
    ///
    /// # Errors
    /// MPI is not initialised, or is finalised, or is another MPI than the library's; the communicator is MPI_COMM_NULL
    /// or an inter-communicator; the MPI's errors.
    ///
    /// # Safety
    /// The handle is one of the MPI's. More than one thread uses the endpoint, or the MPI, only if `MPI_Init_thread`
    /// has granted that. The endpoint is dropped on all ranks before `MPI_Finalize`.
    pub unsafe fn connect(&self, fortran_handle: c_int) -> Result<Endpoint, AttachError> {
        let mut layer = core::mem::MaybeUninit::<Layer>::uninit();
        // SAFETY: the function's contract: a handle, and memory for a layer.
        match unsafe { (self.connect)(fortran_handle, layer.as_mut_ptr()) } {
            0 => {
                // SAFETY: the function has written it, since it returned 0.
                let layer = unsafe { layer.assume_init() };
                // SAFETY: connected just now; the caller's promise.
                Ok(unsafe { Endpoint::new(layer) })
            }
            code => Err(P2pError(code).into()),
        }
    }
}

/// Waiting that only yields the core: testing a message makes the MPI progress.
type Yields = Bounded<Only<Yield>>;

/// The ranks of an MPI communicator, for collectives over messages only: any schedule of [`unisono_kernel::msg`].
#[derive(Debug)]
pub struct Team {
    endpoint: Endpoint,
    wait: SpinThen<Yields>,
    operation: u64,
    scratch: Vec<u8>,
    /// The error after which it can't be used.
    over: Option<AttachError>,
}

impl Team {
    /// A team on an endpoint. Its waits have no bound.
    pub const fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, wait: Self::waiting(None), operation: 0, scratch: Vec::new(), over: None }
    }

    const fn waiting(bound: Option<Duration>) -> SpinThen<Yields> {
        SpinThen::new(64, 0, Bounded::new(Only::new(), bound))
    }

    /// Sets the longest wait for a message. A collective that waits longer fails, and names the rank that it waited
    /// for.
    pub const fn set_timeout(&mut self, bound: Option<Duration>) {
        self.wait = Self::waiting(bound);
    }

    /// The point-to-point layer.
    pub const fn messages(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The point-to-point layer, for sends and receives.
    pub const fn messages_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// Runs a collective: `plan` is this rank's schedule. All ranks run the same collectives in the same order. After
    /// an error every call returns that error.
    ///
    /// # Errors
    /// A buffer is shorter than the plan needs; messages of other lengths; a rank is late; the MPI's errors.
    ///
    /// # Safety
    /// If the call fails, `send` and `receive` stay valid until the team is dropped, because the MPI may still read
    /// data of sends that are not complete.
    pub unsafe fn run<S: Schedule>(&mut self, plan: S, send: &[u8], receive: &mut [u8]) -> Result<(), AttachError> {
        if let Some(error) = &self.over {
            return Err(error.clone());
        }
        self.operation += 1;
        self.scratch.resize(plan.bytes().scratch as usize, 0);
        let memory =
            Memory { send: Buf::of(send), receive: Buf::of_mut(receive), scratch: Buf::of_mut(&mut self.scratch) };
        // SAFETY: the buffers do not overlap, and are valid during the call and, by the caller's promise, until the
        // layer is dropped if it fails.
        let mut machine = unsafe { Rounds::of(plan, memory, self.operation) }?;
        drive::run(&mut machine, &mut self.endpoint, &mut self.wait).map_err(|stop| {
            self.endpoint.give_up();
            self.over = Some(stop.into());
            stop.into()
        })
    }
}

#[cfg(test)]
mod tests;
