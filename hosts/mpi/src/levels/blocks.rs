//! The collectives that move a block for each rank, where all ranks know all lengths.
//!
//! Blocks travel in a row, node by node. Where the user's lie so, they are the row; else it is working memory, and they are
//! copied.

use super::{Called, IN_PLACE, Levels, Place, State, bytes, with};
use core::ffi::{c_int, c_void};
use unisono::error::Failure;
use unisono_kernel::Rank;
use unisono_kernel::buffer::Buf;
use unisono_kernel::error::{Argument, Bound, Refusal};
use unisono_kernel::hier::{Nodes, Rows, allgather, gather, scatter, split};
use unisono_kernel::msg::Memory;

/// Lengths, and where what has them begins when all lie in a row.
type List = (Vec<u64>, Vec<u64>);

fn starts(lengths: Vec<u64>) -> List {
    let starts = lengths.iter().scan(0, |end, len| Some(std::mem::replace(end, *end + len))).collect();
    (lengths, starts)
}

/// The row of all blocks.
struct Row {
    inside: List,
    between: List,
    /// By rank: the length of its block, where it begins in the row, and where in the user's memory.
    blocks: Vec<(u64, u64, u64)>,
    bytes: u64,
}

impl Row {
    /// Of blocks that `of` says, by rank: length, and where it begins in the user's memory.
    fn new(place: &Place, of: impl Fn(Rank) -> (u64, u64)) -> Result<Self, Refusal> {
        let home = place.nodes()?.home();
        let (mut inside, mut between) = (Vec::new(), vec![0_u64; place.leaders.len()]);
        let (mut blocks, mut end) = (vec![(0, 0, 0); place.homes.len()], 0_u64);
        for &rank in &place.order {
            let (len, at) = of(rank);
            let after =
                end.checked_add(len).ok_or(Refusal::new(Argument::Bytes, len, Bound::AtMost(u64::MAX - end)))?;
            if let (Some(block), Some(theirs)) = (blocks.get_mut(rank as usize), place.homes.get(rank as usize)) {
                *block = (len, end, at);
                between.get_mut(theirs.node as usize).into_iter().for_each(|sum| *sum += len);
                inside.extend((theirs.node == home.node).then_some(len));
            }
            end = after;
        }
        Ok(Self { inside: starts(inside), between: starts(between), blocks, bytes: end })
    }

    fn rows(&self, nodes: &Nodes<'_>) -> Result<Rows<'_>, Refusal> {
        Rows::new(nodes, (&self.inside.0, &self.inside.1), (&self.between.0, &self.between.1))
    }

    /// Where the row begins in the user's memory, if its blocks lie so.
    fn lies_at(&self) -> Option<u64> {
        let mut full = self.blocks.iter().filter(|(len, ..)| *len > 0);
        let Some((_, first, at)) = full.next() else { return Some(0) };
        let begin = at.checked_sub(*first)?;
        full.all(|(_, start, at)| begin.checked_add(*start) == Some(*at)).then_some(begin)
    }

    /// A rank's block in the user's memory.
    fn block(&self, rank: Rank, base: *mut u8) -> Buf {
        let (len, _, at) = self.blocks.get(rank as usize).copied().unwrap_or_default();
        Buf::new(base.wrapping_add(at as usize), len as usize)
    }

    /// Copies all blocks between the user's memory at `base` and the row.
    ///
    /// # Safety
    /// Both are as long as the blocks say, readable and writable.
    unsafe fn copy(&self, base: *mut u8, row: Buf, into: bool) {
        for (rank, (len, start, _)) in (0..).zip(&self.blocks) {
            let (user, row) = (self.block(rank, base).ptr(), row.ptr().wrapping_add(*start as usize));
            let (from, to) = if into { (user, row) } else { (row, user) };
            // SAFETY: the caller's promise.
            unsafe { core::ptr::copy_nonoverlapping(from, to, *len as usize) };
        }
    }
}

impl State {
    /// `send` goes to this rank's block of everyone's memory at `base`; none: it is there.
    fn allgather(&mut self, send: Option<Buf>, base: *mut u8, of: impl Fn(Rank) -> (u64, u64)) -> Called {
        let Self { place, engine } = self;
        let (nodes, row) = (place.nodes()?, Row::new(place, of)?);
        let plan = allgather::plan(nodes, row.rows(&nodes)?, allgather::between(row.bytes));
        let plan = plan.map_err(|error| engine.refuse(error))?;
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
    fn gather(&mut self, send: Option<Buf>, base: *mut u8, len: u64, root: Rank) -> Called {
        let Self { place, engine } = self;
        let nodes = place.nodes()?;
        let row = Row::new(place, |rank| (len, len.saturating_mul(rank.into())))?;
        let plan = gather::plan(nodes, row.rows(&nodes)?, root).map_err(|error| engine.refuse(error))?;
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
    fn scatter(&mut self, base: *mut u8, receive: Option<Buf>, len: u64, root: Rank) -> Called {
        let Self { place, engine } = self;
        let nodes = place.nodes()?;
        let row = Row::new(place, |rank| (len, len.saturating_mul(rank.into())))?;
        let plan = scatter::plan(nodes, row.rows(&nodes)?, root).map_err(|error| engine.refuse(error))?;
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
}

/// `len` bytes at `address`, unless it is in place.
fn unless_in_place(address: *const c_void, len: u64) -> Result<Option<Buf>, Refusal> {
    if address.addr() == IN_PLACE { Ok(None) } else { bytes(address, len).map(Some) }
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
        let ranks = state.place.homes.len();
        for (list, name) in [(counts, "counts"), (displacements, "displacements")] {
            if list.is_null() {
                return Err(Failure::Null(name));
            }
        }
        // SAFETY: not null; the caller's promise.
        let counts = unsafe { core::slice::from_raw_parts(counts, ranks) };
        // SAFETY: as above.
        let displacements = unsafe { core::slice::from_raw_parts(displacements, ranks) };
        let of = |rank: Rank| {
            let item = |list: &[u64]| list.get(rank as usize).copied().unwrap_or(0);
            (item(counts), item(displacements))
        };
        state.allgather(unless_in_place(send, sent)?, receive.cast(), of)
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
    // SAFETY: the caller's promise.
    unsafe { with(levels, |state| state.gather(unless_in_place(send, block)?, receive.cast(), block, root)) }
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
        let receive = unless_in_place(receive, block)?;
        state.scatter(send.cast_mut().cast(), receive, block, root)
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_users_memory_where_blocks_lie_so() {
        let blocks = |rank: Rank| (10, 10 * u64::from(rank) + 5);
        let in_order = Row::new(&Place::new(&[0, 0, 1], 1), blocks).unwrap();
        assert_eq!((in_order.lies_at(), in_order.bytes), (Some(5), 30));
        assert_eq!((&in_order.inside, &in_order.between), (&(vec![10; 2], vec![0, 10]), &(vec![20, 10], vec![0, 20])));
        let across = Row::new(&Place::new(&[0, 1, 0], 1), blocks).unwrap();
        assert_eq!((across.lies_at(), &across.inside), (None, &(vec![10], vec![0])));
        assert_eq!(across.blocks, [(10, 0, 5), (10, 20, 15), (10, 10, 25)]);
        // Blocks of nothing may lie anywhere.
        let empty = Row::new(&Place::new(&[0, 1], 0), |rank| (0, 77 * u64::from(rank))).unwrap();
        assert_eq!((empty.lies_at(), empty.bytes), (Some(0), 0));
        let gaps = Row::new(&Place::new(&[0, 1], 0), |rank| (4, 5 * u64::from(rank))).unwrap();
        assert_eq!(gaps.lies_at(), None);
    }
}
