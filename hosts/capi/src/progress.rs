//! Progress on other communicators while a thread waits or tests: on those where it has started requests.
//!
//! MPI lets ranks call the operations of several communicators in different orders, as long as the order on each one is
//! the same. So a thread that waits on one makes progress on its others, without waiting there. A communicator is on at
//! most one thread's list: that of the last thread to start a request. It leaves the list when it is found without
//! active requests, or is freed.
//!
//! Safety: a handle on a list was not freed. A thread that frees a handle claims it first, and takes it off its list
//! under the list's lock; a thread that makes progress on one claims it under that lock.

use crate::comm::{Claim, Handle};
use crate::request::State;
use core::cell::{Cell, RefCell};
use core::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The communicators of one thread.
#[derive(Debug)]
pub(crate) struct List {
    /// The process that made it: a child of fork has a copy of its parent's list, and must not use it.
    process: u32,
    handles: Mutex<Vec<Listed>>,
}

/// A handle on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listed(*const Handle);

// SAFETY: a handle may be used by any thread that claims it.
unsafe impl Send for Listed {}

impl List {
    fn new() -> Arc<Self> {
        Arc::new(Self { process: std::process::id(), handles: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// Claims the first free handle from index `at` on, and sets `at` to its index. `None` too while another thread
    /// changes the list.
    fn claim<'h>(&self, at: &mut usize) -> Option<Claim<'h>> {
        let handles = self.handles.try_lock().ok()?;
        while let Some(&Listed(handle)) = handles.get(*at) {
            // SAFETY: a handle on a list was not freed, nor will be before the lock or the claim is released.
            if let Some(claim) = Claim::for_progress(unsafe { &*handle }) {
                return self.is_this_process().then_some(claim);
            }
            *at += 1;
        }
        None
    }

    /// Makes progress on all free handles. Returns whether there were any.
    fn advance(&self, current: &Cell<*const Handle>) -> bool {
        let (mut at, mut any) = (0, false);
        while let Some(mut claim) = self.claim(&mut at) {
            any = true;
            let mark = InProgress::new(current, &claim);
            let state = claim.state();
            state.progress_ignoring_errors();
            if state.is_active() {
                at += 1;
            } else {
                unlist(&mut claim);
            }
            drop(mark);
        }
        any
    }
}

/// A thread's list, and its state.
struct Own {
    list: RefCell<Option<Arc<List>>>,
    /// The handle on which [`progress_all`] makes progress now; null outside of it.
    current: Cell<*const Handle>,
}

thread_local! {
    static OWN: Own = const { Own { list: RefCell::new(None), current: Cell::new(ptr::null()) } };
}

/// Marks a handle as this thread's current one until it is dropped, also if a user's operation unwinds.
struct InProgress<'a>(&'a Cell<*const Handle>);

impl<'a> InProgress<'a> {
    fn new(current: &'a Cell<*const Handle>, claim: &Claim<'_>) -> Self {
        current.set(claim.handle());
        Self(current)
    }
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        self.0.set(ptr::null());
    }
}

/// Is this thread inside of [`progress_all`], at this handle?
pub(crate) fn is_in_progress(handle: &Handle) -> bool {
    OWN.try_with(|own| ptr::eq(own.current.get(), handle)).unwrap_or(false)
}

/// Makes progress on this thread's free communicators. It does nothing if it is called from inside itself. Returns
/// whether there were any.
pub(crate) fn progress_all() -> bool {
    // A thread that is ending has no list any more.
    let any = OWN.try_with(|own| {
        if !own.current.get().is_null() {
            return false;
        }
        let list = own.list.borrow().clone();
        list.is_some_and(|list| list.advance(&own.current))
    });
    any.unwrap_or(false)
}

/// To be called after a request was started: if it is not complete, puts its communicator on this thread's list.
#[inline]
pub(crate) fn list(claim: &mut Claim<'_>) {
    if claim.state().is_active() {
        let _ = OWN.try_with(|own| enlist(own, claim));
    }
}

fn enlist(own: &Own, claim: &mut Claim<'_>) {
    let mut list = own.list.borrow_mut();
    if let (Some(own), Some(on)) = (&*list, &claim.state().list)
        && Arc::ptr_eq(own, on)
    {
        return;
    }
    unlist(claim);
    let own = match &mut *list {
        Some(own) if own.is_this_process() => own,
        other => other.insert(List::new()),
    };
    let mut handles = own.lock();
    // Without memory only calls on this communicator make progress on it.
    if handles.try_reserve(1).is_ok() {
        handles.push(Listed(claim.handle()));
        drop(handles);
        claim.state().list = Some(Arc::clone(own));
    }
}

/// Takes a handle off its list, because it is freed or has no operation in flight.
pub(crate) fn unlist(claim: &mut Claim<'_>) {
    let handle = Listed(claim.handle());
    let State { list, .. } = claim.state();
    if let Some(list) = list.take() {
        list.lock().retain(|other| *other != handle);
    }
}
