//! The one table of what can be simulated: collectives, and for each its algorithms over messages.
//!
//! A further algorithm is a further line of its collective, the default first.

use crate::args::Collective;
use crate::bench::{fill, holds};
use unisono_kernel::Rank;
use unisono_kernel::buffer::Buf;
use unisono_kernel::error::Refusal;
use unisono_kernel::machine::Machine;
use unisono_kernel::msg::bcast::binomial::Binomial;
use unisono_sim::Endpoint;

/// One rank's part of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) rank: Rank,
    pub(crate) size: u32,
    pub(crate) root: Rank,
}

/// Makes a rank's machine.
///
/// # Safety
/// The buffer is the rank's own, and outlives the run.
type Make = unsafe fn(Part, Buf) -> Result<Box<dyn Machine<Endpoint>>, Refusal>;

/// A collective: what is in a rank's buffer before a call and after it, and how the call is made.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) collective: Collective,
    pub(crate) name: &'static str,
    /// Does the root's start open the window?
    pub(crate) rooted: bool,
    pub(crate) fill: fn(Part, &mut [u8]),
    pub(crate) holds: fn(Part, &[u8]) -> bool,
    pub(crate) algorithms: &'static [(&'static str, Make)],
}

/// All of them.
pub(crate) const SUBJECTS: [Subject; 1] = [Subject {
    collective: Collective::Bcast,
    name: "bcast",
    rooted: true,
    // Of two patterns no byte is equal at the same place.
    fill: |part, bytes| fill(bytes, if part.rank == part.root { 1 } else { 2 }),
    holds: |_, bytes| holds(bytes, 1),
    algorithms: &[
        // SAFETY: the caller's promise, passed on.
        ("binomial", |p, buf| Ok(Box::new(unsafe { Binomial::new(p.rank, p.size, buf, p.root, 1) }?))),
    ],
}];
