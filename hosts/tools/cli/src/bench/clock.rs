//! The constant time-stamp counter, the same on all cores; elsewhere the system's monotonic clock.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Ticks now.
#[inline]
pub(crate) fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut core = 0;
        // SAFETY: rdtscp exists on every x86-64 machine with a constant counter; `core` is ours to write.
        unsafe { core::arch::x86_64::__rdtscp(&raw mut core) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// A calibrated clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Nanoseconds of a tick.
    pub(crate) tick: f64,
    /// Ticks that two readings of the clock take; they are subtracted from each interval.
    pub(crate) cost: u64,
}

impl Clock {
    /// Compares the counter with the system's clock, five times for 4 ms, and takes the median, since any of
    /// them may be interrupted. Once in a process: the counter's rate does not change.
    pub(crate) fn calibrate() -> Self {
        static CALIBRATED: OnceLock<Clock> = OnceLock::new();
        *CALIBRATED.get_or_init(Self::compare)
    }

    fn compare() -> Self {
        let mut ticks: Vec<f64> = (0..5).map(|_| tick(Duration::from_millis(4))).collect();
        ticks.sort_by(f64::total_cmp);
        let tick = ticks[2];
        let cost = (0..1000)
            .map(|_| {
                let t = now();
                now() - t
            })
            .min()
            .unwrap_or(0);
        Self { tick, cost }
    }

    /// Ticks of `ns` nanoseconds.
    pub(crate) fn ticks(&self, ns: f64) -> u64 {
        (ns / self.tick) as u64
    }

    /// Nanoseconds of so many ticks.
    pub(crate) fn ticks_as_ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.tick
    }

    /// Nanoseconds between two readings, less the clock's own cost.
    pub(crate) fn ns(&self, from: u64, to: u64) -> f64 {
        to.saturating_sub(from).saturating_sub(self.cost) as f64 * self.tick
    }
}

/// Nanoseconds of a tick, over `span`.
fn tick(span: Duration) -> f64 {
    let (t0, begin) = (now(), Instant::now());
    loop {
        let (elapsed, t1) = (begin.elapsed(), now());
        if elapsed >= span {
            return elapsed.as_nanos() as f64 / (t1 - t0) as f64;
        }
    }
}
