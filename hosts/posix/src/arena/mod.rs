//! A process's arena: a range of a sealed file in memory, mapped once, of which communicators lease slices.
//!
//! The arenas of processes that join together lie in one file (`all.rs`), so that each process opens and maps one file, however
//! many there are. A process that makes an arena by itself has a file for it ([`Arena::create`]). Offsets are those in the file.
//!
//! Its pages exist once they are touched. Only the owner allocates; which slices it has given out is private to it.
//! A slice is reserved when it is offered to a new communicator, leased when the offer was accepted, and retired when
//! all ranks have left. The owner looks at a few leases whenever it releases one, and at all of them when memory is
//! short. An offer looks at no lease as long as there is memory, because a new communicator waits for it.
//!
//! A retired slice is kept unchanged (*warm*) for the next communicator with the same number of ranks, if all ranks
//! left it with the same counts ([`unisono_kernel::region::lease`]) and the owner recorded these counts
//! ([`Arena::end`]), and if its members run on the same NUMA nodes, since its pages lie there. Otherwise its pages go back to
//! the system; so do those of warm slices when memory is short.
//!
//! ```text
//! room -> reserved -> leased -> room, with zeros in it
//!            ^           |
//!            '-- warm <--'
//! ```

mod all;
mod room;
mod slice;

pub(crate) use all::Arenas;
pub use room::Room;
pub use slice::{Plan, Queues, Slice, page};

use crate::error::PosixError;
use crate::sealed::{Handle, Map, Sealed};
use std::collections::VecDeque;
use std::sync::Arc;
use unisono_kernel::Rank;
use unisono_kernel::region::{Base, Term};

/// Leases that one release looks at. More than one, so that finished leases do not pile up.
const LOOKS: usize = 8;

/// Default size of an arena in bytes.
pub const DEFAULT: u64 = 512 << 20;

/// Environment variable: the size of a process's arena.
pub const VARIABLE: &str = "UNISONO_ARENA";

/// The size of an arena that the environment sets, or the default.
///
/// # Errors
/// The variable is not a number of bytes.
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

/// A process, by its rank in the communicator of all processes of the job.
pub type WorldRank = u32;

/// For `gone`: no process is known to have ended.
pub fn alive(_: WorldRank) -> bool {
    false
}

/// A slice, and the term that it is reserved, leased or kept for.
#[derive(Debug)]
struct Held {
    slice: Slice,
    term: Term,
    /// Where its pages lie, for a warm one: the [digest](crate::placement::digest) of its members' nodes.
    nodes: u32,
}

/// A slice that was offered and accepted.
#[derive(Debug)]
struct Leased {
    held: Held,
    /// The processes of its ranks; empty if their deaths can't be seen.
    members: Arc<[WorldRank]>,
    /// All ranks below this one have left, or their processes have ended.
    present: Rank,
    /// Some processes have ended without leaving.
    orphaned: bool,
    /// The owner's counts at its end.
    end: Option<Base>,
}

impl Leased {
    /// Has every rank left, or its process ended?
    fn is_over(&mut self, gone: &mut dyn FnMut(WorldRank) -> bool) -> bool {
        while let Some(rank) = self.held.slice.first_present(self.held.term.epoch, self.present) {
            self.present = rank;
            if !self.members.get(rank as usize).is_some_and(|&member| gone(member)) {
                return false;
            }
            (self.present, self.orphaned) = (rank + 1, true);
        }
        true
    }

    /// The term after this one, if the slice can be kept unchanged.
    fn next(&self) -> Option<Term> {
        let (Held { slice, term, .. }, end) = (&self.held, self.end?);
        if self.orphaned || !slice.ended_alike(term.epoch, end) { None } else { term.next(end) }
    }
}

/// The arena of this process.
#[derive(Debug)]
pub struct Arena {
    file: Sealed,
    handle: Handle,
    map: Arc<Map>,
    /// Its bytes in the file, the head included.
    span: Range,
    room: Room,
    /// Slices that are offered, and neither accepted nor given up yet.
    reserved: Vec<Held>,
    /// The one to look at next is first.
    leased: VecDeque<Leased>,
    /// The one that was used last is last.
    warm: Vec<Held>,
    /// The first term on zeroed memory.
    first: Term,
    /// The queues of slices while there is room for them.
    queues: Queues,
    refusal: Option<PosixError>,
}

/// A range of bytes of an arena's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Its offset in the file.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
}

/// A slice that was reserved for an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Its offset in the arena's file.
    pub offset: u64,
    /// Its queues.
    pub queues: Queues,
    /// Bytes of the arena that are still free.
    pub free: u64,
    /// The term that starts on it.
    pub term: Term,
}

impl Arena {
    /// Makes an arena of `bytes` bytes, rounded down to whole pages, after a head of `head` bytes that are not for
    /// communicators.
    ///
    /// # Errors
    /// The system calls' errors.
    pub fn create(head: u64, bytes: u64) -> Result<Self, PosixError> {
        let (head, total) = (head.next_multiple_of(page()), bytes - bytes % page());
        let len = head.saturating_add(total);
        let file = Sealed::create(len)?;
        let map = file.map()?;
        map.keep_from_children()?;
        Self::within(file, Arc::new(map), Range { offset: 0, len }, head)
    }

    /// The arena in this range of a mapped file, which consists of whole pages; so does its head.
    ///
    /// # Errors
    /// The system calls' errors.
    pub(crate) fn within(file: Sealed, map: Arc<Map>, span: Range, head: u64) -> Result<Self, PosixError> {
        let (handle, room) = (file.handle()?, Room::new(span.offset + head, span.len - head));
        let (reserved, leased, warm) = (Vec::new(), VecDeque::new(), Vec::new());
        let (first, queues) = (Term::FIRST, Queues::Large);
        Ok(Self { file, handle, map, span, room, reserved, leased, warm, first, queues, refusal: None })
    }

    /// The same, where slices have these queues while there is room for them.
    #[must_use]
    pub fn with_queues(self, queues: Queues) -> Self {
        Self { queues, ..self }
    }

    /// For checks: communicators on zeroed memory start with these counts. Their central barriers' counter is zeroed
    /// memory too, so the count of central barriers is zero.
    #[must_use]
    pub fn beginning(self, base: Base) -> Self {
        Self { first: Term { base: Base { centrals: 0, ..base }, ..Term::FIRST }, ..self }
    }

    /// The first term on zeroed memory.
    pub const fn first(&self) -> Term {
        self.first
    }

    /// The queues of slices while there is room for them.
    pub const fn queues(&self) -> Queues {
        self.queues
    }

    /// How other processes find its file.
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

    /// Bytes of those of its pages that exist; 0 if the system does not say.
    pub fn touched(&self) -> u64 {
        self.file.touched_in(self.span.offset, self.span.len)
    }

    /// Its bytes for communicators. Warm slices do not count as free there.
    pub const fn room(&self) -> &Room {
        &self.room
    }

    /// Bytes that are reserved or leased.
    pub fn used(&self) -> u64 {
        self.room.used() - self.warm.iter().map(|held| held.slice.plan().bytes()).sum::<u64>()
    }

    /// Number of warm slices.
    pub fn warm(&self) -> usize {
        self.warm.len()
    }

    /// The first error of the system when memory was given back, since the last call of this function. Such a slice was
    /// overwritten with zeros instead.
    pub const fn take_refusal(&mut self) -> Option<PosixError> {
        self.refusal.take()
    }

    /// Reserves a slice for `ranks` ranks on these nodes: a warm one, else one with [these queues](Self::queues), else (if half of the
    /// arena is in use, or such a slice does not fit) one with small slots. `None`: the arena is full. When memory is short, `gone` is
    /// asked whether processes that have leases have ended.
    pub fn reserve(&mut self, ranks: u32, nodes: u32, gone: &mut dyn FnMut(WorldRank) -> bool) -> Option<Reserved> {
        let (large, small) = (Plan::new(ranks, self.queues)?, Plan::new(ranks, Queues::Small)?);
        let first = self.reserve_warm(|of, at| (of, at) == (ranks, nodes)).or_else(|| self.take_large(&large));
        first.or_else(|| {
            self.collect(usize::MAX, gone);
            let now = self.reserve_warm(|of, at| (of, at) == (ranks, nodes)).or_else(|| self.take_large(&large));
            now.or_else(|| {
                self.clear_warm();
                self.take_large(&large).or_else(|| self.take(&small))
            })
        })
    }

    /// Reserves the warm slice that was used last among those whose number of ranks and nodes pass `fit`, if there is one.
    pub fn reserve_warm(&mut self, fit: impl Fn(u32, u32) -> bool) -> Option<Reserved> {
        let at = self.warm.iter().rposition(|held| fit(held.slice.plan().ranks(), held.nodes))?;
        let held = self.warm.remove(at);
        self.hold(held)
    }

    fn take_large(&mut self, plan: &Plan) -> Option<Reserved> {
        if self.used() < self.room.total() / 2 { self.take(plan) } else { None }
    }

    fn take(&mut self, plan: &Plan) -> Option<Reserved> {
        let offset = self.room.take(plan.bytes())?;
        let slice = Slice::new(Arc::clone(&self.map), offset, *plan)?;
        self.hold(Held { slice, term: self.first, nodes: 0 })
    }

    fn hold(&mut self, held: Held) -> Option<Reserved> {
        let (offset, queues, term) = (held.slice.offset(), held.slice.plan().queues(), held.term);
        self.reserved.push(held);
        Some(Reserved { offset, queues, free: self.room.total() - self.used(), term })
    }

    /// Takes a range of `most` bytes, or the longest free one, until [`Self::cut`].
    pub fn take_most(&mut self, most: u64, gone: &mut dyn FnMut(WorldRank) -> bool) -> Range {
        if self.room.longest() < most {
            self.collect(usize::MAX, gone);
            self.clear_warm();
        }
        let len = self.room.longest().min(most);
        self.room.take(len).map_or_else(Range::default, |offset| Range { offset, len })
    }

    /// Reserves a slice of this plan at the start of a range that [`Self::take_most`] returned, and frees the rest;
    /// without a plan, or if it does not fit, frees the whole range.
    pub fn cut(&mut self, Range { offset, len }: Range, plan: Option<&Plan>) -> Option<Reserved> {
        let plan = plan.filter(|plan| plan.bytes() <= len);
        let kept = plan.map_or(0, Plan::bytes);
        self.room.give(offset + kept, len - kept);
        let slice = Slice::new(Arc::clone(&self.map), offset, *plan?)?;
        self.hold(Held { slice, term: self.first, nodes: 0 })
    }

    /// Takes the slice at `offset` off the list of reserved ones.
    fn unreserve(&mut self, offset: u64) -> Option<Held> {
        let at = self.reserved.iter().position(|held| held.slice.offset() == offset)?;
        Some(self.reserved.swap_remove(at))
    }

    /// The slice that is reserved at `offset`, if there is one.
    pub fn reserved(&self, offset: u64) -> Option<&Slice> {
        self.reserved.iter().map(|held| &held.slice).find(|slice| slice.offset() == offset)
    }

    /// Where the pages of the slice that is reserved at `offset` lie, if it is a warm one; else 0.
    pub fn nodes(&self, offset: u64) -> u32 {
        self.reserved.iter().find(|held| held.slice.offset() == offset).map_or(0, |held| held.nodes)
    }

    /// The offer at `offset` was not accepted: its slice, which no process has touched, is free or warm again.
    pub fn give_up(&mut self, offset: u64) {
        if let Some(held) = self.unreserve(offset) {
            if held.term == self.first {
                self.room.give(offset, held.slice.plan().bytes());
            } else {
                self.warm.push(held);
            }
        }
    }

    /// The offer at `offset` was accepted: its slice is leased until all ranks have left or their processes (`members`,
    /// by rank; empty if they are not known) have ended. `nodes` says where they run.
    pub fn lease(&mut self, offset: u64, members: Arc<[WorldRank]>, nodes: u32) {
        if let Some(held) = self.unreserve(offset) {
            let held = Held { nodes, ..held };
            self.leased.push_back(Leased { held, members, present: 0, orphaned: false, end: None });
        }
    }

    /// The owner ended its term on the slice at `offset` with these counts: the slice may be kept warm.
    pub fn end(&mut self, offset: u64, end: Base) {
        if let Some(leased) = self.leased.iter_mut().find(|leased| leased.held.slice.offset() == offset) {
            leased.end = Some(end);
        }
    }

    /// As [`Self::collect`], for a few leases.
    pub fn collect_some(&mut self) {
        self.collect(LOOKS, &mut alive);
    }

    /// Looks at up to `looks` leases, and retires the slices that all ranks have left.
    pub fn collect(&mut self, looks: usize, gone: &mut dyn FnMut(WorldRank) -> bool) {
        for _ in 0..looks.min(self.leased.len()) {
            let Some(mut leased) = self.leased.pop_front() else { break };
            if !leased.is_over(gone) {
                self.leased.push_back(leased);
            } else if let Some(term) = leased.next() {
                self.warm.push(Held { term, ..leased.held });
            } else {
                self.clear(&leased.held.slice);
            }
        }
    }

    /// Gives the memory of all warm slices back.
    fn clear_warm(&mut self) {
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
