//! A process's use of a slice of an arena. It ends when nothing in this process can access the slice any more: each
//! [`View`](crate::segment::View) of it holds the tenancy, and when the last one is dropped, this process leaves the
//! slice.

use super::commons::Commons;
use crate::arena::{Slice, WorldRank};
use std::sync::{Arc, OnceLock};
use unisono_kernel::Rank;
use unisono_kernel::region::Base;

/// A process's use of a slice.
#[derive(Debug)]
pub(crate) struct Tenancy {
    commons: Arc<Commons>,
    slice: Slice,
    epoch: u32,
    /// The process whose arena the slice is in.
    owner: WorldRank,
    rank: Rank,
    /// The communicator's counts at its end. Not set: operations may be incomplete, and the memory will be zeroed.
    end: OnceLock<Base>,
}

impl Tenancy {
    pub(super) fn new(commons: Arc<Commons>, slice: Slice, epoch: u32, owner: WorldRank, rank: Rank) -> Self {
        Self { commons, slice, epoch, owner, rank, end: OnceLock::new() }
    }

    /// The slice.
    pub(crate) const fn slice(&self) -> &Slice {
        &self.slice
    }

    /// Records the communicator's counts at its end, if all its operations are complete.
    pub(super) fn end_at(&self, end: Option<Base>) {
        if let Some(end) = end {
            let _ = self.end.set(end);
        }
    }
}

impl Drop for Tenancy {
    fn drop(&mut self) {
        let Self { commons, slice, epoch, owner, rank, end } = self;
        let end = end.get().copied();
        if *owner != commons.me {
            slice.leave(*rank, *epoch, end);
            return;
        }
        let arena = &mut commons.own().arena;
        if let Some(end) = end {
            arena.end(slice.offset(), end);
        }
        slice.leave(*rank, *epoch, end);
        arena.collect_some();
    }
}
