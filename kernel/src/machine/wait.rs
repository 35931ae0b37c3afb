//! The wait policy: spin, then let the host do something useful, and repeat. A test checks now and then what a wait
//! checks.
//!
//! What a process does between two looks is a [`RelaxStrategy`] of the crate spin: [`relax::Spin`] tells the processor that
//! it waits, [`relax::Loop`] does nothing, and with spin's feature `std` there is `Yield`, which gives the core to another
//! process. An embedder may provide a type of its own. A strategy has no state and cannot fail. The host, a [`Relax`],
//! may have state, and may end a wait with an error.
//!
//! ```
//! use unisono_kernel::machine::wait::{Only, SpinThen, relax::RelaxStrategy};
//!
//! /// Sleeps until an event: an interrupt, or another core's signal.
//! struct Event;
//!
//! impl RelaxStrategy for Event {
//!     fn relax() {
//!         #[cfg(target_arch = "aarch64")]
//!         // SAFETY: waits, and touches nothing.
//!         unsafe {
//!             core::arch::asm!("wfe")
//!         }
//!     }
//! }
//!
//! // 2000 looks without a pause, then an event between two looks.
//! let wait = SpinThen::spinning(Only::<Event>::new()).pausing::<Event>();
//! # assert_eq!((wait.eager, wait.patient), (2000, 64));
//! ```

mod bound;
mod host;
#[cfg(test)]
mod tests;

pub use bound::Bound;
pub use host::{Only, Relax};
pub use spin::relax;

use crate::error::WaitError;
use crate::machine::poll::WaitSet;
use crate::machine::transport::{Observe, Wait};
use core::fmt;
use core::marker::PhantomData;
use spin::relax::{RelaxStrategy, Spin};

/// Spins `eager` times without a pause (a pause costs 30 % of a line transfer) and `patient` times
/// with one, which is what `R` does; then looks for poison and asks the host.
///
/// With a core per process: many spins. With more processes than cores: none, and a host that yields.
///
/// A wait may return although its event has not happened, if a peer sets a word and takes it back. The next wait for
/// the same event then counts as the same one, with the same bound of time.
pub struct SpinThen<H, R = Spin> {
    /// Looks without a pause, once per wait.
    pub eager: u32,
    /// Looks with a pause, between two calls of the host.
    pub patient: u32,
    /// The host.
    pub host: H,
    /// What this process did when the host was last asked, and how often the host was asked about it.
    state: State,
    asked: u32,
    /// Waits that returned; and how many looks may still pass until the host is asked.
    returns: u32,
    looks: u32,
    pause: PhantomData<fn() -> R>,
}

/// What the host is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Nothing,
    Waits(WaitSet),
    Looks(WaitSet),
}

impl<H> SpinThen<H> {
    /// For a core per process.
    pub const fn spinning(host: H) -> Self {
        Self::new(2000, 64, host)
    }

    /// For more processes than cores: a process that spins would keep the core from the process that it waits for.
    pub const fn crowded(host: H) -> Self {
        Self::new(0, 0, host)
    }

    /// With so many looks without a pause, and so many with one.
    pub const fn new(eager: u32, patient: u32, host: H) -> Self {
        Self::begun(eager, patient, host)
    }
}

impl<H, R> SpinThen<H, R> {
    const fn begun(eager: u32, patient: u32, host: H) -> Self {
        Self { eager, patient, host, state: State::Nothing, asked: 0, returns: 0, looks: 0, pause: PhantomData }
    }

    /// The same looks with another host.
    pub fn map<I>(self, host: impl FnOnce(H) -> I) -> SpinThen<I, R> {
        SpinThen::begun(self.eager, self.patient, host(self.host))
    }

    /// The same looks and host with another pause.
    pub fn pausing<P: RelaxStrategy>(self) -> SpinThen<H, P> {
        SpinThen::begun(self.eager, self.patient, self.host)
    }
}

impl<H: fmt::Debug, R> fmt::Debug for SpinThen<H, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("SpinThen");
        text.field("eager", &self.eager).field("patient", &self.patient).field("host", &self.host);
        text.field("pause", &core::any::type_name::<R>()).field("state", &self.state).finish_non_exhaustive()
    }
}

/// A wait of so many calls of the host, which take a microsecond each at least, is long: then collectives are compared.
const LONG: u32 = 1024;

/// After so many looks at which the host was asked, collectives are compared.
const SOME: u32 = 16;

/// One of so many returns is checked: was it too early?
const RETURNS: u32 = 1024;

impl<H: Relax, R: RelaxStrategy> SpinThen<H, R> {
    /// The host will be asked about this.
    fn enter(&mut self, state: State) {
        if self.state != state {
            self.host.begin();
            (self.state, self.asked) = (state, 0);
        }
    }

    /// Can the awaited event still happen?
    fn check<X: Observe + ?Sized>(&mut self, x: &mut X) -> Result<(), WaitError> {
        if let Some(poison) = x.poison() {
            return Err(WaitError::Poisoned(poison));
        }
        self.asked = self.asked.wrapping_add(1);
        if self.asked.is_multiple_of(LONG) { x.compare() } else { Ok(()) }
    }

    /// A wait returns. One of [`RETURNS`] is checked.
    #[inline]
    fn over<X: Observe + ?Sized>(&mut self, x: &mut X, on: &WaitSet) -> Result<(), WaitError> {
        self.returns = self.returns.wrapping_add(1);
        if self.returns.is_multiple_of(RETURNS) { self.suspect(x, on) } else { Ok(()) }
    }

    #[cold]
    fn suspect<X: Observe + ?Sized>(&mut self, x: &mut X, on: &WaitSet) -> Result<(), WaitError> {
        let state = State::Waits(*on);
        if self.state != state {
            self.enter(state);
            return Ok(());
        }
        let result = self.check(x).and_then(|()| self.host.relax(on));
        self.end(x, on, result)
    }

    /// A wait that goes on after its first looks.
    fn long<X: Observe + ?Sized>(&mut self, x: &mut X, on: &WaitSet) -> Result<(), WaitError> {
        self.enter(State::Waits(*on));
        loop {
            for _ in 0..self.patient {
                if x.ready(on) {
                    return self.over(x, on);
                }
                R::relax();
            }
            self.check(x)?;
            self.host.relax(on)?;
            if x.ready(on) {
                return Ok(());
            }
        }
    }

    #[cold]
    fn glance<X: Observe + ?Sized>(&mut self, x: &mut X, on: &WaitSet) -> Result<(), WaitError> {
        self.enter(State::Looks(*on));
        self.check(x)?;
        // Looks may be far apart: this compares early, so that processes that wait for this one learn that it waits
        // itself.
        if self.asked >= SOME && self.asked.is_power_of_two() {
            x.compare()?;
        }
        self.looks = self.host.glance(on)?;
        Ok(())
    }

    /// Ends a wait or a look. After an error the next wait is a new one.
    fn end<X: Observe + ?Sized>(
        &mut self,
        x: &X,
        on: &WaitSet,
        result: Result<(), WaitError>,
    ) -> Result<(), WaitError> {
        result.map_err(|error| {
            self.state = State::Nothing;
            match error {
                WaitError::Late(_) if on.first().peer.is_none() => WaitError::Late(x.late(None)),
                WaitError::Late(peer) => WaitError::Late(x.late(Some(peer))),
                other => other,
            }
        })
    }
}

impl<X: Observe + ?Sized, H: Relax, R: RelaxStrategy> Wait<X> for SpinThen<H, R> {
    #[inline]
    fn wait(&mut self, x: &mut X, on: &WaitSet) -> Result<(), WaitError> {
        for _ in 0..self.eager {
            if x.ready(on) {
                return self.over(x, on);
            }
        }
        let result = self.long(x, on);
        self.end(x, on, result)
    }

    #[inline]
    fn look(&mut self, x: &mut X, on: &WaitSet) -> Result<(), WaitError> {
        if self.looks > 0 {
            self.looks -= 1;
            return Ok(());
        }
        let result = self.glance(x, on);
        self.end(x, on, result)
    }
}
