//! Bodies of fuzz targets: the bytes of an input make all choices, over raw memory and the machines that ship.
//!
//! | body | the bytes choose | what must hold |
//! |---|---|---|
//! | [`interleave`] | layout, program, what is lent and can be read, which process is polled next | every rank finishes with the oracle's data; a poll moves exactly when an awaited event has happened; the rules of [`shadow`](crate::shadow) |
//! | [`attach`] | a segment's memory | an error, or a layout that lies inside |
//! | [`poison`] | the state word and the records | a poison within its bounds that can be printed |
//! | [`corrupt`] | as `interleave`, and the words that a hostile peer stores between two polls | polls return; nothing outside the segment and the buffers is touched |
//!
//! A body panics when one of these conditions does not hold. `tests/chaos.rs` runs them on pseudo-random bytes,
//! the workspace in `fuzz/` under libFuzzer.

mod arena;
mod hostile;
mod member;
mod program;
mod stage;
mod uneven;

pub use hostile::{attach, poison};

use crate::shadow::{Shadow, Shadowed};
use arena::Guarded;
use member::{Outcome, Process};
use program::Program;
use stage::Stage;
use unisono_kernel::region::{Base, Counter, Layout, Region, header};
use unisono_programs::lending::{Ledger, Lending};
use unisono_shm::Mapped;

/// The bytes of an input that are used at most: longer inputs only take longer.
pub const MOST: usize = 4096;

/// Rounds of polling all processes after which a program without a hostile peer must be complete.
const ROUNDS: u32 = 20_000;

/// Rounds of polling after which a program with a hostile peer, which may make it wait for ever, is given up.
const HOSTILE_ROUNDS: u32 = 50;

/// The input, taken byte by byte.
#[derive(Clone, Copy, Debug)]
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    /// The next byte, if there is one.
    fn take(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// The next byte; 0 at the end.
    fn byte(&mut self) -> u8 {
        self.take().unwrap_or(0)
    }

    /// A number below `n` (256 at most).
    fn below(&mut self, n: u64) -> u64 {
        u64::from(self.byte()) % n
    }

    /// Eight bytes.
    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }
}

/// A segment in guarded memory.
struct Segment {
    memory: Guarded,
    region: Mapped,
    layout: Layout,
}

impl Segment {
    fn new(layout: Layout, base: Base) -> Self {
        let memory = Guarded::new(layout.bytes() as usize, 0, 0);
        // SAFETY: zeroed and guarded above, only accessed through words and views until it is freed,
        // which is after the last use of the region.
        let region = unsafe { Mapped::new(memory.base(), layout.bytes()) }.expect("a line is aligned");
        header::create(&region, &layout);
        region.counter(layout.central_count()).store_release(base.arrivals(layout.ranks()));
        Self { memory, region, layout }
    }
}

/// Real machines, polled in an order that the bytes choose: all must finish, with the right data.
///
/// # Panics
/// When a condition does not hold.
pub fn interleave(data: &[u8]) {
    let mut bytes = Bytes(&data[..data.len().min(MOST)]);
    let program = Program::decode(&mut bytes);
    let segment = Segment::new(program.layout(), program.base);
    let stage = Stage::new(&program);
    let shadow = Shadow::new(segment.layout, program.base);
    let ledger = Ledger::default();
    let view = |rank| {
        let lending = Lending::new(segment.region.clone(), &segment.layout, &ledger, (0, rank), program.lending);
        Shadowed::new(lending, &shadow, &segment.layout, rank)
    };
    let mut processes = Process::all((segment.layout, program.base), view, &stage);
    let poll = |process: &mut Process<'_, _>| match process.poll_checked(segment.region.clone()) {
        Outcome::Failed(error) => panic!("rank {} failed: {error}\n{program:#?}", process.rank()),
        Outcome::Finished => true,
        Outcome::Going => false,
    };
    while let Some(byte) = bytes.take() {
        let chosen = usize::from(byte) % processes.len();
        poll(&mut processes[chosen]);
    }
    let over = (0..ROUNDS).any(|_| processes.iter_mut().map(poll).filter(|finished| !finished).count() == 0);
    assert!(over, "stuck: {:#?}\n{program:#?}", processes.iter().map(Process::place).collect::<Vec<_>>());
    stage.check_data();
    stage.check_frame();
    assert!(segment.memory.intact(), "beyond the segment");
}

/// As [`interleave`], with a peer that stores any value to any word between two polls.
///
/// # Panics
/// When memory outside the segment and the buffers is touched, or a poll panics.
pub fn corrupt(data: &[u8]) {
    let mut bytes = Bytes(&data[..data.len().min(MOST)]);
    let program = Program::decode(&mut bytes);
    let segment = Segment::new(program.layout(), program.base);
    let stage = Stage::new(&program);
    let ledger = Ledger::default();
    let view = |rank| {
        Lending::new(segment.region.clone(), &segment.layout, &ledger, (0, rank), program.lending).among_hostile()
    };
    let mut processes = Process::all((segment.layout, program.base), view, &stage);
    while let Some(byte) = bytes.take() {
        if byte >= 0xD0 {
            hostile::store(&segment, byte, &mut bytes);
        } else {
            let chosen = usize::from(byte >> 2) % processes.len();
            // The bytes choose whether the driver looks at the state word before a poll, and whether a process that
            // failed goes on.
            processes[chosen].poll_hostile(byte & 1 != 0, byte & 2 != 0);
        }
    }
    for _ in 0..HOSTILE_ROUNDS {
        for process in &mut processes {
            process.poll_hostile(false, true);
        }
    }
    stage.check_frame();
    assert!(segment.memory.intact(), "beyond the segment");
}
