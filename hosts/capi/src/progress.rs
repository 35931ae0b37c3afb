//! What moves while a thread waits or looks: the communicators on which it has started requests.
//!
//! MPI lets ranks make the operations of several communicators in different orders, as long as each one's are in order.
//! So a thread that waits in one moves those of its others, without waiting there. A communicator is on one thread's list
//! at most: that of the last one to start a request. It leaves the list when it is found without active requests, or freed.
//!
//! Safety: what is on a list was not freed. Who frees a handle claims it and takes it off its list, under the list's lock;
//! who moves one claims it under that lock.

use crate::comm::{Claim, Handle};
use crate::request::State;
use core::cell::{Cell, RefCell};
use core::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The communicators of one thread.
#[derive(Debug)]
pub(crate) struct List {
    /// A child of fork has its parent's list, and may not use it.
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

    /// The first handle from `at` on that nobody uses, claimed; `at` is its place. None while another thread changes the list.
    fn claim<'h>(&self, at: &mut usize) -> Option<Claim<'h>> {
        let handles = self.handles.try_lock().ok()?;
        while let Some(&Listed(handle)) = handles.get(*at) {
            // SAFETY: what is on a list was not freed, nor will be before the lock is released, or the claim.
            if let Some(claim) = Claim::to_move(unsafe { &*handle }) {
                return self.is_this_process().then_some(claim);
            }
            *at += 1;
        }
        None
    }

    /// Moves all that nobody uses. Was there any?
    fn advance(&self, moves: &Cell<*const Handle>) -> bool {
        let (mut at, mut any) = (0, false);
        while let Some(mut claim) = self.claim(&mut at) {
            any = true;
            let moving = Moving::new(moves, &claim);
            let state = claim.state();
            state.look_aside();
            if state.is_active() {
                at += 1;
            } else {
                unlist(&mut claim);
            }
            drop(moving);
        }
        any
    }
}

/// What a thread has.
struct Own {
    list: RefCell<Option<Arc<List>>>,
    /// What it moves now: null but inside of [`move_all`].
    moves: Cell<*const Handle>,
}

thread_local! {
    static OWN: Own = const { Own { list: RefCell::new(None), moves: Cell::new(ptr::null()) } };
}

/// This thread moves a handle, until this is dropped: also by a user's operation that unwinds.
struct Moving<'a>(&'a Cell<*const Handle>);

impl<'a> Moving<'a> {
    fn new(moves: &'a Cell<*const Handle>, claim: &Claim<'_>) -> Self {
        moves.set(claim.handle());
        Self(moves)
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.set(ptr::null());
    }
}

/// Is this thread inside of [`move_all`], at this handle?
pub(crate) fn is_moving(handle: &Handle) -> bool {
    OWN.try_with(|own| ptr::eq(own.moves.get(), handle)).unwrap_or(false)
}

/// Moves this thread's communicators that nobody uses; not from inside such a move. Was there any?
pub(crate) fn move_all() -> bool {
    // A thread that is ending moves nothing.
    let moved = OWN.try_with(|own| {
        if !own.moves.get().is_null() {
            return false;
        }
        let list = own.list.borrow().clone();
        list.is_some_and(|list| list.advance(&own.moves))
    });
    moved.unwrap_or(false)
}

/// A request was started: if it is not over, this thread's waits move its communicator.
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
    // Without memory it moves in calls of its own alone.
    if handles.try_reserve(1).is_ok() {
        handles.push(Listed(claim.handle()));
        drop(handles);
        claim.state().list = Some(Arc::clone(own));
    }
}

/// Takes a handle off its list: it is freed, or has nothing to move.
pub(crate) fn unlist(claim: &mut Claim<'_>) {
    let handle = Listed(claim.handle());
    let State { list, .. } = claim.state();
    if let Some(list) = list.take() {
        list.lock().retain(|other| *other != handle);
    }
}
