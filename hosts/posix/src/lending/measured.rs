//! What copies cost on this machine, as `unisono doctor --keep` has measured them: a file in the user's cache.
//!
//! ```text
//! unisono copies 3
//! alltoall 2 200000 warm 21500 15200 9800  collective, ranks, bytes, buffers; nanoseconds through the segment, by process_vm_readv, where it lies
//! ```
//! Its name has a hash of the processor's name and the number of PUs, so that machines which share a home directory do
//! not take each other's.

use super::{ByKind, LendFrom, Lengths, Lent};
use crate::sys;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use unisono_kernel::collective::Kind;

const HEAD: &str = "unisono copies 3";

/// The nanoseconds of a collective by each way to copy.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The collective's name.
    pub collective: String,
    /// Ranks, with a core each.
    pub ranks: u32,
    /// Its bytes, as `unisono bench` counts them.
    pub bytes: u64,
    /// With the same buffers in each call; else with others, which are not in the caches.
    pub warm: bool,
    /// Through the segment: two copies.
    pub segment_ns: f64,
    /// By `process_vm_readv`: one copy; `None` where that is forbidden.
    pub across_ns: Option<f64>,
    /// Read where it lies: one copy.
    pub lent_ns: f64,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// By collective, number of ranks and length.
    pub cells: Vec<Cell>,
}

/// One copy by the kernel must take less than this part of the time of two to be taken: what differs less may be another way round in
/// the next minute, and a lender waits for its readers. In buffers that are not `warm` it must take less still: there the doctor and the
/// benchmarks agree less (docs/explanation/decisions.md, 69).
pub const fn clearly(warm: bool) -> f64 {
    if warm { 0.9 } else { 0.8 }
}

/// The same for two copies instead of reading where it lies.
const POSTED: f64 = 0.9;

/// The collectives that are measured, and what a region knows of them.
const KINDS: [(&str, Kind); 10] = [
    ("bcast", Kind::Bcast),
    ("scatter", Kind::Scatter),
    ("gather", Kind::Gather),
    ("allgather", Kind::Allgather),
    ("alltoall", Kind::Alltoall),
    ("reduce", Kind::Reduce),
    ("allreduce", Kind::Allreduce),
    ("reduce_scatter", Kind::ReduceScatter),
    ("scan", Kind::Scan),
    ("exscan", Kind::Exscan),
];

/// The collective that is measured for this one, and its kind: one for those with equal blocks and with unequal ones. `None`:
/// none is measured.
pub fn stands_for(collective: &str) -> Option<(&'static str, Kind)> {
    let any_blocks = collective.trim_end_matches(['v', 'w']).trim_end_matches("_block");
    KINDS.iter().find(|(name, _)| *name == any_blocks).copied()
}

impl Measured {
    /// The lengths at which a single copy is clearly faster in this collective among so many ranks as were measured, with `warm`
    /// buffers or others: of the runs of neighbouring lengths at which it is, the one with most. `None`: there is none.
    pub fn lengths(&self, collective: &str, ranks: u32, warm: bool) -> Option<Lengths> {
        let part = clearly(warm);
        let across = |cell: &Cell| cell.across_ns.is_some_and(|across| across < part * cell.segment_ns);
        self.run(collective, ranks, warm, across)
    }

    /// The lengths at which two copies are clearly faster than reading what is lent where it lies, likewise.
    pub fn posted(&self, collective: &str, ranks: u32, warm: bool) -> Option<Lengths> {
        self.run(collective, ranks, warm, |cell| cell.segment_ns < POSTED * cell.lent_ns)
    }

    fn run(&self, collective: &str, ranks: u32, warm: bool, wins: impl Fn(&Cell) -> bool) -> Option<Lengths> {
        let mut cells: Vec<&Cell> = self.of(collective, ranks, warm).collect();
        cells.sort_by_key(|cell| cell.bytes);
        let runs = cells.chunk_by(|a, b| wins(a) == wins(b)).scan(0, |end, run| {
            *end += run.len();
            Some((run, cells.get(*end)))
        });
        let (run, next) = runs.filter(|(run, _)| run.iter().all(|cell| wins(cell))).max_by_key(|(run, _)| run.len())?;
        let (first, last) = (run.first()?.bytes, run.last()?.bytes);
        // Up to the middle, by ratio, between the last length that wins and the first that does not.
        let below = next.map_or(usize::MAX, |next| (last as f64 * next.bytes as f64).sqrt() as usize);
        Some(Lengths { from: first as usize, below })
    }

    fn of(&self, collective: &str, ranks: u32, warm: bool) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(move |cell| (&*cell.collective, cell.ranks, cell.warm) == (collective, ranks, warm))
    }

    /// The same for all collectives, among the fewest ranks that were measured, and among the most.
    pub fn lends(&self) -> LendFrom {
        let all = || KINDS.iter().flat_map(|kind| [(kind, true), (kind, false)]);
        let by_kind = |lengths: &dyn Fn(&str, bool) -> Option<Lengths>| {
            all().fold(ByKind::NONE, |all, ((name, kind), warm)| match lengths(name, warm) {
                Some(lengths) => all.and(*kind, warm, lengths),
                None => all,
            })
        };
        let among = |ranks| Lent {
            ordinary: by_kind(&|name, warm| self.lengths(name, ranks, warm)),
            posted: by_kind(&|name, warm| self.posted(name, ranks, warm)),
        };
        let (few, many) = self.extremes();
        // Beyond the middle, by ratio, those of many.
        let bound = if few < many { (f64::from(few) * f64::from(many)).sqrt().ceil() as usize } else { usize::MAX };
        LendFrom::measured(among(few), among(many), bound)
    }

    /// The fewest ranks that were measured, and the most.
    fn extremes(&self) -> (u32, u32) {
        let ranks = || self.cells.iter().map(|cell| cell.ranks);
        (ranks().min().unwrap_or(0), ranks().max().unwrap_or(0))
    }

    /// The file of this machine; `None`: neither XDG_CACHE_HOME nor HOME is set.
    pub fn path() -> Option<PathBuf> {
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = processors.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
        let pus = processors.lines().filter(|line| line.starts_with("processor")).count() as u64;
        let hash = name
            .bytes()
            .map(u64::from)
            .chain([pus])
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ byte).wrapping_mul(0x0000_0100_0000_01b3));
        Some(cache()?.join(format!("copies-{hash:016x}")))
    }

    /// What the file of this machine says; `None`: there is none, or it can't be read.
    pub fn here() -> Option<Self> {
        Self::parse(&std::fs::read_to_string(Self::path()?).ok()?)
    }

    /// Writes the file of this machine. What it says of other numbers of ranks stays.
    ///
    /// # Errors
    /// There is no folder for it, or it can't be written.
    pub fn keep(&self) -> io::Result<PathBuf> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "neither XDG_CACHE_HOME nor HOME is set");
        let path = Self::path().ok_or_else(missing)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // Processes that start now read the old file or the new one.
        let new = path.with_extension(std::process::id().to_string());
        let mut all = self.clone();
        let measured = |cell: &Cell| self.cells.iter().any(|mine| mine.ranks == cell.ranks);
        all.cells.extend(Self::here().unwrap_or_default().cells.into_iter().filter(|cell| !measured(cell)));
        std::fs::write(&new, all.text())?;
        std::fs::rename(&new, &path)?;
        Ok(path)
    }

    fn text(&self) -> String {
        let number = |value: Option<String>| value.unwrap_or_else(|| "off".into());
        let mut text = format!("{HEAD}\n");
        for Cell { collective, ranks, bytes, warm, segment_ns, across_ns, lent_ns } in &self.cells {
            let buffers = if *warm { "warm" } else { "cold" };
            let across = number(across_ns.map(|ns| format!("{ns:.0}")));
            // Writing to a string does not fail.
            let _ = writeln!(text, "{collective} {ranks} {bytes} {buffers} {segment_ns:.0} {across} {lent_ns:.0}");
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        lines.next().filter(|line| *line == HEAD)?;
        let cell = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let &[collective, ranks, bytes, buffers, segment, across, lent] = words.as_slice() else { return None };
            let time = |word: &str| word.parse().ok().filter(|ns: &f64| ns.is_finite() && *ns > 0.0);
            Some(Cell {
                collective: collective.into(),
                ranks: ranks.parse().ok().filter(|ranks| *ranks > 0)?,
                bytes: bytes.parse().ok()?,
                warm: match buffers {
                    "warm" => true,
                    "cold" => false,
                    _ => return None,
                },
                segment_ns: time(segment)?,
                across_ns: if across == "off" { None } else { Some(time(across)?) },
                lent_ns: time(lent)?,
            })
        };
        Some(Self { cells: lines.map(cell).collect::<Option<_>>()? })
    }

    /// The cell of a collective by which so many ranks go, and whose length is nearest, with warm buffers or others.
    pub fn nearest(&self, collective: &str, ranks: u32, bytes: u64, warm: bool) -> Option<&Cell> {
        let (few, many) = self.extremes();
        let measured = if self.lends().is_many(ranks as usize) { many } else { few };
        self.of(collective, measured, warm).min_by_key(|cell| cell.bytes.max(bytes) / cell.bytes.min(bytes).max(1))
    }
}

/// The folder in the user's cache for what was measured; `None`: neither XDG_CACHE_HOME nor HOME is set.
pub fn cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("unisono"))
}

/// Reads `to.len()` bytes at an address of another process's memory, as a message that is lent is read.
///
/// # Errors
/// The kernel forbids it, or has no such call; not all bytes are there.
pub fn read(process: u32, address: u64, to: &mut [u8]) -> io::Result<()> {
    // SAFETY: the slice is exclusive.
    let read = unsafe { sys::read_process(process, address, to.as_mut_ptr(), to.len()) }?;
    if read == to.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(collective: &str, bytes: u64, segment_ns: f64, across_ns: Option<f64>) -> Cell {
        Cell { collective: collective.into(), ranks: 2, bytes, warm: true, segment_ns, across_ns, lent_ns: 5.0 }
    }

    #[test]
    fn neighbouring_lengths_at_which_one_copy_wins_count() {
        let of = |ratios: &[(u64, f64)]| {
            let cells = ratios.iter().map(|(bytes, ratio)| cell("bcast", *bytes, 100.0, Some(100.0 * ratio)));
            let measured = Measured { cells: cells.collect() };
            let lengths = measured.lengths("bcast", 2, true);
            assert_eq!(measured.lends().among(9, false).ordinary.lengths(Kind::Bcast, true), lengths);
            lengths.map(|Lengths { from, below }| (from, below))
        };
        assert_eq!(of(&[(4000, 0.7), (1000, 0.5), (2000, 0.95), (8000, 0.5)]), Some((4000, usize::MAX)));
        assert_eq!(of(&[(1000, 0.5), (2000, 0.5)]), Some((1000, usize::MAX)));
        assert_eq!(of(&[(1000, 0.5), (4000, 0.95)]), Some((1000, 2000)));
        assert_eq!(of(&[(10, 0.95), (1000, 0.5), (2000, 0.6), (8000, 1.1), (16_000, 0.7)]), Some((1000, 4000)));
        assert_eq!([of(&[]), of(&[(1000, 0.95)])], [None; 2]);
        // Warm buffers and others have lengths each.
        let both = |cold| {
            let cold = Cell { warm: false, ..cell("bcast", 8, 100.0, cold) };
            let measured = Measured { cells: vec![cell("bcast", 8, 100.0, Some(50.0)), cold] };
            [true, false].map(|warm| measured.lends().among(2, false).ordinary.lengths(Kind::Bcast, warm).is_some())
        };
        assert_eq!([both(Some(70.0)), both(Some(85.0)), both(None)], [[true; 2], [true, false], [true, false]]);
    }

    #[test]
    fn less_is_enough_in_buffers_that_are_used_again() {
        let wins = |warm, ratio: f64| {
            let cells = vec![Cell { warm, ..cell("bcast", 8, 100.0, Some(100.0 * ratio)) }];
            Measured { cells }.lengths("bcast", 2, warm).is_some()
        };
        assert_eq!(
            [wins(true, 0.89), wins(true, 0.91), wins(false, 0.79), wins(false, 0.81)],
            [true, false, true, false]
        );
    }

    #[test]
    fn what_two_cores_copy_faster_is_not_lent() {
        let cells = [(1000, 100.0), (2000, 120.0), (8000, 130.0), (16_000, 105.0)];
        let cells = cells.map(|(bytes, lent_ns)| Cell { lent_ns, ..cell("reduce", bytes, 100.0, None) });
        let measured = Measured { cells: cells.into() };
        let posted = measured.lends().among(2, false).posted;
        let (from, below) = (2000, 11_313);
        assert_eq!(posted.lengths(Kind::Reduce, true), Some(Lengths { from, below }));
        assert_eq!([posted.lengths(Kind::Reduce, false), posted.lengths(Kind::Gather, true)], [None; 2]);
        assert_eq!(measured.lends().among(2, true).posted, ByKind::NONE, "ranks share cores");
    }

    #[test]
    fn each_collective_has_a_length_of_its_own() {
        let cells = vec![
            cell("scatter", 8, 100.0, Some(40.0)),
            cell("gather", 8, 100.0, Some(140.0)),
            cell("reduce", 8, 100.0, None),
            cell("unheard", 8, 100.0, Some(1.0)),
        ];
        let from = Measured { cells }.lends().among(2, false).ordinary;
        assert_eq!(
            [Kind::Scatter, Kind::Gather, Kind::Reduce, Kind::Scan]
                .map(|kind| from.lengths(kind, true).map(|lengths| lengths.from)),
            [Some(8), None, None, None]
        );
        assert_eq!(
            ["alltoallw", "gatherv", "reduce_scatter_block", "barrier"].map(stands_for),
            [
                Some(("alltoall", Kind::Alltoall)),
                Some(("gather", Kind::Gather)),
                Some(("reduce_scatter", Kind::ReduceScatter)),
                None
            ]
        );
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let cold = Cell { warm: false, ..cell("bcast", 8, 70.0, None) };
        let cells = vec![cell("alltoall", 200_000, 21_500.0, Some(15_200.0)), cold];
        let measured = Measured { cells };
        assert_eq!(Measured::parse(&measured.text()), Some(measured));
        for wrong in ["", "unisono copies 2\nalltoall 8 warm 1 2 3\n", "unisono copies 3\nfrom off\n"] {
            assert_eq!(Measured::parse(wrong), None, "{wrong}");
        }
        for line in [
            "alltoall 2 8 warm 1 2",
            "alltoall 2 8 warm 1 2 3 4",
            "alltoall 2 x warm 1 2 3",
            "alltoall 0 8 warm 1 2 3",
            "alltoall 2 8 hot 1 2 3",
            "alltoall 2 8 cold -1 2 3",
            "alltoall 2 8 cold inf 2 3",
        ] {
            assert_eq!(Measured::parse(&format!("{HEAD}\n{line}\n")), None, "{line}");
        }
    }

    #[test]
    fn the_nearest_length_is_found() {
        let measured = Measured { cells: [1000, 10_000, 100_000].map(|bytes| cell("bcast", bytes, 9.0, None)).into() };
        let near = |bytes| measured.nearest("bcast", 3, bytes, true).map(|cell| cell.bytes);
        assert_eq!([1, 3000, 12_000, 1 << 40].map(near), [Some(1000), Some(1000), Some(10_000), Some(100_000)]);
        assert_eq!([measured.nearest("scan", 2, 8, true), measured.nearest("bcast", 2, 1000, false)], [None, None]);
    }

    #[test]
    fn few_ranks_and_many_have_lengths_of_their_own() {
        let cells = [(2, 8, 95.0), (2, 64, 50.0), (16, 8, 50.0), (16, 64, 50.0)];
        let cells = cells.map(|(ranks, bytes, across)| Cell { ranks, ..cell("scatter", bytes, 100.0, Some(across)) });
        let measured = Measured { cells: cells.into() };
        let from = |ranks, crowded| {
            measured.lends().among(ranks, crowded).ordinary.lengths(Kind::Scatter, true).map(|lengths| lengths.from)
        };
        assert_eq!([2, 5, 6, 64].map(|ranks| from(ranks, false)), [64, 64, 8, 8].map(Some));
        assert_eq!(from(64, true), from(2, true), "nothing that was measured");
        let near = |ranks| measured.nearest("scatter", ranks, 8, true).map(|cell| (cell.ranks, cell.bytes));
        assert_eq!([3, 6].map(near), [Some((2, 8)), Some((16, 8))]);
    }

    #[test]
    fn memory_of_a_process_is_read() {
        let (from, mut to) = ([1u8, 2, 3], [0u8; 3]);
        read(std::process::id(), from.as_ptr().expose_provenance() as u64, &mut to).unwrap();
        assert_eq!(to, from);
        assert!(read(std::process::id(), 8, &mut to).is_err() && read(0x7fff_fff0, 8, &mut to).is_err());
    }
}
