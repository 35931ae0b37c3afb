//! Ranks as threads of one process: a segment on the heap, and mailboxes for messages.
//!
//! For tests, examples and programs that want collectives between threads.

pub mod mailbox;
mod segment;

pub use mailbox::{Mailbox, Mailboxes};
pub use segment::Segment;

use unisono_kernel::Rank;
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::{Refusal, WaitError};
use unisono_kernel::region::Params;
use unisono_kernel::step::Awaits;
use unisono_kernel::transport::Transport;
use unisono_kernel::wait::{Relax, SpinThen};

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
