//! Nonblocking and persistent operations, as handles on this library's heap.
//!
//! A communicator keeps the order in which its requests were started. Every call on it makes progress on the oldest
//! request, and a wait makes progress on requests that its thread has started on other communicators too
//! (`progress.rs`). A request is used only under the claim of its communicator.
//!
//! Safety of all functions: `request` is null or points to a request's pointer, which is null or comes from a function
//! of this library and was not freed; its communicator was not freed either. No other thread uses the request.

use crate::comm::{Claim, Embedded, Handle};
use crate::error::{Failure, answer};
use crate::forms::{Lists, Numbers};
use crate::heap::allocate;
use crate::progress::{self, List};
use core::cell::OnceCell;
use core::ffi::c_int;
use core::ptr::null_mut;
use std::collections::VecDeque;
use std::sync::Arc;
use unisono_kernel::call::Call;
use unisono_kernel::call::any::Any;
use unisono_kernel::call::in_flight::{InFlight, Storage};
use unisono_kernel::comm::{Communicator, Member};
use unisono_kernel::data::blocks::Block;
use unisono_kernel::error::{Error, Refusal};
use unisono_kernel::machine::transport::Observe;
use unisono_kernel::region::{Counter, Word};

/// `unisono_request`, opaque in C: a nonblocking or a persistent operation.
#[derive(Debug)]
pub struct Request {
    comm: *const Handle,
    numbers: Numbers,
    blocks: OnceCell<Vec<Block<'static>>>,
    /// `None` until the arguments are checked.
    machine: Option<Any<'static>>,
    persistent: bool,
    active: bool,
    /// 1 once the operation is complete: for a look without the claim.
    done: Word,
}

/// The active requests, the oldest first. It has room for all requests that were not freed.
#[derive(Debug, Default)]
struct Active(VecDeque<*mut Request>);

impl Storage<'static> for Active {
    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn oldest(&mut self) -> Option<&mut Any<'static>> {
        let oldest = *self.0.front()?;
        // SAFETY: an active request is not freed, and is used only under the claim.
        unsafe { (*oldest).machine.as_mut() }
    }

    #[inline]
    fn retire_oldest(&mut self) {
        if let Some(oldest) = self.0.pop_front() {
            // SAFETY: as above.
            unsafe { (*oldest).active = false };
            // publishes: what the operation has received, to a thread that looks without the claim
            // SAFETY: as above.
            Counter::store_release(unsafe { &(*oldest).done }, 1);
        }
    }
}

/// The part of a handle that needs the claim: the communicator, and its requests.
#[derive(Debug)]
pub struct State {
    pub(crate) communicator: Communicator<Embedded>,
    in_flight: InFlight<Active>,
    /// Number of requests that were not freed.
    pub(crate) requests: usize,
    /// The thread's list that the handle is on.
    pub(crate) list: Option<Arc<List>>,
}

impl State {
    pub(crate) const fn new(communicator: Communicator<Embedded>) -> Self {
        let in_flight = InFlight::new(Active(VecDeque::new()));
        Self { communicator, in_flight, requests: 0, list: None }
    }

    /// Is an operation in flight?
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        !self.in_flight.storage().is_empty()
    }

    /// [`InFlight::move_oldest`] on this communicator.
    #[inline]
    fn move_oldest(
        &mut self,
        advance: impl FnOnce(&mut Communicator<Embedded>, &mut Any<'static>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        self.in_flight.move_oldest(&mut self.communicator, |on, oldest| on.start(oldest), advance)
    }

    /// Makes progress on the operations in flight without waiting.
    fn progress(&mut self) -> Result<(), Error> {
        while self.move_oldest(|on, oldest| on.advance(oldest))? {}
        Ok(())
    }

    /// The same from a call on another communicator. A failure poisons this one, and its next call returns the error.
    pub(crate) fn progress_ignoring_errors(&mut self) {
        let _ = self.progress();
    }

    /// Completes all active requests, before a blocking call.
    #[inline(always)]
    pub(crate) fn drain(&mut self) -> Result<(), Error> {
        while self.is_active() {
            self.move_oldest(|on, oldest| on.complete(oldest))?;
        }
        Ok(())
    }

    /// The communicator, for a host's collectives, after all active requests are complete.
    ///
    /// # Errors
    /// The error of an active operation.
    pub fn drained(&mut self) -> Result<&mut Communicator<Embedded>, Error> {
        self.drain()?;
        Ok(&mut self.communicator)
    }

    /// Makes a request active, as the last one, and makes progress.
    fn start(&mut self, request: *mut Request) -> Result<(), Error> {
        // SAFETY: not freed, and used only under the claim.
        unsafe { (*request).active = true };
        // SAFETY: as above.
        Counter::store_release(unsafe { &(*request).done }, 0);
        // Room was reserved when the request was made.
        self.in_flight.storage_mut().0.push_back(request);
        self.progress().inspect_err(|_| self.retire(request))
    }

    /// Makes a request inactive because its communicator is poisoned: it will never be polled again.
    fn retire(&mut self, request: *mut Request) {
        // SAFETY: not freed, and used only under the claim.
        unsafe { (*request).active = false };
        let Active(active) = self.in_flight.storage_mut();
        let oldest = active.front() == Some(&request);
        active.retain(|other| *other != request);
        if oldest {
            self.in_flight.give_up();
        }
    }

    /// Frees a request that is not active.
    fn free(&mut self, request: *mut Request) {
        self.requests -= 1;
        // SAFETY: made by `allocate`, freed once; no reference to it is left.
        drop(unsafe { Box::from_raw(request) });
    }
}

/// The request at `request`, which may be null.
///
/// # Safety
/// See the [module](self).
unsafe fn read(request: *mut *mut Request) -> Result<*mut Request, Failure> {
    // SAFETY: the caller's promise.
    unsafe { request.as_ref() }.copied().ok_or(Failure::Null("request"))
}

/// The exclusive use of a request's communicator.
///
/// # Safety
/// See the [module](self); not null.
unsafe fn claim<'h>(request: *mut Request) -> Result<Claim<'h>, Failure> {
    // SAFETY: the caller's promise. The field never changes.
    let comm = unsafe { (*request).comm };
    // SAFETY: the caller's promise: a communicator is not freed before its requests.
    Claim::new(unsafe { &*comm })
}

/// Makes a request of the call that `make` returns, and starts it if it is not persistent.
///
/// # Safety
/// `comm` is null, or comes from `unisono_attach` and was not freed; `request` is null or points to a pointer that may be
/// written; the memory in the call is valid until the request is freed.
pub(crate) unsafe fn create(
    comm: *mut Handle,
    request: *mut *mut Request,
    persistent: bool,
    make: impl FnOnce(&Member, Lists<'static>) -> Result<Call<'static>, Refusal>,
) -> c_int {
    answer((|| {
        // SAFETY: the caller's promise.
        let to = unsafe { request.as_mut() }.ok_or(Failure::Null("request"))?;
        *to = null_mut();
        // SAFETY: the caller's promise; there are only shared references to the handle, and its changing parts are
        // cells.
        let handle = unsafe { comm.as_ref() }.ok_or(Failure::Null("comm"))?;
        let mut claim = Claim::new(handle)?;
        let state = claim.state();
        state.in_flight.storage_mut().0.try_reserve(state.requests + 1).map_err(|_| Failure::Memory)?;
        let (numbers, blocks, done) = (Numbers::new(), OnceCell::new(), Word::zero());
        let own = allocate(Request { comm, numbers, blocks, machine: None, persistent, active: false, done })?;
        state.requests += 1;
        let before = state.in_flight.unstarted();
        // SAFETY: allocated above. The lists in it keep their address until the request, and its machine, is freed.
        let numbers = unsafe { &mut (*own).numbers };
        // SAFETY: as above.
        let lists = Lists { numbers, blocks: unsafe { &(*own).blocks } };
        let machine = state.communicator.build(before, |me| make(me, lists)?.build(me));
        let started = machine.and_then(|machine| {
            // SAFETY: as above; nothing else has its address yet.
            unsafe { (*own).machine = Some(machine) };
            if persistent { Ok(()) } else { state.start(own) }
        });
        if let Err(error) = started {
            state.free(own);
            return Err(error.into());
        }
        progress::list(&mut claim);
        *to = own;
        Ok(())
    })())
}

/// Makes progress on a request's communicator by `advance`, once or until the request is complete. Returns whether it
/// is; if so, it is freed, unless it is persistent.
///
/// # Safety
/// See the [module](self).
unsafe fn complete(
    request: *mut *mut Request,
    once: bool,
    advance: impl FnMut(&mut State) -> Result<(), Error>,
) -> Result<bool, Failure> {
    // SAFETY: the caller's promise.
    let own = unsafe { read(request) }?;
    if own.is_null() {
        return Ok(true);
    }
    // SAFETY: the caller's promise; not null.
    let mut claim = unsafe { claim(own) }?;
    // SAFETY: the caller's promise.
    unsafe { complete_claimed(request, own, &mut claim, once, advance) }
}

/// As [`unisono_test`], for a host whose threads move each other's nonblocking requests: a call that begins meanwhile waits for the
/// end of this one. While another call uses the communicator, which completes what was started before it, this one only looks whether the
/// request is complete, and then does not free it: `request` stays, to be tested again.
///
/// # Errors
/// The failure of the operation; the request is freed then, too.
///
/// # Safety
/// See the [module](self).
pub unsafe fn test_beside_calls(request: *mut *mut Request) -> Result<bool, Failure> {
    // SAFETY: the caller's promise.
    let own = unsafe { read(request) }?;
    if own.is_null() {
        return Ok(true);
    }
    // SAFETY: the caller's promise. The field never changes.
    let comm = unsafe { (*own).comm };
    // SAFETY: the caller's promise: a communicator is not freed before its requests.
    let Some(mut claim) = Claim::for_progress(unsafe { &*comm }) else {
        // pairs with: the store in retire_oldest
        // SAFETY: not freed; only the flag is used without the claim.
        return Ok(Counter::load_acquire(unsafe { &(*own).done }).at_least(1));
    };
    // SAFETY: the caller's promise.
    unsafe { complete_claimed(request, own, &mut claim, true, State::progress) }
}

/// [`complete`] for `own`, the request at `request`, under the claim of its communicator.
///
/// # Safety
/// See the [module](self).
unsafe fn complete_claimed(
    request: *mut *mut Request,
    own: *mut Request,
    claim: &mut Claim<'_>,
    once: bool,
    mut advance: impl FnMut(&mut State) -> Result<(), Error>,
) -> Result<bool, Failure> {
    let state = claim.state();
    // SAFETY: not freed, and used only under the claim.
    let is_active = || unsafe { (*own).active };
    let mut result = Ok(());
    while is_active() {
        let moved = advance(state);
        if let Err(error) = moved {
            if is_active() {
                state.retire(own);
                result = Err(error.into());
            }
        } else if once && is_active() {
            return Ok(false);
        }
    }
    // SAFETY: as above.
    if unsafe { !(*own).persistent } {
        state.free(own);
        // SAFETY: the caller's promise.
        unsafe { request.write(null_mut()) };
    }
    result.map(|()| true)
}

/// Starts a persistent request.
///
/// # Safety
/// See the [module](self); `request` is null, or the request itself.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn unisono_start(request: *mut Request) -> c_int {
    answer((|| {
        if request.is_null() {
            return Err(Failure::Null("request"));
        }
        // SAFETY: the caller's promise; not null.
        let mut claim = unsafe { claim(request) }?;
        // SAFETY: not freed, and used only under the claim.
        let Request { persistent, active, .. } = unsafe { &*request };
        match (*persistent, *active) {
            (false, _) => Err(Failure::Request("the request is nonblocking: it was started when it was made")),
            (true, true) => Err(Failure::Request("the request is active: wait for it first")),
            (true, false) => {
                claim.state().start(request)?;
                progress::list(&mut claim);
                Ok(())
            }
        }
    })())
}

/// Makes progress, and writes to `done` whether the request is complete.
///
/// # Safety
/// See the [module](self); `done` is null or may be written.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn unisono_test(request: *mut *mut Request, done: *mut c_int) -> c_int {
    answer((|| {
        // SAFETY: the caller's promise.
        let done = unsafe { done.as_mut() }.ok_or(Failure::Null("done"))?;
        *done = 0;
        // SAFETY: the caller's promise.
        *done = unsafe { complete(request, true, State::progress) }?.into();
        Ok(())
    })())
}

/// Waits until the request is complete.
///
/// # Safety
/// See the [module](self).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn unisono_wait(request: *mut *mut Request) -> c_int {
    let wait = |state: &mut State| state.move_oldest(|on, oldest| on.complete(oldest)).map(drop);
    // SAFETY: the caller's promise.
    answer(unsafe { complete(request, false, wait) }.map(drop))
}

/// Waits until all `count` requests are complete, and makes progress on the communicators of all of them. Returns the
/// first failure.
///
/// # Safety
/// `requests` is null, or points to `count` pointers as in the [module](self).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn unisono_wait_all(count: usize, requests: *mut *mut Request) -> c_int {
    if requests.is_null() && count > 0 {
        return answer(Err(Failure::Null("requests")));
    }
    let mut result = Ok(());
    for at in 0..count {
        let mut others = || {
            for other in (at + 1..count).map(|other| requests.wrapping_add(other)) {
                // SAFETY: the caller's promise, for all indices below `count`.
                unsafe { progress_on(other) };
            }
        };
        let wait = |state: &mut State| state.move_oldest(|on, oldest| on.advance_among(oldest, &mut others)).map(drop);
        // SAFETY: as above.
        let one = unsafe { complete(requests.wrapping_add(at), false, wait) };
        result = result.and(one.map(drop));
    }
    answer(result)
}

/// Makes progress on a request's communicator, unless a call is using it.
///
/// # Safety
/// See the [module](self).
unsafe fn progress_on(request: *mut *mut Request) {
    // SAFETY: the caller's promise.
    let Ok(own) = (unsafe { read(request) }) else { return };
    if own.is_null() {
        return;
    }
    // SAFETY: the caller's promise; not null.
    if let Ok(mut claim) = unsafe { claim(own) } {
        claim.state().progress_ignoring_errors();
    }
}

/// Frees a request that is not active, and writes null to `request`.
///
/// # Safety
/// See the [module](self).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn unisono_request_free(request: *mut *mut Request) -> c_int {
    answer((|| {
        // SAFETY: the caller's promise.
        let own = unsafe { read(request) }?;
        if own.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's promise; not null.
        let mut claim = unsafe { claim(own) }?;
        let state = claim.state();
        // SAFETY: not freed, and used only under the claim.
        if unsafe { (*own).active } {
            if state.communicator.comm().poison().is_some() {
                state.retire(own);
            } else {
                return Err(Failure::Request("the request is active: wait for it first"));
            }
        }
        state.free(own);
        // SAFETY: the caller's promise.
        unsafe { request.write(null_mut()) };
        Ok(())
    })())
}
