//! Unisono between processes of one Linux machine.
//!
//! ```text
//! launch     starts N processes, binds them, serves their bootstrap, waits for their ends
//! bootstrap  an allgather of bytes: all that a start-up needs from outside
//! join       the start-up of one rank: segment, space, placement, liveness, waiting
//! sealed     anonymous, sealed files in memory, which have no name in the file system
//! segment    such a file with a header, mapped by all ranks
//! arena      such a file of one process, of which communicators lease slices
//! heap       such a file of one process, which others read: data in it is lent where it lies
//! communicator   dup, split, create group, free: each communicator is on a slice
//! pages, policy   huge pages and memory policies, if they are asked for
//! topology, binding, placement, waiting   the machine, and where ranks run, have their pages, and how they wait
//! timeout    a bound on each wait, from the environment
//! locality, switches   where processes are on machines and networks, for the groups of each level
//! ```
//! Nothing is left behind, whichever process dies at whichever moment. The segment has no name and is freed with its
//! last map. Processes are killed when the launcher's thread ends. No rank waits for one that has died, because every
//! step of the start-up reports failures to all, and every later wait looks at its peers.
//!
//! ```no_run
//! use unisono_kernel::region::Params;
//! use unisono_posix::bootstrap::Launched;
//! use unisono_posix::{Options, PosixError, join};
//!
//! fn rank() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut launcher = Launched::from_env()?.ok_or("start me with `unisono run`")?;
//!     let mut joined = join(&mut launcher, Params::new, &Options::default())?;
//!     let mut bytes = [0; 1 << 20];
//!     joined.communicator.bcast(&mut bytes, 0)?;
//!     Ok(())
//! }
//! # fn main() {}
//! ```

#[cfg(not(target_os = "linux"))]
compile_error!("unisono-posix needs Linux: memfd, pidfd, move_pages");

mod allocation;
pub mod arena;
pub mod binding;
pub mod bootstrap;
pub mod cgroup;
mod communicator;
pub mod decisions;
mod error;
pub mod heap;
mod host;
mod join;
pub mod launch;
pub mod lending;
pub mod locality;
pub mod pages;
pub mod placement;
pub mod policy;
pub mod sealed;
pub mod segment;
pub mod space;
pub mod switches;
mod sys;
pub mod timeout;
pub mod topology;
pub mod waiting;
pub mod watch;
mod wire;

pub use allocation::Allocation;
pub use communicator::{Intracomm, Place, Usage};
pub use error::{Limit, PosixError};
pub use host::Host;
pub use join::{Joined, Options, Peer, join, join_place};
pub use pages::Pages;
pub use placement::Placement;
pub use policy::Policy;
pub use segment::Segment;
pub use sys::page;
pub use topology::Topology;
pub use waiting::Waiting;

use unisono_kernel::machine::transport::Transport;
use unisono_kernel::machine::wait::SpinThen;

/// Processes on one machine: a mapped segment, no messages; waits spin or yield, and look whether peers live.
#[derive(Debug)]
pub enum Posix {}

impl Transport for Posix {
    type Region = segment::View;
    type Wait = SpinThen<Host>;
}
