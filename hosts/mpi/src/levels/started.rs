//! Requests of calls that were started.

use super::calls::take;
use super::{Called, Levels};
use core::ffi::c_int;
use std::sync::{Arc, Mutex};
use unisono_c::error::{Failure, answer};

/// `unisono_mpi_levels_request`, opaque in C: a call that was started.
#[derive(Debug)]
pub struct Started {
    levels: *const Levels,
    end: Arc<Mutex<Option<Called>>>,
}

impl Started {
    pub(super) const fn new(levels: *const Levels, end: Arc<Mutex<Option<Called>>>) -> Self {
        Self { levels, end }
    }

    /// Moves the calls of its communicator, unless another thread uses that now. How has this one ended?
    ///
    /// # Safety
    /// The communicator was not released.
    unsafe fn test(&self) -> Option<Called> {
        // SAFETY: the caller's promise; what changes is behind a lock.
        if let Ok(mut calls) = unsafe { &*self.levels }.calls.try_lock() {
            calls.advance();
        }
        take(&self.end)
    }
}

/// Moves a call that was started, and all before it on its communicator. Once it is complete, `done` is 1, and the request is freed and
/// null; the result is the call's. A thread may do so while another one calls the communicator.
///
/// # Safety
/// `request` is null or points to a request of a communicator that was not released, which no other thread uses; `done` may be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_test(request: *mut *mut Started, done: *mut c_int) -> c_int {
    if request.is_null() || done.is_null() {
        return answer(Err(Failure::Null(if done.is_null() { "done" } else { "request" })));
    }
    // SAFETY: not null, readable by the caller's promise.
    let begun = unsafe { request.read() };
    // SAFETY: a request, by the caller's promise, or null.
    let end = match unsafe { begun.as_ref() } {
        // SAFETY: the caller's promise.
        Some(begun) => unsafe { begun.test() },
        None => Some(Ok(())),
    };
    // SAFETY: not null, writable by the caller's promise.
    unsafe { done.write(end.is_some().into()) };
    if end.is_some() && !begun.is_null() {
        // SAFETY: as above.
        unsafe { request.write(core::ptr::null_mut()) };
        // SAFETY: a box of `with`, which nothing uses any more.
        drop(unsafe { Box::from_raw(begun) });
    }
    answer(end.unwrap_or(Ok(())))
}
