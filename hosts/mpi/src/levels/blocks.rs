//! The collectives that move a block for each rank, to or from a root or all.
//!
//! Blocks travel in a row, node by node. Where the user's lie so, they are the row; else it is working memory, and they are
//! copied. Where only the root knows all lengths, these travel first.

use super::row::Row;
use super::{Called, Levels, State, lists, refused, unless_in_place, with};
use core::ffi::{c_int, c_void};
use unisono_c::error::Failure;
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::hier::{allgather, gather, scatter, split};
use unisono_kernel::msg::Memory;

/// Bytes of a length on its way.
const LENGTH: usize = size_of::<u64>();

fn lengths(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|&length| u64::from_ne_bytes(length))
}

impl State {
    /// `send` goes to this rank's block of everyone's memory at `base`; none: it is there.
    fn allgather(&mut self, send: Option<Buf>, base: *mut u8, of: impl Fn(Rank) -> (u64, u64)) -> Called {
        let Self { place, between, engine } = self;
        let (nodes, row) = (place.nodes()?, Row::new(place, of)?);
        let rows = row.rows(&nodes)?;
        let plan = allgather::plan(nodes, rows, between.allgather(row.longest_part()));
        let plan = plan.map_err(refused)?;
        let (lies, block) = (row.lies_at(), row.block(place.me, base));
        // A leader's block that is in the row already is left where it is.
        let own = match send {
            None if lies.is_some() && nodes.led().seat().is_some() => None,
            send => Some(send.unwrap_or(block)),
        };
        let staged = if lies.is_some() { 0 } else { row.bytes };
        engine.run(plan.scratch() + staged, |me, scratch| {
            let (kept, rest) = split(scratch, staged)?;
            let all = lies.map_or(kept, |begin| Buf::new(base.wrapping_add(begin as usize), row.bytes as usize));
            // SAFETY: the caller's memory, for as long as the call runs.
            unsafe { plan.machine(me, own, all, rest) }
        })?;
        if lies.is_none() {
            // SAFETY: the row is in the working memory that the machine had; the caller's blocks are writable.
            unsafe { row.copy(base, split(Buf::of_mut(&mut engine.scratch), staged)?.0, false) };
        }
        Ok(())
    }

    /// `send` goes to this rank's block of the root's memory at `base`; none: it is there.
    fn gather(&mut self, send: Option<Buf>, base: *mut u8, row: &Row, root: Rank) -> Called {
        let Self { place, engine, .. } = self;
        let nodes = place.nodes()?;
        let rows = row.rows(&nodes)?;
        let plan = gather::plan(nodes, rows, root).map_err(refused)?;
        let is_root = place.me == root;
        let lies = row.lies_at();
        let own = match send {
            None if lies.is_some() => None,
            send => Some(send.unwrap_or(row.block(place.me, base))),
        };
        let staged = if is_root && lies.is_none() { row.bytes } else { 0 };
        engine.run(plan.scratch() + staged, |me, scratch| {
            let (kept, rest) = split(scratch, staged)?;
            let all = match lies {
                _ if !is_root => Memory::NOTHING,
                Some(begin) => Buf::new(base.wrapping_add(begin as usize), row.bytes as usize),
                None => kept,
            };
            // SAFETY: the caller's memory, for as long as the call runs.
            unsafe { plan.machine(me, own, all, rest) }
        })?;
        if staged > 0 {
            // SAFETY: as in `allgather`.
            unsafe { row.copy(base, split(Buf::of_mut(&mut engine.scratch), staged)?.0, false) };
        }
        Ok(())
    }

    /// This rank's block of the root's memory at `base` goes to `receive`; none: it stays there.
    fn scatter(&mut self, base: *mut u8, receive: Option<Buf>, row: &Row, root: Rank) -> Called {
        let Self { place, engine, .. } = self;
        let nodes = place.nodes()?;
        let rows = row.rows(&nodes)?;
        let plan = scatter::plan(nodes, rows, root).map_err(refused)?;
        let (is_root, lies) = (place.me == root, row.lies_at());
        let staged = if is_root && lies.is_none() { row.bytes } else { 0 };
        engine.run(plan.scratch() + staged, |me, scratch| {
            let (kept, rest) = split(scratch, staged)?;
            let all = match lies {
                _ if !is_root => Memory::NOTHING,
                Some(begin) => Buf::new(base.wrapping_add(begin as usize), row.bytes as usize),
                None => {
                    // SAFETY: working memory for the row; the caller's blocks are readable.
                    unsafe { row.copy(base, kept, true) };
                    kept
                }
            };
            // SAFETY: the caller's memory, for as long as the call runs.
            unsafe { plan.machine(me, all, receive, rest) }
        })
    }

    /// A gather of blocks whose lengths, and places at `base`, only the root knows: `of` says them there.
    fn gatherv(&mut self, send: Option<Buf>, base: *mut u8, of: impl Fn(Rank) -> (u64, u64), root: Rank) -> Called {
        let (me, is_root) = (self.place.me, self.place.me == root);
        let own = send.map_or_else(|| of(me).0, |send| send.len() as u64).to_ne_bytes();
        let mut told = vec![0; if is_root { LENGTH * self.place.homes.len() } else { 0 }];
        let row = Row::equal(&self.place, LENGTH as u64)?;
        self.gather(Some(Buf::of(&own)), told.as_mut_ptr(), &row, root)?;
        for (rank, sent) in (0..).zip(lengths(&told)) {
            let expected = of(rank).0;
            if sent != expected {
                let refusal = Refusal::new(Argument::Bytes, expected, Bound::Equals(sent));
                return Err(self.engine.disagree(rank, refusal));
            }
        }
        let row = self.row(of, root)?;
        self.gather(send, base, &row, root)
    }

    /// A scatter of blocks whose lengths, and places at `base`, only the root knows: `of` says them there.
    fn scatterv(&mut self, base: *mut u8, receive: Option<Buf>, of: impl Fn(Rank) -> (u64, u64), root: Rank) -> Called {
        let ranks = if self.place.me == root { self.place.homes.len() as u32 } else { 0 };
        let mut all: Vec<u8> = (0..ranks).flat_map(|rank| of(rank).0.to_ne_bytes()).collect();
        let (mut told, row) = ([0; LENGTH], Row::equal(&self.place, LENGTH as u64)?);
        self.scatter(all.as_mut_ptr(), Some(Buf::of_mut(&mut told)), &row, root)?;
        let told = u64::from_ne_bytes(told);
        if let Some(own) = receive.map(|receive| receive.len() as u64).filter(|&own| own != told) {
            return Err(self.engine.disagree(root, Refusal::new(Argument::Bytes, own, Bound::Equals(told))));
        }
        let row = self.row(of, root)?;
        self.scatter(base, receive, &row, root)
    }

    /// A gatherv's or scatterv's lists, which the root has.
    ///
    /// # Safety
    /// As [`lists`], at the root.
    unsafe fn lists_at<'l>(
        &self,
        root: Rank,
        counts: *const u64,
        displacements: *const u64,
    ) -> Result<(&'l [u64], &'l [u64]), Failure> {
        match self.place.me == root {
            // SAFETY: the caller's promise.
            true => unsafe { lists(counts, displacements, self.place.homes.len()) },
            false => Ok((&[], &[])),
        }
    }

    /// The row after lengths have travelled, which a leader still has in its working memory.
    fn row(&mut self, of: impl Fn(Rank) -> (u64, u64), root: Rank) -> Result<Row, Failure> {
        let led = self.place.nodes()?.led_by(root)?;
        let inside = if led.seat().is_some() { self.engine.x.comm.member().size() as usize } else { 0 };
        let row = match led.is_root() {
            true => Row::at_root(&self.place, of),
            false => Row::told(&self.place, lengths(&self.engine.scratch).take(inside).collect()),
        };
        Ok(row?)
    }
}

/// The length and the place of a rank's block.
fn block_of((counts, displacements): (&[u64], &[u64])) -> impl Fn(Rank) -> (u64, u64) {
    let item = |list: &[u64], rank: Rank| list.get(rank as usize).copied().unwrap_or(0);
    move |rank| (item(counts, rank), item(displacements, rank))
}

/// As `unisono_allgather`.
///
/// # Safety
/// As [`super::unisono_mpi_levels_barrier`]; `send` is `UNISONO_IN_PLACE` or `block` bytes, `receive` one such block per rank: here,
/// and of all below, on those ranks and with those lengths that the call says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_allgather(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    block: u64,
) -> c_int {
    let of = |rank: Rank| (block, block.saturating_mul(rank.into()));
    // SAFETY: the caller's promise.
    unsafe { with(levels, |state| state.allgather(unless_in_place(send, block)?, receive.cast(), of)) }
}

/// As `unisono_allgatherv`.
///
/// # Safety
/// As [`unisono_mpi_levels_allgather`]; `counts` and `displacements` have a number per rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_allgatherv(
    levels: *const Levels,
    send: *const c_void,
    sent: u64,
    receive: *mut c_void,
    counts: *const u64,
    displacements: *const u64,
) -> c_int {
    let call = |state: &mut State| {
        // SAFETY: the caller's promise.
        let lists = unsafe { lists(counts, displacements, state.place.homes.len()) }?;
        state.allgather(unless_in_place(send, sent)?, receive.cast(), block_of(lists))
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_gather`.
///
/// # Safety
/// As [`unisono_mpi_levels_allgather`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_gather(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    block: u64,
    root: u32,
) -> c_int {
    let call = |state: &mut State| {
        let row = Row::equal(&state.place, block)?;
        state.gather(unless_in_place(send, block)?, receive.cast(), &row, root)
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_gatherv`.
///
/// # Safety
/// As [`unisono_mpi_levels_allgatherv`], of `receive` and its lists at the root alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_gatherv(
    levels: *const Levels,
    send: *const c_void,
    sent: u64,
    receive: *mut c_void,
    counts: *const u64,
    displacements: *const u64,
    root: u32,
) -> c_int {
    let call = |state: &mut State| {
        // SAFETY: the caller's promise.
        let lists = unsafe { state.lists_at(root, counts, displacements) }?;
        state.gatherv(unless_in_place(send, sent)?, receive.cast(), block_of(lists), root)
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_scatter`.
///
/// # Safety
/// As [`unisono_mpi_levels_allgather`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_scatter(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    block: u64,
    root: u32,
) -> c_int {
    let call = |state: &mut State| {
        let row = Row::equal(&state.place, block)?;
        state.scatter(send.cast_mut().cast(), unless_in_place(receive, block)?, &row, root)
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

/// As `unisono_scatterv`.
///
/// # Safety
/// As [`unisono_mpi_levels_allgatherv`], of `send` and its lists at the root alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_scatterv(
    levels: *const Levels,
    send: *const c_void,
    counts: *const u64,
    displacements: *const u64,
    receive: *mut c_void,
    received: u64,
    root: u32,
) -> c_int {
    let call = |state: &mut State| {
        // SAFETY: the caller's promise.
        let lists = unsafe { state.lists_at(root, counts, displacements) }?;
        state.scatterv(send.cast_mut().cast(), unless_in_place(receive, received)?, block_of(lists), root)
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}
