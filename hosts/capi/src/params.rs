//! A segment's parameters, as a C struct that has its own size in a field.

use crate::error::{Failure, answer};
use crate::waiting::crowded;
use core::ffi::c_int;
use core::mem::{MaybeUninit, offset_of};
use memoffset::span_of;
use unisono_kernel::region::{Layout, Params};

/// `unisono_params`. Later versions add fields only at the end; `size` says which fields the caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CParams {
    /// Bytes of the struct that the caller was compiled with.
    pub size: u32,
    /// Number of processes.
    pub ranks: u32,
    /// Bytes of a page.
    pub page: u64,
    /// Bytes of one slot of a rank's queue.
    pub queue_fragment: u64,
    /// Number of slots of a rank's queue.
    pub queue_slots: u32,
    /// Number of posted lines of each rank.
    pub lines: u32,
}

impl CParams {
    /// This version's default values for `ranks` processes.
    fn new(ranks: u32) -> Self {
        let Params { page, lines, queue_slots, queue_fragment, .. } = Params::new(ranks);
        Self { size: size_of::<Self>() as u32, ranks, page, queue_fragment, queue_slots, lines }
    }

    /// Reads the caller's struct, of any version; fields that it does not have get the default values.
    ///
    /// # Safety
    /// `params` is null or points to as many readable bytes as its first field says, aligned as the struct.
    pub(crate) unsafe fn read(params: *const Self) -> Result<Self, Failure> {
        const { assert!(offset_of!(Self, size) == 0) };
        if params.is_null() {
            return Err(Failure::Null("params"));
        }
        // SAFETY: not null; the first field, which every version has.
        let size = known(unsafe { params.cast::<u32>().read() }.into())?;
        // SAFETY: the caller's promise; all fields are integers.
        Ok(unsafe { prefix(params, size, Self::new(1)) })
    }

    /// The layout of a segment with these parameters.
    pub(crate) fn check(&self) -> Result<Layout, Failure> {
        known(self.size.into())?;
        let Self { ranks, page, queue_fragment, queue_slots, lines, .. } = *self;
        Ok(Layout::new(Params {
            ranks,
            page,
            lines,
            queue_slots,
            queue_fragment,
            cico: None,
            mailboxes: None,
            crowded: crowded(ranks),
        })?)
    }
}

/// Bytes of the struct in each version of the header, the first version first: up to its last field.
fn versions() -> [usize; 1] {
    [span_of!(CParams, ..=lines).end]
}

/// The size of the caller's struct, if it is that of a known version.
fn known(size: u64) -> Result<usize, Failure> {
    let version = versions().into_iter().find(|&version| version as u64 == size);
    version.ok_or(Failure::Size { given: size, expected: size_of::<CParams>() })
}

/// A copy of `rest` with its first `bytes` bytes replaced by those at `from`.
///
/// # Safety
/// `from` points to so many readable bytes; any bytes are a valid `T`.
unsafe fn prefix<T: Copy>(from: *const T, bytes: usize, rest: T) -> T {
    let mut whole = MaybeUninit::new(rest);
    // SAFETY: readable by the caller's promise; cut to the size of `whole`, which does not overlap `from`.
    unsafe { whole.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from.cast(), bytes.min(size_of::<T>())) };
    // SAFETY: it was initialized; any bytes are a valid `T`, by the caller's promise.
    unsafe { whole.assume_init() }
}

/// Fills `params`, a struct of `size` bytes (`sizeof(unisono_params)`), with default values for `ranks` processes.
///
/// # Safety
/// `params` is null or points to `size` writable bytes, aligned as the struct.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_params_init(params: *mut CParams, size: usize, ranks: u32) -> c_int {
    answer((|| {
        if params.is_null() {
            return Err(Failure::Null("params"));
        }
        let size = known(size as u64)?;
        let filled = CParams { size: size as u32, ..CParams::new(ranks) };
        // SAFETY: `size` bytes, at most those of `filled`, writable by the caller's promise: the fields that the caller has.
        unsafe { params.cast::<u8>().copy_from_nonoverlapping((&raw const filled).cast(), size) };
        filled.check()?;
        Ok(())
    })())
}

/// Writes the size of a segment with these parameters to `bytes`.
///
/// # Safety
/// `params` is null or points to a struct that has as many bytes as it says, aligned; `bytes` is null or may be written.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_bytes(params: *const CParams, bytes: *mut u64) -> c_int {
    answer((|| {
        // SAFETY: the caller's promise.
        let params = unsafe { CParams::read(params) }?;
        if bytes.is_null() {
            return Err(Failure::Null("bytes"));
        }
        let layout = params.check()?;
        // SAFETY: not null; writable by the caller's promise.
        unsafe { bytes.write(layout.bytes()) };
        Ok(())
    })())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The struct of a later version.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(C)]
    struct Next {
        now: CParams,
        more: u32,
        most: u64,
    }

    #[test]
    fn a_version_ends_with_its_last_field() {
        assert_eq!(versions(), [32]);
        assert_eq!(versions().last(), Some(&size_of::<CParams>()), "the last one is the struct");
        assert_eq!([span_of!(Next, ..=now).end, span_of!(Next, ..=more).end, size_of::<Next>()], [32, 36, 48]);
        assert!([0, 31, 33, 48, u64::MAX].into_iter().all(|size| known(size).is_err()));
    }

    #[test]
    fn an_older_callers_fields_are_read_and_no_byte_after_them() {
        let rest = Next { now: CParams::new(1), more: 7, most: 9 };
        // Exactly the older struct's memory: Miri finds a read after its end.
        let old = Box::new(CParams { lines: 16, ..CParams::new(5) });
        // SAFETY: the bytes of the older struct; integers.
        let read = unsafe { prefix((&raw const *old).cast::<Next>(), span_of!(Next, ..=now).end, rest) };
        assert_eq!(read, Next { now: *old, ..rest });
        let newer = Next { now: *old, more: 1, most: 2 };
        // SAFETY: all of its bytes; integers.
        assert_eq!(unsafe { prefix(&raw const newer, usize::MAX, rest) }, newer);
        // SAFETY: no bytes.
        assert_eq!(unsafe { prefix(&raw const newer, 0, rest) }, rest);
    }

    #[test]
    fn the_first_field_says_how_many_bytes_may_be_read() {
        let good = CParams::new(2);
        // SAFETY: a struct of this version.
        assert_eq!(unsafe { CParams::read(&raw const good) }.unwrap(), good);
        let alone = 1u32;
        // SAFETY: the size is not a version's, so nothing else is read.
        let refused = unsafe { CParams::read((&raw const alone).cast()) };
        assert!(matches!(refused, Err(Failure::Size { given: 1, expected: 32 })));
        // SAFETY: null.
        assert!(matches!(unsafe { CParams::read(core::ptr::null()) }, Err(Failure::Null("params"))));
    }
}
