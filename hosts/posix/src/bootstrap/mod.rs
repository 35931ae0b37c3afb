//! How processes find each other: an allgather of bytes, and nothing else.
//!
//! A host may bring its own (from MPI or PMIx). [`Launched`] is served by this project's launcher; [`Alone`] is one
//! process by itself. A start-up is a few allgathers in which every message says "fine" or what went wrong (`agree`):
//! so one rank's failure is an error on all ranks, and no rank waits for one that has given up.

mod agree;
pub(crate) mod frame;
mod launched;
pub mod variables;

pub(crate) use agree::agree;
pub use launched::Launched;

use crate::error::PosixError;
use unisono_kernel::Rank;

/// The largest number of bytes of one rank in one allgather.
pub const MOST: usize = 1 << 20;

/// What a start-up needs from outside: an allgather.
pub trait Bootstrap {
    /// This process's rank.
    fn rank(&self) -> Rank;
    /// Number of processes.
    fn size(&self) -> u32;
    /// All ranks' bytes, by rank. Blocks until all ranks have called; all make the same number of calls.
    ///
    /// # Errors
    /// A rank or the service has ended. Every later call fails too.
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
