//! How processes find each other: an allgather of bytes, and nothing else.
//!
//! An embedder brings its own (MPI, PMIx); [`Launched`] is served by our launcher; [`Alone`] is
//! one process by itself. A start-up is a few allgathers in which every message says "fine" or
//! what went wrong (`agree`), so that one rank's failure is every rank's error and nobody waits
//! for a rank that has given up.

mod agree;
pub(crate) mod frame;
mod launched;
pub mod variables;

pub(crate) use agree::agree;
pub use launched::Launched;

use crate::error::PosixError;
use unisono_kernel::Rank;

/// Most bytes that one rank gives to one allgather.
pub const MOST: usize = 1 << 20;

/// What a start-up needs from the world.
pub trait Bootstrap {
    /// This process.
    fn rank(&self) -> Rank;
    /// Number of processes.
    fn size(&self) -> u32;
    /// Everyone's bytes, by rank. Blocks until all have called; every rank calls as often.
    ///
    /// # Errors
    /// A rank or the service is gone. Every later call fails too.
    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, PosixError>;
}

/// One process by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Bootstrap for Alone {
    fn rank(&self) -> Rank {
        0
    }
    fn size(&self) -> u32 {
        1
    }
    fn allgather(&mut self, mine: &[u8]) -> Result<Vec<Vec<u8>>, PosixError> {
        Ok(vec![mine.to_vec()])
    }
}
