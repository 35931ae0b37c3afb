//! For a program in Rust that starts an MPI itself. The MPI's library is loaded at run time, so that one program works
//! with every MPI.

use crate::attach::AttachError;
use core::ffi::{CStr, c_char, c_int, c_void};
use unisono_kernel::machine::p2p::P2pError;

/// An MPI's library, which stays loaded in this process, with its names visible to all libraries.
#[derive(Clone, Copy, Debug)]
pub struct Mpi {
    init: Init,
    finalize: Finalize,
    world: World,
}

type Init = unsafe extern "C" fn(*mut c_int, *mut c_void) -> c_int;
type Finalize = unsafe extern "C" fn() -> c_int;
type Version = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
type ToFortran = unsafe extern "C" fn(*mut c_void) -> c_int;

/// How to get the Fortran handle of `MPI_COMM_WORLD`.
#[derive(Clone, Copy, Debug)]
enum World {
    /// MPICH and MPIs derived from it: handles in Fortran and in C are the same numbers.
    Number,
    /// Open MPI: a handle in C is the object's address.
    Address(*mut c_void, ToFortran),
}

/// `MPI_COMM_WORLD` of MPICH.
const MPICH_WORLD: c_int = 0x4400_0000;

/// The longest `MPI_MAX_LIBRARY_VERSION_STRING` of the MPIs: that of MPICH and of the standard's ABI.
const LONGEST_VERSION: usize = 8192;

impl Mpi {
    /// Loads the library at `path`, or of this name in the loader's folders.
    ///
    /// # Errors
    /// The loader's; the library is not an MPI's.
    ///
    /// # Safety
    /// The file is an MPI's library.
    pub unsafe fn load(path: &CStr) -> Result<Self, AttachError> {
        // SAFETY: a string; what the file does when it is loaded is the caller's promise.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            return Err(AttachError::of_loader());
        }
        let symbol = |name: &CStr| {
            // A library that is preloaded has its own, which call the MPI's.
            // SAFETY: a string.
            unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
        };
        let (init, finalize, to_fortran) = (symbol(c"MPI_Init"), symbol(c"MPI_Finalize"), symbol(c"MPI_Comm_c2f"));
        if init.is_null() || finalize.is_null() {
            return Err(AttachError::of_loader());
        }
        let world = symbol(c"ompi_mpi_comm_world");
        // SAFETY: the function of that name, as MPI declares it; the file is an MPI's by the caller's promise.
        let init = unsafe { core::mem::transmute::<*mut c_void, Init>(init) };
        // SAFETY: as above.
        let finalize = unsafe { core::mem::transmute::<*mut c_void, Finalize>(finalize) };
        if world.is_null() || to_fortran.is_null() {
            return Ok(Self { init, finalize, world: World::Number });
        }
        // SAFETY: as above; only Open MPI has that object, and its handles are pointers.
        let to_fortran = unsafe { core::mem::transmute::<*mut c_void, ToFortran>(to_fortran) };
        Ok(Self { init, finalize, world: World::Address(world, to_fortran) })
    }

    /// The first line of what `MPI_Get_library_version` says: the MPI's name and version. Empty: it says nothing.
    pub fn version(&self) -> String {
        // SAFETY: a string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"MPI_Get_library_version".as_ptr()) };
        if found.is_null() {
            return String::new();
        }
        // SAFETY: the function of that name, as MPI declares it, since an MPI's library is loaded: the promise of `load`.
        let of_library = unsafe { core::mem::transmute::<*mut c_void, Version>(found) };
        let (mut text, mut length) = (vec![0_u8; LONGEST_VERSION], 0);
        // SAFETY: there is room for the longest text. MPI allows this call before MPI_Init and after MPI_Finalize.
        let code = unsafe { of_library(text.as_mut_ptr().cast(), &raw mut length) };
        let length = usize::try_from(length).unwrap_or(0).min(text.len());
        let text = String::from_utf8_lossy(text.get(..length).unwrap_or_default());
        let line = text.lines().next().filter(|_| code == 0).unwrap_or_default();
        let words: Vec<_> = line.trim_end_matches('\0').split_whitespace().collect();
        words.join(" ")
    }

    /// Calls `MPI_Init`; returns the Fortran handle of `MPI_COMM_WORLD`.
    ///
    /// # Errors
    /// The MPI's.
    ///
    /// # Safety
    /// It is called once in a process.
    pub unsafe fn init(&self) -> Result<c_int, AttachError> {
        // SAFETY: MPI allows null for both.
        match unsafe { (self.init)(core::ptr::null_mut(), core::ptr::null_mut()) } {
            0 => Ok(match self.world {
                World::Number => MPICH_WORLD,
                // SAFETY: the object's address is a handle of the MPI, which is initialised now.
                World::Address(object, to_fortran) => unsafe { to_fortran(object) },
            }),
            code => Err(P2pError(code).into()),
        }
    }

    /// Calls `MPI_Finalize`.
    ///
    /// # Errors
    /// The MPI's.
    ///
    /// # Safety
    /// It is called once, after `init`, and after all endpoints are dropped.
    pub unsafe fn finalize(&self) -> Result<(), AttachError> {
        // SAFETY: the caller's promise.
        match unsafe { (self.finalize)() } {
            0 => Ok(()),
            code => Err(P2pError(code).into()),
        }
    }
}
