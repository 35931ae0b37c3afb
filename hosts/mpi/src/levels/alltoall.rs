//! The collectives that move a block for each pair of ranks: short ones of one length through leaders, others straight
//! between ranks.

use super::row::{List, Row, starts};
use super::{Called, IN_PLACE, Levels, Place, State, lists, refused, with};
use core::ffi::{c_int, c_void};
use unisono_c::error::Failure;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::Datatype;
use unisono_kernel::error::Refusal;
use unisono_kernel::hier::{alltoall, alltoallv, split};
use unisono_kernel::msg::Parts;
use unisono_kernel::msg::schedule::Area;

/// The user's blocks, one for each rank.
#[derive(Clone, Copy)]
struct Side<'a> {
    base: *mut u8,
    parts: Parts<'a>,
}

impl Side<'_> {
    fn buffer(&self) -> Buf {
        Buf::new(self.base, self.parts.reach() as usize)
    }

    /// The blocks of the ranks of this one's node.
    fn near(&self, place: &Place) -> Result<List, Refusal> {
        let here = place.nodes()?.home().node;
        let near = (0..).zip(&place.homes).filter(|(_, home)| home.node == here);
        let block = |rank| self.parts.place(Area::Receive, rank);
        Ok(near.map(|(rank, _)| block(rank)).map(|block| (block.len, block.at)).unzip())
    }
}

/// For each node, how many ranks it has, and how many are on those before it.
fn ranks(place: &Place) -> List {
    let mut ranks = vec![0; place.leaders.len()];
    for home in &place.homes {
        ranks.get_mut(home.node as usize).into_iter().for_each(|ranks| *ranks += 1);
    }
    starts(ranks)
}

impl State {
    /// Blocks of `block` bytes, in a row at `send` and `receive`; in place without `send`.
    fn alltoall(&mut self, send: Option<*mut u8>, receive: *mut u8, block: u64) -> Called {
        let nodes = ranks(&self.place);
        let most = nodes.0.iter().max().map_or(0, |&ranks| ranks as u32);
        if alltoall::through_leaders(block, most) {
            return self.through_leaders(send.unwrap_or(receive), receive, &nodes, block);
        }
        let parts = Parts::equal(self.place.homes.len() as u32, block)?;
        let side = |base| Side { base, parts };
        self.between_ranks(send.map(side), side(receive))
    }

    fn through_leaders(&mut self, send: *mut u8, receive: *mut u8, (ranks, starts): &List, block: u64) -> Called {
        let Self { place, engine, .. } = self;
        let row = Row::equal(place, block)?;
        let plan = alltoall::plan(place.nodes()?, ranks, starts, block).map_err(refused)?;
        let lies = row.lies_at().is_some();
        let staged = if lies { 0 } else { row.bytes };
        engine.run(plan.scratch() + staged, |me, scratch| {
            let (kept, rest) = split(scratch, staged)?;
            let (from, to) = match lies {
                true => (Buf::new(send, row.bytes as usize), Buf::new(receive, row.bytes as usize)),
                false => {
                    // SAFETY: working memory for the row; the caller's blocks are readable.
                    unsafe { row.copy(send, kept, true) };
                    (kept, kept)
                }
            };
            // SAFETY: the caller's memory, for as long as the call runs.
            unsafe { plan.machine(me, from, to, rest) }
        })?;
        if !lies {
            // SAFETY: the row is in the working memory that the machine had; the caller's blocks are writable.
            unsafe { row.copy(receive, split(Buf::of_mut(&mut engine.scratch), staged)?.0, false) };
        }
        Ok(())
    }

    fn between_ranks(&mut self, send: Option<Side<'_>>, receive: Side<'_>) -> Called {
        let Self { place, engine, .. } = self;
        let plan = alltoallv::plan(place.nodes()?, send.map(|send| send.parts), receive.parts);
        let plan = plan.map_err(refused)?;
        let to = receive.near(place)?;
        let from = send.map(|send| send.near(place)).transpose()?;
        engine.run(plan.scratch(), |me, scratch| {
            let (source, target) = (send.map(|send| send.buffer()), receive.buffer());
            // SAFETY: the caller's memory, for as long as the call runs; so of all below.
            let inward = unsafe { Blocks::vary(target, &to.0, &to.1, Datatype::BYTE) }?;
            let outward = match source.zip(from.as_ref()) {
                // SAFETY: as above.
                Some((source, from)) => Some(unsafe { Blocks::vary(source, &from.0, &from.1, Datatype::BYTE) }?),
                None => None,
            };
            // SAFETY: as above.
            unsafe { plan.machine(me, source, target, (outward, inward), scratch) }
        })
    }
}

/// As `unisono_alltoall`.
///
/// # Safety
/// As [`super::unisono_mpi_levels_barrier`]; `send` is `UNISONO_IN_PLACE` or points to a block of `block` bytes for each rank, as
/// `receive` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_alltoall(
    levels: *const Levels,
    send: *const c_void,
    receive: *mut c_void,
    block: u64,
) -> c_int {
    let from = (send.addr() != IN_PLACE).then(|| send.cast_mut().cast());
    // SAFETY: the caller's promise.
    unsafe { with(levels, |state| state.alltoall(from, receive.cast(), block)) }
}

/// As `unisono_alltoallv`.
///
/// # Safety
/// As [`unisono_mpi_levels_alltoall`], with blocks as the lists say, which have a number for each rank; in place those of `send`
/// are not read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_mpi_levels_alltoallv(
    levels: *const Levels,
    send: *const c_void,
    send_counts: *const u64,
    send_displacements: *const u64,
    receive: *mut c_void,
    receive_counts: *const u64,
    receive_displacements: *const u64,
) -> c_int {
    let call = |state: &mut State| {
        let ranks = state.place.homes.len();
        let side = |base: *const c_void, counts, displacements| -> Result<Side<'_>, Failure> {
            // SAFETY: the caller's promise.
            let (counts, displacements) = unsafe { lists(counts, displacements, ranks) }?;
            let parts = Parts::vary(ranks as u32, counts, displacements, 1)?;
            Ok(Side { base: base.cast_mut().cast(), parts })
        };
        let to = side(receive.cast_const(), receive_counts, receive_displacements)?;
        let from = match send.addr() {
            IN_PLACE => None,
            _ => Some(side(send, send_counts, send_displacements)?),
        };
        state.between_ranks(from, to)
    };
    // SAFETY: the caller's promise.
    unsafe { with(levels, call) }
}
