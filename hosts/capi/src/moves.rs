//! Barrier, and the collectives that move bytes. `bytes` is the length of one block; counts and displacements are in
//! bytes.
//!
//! Safety of all functions: `comm` is null, or comes from `unisono_attach` and was not freed. An address is null for no
//! bytes, is `UNISONO_IN_PLACE` where the header allows it, or points to its bytes, readable if they are sent and
//! writable if they are received, which nothing else uses during the call. Where they are significant, `counts` and
//! `displacements` are null or point to a number for each rank.

use crate::arguments::{data, data_or_in_place, equal, is_in_place, list, vary};
use crate::forms::{Lists, forms};
use core::ffi::c_void;
use unisono_kernel::algorithm::{AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Member;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::Refusal;

type Built<'a> = Result<Call<'a>, Refusal>;

const AUTO: MoveAlgorithm = MoveAlgorithm::Auto;

forms! {
    /// Returns when all ranks have called it.
    unisono_barrier, unisono_ibarrier, unisono_barrier_init: barrier();
    /// `bytes` bytes at the root's `buffer` go to every rank's `buffer`.
    unisono_bcast, unisono_ibcast, unisono_bcast_init: bcast(buffer: *mut c_void, bytes: u64, root: u32);
    /// Each rank's `bytes` bytes at `send` go to its block of the root's `receive`.
    unisono_gather, unisono_igather, unisono_gather_init:
        gather(send: *const c_void, receive: *mut c_void, bytes: u64, root: u32);
    /// Each rank's `bytes` bytes at `send` go to its block of the root's `receive`: `counts[r]` bytes at the
    /// displacement `displacements[r]`.
    unisono_gatherv, unisono_igatherv, unisono_gatherv_init: gatherv(
        send: *const c_void, bytes: u64,
        receive: *mut c_void, counts: *const u64, displacements: *const u64, root: u32,
    );
    /// Each block of the root's `send` goes to its rank's `bytes` bytes at `receive`.
    unisono_scatter, unisono_iscatter, unisono_scatter_init:
        scatter(send: *const c_void, receive: *mut c_void, bytes: u64, root: u32);
    /// Each block of the root's `send`, `counts[r]` bytes at the displacement `displacements[r]`, goes to its rank's
    /// `bytes` bytes at `receive`.
    unisono_scatterv, unisono_iscatterv, unisono_scatterv_init: scatterv(
        send: *const c_void, counts: *const u64, displacements: *const u64,
        receive: *mut c_void, bytes: u64, root: u32,
    );
    /// Each rank's `bytes` bytes at `send` go to its block of every rank's `receive`.
    unisono_allgather, unisono_iallgather, unisono_allgather_init:
        allgather(send: *const c_void, receive: *mut c_void, bytes: u64);
    /// Each rank's `bytes` bytes at `send` go to its block of every rank's `receive`: `counts[r]` bytes at the
    /// displacement `displacements[r]`.
    unisono_allgatherv, unisono_iallgatherv, unisono_allgatherv_init: allgatherv(
        send: *const c_void, bytes: u64,
        receive: *mut c_void, counts: *const u64, displacements: *const u64,
    );
    /// Block r of rank s's `send`, `bytes` bytes, goes to block s of rank r's `receive`.
    unisono_alltoall, unisono_ialltoall, unisono_alltoall_init:
        alltoall(send: *const c_void, receive: *mut c_void, bytes: u64);
    /// Block r of rank s's `send` goes to block s of rank r's `receive`; each side has its own counts and
    /// displacements.
    unisono_alltoallv, unisono_ialltoallv, unisono_alltoallv_init: alltoallv(
        send: *const c_void, send_counts: *const u64, send_displacements: *const u64,
        receive: *mut c_void, counts: *const u64, displacements: *const u64,
    );
}

/// Has no arguments, and is `unsafe` only because the macro calls all of them alike.
#[inline(always)]
unsafe fn barrier<'a>(_: &Member, _: Lists<'a>) -> Built<'a> {
    Ok(Call::Barrier { algorithm: BarrierAlgorithm::Auto })
}

/// # Safety
/// See the [module](self), for this and all functions below.
#[inline(always)]
unsafe fn bcast<'a>(_: &Member, _: Lists<'a>, buffer: *mut c_void, bytes: u64, root: u32) -> Built<'a> {
    // SAFETY: the caller's promise.
    Ok(Call::Bcast { data: unsafe { data(buffer, bytes) }?, root, algorithm: BcastAlgorithm::Auto })
}

/// A rank's own block of a collective with a root; only the root may pass `UNISONO_IN_PLACE`.
#[inline(always)]
unsafe fn own<'a>(me: &Member, root: u32, address: *const c_void, bytes: u64) -> Result<Option<Data<'a>>, Refusal> {
    if me.rank() == root {
        // SAFETY: the caller's promise.
        unsafe { data_or_in_place(address, bytes) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { data(address, bytes) }.map(Some)
    }
}

#[inline(always)]
unsafe fn gather<'a>(
    me: &Member,
    _: Lists<'a>,
    send: *const c_void,
    receive: *mut c_void,
    bytes: u64,
    root: u32,
) -> Built<'a> {
    // SAFETY: the caller's promise.
    let blocks = || unsafe { equal(receive, me.size(), bytes, 1) };
    let receive = if me.rank() == root { Some(blocks()?) } else { None };
    // SAFETY: the caller's promise.
    let send = unsafe { own(me, root, send, bytes) }?;
    Ok(Call::Gather { send, receive, root, algorithm: AUTO })
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "what MPI passes")]
unsafe fn gatherv<'a>(
    me: &Member,
    _: Lists<'a>,
    send: *const c_void,
    bytes: u64,
    receive: *mut c_void,
    counts: *const u64,
    displacements: *const u64,
    root: u32,
) -> Built<'a> {
    // SAFETY: the caller's promise.
    let blocks = || unsafe { blocks(receive, counts, displacements, me.size()) };
    let receive = if me.rank() == root { Some(blocks()?) } else { None };
    // SAFETY: the caller's promise.
    let send = unsafe { own(me, root, send, bytes) }?;
    Ok(Call::Gatherv { send, receive, root, algorithm: AUTO })
}

#[inline(always)]
unsafe fn scatter<'a>(
    me: &Member,
    _: Lists<'a>,
    send: *const c_void,
    receive: *mut c_void,
    bytes: u64,
    root: u32,
) -> Built<'a> {
    // SAFETY: the caller's promise.
    let blocks = || unsafe { equal(send, me.size(), bytes, 1) };
    let send = if me.rank() == root { Some(blocks()?) } else { None };
    // SAFETY: the caller's promise.
    let receive = unsafe { own(me, root, receive, bytes) }?;
    Ok(Call::Scatter { send, receive, root, algorithm: AUTO })
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "what MPI passes")]
unsafe fn scatterv<'a>(
    me: &Member,
    _: Lists<'a>,
    send: *const c_void,
    counts: *const u64,
    displacements: *const u64,
    receive: *mut c_void,
    bytes: u64,
    root: u32,
) -> Built<'a> {
    // SAFETY: the caller's promise.
    let blocks = || unsafe { blocks(send, counts, displacements, me.size()) };
    let send = if me.rank() == root { Some(blocks()?) } else { None };
    // SAFETY: the caller's promise.
    let receive = unsafe { own(me, root, receive, bytes) }?;
    Ok(Call::Scatterv { send, receive, root, algorithm: AUTO })
}

#[inline(always)]
unsafe fn allgather<'a>(me: &Member, _: Lists<'a>, send: *const c_void, receive: *mut c_void, bytes: u64) -> Built<'a> {
    // SAFETY: the caller's promise.
    let send = unsafe { data_or_in_place(send, bytes) }?;
    // SAFETY: the caller's promise.
    Ok(Call::Allgather { send, receive: unsafe { equal(receive, me.size(), bytes, 1) }?, algorithm: AUTO })
}

#[inline(always)]
unsafe fn allgatherv<'a>(
    me: &Member,
    _: Lists<'a>,
    send: *const c_void,
    bytes: u64,
    receive: *mut c_void,
    counts: *const u64,
    displacements: *const u64,
) -> Built<'a> {
    // SAFETY: the caller's promise.
    let send = unsafe { data_or_in_place(send, bytes) }?;
    // SAFETY: the caller's promise.
    let receive = unsafe { blocks(receive, counts, displacements, me.size()) }?;
    Ok(Call::Allgather { send, receive, algorithm: AUTO })
}

#[inline(always)]
unsafe fn alltoall<'a>(me: &Member, _: Lists<'a>, send: *const c_void, receive: *mut c_void, bytes: u64) -> Built<'a> {
    // SAFETY: the caller's promise.
    let blocks = |at| unsafe { equal(at, me.size(), bytes, 1) };
    let send = if is_in_place(send) { None } else { Some(blocks(send)?) };
    Ok(Call::Alltoall { send, receive: blocks(receive)?, algorithm: AlltoallAlgorithm::Auto })
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "what MPI passes")]
unsafe fn alltoallv<'a>(
    me: &Member,
    _: Lists<'a>,
    send: *const c_void,
    send_counts: *const u64,
    send_displacements: *const u64,
    receive: *mut c_void,
    counts: *const u64,
    displacements: *const u64,
) -> Built<'a> {
    // SAFETY: the caller's promise.
    let sent = || unsafe { blocks(send, send_counts, send_displacements, me.size()) };
    let send = if is_in_place(send) { None } else { Some(sent()?) };
    // SAFETY: the caller's promise.
    let receive = unsafe { blocks(receive, counts, displacements, me.size()) }?;
    Ok(Call::Alltoallv { send, receive })
}

/// A block of `counts[r]` bytes for each rank r, `displacements[r]` bytes after `address`.
#[inline(always)]
unsafe fn blocks<'a>(
    address: *const c_void,
    counts: *const u64,
    displacements: *const u64,
    ranks: u32,
) -> Result<Blocks<'a>, Refusal> {
    // SAFETY: the caller's promise.
    let counts = unsafe { list(counts, ranks) }?;
    // SAFETY: the caller's promise.
    let displacements = unsafe { list(displacements, ranks) }?;
    // SAFETY: the caller's promise.
    unsafe { vary(address, counts, displacements, 1) }
}
