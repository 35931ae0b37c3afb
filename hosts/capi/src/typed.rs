//! The collectives that move elements of a datatype: alltoallw, and those with equal blocks and a count and a type on
//! each side.
//!
//! Safety of all functions: as in [`moves`](crate::moves), for the bytes that the elements' types describe. A type is
//! null, or comes from [`datatype`](crate::datatype) and is not freed during the call.

use crate::arguments::{is_in_place, list, memory, reserve};
use crate::datatype::{Type, resolve};
use crate::forms::{Lists, Numbers, forms};
use core::ffi::c_void;
use unisono_kernel::algorithm::{AlltoallAlgorithm, BcastAlgorithm, MoveAlgorithm};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Member;
use unisono_kernel::data::blocks::{Block, Blocks};
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::error::{Argument, Condition, Refusal};

/// `count` elements of a type, at `address`: one block, or one for each rank.
#[derive(Clone, Copy)]
struct Elements {
    address: *const c_void,
    count: u64,
    datatype: *const Type,
}

/// Bytes from the start of `count` elements of a type to their end; `u64::MAX` if they are more.
#[inline(always)]
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

    /// A rank's own block of a collective with a root; only the root may pass `UNISONO_IN_PLACE`.
    ///
    /// # Safety
    /// See the [module](self).
    unsafe fn own<'a>(self, me: &Member, root: u32) -> Result<Option<Data<'a>>, Refusal> {
        if me.rank() == root {
            // SAFETY: the caller's promise.
            unsafe { self.data_or_in_place() }
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.data() }.map(Some)
        }
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

type Built<'a> = Result<Call<'a>, Refusal>;

const AUTO: MoveAlgorithm = MoveAlgorithm::Auto;

forms! {
    /// `count` elements at the root's `buffer` go to every rank's `buffer`.
    unisono_bcast_typed, unisono_ibcast_typed, unisono_bcast_typed_init:
        bcast(buffer: *mut c_void, count: u64, datatype: *const Type, root: u32);
    /// Each rank's elements go to its block of the root's `receive`.
    unisono_gather_typed, unisono_igather_typed, unisono_gather_typed_init: gather(
        send: *const c_void, send_count: u64, send_type: *const Type,
        receive: *mut c_void, count: u64, datatype: *const Type, root: u32,
    );
    /// Each block of the root's `send` goes to its rank's elements at `receive`.
    unisono_scatter_typed, unisono_iscatter_typed, unisono_scatter_typed_init: scatter(
        send: *const c_void, send_count: u64, send_type: *const Type,
        receive: *mut c_void, count: u64, datatype: *const Type, root: u32,
    );
    /// Each rank's elements go to its block of every rank's `receive`.
    unisono_allgather_typed, unisono_iallgather_typed, unisono_allgather_typed_init: allgather(
        send: *const c_void, send_count: u64, send_type: *const Type,
        receive: *mut c_void, count: u64, datatype: *const Type,
    );
    /// Block r of rank s's `send` goes to block s of rank r's `receive`.
    unisono_alltoall_typed, unisono_ialltoall_typed, unisono_alltoall_typed_init: alltoall(
        send: *const c_void, send_count: u64, send_type: *const Type,
        receive: *mut c_void, count: u64, datatype: *const Type,
    );
    /// Block r of rank s's `send` goes to block s of rank r's `receive`; each block of both sides has its own count,
    /// displacement in bytes, and type.
    unisono_alltoallw, unisono_ialltoallw, unisono_alltoallw_init: alltoallw(
        send: *const c_void, send_counts: *const u64, send_displacements: *const u64, send_types: *const *const Type,
        receive: *mut c_void, counts: *const u64, displacements: *const u64, datatypes: *const *const Type,
    );
}

/// # Safety
/// See the [module](self), for this and all functions below.
unsafe fn bcast<'a>(
    _: &Member,
    _: Lists<'a>,
    buffer: *mut c_void,
    count: u64,
    datatype: *const Type,
    root: u32,
) -> Built<'a> {
    // SAFETY: the caller's promise.
    let data = unsafe { Elements::new(buffer, count, datatype).data() }?;
    Ok(Call::Bcast { data, root, algorithm: BcastAlgorithm::Auto })
}

#[expect(clippy::too_many_arguments, reason = "what MPI passes")]
unsafe fn gather<'a>(
    me: &Member,
    _: Lists<'a>,
    send: *const c_void,
    send_count: u64,
    send_type: *const Type,
    receive: *mut c_void,
    count: u64,
    datatype: *const Type,
    root: u32,
) -> Built<'a> {
    let (from, to) = (Elements::new(send, send_count, send_type), Elements::new(receive, count, datatype));
    // SAFETY: the caller's promise.
    let blocks = || unsafe { to.blocks(me.size()) };
    let receive = if me.rank() == root { Some(blocks()?) } else { None };
    // SAFETY: the caller's promise.
    let send = unsafe { from.own(me, root) }?;
    Ok(Call::Gather { send, receive, root, algorithm: AUTO })
}

#[expect(clippy::too_many_arguments, reason = "what MPI passes")]
unsafe fn scatter<'a>(
    me: &Member,
    _: Lists<'a>,
    send: *const c_void,
    send_count: u64,
    send_type: *const Type,
    receive: *mut c_void,
    count: u64,
    datatype: *const Type,
    root: u32,
) -> Built<'a> {
    let (from, to) = (Elements::new(send, send_count, send_type), Elements::new(receive, count, datatype));
    // SAFETY: the caller's promise.
    let blocks = || unsafe { from.blocks(me.size()) };
    let send = if me.rank() == root { Some(blocks()?) } else { None };
    // SAFETY: the caller's promise.
    let receive = unsafe { to.own(me, root) }?;
    Ok(Call::Scatter { send, receive, root, algorithm: AUTO })
}

#[expect(clippy::too_many_arguments, reason = "what MPI passes")]
unsafe fn allgather<'a>(
    me: &Member,
    _: Lists<'a>,
    send: *const c_void,
    send_count: u64,
    send_type: *const Type,
    receive: *mut c_void,
    count: u64,
    datatype: *const Type,
) -> Built<'a> {
    let (from, to) = (Elements::new(send, send_count, send_type), Elements::new(receive, count, datatype));
    // SAFETY: the caller's promise.
    let send = unsafe { from.data_or_in_place() }?;
    // SAFETY: the caller's promise.
    Ok(Call::Allgather { send, receive: unsafe { to.blocks(me.size()) }?, algorithm: AUTO })
}

#[expect(clippy::too_many_arguments, reason = "what MPI passes")]
unsafe fn alltoall<'a>(
    me: &Member,
    _: Lists<'a>,
    send: *const c_void,
    send_count: u64,
    send_type: *const Type,
    receive: *mut c_void,
    count: u64,
    datatype: *const Type,
) -> Built<'a> {
    let (from, to) = (Elements::new(send, send_count, send_type), Elements::new(receive, count, datatype));
    // SAFETY: the caller's promise.
    let blocks = |elements: Elements| unsafe { elements.blocks(me.size()) };
    let send = if is_in_place(send) { None } else { Some(blocks(from)?) };
    Ok(Call::Alltoall { send, receive: blocks(to)?, algorithm: AlltoallAlgorithm::Auto })
}

/// One side of alltoallw: for each rank r `counts[r]` elements of `datatypes[r]`, `displacements[r]` bytes after
/// `address`.
#[derive(Clone, Copy)]
struct Side {
    address: *const c_void,
    counts: *const u64,
    displacements: *const u64,
    datatypes: *const *const Type,
}

/// A [`Side`], described: the memory that its blocks lie in, and the lists for it.
struct Described<'a> {
    memory: Buf,
    /// In bytes, where no type has holes. Else each block has a description of its own.
    displacements: Option<&'a [u64]>,
}

impl Side {
    /// Appends the length of each rank's block in bytes to `lengths`, if no type has holes; else the block to `blocks`.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    unsafe fn describe<'a>(
        self,
        ranks: u32,
        lengths: &mut Numbers,
        blocks: &mut Vec<Block<'a>>,
    ) -> Result<Described<'a>, Refusal> {
        // SAFETY: the caller's promise.
        let counts = unsafe { list(self.counts, ranks) }?;
        // SAFETY: the caller's promise.
        let displacements = unsafe { list(self.displacements, ranks) }?;
        // SAFETY: the caller's promise.
        let datatypes = unsafe { list(self.datatypes, ranks) }?;
        let (before, mut end) = (lengths.len(), 0_u64);
        for ((&count, &displacement), &datatype) in counts.iter().zip(displacements).zip(datatypes) {
            // SAFETY: the caller's promise.
            let datatype = unsafe { resolve(datatype) }?;
            if !datatype.is_dense() {
                lengths.truncate(before);
                // SAFETY: the caller's promise.
                let end = unsafe { Self::describe_each(counts, displacements, datatypes, blocks) }?;
                return Ok(Described { memory: memory(self.address, end)?, displacements: None });
            }
            let length = reach(count, datatype);
            end = end.max(end_of(count, displacement, length));
            lengths.push(length);
        }
        Ok(Described { memory: memory(self.address, end)?, displacements: Some(displacements) })
    }

    /// Appends each rank's block to `blocks`; returns where the last one ends.
    ///
    /// # Safety
    /// See the [module](self).
    #[cold]
    unsafe fn describe_each<'a>(
        counts: &[u64],
        displacements: &[u64],
        datatypes: &[*const Type],
        blocks: &mut Vec<Block<'a>>,
    ) -> Result<u64, Refusal> {
        blocks.try_reserve(counts.len()).map_err(|_| Refusal::not(Argument::List, Condition::Memory))?;
        let mut end = 0_u64;
        for ((&count, &displacement), &datatype) in counts.iter().zip(displacements).zip(datatypes) {
            // SAFETY: the caller's promise.
            let datatype = unsafe { resolve(datatype) }?;
            let displacement = if count > 0 { displacement } else { 0 };
            end = end.max(end_of(count, displacement, reach(count, datatype)));
            blocks.push(Block { displacement, count, datatype });
        }
        Ok(end)
    }
}

/// Where a block of so many elements and bytes ends. The displacement of an empty one is ignored.
#[inline(always)]
const fn end_of(count: u64, displacement: u64, length: u64) -> u64 {
    if count > 0 { displacement.saturating_add(length) } else { 0 }
}

impl<'a> Described<'a> {
    /// The blocks of `ranks` ranks, whose descriptions are the first of `lengths` or of `blocks`; those are taken from there.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    unsafe fn blocks(
        self,
        ranks: u32,
        lengths: &mut &'a [u64],
        blocks: &mut &'a [Block<'a>],
    ) -> Result<Blocks<'a>, Refusal> {
        let ranks = ranks as usize;
        match self.displacements {
            Some(displacements) => {
                let (own, rest) = lengths.split_at(ranks);
                *lengths = rest;
                // SAFETY: the caller's promise.
                unsafe { Blocks::vary(self.memory, own, displacements, Datatype::BYTE) }
            }
            None => {
                let (own, rest) = blocks.split_at(ranks);
                *blocks = rest;
                // SAFETY: the caller's promise.
                unsafe { Blocks::each(self.memory, own) }
            }
        }
    }
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "what MPI passes")]
unsafe fn alltoallw<'a>(
    me: &Member,
    lists: Lists<'a>,
    send: *const c_void,
    send_counts: *const u64,
    send_displacements: *const u64,
    send_types: *const *const Type,
    receive: *mut c_void,
    counts: *const u64,
    displacements: *const u64,
    datatypes: *const *const Type,
) -> Built<'a> {
    let sent = Side { address: send, counts: send_counts, displacements: send_displacements, datatypes: send_types };
    let received = Side { address: receive, counts, displacements, datatypes };
    let mut blocks = Vec::new();
    reserve(lists.numbers, 2 * me.size() as usize)?;
    // SAFETY: the caller's promise.
    let mut describe = |side: Side| unsafe { side.describe(me.size(), lists.numbers, &mut blocks) };
    let from = if is_in_place(send) { None } else { Some(describe(sent)?) };
    let to = describe(received)?;
    let (mut lengths, mut blocks) = (&lists.numbers[..], &lists.blocks.get_or_init(|| blocks)[..]);
    // SAFETY: the caller's promise.
    let mut cut = |side: Described<'a>| unsafe { side.blocks(me.size(), &mut lengths, &mut blocks) };
    let send = from.map(&mut cut).transpose()?;
    Ok(Call::Alltoallv { send, receive: cut(to)? })
}
