//! The three forms of every collective: blocking, nonblocking, persistent. Each collective is described once, by a function
//! that makes a [`Call`] from the arguments of C.
//!
//! If an argument is refused, the collective fails: the other ranks get an error too, from this or their next call, and
//! no rank waits for ever.

use crate::comm::{Claim, Handle};
use crate::error::answer;
use core::cell::OnceCell;
use core::ffi::c_int;
use smallvec::SmallVec;
use unisono_kernel::call::Call;
use unisono_kernel::comm::Member;
use unisono_kernel::data::blocks::Block;
use unisono_kernel::error::Refusal;

/// Numbers for each rank. Those of few ranks lie in place: no memory is asked for in a call.
pub(crate) type Numbers = SmallVec<[u64; 32]>;

/// Lists that a call needs and C does not pass, empty at first. They live as long as the call or its request, and are written
/// where they lie: a longer copy of what was just written would wait for it.
#[derive(Debug)]
pub(crate) struct Lists<'a> {
    pub(crate) numbers: &'a mut Numbers,
    pub(crate) blocks: &'a OnceCell<Vec<Block<'a>>>,
}

/// Runs the blocking form of one collective. It is inlined, so that each function contains only its own machines.
///
/// # Safety
/// `comm` is null, or comes from `unisono_attach` and was not freed; the memory in the call that `make` returns is
/// valid during the call.
#[inline(always)]
pub(crate) unsafe fn blocking<'a>(
    comm: *mut Handle,
    lists: Lists<'a>,
    make: impl FnOnce(&Member, Lists<'a>) -> Result<Call<'a>, Refusal>,
) -> c_int {
    answer((|| {
        // SAFETY: the caller's promise.
        let mut claim = unsafe { Claim::of(comm) }?;
        let state = claim.state();
        // Operations are completed in the order of their start.
        state.drain()?;
        let ran = match make(state.communicator.comm().member(), lists) {
            Ok(call) => state.communicator.run_inlined(&call)?,
            Err(refusal) => return Err(state.communicator.refuse(refusal).into()),
        };
        claim.handle().set_ran(ran);
        Ok(())
    })())
}

/// Defines three exported functions for each description: the names of the blocking, nonblocking and persistent form,
/// and the function that makes the call.
macro_rules! forms {
    ($($(#[$doc:meta])* $blocking:ident, $start:ident, $init:ident: $make:ident($($name:ident: $kind:ty),* $(,)?);)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// See the [module](self).
            #[cfg_attr(not(test), unsafe(no_mangle))]
            pub unsafe extern "C-unwind" fn $blocking(comm: *mut $crate::comm::Handle, $($name: $kind),*) -> core::ffi::c_int {
                // SAFETY: the caller's promise.
                let make = |me: &_, lists| unsafe { $make(me, lists, $($name),*) };
                let (mut numbers, blocks) = Default::default();
                let lists = $crate::forms::Lists { numbers: &mut numbers, blocks: &blocks };
                // SAFETY: the caller's promise.
                unsafe { $crate::forms::blocking(comm, lists, make) }
            }

            #[doc = concat!("[`", stringify!($blocking), "`], nonblocking.")]
            ///
            /// # Safety
            /// See the [module](self), until the request is complete; and [`request`](crate::request).
            #[cfg_attr(not(test), unsafe(no_mangle))]
            pub unsafe extern "C-unwind" fn $start(
                comm: *mut $crate::comm::Handle,
                $($name: $kind,)*
                request: *mut *mut $crate::request::Request,
            ) -> core::ffi::c_int {
                // SAFETY: the caller's promise.
                let make = |me: &_, lists| unsafe { $make(me, lists, $($name),*) };
                // SAFETY: the caller's promise.
                unsafe { $crate::request::create(comm, request, false, make) }
            }

            #[doc = concat!("[`", stringify!($blocking), "`], persistent: [`unisono_start`](crate::request::unisono_start) starts it.")]
            ///
            /// # Safety
            /// See the [module](self), until the request is freed; and [`request`](crate::request).
            #[cfg_attr(not(test), unsafe(no_mangle))]
            pub unsafe extern "C-unwind" fn $init(
                comm: *mut $crate::comm::Handle,
                $($name: $kind,)*
                request: *mut *mut $crate::request::Request,
            ) -> core::ffi::c_int {
                // SAFETY: the caller's promise.
                let make = |me: &_, lists| unsafe { $make(me, lists, $($name),*) };
                // SAFETY: the caller's promise.
                unsafe { $crate::request::create(comm, request, true, make) }
            }
        )*
    };
}
pub(crate) use forms;
