//! The collectives that move elements of a datatype: alltoallw, and the equal forms with a count and a type per side.
//!
//! Safety of all: as in [`moves`](crate::moves), of the bytes that the elements' types describe; a type
//! is null, or comes from [`datatype`](crate::datatype) and is not freed during the call.

use crate::arguments::{collective, is_in_place, list, memory, scratch};
use crate::comm::{Embedded, Handle};
use crate::datatype::{Type, resolve};
use core::cell::OnceCell;
use core::ffi::{c_int, c_void};
use unisono_kernel::blocks::{Block, Blocks};
use unisono_kernel::buffer::Buf;
use unisono_kernel::datatype::{Data, Datatype};
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::Refusal;
use unisono_kernel::select::BcastAlgorithm;

/// `count` elements of a type, at `address`: one block, or one for each rank.
#[derive(Clone, Copy)]
struct Elements {
    address: *const c_void,
    count: u64,
    datatype: *const Type,
}

/// Bytes that `count` elements of an accepted type reach over; the largest number, where they are more.
fn reach(count: u64, datatype: Datatype<'_>) -> u64 {
    datatype.extent().unwrap_or(u64::MAX).saturating_mul(count)
}

impl Elements {
    const fn new(address: *const c_void, count: u64, datatype: *const Type) -> Self {
        Self { address, count, datatype }
    }

    /// One block.
    ///
    /// # Safety
    /// See the [module](self).
    unsafe fn data<'a>(self) -> Result<Data<'a>, Refusal> {
        // SAFETY: the caller's promise.
        let datatype = unsafe { resolve(self.datatype) }?;
        let memory = memory(self.address, reach(self.count, datatype))?;
        // SAFETY: the caller's promise.
        unsafe { Data::from_raw(memory, self.count, datatype) }
    }

    /// One block, unless it is in place.
    ///
    /// # Safety
    /// See the [module](self).
    unsafe fn data_or_in_place<'a>(self) -> Result<Option<Data<'a>>, Refusal> {
        // SAFETY: the caller's promise.
        if is_in_place(self.address) { Ok(None) } else { unsafe { self.data() }.map(Some) }
    }

    /// A block for each rank, one after the other.
    ///
    /// # Safety
    /// See the [module](self).
    unsafe fn blocks<'a>(self, ranks: u32) -> Result<Blocks<'a>, Refusal> {
        // SAFETY: the caller's promise.
        let datatype = unsafe { resolve(self.datatype) }?;
        let memory = memory(self.address, reach(self.count, datatype).saturating_mul(ranks.into()))?;
        // SAFETY: the caller's promise.
        unsafe { Blocks::equal(memory, ranks, self.count, datatype) }
    }
}

/// `count` elements at the root's `buffer` go to everyone's.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_bcast_typed(
    comm: *mut Handle,
    buffer: *mut c_void,
    count: u64,
    datatype: *const Type,
    root: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    let check = |_: &_| unsafe { Elements::new(buffer, count, datatype).data() };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, data| c.bcast_with(data, root, BcastAlgorithm::Auto)) }
}

/// Everyone's elements go to its block of the root's `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_gather_typed(
    comm: *mut Handle,
    send: *const c_void,
    send_count: u64,
    send_type: *const Type,
    receive: *mut c_void,
    count: u64,
    datatype: *const Type,
    root: u32,
) -> c_int {
    let mine = Elements::new(send, send_count, send_type);
    let check = |c: &Communicator<Embedded>| {
        if c.rank() != root {
            // SAFETY: the caller's promise.
            return Ok((Some(unsafe { mine.data() }?), None));
        }
        // SAFETY: the caller's promise.
        let to = unsafe { Elements::new(receive, count, datatype).blocks(c.size()) }?;
        // SAFETY: the caller's promise.
        Ok((unsafe { mine.data_or_in_place() }?, Some(to)))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.gather(from, to, root)) }
}

/// Each block of the root's `send` goes to its rank's elements at `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_scatter_typed(
    comm: *mut Handle,
    send: *const c_void,
    send_count: u64,
    send_type: *const Type,
    receive: *mut c_void,
    count: u64,
    datatype: *const Type,
    root: u32,
) -> c_int {
    let mine = Elements::new(receive, count, datatype);
    let check = |c: &Communicator<Embedded>| {
        if c.rank() != root {
            // SAFETY: the caller's promise.
            return Ok((None, Some(unsafe { mine.data() }?)));
        }
        // SAFETY: the caller's promise.
        let from = unsafe { Elements::new(send, send_count, send_type).blocks(c.size()) }?;
        // SAFETY: the caller's promise.
        Ok((Some(from), unsafe { mine.data_or_in_place() }?))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.scatter(from, to, root)) }
}

/// Everyone's elements go to its block of everyone's `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_allgather_typed(
    comm: *mut Handle,
    send: *const c_void,
    send_count: u64,
    send_type: *const Type,
    receive: *mut c_void,
    count: u64,
    datatype: *const Type,
) -> c_int {
    let check = |c: &Communicator<Embedded>| {
        // SAFETY: the caller's promise.
        let from = unsafe { Elements::new(send, send_count, send_type).data_or_in_place() }?;
        // SAFETY: the caller's promise.
        Ok((from, unsafe { Elements::new(receive, count, datatype).blocks(c.size()) }?))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.allgather(from, to)) }
}

/// Block r of everyone's `send` goes to rank r's `receive`.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_alltoall_typed(
    comm: *mut Handle,
    send: *const c_void,
    send_count: u64,
    send_type: *const Type,
    receive: *mut c_void,
    count: u64,
    datatype: *const Type,
) -> c_int {
    let check = |c: &Communicator<Embedded>| {
        // SAFETY: the caller's promise.
        let blocks = |elements: Elements| unsafe { elements.blocks(c.size()) };
        let sent = Elements::new(send, send_count, send_type);
        let from = if is_in_place(send) { None } else { Some(blocks(sent)?) };
        Ok((from, blocks(Elements::new(receive, count, datatype))?))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.alltoall(from, to)) }
}

/// One side of alltoallw: for each rank r `counts[r]` elements of `datatypes[r]`, `displacements[r]` bytes from `address` on.
#[derive(Clone, Copy)]
struct Side {
    address: *const c_void,
    counts: *const u64,
    displacements: *const u64,
    datatypes: *const *const Type,
}

impl Side {
    /// Appends the block of each rank to `blocks`; answers the memory that they lie in.
    ///
    /// # Safety
    /// See the [module](self).
    unsafe fn describe<'a>(self, ranks: u32, blocks: &mut Vec<Block<'a>>) -> Result<Buf, Refusal> {
        // SAFETY: the caller's promise.
        let counts = unsafe { list(self.counts, ranks) }?;
        // SAFETY: the caller's promise.
        let displacements = unsafe { list(self.displacements, ranks) }?;
        // SAFETY: the caller's promise.
        let datatypes = unsafe { list(self.datatypes, ranks) }?;
        let mut end = 0_u64;
        for ((&count, &displacement), &datatype) in counts.iter().zip(displacements).zip(datatypes) {
            // SAFETY: the caller's promise.
            let datatype = unsafe { resolve(datatype) }?;
            // A block of nothing lies nowhere.
            let displacement = if count > 0 { displacement } else { 0 };
            end = end.max(displacement.saturating_add(reach(count, datatype)));
            blocks.push(Block { displacement, count, datatype });
        }
        memory(self.address, end)
    }
}

/// Block r of everyone's `send` goes to rank r's `receive`; each block of both sides has its own count, displacement
/// in bytes, and type.
///
/// # Safety
/// See the [module](self).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_alltoallw(
    comm: *mut Handle,
    send: *const c_void,
    send_counts: *const u64,
    send_displacements: *const u64,
    send_types: *const *const Type,
    receive: *mut c_void,
    counts: *const u64,
    displacements: *const u64,
    datatypes: *const *const Type,
) -> c_int {
    let sent = Side { address: send, counts: send_counts, displacements: send_displacements, datatypes: send_types };
    let received = Side { address: receive, counts, displacements, datatypes };
    // Outlives the blocks that are made with it.
    let described = OnceCell::new();
    let check = |c: &Communicator<Embedded>| {
        let mut blocks = scratch(2 * c.size() as usize)?;
        // SAFETY: the caller's promise.
        let from = if is_in_place(send) { None } else { Some(unsafe { sent.describe(c.size(), &mut blocks) }?) };
        let first = blocks.len();
        // SAFETY: the caller's promise.
        let to = unsafe { received.describe(c.size(), &mut blocks) }?;
        let (mine, theirs) = described.get_or_init(|| blocks).split_at(first);
        // SAFETY: the caller's promise.
        let from = from.map(|memory| unsafe { Blocks::each(memory, mine) }).transpose()?;
        // SAFETY: the caller's promise.
        Ok((from, unsafe { Blocks::each(to, theirs) }?))
    };
    // SAFETY: the caller's promise.
    unsafe { collective(comm, check, |c, (from, to)| c.alltoallv(from, to)) }
}
