//! What a rank does while it waits: it yields if ranks are crowded, and looks at its peers every millisecond.
//!
//! The kernel calls [`Host`] after each burst of spins (at once when crowded), and after some polls of a caller that
//! polls by itself. Most calls only count down. Every few calls the clock is read (after fewer calls, the longer a call
//! takes), and every millisecond the peers are looked at, less often where many share cores. So a killed peer is noticed within
//! milliseconds, and a short wait costs nothing.

use crate::watch::Watch;
use spin::relax::{RelaxStrategy, Yield};
use std::time::{Duration, Instant};
use unisono_kernel::error::WaitError;
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::wait::{Bound, Relax};

/// Least time between two looks at the peers.
const LOOK: Duration = Duration::from_millis(1);
/// Ranks that share cores and may look so often: more of them share the looks, which else would take the cores' time.
const LOOKING: usize = 16;

/// A rank's waiting: yielding, liveness, and a bound of time.
#[derive(Debug)]
pub struct Host {
    yields: bool,
    /// Calls until the clock is read.
    calls: u32,
    begin: Instant,
    /// When the peers are looked at next, since `begin`.
    look: Duration,
    /// Time between two looks.
    pause: Duration,
    bound: Bound,
    watch: Watch,
}

impl Host {
    /// For one rank.
    pub(crate) fn new(yields: bool, timeout: Option<Duration>, watch: Watch) -> Self {
        let shared = if yields { watch.processes().div_ceil(LOOKING).max(1) } else { 1 };
        let (begin, look, pause) = (Instant::now(), Duration::ZERO, LOOK.saturating_mul(shared as u32));
        Self { yields, calls: 0, begin, look, pause, bound: Bound::new(timeout), watch }
    }

    /// Looks whether a peer in `on` has died, and by `is_over` whether the wait has taken longer than its bound.
    #[cold]
    fn ask(&mut self, is_over: fn(&mut Bound, Duration) -> bool, on: &WaitSet) -> Result<(), WaitError> {
        let now = self.begin.elapsed();
        let is_over = is_over(&mut self.bound, now);
        self.calls = self.bound.pace();
        if now >= self.look {
            self.look = now + self.pause;
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
