//! What a segment is made for, as a plain struct that carries its own size.

use crate::error::{Failure, answer};
use core::ffi::c_int;
use unisono_kernel::region::{Layout, Params};

/// `unisono_params`. Fields are only ever added at the end; `size` says which of them the caller knows.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CParams {
    /// Bytes of the struct that the caller was compiled with.
    pub size: u32,
    /// Number of processes.
    pub ranks: u32,
    /// Bytes of a page.
    pub page: u64,
    /// Bytes in one slot of a rank's queue.
    pub queue_fragment: u64,
    /// Slots of a rank's queue.
    pub queue_slots: u32,
    /// Posted lines per rank.
    pub lines: u32,
}

impl CParams {
    /// The layout that follows.
    pub(crate) fn check(&self) -> Result<Layout, Failure> {
        known(self.size.into())?;
        let Self { ranks, page, queue_fragment, queue_slots, lines, .. } = *self;
        Ok(Layout::new(Params { ranks, page, lines, queue_slots, queue_fragment, cico: None, mailboxes: None })?)
    }
}

/// Is `size` that of the struct as this version knows it?
fn known(size: u64) -> Result<(), Failure> {
    let bound = size_of::<CParams>();
    if size == bound as u64 { Ok(()) } else { Err(Failure::Size(size, bound)) }
}

/// Fills `params`, a struct of `size` bytes (`sizeof(unisono_params)`), with good values for `ranks` processes.
///
/// # Safety
/// `params` is null or points to `size` writable bytes, aligned as the struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_params_init(params: *mut CParams, size: usize, ranks: u32) -> c_int {
    answer((|| {
        if params.is_null() {
            return Err(Failure::Null("params"));
        }
        known(size as u64)?;
        let Params { page, lines, queue_slots, queue_fragment, .. } = Params::new(ranks);
        let filled = CParams { size: size as u32, ranks, page, queue_fragment, queue_slots, lines };
        // SAFETY: not null, of this size, writable and aligned by the caller's promise.
        unsafe { params.write(filled) };
        filled.check()?;
        Ok(())
    })())
}

/// Writes the bytes of a segment for `params` to `bytes`.
///
/// # Safety
/// Each pointer is null or points to its struct, `bytes` to a writable one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_bytes(params: *const CParams, bytes: *mut u64) -> c_int {
    answer((|| {
        // SAFETY: null, or a struct of the caller's that nobody writes during the call.
        let params = unsafe { params.as_ref() }.ok_or(Failure::Null("params"))?;
        if bytes.is_null() {
            return Err(Failure::Null("bytes"));
        }
        let layout = params.check()?;
        // SAFETY: not null; writable by the caller's promise.
        unsafe { bytes.write(layout.bytes()) };
        Ok(())
    })())
}
