//! A bound of time on each wait, which names the rank that was waited for.

use std::time::{Duration, Instant};
use unisono_kernel::error::WaitError;
use unisono_kernel::step::Awaits;
use unisono_kernel::wait::Relax;

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
