//! A bound of time on each wait, which names the rank that was waited for.

use std::time::{Duration, Instant};
use unisono_kernel::error::WaitError;
use unisono_kernel::step::Awaits;
use unisono_kernel::wait::{Bound, Relax};
use unisono_posix::PosixError;

/// Environment: the bound, in seconds. Without it there is none: a rank may compute for as long as it likes.
pub const VARIABLE: &str = "UNISONO_TIMEOUT";

/// The bound that the environment sets.
///
/// # Errors
/// The variable is no number above 0.
pub fn from_env() -> Result<Option<Duration>, PosixError> {
    let Some(value) = std::env::var_os(VARIABLE) else { return Ok(None) };
    let value = value.to_string_lossy().into_owned();
    seconds(&value).map(Some).ok_or(PosixError::Setting { name: VARIABLE, value, bound: "seconds, above 0" })
}

fn seconds(text: &str) -> Option<Duration> {
    let bound = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    (!bound.is_zero()).then_some(bound)
}

/// Another one's waiting, for so long at most.
#[derive(Clone, Copy, Debug)]
pub struct Bounded<H> {
    host: H,
    bound: Bound,
    /// When a clock was first needed.
    begin: Option<Instant>,
}

impl<H> Bounded<H> {
    /// `host`'s waiting; `None`: without a bound.
    pub const fn new(host: H, most: Option<Duration>) -> Self {
        Self { host, bound: Bound::new(most), begin: None }
    }

    /// With half the bound: for whoever asks twice.
    #[must_use]
    pub fn halved(self) -> Self {
        Self::new(self.host, self.bound.most().map(|most| most / 2))
    }

    /// Is the bound over? Without one no clock is read.
    fn is_over(&mut self, ask: impl FnOnce(&mut Bound, Duration) -> bool) -> bool {
        self.bound.most().is_some() && {
            let now = self.begin.get_or_insert_with(Instant::now).elapsed();
            ask(&mut self.bound, now)
        }
    }
}

impl<H: Relax> Relax for Bounded<H> {
    fn begin(&mut self) {
        self.bound.begin();
        self.host.begin();
    }

    fn relax(&mut self, on: &Awaits) -> Result<(), WaitError> {
        if self.is_over(Bound::waits) { Err(on.late()) } else { self.host.relax(on) }
    }

    fn glance(&mut self, on: &Awaits) -> Result<u32, WaitError> {
        if self.is_over(Bound::looks) {
            return Err(on.late());
        }
        let calls = self.host.glance(on)?;
        Ok(if self.bound.most().is_some() { calls.min(self.bound.pace()) } else { calls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_kernel::step::{Await, Slot, Source};
    use unisono_kernel::wait::Nop;

    #[test]
    fn a_bound_is_a_number_of_seconds() {
        for (text, bound) in
            [("2", Some(2000)), ("0.25", Some(250)), ("0", None), ("-1", None), ("2s", None), ("inf", None)]
        {
            assert_eq!(seconds(text), bound.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn who_is_late_has_a_name_and_each_wait_a_bound_of_its_own() {
        let on = Awaits::one(Await { source: Source::Message(Slot(0)), peer: Some(3), operation: 1, turn: 0 });
        let mut host = Bounded::new(Nop, Some(Duration::from_millis(20)));
        for _ in 0..2 {
            host.begin();
            assert_eq!(host.relax(&on), Ok(()));
            std::thread::sleep(Duration::from_millis(21));
            assert_eq!(host.relax(&on), Err(WaitError::Late(3)));
        }
        let mut host = Bounded::new(Nop, None);
        host.begin();
        assert_eq!(host.relax(&on), Ok(()));
    }
}
