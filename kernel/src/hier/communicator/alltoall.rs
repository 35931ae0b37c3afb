//! The collectives that move a block for each pair of ranks: short ones of one length through leaders, others straight
//! between ranks.

use super::row::{Row, equal};
use super::{End, Host, Runner, Side};
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::buffer::Buf;
use crate::data::datatype::Datatype;
use crate::error::Refusal;
use crate::hier::places::{Placement, take};
use crate::hier::{Spans, alltoall, alltoallv, split};
use crate::msg::Parts;
use crate::msg::schedule::Area;

/// A caller's blocks, one for each rank, checked.
#[derive(Clone, Copy)]
struct Checked<'a> {
    base: *mut u8,
    parts: Parts<'a>,
}

impl<'a> Side<'a> {
    fn check(self, size: u32) -> Result<Checked<'a>, Refusal> {
        let parts = Parts::vary(size, self.blocks.lengths, self.blocks.starts, 1)?;
        Ok(Checked { base: self.base, parts })
    }
}

impl Checked<'_> {
    fn buffer(&self) -> Buf {
        Buf::new(self.base, self.parts.reach() as usize)
    }

    /// The blocks of the ranks of this process's node.
    fn near<'l>(&self, placement: &mut Placement<'l>) -> Result<Spans<'l>, Refusal> {
        let inside = placement.inside();
        let (lengths, starts) = (take(&mut placement.room, inside.len())?, take(&mut placement.room, inside.len())?);
        for ((&rank, len), start) in inside.iter().zip(&mut *lengths).zip(&mut *starts) {
            let block = self.parts.place(Area::Receive, rank);
            (*len, *start) = (block.len, block.at);
        }
        Ok(Spans { lengths, starts })
    }
}

impl<H: Host> Runner<'_, H> {
    /// # Safety
    /// As [`super::Communicator::start`]: here, and of all below.
    async unsafe fn through_leaders(self, send: *mut u8, receive: *mut u8, block: u64) -> Result<(), End> {
        let Self { engine, algorithms, placement } = self;
        let row = Row::new(placement.order, equal(block))?;
        let by_switch = placement.nodes.by_switch().filter(|_| alltoall::are_alike(placement.ranks));
        let over = engine.over(algorithms.alltoall(block), &by_switch);
        let plan = alltoall::plan(placement.nodes, placement.ranks, block, over)?;
        let lies = row.lies_at().is_some();
        let staged = if lies { 0 } else { row.bytes };
        let machine = |me: &mut Member, scratch| {
            let (kept, rest) = split(scratch, staged)?;
            let (from, to) = match lies {
                true => (Buf::new(send, row.bytes as usize), Buf::new(receive, row.bytes as usize)),
                false => {
                    // SAFETY: working memory for the row; the caller's blocks are readable.
                    unsafe { row.fill(kept, send) };
                    (kept, kept)
                }
            };
            // SAFETY: the caller's promise.
            unsafe { plan.machine(me, from, to, rest) }
        };
        let scratch = engine.run(plan.scratch() + staged, machine).await?;
        if !lies {
            // SAFETY: the row is in the working memory that the machine had; the caller's blocks are writable.
            unsafe { row.hand_out(split(scratch, staged)?.0, receive) };
        }
        Ok(())
    }

    async unsafe fn between_ranks(self, send: Option<Checked<'_>>, receive: Checked<'_>) -> Result<(), End> {
        let Self { engine, mut placement, .. } = self;
        let plan = alltoallv::plan(placement.nodes, send.map(|send| send.parts), receive.parts)?;
        let to = receive.near(&mut placement)?;
        let from = send.map(|send| send.near(&mut placement)).transpose()?;
        let machine = |me: &mut Member, scratch| {
            let (source, target) = (send.map(|send| send.buffer()), receive.buffer());
            // SAFETY: the caller's promise; so of all below.
            let receive = unsafe { Blocks::vary(target, to.lengths, to.starts, Datatype::BYTE) }?;
            let outward = source.zip(from).map(|(source, from)| {
                // SAFETY: as above.
                unsafe { Blocks::vary(source, from.lengths, from.starts, Datatype::BYTE) }
            });
            let near = alltoallv::Near { send: outward.transpose()?, receive };
            // SAFETY: as above.
            unsafe { plan.machine(me, source, target, near, scratch) }
        };
        engine.run(plan.scratch(), machine).await.map(drop)
    }

    pub(super) async unsafe fn alltoall(self, send: Option<*mut u8>, receive: *mut u8, block: u64) -> Result<(), End> {
        let most = self.placement.ranks.lengths.iter().max().map_or(0, |&ranks| ranks as u32);
        if alltoall::through_leaders(block, most) {
            // SAFETY: the caller's promise.
            return unsafe { self.through_leaders(send.unwrap_or(receive), receive, block) }.await;
        }
        let parts = Parts::equal(self.placement.nodes.size(), block)?;
        let side = |base| Checked { base, parts };
        // SAFETY: the caller's promise.
        unsafe { self.between_ranks(send.map(side), side(receive)) }.await
    }

    pub(super) async unsafe fn alltoallv(self, send: Option<Side<'_>>, receive: Side<'_>) -> Result<(), End> {
        let size = self.placement.nodes.size();
        let receive = receive.check(size)?;
        let send = send.map(|send| send.check(size)).transpose()?;
        // SAFETY: the caller's promise.
        unsafe { self.between_ranks(send, receive) }.await
    }
}
