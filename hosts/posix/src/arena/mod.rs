//! A process's arena: one sealed file in memory, mapped once, of which communicators lease slices.
//!
//! Its pages exist once they are touched. The owner alone allocates; which slices it has given out is private to it.
//! A slice is reserved when it is offered, leased when the offer was taken, and retired when all ranks have left: the owner
//! looks at some leases whenever it releases one, and at all where room is short. An offer with room looks at none: it is
//! on the way of a communicator's first use.
//!
//! A retired slice stays as it is, *warm*, for the next communicator of its shape, if all ranks left it in the same place
//! ([`unisono_kernel::region::lease`]) and the owner said where ([`Arena::end`]); else its pages go back to the system. So
//! do warm ones where room is short.
//!
//! ```text
//! room -> reserved -> leased -> room, with zeros in it
//!            ^           |
//!            '-- warm <--'
//! ```

mod room;
mod slice;

pub use room::Room;
pub use slice::{Plan, Slice, page};

use crate::PosixError;
use crate::sealed::{Handle, Map, Sealed};
use std::collections::VecDeque;
use std::sync::Arc;
use unisono_kernel::Rank;
use unisono_kernel::region::{Base, Term};

/// Leases looked at by one release: more than one communicator adds.
const LOOKS: usize = 8;

/// Bytes of an arena, if nothing is said.
pub const DEFAULT: u64 = 256 << 20;

/// Environment: the bound of a process's arena.
pub const VARIABLE: &str = "UNISONO_ARENA";

/// The bound that the environment sets, or the default.
///
/// # Errors
/// The variable is no number of bytes.
pub fn from_env() -> Result<u64, PosixError> {
    let Some(value) = std::env::var_os(VARIABLE) else { return Ok(DEFAULT) };
    value.to_str().and_then(parse_bytes).ok_or_else(|| {
        let (value, bound) = (value.to_string_lossy().into_owned(), "a number of bytes, or one with K, M or G");
        PosixError::Setting { name: VARIABLE, value, bound }
    })
}

/// Parses a number of bytes: digits, then nothing or one of K, M, G.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'G', 'k', 'm', 'g']);
    let shift = match text.strip_prefix(digits)? {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        _ => return None,
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A process, by its number in the job: who may be asked whether it is gone.
pub type World = u32;

/// Nobody is known to be gone.
pub fn alive(_: World) -> bool {
    false
}

/// A slice, and the term that it is kept for.
#[derive(Debug)]
struct Held {
    slice: Slice,
    term: Term,
}

/// A slice that was offered and taken.
#[derive(Debug)]
struct Leased {
    held: Held,
    /// Who are its ranks, if their deaths can be seen.
    members: Arc<[World]>,
    /// All ranks below have left, or are gone.
    present: Rank,
    /// Some are gone.
    orphaned: bool,
    /// Where the owner ended.
    end: Option<Base>,
}

impl Leased {
    /// Has every rank left, or gone?
    fn is_over(&mut self, gone: &mut dyn FnMut(World) -> bool) -> bool {
        while let Some(rank) = self.held.slice.first_present(self.held.term.epoch, self.present) {
            self.present = rank;
            if !self.members.get(rank as usize).is_some_and(|&member| gone(member)) {
                return false;
            }
            (self.present, self.orphaned) = (rank + 1, true);
        }
        true
    }

    /// The term after this one, if the slice can be left as it is.
    fn next(&self) -> Option<Term> {
        let (Held { slice, term }, end) = (&self.held, self.end?);
        if self.orphaned || !slice.ended_alike(term.epoch, end) { None } else { term.next(end) }
    }
}

/// The arena of this process.
#[derive(Debug)]
pub struct Arena {
    file: Sealed,
    handle: Handle,
    map: Arc<Map>,
    room: Room,
    /// Offered, not settled.
    reserved: Vec<Held>,
    /// The next to be looked at in front.
    leased: VecDeque<Leased>,
    /// The latest behind.
    warm: Vec<Held>,
    /// The term on zeroed memory.
    first: Term,
    refusal: Option<PosixError>,
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
    /// Where a communicator begins on it.
    pub term: Term,
}

impl Arena {
    /// Makes an arena of `bytes` bytes, cut to pages, with `head` bytes before them that are not for communicators.
    ///
    /// # Errors
    /// The system's refusals.
    pub fn create(head: u64, bytes: u64) -> Result<Self, PosixError> {
        let (head, total) = (head.next_multiple_of(page()), bytes - bytes % page());
        let file = Sealed::create(head.saturating_add(total))?;
        let map = file.map()?;
        map.keep_from_children()?;
        let (handle, map, room) = (file.handle()?, Arc::new(map), Room::new(head, total));
        let (reserved, leased, warm) = (Vec::new(), VecDeque::new(), Vec::new());
        Ok(Self { file, handle, map, room, reserved, leased, warm, first: Term::FIRST, refusal: None })
    }

    /// Lets communicators begin there on zeroed memory, for checks; but their central barriers' counter is zero, and so are those.
    #[must_use]
    pub fn beginning(self, base: Base) -> Self {
        Self { first: Term { base: Base { centrals: 0, ..base }, ..Term::FIRST }, ..self }
    }

    /// The term on zeroed memory.
    pub const fn first(&self) -> Term {
        self.first
    }

    /// Where other processes find it.
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Its map.
    pub const fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// Bytes of its file.
    pub const fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// Bytes of its pages that exist.
    pub fn touched(&self) -> u64 {
        self.file.touched()
    }

    /// Its bytes for communicators; warm slices are not free there.
    pub const fn room(&self) -> &Room {
        &self.room
    }

    /// Bytes that are reserved or leased.
    pub fn used(&self) -> u64 {
        self.room.used() - self.warm.iter().map(|held| held.slice.plan().bytes()).sum::<u64>()
    }

    /// Slices that wait for their next communicator.
    pub fn warm(&self) -> usize {
        self.warm.len()
    }

    /// The first refusal of the system to take memory back since the last call: the slice was written over instead.
    pub const fn take_refusal(&mut self) -> Option<PosixError> {
        self.refusal.take()
    }

    /// Reserves a slice for `ranks`: a warm one; else a small one where half of the arena is in use, or a large one has no
    /// room. `None`: no room. Where room is short, `gone` is asked about processes that hold some.
    pub fn reserve(&mut self, ranks: u32, gone: &mut dyn FnMut(World) -> bool) -> Option<Reserved> {
        let (large, small) = (Plan::new(ranks, false)?, Plan::new(ranks, true)?);
        let first = self.reserve_warm(|of| of == ranks).or_else(|| self.take_large(&large));
        first.or_else(|| {
            self.collect(usize::MAX, gone);
            let now = self.reserve_warm(|of| of == ranks).or_else(|| self.take_large(&large));
            now.or_else(|| {
                self.chill();
                self.take_large(&large).or_else(|| self.take(&small))
            })
        })
    }

    /// Reserves the latest warm slice for a number of ranks that is `fit`, if there is one.
    pub fn reserve_warm(&mut self, fit: impl Fn(u32) -> bool) -> Option<Reserved> {
        let at = self.warm.iter().rposition(|held| fit(held.slice.plan().ranks()))?;
        let held = self.warm.remove(at);
        self.hold(held)
    }

    fn take_large(&mut self, plan: &Plan) -> Option<Reserved> {
        if self.used() < self.room.total() / 2 { self.take(plan) } else { None }
    }

    fn take(&mut self, plan: &Plan) -> Option<Reserved> {
        let offset = self.room.take(plan.bytes())?;
        let slice = Slice::new(Arc::clone(&self.map), offset, *plan)?;
        self.hold(Held { slice, term: self.first })
    }

    fn hold(&mut self, held: Held) -> Option<Reserved> {
        let (offset, small, term) = (held.slice.offset(), held.slice.plan().is_small(), held.term);
        self.reserved.push(held);
        Some(Reserved { offset, small, free: self.room.total() - self.used(), term })
    }

    /// Takes a range of `most` bytes, or the longest that is there: its offset and length, until [`Self::cut`].
    pub fn take_most(&mut self, most: u64, gone: &mut dyn FnMut(World) -> bool) -> (u64, u64) {
        if self.room.longest() < most {
            self.collect(usize::MAX, gone);
            self.chill();
        }
        let len = self.room.longest().min(most);
        self.room.take(len).map_or((0, 0), |offset| (offset, len))
    }

    /// Reserves the beginning of a range that was taken for a slice of this plan, and gives the rest back; all, if there is none.
    pub fn cut(&mut self, (offset, len): (u64, u64), plan: Option<&Plan>) -> Option<Reserved> {
        let plan = plan.filter(|plan| plan.bytes() <= len);
        let kept = plan.map_or(0, Plan::bytes);
        self.room.give(offset + kept, len - kept);
        let slice = Slice::new(Arc::clone(&self.map), offset, *plan?)?;
        self.hold(Held { slice, term: self.first })
    }

    /// What was reserved at `offset`, which is so no longer.
    fn unreserve(&mut self, offset: u64) -> Option<Held> {
        let at = self.reserved.iter().position(|held| held.slice.offset() == offset)?;
        Some(self.reserved.swap_remove(at))
    }

    /// The slice that is reserved at `offset`, if one is.
    pub fn reserved(&self, offset: u64) -> Option<&Slice> {
        self.reserved.iter().map(|held| &held.slice).find(|slice| slice.offset() == offset)
    }

    /// The offer at `offset` was not taken: its slice, which nobody has touched, is as it was.
    pub fn give_up(&mut self, offset: u64) {
        if let Some(held) = self.unreserve(offset) {
            if held.term == self.first {
                self.room.give(offset, held.slice.plan().bytes());
            } else {
                self.warm.push(held);
            }
        }
    }

    /// The offer at `offset` was taken: its slice is leased until all ranks have left, or their processes, if they are
    /// known, are gone.
    pub fn lease(&mut self, offset: u64, members: Arc<[World]>) {
        if let Some(held) = self.unreserve(offset) {
            self.leased.push_back(Leased { held, members, present: 0, orphaned: false, end: None });
        }
    }

    /// The owner ended its term on the slice at `offset` here: it may stay as it is.
    pub fn end(&mut self, offset: u64, end: Base) {
        if let Some(leased) = self.leased.iter_mut().find(|leased| leased.held.slice.offset() == offset) {
            leased.end = Some(end);
        }
    }

    /// Looks at a few leases.
    pub fn collect_some(&mut self) {
        self.collect(LOOKS, &mut alive);
    }

    /// Looks at leases, at most `looks` of them; retires the slices that all ranks have left.
    pub fn collect(&mut self, looks: usize, gone: &mut dyn FnMut(World) -> bool) {
        for _ in 0..looks.min(self.leased.len()) {
            let Some(mut leased) = self.leased.pop_front() else { break };
            if !leased.is_over(gone) {
                self.leased.push_back(leased);
            } else if let Some(term) = leased.next() {
                self.warm.push(Held { slice: leased.held.slice, term });
            } else {
                self.clear(&leased.held.slice);
            }
        }
    }

    /// Warm slices go back to the room.
    fn chill(&mut self) {
        for held in core::mem::take(&mut self.warm) {
            self.clear(&held.slice);
        }
    }

    fn clear(&mut self, slice: &Slice) {
        let (offset, bytes) = (slice.offset(), slice.plan().bytes());
        if let Err(error) = self.file.punch(offset, bytes) {
            self.refusal.get_or_insert(error);
            slice.clear();
        }
        self.room.give(offset, bytes);
    }
}

#[cfg(test)]
mod tests;
