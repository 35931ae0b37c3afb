//! The collectives that move a block for each rank, to or from a root or all.
//!
//! Blocks travel in a row, node by node. Where the caller's lie so, they are the row; else it is working memory, and they are
//! copied. Where only the root knows all lengths, these travel first.

use super::row::{Block, Row, equal, rows_told, vary};
use super::{End, Engine, Host, Lengths, Runner, Side};
use crate::Rank;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::{Argument, Bound, Refusal};
use crate::hier::places::take;
use crate::hier::{BySwitch, Leaders};
use crate::hier::{Nodes, Rows, Spans, allgather, gather, reduce_scatter, scatter, split};
use crate::msg::Memory;
use crate::msg::levels::Way;
use crate::op::Op;

/// Bytes of a length on its way.
const LENGTH: u64 = size_of::<u64>() as u64;

/// `len` bytes of the caller's memory that begin `begin` bytes behind `base`.
const fn row_at(base: *mut u8, begin: u64, len: u64) -> Buf {
    Buf::new(base.wrapping_add(begin as usize), len as usize)
}

/// The root of a call, and the line of leaders if their messages go over switches.
#[derive(Clone, Copy)]
struct Rooted<'a> {
    root: Rank,
    over: BySwitch<'a>,
}

impl Rooted<'_> {
    /// Among all leaders alike.
    const fn flat(root: Rank) -> Self {
        Self { root, over: None }
    }
}

/// Is there a block for each of `size` ranks?
fn check(spans: Spans<'_>, size: u32) -> Result<(), Refusal> {
    Refusal::check(Argument::Ranks, spans.lengths.len() as u64, Bound::Equals(size.into()))?;
    Refusal::check(Argument::Displacements, spans.starts.len() as u64, Bound::Equals(size.into()))?;
    Ok(())
}

/// A gatherv's or scatterv's blocks, which only the root has: elsewhere none.
fn at_root(blocks: Spans<'_>, is_root: bool, size: u32) -> Result<Spans<'_>, Refusal> {
    if !is_root {
        return Ok(Spans { lengths: &[], starts: &[] });
    }
    check(blocks, size).map(|()| blocks)
}

/// What a leader was told of its node's blocks: the lengths at the start of its working memory.
///
/// # Safety
/// The memory has so many, initialised.
unsafe fn told_at(scratch: Buf, count: usize) -> impl ExactSizeIterator<Item = u64> {
    let count = count.min(scratch.len() / LENGTH as usize);
    // SAFETY: the caller's promise; within the memory. It is not aligned.
    (0..count).map(move |at| unsafe { scratch.ptr().cast::<u64>().wrapping_add(at).read_unaligned() })
}

impl<H: Host> Engine<H> {
    /// Everyone's `send` goes to its block of everyone's memory at `base`; without `send` it is there.
    ///
    /// # Safety
    /// As [`super::Communicator::start`].
    async unsafe fn allgather<'n, F: Fn(Rank) -> Block, B: Leaders<'n, allgather::Call<'n>>>(
        &mut self,
        (nodes, rows): (Nodes<'n>, Rows<'n>),
        by: B,
        send: Option<Buf>,
        base: *mut u8,
        row: &Row<'_, F>,
    ) -> Result<(), End>
    where
        B::Plan: Copy,
    {
        let plan = allgather::plan(nodes, rows, by)?;
        let lies = row.lies_at();
        // A leader's block that is in the row already is left where it is.
        let own = match send {
            None if lies.is_some() && nodes.led().seat().is_some() => None,
            send => Some(send.unwrap_or(row.block(nodes.me(), base))),
        };
        let staged = if lies.is_some() { 0 } else { row.bytes };
        let machine = |me: &mut Member, scratch| {
            let (kept, rest) = split(scratch, staged)?;
            let all = lies.map_or(kept, |begin| row_at(base, begin, row.bytes));
            // SAFETY: the caller's promise.
            unsafe { plan.machine(me, own, all, rest) }
        };
        let scratch = self.run(plan.scratch() + staged, machine).await?;
        if lies.is_none() {
            // SAFETY: the row is in the working memory that the machine had; the caller's blocks are writable.
            unsafe { row.hand_out(split(scratch, staged)?.0, base) };
        }
        Ok(())
    }

    /// Everyone's `send` goes to its block of the root's memory at `base`; without `send` it is there. Returns the working memory
    /// after it.
    ///
    /// # Safety
    /// As [`super::Communicator::start`].
    async unsafe fn gather<F: Fn(Rank) -> Block>(
        &mut self,
        nodes: Nodes<'_>,
        rows: Rows<'_>,
        send: Option<Buf>,
        base: *mut u8,
        row: &Row<'_, F>,
        Rooted { root, over }: Rooted<'_>,
    ) -> Result<Buf, End> {
        let plan = gather::plan(nodes, rows, root, over)?;
        let (is_root, lies) = (nodes.me() == root, row.lies_at());
        let own = match send {
            None if lies.is_some() => None,
            send => Some(send.unwrap_or(row.block(nodes.me(), base))),
        };
        let staged = if is_root && lies.is_none() { row.bytes } else { 0 };
        let machine = |me: &mut Member, scratch| {
            let (kept, rest) = split(scratch, staged)?;
            let all = match lies {
                _ if !is_root => Memory::NOTHING,
                Some(begin) => row_at(base, begin, row.bytes),
                None => kept,
            };
            // SAFETY: the caller's promise.
            unsafe { plan.machine(me, own, all, rest) }
        };
        let scratch = self.run(plan.scratch() + staged, machine).await?;
        if staged > 0 {
            // SAFETY: as in `allgather`.
            unsafe { row.hand_out(split(scratch, staged)?.0, base) };
        }
        Ok(scratch)
    }

    /// Each rank's block of the root's memory at `base` goes to its `receive`; without `receive` it stays there. Returns the
    /// working memory after it.
    ///
    /// # Safety
    /// As [`super::Communicator::start`].
    async unsafe fn scatter<F: Fn(Rank) -> Block>(
        &mut self,
        nodes: Nodes<'_>,
        rows: Rows<'_>,
        base: *mut u8,
        receive: Option<Buf>,
        row: &Row<'_, F>,
        Rooted { root, over }: Rooted<'_>,
    ) -> Result<Buf, End> {
        let plan = scatter::plan(nodes, rows, root, over)?;
        let (is_root, lies) = (nodes.me() == root, row.lies_at());
        let staged = if is_root && lies.is_none() { row.bytes } else { 0 };
        let machine = |me: &mut Member, scratch| {
            let (kept, rest) = split(scratch, staged)?;
            let all = match lies {
                _ if !is_root => Memory::NOTHING,
                Some(begin) => row_at(base, begin, row.bytes),
                None => {
                    // SAFETY: working memory for the row; the caller's blocks are readable.
                    unsafe { row.fill(kept, base) };
                    kept
                }
            };
            // SAFETY: the caller's promise.
            unsafe { plan.machine(me, all, receive, rest) }
        };
        self.run(plan.scratch() + staged, machine).await
    }
}

/// The blocks of a gatherv or scatterv after their lengths have travelled: a leader has those of its node's ranks in the
/// `scratch` of the operation by which they travelled.
///
/// # Errors
/// `root` is not below the size; the row is too long.
///
/// # Safety
/// That operation is complete, and the memory is as it left it.
unsafe fn told_rows<'r, F: Fn(Rank) -> Block>(
    nodes: Nodes<'_>,
    inside: u32,
    row: &Row<'_, F>,
    scratch: Buf,
    root: Rank,
    room: &'r mut [u64],
) -> Result<Rows<'r>, Refusal> {
    let led = nodes.led_by(root)?;
    if led.is_root() {
        return row.rows_at_root(&nodes, inside, room);
    }
    let count = if led.seat().is_some() { inside as usize } else { 0 };
    // SAFETY: the caller's promise.
    rows_told(&nodes, unsafe { told_at(scratch, count) }, room)
}

impl<H: Host> Runner<'_, H> {
    /// With blocks as `of` says.
    ///
    /// # Safety
    /// As [`super::Communicator::start`]: here, and of all below.
    async unsafe fn allgather_as(
        self,
        send: Option<Buf>,
        base: *mut u8,
        of: impl Fn(Rank) -> Block,
    ) -> Result<(), End> {
        let Self { engine, algorithms, placement } = self;
        let (nodes, inside) = (placement.nodes, placement.inside().len() as u32);
        let row = Row::new(placement.order, of)?;
        let rows = row.rows(&nodes, inside, placement.room)?;
        let (by, by_switch) = (algorithms.allgather(rows.longest_part()), nodes.by_switch());
        let over = engine.over(by, &by_switch);
        match by {
            // SAFETY: the caller's promise.
            Way::Flat(by) => unsafe { engine.allgather((nodes, rows), by, send, base, &row) }.await,
            Way::Levels(by) => {
                let by = allgather::Over(by, over);
                // SAFETY: as above.
                unsafe { engine.allgather((nodes, rows), by, send, base, &row) }.await
            }
        }
    }

    pub(super) async unsafe fn allgather(self, send: Option<Buf>, base: *mut u8, block: u64) -> Result<(), End> {
        // SAFETY: the caller's promise.
        unsafe { self.allgather_as(send, base, equal(block)) }.await
    }

    pub(super) async unsafe fn allgatherv(self, send: Option<Buf>, receive: Side<'_>) -> Result<(), End> {
        check(receive.blocks, self.placement.nodes.size())?;
        // SAFETY: the caller's promise.
        unsafe { self.allgather_as(send, receive.base, vary(receive.blocks)) }.await
    }

    pub(super) async unsafe fn gather(
        self,
        send: Option<Buf>,
        receive: *mut u8,
        block: u64,
        root: Rank,
    ) -> Result<(), End> {
        let Self { engine, algorithms, placement } = self;
        let (nodes, inside) = (placement.nodes, placement.inside().len() as u32);
        let row = Row::new(placement.order, equal(block))?;
        let rows = row.rows(&nodes, inside, placement.room)?;
        let by_switch = nodes.by_switch();
        let over = engine.over(algorithms.gather(rows.longest_part()), &by_switch);
        // SAFETY: the caller's promise.
        unsafe { engine.gather(nodes, rows, send, receive, &row, Rooted { root, over }) }.await.map(drop)
    }

    pub(super) async unsafe fn gatherv(self, send: Option<Buf>, receive: Side<'_>, root: Rank) -> Result<(), End> {
        let Self { engine, mut placement, .. } = self;
        let nodes = placement.nodes;
        let (me, is_root, inside) = (nodes.me(), nodes.me() == root, placement.inside().len() as u32);
        let of = vary(at_root(receive.blocks, is_root, nodes.size())?);
        let own = send.map_or_else(|| of(me).len, |send| send.len() as u64).to_ne_bytes();
        let told = take(&mut placement.room, if is_root { nodes.size() as usize } else { 0 })?;
        let lengths = Row::new(placement.order, equal(LENGTH))?;
        let rows = lengths.rows(&nodes, inside, placement.room)?;
        let base = told.as_mut_ptr().cast();
        let flat = Rooted::flat(root);
        // SAFETY: a length of ours, which is copied into the segment; the lists' room for all lengths.
        let scratch = unsafe { engine.gather(nodes, rows, Some(Buf::of(&own)), base, &lengths, flat) }.await?;
        for (peer, &sent) in (0..).zip(&*told) {
            let expected = of(peer).len;
            if sent != expected {
                let refusal = Refusal::new(Argument::Bytes, expected, Bound::Equals(sent));
                return Err(End::Disagree { peer, refusal });
            }
        }
        let row = Row::new(if is_root { placement.order } else { &[] }, of)?;
        // SAFETY: the gather of lengths is complete.
        let rows = unsafe { told_rows(nodes, inside, &row, scratch, root, placement.room) }?;
        // SAFETY: the caller's promise.
        unsafe { engine.gather(nodes, rows, send, receive.base, &row, flat) }.await.map(drop)
    }

    pub(super) async unsafe fn scatter(
        self,
        send: *mut u8,
        receive: Option<Buf>,
        block: u64,
        root: Rank,
    ) -> Result<(), End> {
        let Self { engine, algorithms, placement } = self;
        let (nodes, inside) = (placement.nodes, placement.inside().len() as u32);
        let row = Row::new(placement.order, equal(block))?;
        let rows = row.rows(&nodes, inside, placement.room)?;
        let by_switch = nodes.by_switch();
        let over = engine.over(algorithms.scatter(rows.longest_part()), &by_switch);
        // SAFETY: the caller's promise.
        unsafe { engine.scatter(nodes, rows, send, receive, &row, Rooted { root, over }) }.await.map(drop)
    }

    pub(super) async unsafe fn reduce_scatter(
        self,
        send: Buf,
        receive: Buf,
        lengths: Lengths<'_>,
        op: Op,
    ) -> Result<(), End> {
        let Self { engine, placement, .. } = self;
        let (nodes, inside) = (placement.nodes, placement.inside().len() as u32);
        if let Lengths::Each(list) = lengths {
            Refusal::check(Argument::List, list.len() as u64, Bound::Equals(nodes.size().into()))?;
        }
        // They follow one another: where a block begins is not asked.
        let row = Row::new(placement.order, |rank| Block { len: lengths.of(rank), at: 0 })?;
        Refusal::check(Argument::Bytes, send.len() as u64, Bound::Equals(row.bytes))?;
        Refusal::check(Argument::Bytes, receive.len() as u64, Bound::Equals(lengths.of(nodes.me())))?;
        placement.order.iter().try_for_each(|&rank| op.count(lengths.of(rank)).map(drop))?;
        let plan = reduce_scatter::plan(nodes, row.rows(&nodes, inside, placement.room)?, op)?;
        // SAFETY: the caller's promise.
        let machine = |me: &mut Member, scratch| unsafe { plan.machine(me, send, receive, scratch) };
        engine.run(plan.scratch(), machine).await.map(drop)
    }

    pub(super) async unsafe fn scatterv(self, send: Side<'_>, receive: Option<Buf>, root: Rank) -> Result<(), End> {
        let Self { engine, mut placement, .. } = self;
        let nodes = placement.nodes;
        let (is_root, inside) = (nodes.me() == root, placement.inside().len() as u32);
        let blocks = at_root(send.blocks, is_root, nodes.size())?;
        let all = take(&mut placement.room, blocks.lengths.len())?;
        all.copy_from_slice(blocks.lengths);
        let mut told = [0; LENGTH as usize];
        let lengths = Row::new(placement.order, equal(LENGTH))?;
        let rows = lengths.rows(&nodes, inside, placement.room)?;
        let (base, own) = (all.as_mut_ptr().cast(), Some(Buf::of_mut(&mut told)));
        let flat = Rooted::flat(root);
        // SAFETY: the lists' room with all lengths; one of ours, which is copied out of the segment.
        let scratch = unsafe { engine.scatter(nodes, rows, base, own, &lengths, flat) }.await?;
        let told = u64::from_ne_bytes(told);
        if let Some(own) = receive.map(|receive| receive.len() as u64).filter(|&own| own != told) {
            let refusal = Refusal::new(Argument::Bytes, own, Bound::Equals(told));
            return Err(End::Disagree { peer: root, refusal });
        }
        let row = Row::new(if is_root { placement.order } else { &[] }, vary(blocks))?;
        // SAFETY: the scatter of lengths is complete.
        let rows = unsafe { told_rows(nodes, inside, &row, scratch, root, placement.room) }?;
        // SAFETY: the caller's promise.
        unsafe { engine.scatter(nodes, rows, send.base, receive, &row, flat) }.await.map(drop)
    }
}
