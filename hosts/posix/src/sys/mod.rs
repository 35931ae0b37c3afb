//! System calls that the standard library does not have, as safe functions. Each returns an `io::Error`; the caller
//! adds what the call was for.
//!
//! The calls are rustix's. Here they get the flags that this crate needs, and are repeated if a signal interrupts them.
//! Calls that rustix does not have are in `raw.rs`, through libc: no other file of this crate calls libc's functions.

mod raw;

pub use raw::page;
#[cfg(test)]
pub(crate) use raw::policy_at;
pub(crate) use raw::{
    Alias, MPOL_BIND, MPOL_PREFERRED, affinity, at_fork, copy_data, data_bytes, here, map_private, mbind, memory,
    online, page_nodes, read_process, set_affinity, symbol,
};

use crate::error::PosixError;
use rustix::event::{PollFd, Timespec};
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::{Errno, FdFlags, retry_on_intr};
use rustix::net::{AddressFamily, SendFlags, sockopt};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Resource, Signal};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The error number of a failed call; EIO for an error without a number.
pub(crate) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())
}

/// Is it the error of a call to a process that has ended?
pub(crate) fn is_no_process(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// The value of an environment variable; `None` if it is not set.
///
/// # Errors
/// `read` returns `None` for the value.
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
    rustix::process::getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Bytes of address space that this process may map.
pub(crate) fn address_limit() -> u64 {
    rustix::process::getrlimit(Resource::As).current.unwrap_or(u64::MAX)
}

/// A pipe, closed on exec: the end to read from, and the end to write to.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}

/// Reads until there are no writers, or an error.
pub(crate) fn read_to_end(from: &OwnedFd) {
    while retry_on_intr(|| rustix::io::read(from, &mut [0; 64])).is_ok_and(|read| read > 0) {}
}

/// An anonymous file in memory, closed on exec, that may be sealed; `huge`: in the pool's pages of 2 MiB.
pub(crate) fn memfd(huge: bool) -> io::Result<File> {
    let huge = if huge { MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB } else { MemfdFlags::empty() };
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | huge;
    Ok(rustix::fs::memfd_create(c"unisono", flags)?.into())
}

/// Opens a file for reading and writing. It does not block if the file is a pipe, and does not adopt a terminal.
pub(crate) fn open(path: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?.into())
}

/// Reads the first bytes of a file, by one call; returns how many.
pub(crate) fn read_start(path: &str, bytes: &mut [u8]) -> io::Result<usize> {
    let file = retry_on_intr(|| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()))?;
    Ok(retry_on_intr(|| rustix::io::read(&file, &mut *bytes))?)
}

/// Does the file lie in the pool of huge pages?
pub(crate) fn is_in_pool(file: &File) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(file)?.f_type as u64 == raw::HUGETLBFS_MAGIC as u64)
}

/// Adds seals.
pub(crate) fn add_seals(file: &File, seals: SealFlags) -> io::Result<()> {
    Ok(rustix::fs::fcntl_add_seals(file, seals)?)
}

/// The seals of a file.
pub(crate) fn seals(file: &File) -> io::Result<SealFlags> {
    Ok(rustix::fs::fcntl_get_seals(file)?)
}

/// Reserves bytes of a file, on the caller's NUMA node.
pub(crate) fn reserve(file: &File, offset: u64, len: u64) -> io::Result<()> {
    allocate(file, FallocateFlags::empty(), offset, len)
}

/// Gives bytes of a file back to the system: they read as zeros afterwards.
pub(crate) fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    allocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)
}

fn allocate(file: &File, mode: FallocateFlags, offset: u64, len: u64) -> io::Result<()> {
    Ok(retry_on_intr(|| rustix::fs::fallocate(file, mode, offset, len))?)
}

/// A descriptor of a process, for `poll`.
///
/// # Errors
/// The system call's; EINVAL for a number that can't be a process.
pub(crate) fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::INVAL)?;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// A copy of another process's descriptor.
///
/// # Errors
/// The system call's; EBADF for a negative number.
pub(crate) fn pidfd_getfd(process: &OwnedFd, fd: RawFd) -> io::Result<OwnedFd> {
    // The number comes from another process, and rustix requires that it is not negative.
    if fd < 0 {
        return Err(Errno::BADF.into());
    }
    Ok(rustix::process::pidfd_getfd(process, fd, PidfdGetfdFlags::empty())?)
}

/// Waits for events on descriptors, `most` at the longest; `None` waits for ever. Returns how many descriptors have
/// events.
///
/// # Errors
/// The system call's; `Interrupted` for a signal.
pub(crate) fn poll(fds: &mut [PollFd<'_>], most: Option<Duration>) -> io::Result<usize> {
    // More seconds than a `Timespec` can hold mean for ever.
    let most = most.and_then(|most| Timespec::try_from(most).ok());
    Ok(rustix::event::poll(fds, most.as_ref())?)
}

/// Sends all bytes. If the peer has closed its end, the result is an error, not a signal.
pub(crate) fn send_all(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let sent = retry_on_intr(|| rustix::net::send(stream, bytes, SendFlags::NOSIGNAL))?;
        bytes = bytes.get(sent..).unwrap_or_default();
    }
    Ok(())
}

/// Sends as many bytes as fit, and returns their number.
pub(crate) fn send(stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(stream, bytes, SendFlags::NOSIGNAL)?)
}

/// Duplicates an inherited descriptor that is a socket, and marks the inherited one to be closed on exec.
pub(crate) fn adopt_socket(fd: RawFd) -> io::Result<UnixStream> {
    raw::inherited(fd, |inherited| {
        if sockopt::socket_domain(inherited)? != AddressFamily::UNIX {
            return Err(Errno::NOTSOCK.into());
        }
        let copy = inherited.try_clone_to_owned()?;
        rustix::io::fcntl_setfd(inherited, FdFlags::CLOEXEC)?;
        Ok(copy.into())
    })
}

/// Keeps a descriptor open across exec. May be called between fork and exec.
pub(crate) fn keep_on_exec(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::fcntl_setfd(fd, FdFlags::empty())?)
}

/// Asks the kernel to kill the caller when the thread that forked it ends. May be called between fork and exec.
pub(crate) fn die_with_parent(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if Pid::as_raw(rustix::process::getppid()).cast_unsigned() == parent {
        Ok(())
    } else {
        // The parent ended before the request was made.
        Err(Errno::SRCH.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number<A: std::fmt::Debug>(result: io::Result<A>) -> Option<i32> {
        result.unwrap_err().raw_os_error()
    }

    #[test]
    fn error_numbers_are_the_kernels() {
        assert_eq!(number(pidfd_open(0)), Some(libc::EINVAL));
        assert_eq!(number(pidfd_open(u32::MAX)), Some(libc::EINVAL));
        let this = pidfd_open(std::process::id()).unwrap();
        assert_eq!(number(pidfd_getfd(&this, -1)), Some(libc::EBADF));
        assert_eq!(number(open("/proc/self/no such file")), Some(libc::ENOENT));
        // A file that takes no seals, and one that takes no more.
        let plain = File::open("/proc/self/status").unwrap();
        assert_eq!(number(seals(&plain)), Some(libc::EINVAL));
        let sealed = memfd(false).unwrap();
        add_seals(&sealed, SealFlags::SEAL).unwrap();
        assert_eq!(number(add_seals(&sealed, SealFlags::GROW)), Some(libc::EPERM));
        assert_eq!(seals(&sealed).unwrap(), SealFlags::SEAL);
        assert_eq!(number(reserve(&plain, 0, 1)), Some(libc::EBADF));
    }

    #[test]
    fn a_socket_whose_peer_is_gone_is_an_error_and_a_full_one_blocks() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let full = std::iter::repeat_with(|| send(&ours, &[0; 4096])).find_map(Result::err).unwrap();
        assert_eq!(full.raw_os_error(), Some(libc::EAGAIN));
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        drop(theirs);
        assert_eq!(number(send(&ours, &[0])), Some(libc::EPIPE));
        assert_eq!(number(send_all(&ours, &[0])), Some(libc::EPIPE));
    }

    #[test]
    fn only_a_socket_is_adopted() {
        use std::os::fd::AsRawFd;
        let (ours, theirs) = UnixStream::pair().unwrap();
        keep_on_exec(&theirs).unwrap();
        let copy = adopt_socket(theirs.as_raw_fd()).unwrap();
        for stream in [&theirs, &copy] {
            assert_eq!(rustix::io::fcntl_getfd(stream).unwrap(), FdFlags::CLOEXEC);
        }
        drop(theirs);
        send_all(&copy, b"x").unwrap();
        assert_eq!(io::Read::read(&mut &ours, &mut [0; 2]).unwrap(), 1);
        let file = File::open("/proc/self/exe").unwrap();
        assert_eq!(number(adopt_socket(file.as_raw_fd())), Some(libc::ENOTSOCK));
        assert_eq!(number(adopt_socket(-1)), Some(libc::EBADF));
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(number(adopt_socket(udp.as_raw_fd())), Some(libc::ENOTSOCK));
    }
}
