//! Long messages in one copy: ranks read each other's memory by `process_vm_readv`, which the kernel offers since
//! Linux 3.2.
//!
//! The kernel may forbid it: between users, under Yama's `ptrace_scope`, in containers without CAP_SYS_PTRACE, by seccomp. Nothing
//! is probed in advance: the first read of a message shows it, and the message goes through the segment then
//! (the kernel's `shm::engine::loans`). A rank that could not read once says so without another try, and a rank
//! whose loans were refused lends more and more rarely.

use crate::arena::WorldRank;
use crate::error::PosixError;
use crate::sys;
use core::num::NonZeroU64;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::Arc;
use unisono_kernel::Rank;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::region::{Loan, Unreadable};

/// Says from how many bytes on a message is lent.
pub const VARIABLE: &str = "UNISONO_SINGLE_COPY";

/// How a loan is reached here: at its address in the lender's memory.
const ADDRESS: NonZeroU64 = NonZeroU64::MIN;

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

/// What the ranks of a job know of each other's memory.
#[derive(Debug)]
pub(crate) struct Pids {
    /// Their process numbers, by rank in the job; 0 for a process in another PID namespace.
    numbers: Box<[u32]>,
    from: LendFrom,
}

impl Pids {
    pub(crate) const fn new(numbers: Box<[u32]>, from: LendFrom) -> Self {
        Self { numbers, from }
    }
}

/// The loans among the members of one communicator.
#[derive(Debug)]
pub(crate) struct Lenders {
    processes: Arc<Pids>,
    members: Arc<[WorldRank]>,
    /// A read has failed: this process does not try again.
    fails: AtomicBool,
    /// Loans in a row that were refused.
    refused: AtomicU32,
    /// Messages that are not lent before the next one is.
    pause: AtomicU32,
}

impl Lenders {
    pub(crate) const fn new(processes: Arc<Pids>, members: Arc<[WorldRank]>) -> Self {
        let (fails, refused, pause) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
        Self { processes, members, fails, refused, pause }
    }

    fn process(&self, rank: Rank) -> Option<u32> {
        let member = self.members.get(rank as usize)?;
        self.processes.numbers.get(*member as usize).copied().filter(|number| *number > 0)
    }
}

// SAFETY: `read` calls `process_vm_readv`, which copies to `dst` from memory of the process that is known as the lender.
unsafe impl unisono_shm::Lenders for Lenders {
    fn lend(&self, memory: Buf) -> Option<Loan> {
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
        let refused = if accepted { 0 } else { self.refused.load(Relaxed) + 1 };
        self.refused.store(refused, Relaxed);
        self.pause.store((1 << refused.min(12)) - 1, Relaxed);
    }

    fn borrows(&self) -> bool {
        self.processes.from.0 < usize::MAX && !self.fails.load(Relaxed)
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
