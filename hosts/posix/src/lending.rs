//! Long messages in one copy: ranks read each other's memory where it lies.
//!
//! | way | memory | how it is read |
//! |---|---|---|
//! | 1 | any memory of the lender | by `process_vm_readv`, which Linux has since version 3.2 |
//! | 2 | a part of the lender's [arena](crate::Allocation), which every process of the job has mapped | directly |
//!
//! The kernel may forbid way 1: between users, under Yama's `ptrace_scope`, in containers without CAP_SYS_PTRACE, by
//! seccomp. Nothing is probed in advance: the first read of a message shows it, and the message goes through the segment
//! then (the kernel's `shm::engine::loans`). A rank that could not read once does not try again, and a rank whose
//! loans were refused lends more and more rarely.

use crate::arena::WorldRank;
use crate::error::PosixError;
use crate::sealed::Map;
use crate::sys;
use core::num::NonZeroU64;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::Arc;
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::region::{Loan, Unreadable};

/// Says from how many bytes on a message is lent.
pub const VARIABLE: &str = "UNISONO_SINGLE_COPY";

/// A loan at its address in the lender's memory.
const ADDRESS: NonZeroU64 = NonZeroU64::MIN;
/// A loan at its offset in the lender's arena.
const ARENA: NonZeroU64 = NonZeroU64::MIN.saturating_add(1);

/// Bytes of the shortest message that is lent in an arena; a smaller bound was not tried (docs/explanation/parameters.md).
const LEAST: usize = 4096;

/// The length of messages from which on they are lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LendFrom(usize);

impl LendFrom {
    /// What the [variable](VARIABLE) says: a number of bytes, or `off`.
    ///
    /// # Errors
    /// It says something else.
    pub(crate) fn setting() -> Result<Self, PosixError> {
        let read = |value: &str| match value {
            "off" => Some(usize::MAX),
            bytes => bytes.parse().ok().filter(|bytes| *bytes > 0),
        };
        Ok(Self(sys::setting(VARIABLE, "off, or a number of bytes above 0", read)?.unwrap_or(usize::MAX)))
    }
}

/// How the processes of a job reach each other's memory.
#[derive(Debug)]
pub(crate) struct Reach {
    /// Their process numbers, by rank in the job; 0 for a process in another PID namespace.
    numbers: Box<[u32]>,
    /// Their arenas, by rank in the job.
    arenas: Vec<Arc<Map>>,
    me: WorldRank,
    from: LendFrom,
}

impl Reach {
    pub(crate) const fn new(numbers: Box<[u32]>, arenas: Vec<Arc<Map>>, me: WorldRank, from: LendFrom) -> Self {
        Self { numbers, arenas, me, from }
    }

    /// Where memory lies in this process's arena, if it does.
    fn in_arena(&self, memory: Buf) -> Option<u64> {
        let map = self.arenas.get(self.me as usize)?;
        let offset = (memory.ptr().addr() as u64).checked_sub(map.base().addr() as u64)?;
        (offset.checked_add(memory.len() as u64)? <= map.bytes()).then_some(offset)
    }
}

/// The loans among the members of one communicator. Its atomics are this process's own notes: relaxed, since they order
/// nothing.
#[derive(Debug)]
pub(crate) struct Lenders {
    processes: Arc<Reach>,
    members: Arc<[WorldRank]>,
    /// A read has failed: this process does not try again.
    fails: AtomicBool,
    /// Loans in a row that were refused.
    refused: AtomicU32,
    /// Messages that are not lent before the next one is.
    pause: AtomicU32,
}

impl Lenders {
    pub(crate) const fn new(processes: Arc<Reach>, members: Arc<[WorldRank]>) -> Self {
        let (fails, refused, pause) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
        Self { processes, members, fails, refused, pause }
    }

    fn process(&self, rank: Rank) -> Option<u32> {
        let member = self.members.get(rank as usize)?;
        self.processes.numbers.get(*member as usize).copied().filter(|number| *number > 0)
    }
}

// SAFETY: `read` calls `process_vm_readv`, which copies to `dst` from memory of the process that is known as the lender.
// `mapped` checks the loan against the lender's map, whose file can't become shorter, and which lives as long as this does.
unsafe impl unisono_shm::Lenders for Lenders {
    fn lend(&self, memory: Buf) -> Option<Loan> {
        if memory.len() >= LEAST
            && let Some(offset) = self.processes.in_arena(memory)
        {
            return Some(Loan { way: ARENA, at: offset });
        }
        if memory.len() < self.processes.from.0 {
            return None;
        }
        let pause = self.pause.load(Relaxed);
        if pause > 0 {
            self.pause.store(pause - 1, Relaxed);
            return None;
        }
        Some(Loan { way: ADDRESS, at: memory.ptr().expose_provenance() as u64 })
    }

    fn answered(&self, accepted: bool) {
        let refused = if accepted { 0 } else { self.refused.load(Relaxed).saturating_add(1) };
        self.refused.store(refused, Relaxed);
        self.pause.store((1 << refused.min(12)) - 1, Relaxed);
    }

    fn borrows(&self) -> bool {
        true
    }

    fn mapped(&self, lender: Rank, loan: Loan, from: u64, len: usize) -> Option<NonNull<u8>> {
        let member = self.members.get(lender as usize).filter(|_| loan.way == ARENA)?;
        let map = self.processes.arenas.get(*member as usize)?;
        let offset = loan.at.checked_add(from)?;
        let inside = offset.checked_add(len as u64)? <= map.bytes();
        NonNull::new(map.base().wrapping_add(offset as usize)).filter(|_| inside)
    }

    unsafe fn read(&self, lender: Rank, loan: Loan, from: u64, dst: Buf) -> Result<(), Unreadable> {
        let known = self.process(lender).filter(|_| loan.way == ADDRESS && !self.fails.load(Relaxed));
        let process = known.ok_or(Unreadable { changed: false })?;
        let mut done = 0;
        while done < dst.len() {
            let at = loan.at.wrapping_add(from).wrapping_add(done as u64);
            // SAFETY: the rest of `dst`, by the caller's promise.
            match unsafe { sys::read_process(process, at, dst.ptr().wrapping_add(done), dst.len() - done) } {
                Ok(read @ 1..) => done += read,
                Ok(0) | Err(_) => {
                    self.fails.store(true, Relaxed);
                    return Err(Unreadable { changed: false });
                }
            }
        }
        Ok(())
    }
}
