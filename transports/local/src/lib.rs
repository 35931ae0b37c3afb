//! Ranks that are threads of one process: a segment on the heap, and mailboxes for messages.
//!
//! For tests, examples and programs that want collectives between threads:
//!
//! ```
//! use unisono_kernel::error::Error;
//! use unisono_kernel::op::Op;
//! use unisono_kernel::region::Params;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Four ranks, each a thread of this process, run the same body. `run` returns what the bodies return, by rank.
//!     let sums = unisono_local::run(Params::new(4), |mut communicator| {
//!         let mut value = u64::from(communicator.rank() + 1).to_ne_bytes();
//!         communicator.allreduce_in_place(&mut value, Op::SUM_U64)?;
//!         Ok::<_, Error>(u64::from_ne_bytes(value))
//!     })?;
//!     for (rank, sum) in sums.into_iter().enumerate() {
//!         let sum = sum?;
//!         println!("rank {rank} of 4: the sum is {sum}");
//!         assert_eq!(sum, 1 + 2 + 3 + 4);
//!     }
//!     Ok(())
//! }
//! ```

mod segment;

pub use segment::Segment;

use spin::relax::{RelaxStrategy, Yield};
use unisono_kernel::Rank;
use unisono_kernel::comm::Communicator;
use unisono_kernel::error::{Error, Refusal, WaitError};
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::transport::Transport;
use unisono_kernel::machine::wait::{Relax, SpinThen};
use unisono_kernel::region::{Params, state};
use unisono_shm::{Peer, Post};

/// The transport of such ranks: shared memory of this process, mailboxes, and waits that yield the core and notice
/// ranks that have left.
#[derive(Debug)]
pub enum Local {}

impl Transport for Local {
    type Region = Segment;
    type Wait = SpinThen<Thread>;
}

/// How a rank waits: it yields its core to another thread, and checks which ranks have left its segment.
#[derive(Debug)]
pub struct Thread {
    seat: Option<Seat>,
}

/// A rank's presence in a segment. It ends when its communicator is dropped, also when its body returns or panics.
#[derive(Debug)]
struct Seat {
    segment: Segment,
    rank: Rank,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.segment.leave(self.rank);
    }
}

impl Thread {
    /// Fails if a rank has left before it finished the operation of `on`: then the event may never come.
    fn look(&self, on: &WaitSet) -> Result<(), WaitError> {
        match self.seat.as_ref().and_then(|seat| seat.segment.left_before(on.first().operation)) {
            Some(rank) => Err(WaitError::Died(rank)),
            None => Ok(()),
        }
    }
}

impl Relax for Thread {
    fn relax(&mut self, on: &WaitSet) -> Result<(), WaitError> {
        Yield::relax();
        self.look(on)
    }

    fn glance(&mut self, on: &WaitSet) -> Result<u32, WaitError> {
        self.look(on).map(|()| BETWEEN)
    }
}

/// A rank that only tests its requests checks for ranks that have left once in this many tests.
const BETWEEN: u32 = 32;

/// The wait policy for `ranks` threads on this machine. It does not notice ranks that have left.
pub fn waiting(ranks: u32) -> SpinThen<Thread> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let host = Thread { seat: None };
    if ranks as usize <= cores { SpinThen::spinning(host) } else { SpinThen::crowded(host) }
}

/// The wait policy of `rank`, which notices ranks that have left; the other ranks notice when this one leaves.
fn seated(segment: &Segment, rank: Rank) -> SpinThen<Thread> {
    let seat = Seat { segment: segment.clone(), rank };
    waiting(segment.layout().ranks()).map(|_| Thread { seat: Some(seat) })
}

/// Runs `body` on `params.ranks` threads, each with its communicator. Returns what the bodies return, by rank. A rank
/// that waits for one whose body has ended, or that has dropped its communicator, gets the error that the rank died.
///
/// # Errors
/// `params` does not describe a segment.
///
/// # Panics
/// If a body panics: its panic continues here, after the bodies of the other ranks have ended.
pub fn run<A: Send>(params: Params, body: impl Fn(Communicator<Local>) -> A + Sync) -> Result<Vec<A>, Refusal> {
    run_on(&Segment::new(params)?, body)
}

/// [`run`] on a fresh segment.
///
/// # Errors
/// None: the segment's layout was checked.
///
/// # Panics
/// As [`run`].
pub fn run_on<A: Send>(segment: &Segment, body: impl Fn(Communicator<Local>) -> A + Sync) -> Result<Vec<A>, Refusal> {
    let make = |rank: Rank| Communicator::new(segment.clone(), *segment.layout(), rank, seated(segment, rank));
    let communicators = (0..segment.layout().ranks()).map(make).collect::<Result<Vec<_>, _>>()?;
    Ok(std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> = communicators.into_iter().map(|c| scope.spawn(move || body(c))).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    }))
}

/// Renews a communicator after a failure: the same ranks continue on another segment. All ranks call this, each after
/// it got its error. A rank that had finished the operation that failed gets the error in its next operation.
///
/// # Errors
/// The communicator has not failed, or it failed because a rank died. It stays as it was.
pub fn renew(communicator: &mut Communicator<Local>) -> Result<(), Error> {
    let (segment, member) = (communicator.comm().region(), communicator.comm().member());
    state::renewable(segment, member.layout())?;
    let (next, choices) = (segment.next()?, member.chooser().choices);
    let (layout, wait) = (*next.layout(), seated(&next, member.rank()));
    *communicator = Communicator::new(next, layout, member.rank(), wait)?.with_choices(choices);
    Ok(())
}

/// One rank's point-to-point layer on the mailboxes of a segment.
pub type Mailbox = unisono_shm::Mailbox<Segment, Vec<Peer>>;

/// Mailboxes between threads.
#[derive(Debug)]
pub enum Mailboxes {}

impl Mailboxes {
    /// The mailboxes of `size` ranks; element r of the result is rank r's. An empty list if there can't be so many.
    pub fn connect(size: u32) -> Vec<Mailbox> {
        Self::on(Params::new(size).with_mailboxes()).unwrap_or_default()
    }

    /// The mailboxes of a fresh segment, by rank.
    ///
    /// # Errors
    /// `params` does not describe a segment, or one without mailboxes.
    pub fn on(params: Params) -> Result<Vec<Mailbox>, Refusal> {
        let segment = Segment::new(params)?;
        let peers = vec![Peer::default(); params.ranks as usize];
        let end = |rank| Ok(Mailbox::new(segment.clone(), Post::new(*segment.layout(), rank, peers.clone())?));
        (0..params.ranks).map(end).collect()
    }
}
