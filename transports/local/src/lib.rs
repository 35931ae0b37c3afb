//! Ranks as threads of one process: a segment on the heap, and mailboxes for messages.
//!
//! For tests, examples and programs that want collectives between threads.

mod segment;

pub use segment::Segment;

use unisono_kernel::Rank;
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::{Error, Refusal, WaitError};
use unisono_kernel::region::{Params, state};
use unisono_kernel::step::Awaits;
use unisono_kernel::transport::Transport;
use unisono_kernel::wait::{Relax, SpinThen};
use unisono_shm::{Peer, Post};

/// Threads: shared memory of this process, mailboxes, yielding waits.
#[derive(Debug)]
pub enum Local {}

impl Transport for Local {
    type Region = Segment;
    type P2p = Mailbox;
    type Wait = SpinThen<YieldThread>;
}

/// Gives the core to another thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct YieldThread;

impl Relax for YieldThread {
    fn relax(&mut self, _: &Awaits) -> Result<(), WaitError> {
        std::thread::yield_now();
        Ok(())
    }
}

/// Waits that suit `ranks` threads on this machine.
pub fn waiting(ranks: u32) -> SpinThen<YieldThread> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if ranks as usize <= cores { SpinThen::spinning(YieldThread) } else { SpinThen::crowded(YieldThread) }
}

/// Runs `body` on `params.ranks` threads, each with its communicator; answers what they answer, by rank.
///
/// # Errors
/// Parameters that do not fit.
///
/// # Panics
/// When a body panics: its panic goes on here, after the other ranks have ended.
pub fn run<A: Send>(params: Params, body: impl Fn(Communicator<Local>) -> A + Sync) -> Result<Vec<A>, Refusal> {
    let segment = Segment::new(params)?;
    let make = |rank: Rank| Communicator::new(segment.clone(), *segment.layout(), rank, waiting(params.ranks));
    let communicators = (0..params.ranks).map(make).collect::<Result<Vec<_>, _>>()?;
    Ok(std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> = communicators.into_iter().map(|c| scope.spawn(move || body(c))).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    }))
}

/// Goes on, with the same ranks on another segment, after a failure. All ranks call, once each has its error: who has
/// finished the operation in which it happened has one at its next operation.
///
/// # Errors
/// The communicator is not over, or was told that a rank died: it is as before.
pub fn renew(communicator: &mut Communicator<Local>) -> Result<(), Error> {
    let (segment, member) = (communicator.comm().region(), communicator.comm().member());
    state::renewable(segment, member.layout())?;
    let (next, choices) = (segment.next()?, member.chooser().choices);
    let layout = *next.layout();
    *communicator = Communicator::new(next, layout, member.rank(), waiting(layout.ranks()))?.with_choices(choices);
    Ok(())
}

/// One rank's end of the mailboxes of a segment.
pub type Mailbox = unisono_shm::Mailbox<Segment, Vec<Peer>>;

/// Mailboxes between threads.
#[derive(Debug)]
pub enum Mailboxes {}

impl Mailboxes {
    /// Mailboxes among `size` ranks; element `r` of the answer is rank r's. None, where there can't be so many.
    pub fn connect(size: u32) -> Vec<Mailbox> {
        Self::on(Params::new(size).with_mailboxes()).unwrap_or_default()
    }

    /// The mailboxes of a fresh segment.
    ///
    /// # Errors
    /// Parameters that do not fit, or have no mailboxes.
    pub fn on(params: Params) -> Result<Vec<Mailbox>, Refusal> {
        let segment = Segment::new(params)?;
        let peers = vec![Peer::default(); params.ranks as usize];
        let end = |rank| Ok(Mailbox::new(segment.clone(), Post::new(*segment.layout(), rank, peers.clone())?));
        (0..params.ranks).map(end).collect()
    }
}
