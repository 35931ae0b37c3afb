//! A process's time on a slice of an arena. It ends when nobody in this process can use the slice any more: each
//! [`View`](crate::segment::View) of it holds the tenancy, and the last one that goes says that this process has left.

use super::commons::Commons;
use crate::arena::{Slice, World};
use std::sync::{Arc, OnceLock};
use unisono_kernel::Rank;
use unisono_kernel::region::Base;

/// A process's time on a slice.
#[derive(Debug)]
pub(crate) struct Tenancy {
    commons: Arc<Commons>,
    slice: Slice,
    epoch: u32,
    /// In whose arena the slice is.
    owner: World,
    rank: Rank,
    /// Where the communicator ended; not set: it may have operations unfinished, and the memory will be made zero.
    end: OnceLock<Base>,
}

impl Tenancy {
    pub(super) fn new(commons: Arc<Commons>, (slice, epoch): (Slice, u32), owner: World, rank: Rank) -> Self {
        Self { commons, slice, epoch, owner, rank, end: OnceLock::new() }
    }

    /// The slice.
    pub(crate) const fn slice(&self) -> &Slice {
        &self.slice
    }

    /// The communicator finished all that it began, and stands there.
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
