//! A bound of time on each wait, which names the rank that was waited for.

use std::time::{Duration, Instant};
use unisono_kernel::error::WaitError;
use unisono_kernel::step::Awaits;
use unisono_kernel::wait::Relax;
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
    bound: Option<Duration>,
    began: Option<Instant>,
}

impl<H> Bounded<H> {
    /// `host`'s waiting; `None`: without a bound.
    pub const fn new(host: H, bound: Option<Duration>) -> Self {
        Self { host, bound, began: None }
    }

    /// With half the bound: for whoever asks twice.
    #[must_use]
    pub fn halved(self) -> Self {
        Self { bound: self.bound.map(|bound| bound / 2), ..self }
    }
}

impl<H: Relax> Relax for Bounded<H> {
    fn begin(&mut self) {
        self.began = None;
        self.host.begin();
    }

    fn relax(&mut self, on: &Awaits) -> Result<(), WaitError> {
        if let Some(bound) = self.bound {
            let now = Instant::now();
            if now.duration_since(*self.began.get_or_insert(now)) > bound {
                return Err(WaitError::Late(on.first().peer.unwrap_or(0)));
            }
        }
        self.host.relax(on)
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
        let on = Awaits::one(Await { source: Source::Message(Slot(0)), peer: Some(3), operation: 1 });
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
