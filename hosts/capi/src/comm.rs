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

/// Memory that the caller mapped, no messages, waits that the embedder chooses.
#[derive(Debug)]
pub enum Embedded {}

impl Transport for Embedded {
    type Region = Mapped;
    type Wait = Waiting;
}

/// What a host keeps beside a handle's communicator: it goes with the handle.
pub trait Beside: Any {
    /// The handle is freed, and nobody uses it any more. `end`: where the communicator stands, if all that it began is finished.
    fn ended(&mut self, end: Option<Base>);

    /// The handle's bound on each wait is this from now on, and that of communicators that are made from it.
    fn set_timeout(&mut self, _most: Option<Duration>) {}

    /// What `Auto` means in the communicator, where all members agreed on a table.
    fn choices(&self) -> Option<&'static Choices> {
        None
    }
}

/// `unisono_comm`, opaque in C: a communicator that one call uses at a time.
pub struct Handle {
    /// [`FREE`], [`USED`] or [`MOVED`].
    busy: Word,
    region: Mapped,
    layout: Layout,
    rank: Rank,
    chooser: Chooser,
    state: UnsafeCell<State>,
    /// Nothing where the memory is the caller's.
    beside: UnsafeCell<Option<Box<dyn Beside>>>,
    /// What ran the last blocking call, as [`Ran`] numbers it.
    ran: Word,
}

impl Handle {
    /// A handle for C, on the heap: `rank` on a segment of this layout, waiting as told. It goes by [`unisono_free`].
    ///
    /// # Errors
    /// `rank` is none of the layout's; no memory.
    pub fn allocate(region: Mapped, layout: Layout, rank: Rank, wait: Waiting) -> Result<*mut Self, Failure> {
        Self::allocate_beside(region, (layout, rank, Base::default()), wait, None)
    }

    /// The same on memory where a communicator ended at a base, with something of a host's beside it.
    ///
    /// # Errors
    /// As [`Self::allocate`].
    pub fn allocate_beside(
        region: Mapped,
        (layout, rank, base): (Layout, Rank, Base),
        wait: Waiting,
        beside: Option<Box<dyn Beside>>,
    ) -> Result<*mut Self, Failure> {
        let choices = beside.as_ref().and_then(|beside| beside.choices());
        let communicator = Communicator::resume(region, layout, rank, base, wait)?.with_choices(choices);
        let chooser = Chooser { choices, ranks: layout.ranks(), papers: layout.params().cico.is_some() };
        let state = UnsafeCell::new(State::new(communicator));
        let (busy, ran) = (Word::zero(), Word::zero());
        allocate(Self { busy, region, layout, rank, chooser, state, beside: UnsafeCell::new(beside), ran })
    }

    /// What `Auto` means in the communicator, for who wants to say it.
    pub const fn chooser(&self) -> Chooser {
        self.chooser
    }

    /// A blocking call was run by this.
    #[inline(always)]
    pub(crate) fn set_ran(&self, plan: Choice) {
        Counter::store_release(&self.ran, Ran::of(plan) as u64);
    }

    /// What ran the last blocking call that succeeded.
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

/// Nobody uses a communicator.
const FREE: u64 = 0;
/// A call does.
const USED: u64 = 1;
/// A wait for another one moves it, which is over soon.
const MOVED: u64 = 2;

/// The exclusive use of a handle, until it is dropped.
pub(crate) struct Claim<'h>(&'h Handle);

impl<'h> Claim<'h> {
    /// Of the handle behind a pointer from C.
    ///
    /// # Safety
    /// `comm` is null, or comes from this library and was not freed.
    #[inline(always)]
    pub(crate) unsafe fn of(comm: *const Handle) -> Result<Self, Failure> {
        // SAFETY: the caller's promise; the handle is only ever shared, what changes lies in cells.
        Self::new(unsafe { comm.as_ref() }.ok_or(Failure::Null("comm"))?)
    }

    pub(crate) fn new(handle: &'h Handle) -> Result<Self, Failure> {
        // pairs with: the store in drop
        if handle.busy.claim(FREE, USED).is(FREE) { Ok(Self(handle)) } else { Self::behind_a_move(handle) }
    }

    /// Somebody uses it: whoever only moves it is waited for.
    #[cold]
    fn behind_a_move(handle: &'h Handle) -> Result<Self, Failure> {
        loop {
            // pairs with: as above
            let before = handle.busy.claim(FREE, USED);
            if before.is(FREE) {
                return Ok(Self(handle));
            }
            // A user's operation that is called by the move may call this, too.
            if before.is(USED) || progress::is_moving(handle) {
                return Err(Failure::Busy);
            }
            std::thread::yield_now();
        }
    }

    /// For one look, if nobody uses it.
    pub(crate) fn to_move(handle: &'h Handle) -> Option<Self> {
        // pairs with: as above
        handle.busy.claim(FREE, MOVED).is(FREE).then(|| Self(handle))
    }

    pub(crate) const fn handle(&self) -> &'h Handle {
        self.0
    }

    pub(crate) fn state(&mut self) -> &mut State {
        // SAFETY: the claim is the only one, and it is borrowed exclusively.
        unsafe { &mut *self.0.state.get() }
    }

    fn both(&mut self) -> (&mut State, Option<&mut dyn Beside>) {
        // SAFETY: as above; the two are apart.
        let state = unsafe { &mut *self.0.state.get() };
        // SAFETY: as above.
        let beside = unsafe { &mut *self.0.beside.get() };
        (state, beside.as_deref_mut())
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // publishes: all that this call did to the communicator, to the next call
        Counter::store_release(&self.0.busy, FREE);
    }
}

/// Runs a host's `call` on what is behind `comm` and what the host keeps beside, exclusively. Answers the error's number.
///
/// # Safety
/// `comm` is null, or comes from this library and was not freed.
pub unsafe fn with_beside(
    comm: *const Handle,
    call: impl FnOnce(&mut State, Option<&mut dyn Any>) -> Result<(), Failure>,
) -> c_int {
    answer((|| {
        // SAFETY: the caller's promise.
        let mut claim = unsafe { Claim::of(comm) }?;
        let (state, beside) = claim.both();
        call(state, beside.map(|beside| beside as &mut dyn Any))
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

/// The magic of fresh memory.
const FRESH: u64 = 0;

/// Writes the header of a segment into `bytes` zeroed bytes at `memory`. One process does it once.
///
/// # Safety
/// `memory` is null or the address of `bytes` mapped bytes, readable and writable, that this
/// process accesses through this library alone; `params` is null or points to its struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_create(memory: *mut c_void, bytes: usize, params: *const CParams) -> c_int {
    answer((|| {
        // SAFETY: the caller's promise.
        let region = unsafe { view(memory, bytes) }?;
        // SAFETY: the caller's promise: null, or a struct of the caller's that nobody writes during the call.
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
#[unsafe(no_mangle)]
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
        let handle = waiting(layout.ranks()).and_then(|wait| Handle::allocate(region, layout, rank, wait));
        // The others shall not wait for a rank that can't come.
        let handle = handle.inspect_err(|_| {
            state::poison(&region, &layout, rank, Poison { rank, operation: 1, cause: Cause::Died });
        })?;
        // SAFETY: as the first write.
        unsafe { comm.write(handle) };
        Ok(())
    })())
}

/// Bounds each wait inside a call on `comm`; 0: not at all.
///
/// # Safety
/// `comm` is null, or comes from this library and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_set_timeout(comm: *const Handle, milliseconds: u64) -> c_int {
    let most = (milliseconds > 0).then(|| Duration::from_millis(milliseconds));
    answer((|| {
        // SAFETY: the caller's promise.
        let mut claim = unsafe { Claim::of(comm) }?;
        let (state, beside) = claim.both();
        if !state.communicator.wait_policy().host.set_bound(most) {
            return Err(Failure::Host(Class::Other, "the communicator's host has no clock"));
        }
        if let Some(beside) = beside {
            beside.set_timeout(most);
        }
        Ok(())
    })())
}

/// Frees a handle; the memory stays the caller's. Null is no error; a handle in use, or with requests, is not freed.
///
/// # Safety
/// `comm` is null, or comes from [`unisono_attach`], was not freed, and is used by no call that starts later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_free(comm: *mut Handle) -> c_int {
    answer((|| {
        if comm.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { free_after(comm, |_| Ok(())) }
    })())
}

/// Frees a handle that no request is left of, after `before` has succeeded with what the host keeps beside it. On an
/// error it stays.
///
/// # Safety
/// As [`unisono_free`].
///
/// # Errors
/// It is null, in use, or has requests; `before`'s.
pub unsafe fn free_after<A>(
    comm: *mut Handle,
    before: impl FnOnce(Option<&mut dyn Any>) -> Result<A, Failure>,
) -> Result<A, Failure> {
    // SAFETY: the caller's promise.
    let mut claim = unsafe { Claim::of(comm) }?;
    let (state, mut beside) = claim.both();
    if state.requests > 0 {
        return Err(Failure::Requests(state.requests));
    }
    let answer = before(beside.as_deref_mut().map(|beside| beside as &mut dyn Any))?;
    if let Some(beside) = beside {
        beside.ended(state.communicator.comm().end());
    }
    progress::unlist(&mut claim);
    // Never given back: there is nothing to give back to.
    core::mem::forget(claim);
    // SAFETY: allocated by `unisono_attach` as a box would be; claimed, so no call uses it.
    drop(unsafe { Box::from_raw(comm) });
    Ok(answer)
}

/// This process's rank, or a negative error number.
///
/// # Safety
/// `comm` is null, or comes from [`unisono_attach`] and was not freed.
#[unsafe(no_mangle)]
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_size(comm: *const Handle) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { comm.as_ref() } {
        Some(handle) => handle.layout.ranks() as c_int,
        None => answer(Err(Failure::Null("comm"))),
    }
}

/// Reports that the process with `rank` is gone: every call that waits, and every later one, on
/// every rank, ends with `UNISONO_ERR_DIED`. The one function that may be called while another call is using `comm`.
///
/// # Safety
/// As [`unisono_rank`].
#[unsafe(no_mangle)]
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
