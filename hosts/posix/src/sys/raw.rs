//! Calls that rustix does not have, through libc: memory policies and the nodes of pages, masks of any number of PUs,
//! the page size without reading `/proc`, and whether an inherited number is an open descriptor.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

pub(crate) use libc::{HUGETLBFS_MAGIC, MPOL_BIND, MPOL_PREFERRED};

/// The result of a call that returns −1 for failure.
fn checked<T: Copy + PartialEq + From<i8>>(value: T) -> io::Result<T> {
    if value == T::from(-1) { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// Bytes of a page of this machine.
pub fn page() -> u64 {
    // SAFETY: takes no pointers.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64
}

/// PUs of this machine that are online, at least one.
pub(crate) fn online() -> u32 {
    // SAFETY: takes no pointers.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.clamp(1, u32::MAX.into()) as u32
}

/// Bytes of memory of this machine.
pub(crate) fn memory() -> u64 {
    // SAFETY: takes no pointers.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    (pages.max(0) as u64).saturating_mul(page())
}

/// Where the symbol of this name lies in this process, if a library has it.
pub(crate) fn symbol(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: a string; the result is only an address.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}

/// Registers functions that `fork` calls: before it, and after it in the parent and in the child.
pub(crate) fn at_fork(before: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) -> io::Result<()> {
    // SAFETY: functions that may be called at any time, from any thread.
    match unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) } {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}

/// Maps private memory, which reads as zeros, in place of what is mapped at an address: `usable` or not, so that only
/// nothing else is mapped there. May be called after fork.
///
/// # Safety
/// Nothing uses what is mapped there.
pub(crate) unsafe fn map_private(at: *mut u8, len: u64, usable: bool) -> io::Result<()> {
    let protection = if usable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the caller's promise.
    let mapped = unsafe { libc::mmap(at.cast(), len as usize, protection, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Copies those pages of a range of a file that exist to `to`. May be called after fork.
pub(crate) fn copy_data(file: &File, offset: u64, to: *mut u8, len: u64) -> io::Result<()> {
    let (fd, end) = (file.as_raw_fd(), offset + len);
    let mut from = offset;
    while let Some((mut at, hole)) = next_data(file, from, end)? {
        from = hole;
        while at < hole {
            let here = to.wrapping_add((at - offset) as usize);
            // SAFETY: `to` has `len` bytes that are only the caller's; these are inside.
            let read = unsafe { libc::pread(fd, here.cast(), (hole - at) as usize, at as i64) };
            match checked(read as i64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => at += read as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Bytes of those pages of a range of a file that exist.
///
/// # Errors
/// The system call's.
pub(crate) fn data_bytes(file: &File, offset: u64, len: u64) -> io::Result<u64> {
    let (mut from, mut bytes) = (offset, 0);
    while let Some((data, hole)) = next_data(file, from, offset + len)? {
        (from, bytes) = (hole, bytes + hole - data);
    }
    Ok(bytes)
}

/// The first pages of a file that exist, in a row, from `from` on: where they begin, and where the next hole or `end` is. `None`:
/// there are none before `end`. Calls of several processes do not disturb each other.
fn next_data(file: &File, from: u64, end: u64) -> io::Result<Option<(u64, u64)>> {
    let seek = |from: u64, what| {
        // SAFETY: integers.
        checked(unsafe { libc::lseek(file.as_raw_fd(), from as i64, what) }).map(|at| at as u64)
    };
    match seek(from, libc::SEEK_DATA) {
        Ok(data) if data < end => Ok(Some((data, seek(data, libc::SEEK_HOLE)?.min(end)))),
        Ok(_) => Ok(None),
        // No more data in the file.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Calls `look` with the descriptor of this number, which was inherited from the process that started this one.
///
/// # Errors
/// The descriptor is not open; those of `look`.
pub(crate) fn inherited<A>(fd: RawFd, look: impl FnOnce(BorrowedFd<'_>) -> io::Result<A>) -> io::Result<A> {
    // SAFETY: integer arguments; a number that is not an open descriptor is an error.
    checked(unsafe { libc::fcntl(fd, libc::F_GETFD) })?;
    // SAFETY: open, by the call above, and so not −1; borrowed while `look` runs. No value in this process owns an
    // inherited descriptor, so nothing closes it.
    look(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// The NUMA node of each page, or a negative error number.
///
/// # Errors
/// The kernel has no such call, or forbids it.
pub(crate) fn page_nodes(pages: &[*mut c_void], nodes: &mut [i32]) -> io::Result<()> {
    let count = pages.len().min(nodes.len());
    let (process, flags, to) = (0, 0, std::ptr::null::<i32>());
    // SAFETY: two arrays of `count` elements; without target nodes the call moves nothing.
    let done =
        unsafe { libc::syscall(libc::SYS_move_pages, process, count, pages.as_ptr(), to, nodes.as_mut_ptr(), flags) };
    checked(done).map(drop)
}

/// Sets the memory policy `mode` with one node for `len` mapped bytes; pages that exist already stay where they are.
///
/// # Errors
/// The kernel has no such call, or forbids it; there is no such node.
pub(crate) fn mbind(base: *mut u8, len: u64, mode: i32, node: u32) -> io::Result<()> {
    let mut mask = vec![0u64; node as usize / 64 + 1];
    if let Some(last) = mask.last_mut() {
        *last = 1 << (node % 64);
    }
    // The kernel reads one bit less than this number.
    let bits = mask.len() * 64 + 1;
    let flags = 0;
    // SAFETY: the mask has one word for each 64 of the bits; the range is not accessed.
    checked(unsafe { libc::syscall(libc::SYS_mbind, base, len, mode, mask.as_ptr(), bits, flags) }).map(drop)
}

/// A second map of bytes that are mapped already from a shared file, until it is dropped.
#[derive(Debug)]
pub(crate) struct Alias {
    base: *mut c_void,
    len: usize,
}

impl Alias {
    /// Of `len` bytes from `base` on.
    ///
    /// # Errors
    /// They are not mapped from a shared file; the kernel has no such call.
    ///
    /// # Safety
    /// A map has these bytes, which are whole pages, as long as this call runs.
    pub(crate) unsafe fn of(base: *mut u8, len: u64) -> io::Result<Self> {
        let len = len as usize;
        // SAFETY: by the caller's promise; an old length of 0 leaves the old map as it is.
        let base = unsafe { libc::mremap(base.cast(), 0, len, libc::MREMAP_MAYMOVE) };
        if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { base, len }) }
    }

    /// The address of its first byte.
    pub(crate) const fn base(&self) -> *mut u8 {
        self.base.cast()
    }
}

impl Drop for Alias {
    fn drop(&mut self) {
        // SAFETY: mapped in `of`, and nobody else knows of it.
        unsafe { libc::munmap(self.base, self.len) };
    }
}

/// The memory policy of an address: its mode.
#[cfg(test)]
pub(crate) fn policy_at(address: *mut u8) -> io::Result<i32> {
    let (mut mode, mut mask) = (-1, [0u64; 16]);
    let bits = mask.len() * 64;
    // MPOL_F_ADDR of linux/mempolicy.h.
    let by_address = 1 << 1;
    // SAFETY: an integer and a mask of `bits` bits of ours.
    checked(unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, mask.as_mut_ptr(), bits, address, by_address)
    })?;
    Ok(mode)
}

/// Copies `len` bytes at address `from` of another process to `to`. Returns how many bytes it has copied; fewer if the
/// memory ends.
///
/// # Errors
/// The kernel forbids it, or has no such call; there is no such process, or no memory at this address.
///
/// # Safety
/// `to` has `len` writable bytes, which nothing else accesses.
pub(crate) unsafe fn read_process(process: u32, from: u64, to: *mut u8, len: usize) -> io::Result<usize> {
    let local = libc::iovec { iov_base: to.cast(), iov_len: len };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(from as usize), iov_len: len };
    // SAFETY: one vector of `len` writable bytes, by the caller's promise; the kernel checks the other process's.
    let read = unsafe { libc::process_vm_readv(process as libc::pid_t, &raw const local, 1, &raw const remote, 1, 0) };
    checked(read as i64).map(|read| read as usize)
}

/// The processor and NUMA node on which the caller runs now.
pub(crate) fn here() -> io::Result<(u32, u32)> {
    let (mut pu, mut node) = (0u32, 0u32);
    let unused = std::ptr::null_mut::<c_void>();
    // SAFETY: two words of ours; the third argument is unused.
    checked(unsafe { libc::syscall(libc::SYS_getcpu, &raw mut pu, &raw mut node, unused) })?;
    Ok((pu, node))
}

/// The PUs on which process `pid` (0: the caller) may run, as words of bits.
pub(crate) fn affinity(pid: u32) -> io::Result<Vec<u64>> {
    let mut words = vec![0u64; 16];
    loop {
        let bytes = words.len() * 8;
        // SAFETY: the mask has `bytes` bytes.
        let got = unsafe { libc::syscall(libc::SYS_sched_getaffinity, pid, bytes, words.as_mut_ptr()) };
        match checked(got) {
            // The kernel's mask is longer than ours.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && words.len() < 1 << 12 => {
                words.resize(words.len() * 2, 0);
            }
            Err(error) => return Err(error),
            Ok(_) => return Ok(words),
        }
    }
}

/// Confines the caller to PUs. May be called between fork and exec.
pub(crate) fn set_affinity(words: &[u64]) -> io::Result<()> {
    // SAFETY: the mask's address and bytes.
    checked(unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(words), words.as_ptr()) }).map(drop)
}
