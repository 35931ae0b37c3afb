//! Long messages in one copy: ranks read each other's memory where it lies.
//!
//! | way | memory | how it is read |
//! |---|---|---|
//! | 1 | any memory of the lender | by `process_vm_readv`, which Linux has since version 3.2 |
//! | 2 | blocks of the lender's [heap](crate::heap::Heap) | directly: the reader maps it when it is lent something there first |
//! | a window's number | the lender's part of that [window](Windows) of an MPI | directly: the MPI has mapped it |
//!
//! The kernel may forbid way 1: between users, under Yama's `ptrace_scope`, in containers without CAP_SYS_PTRACE, by
//! seccomp. Nothing is probed in advance: the first read of a message shows it, and the message goes through the segment
//! then (the kernel's `shm::engine::loans`). A rank that could not read another one's memory does not try that again, and
//! says so once; and a rank whose loans were refused lends more and more rarely.

mod measured;
mod turns;
mod windows;

pub use measured::{Cell, Measured, cache, clearly, read, stands_for};
pub use windows::{Part, Windows};

use crate::error::PosixError;
use crate::heap::{self, Heap, Place};
use crate::pages::{self, Pages};
use crate::sealed::{Map, Sealed};
use crate::sys;
use core::cell::LazyCell;
use core::fmt;
use core::num::NonZeroU64;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use turns::Turns;
use unisono_kernel::Rank;
use unisono_kernel::collective::Kind;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::region::{Counter, Loan, Unreadable, Word};

/// Says from how many bytes on a message is lent.
pub const VARIABLE: &str = "UNISONO_SINGLE_COPY";

/// A loan at its address in the lender's memory.
const ADDRESS: NonZeroU64 = NonZeroU64::MIN;
/// A loan at its offset in the lender's heap.
const HEAP: NonZeroU64 = NonZeroU64::MIN.saturating_add(1);

/// Bytes of the shortest message that is lent in a heap (docs/explanation/parameters.md).
pub const LEAST: usize = 1536;

/// The same where ranks share cores: a lender that waits for its readers there gives its core away first.
pub const CROWDED_LEAST: usize = 64 << 10;

/// Where nothing was measured, or ranks share cores: a scatter's blocks that are lent, in bytes, and the number of ranks from which on they
/// are, if each has a core. Where ranks share cores, so are an alltoall's.
const SCATTERED: usize = 128 << 10;
const MANY: usize = 8;

/// Lengths of messages, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// The shortest.
    pub from: usize,
    /// All are shorter than this; `usize::MAX`: there is no longest.
    pub below: usize,
}

impl Lengths {
    const NONE: Self = Self { from: usize::MAX, below: usize::MAX };

    /// Is this one of them?
    #[inline]
    pub const fn contains(self, bytes: usize) -> bool {
        self.from <= bytes && bytes < self.below
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, below } = self;
        if *below == usize::MAX { write!(f, "from {from} B on") } else { write!(f, "from {from} B to below {below}") }
    }
}

/// Lengths of messages of each kind of collective, in buffers that are used again and again (*warm*: the caches may hold them) and
/// in others (*cold*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByKind {
    warm: [Lengths; KINDS],
    cold: [Lengths; KINDS],
}

/// More than the highest number of a kind.
const KINDS: usize = 16;

impl ByKind {
    /// None of any kind.
    pub const NONE: Self = Self { warm: [Lengths::NONE; KINDS], cold: [Lengths::NONE; KINDS] };

    /// The same, but messages of this kind of collective, in `warm` buffers or in others, of these lengths.
    #[must_use]
    pub const fn and(mut self, kind: Kind, warm: bool, lengths: Lengths) -> Self {
        let all = if warm { &mut self.warm } else { &mut self.cold };
        all[kind as usize] = lengths;
        self
    }

    /// Is a message of so many bytes one of them? Whether its buffer is `warm` is asked only if it matters.
    fn has(&self, kind: Kind, bytes: usize, warm: impl FnOnce() -> bool) -> bool {
        let has = |warm| self.lengths(kind, warm).is_some_and(|lengths| lengths.contains(bytes));
        match [has(true), has(false)] {
            [false, false] => false,
            [used, _] if warm() => used,
            [_, others] => others,
        }
    }

    /// The shortest length of any kind.
    fn shortest(&self) -> usize {
        self.warm.iter().chain(&self.cold).map(|lengths| lengths.from).min().unwrap_or(usize::MAX)
    }

    /// The lengths of this kind, in a `warm` buffer or another; `None`: there are none.
    pub fn lengths(&self, kind: Kind, warm: bool) -> Option<Lengths> {
        let all = if warm { &self.warm } else { &self.cold };
        all.get(kind as usize).copied().filter(|lengths| lengths.from < usize::MAX)
    }
}

/// Which messages of a communicator are lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// Those in ordinary memory that are.
    pub ordinary: ByKind,
    /// Those in the heap that are not, though they could be read where they lie: two cores that copy are faster.
    pub posted: ByKind,
}

impl Lent {
    /// These in ordinary memory, and all in the heap.
    const fn and_heap(ordinary: ByKind) -> Self {
        Self { ordinary, posted: ByKind::NONE }
    }
}

/// The same, for communicators of few ranks and of many: where many read one rank's memory at once, each reader's core does a part
/// of what the one core would copy alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LendFrom {
    few: Lent,
    many: Lent,
    /// So many ranks are many.
    bound: usize,
    /// The user says so; else it holds for ranks with a core each.
    asked: bool,
}

impl LendFrom {
    /// No message is lent.
    pub const OFF: Self = Self::asked(ByKind::NONE);

    /// From `bytes` on.
    pub const fn bytes(bytes: usize) -> Self {
        let lengths = [Lengths { from: bytes, below: usize::MAX }; KINDS];
        Self::asked(ByKind { warm: lengths, cold: lengths })
    }

    const fn asked(all: ByKind) -> Self {
        let all = Lent::and_heap(all);
        Self { few: all, many: all, bound: usize::MAX, asked: true }
    }

    /// As was measured among few ranks with a core each, and among many: `bound` and more.
    pub const fn measured(few: Lent, many: Lent, bound: usize) -> Self {
        Self { few, many, bound, asked: false }
    }

    /// Are so many ranks many?
    pub const fn is_many(&self, ranks: usize) -> bool {
        ranks >= self.bound
    }

    /// Those of a communicator.
    pub const fn among(&self, ranks: usize, crowded: bool) -> Lent {
        if crowded && !self.asked {
            Lent::and_heap(Self::CROWDED)
        } else if self.is_many(ranks) {
            self.many
        } else {
            self.few
        }
    }

    const LONG: Lengths = Lengths { from: SCATTERED, below: usize::MAX };
    /// Of 3 MB some machines copy faster twice.
    const EXCHANGED: Lengths = Lengths { from: SCATTERED, below: 2 << 20 };

    /// Where ranks share cores: a lender waits until its readers have had their turns, which costs more than its copy does; but the root of a
    /// scatter would copy all blocks by itself, and in an alltoall all read as much as they lend
    /// (docs/explanation/decisions.md, 99).
    const CROWDED: ByKind = ByKind::NONE
        .and(Kind::Scatter, true, Self::LONG)
        .and(Kind::Alltoall, true, Self::EXCHANGED)
        .and(Kind::Alltoall, false, Self::EXCHANGED);

    /// Where nothing was measured: long scatters among many alone, for the same reason (69).
    pub const UNMEASURED: Self = {
        let many = ByKind::NONE.and(Kind::Scatter, true, Self::LONG).and(Kind::Scatter, false, Self::LONG);
        Self::measured(Lent::and_heap(ByKind::NONE), Lent::and_heap(many), MANY)
    };

    /// What the [variable](VARIABLE) says: a number of bytes, `off`, or `auto`, which is the default: what was
    /// [measured](Measured) on this machine, and [this](Self::UNMEASURED) where nothing was.
    ///
    /// # Errors
    /// It says something else.
    pub fn setting() -> Result<Self, PosixError> {
        let read = |value: &str| match value {
            "auto" => Some(None),
            "off" => Some(Some(Self::OFF)),
            bytes => Some(Some(Self::bytes(bytes.parse().ok().filter(|bytes| *bytes > 0)?))),
        };
        let asked = sys::setting(VARIABLE, "auto, off, or a number of bytes above 0", read)?.flatten();
        Ok(asked.unwrap_or_else(|| Measured::here().map_or(Self::UNMEASURED, |measured| measured.lends())))
    }
}

/// Has this process said that it can't read another one's memory? It says so once, for all its communicators. It
/// orders nothing.
static SAID: AtomicBool = AtomicBool::new(false);

/// Where a line is printed that says what the system refused.
pub type Log = fn(fmt::Arguments<'_>);

/// How the memory of one process is reached from this one.
#[derive(Debug)]
pub struct Peer {
    /// Its process number; 0: it is in another PID namespace.
    number: u32,
    heap: Option<Place>,
    /// The map of its heap, made when it is needed first; `None`: it can't be mapped.
    map: OnceLock<Option<Map>>,
    /// A read of its memory has failed: this process does not try again.
    fails: AtomicBool,
}

impl Peer {
    /// A process: its number, or 0 if it is in another PID namespace, and its heap.
    pub const fn new(number: u32, heap: Option<Place>) -> Self {
        Self { number, heap, map: OnceLock::new(), fails: AtomicBool::new(false) }
    }

    fn map(&self) -> Option<&Map> {
        let open = || {
            let Place { handle, bytes, kind } = self.heap?;
            // A page of the pool that its owner has given back may end this process: only who asks for such pages reads them.
            let asked = || heap::made().is_some_and(|heap| heap.asked() == Pages::Huge);
            if kind == pages::Kind::Hugetlb && !asked() {
                return None;
            }
            let map = Sealed::open_to_read(&handle, bytes, kind).ok()?;
            map.keep_from_children().ok().map(|()| map)
        };
        self.map.get_or_init(open).as_ref()
    }
}

/// How many messages a process has lent, in all its communicators.
#[derive(Debug, Default)]
pub struct Tally {
    /// All readers took them where they lay.
    pub taken: Word,
    /// A reader could not: they went through the segment.
    pub refused: Word,
}

/// Where the last few messages lay that were long enough to be lent. A message that lies there, too, is probably in the caches
/// of those who have written and read it: a program that has few buffers uses them again and again.
#[derive(Debug, Default)]
struct Recent {
    at: [AtomicUsize; 4],
    next: AtomicUsize,
}

impl Recent {
    /// Was one of the last messages there? If not, it is from now on.
    fn has(&self, address: usize) -> bool {
        if self.at.iter().any(|at| at.load(Relaxed) == address) {
            return true;
        }
        let next = self.next.load(Relaxed);
        self.next.store(next.wrapping_add(1), Relaxed);
        if let Some(at) = self.at.get(next % self.at.len()) {
            at.store(address, Relaxed);
        }
        false
    }
}

/// The loans among the members of one communicator. Its atomics are this process's own notes: relaxed, since they order
/// nothing.
#[derive(Debug)]
pub struct Lenders {
    /// The members, by rank.
    peers: Box<[Arc<Peer>]>,
    /// This process's heap.
    heap: Option<&'static Heap>,
    /// The windows that an MPI has mapped into this process.
    windows: Option<Arc<Windows>>,
    /// Bytes of the shortest message that is lent in the heap or a window.
    least: usize,
    /// Bytes of the shortest message that is lent at all, in memory of any kind that this process has.
    shortest: usize,
    lent: Lent,
    recent: Recent,
    log: Option<Log>,
    tally: Option<Arc<Tally>>,
    /// Loans in a row that were refused.
    refused: AtomicU32,
    /// Messages that are not lent before the next one is.
    pause: AtomicU32,
    /// `None`: ranks share cores, where who waits takes another one's time.
    turns: Option<Turns>,
}

impl Lenders {
    /// Of these members, by rank; `heap` is this process's. `log` prints a line when memory can't be read. `crowded`: ranks
    /// share cores.
    pub fn new(
        peers: Box<[Arc<Peer>]>,
        heap: Option<&'static Heap>,
        from: LendFrom,
        crowded: bool,
        log: Option<Log>,
    ) -> Self {
        let (refused, pause) = (AtomicU32::new(0), AtomicU32::new(0));
        let least = if crowded { CROWDED_LEAST } else { LEAST };
        let lent = from.among(peers.len(), crowded);
        let shortest = lent.ordinary.shortest().min(if heap.is_some() { least } else { usize::MAX });
        let (recent, turns) = (Recent::default(), (!crowded).then(Turns::new));
        Self { peers, heap, windows: None, least, shortest, lent, recent, log, tally: None, refused, pause, turns }
    }

    /// The same, whose loans are counted.
    #[must_use]
    pub fn counted(self, tally: Arc<Tally>) -> Self {
        Self { tally: Some(tally), ..self }
    }

    /// The same, which lend what lies in windows, too.
    #[must_use]
    pub fn with_windows(self, windows: Arc<Windows>) -> Self {
        Self { windows: Some(windows), shortest: self.shortest.min(self.least), ..self }
    }

    /// May a message be lent that may be refused? Each refusal makes such loans rarer.
    fn dares(&self) -> bool {
        let pause = self.pause.load(Relaxed);
        self.pause.store(pause.saturating_sub(1), Relaxed);
        pause == 0
    }
}

// SAFETY: `read` calls `process_vm_readv`, which copies to `dst` from memory of the process that is known as the lender, or
// copies from its part of a window, within it.
// `mapped` checks the loan against the lender's map, whose file can't become shorter, and which lives as long as this does:
// a region with these lenders holds them.
unsafe impl unisono_shm::Lenders for Lenders {
    fn lend(&self, memory: Buf, kind: Kind) -> Option<Loan> {
        if memory.len() < self.shortest {
            return None;
        }
        // The message for one reader.
        let readers = if matches!(kind, Kind::Scatter | Kind::Alltoall) { self.peers.len().max(1) } else { 1 };
        let message = memory.len().div_ceil(readers);
        // Asked once: who asks is noted down, and is found then.
        let warm = LazyCell::new(|| self.recent.has(memory.ptr().addr()));
        if memory.len() >= self.least
            && !self.lent.posted.has(kind, message, || *warm)
            && let Some(offset) = self.heap.and_then(|heap| heap.offset_of(memory.ptr(), memory.len()))
        {
            return Some(Loan { way: HEAP, at: offset });
        }
        if memory.len() >= self.least
            && let Some(loan) = self.windows.as_deref().and_then(|windows| windows.lend(memory))
        {
            return self.dares().then_some(loan);
        }
        let lends = self.lent.ordinary.has(kind, message, || *warm);
        let way = || match &self.turns {
            Some(turns) if kind == Kind::Scatter => turns.lend(readers - 1, ADDRESS),
            _ => ADDRESS,
        };
        (lends && self.dares()).then(|| Loan { way: way(), at: memory.ptr().expose_provenance() as u64 })
    }

    fn answered(&self, accepted: bool) {
        if let Some(Tally { taken, refused }) = self.tally.as_deref() {
            if accepted { taken } else { refused }.fetch_add(1);
        }
        if let Some(turns) = &self.turns {
            turns.returned();
        }
        let refused = if accepted { 0 } else { self.refused.load(Relaxed).saturating_add(1) };
        self.refused.store(refused, Relaxed);
        self.pause.store((1 << refused.min(12)) - 1, Relaxed);
    }

    fn borrows(&self) -> bool {
        true
    }

    fn await_turn(&self, loan: Loan, turn: u32, bytes: u64) {
        if let Some(gap) = turns::gap(loan.way, ADDRESS) {
            turns::wait(gap, turn.min(self.peers.len() as u32), bytes);
        }
    }

    fn mapped(&self, lender: Rank, loan: Loan, from: u64, len: usize) -> Option<NonNull<u8>> {
        let map = self.peers.get(lender as usize).filter(|_| loan.way == HEAP)?.map()?;
        let offset = loan.at.checked_add(from)?;
        let inside = offset.checked_add(len as u64)? <= map.bytes();
        NonNull::new(map.base().wrapping_add(offset as usize)).filter(|_| inside)
    }

    unsafe fn read(&self, lender: Rank, loan: Loan, from: u64, dst: Buf) -> Result<(), Unreadable> {
        let peer =
            self.peers.get(lender as usize).filter(|peer| peer.number > 0).ok_or(Unreadable { changed: false })?;
        let process = peer.number;
        if Windows::is_way(loan.way) {
            let windows = self.windows.as_deref().ok_or(Unreadable { changed: false })?;
            // SAFETY: the caller's promise.
            return unsafe { windows.copy(process, loan, from, dst) }.ok_or(Unreadable { changed: false });
        }
        if turns::gap(loan.way, ADDRESS).is_none() || peer.fails.load(Relaxed) {
            return Err(Unreadable { changed: false });
        }
        let mut done = 0;
        while done < dst.len() {
            let at = loan.at.wrapping_add(from).wrapping_add(done as u64);
            // SAFETY: the rest of `dst`, by the caller's promise.
            match unsafe { sys::read_process(process, at, dst.ptr().wrapping_add(done), dst.len() - done) } {
                Ok(read @ 1..) => done += read,
                refused => {
                    peer.fails.store(true, Relaxed);
                    // Of a process that has ended other lines tell.
                    let ended = refused.as_ref().is_err_and(sys::is_no_process);
                    if !ended
                        && let Some(log) = self.log
                        && !SAID.swap(true, Relaxed)
                    {
                        let why = refused.err().map_or_else(|| "the memory ends".into(), |error| error.to_string());
                        log(format_args!(
                            "process {process}'s memory can't be read ({why}): messages go through the segment"
                        ));
                    }
                    return Err(Unreadable { changed: false });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
