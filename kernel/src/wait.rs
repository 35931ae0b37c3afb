//! How to wait: spin, then let the host do something useful, and again.

use crate::error::WaitError;
use crate::step::Awaits;
use crate::transport::{Observe, Wait};

/// What a host does between two bursts of spinning: yield the core, move its own messages, look
/// whether the awaited peers live.
pub trait Relax {
    /// A wait begins that was not over after the first burst: a bound of time counts from here.
    #[inline]
    fn begin(&mut self) {}

    /// Called again and again while `on` has not happened.
    ///
    /// # Errors
    /// The wait must end: a peer is gone or late.
    fn relax(&mut self, on: &Awaits) -> Result<(), WaitError>;
}

/// Does nothing: for embedders with a core per process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nop;

impl Relax for Nop {
    #[inline]
    fn relax(&mut self, _: &Awaits) -> Result<(), WaitError> {
        Ok(())
    }
}

/// Spins `eager` times without a pause (a pause costs 30 % of a line transfer) and `patient` times
/// with one; then looks for poison and asks the host.
///
/// With a core per process: many spins. With more processes than cores: none, and a host that yields.
#[derive(Clone, Copy, Debug)]
pub struct SpinThen<H> {
    /// Looks without a pause, once per wait.
    pub eager: u32,
    /// Looks with a pause, between two calls of the host.
    pub patient: u32,
    /// The host.
    pub host: H,
}

impl<H> SpinThen<H> {
    /// For a core per process.
    pub const fn spinning(host: H) -> Self {
        Self { eager: 2000, patient: 64, host }
    }

    /// For more processes than cores: whoever waits is in the way of whom it waits for.
    pub const fn crowded(host: H) -> Self {
        Self { eager: 0, patient: 0, host }
    }
}

/// Calls of the host, a microsecond each at least, after which a wait is long enough to ask whether it can end.
const LONG: u32 = 1024;

impl<X: Observe + ?Sized, H: Relax> Wait<X> for SpinThen<H> {
    #[inline]
    fn wait(&mut self, x: &mut X, on: &Awaits) -> Result<(), WaitError> {
        for _ in 0..self.eager {
            if x.ready(on) {
                return Ok(());
            }
        }
        self.host.begin();
        let mut rounds = 0u32;
        loop {
            for _ in 0..self.patient {
                if x.ready(on) {
                    return Ok(());
                }
                core::hint::spin_loop();
            }
            if let Some(poison) = x.poison() {
                return Err(WaitError::Poisoned(poison));
            }
            self.host.relax(on)?;
            rounds += 1;
            if rounds.is_multiple_of(LONG) {
                x.compare()?;
            }
            if x.ready(on) {
                return Ok(());
            }
        }
    }
}
