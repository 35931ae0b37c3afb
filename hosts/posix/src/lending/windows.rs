//! Windows of an MPI: memory that the MPI has mapped into all processes of a node (`MPI_Win_allocate_shared`). Each process
//! knows at which address of its own a part of each other process lies, so a loan in a part is the window's number and an
//! offset, and nothing needs to be mapped to read it.
//!
//! The program may free a window at any time, also while a corrupt line names it. So a reader copies under a lock, and
//! whoever adds a window [removes](Windows::remove) it before its memory is unmapped.

use core::num::NonZeroU64;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::region::{Counter, Loan, Word};

/// The part of a process in a window.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Part {
    /// The process's number.
    pub process: u64,
    /// Where its first byte lies in this process.
    pub base: *mut u8,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The windows that this process has a part in.
#[derive(Debug, Default)]
pub struct Windows {
    /// How many there are: most programs have none, and take no lock.
    count: Word,
    known: RwLock<Vec<Window>>,
}

#[derive(Debug)]
struct Window {
    number: NonZeroU64,
    parts: Box<[Part]>,
    /// The part of this process.
    own: Part,
}

// SAFETY: addresses of memory that is mapped as long as the window is known; all access is by raw copies.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

/// The bit that tells a window's number from other ways to lend.
const WINDOW: u64 = 1 << 63;

impl Windows {
    /// A number for a new window, which the process that draws it tells the others.
    pub fn number() -> u64 {
        WINDOW | RandomState::new().hash_one(0)
    }

    /// Is it a loan in a window?
    pub const fn is_way(way: NonZeroU64) -> bool {
        way.get() & WINDOW != 0
    }

    /// Adds a window; `rank`: that of this process's part. False, and it is not added, if the number is none of a window, or
    /// is known; if there is no such rank; if a part ends beyond the address space; or if two parts' processes have the same
    /// number, being in different namespaces.
    ///
    /// # Safety
    /// The parts are mapped, and readable, until the window has been removed.
    pub unsafe fn add(&self, number: u64, rank: usize, parts: &[Part]) -> bool {
        let processes: BTreeSet<_> = parts.iter().map(|part| part.process).collect();
        let whole = parts.iter().all(|part| (part.base.addr() as u64).checked_add(part.bytes).is_some());
        let Some((number, own)) = NonZeroU64::new(number).zip(parts.get(rank).copied()) else { return false };
        let mut known = self.write();
        if !Self::is_way(number)
            || !whole
            || processes.len() < parts.len()
            || known.iter().any(|window| window.number == number)
        {
            return false;
        }
        known.push(Window { number, parts: parts.into(), own });
        self.count.store_release(known.len() as u64);
        true
    }

    /// Removes a window, if it is known: its memory is not read any more.
    pub fn remove(&self, number: u64) {
        let mut known = self.write();
        known.retain(|window| window.number.get() != number);
        self.count.store_release(known.len() as u64);
    }

    /// The loan of memory that lies in this process's part of a window.
    pub fn lend(&self, memory: Buf) -> Option<Loan> {
        if Counter::load_acquire(&self.count).is(0) {
            return None;
        }
        let (at, len) = (memory.ptr().addr() as u64, memory.len() as u64);
        let lies = |window: &Window| {
            let at = at.checked_sub(window.own.base.addr() as u64)?;
            let inside = at.checked_add(len)? <= window.own.bytes;
            inside.then_some(Loan { way: window.number, at })
        };
        self.read().iter().find_map(lies)
    }

    /// Copies the bytes from `from` on of what a process has lent to `dst`; `None`, and nothing was copied, if they do not lie
    /// in its part of that window.
    ///
    /// # Safety
    /// `dst` is writable and exclusive.
    pub unsafe fn copy(&self, process: u32, loan: Loan, from: u64, dst: Buf) -> Option<()> {
        let known = self.read();
        let window = known.iter().find(|window| window.number == loan.way)?;
        let part = window.parts.iter().find(|part| part.process == u64::from(process))?;
        let at = loan.at.checked_add(from)?;
        if at.checked_add(dst.len() as u64)? > part.bytes {
            return None;
        }
        // SAFETY: the bytes lie in the part, which is mapped while the lock is held, by the promise of `add`; `dst` by the
        // caller's.
        unsafe { unisono_shm::out_of_shared(part.base.wrapping_add(at as usize), dst.ptr(), dst.len()) };
        Some(())
    }

    /// No code under the lock panics; if it did, the list would still be whole.
    fn read(&self) -> RwLockReadGuard<'_, Vec<Window>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Window>> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(process: u64, memory: &mut [u8]) -> Part {
        Part { process, base: memory.as_mut_ptr(), bytes: memory.len() as u64 }
    }

    #[test]
    fn a_loan_leads_into_its_lenders_part_and_nowhere_else() {
        let (mut mine, mut other) = ([1u8; 100], [2u8; 60]);
        let base = mine.as_mut_ptr();
        let parts = [part(7, &mut other), part(8, &mut mine)];
        let windows = Windows::default();
        let number = Windows::number();
        let inside = |at: usize, len| windows.lend(Buf::new(base.wrapping_add(at), len));
        assert!(inside(0, 1).is_none(), "no window yet");
        // SAFETY: the arrays live longer than the window is known.
        assert!(unsafe { windows.add(number, 1, &parts) });
        assert_eq!(inside(40, 60).map(|loan| (loan.way.get(), loan.at)), Some((number, 40)));
        assert!(inside(40, 61).is_none() && inside(101, 0).is_none() && inside(usize::MAX, 1).is_none());
        assert!(windows.lend(Buf::new(parts[0].base, 1)).is_none(), "another process's part");

        let way = NonZeroU64::new(number).unwrap();
        let copied = |process, way, at, from, len| {
            let mut dst = [0u8; 61];
            // SAFETY: the array is this function's.
            unsafe { windows.copy(process, Loan { way, at }, from, Buf::new(dst.as_mut_ptr(), len)) }
                .map(|()| (dst[0], dst[len - 1], dst[len..].iter().all(|byte| *byte == 0)))
        };
        assert_eq!(copied(7, way, 0, 0, 60), Some((2, 2, true)));
        assert_eq!(copied(7, way, 50, 9, 1), Some((2, 2, true)));
        assert_eq!(copied(8, way, 40, 20, 40), Some((1, 1, true)));
        // What a corrupt line may say.
        for (at, from, len) in [(0, 0, 61), (60, 0, 1), (59, 1, 1), (1, 0, 60), (u64::MAX, 1, 1), (0, u64::MAX, 1)] {
            assert_eq!(copied(7, way, at, from, len), None, "{at} {from} {len}");
        }
        assert_eq!(copied(9, way, 0, 0, 1), None, "a process without a part");
        assert_eq!(copied(7, way.saturating_add(1), 0, 0, 1), None, "no such window");
        windows.remove(number);
        assert_eq!(copied(7, way, 0, 0, 1), None);
        assert!(inside(40, 60).is_none(), "it was removed");
    }

    #[test]
    fn what_can_be_no_window_is_not_added() {
        let (mut mine, mut other) = ([0u8; 8], [0u8; 8]);
        let parts = [part(7, &mut other), part(8, &mut mine)];
        let windows = Windows::default();
        let number = Windows::number();
        // SAFETY: the arrays live longer than the windows.
        let add = |number, rank, parts: &[Part]| unsafe { windows.add(number, rank, parts) };
        assert!(!add(number, 2, &parts) && !add(0, 0, &parts) && !add(2, 0, &parts) && !add(number, 0, &[]));
        assert!(!add(number, 0, &[parts[0], Part { process: 7, ..parts[1] }]), "the same number twice");
        assert!(!add(number, 0, &[Part { bytes: u64::MAX, ..parts[0] }, parts[1]]), "beyond all addresses");
        assert!(add(number, 0, &parts) && !add(number, 0, &parts), "known already");
        assert!(add(Windows::number(), 0, &parts));
        windows.remove(1);
        assert!(windows.lend(Buf::new(parts[0].base, 8)).is_some());
    }
}
