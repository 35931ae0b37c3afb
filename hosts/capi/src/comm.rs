//! Segments in the caller's memory, and handles on them.

use crate::error::{Failure, answer};
use crate::heap::allocate;
use crate::params::CParams;
use crate::progress;
use crate::ran::Ran;
use crate::request::State;
use crate::waiting::{Waiting, waiting};
use core::any::Any;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::fmt;
use core::time::Duration;
use unisono_kernel::Rank;
use unisono_kernel::class::Class;
use unisono_kernel::comm::Communicator;
use unisono_kernel::error::{Argument, Bound, Cause, Poison, Refusal};
use unisono_kernel::machine::transport::Transport;
use unisono_kernel::machine::wait::Relax;
use unisono_kernel::region::{Base, Counter, Flag, Layout, Region, Word, header, state};
use unisono_kernel::table::{Choice, Choices, Chooser};
use unisono_shm::Mapped;

/// Memory that the caller mapped, no messages; the host chooses how to wait.
#[derive(Debug)]
pub enum Embedded {}

impl Transport for Embedded {
    type Region = Mapped;
    type Wait = Waiting;
}

/// What a host keeps with a handle's communicator. It is dropped with the handle.
pub trait HostState: Any {
    /// Called when the handle is freed and no call uses it any more. `end`: the communicator's counts, if all its
    /// operations are complete.
    fn ended(&mut self, end: Option<Base>);

    /// Called when the longest wait of the handle was set; communicators that are made from it inherit it.
    fn set_timeout(&mut self, _most: Option<Duration>) {}

    /// What `Auto` means in the communicator, if all members agreed on a table.
    fn choices(&self) -> Option<&'static Choices> {
        None
    }
}

/// `unisono_comm`, opaque in C: a communicator that one call uses at a time.
pub struct Handle {
    /// [`FREE`], [`USED`] or [`IN_PROGRESS`].
    busy: Word,
    region: Mapped,
    layout: Layout,
    rank: Rank,
    chooser: Chooser,
    state: UnsafeCell<State>,
    /// `None` if the memory is the caller's.
    host: UnsafeCell<Option<Box<dyn HostState>>>,
    /// The algorithm that ran the last blocking call, as [`Ran`] numbers it.
    ran: Word,
}

impl Handle {
    /// A handle for C, on the heap: `rank` on a segment of this layout. [`unisono_free`] frees it.
    ///
    /// # Errors
    /// `rank` is out of the layout's range; no memory.
    pub fn allocate(region: Mapped, layout: Layout, rank: Rank, wait: Waiting) -> Result<*mut Self, Failure> {
        Self::allocate_with_host(region, layout, rank, Base::default(), wait, None)
    }

    /// The same with a host's state, on memory whose communicator starts with the counts `base`.
    ///
    /// # Errors
    /// As [`Self::allocate`].
    pub fn allocate_with_host(
        region: Mapped,
        layout: Layout,
        rank: Rank,
        base: Base,
        wait: Waiting,
        host: Option<Box<dyn HostState>>,
    ) -> Result<*mut Self, Failure> {
        let choices = host.as_ref().and_then(|host| host.choices());
        let communicator = Communicator::resume(region.clone(), layout, rank, base, wait)?.with_choices(choices);
        let chooser = Chooser { choices, ranks: layout.ranks(), crowded: layout.params().crowded };
        let state = UnsafeCell::new(State::new(communicator));
        let (busy, ran) = (Word::zero(), Word::zero());
        allocate(Self { busy, region, layout, rank, chooser, state, host: UnsafeCell::new(host), ran })
    }

    /// What `Auto` means in the communicator.
    pub const fn chooser(&self) -> Chooser {
        self.chooser
    }

    /// Records the algorithm that ran a blocking call.
    #[inline(always)]
    pub(crate) fn set_ran(&self, plan: Choice) {
        Counter::store_release(&self.ran, Ran::of(plan) as u64);
    }

    /// The algorithm that ran the last successful blocking call.
    pub(crate) fn ran(&self) -> Ran {
        let number = Counter::load_acquire(&self.ran).unchecked();
        Ran::ALL.into_iter().find(|ran| *ran as u64 == number).unwrap_or(Ran::Nothing)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("rank", &self.rank).finish_non_exhaustive()
    }
}

/// No call uses the communicator.
const FREE: u64 = 0;
/// A call on it uses it.
const USED: u64 = 1;
/// A wait on another communicator makes progress on it, which takes a short time.
const IN_PROGRESS: u64 = 2;

/// The exclusive use of a handle, until it is dropped.
pub(crate) struct Claim<'h>(&'h Handle);

impl<'h> Claim<'h> {
    /// Claims the handle that a pointer from C points to.
    ///
    /// # Safety
    /// `comm` is null, or comes from this library and was not freed.
    #[inline(always)]
    pub(crate) unsafe fn of(comm: *const Handle) -> Result<Self, Failure> {
        // SAFETY: the caller's promise; there are only shared references to the handle, and its changing parts are
        // cells.
        Self::new(unsafe { comm.as_ref() }.ok_or(Failure::Null("comm"))?)
    }

    pub(crate) fn new(handle: &'h Handle) -> Result<Self, Failure> {
        // pairs with: the store in drop
        if handle.busy.claim(FREE, USED).is(FREE) { Ok(Self(handle)) } else { Self::after_progress(handle) }
    }

    /// The handle is in use. Waits if the other thread only makes progress on it; otherwise the handle is busy.
    #[cold]
    fn after_progress(handle: &'h Handle) -> Result<Self, Failure> {
        loop {
            // pairs with: as above
            let before = handle.busy.claim(FREE, USED);
            if before.is(FREE) {
                return Ok(Self(handle));
            }
            // A user's operation that this thread's progress calls may get here, too.
            if before.is(USED) || progress::is_in_progress(handle) {
                return Err(Failure::Busy);
            }
            std::thread::yield_now();
        }
    }

    /// Claims the handle to make progress on it, if it is free.
    pub(crate) fn for_progress(handle: &'h Handle) -> Option<Self> {
        // pairs with: as above
        handle.busy.claim(FREE, IN_PROGRESS).is(FREE).then(|| Self(handle))
    }

    pub(crate) const fn handle(&self) -> &'h Handle {
        self.0
    }

    pub(crate) fn state(&mut self) -> &mut State {
        // SAFETY: the claim is the only one, and it is borrowed exclusively.
        unsafe { &mut *self.0.state.get() }
    }

    fn state_and_host(&mut self) -> (&mut State, Option<&mut dyn HostState>) {
        // SAFETY: as above; the two are different fields.
        let state = unsafe { &mut *self.0.state.get() };
        // SAFETY: as above.
        let host = unsafe { &mut *self.0.host.get() };
        (state, host.as_deref_mut())
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // publishes: all that this call did to the communicator, to the next call
        Counter::store_release(&self.0.busy, FREE);
    }
}

/// Runs a host's `call` with exclusive use of the communicator of `comm` and of the host's state. Returns the error
/// number.
///
/// # Safety
/// `comm` is null, or comes from this library and was not freed.
pub unsafe fn with_host_state(
    comm: *const Handle,
    call: impl FnOnce(&mut State, Option<&mut dyn Any>) -> Result<(), Failure>,
) -> c_int {
    answer((|| {
        // SAFETY: the caller's promise.
        let mut claim = unsafe { Claim::of(comm) }?;
        let (state, host) = claim.state_and_host();
        call(state, host.map(|host| host as &mut dyn Any))
    })())
}

/// A view of the caller's memory.
///
/// # Safety
/// As [`Mapped::new`], where `memory` is not null.
unsafe fn view(memory: *mut c_void, bytes: usize) -> Result<Mapped, Failure> {
    if memory.is_null() {
        return Err(Failure::Null("memory"));
    }
    // SAFETY: the caller's promise.
    let mapped = unsafe { Mapped::new(memory.cast(), bytes as u64) }?;
    Ok(mapped.with_level(unisono_shm::level!()))
}

/// The magic word of fresh memory.
const FRESH: u64 = 0;

/// Writes the header of a segment into the `bytes` zeroed bytes at `memory`. One process calls it, once.
///
/// # Safety
/// `memory` is null or the address of `bytes` mapped bytes, readable and writable, that this
/// process accesses through this library alone; `params` is null or points to its struct.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_create(memory: *mut c_void, bytes: usize, params: *const CParams) -> c_int {
    answer((|| {
        // SAFETY: the caller's promise.
        let region = unsafe { view(memory, bytes) }?;
        // SAFETY: the caller's promise: null, or a struct that is not written during the call.
        let layout = unsafe { CParams::read(params) }?.check()?;
        Refusal::check(Argument::SegmentBytes, bytes as u64, Bound::AtLeast(layout.bytes()))?;
        let found = match header::attach(&region, bytes as u64) {
            Err(Refusal { argument: Argument::Magic, value, .. }) => value,
            _ => header::MAGIC,
        };
        Refusal::check(Argument::Magic, found, Bound::Equals(FRESH))?;
        header::create(&region, &layout);
        Ok(())
    })())
}

/// Joins the segment at `memory` as `rank`, and writes the new handle to `comm`.
///
/// # Safety
/// `memory` as in [`unisono_create`], mapped until the handle is freed; `comm` is null or points to
/// a pointer that may be written; no other process of the segment has this rank.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_attach(memory: *mut c_void, bytes: usize, rank: u32, comm: *mut *mut Handle) -> c_int {
    answer((|| {
        if comm.is_null() {
            return Err(Failure::Null("comm"));
        }
        // SAFETY: not null, writable by the caller's promise.
        unsafe { comm.write(core::ptr::null_mut()) };
        // SAFETY: the caller's promise.
        let region = unsafe { view(memory, bytes) }?;
        let layout = header::attach(&region, bytes as u64).map_err(|refusal| match refusal {
            Refusal { argument: Argument::Magic, value: FRESH, .. } => Failure::NotReady,
            other => other.into(),
        })?;
        Refusal::check(Argument::Rank, rank.into(), Bound::Below(layout.ranks().into()))?;
        let handle = waiting(layout.ranks()).and_then(|wait| Handle::allocate(region.clone(), layout, rank, wait));
        // On an error the other ranks must not wait for this one.
        let handle = handle.inspect_err(|_| {
            state::poison(&region, &layout, rank, Poison { rank, operation: 1, cause: Cause::Died });
        })?;
        // SAFETY: as the first write.
        unsafe { comm.write(handle) };
        Ok(())
    })())
}

/// Sets the longest time that a call on `comm` waits for another rank; 0: no bound.
///
/// # Safety
/// `comm` is null, or comes from this library and was not freed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_set_timeout(comm: *const Handle, milliseconds: u64) -> c_int {
    let most = (milliseconds > 0).then(|| Duration::from_millis(milliseconds));
    answer((|| {
        // SAFETY: the caller's promise.
        let mut claim = unsafe { Claim::of(comm) }?;
        let (state, host) = claim.state_and_host();
        if !state.communicator.wait_policy().host.set_bound(most) {
            return Err(Failure::Host(Class::Other, "the communicator's host has no clock"));
        }
        if let Some(host) = host {
            host.set_timeout(most);
        }
        Ok(())
    })())
}

/// Frees a handle; the memory stays the caller's. Null is allowed. A handle in use, or with requests, is not freed.
///
/// # Safety
/// `comm` is null, or comes from [`unisono_attach`], was not freed, and is used by no call that starts later.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_free(comm: *mut Handle) -> c_int {
    answer((|| {
        if comm.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { free_after(comm, |_| Ok(())) }
    })())
}

/// Frees a handle without requests, after `before` has succeeded with the host's state. On an error the handle is not
/// freed.
///
/// # Safety
/// As [`unisono_free`].
///
/// # Errors
/// The handle is null, in use, or has requests; those of `before`.
pub unsafe fn free_after<A>(
    comm: *mut Handle,
    before: impl FnOnce(Option<&mut dyn Any>) -> Result<A, Failure>,
) -> Result<A, Failure> {
    // SAFETY: the caller's promise.
    let mut claim = unsafe { Claim::of(comm) }?;
    let (state, mut host) = claim.state_and_host();
    if state.requests > 0 {
        return Err(Failure::Requests(state.requests));
    }
    let result = before(host.as_deref_mut().map(|host| host as &mut dyn Any))?;
    if let Some(host) = host {
        host.ended(state.communicator.comm().end());
    }
    progress::unlist(&mut claim);
    // The claim is not released: the handle is freed below.
    core::mem::forget(claim);
    // SAFETY: allocated by `unisono_attach` with a box's layout; claimed, so no call uses it.
    drop(unsafe { Box::from_raw(comm) });
    Ok(result)
}

/// This process's rank, or a negative error number.
///
/// # Safety
/// `comm` is null, or comes from [`unisono_attach`] and was not freed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_rank(comm: *const Handle) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { comm.as_ref() } {
        Some(handle) => handle.rank as c_int,
        None => answer(Err(Failure::Null("comm"))),
    }
}

/// The number of processes, or a negative error number.
///
/// # Safety
/// As [`unisono_rank`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_size(comm: *const Handle) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { comm.as_ref() } {
        Some(handle) => handle.layout.ranks() as c_int,
        None => answer(Err(Failure::Null("comm"))),
    }
}

/// Reports that the process with `rank` has died: every call that waits, and every later one, on every rank, returns
/// `UNISONO_ERR_DIED`. This function may be called while another call uses `comm`.
///
/// # Safety
/// As [`unisono_rank`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unisono_report_death(comm: *const Handle, rank: u32) -> c_int {
    answer((|| {
        // SAFETY: the caller's promise.
        let Handle { region, layout, rank: me, .. } = unsafe { comm.as_ref() }.ok_or(Failure::Null("comm"))?;
        Refusal::check(Argument::Rank, rank.into(), Bound::Below(layout.ranks().into()))?;
        let done = Flag::load_acquire(region.flag(layout.done(*me))).unchecked();
        let poison = Poison { rank, operation: done.wrapping_add(1), cause: Cause::Died };
        state::poison(region, layout, *me, poison);
        Ok(())
    })())
}
