//! Algorithms of other libraries over shared memory, to compare with in the same model. No program gets them: the simulator alone
//! runs them, and each is written anew from what its library's sources and papers say.
//!
//! | name | what | after |
//! |---|---|---|
//! | `xhc` | groups by level-3 cache and package, flags of leaders, single copy | Open MPI, `ompi/mca/coll/xhc`; Katevenis and others, CLUSTER 2022 and ICPP 2023 |
//! | `xhc-flat` | the same, all ranks one group | ICPP 2023's flat hierarchy |
//! | `release-gather` | trees of flags, and cells | MPICH, `src/mpid/ch4/shm/posix/release_gather` |
//! | `coll-sm` | trees of control words, and fragments | Open MPI, `ompi/mca/coll/sm` |
//! | `tuned` | messages between pairs: binomial tree, recursive doubling, ring | Open MPI, `ompi/mca/coll/base`, over `opal/mca/btl/sm` |
//!
//! Defaults of sizes and trees are those of the libraries. Left out, in the rivals' favour: the layers that a call passes through
//! before its algorithm, matching, datatypes, registration of memory, progress of other requests. Memory that others read where
//! it lies is in the segment here, and its owner has it in its cache when a call begins. Folds are in no particular order.

mod messages;
mod process;
mod release_gather;
mod sm;
mod tuned;
mod xhc;

use super::turns::Clock;
use super::{Machine, Simulated};
use process::Process;
use release_gather::ReleaseGather;
use sm::Sm;
use std::fmt;
use tuned::Tuned;
use unisono_kernel::Rank;
use unisono_kernel::comm::Communicator;
use unisono_kernel::error::WaitError;
use unisono_kernel::op::Op;
use unisono_kernel::region::Params;
use xhc::Xhc;

/// A library's algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// Open MPI's `coll/xhc`.
    Xhc,
    /// The same without a hierarchy.
    XhcFlat,
    /// MPICH's `release_gather`.
    ReleaseGather,
    /// Open MPI's `coll/sm`.
    Sm,
    /// Open MPI's `coll/tuned`, over messages.
    Tuned,
}

impl Rival {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Xhc, Self::XhcFlat, Self::ReleaseGather, Self::Sm, Self::Tuned];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xhc => "xhc",
            Self::XhcFlat => "xhc-flat",
            Self::ReleaseGather => "release-gather",
            Self::Sm => "coll-sm",
            Self::Tuned => "tuned",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rival| rival.name() == name)
    }

    /// What a segment needs for its calls on up to `bytes` bytes.
    pub fn params(self, ranks: u32, bytes: u64) -> Params {
        match self {
            Self::Xhc | Self::XhcFlat => xhc::params(ranks, bytes),
            Self::ReleaseGather => release_gather::params(ranks),
            Self::Sm => sm::params(ranks),
            Self::Tuned => tuned::params(ranks, bytes),
        }
    }

    /// One rank's part, on a segment of these [parameters](Self::params).
    pub fn join(self, communicator: &Communicator<Simulated>, clock: &Clock, machine: &Machine) -> Member {
        let me = Process::new(communicator, clock.clone());
        let by = match self {
            Self::Xhc => By::Xhc(Xhc::new(&me, machine, false)),
            Self::XhcFlat => By::Xhc(Xhc::new(&me, machine, true)),
            Self::ReleaseGather => By::ReleaseGather(ReleaseGather::new(&me)),
            Self::Sm => By::Sm(Sm::default()),
            Self::Tuned => By::Tuned(Tuned::new(&me)),
        };
        Member { me, by }
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a step returns: the error says that a peer never came.
type Done = Result<(), WaitError>;

/// One rank of a rival. All ranks make the same calls, in the same order, on the same number of bytes.
#[derive(Debug)]
pub struct Member {
    me: Process,
    by: By,
}

#[derive(Debug)]
enum By {
    Xhc(Xhc),
    ReleaseGather(ReleaseGather),
    Sm(Sm),
    Tuned(Tuned),
}

impl Member {
    /// Returns when all ranks are here.
    ///
    /// # Errors
    /// A rank never comes.
    pub fn barrier(&mut self) -> Done {
        let me = &self.me;
        match &mut self.by {
            By::Xhc(xhc) => xhc.barrier(me),
            By::ReleaseGather(tree) => tree.barrier(me),
            By::Sm(sm) => sm.barrier(me),
            By::Tuned(tuned) => tuned.barrier(me),
        }
    }

    /// `bytes` of all ranks become those of `root`.
    ///
    /// # Errors
    /// A rank never comes.
    pub fn bcast(&mut self, bytes: &mut [u8], root: Rank) -> Done {
        let me = &self.me;
        match &mut self.by {
            By::Xhc(xhc) => xhc.bcast(me, bytes, root),
            By::ReleaseGather(tree) => tree.bcast(me, bytes, root),
            By::Sm(sm) => sm.bcast(me, bytes, root),
            By::Tuned(tuned) => tuned.bcast(me, bytes, root),
        }
    }

    /// `bytes` of all ranks become the fold of all ranks' `bytes` by a commutative operation on elements of eight bytes.
    ///
    /// # Errors
    /// A rank never comes.
    pub fn allreduce(&mut self, bytes: &mut [u8], op: &Op) -> Done {
        let me = &self.me;
        match &mut self.by {
            By::Xhc(xhc) => xhc.allreduce(me, bytes, op),
            By::ReleaseGather(tree) => tree.allreduce(me, bytes, op),
            By::Sm(sm) => sm.allreduce(me, bytes, op),
            By::Tuned(tuned) => tuned.allreduce(me, bytes, op),
        }
    }
}
