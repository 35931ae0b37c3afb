//! What a rank does while it waits: yields if it is crowded, and every millisecond looks at its peers.
//!
//! The kernel calls [`Host`] after each burst of spins, or at once when crowded, and after some looks of who only looks. A
//! call is a counter; every few calls it reads the clock (fewer, the longer they take); every millisecond it looks at the
//! peers' descriptors. So a killed peer is seen within milliseconds, and a wait that goes well pays nothing.

use crate::watch::Watch;
use spin::relax::{RelaxStrategy, Yield};
use std::time::{Duration, Instant};
use unisono_kernel::error::WaitError;
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::wait::{Bound, Relax};

/// Time between two looks at the peers.
const LOOK: Duration = Duration::from_millis(1);

/// A rank's waiting: yielding, liveness, and a bound of time.
#[derive(Debug)]
pub struct Host {
    yields: bool,
    /// Calls until the clock is read.
    calls: u32,
    begin: Instant,
    /// When the peers are looked at, since the beginning.
    look: Duration,
    bound: Bound,
    watch: Watch,
}

impl Host {
    /// For one rank.
    pub(crate) fn new(yields: bool, timeout: Option<Duration>, watch: Watch) -> Self {
        Self { yields, calls: 0, begin: Instant::now(), look: Duration::ZERO, bound: Bound::new(timeout), watch }
    }

    /// Can `on` still come? `is_over`: has it been awaited for too long?
    #[cold]
    fn ask(&mut self, is_over: fn(&mut Bound, Duration) -> bool, on: &WaitSet) -> Result<(), WaitError> {
        let now = self.begin.elapsed();
        let is_over = is_over(&mut self.bound, now);
        self.calls = self.bound.pace();
        if now >= self.look {
            self.look = now + LOOK;
            if let Some(dead) = self.watch.look(on) {
                return Err(WaitError::Died(dead));
            }
        }
        if is_over { Err(on.late()) } else { Ok(()) }
    }
}

impl Relax for Host {
    #[inline]
    fn begin(&mut self) {
        self.bound.begin();
    }

    #[inline]
    fn relax(&mut self, on: &WaitSet) -> Result<(), WaitError> {
        if self.yields {
            Yield::relax();
        }
        if self.calls > 0 {
            self.calls -= 1;
            return Ok(());
        }
        self.ask(Bound::waits, on)
    }

    fn glance(&mut self, on: &WaitSet) -> Result<u32, WaitError> {
        self.ask(Bound::looks, on)?;
        Ok(self.calls)
    }

    fn set_bound(&mut self, most: Option<Duration>) -> bool {
        self.bound.set(most);
        true
    }
}
