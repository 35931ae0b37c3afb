//! The pages of a segment and of a heap: ordinary ones, or huge ones if they are asked for and available.
//!
//! | kind | made by | refused if |
//! |---|---|---|
//! | hugetlb | `memfd_create(MFD_HUGETLB \| MFD_HUGE_2MB)` | the pool is too small: `mmap` reserves all pages of a segment or fails, `fallocate` those of a block of a heap |
//! | transparent | `madvise(MADV_HUGEPAGE)`, faulted in before they are reserved | `shmem_enabled` is never or deny |
//! | ordinary | `memfd_create` | |
//!
//! Rank 0 tries them in this order, before anything is touched, and tells the others which kind it got and why not one
//! before. Each rank verifies the kind in `/proc/self/smaps` when its pages exist. Each process tries them for its own heap
//! when it makes it, and tells the others.

use crate::error::PosixError;
use crate::sys;
use core::fmt;
use std::fs::read_to_string;

/// Environment variable: `default` or `huge`, which overrides the option.
pub const PAGES: &str = "UNISONO_PAGES";

/// Bytes of a huge page.
pub const HUGE: u64 = 2 << 20;

/// The kernel's directory of its pool of huge pages.
const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";
/// The kernel's directory of transparent huge pages.
const TRANSPARENT: &str = "/sys/kernel/mm/transparent_hugepage";

/// Which pages are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// The machine's ordinary pages.
    #[default]
    Default,
    /// Huge pages of 2 MiB, if available.
    Huge,
}

impl Pages {
    /// By name: `default` or `huge`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::Default),
            "huge" => Some(Self::Huge),
            _ => None,
        }
    }

    /// The environment's value, else this one.
    ///
    /// # Errors
    /// The environment's value is neither.
    pub fn decide(self) -> Result<Self, PosixError> {
        sys::setting(PAGES, "default or huge", Self::from_name).map(|found| found.unwrap_or(self))
    }

    /// The kinds to try for a segment, the best first.
    pub(crate) const fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Default => &[Kind::Ordinary],
            Self::Huge => &[Kind::Hugetlb, Kind::Transparent, Kind::Ordinary],
        }
    }

    /// The same for a heap, which holds a program's data: where the system allows transparent huge pages, it has them.
    pub(crate) const fn kinds_of_heap(self) -> &'static [Kind] {
        match self {
            Self::Default => &[Kind::Transparent, Kind::Ordinary],
            Self::Huge => self.kinds(),
        }
    }
}

/// How a file's pages are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The machine's ordinary pages.
    #[default]
    Ordinary,
    /// Ordinary memory that the kernel puts in huge pages where it finds some.
    Transparent,
    /// Huge pages from the kernel's pool.
    Hugetlb,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Ordinary, Self::Transparent, Self::Hugetlb];

    /// Bytes of the unit in which pages are reserved, touched and looked up.
    pub fn page(self) -> u64 {
        match self {
            Self::Ordinary | Self::Transparent => sys::page(),
            Self::Hugetlb => HUGE,
        }
    }

    /// The least alignment of a rank's area, in bytes.
    pub fn area(self) -> u64 {
        match self {
            Self::Ordinary => sys::page(),
            Self::Transparent | Self::Hugetlb => HUGE,
        }
    }

    /// A number for messages, below 4.
    pub const fn code(self) -> u64 {
        self as u64
    }

    /// The kind of this number.
    pub fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Checks that the kernel is set to give such pages at all.
    ///
    /// # Errors
    /// The kernel's setting that forbids them.
    pub(crate) fn check(self) -> Result<(), PosixError> {
        match self {
            Self::Ordinary | Self::Hugetlb => Ok(()),
            Self::Transparent => transparent(
                &read_to_string(format!("{TRANSPARENT}/shmem_enabled")).unwrap_or_default(),
                read_to_string(format!("{TRANSPARENT}/hugepages-2048kB/shmem_enabled")).ok().as_deref(),
            ),
        }
    }

    /// The text that says why a file of `bytes` bytes in such pages could not be made.
    pub(crate) fn failure(self, bytes: u64, error: &PosixError) -> String {
        match (self, pool()) {
            (Self::Hugetlb, Some((total, free))) if !matches!(error, PosixError::Refused(_)) => {
                let needed = bytes.div_ceil(HUGE);
                format!("the pool has {free} free pages of 2 MiB ({total} in all), {needed} are needed; {error}")
            }
            _ => error.to_string(),
        }
    }
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::Huge => "huge",
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ordinary => "ordinary pages",
            Self::Transparent => "transparent huge pages",
            Self::Hugetlb => "huge pages of the pool",
        })
    }
}

/// Makes something in the first of these kinds of pages that is to be had: `make` says of how many bytes, and tries. Returns
/// it, and why it has not the kinds before.
///
/// # Errors
/// That of the last kind.
pub(crate) fn first<A>(
    kinds: &[Kind],
    mut make: impl FnMut(Kind) -> (u64, Result<A, PosixError>),
) -> Result<(A, Kind, String), PosixError> {
    let mut why = String::new();
    let mut last = PosixError::bootstrap("no kind of pages is allowed");
    for &kind in kinds {
        let (bytes, made) = kind.check().map_or_else(|error| (0, Err(error)), |()| make(kind));
        match made {
            Ok(made) => return Ok((made, kind, why)),
            Err(error) => {
                let comma = if why.is_empty() { "" } else { "; " };
                why += &format!("{comma}no {kind}: {}", kind.failure(bytes, &error));
                last = error;
            }
        }
    }
    Err(last)
}

/// Checks that shared memory may have transparent huge pages. `all`: the text of the setting for all sizes; `size`: of
/// that for 2 MiB, on kernels that have it.
fn transparent(all: &str, size: Option<&str>) -> Result<(), PosixError> {
    let chosen =
        |text: &str| text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word.to_owned());
    let all = chosen(all).unwrap_or_else(|| "missing".into());
    let size = size.and_then(chosen).unwrap_or_else(|| "inherit".into());
    let counts = match (all.as_str(), size.as_str()) {
        ("deny", _) | (_, "inherit") => &all,
        ("force", _) => return Ok(()),
        _ => &size,
    };
    match counts.as_str() {
        "always" | "within_size" | "advise" | "force" => Ok(()),
        _ => Err(PosixError::Setting {
            name: "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
            value: if counts == &all { all } else { size },
            bound: "always, within_size or advise, for pages of 2 MiB too",
        }),
    }
}

/// Number of pages in the kernel's pool, and of those that are neither used nor reserved.
fn pool() -> Option<(u64, u64)> {
    let number = |name: &str| read_to_string(format!("{POOL}/{name}")).ok()?.trim().parse::<u64>().ok();
    let (total, free, promised) = (number("nr_hugepages")?, number("free_hugepages")?, number("resv_hugepages")?);
    Some((total, free.saturating_sub(promised)))
}

/// Bytes of the pool of huge pages that are neither used nor reserved.
pub(crate) fn free() -> u64 {
    pool().map_or(0, |(_, free)| free.saturating_mul(HUGE))
}

/// A sentence about the huge pages that this machine offers.
pub fn offer() -> String {
    let pool = pool().map_or("no pool".into(), |(total, free)| format!("{free} of {total} free in the pool"));
    let transparent = Kind::Transparent.check().map_or_else(|why| format!("not: {why}"), |()| "on request".into());
    format!("Huge pages of 2 MiB: {pool}; transparent: {transparent}")
}

/// How much of a map this process has mapped, and how much of that in huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Bytes of pages that are mapped.
    pub bytes: u64,
    /// Bytes of these in huge pages.
    pub huge: u64,
}

/// Looks at `/proc/self/smaps`, for a map of `bytes` bytes at `base`; `None` where it can't be read.
pub(crate) fn look(base: u64, bytes: u64) -> Option<Mapped> {
    mapped(&read_to_string("/proc/self/smaps").ok()?, base, base.saturating_add(bytes))
}

/// The same from the text of smaps: all areas that start in `base..end`.
fn mapped(smaps: &str, base: u64, end: u64) -> Option<Mapped> {
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let (mut inside, mut found) = (false, None);
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let Some(field) = first.strip_suffix(':') else {
            let start = first.split_once('-').and_then(|(start, _)| hex(start));
            inside = start.is_some_and(|start| (base..end).contains(&start));
            continue;
        };
        if !inside {
            continue;
        }
        let all = found.get_or_insert(Mapped::default());
        let of = second.parse::<u64>().unwrap_or(0).saturating_mul(1024);
        match field {
            "Rss" => all.bytes += of,
            "ShmemPmdMapped" => all.huge += of,
            // These are not counted in Rss.
            "Shared_Hugetlb" | "Private_Hugetlb" => {
                all.bytes += of;
                all.huge += of;
            }
            _ => {}
        }
    }
    found
}

/// The pages that were asked for, and those that the segment has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The pages that were asked for.
    pub asked: Pages,
    /// How the segment was made.
    pub kind: Kind,
    /// Bytes of the segment.
    pub bytes: u64,
    /// The sum over all ranks of what each has mapped after its pages were placed; `None`: a rank could not look it up.
    pub mapped: Option<Mapped>,
    /// Why better kinds were not available; empty if the best one was.
    pub why: String,
}

impl Choice {
    /// Were huge pages asked for, and are ordinary ones used, as far as is known?
    pub fn fell_back(&self) -> bool {
        let all_huge = self.kind != Kind::Ordinary && self.mapped.is_none_or(|Mapped { bytes, huge }| bytes == huge);
        self.asked == Pages::Huge && !all_huge
    }
}

/// The pages that the segment has, without the reason.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, bytes, mapped, .. } = self;
        write!(f, "{bytes} bytes in {kind}")?;
        if *kind != Kind::Ordinary {
            match mapped {
                Some(Mapped { bytes, huge }) => write!(f, " ({huge} of {bytes} bytes mapped are in huge ones)")?,
                None => f.write_str(" (not verified: smaps can't be read)")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_transparent_pages_are_read() {
        let all = |chosen: &str| format!("always within_size advise {chosen} deny force\n");
        for (global, size, allowed) in [
            ("[never]", None, false),
            ("[advise]", None, true),
            ("[never]", Some("always [inherit] never"), false),
            ("[never]", Some("always inherit [advise] never"), true),
            ("[advise]", Some("always inherit [never]"), false),
            ("[always]", Some("[inherit] never"), true),
            ("[deny]", Some("[always] inherit"), false),
            ("[force]", Some("[never]"), true),
            ("", None, false),
        ] {
            assert_eq!(transparent(&all(global), size).is_ok(), allowed, "{global} {size:?}");
        }
    }

    #[test]
    fn smaps_is_added_up_over_the_parts_of_a_map_alone() {
        let area = |from: u64, to: u64, fields: &str| {
            format!("{from:x}-{to:x} rw-s 0 00:01 7 /memfd:unisono (deleted)\n{fields}")
        };
        let text = [
            area(0x1000, 0x2000, "Rss: 4 kB\nShmemPmdMapped: 0 kB\n"),
            area(0x20_0000, 0x60_0000, "Rss: 4096 kB\nShmemPmdMapped: 2048 kB\nVmFlags: rd wr\n"),
            area(0x60_0000, 0x80_0000, "Rss: 0 kB\nShared_Hugetlb: 2048 kB\nPrivate_Hugetlb: 0 kB\n"),
            area(0x80_0000, 0x90_0000, "Rss: 8 kB\n"),
        ]
        .concat();
        assert_eq!(mapped(&text, 0x20_0000, 0x80_0000), Some(Mapped { bytes: 6 << 20, huge: 4 << 20 }));
        assert_eq!(mapped(&text, 0xa0_0000, 0xb0_0000), None);
    }

    #[test]
    fn kinds_have_numbers_and_names_are_read() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(Kind::from_code(3), None);
        assert_eq!(Pages::from_name("huge"), Some(Pages::Huge));
        assert_eq!(Pages::from_name("Huge"), None);
        assert!(offer().starts_with("Huge pages of 2 MiB: "));
    }
}
