//! MPICH's `release_gather`: each rank has a flag of gathering and one of releasing, which count calls. Ranks gather by a tree of
//! gather flags: a rank waits for its children, folds their cells into its own, and sets its own flag. They release by a tree
//! of release flags: each waits for its parent's, sets its own, and reads the cell of rank 0.
//!
//! A barrier gathers and releases. A broadcast releases, and gathers to find out which cells are free, three chunks late. An
//! allreduce gathers and releases. Longer vectors go in chunks of a cell. Trees are k-ary: 64 for releasing; for
//! folding 4 up to 2 KiB, 2 beyond. A broadcast from another root first sends its data to rank 0.

use super::Done;
use super::messages::{self, Messages};
use super::process::Process;
use unisono_kernel::Rank;
use unisono_kernel::machine::poll::Until;
use unisono_kernel::op::Op;
use unisono_kernel::region::{Extent, FlagId, Params};

/// Cells of a broadcast, and of a rank's operands; bytes of each (MPIR_CVAR_BCAST_INTRANODE_NUM_CELLS, …_BUFFER_TOTAL_SIZE).
const CELLS: u64 = 4;
const CELL: u64 = 8192;

/// Bytes of a cell before its data: of a broadcast's cell, a line with the count and one with attributes.
const HEAD: u64 = 128;

/// Bytes of a chunk: whole elements.
const CHUNK: usize = (CELL - HEAD) as usize;

/// MPIR_CVAR_BCAST_INTRANODE_TREE_KVAL.
const RELEASE: u32 = 64;

/// MPIR_CVAR_REDUCE_INTRANODE_TREE_KVAL, …_MSG_SIZE_THRESHOLD and …_KVAL_LARGE.
const GATHER: u32 = 4;
const LONG: usize = 2048;
const GATHER_LONG: u32 = 2;

pub(super) fn params(ranks: u32) -> Params {
    Params {
        lines: 2,
        queue_slots: 2 * CELLS as u32,
        queue_fragment: CELL,
        cico: Some(messages::shape(CELL)),
        ..Params::new(ranks)
    }
}

#[derive(Debug)]
pub(super) struct ReleaseGather {
    messages: Messages,
    /// How often ranks have gathered, and released.
    gathered: u64,
    released: u64,
    /// This rank's gather flag.
    arrived: u64,
}

impl ReleaseGather {
    pub(super) fn new(me: &Process) -> Self {
        Self { messages: Messages::new(me, CELL as usize), gathered: 0, released: 0, arrived: 0 }
    }

    fn gather_flag(me: &Process, rank: Rank) -> FlagId {
        me.layout.line(rank, 0)
    }

    fn release_flag(me: &Process, rank: Rank) -> FlagId {
        me.layout.line(rank, 1)
    }

    /// The cell of this chunk of a broadcast.
    fn bcast_cell(me: &Process, chunk: u64) -> Extent {
        me.layout.slot(0, chunk % CELLS).part(HEAD, CELL)
    }

    /// A rank's cell for this chunk of its operand.
    fn reduce_cell(me: &Process, rank: Rank, chunk: u64) -> Extent {
        me.layout.slot(rank, CELLS + chunk % CELLS)
    }

    fn children(me: &Process, radix: u32) -> std::ops::Range<Rank> {
        let first = me.rank.saturating_mul(radix).saturating_add(1).min(me.size());
        first..first.saturating_add(radix).min(me.size())
    }

    /// Waits for the children's flags, which may be `late` behind, and sets this rank's to the least of them. Who knows that they
    /// are no later looks at none.
    fn gather(&mut self, me: &Process, late: u64) -> Done {
        self.gathered += 1;
        let (children, wanted) = (Self::children(me, RELEASE), self.gathered.saturating_sub(late));
        if late > 0 && !children.is_empty() && self.arrived >= wanted {
            return Ok(());
        }
        self.arrived = self.gathered;
        for child in children {
            let arrived = me.wait(Self::gather_flag(me, child), Until::AtLeast(wanted), child)?;
            self.arrived = self.arrived.min(arrived);
        }
        me.store(Self::gather_flag(me, me.rank), self.arrived);
        Ok(())
    }

    /// Waits for the children, and folds their cells into this rank's.
    fn gather_folded(&mut self, me: &Process, chunk: &mut [u8], op: &Op, radix: u32) -> Done {
        self.gathered += 1;
        let own = Self::reduce_cell(me, me.rank, self.gathered);
        me.write(own, chunk);
        for child in Self::children(me, radix) {
            me.reaches(Self::gather_flag(me, child), self.gathered, child)?;
            me.fold(Self::reduce_cell(me, child, self.gathered), chunk, op);
        }
        // The folds were into this cell, in this rank's cache.
        me.has(own, chunk);
        self.arrived = self.gathered;
        me.store(Self::gather_flag(me, me.rank), self.arrived);
        Ok(())
    }

    fn release(&mut self, me: &Process) -> Done {
        self.released += 1;
        if me.rank != 0 {
            let parent = (me.rank - 1) / RELEASE;
            me.reaches(Self::release_flag(me, parent), self.released, parent)?;
        }
        me.store(Self::release_flag(me, me.rank), self.released);
        Ok(())
    }

    pub(super) fn barrier(&mut self, me: &Process) -> Done {
        self.gather(me, 0)?;
        self.release(me)
    }

    pub(super) fn bcast(&mut self, me: &Process, bytes: &mut [u8], root: Rank) -> Done {
        for start in (0..bytes.len().max(1)).step_by(CHUNK) {
            let range = start..bytes.len().min(start + CHUNK);
            if root != 0 && me.rank == root {
                self.messages.send(me, 0, bytes, range.clone())?;
            } else if root != 0 && me.rank == 0 {
                self.messages.receive(me, root, &mut bytes[range.clone()], range.clone())?;
            }
            let cell = Self::bcast_cell(me, self.released + 1);
            if me.rank == 0 {
                me.write(cell, &bytes[range.clone()]);
            }
            self.release(me)?;
            if me.rank != root && me.rank != 0 {
                me.read(cell, &mut bytes[range]);
            }
            self.gather(me, CELLS - 1)?;
        }
        Ok(())
    }

    pub(super) fn allreduce(&mut self, me: &Process, bytes: &mut [u8], op: &Op) -> Done {
        let radix = if bytes.len() <= LONG { GATHER } else { GATHER_LONG };
        for chunk in bytes.chunks_mut(CHUNK) {
            self.gather_folded(me, chunk, op, radix)?;
            self.release(me)?;
            if me.rank != 0 {
                me.read(Self::reduce_cell(me, 0, self.gathered), chunk);
            }
        }
        Ok(())
    }
}
