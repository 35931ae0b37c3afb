//! What a rank does while it waits: yields if it is crowded, and every millisecond looks at its peers.
//!
//! The kernel calls [`Host`] after each burst of spins, or at once when crowded. A call is a
//! counter; every few calls it reads the clock (fewer, the longer they take); every millisecond it looks at the peers'
//! descriptors. So a killed peer is seen within milliseconds, and a wait that goes well pays nothing.

use crate::watch::Watch;
use std::time::{Duration, Instant};
use unisono_kernel::error::WaitError;
use unisono_kernel::step::Awaits;
use unisono_kernel::wait::Relax;

/// Time between two looks at the peers.
const LOOK: Duration = Duration::from_millis(1);
/// Calls between two looks at the clock, at least and at most: a burst of spins takes microseconds,
/// but a yield may take a whole time slice, and the most of them must stay below 100 ms.
const CALLS: (u32, u32) = (4, 32);

/// A rank's waiting: yielding, liveness, and a bound of time.
#[derive(Debug)]
pub struct Host {
    yields: bool,
    /// Calls until the clock is read, and how many they were at first.
    calls: u32,
    stride: u32,
    /// When the clock was read.
    read: Instant,
    /// When the peers are looked at.
    look: Instant,
    /// When the present wait was first seen here.
    began: Option<Instant>,
    timeout: Option<Duration>,
    watch: Watch,
}

impl Host {
    /// For one rank.
    pub(crate) fn new(yields: bool, timeout: Option<Duration>, watch: Watch) -> Self {
        let now = Instant::now();
        Self { yields, calls: 0, stride: CALLS.0, read: now, look: now, began: None, timeout, watch }
    }

    /// Changes the bound on one wait.
    pub const fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    #[cold]
    fn clock(&mut self, on: &Awaits) -> Result<(), WaitError> {
        let now = Instant::now();
        // Calls that took long are counted shortly.
        self.stride = if now - self.read < LOOK / 2 { (2 * self.stride).min(CALLS.1) } else { CALLS.0 };
        (self.calls, self.read) = (self.stride, now);
        let began = *self.began.get_or_insert(now);
        if now >= self.look {
            self.look = now + LOOK;
            if let Some(dead) = self.watch.look(on) {
                return Err(WaitError::Died(dead));
            }
        }
        match self.timeout {
            Some(bound) if now.duration_since(began) > bound => {
                Err(WaitError::Late(on.first().peer.unwrap_or_else(|| self.watch.laggard())))
            }
            _ => Ok(()),
        }
    }
}

impl Relax for Host {
    #[inline]
    fn begin(&mut self) {
        self.began = None;
    }

    #[inline]
    fn relax(&mut self, on: &Awaits) -> Result<(), WaitError> {
        if self.yields {
            std::thread::yield_now();
        }
        if self.calls > 0 {
            self.calls -= 1;
            return Ok(());
        }
        self.clock(on)
    }
}
