//! Shared memory on virtual time: the kernel's machines for a segment, between ranks on the cores of a machine with caches that
//! need not be at hand.
//!
//! Each rank is a thread, of which one runs at a time: the one whose clock is the earliest, up to its next access of the segment. So
//! accesses happen in the order of virtual time, and a run depends on nothing else. A rank that waits is not run until a
//! word that it waits for is stored. What an access costs the [caches](Machine) say (docs/explanation/simulator.md).
//!
//! ```
//! use unisono_kernel::error::Error;
//! use unisono_kernel::op::Op;
//! use unisono_kernel::region::Params;
//! use unisono_sim::segment::{Machine, run};
//!
//! let machine = Machine::named("epyc-7r13x2").ok_or("no such machine")?;
//! let ends = run(&machine, Params::new(64), |mut communicator, clock| {
//!     let mut value = u64::from(communicator.rank()).to_ne_bytes();
//!     communicator.allreduce_in_place(&mut value, Op::SUM_U64)?;
//!     Ok::<_, Error>((u64::from_ne_bytes(value), clock.now()))
//! })?;
//! for end in ends {
//!     let (sum, at) = end?;
//!     assert_eq!(sum, 63 * 64 / 2);
//!     assert!(at.ns() > 0.0);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod caches;
mod kept;
mod machine;
mod region;
pub mod rivals;
mod turns;
mod way;

pub use caches::Traffic;
pub use kept::PAGE;
pub use machine::{Distance, Machine, Unfit};
pub use region::{SimWord, View};
pub use turns::{Clock, Sleep};
pub use unisono_local::Segment;

use std::fmt;
use std::sync::Arc;
use turns::Turns;
use unisono_kernel::Rank;
use unisono_kernel::comm::Communicator;
use unisono_kernel::error::Refusal;
use unisono_kernel::machine::transport::Transport;
use unisono_kernel::region::Params;

/// The transport of such ranks.
#[derive(Debug)]
pub enum Simulated {}

impl Transport for Simulated {
    type Region = View;
    type Wait = Sleep;
}

/// A run that could not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unstarted {
    /// The parameters describe no segment.
    Refused(Refusal),
    /// The machine is not one, or has too few cores.
    Unfit(Unfit),
}

impl fmt::Display for Unstarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Unfit(unfit) => unfit.fmt(f),
        }
    }
}

impl std::error::Error for Unstarted {}

impl From<Refusal> for Unstarted {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Unfit> for Unstarted {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(unfit)
    }
}

/// Runs `body` for each rank of a fresh segment, rank r on core r; returns what the bodies return, by rank. A rank whose event can't
/// come any more, since all others wait, too, or have ended, gets the error that its peer is late.
///
/// # Errors
/// `params` does not describe a segment; the machine is not one, or has fewer cores than there are ranks.
///
/// # Panics
/// If a body panics: its panic continues here, after the bodies of the other ranks have ended.
pub fn run<A: Send>(
    machine: &Machine,
    params: Params,
    body: impl Fn(Communicator<Simulated>, Clock) -> A + Sync,
) -> Result<Vec<A>, Unstarted> {
    run_on(machine, &Segment::new(params)?, body)
}

/// [`run`] on a fresh segment, in which ranks may [lend](Segment::lend_from) each other their memory. What a rank lends is in its
/// cache when it does so.
///
/// # Errors
/// The machine is not one, or has fewer cores than there are ranks.
///
/// # Panics
/// As [`run`].
pub fn run_on<A: Send>(
    machine: &Machine,
    segment: &Segment,
    body: impl Fn(Communicator<Simulated>, Clock) -> A + Sync,
) -> Result<Vec<A>, Unstarted> {
    machine.check(segment.layout().ranks())?;
    let layout = *segment.layout();
    let turns = Arc::new(Turns::new(machine, segment));
    let make = |rank: Rank| {
        let clock = Clock::new(Arc::clone(&turns), rank);
        let view = View::new(segment.clone(), clock.clone());
        Ok::<_, Refusal>((Communicator::new(view, layout, rank, Sleep::new(clock.clone()))?, clock))
    };
    let ranks = (0..layout.ranks()).map(make).collect::<Result<Vec<_>, _>>()?;
    Ok(std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> = ranks
            .into_iter()
            .map(|(communicator, clock)| {
                scope.spawn(move || {
                    let _ended = clock.enter();
                    body(communicator, clock)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    }))
}
