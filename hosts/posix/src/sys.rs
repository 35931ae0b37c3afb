//! System calls that the standard library has not, as safe functions. Each answers `io::Error`;
//! the caller adds what the call was for.

use crate::error::PosixError;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// The answer of a call that says −1 for failure.
fn answer<T: Copy + PartialEq + From<i8>>(value: T) -> io::Result<T> {
    if value == T::from(-1) { Err(io::Error::last_os_error()) } else { Ok(value) }
}

fn own(fd: libc::c_long) -> OwnedFd {
    // SAFETY: the kernel has just answered this descriptor; nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}

/// Bytes of a page of this machine.
pub fn page() -> u64 {
    // SAFETY: takes no pointers.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as u64
}

/// A setting of the environment; `None` where there is none.
///
/// # Errors
/// A value that `read` does not know.
pub(crate) fn setting<V>(
    name: &'static str,
    bound: &'static str,
    read: impl Fn(&str) -> Option<V>,
) -> Result<Option<V>, PosixError> {
    let Some(value) = std::env::var_os(name) else { return Ok(None) };
    let value = value.to_string_lossy().into_owned();
    read(&value).map(Some).ok_or(PosixError::Setting { name, value, bound })
}

/// Bytes of the largest file that this process may make.
pub(crate) fn file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a struct of ours; where the call fails it stays as it is.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    limit.rlim_cur
}

/// An anonymous file in memory, closed on exec, open to seals; `huge`: in the pool's pages of 2 MiB.
pub(crate) fn memfd(huge: bool) -> io::Result<File> {
    let huge = if huge { libc::MFD_HUGETLB | libc::MFD_HUGE_2MB } else { 0 };
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | huge;
    // SAFETY: the name is a string that ends in zero.
    let fd = answer(unsafe { libc::memfd_create(c"unisono".as_ptr(), flags) })?;
    Ok(own(fd.into()).into())
}

/// The number of the file system on which a file lies.
pub(crate) fn file_system(file: &File) -> io::Result<u64> {
    let mut found = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: a struct of ours.
    answer(unsafe { libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) })?;
    // SAFETY: integers, of which zero is one; filled by the call.
    Ok(unsafe { found.assume_init() }.f_type as u64)
}

/// Adds seals.
pub(crate) fn add_seals(file: &File, seals: i32) -> io::Result<()> {
    // SAFETY: an integer argument.
    answer(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }).map(drop)
}

/// The seals of a file.
pub(crate) fn seals(file: &File) -> io::Result<i32> {
    // SAFETY: no argument.
    answer(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) })
}

/// Reserves bytes of a file, on the caller's NUMA node; or what `mode` says.
pub(crate) fn allocate(file: &File, mode: i32, offset: u64, len: u64) -> io::Result<()> {
    loop {
        // SAFETY: integer arguments.
        let done = unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, len as i64) };
        match answer(done) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map(drop),
        }
    }
}

/// A descriptor of a process, for `poll`.
pub(crate) fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: integer arguments.
    answer(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) }).map(own)
}

/// A copy of another process's descriptor.
pub(crate) fn pidfd_getfd(process: &OwnedFd, fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: integer arguments.
    answer(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) }).map(own)
}

/// Waits for events on descriptors; −1 milliseconds waits for ever.
pub(crate) fn poll(fds: &mut [libc::pollfd], milliseconds: i32) -> io::Result<i32> {
    // SAFETY: the slice's address and length.
    answer(unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, milliseconds) })
}

/// The NUMA node of each page, or a negative error number.
///
/// # Errors
/// The kernel has no such call, or forbids it.
pub(crate) fn page_nodes(pages: &[*mut libc::c_void], nodes: &mut [i32]) -> io::Result<()> {
    let count = pages.len().min(nodes.len());
    let (process, flags, to) = (0, 0, std::ptr::null::<i32>());
    // SAFETY: two arrays of `count` elements; without target nodes the call moves nothing.
    let done =
        unsafe { libc::syscall(libc::SYS_move_pages, process, count, pages.as_ptr(), to, nodes.as_mut_ptr(), flags) };
    answer(done).map(drop)
}

/// Sets the memory policy `mode` with one node on `len` mapped bytes; what is there already stays where it is.
///
/// # Errors
/// The kernel has no such call, or forbids it; there is no such node.
pub(crate) fn mbind(base: *mut u8, len: u64, mode: i32, node: u32) -> io::Result<()> {
    let mut mask = vec![0u64; node as usize / 64 + 1];
    if let Some(last) = mask.last_mut() {
        *last = 1 << (node % 64);
    }
    // The kernel reads one bit less than it is told.
    let bits = mask.len() * 64 + 1;
    let flags = 0;
    // SAFETY: the mask has one word for each 64 of the bits; the range is not accessed.
    answer(unsafe { libc::syscall(libc::SYS_mbind, base, len, mode, mask.as_ptr(), bits, flags) }).map(drop)
}

/// The memory policy of an address: its mode.
#[cfg(test)]
pub(crate) fn policy_at(address: *mut u8) -> io::Result<i32> {
    let (mut mode, mut mask) = (-1, [0u64; 16]);
    let bits = mask.len() * 64;
    // MPOL_F_ADDR of linux/mempolicy.h.
    let by_address = 1 << 1;
    // SAFETY: an integer and a mask of `bits` bits of ours.
    answer(unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, mask.as_mut_ptr(), bits, address, by_address)
    })?;
    Ok(mode)
}

/// The processor and NUMA node on which the caller runs now.
pub(crate) fn here() -> io::Result<(u32, u32)> {
    let (mut pu, mut node) = (0u32, 0u32);
    let unused = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: two words of ours; the third argument is unused.
    answer(unsafe { libc::syscall(libc::SYS_getcpu, &raw mut pu, &raw mut node, unused) })?;
    Ok((pu, node))
}

/// The PUs on which process `pid` (0: the caller) may run, as words of bits.
pub(crate) fn affinity(pid: u32) -> io::Result<Vec<u64>> {
    let mut words = vec![0u64; 16];
    loop {
        let bytes = words.len() * 8;
        // SAFETY: the mask has `bytes` bytes.
        let got = unsafe { libc::syscall(libc::SYS_sched_getaffinity, pid, bytes, words.as_mut_ptr()) };
        match answer(got) {
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
    answer(unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(words), words.as_ptr()) }).map(drop)
}

/// Sends all bytes; a peer that is gone is an error, not a signal.
pub(crate) fn send_all(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match send(stream, bytes) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends what fits.
pub(crate) fn send(stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the slice's address and length.
    let sent = unsafe { libc::send(stream.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    answer(sent).map(|sent| sent as usize)
}

/// Duplicates an inherited descriptor that is a socket, and marks the inherited one to be closed on exec.
pub(crate) fn adopt_socket(fd: i32) -> io::Result<UnixStream> {
    let mut kind = 0i32;
    let mut len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: an integer of ours and its length; a number that is no socket is an error.
    answer(unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_DOMAIN, (&raw mut kind).cast(), &raw mut len) })?;
    if kind != libc::AF_UNIX {
        return Err(io::Error::from_raw_os_error(libc::ENOTSOCK));
    }
    // SAFETY: the descriptor is open (the call above); it is borrowed for this line only.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let copy = borrowed.try_clone_to_owned()?;
    // SAFETY: integer arguments.
    answer(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    Ok(copy.into())
}

/// Keeps a descriptor open across exec. May be called between fork and exec.
pub(crate) fn keep_on_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: integer arguments.
    answer(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }).map(drop)
}

/// Has the caller killed when the thread that forked it ends. May be called between fork and exec.
pub(crate) fn die_with_parent(parent: u32) -> io::Result<()> {
    // SAFETY: integer arguments.
    answer(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) })?;
    // SAFETY: takes no pointers.
    if unsafe { libc::getppid() } as u32 == parent {
        Ok(())
    } else {
        // The parent ended before the request was made.
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}
