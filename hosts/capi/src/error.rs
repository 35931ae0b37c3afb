//! Error numbers, fixed for good, and the text of a thread's last error.

use core::ffi::{c_char, c_int};
use core::fmt::{self, Write};
use std::cell::Cell;
use unisono_kernel::error::{Argument, Cause, Error, Poison, PollError, Refusal};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        $($(#[$doc])* pub const $name: c_int = $value;)*

        /// Every number with its name in the header and a short text, both with their final zero.
        pub const ALL: &[(c_int, &str, &str)] = &[$(($value, concat!(stringify!($name), "\0"), concat!($text, "\0"))),*];
    };
}

// A number that was released keeps its meaning; new ones go to the end.
codes! {
    /// No error.
    UNISONO_OK = 0, "no error";
    /// A pointer that must not be null is null.
    UNISONO_ERR_NULL = -1, "a pointer is null";
    /// An argument of this call was refused.
    UNISONO_ERR_ARGUMENT = -2, "an argument was refused";
    /// The handle is in use by another call.
    UNISONO_ERR_BUSY = -3, "the communicator is in use by another call";
    /// The memory holds no segment yet.
    UNISONO_ERR_NOT_READY = -4, "the segment was not created yet";
    /// The memory holds something else, or a segment of another version or layout.
    UNISONO_ERR_SEGMENT = -5, "the memory holds no segment that this version understands";
    /// This rank's arguments do not fit those of another.
    UNISONO_ERR_MISMATCH = -6, "the ranks' arguments disagree";
    /// Another rank refused its arguments, at this or an earlier operation.
    UNISONO_ERR_PEER = -7, "another rank refused its arguments";
    /// A rank is gone.
    UNISONO_ERR_DIED = -8, "a rank died";
    /// A rank was waited for longer than its bound of time.
    UNISONO_ERR_LATE = -9, "a rank was late";
    /// Words in the segment that no member writes.
    UNISONO_ERR_CORRUPT = -10, "the segment is corrupt";
    /// No memory for the handle.
    UNISONO_ERR_MEMORY = -11, "out of memory";
    /// None of the above.
    UNISONO_ERR_OTHER = -12, "another error";
    /// A start-up between processes failed.
    UNISONO_ERR_HOST = -13, "the processes could not be joined";
    /// A request is active, or can't be started.
    UNISONO_ERR_REQUEST = -14, "a request is in the way";
}

/// Why a call failed.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// The pointer of this name is null.
    Null(&'static str),
    /// The handle is in use.
    Busy,
    /// The first word of the segment is zero.
    NotReady,
    /// No memory for the handle.
    Memory,
    /// A request's state does not allow it: why, in words.
    Request(&'static str),
    /// This many requests of the communicator were not freed.
    Requests(usize),
    /// A struct's `size` is this, not that of this version's struct.
    Size(u64, usize),
    /// Creating or attaching: an argument or the memory.
    Refused(Refusal),
    /// A collective call.
    Collective(Error),
    /// The system that starts the processes: what failed, in words that outlive the call.
    Host(&'static str),
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
    /// The number.
    pub const fn code(&self) -> c_int {
        match self {
            Self::Null(_) => UNISONO_ERR_NULL,
            Self::Busy => UNISONO_ERR_BUSY,
            Self::NotReady => UNISONO_ERR_NOT_READY,
            Self::Memory => UNISONO_ERR_MEMORY,
            Self::Request(_) | Self::Requests(_) => UNISONO_ERR_REQUEST,
            Self::Refused(Refusal { argument: Argument::Magic | Argument::Version | Argument::Hash, .. }) => {
                UNISONO_ERR_SEGMENT
            }
            Self::Size(..) | Self::Refused(_) | Self::Collective(Error::Refused(_)) => UNISONO_ERR_ARGUMENT,
            Self::Collective(Error::Poisoned(Poison { cause, .. })) => match cause {
                Cause::Died => UNISONO_ERR_DIED,
                Cause::Refused(_) => UNISONO_ERR_PEER,
                Cause::Fault => UNISONO_ERR_CORRUPT,
                Cause::Late => UNISONO_ERR_LATE,
            },
            Self::Collective(Error::Poll(PollError::Mismatch { .. })) => UNISONO_ERR_MISMATCH,
            Self::Collective(Error::Poll(PollError::Overrun { .. })) => UNISONO_ERR_CORRUPT,
            Self::Collective(_) => UNISONO_ERR_OTHER,
            Self::Host(_) => UNISONO_ERR_HOST,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null(name) => write!(f, "{name} is NULL, must be an address"),
            Self::Busy => f.write_str("the communicator is in use by another call: one call at a time"),
            Self::NotReady => f.write_str("magic is 0: the segment was not created yet"),
            Self::Memory => f.write_str("out of memory for a handle"),
            Self::Size(value, bound) => write!(f, "size is {value}, must be {bound}: sizeof(unisono_params)"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Collective(error) => error.fmt(f),
            Self::Requests(count) => {
                write!(f, "requests of the communicator is {count}, must be 0: wait for them, free them")
            }
            Self::Host(words) | Self::Request(words) => f.write_str(words),
        }
    }
}

thread_local! {
    static LAST: Cell<Option<Failure>> = const { Cell::new(None) };
}

/// What a function of the library answers; keeps the failure for [`unisono_last_error`].
pub fn answer(result: Result<(), Failure>) -> c_int {
    match result {
        Ok(()) => UNISONO_OK,
        Err(failure) => {
            // A thread that is ending has no last error any more: the number must do.
            let _ = LAST.try_with(|last| last.set(Some(failure)));
            failure.code()
        }
    }
}

fn entry(code: c_int) -> (&'static str, &'static str) {
    ALL.iter()
        .find(|(number, ..)| *number == code)
        .map_or(("UNISONO_ERR_UNKNOWN\0", "unknown error number\0"), |&(_, name, text)| (name, text))
}

/// A short text for an error number; never null, never to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_strerror(code: c_int) -> *const c_char {
    entry(code).1.as_ptr().cast()
}

/// The name of an error number as the header writes it; never null, never to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn unisono_error_name(code: c_int) -> *const c_char {
    entry(code).0.as_ptr().cast()
}

/// A C string under construction: what does not fit is counted and dropped.
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

/// Writes the text of the calling thread's last error, which names argument, value and bound, and a
/// final zero into the `len` bytes at `buf`; answers the bytes of the whole text without the zero,
/// as `snprintf`. Empty if no call of this thread has failed.
///
/// # Safety
/// `buf` is null or points to `len` writable bytes.
#[unsafe(no_mangle)]
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
