//! Shared memory without a name: an anonymous, sealed file that others find through its maker's process.
//!
//! Others open it as `/proc/PID/fd/FD`, or by `pidfd_getfd` if that is refused. Because it has no name, the memory is
//! freed when the last process that maps it ends, in whichever way. It is sealed against shrinking, growing and further
//! seals before another process learns of it, so that no peer can take pages away from a reader. Its mode is 0600: only
//! processes of the maker's user may open it.

use crate::error::PosixError;
use crate::pages::Kind;
use crate::sys;
use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fs::SealFlags;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use unisono_kernel::error::{Argument, Bound, Refusal};

/// The seals of a file: against shrinking, growing, and further seals.
pub const SEALS: u32 = FLAGS.bits();
const FLAGS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// How a sealed file is found, for as long as its maker keeps it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The maker's process.
    pub pid: u32,
    /// The descriptor in that process.
    pub fd: i32,
    /// The file system's device.
    pub device: u64,
    /// The file's inode.
    pub inode: u64,
}

/// An anonymous file in memory, sealed; its pages exist once they are touched, and are zero then.
#[derive(Debug)]
pub struct Sealed {
    file: File,
    bytes: u64,
    kind: Kind,
}

impl Sealed {
    /// Makes a file of `bytes` bytes.
    ///
    /// # Errors
    /// The system calls' errors.
    pub fn create(bytes: u64) -> Result<Self, PosixError> {
        Self::create_in(bytes, Kind::Ordinary)
    }

    /// The same, in pages of this kind, of which `bytes` is a multiple.
    ///
    /// # Errors
    /// The system calls' errors. If the pool of huge pages is too small, [`Self::map`] fails, not this call.
    pub fn create_in(bytes: u64, kind: Kind) -> Result<Self, PosixError> {
        // Setting a size above the limit would kill the process by a signal.
        let most = sys::file_limit();
        Refusal::check(Argument::SegmentBytes, bytes, Bound::AtMost(most.min(i64::MAX as u64)))?;
        let file =
            sys::memfd(kind == Kind::Hugetlb).map_err(|e| PosixError::io("memfd_create", &e, "make the segment"))?;
        // A new memfd has mode 0777: processes of every user could open `/proc/PID/fd/FD`.
        file.set_permissions(Permissions::from_mode(0o600))
            .map_err(|e| PosixError::io("fchmod", &e, "close the segment to other users"))?;
        file.set_len(bytes)
            .map_err(|e| PosixError::io("ftruncate", &e, format!("size the segment to {bytes} bytes")))?;
        sys::add_seals(&file, FLAGS).map_err(|e| PosixError::io("fcntl", &e, "seal the segment"))?;
        Ok(Self { file, bytes, kind })
    }

    /// Opens a file that another process has made, after checking that it is the one announced, that it is
    /// sealed, and that it has `bytes` bytes.
    ///
    /// # Errors
    /// What differs from the announced file; the system calls' errors.
    pub fn open(handle: &Handle, bytes: u64) -> Result<Self, PosixError> {
        Self::open_in(handle, bytes, Kind::Ordinary)
    }

    /// The same, of a file that was made in pages of this kind.
    ///
    /// # Errors
    /// As [`Self::open`]; the file lies in other pages.
    pub fn open_in(handle: &Handle, bytes: u64, kind: Kind) -> Result<Self, PosixError> {
        let file = open(handle)?;
        let meta = file.metadata().map_err(|e| PosixError::io("fstat", &e, "look at the segment"))?;
        same("inode", meta.ino(), handle.inode)?;
        same("device", meta.dev(), handle.device)?;
        let seals = sys::seals(&file).map_err(|e| PosixError::io("fcntl", &e, "read the segment's seals"))?;
        same("seals", (seals & FLAGS).bits().into(), SEALS.into())?;
        Refusal::check(Argument::SegmentBytes, meta.len(), Bound::Equals(bytes))?;
        let huge = sys::is_in_pool(&file).map_err(|e| PosixError::io("fstatfs", &e, "look at the segment"))?;
        same("being in huge pages", huge.into(), (kind == Kind::Hugetlb).into())?;
        Ok(Self { file, bytes, kind })
    }

    /// Opens and checks a file that another process has made, as [`Self::open_in`], and maps it to be read, without reserving
    /// pages. The file is closed then.
    ///
    /// # Errors
    /// As [`Self::open_in`] and [`Self::map`].
    pub fn open_to_read(handle: &Handle, bytes: u64, kind: Kind) -> Result<Map, PosixError> {
        let Self { file, .. } = Self::open_in(handle, bytes, kind)?;
        let raw = MmapOptions::new().len(bytes as usize).no_reserve_swap().map_raw_read_only(&file);
        Ok(Map(raw.map_err(|e| PosixError::io("mmap", &e, format!("map {bytes} bytes of another process")))?))
    }

    /// Maps the whole file. The first map reserves all huge pages of the pool that it needs, so that no later access
    /// lacks one.
    ///
    /// # Errors
    /// The system call's.
    pub fn map(&self) -> Result<Map, PosixError> {
        self.map_by(&mut MmapOptions::new())
    }

    /// The same, but no pages of the pool are reserved: one may be touched only after it was [reserved](Self::reserve).
    pub(crate) fn map_unreserved(&self) -> Result<Map, PosixError> {
        self.map_by(MmapOptions::new().no_reserve_swap())
    }

    fn map_by(&self, options: &mut MmapOptions) -> Result<Map, PosixError> {
        let bytes = self.bytes;
        let most = Refusal::new(Argument::SegmentBytes, bytes, Bound::AtMost(isize::MAX as u64));
        let len = usize::try_from(bytes).map_err(|_| most)?;
        let raw = options.len(len).map_raw(&self.file);
        let raw = raw.map_err(|e| PosixError::io("mmap", &e, format!("map the segment's {bytes} bytes")))?;
        if self.kind == Kind::Transparent {
            // If this is refused, the pages are ordinary ones, and `mapped_pages` says so.
            drop(raw.advise(Advice::HugePage));
        }
        Ok(Map(raw))
    }

    /// How other processes find the file while this process keeps it.
    ///
    /// # Errors
    /// The system calls' errors.
    pub fn handle(&self) -> Result<Handle, PosixError> {
        let meta = self.file.metadata().map_err(|e| PosixError::io("fstat", &e, "look at the segment"))?;
        Ok(Handle { pid: std::process::id(), fd: self.file.as_raw_fd(), device: meta.dev(), inode: meta.ino() })
    }

    /// Bytes of its pages that exist because a process has touched them; 0 if the system does not say.
    pub fn touched(&self) -> u64 {
        self.file.metadata().map_or(0, |meta| 512 * meta.blocks())
    }

    /// The same of a range of it.
    pub(crate) fn touched_in(&self, offset: u64, len: u64) -> u64 {
        sys::data_bytes(&self.file, offset, len).unwrap_or(0)
    }

    /// The kind of its pages.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Bytes of the file.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The seals that the file has now.
    ///
    /// # Errors
    /// The system calls' errors.
    pub fn seals(&self) -> Result<u32, PosixError> {
        let seals = sys::seals(&self.file).map(|seals| seals.bits());
        seals.map_err(|e| PosixError::io("fcntl", &e, "read the segment's seals"))
    }

    /// Reserves memory for a range of the file and of a map of it, on the caller's NUMA node.
    pub(crate) fn reserve(&self, map: &Map, offset: u64, len: u64) -> io::Result<()> {
        if self.kind == Kind::Transparent {
            // Where shared memory gets huge pages only on request (`advise`), only page faults of a map that requested
            // them bring some. Pages that can't be had so are reserved below, or refused there.
            map.populate(offset, len);
        }
        sys::reserve(&self.file, offset, len)
    }

    /// Copies those pages of a range that exist to `to`, by system calls alone.
    pub(crate) fn copy_to(&self, offset: u64, to: *mut u8, len: u64) -> io::Result<()> {
        sys::copy_data(&self.file, offset, to, len)
    }

    /// Gives the pages of a range back to the system: it reads as zeros afterwards, in every map.
    ///
    /// # Errors
    /// The kernel can't do it, or forbids it.
    pub fn punch(&self, offset: u64, len: u64) -> Result<(), PosixError> {
        let done = sys::punch(&self.file, offset, len);
        done.map_err(|e| PosixError::io("fallocate", &e, "give memory back"))
    }
}

/// A map of a [`Sealed`] file. It keeps the memory, also after the file is closed.
#[derive(Debug)]
pub struct Map(MmapRaw);

impl Map {
    /// Address of the first byte. The bytes are readable as long as this value lives, and writable, unless it was
    /// [opened to be read](Sealed::open_to_read).
    pub fn base(&self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    /// Keeps the map from children of fork.
    ///
    /// # Errors
    /// The system call's.
    pub fn keep_from_children(&self) -> Result<(), PosixError> {
        self.0.advise(Advice::DontFork).map_err(|e| PosixError::io("madvise", &e, "keep the segment from children"))
    }

    /// Makes the pages of `len` bytes from `offset` on exist, by one call, and not by a fault at the first access of each.
    /// What the system refuses is left to the faults.
    pub fn populate(&self, offset: u64, len: u64) {
        let _refused = self.0.advise_range(Advice::PopulateWrite, offset as usize, len as usize);
    }

    pub(crate) const fn raw(&self) -> &MmapRaw {
        &self.0
    }
}

fn same(property: &'static str, found: u64, expected: u64) -> Result<(), PosixError> {
    if found == expected { Ok(()) } else { Err(PosixError::Handle { property, found, expected }) }
}

/// Opens the maker's file: by its name in `/proc`, else by a copy of the descriptor.
fn open(handle: &Handle) -> Result<File, PosixError> {
    let path = format!("/proc/{}/fd/{}", handle.pid, handle.fd);
    // By now the number may be another process's: the caller checks the file.
    sys::open(&path).or_else(|error| {
        copy(handle).map(File::from).map_err(|_| PosixError::io("open", &error, format!("open the segment {path}")))
    })
}

fn copy(handle: &Handle) -> io::Result<OwnedFd> {
    sys::pidfd_getfd(&sys::pidfd_open(handle.pid)?, handle.fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_lead_to_the_same_file() {
        let sealed = Sealed::create(1 << 16).unwrap();
        let handle = sealed.handle().unwrap();
        assert_eq!(Sealed::open(&handle, 1 << 16).unwrap().handle().unwrap().inode, handle.inode);
        let copy = File::from(copy(&handle).unwrap()).metadata().unwrap();
        assert_eq!((copy.ino(), copy.len()), (handle.inode, 1 << 16));
    }

    #[test]
    fn other_users_may_not_open_it() {
        let sealed = Sealed::create(1 << 16).unwrap();
        let other = Sealed::open(&sealed.handle().unwrap(), 1 << 16).unwrap();
        for file in [sealed.file, other.file] {
            assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600);
        }
    }

    #[test]
    fn a_file_that_is_not_the_announced_one_is_refused() {
        let sealed = Sealed::create(1 << 16).unwrap();
        let handle = sealed.handle().unwrap();
        assert!(Sealed::open(&handle, 1 << 15).is_err());
        for other in [
            Handle { inode: handle.inode + 1, ..handle },
            Handle { device: handle.device + 1, ..handle },
            Handle { fd: -1, ..handle },
            Handle { pid: 0, ..handle },
        ] {
            assert!(Sealed::open(&other, 1 << 16).is_err(), "{other:?}");
        }
    }

    #[test]
    fn a_punched_range_reads_as_zeros() {
        let sealed = Sealed::create(1 << 16).unwrap();
        let map = sealed.map().unwrap();
        let word = |offset| map.base().wrapping_add(offset).cast::<u64>();
        for offset in [0, 4096, 8192] {
            // SAFETY: inside the map, aligned, and used by this test only.
            unsafe { word(offset).write_volatile(7) };
        }
        sealed.punch(4096, 4096).unwrap();
        // SAFETY: as above.
        let read = [0, 4096, 8192].map(|offset| unsafe { word(offset).read_volatile() });
        assert_eq!(read, [7, 0, 7]);
    }
}
