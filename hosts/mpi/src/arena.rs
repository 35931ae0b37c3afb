//! A process's arena: one sealed file in memory, mapped once, of which communicators lease slices.
//!
//! Its pages exist once they are touched. The owner alone allocates; which slices it has given out is private to it.
//! A slice is reserved when it is offered, leased when the offer was taken, and free when all ranks have left: the owner
//! looks at some leases whenever it releases one, and at all where room is short. An offer with room looks at none: it is
//! on the way of a communicator's first use.

use crate::lease::{Plan, Slice, page};
use crate::say::{Cause, once};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use unisono_kernel::Rank;
use unisono_posix::PosixError;
use unisono_posix::sealed::{Handle, Map, Sealed};

/// Leases looked at by one release: more than one communicator adds.
const LOOKS: usize = 8;

/// Which bytes are free: a first-fit allocator of numbers.
#[derive(Clone, Debug)]
pub struct Room {
    /// Free ranges, offset to length; none touches the next.
    free: BTreeMap<u64, u64>,
    total: u64,
    used: u64,
    most_used: u64,
}

impl Room {
    /// All of `total` bytes is free.
    pub fn new(total: u64) -> Self {
        let free = (total > 0).then_some((0, total)).into_iter().collect();
        Self { free, total, used: 0, most_used: 0 }
    }

    /// Takes the first range that has room for `len` bytes, at least one.
    pub fn take(&mut self, len: u64) -> Option<u64> {
        let (&at, &room) = self.free.iter().find(|(_, room)| (1..=**room).contains(&len))?;
        self.free.remove(&at);
        if room > len {
            self.free.insert(at + len, room - len);
        }
        self.used += len;
        self.most_used = self.most_used.max(self.used);
        Some(at)
    }

    /// Gives back what was taken.
    pub fn give(&mut self, at: u64, len: u64) {
        self.used = self.used.saturating_sub(len);
        let (mut at, mut len) = (at, len);
        if let Some((&before, &room)) = self.free.range(..at).next_back()
            && before + room == at
        {
            self.free.remove(&before);
            (at, len) = (before, room + len);
        }
        if let Some(room) = self.free.remove(&(at + len)) {
            len += room;
        }
        self.free.insert(at, len);
    }

    /// Bytes in all.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Bytes taken.
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Bytes taken at most.
    pub const fn most_used(&self) -> u64 {
        self.most_used
    }
}

/// A slice that was offered and taken.
#[derive(Debug)]
struct Leased {
    slice: Slice,
    /// All ranks below have left.
    present: Rank,
}

/// The arena of this process.
#[derive(Debug)]
pub struct Arena {
    file: Sealed,
    handle: Handle,
    map: Arc<Map>,
    room: Room,
    /// Offered, not settled.
    reserved: Vec<Slice>,
    /// The next to be looked at in front.
    leased: VecDeque<Leased>,
}

/// A slice that was reserved for an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Where it begins.
    pub offset: u64,
    /// With small slots.
    pub small: bool,
    /// Bytes that are free beside it.
    pub free: u64,
}

impl Arena {
    /// Makes an arena of `bytes` bytes, cut to pages.
    ///
    /// # Errors
    /// The system's refusals.
    pub fn create(bytes: u64) -> Result<Self, PosixError> {
        let total = bytes - bytes % page();
        let file = Sealed::create(total)?;
        let map = file.map()?;
        map.keep_from_children()?;
        let handle = file.handle()?;
        let (room, reserved, leased) = (Room::new(total), Vec::new(), VecDeque::new());
        Ok(Self { file, handle, map: Arc::new(map), room, reserved, leased })
    }

    /// Where other processes find it.
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Its map.
    pub const fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// Its bytes.
    pub const fn room(&self) -> &Room {
        &self.room
    }

    /// Reserves a slice for `ranks`: a small one where half of the arena is in use, or a large one has no room.
    /// `None`: no room.
    pub fn reserve(&mut self, ranks: u32) -> Option<Reserved> {
        let (large, small) = (Plan::new(ranks, false)?, Plan::new(ranks, true)?);
        self.take_large(&large).or_else(|| {
            self.collect(usize::MAX);
            self.take_large(&large).or_else(|| self.take(&small, true))
        })
    }

    fn take_large(&mut self, plan: &Plan) -> Option<Reserved> {
        if self.room.used() < self.room.total() / 2 { self.take(plan, false) } else { None }
    }

    fn take(&mut self, plan: &Plan, small: bool) -> Option<Reserved> {
        let offset = self.room.take(plan.bytes())?;
        let slice = Slice::new(Arc::clone(&self.map), offset, *plan)?;
        self.reserved.push(slice);
        Some(Reserved { offset, small, free: self.room.total() - self.room.used() })
    }

    /// The slice that was reserved at `offset`, which is so no longer.
    fn unreserve(&mut self, offset: u64) -> Option<Slice> {
        let at = self.reserved.iter().position(|slice| slice.offset() == offset)?;
        Some(self.reserved.swap_remove(at))
    }

    /// The slice that is reserved at `offset`, if one is.
    pub fn reserved(&self, offset: u64) -> Option<&Slice> {
        self.reserved.iter().find(|slice| slice.offset() == offset)
    }

    /// The offer at `offset` was not taken: its slice, which nobody has touched, is free.
    pub fn give_up(&mut self, offset: u64) {
        if let Some(slice) = self.unreserve(offset) {
            self.room.give(offset, slice.plan().bytes());
        }
    }

    /// The offer at `offset` was taken: its slice is leased until all ranks have left.
    pub fn lease(&mut self, offset: u64) {
        if let Some(slice) = self.unreserve(offset) {
            self.leased.push_back(Leased { slice, present: 0 });
        }
    }

    /// Looks at a few leases.
    pub fn collect_some(&mut self) {
        self.collect(LOOKS);
    }

    /// Looks at leases, at most `looks` of them; frees the slices that all ranks have left, with zeros in them.
    pub fn collect(&mut self, looks: usize) {
        for _ in 0..looks.min(self.leased.len()) {
            let Some(mut leased) = self.leased.pop_front() else { break };
            match leased.slice.first_present(leased.present) {
                Some(rank) => {
                    leased.present = rank;
                    self.leased.push_back(leased);
                }
                None => self.reuse(&leased.slice),
            }
        }
    }

    fn reuse(&mut self, slice: &Slice) {
        let (offset, bytes) = (slice.offset(), slice.plan().bytes());
        if let Err(error) = self.file.punch(offset, bytes) {
            once(Cause::Punch, format_args!("{error}; freed communicators keep their memory for later ones"));
            slice.clear();
        }
        self.room.give(offset, bytes);
    }
}
