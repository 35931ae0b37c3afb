//! Errors as numbers, which are the kernel's classes, and the text of a thread's last error.

use core::ffi::{c_char, c_int};
use core::fmt::{self, Write};
use std::cell::Cell;
use unisono_kernel::class::Class;
use unisono_kernel::error::{Error, Refusal};

/// No error.
pub const UNISONO_OK: c_int = 0;

/// Why a call failed.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// The pointer of this name is null.
    Null(&'static str),
    /// The handle is in use.
    Busy,
    /// The first word of the segment is zero.
    NotReady,
    /// No memory for a handle.
    Memory,
    /// A request's state does not allow the call: the text says why.
    Request(&'static str),
    /// So many requests of the communicator were not freed.
    Requests(usize),
    /// A struct's `size` is not that of a known version of the struct.
    Size {
        /// The size that the caller gave.
        given: u64,
        /// The size of this version's struct.
        expected: usize,
    },
    /// Creating or attaching a segment: an argument or the memory was refused.
    Refused(Refusal),
    /// A collective call failed.
    Collective(Error),
    /// The host failed: the error's class, and a text.
    Host(Class, &'static str),
    /// The ranks of a group are wrong.
    Group,
    /// No member's arena has room for a communicator.
    Full {
        /// Bytes that are needed.
        needed: u64,
        /// The most bytes that are free in one arena.
        free: u64,
    },
    /// There is not so much memory for the caller.
    Heap {
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are available.
        free: u64,
    },
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Collective(error)
    }
}

impl Failure {
    /// The error number.
    pub const fn code(&self) -> c_int {
        let class = match self {
            Self::Null(_) => Class::Null,
            Self::Busy => Class::Busy,
            Self::NotReady => Class::NotReady,
            Self::Memory | Self::Full { .. } | Self::Heap { .. } => Class::Memory,
            Self::Request(_) | Self::Requests(_) => Class::Request,
            Self::Size { .. } | Self::Group => Class::Argument,
            Self::Refused(refusal) => refusal.class(),
            Self::Collective(error) => error.class(),
            Self::Host(class, _) => *class,
        };
        class.number()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null(name) => write!(f, "{name} is NULL, must be an address"),
            Self::Busy => f.write_str("the communicator is in use by another call: one call at a time"),
            Self::NotReady => f.write_str("magic is 0: the segment was not created yet"),
            Self::Memory => f.write_str("out of memory for a handle"),
            Self::Size { given, expected } => write!(f, "size is {given}, must be {expected}: sizeof(unisono_params)"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Collective(error) => error.fmt(f),
            Self::Requests(count) => {
                write!(f, "requests of the communicator is {count}, must be 0: wait for them, free them")
            }
            Self::Host(_, words) | Self::Request(words) => f.write_str(words),
            Self::Group => f.write_str("ranks must be distinct ranks of the communicator, the caller's among them"),
            Self::Heap { needed, free } => {
                write!(f, "{needed} bytes of memory are needed, {free} are available")
            }
            Self::Full { needed, free } => {
                write!(
                    f,
                    "a communicator needs {needed} bytes, {free} are free in the members' arenas: UNISONO_ARENA bounds them"
                )
            }
        }
    }
}

thread_local! {
    static LAST: Cell<Option<Failure>> = const { Cell::new(None) };
}

/// The number that a function of the library returns for a result. Keeps the failure for [`unisono_last_error`].
#[inline(always)]
pub fn answer(result: Result<(), Failure>) -> c_int {
    match result {
        Ok(()) => UNISONO_OK,
        Err(failure) => keep(failure),
    }
}

/// Keeps a failure for [`unisono_last_error`]; returns its number.
#[cold]
#[inline(never)]
fn keep(failure: Failure) -> c_int {
    // A thread that is ending can't keep the text any more.
    let _ = LAST.try_with(|last| last.set(Some(failure)));
    failure.code()
}

/// A short text for an error number; never null, not to be freed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn unisono_strerror(code: c_int) -> *const c_char {
    let text = if code == UNISONO_OK { c"no error" } else { c"unknown error number" };
    Class::from_number(code).map_or(text, Class::text).as_ptr()
}

/// The name of an error number as in the header; never null, not to be freed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn unisono_error_name(code: c_int) -> *const c_char {
    let name = if code == UNISONO_OK { c"UNISONO_OK" } else { c"UNISONO_ERR_UNKNOWN" };
    Class::from_number(code).map_or(name, Class::name).as_ptr()
}

/// A C string that is being written: characters that do not fit are dropped, but counted.
struct Text {
    to: *mut u8,
    room: usize,
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        // One byte stays for the final zero.
        let fits = s.len().min(self.room.saturating_sub(1).saturating_sub(self.len));
        if fits > 0 {
            // SAFETY: `len + fits` is below `room`, which the caller of `unisono_last_error` promises to be writable.
            unsafe { core::ptr::copy_nonoverlapping(s.as_ptr(), self.to.wrapping_add(self.len), fits) };
        }
        self.len += s.len();
        Ok(())
    }
}

/// Writes the text of the calling thread's last error, and a final zero, into the `len` bytes at `buf`. Returns the
/// length of the whole text without the zero, like `snprintf`. The text is empty if no call of this thread has failed.
///
/// # Safety
/// `buf` is null or points to `len` writable bytes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_last_error(buf: *mut c_char, len: usize) -> usize {
    let room = if buf.is_null() { 0 } else { len };
    let mut text = Text { to: buf.cast(), room, len: 0 };
    if let Some(failure) = LAST.try_with(Cell::get).ok().flatten() {
        // `Text` never fails.
        let _ = write!(text, "{failure}");
    }
    if room > 0 {
        let end = text.len.min(room - 1);
        // SAFETY: `end` is below `room`; the caller's promise.
        unsafe { text.to.wrapping_add(end).write(0) };
    }
    text.len
}
