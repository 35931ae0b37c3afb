//! How handles wait: they spin, then do what their maker chose, until the bound on a wait is over.

use crate::error::Failure;
use crate::heap::allocate;
use crate::progress;
use core::fmt;
use core::time::Duration;
use spin::relax::Yield;
use std::time::Instant;
use unisono_kernel::error::WaitError;
use unisono_kernel::machine::poll::WaitSet;
use unisono_kernel::machine::wait::{Bound, Only, Relax, SpinThen};

/// How a handle waits.
pub type Waiting = SpinThen<Patience>;

/// What a handle does between two bursts of spins: its maker's choice.
pub struct Patience(pub Box<dyn Relax>);

impl Patience {
    /// Puts a host's waiting on the heap.
    ///
    /// # Errors
    /// No memory.
    pub fn new(host: impl Relax + 'static) -> Result<Self, Failure> {
        let host: *mut dyn Relax = allocate(host)?;
        // SAFETY: allocated with a box's layout, and owned by nothing else.
        Ok(Self(unsafe { Box::from_raw(host) }))
    }
}

impl fmt::Debug for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Patience")
    }
}

impl Relax for Patience {
    fn begin(&mut self) {
        self.0.begin();
    }

    fn relax(&mut self, on: &WaitSet) -> Result<(), WaitError> {
        self.0.relax(on)?;
        progress::progress_all();
        Ok(())
    }

    fn glance(&mut self, on: &WaitSet) -> Result<u32, WaitError> {
        let calls = self.0.glance(on)?;
        Ok(if progress::progress_all() { 0 } else { calls })
    }

    fn set_bound(&mut self, most: Option<Duration>) -> bool {
        self.0.set_bound(most)
    }
}

/// Are `ranks` more processes than this machine has PUs online?
pub(crate) fn crowded(ranks: u32) -> bool {
    // SAFETY: no memory is passed.
    i64::from(ranks) > unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }
}

/// How `ranks` processes wait on this machine.
pub(crate) fn waiting(ranks: u32) -> Result<Waiting, Failure> {
    let host = Patience::new(Bounded::new(Only::<Yield>::new(), None))?;
    Ok(if crowded(ranks) { SpinThen::crowded(host) } else { SpinThen::spinning(host) })
}

/// Another host's waiting, with a bound on each wait.
#[derive(Clone, Copy, Debug)]
pub struct Bounded<H> {
    host: H,
    bound: Bound,
    /// When the clock was read first.
    begin: Option<Instant>,
    /// Calls until the clock is read again.
    calls: u32,
}

impl<H> Bounded<H> {
    /// `host`'s waiting with the longest wait `most`; `None`: no bound.
    pub const fn new(host: H, most: Option<Duration>) -> Self {
        Self { host, bound: Bound::new(most), begin: None, calls: 0 }
    }

    /// The same with half the bound, for a caller that waits twice.
    #[must_use]
    pub fn halved(self) -> Self {
        Self::new(self.host, self.bound.most().map(|most| most / 2))
    }

    /// Checks the bound by `is_over`. Without a bound no clock is read.
    fn ask(&mut self, is_over: fn(&mut Bound, Duration) -> bool, on: &WaitSet) -> Result<(), WaitError> {
        if self.bound.most().is_none() {
            return Ok(());
        }
        let now = self.begin.get_or_insert_with(Instant::now).elapsed();
        let is_over = is_over(&mut self.bound, now);
        self.calls = self.bound.pace();
        if is_over { Err(on.late()) } else { Ok(()) }
    }
}

impl<H: Relax> Relax for Bounded<H> {
    fn begin(&mut self) {
        self.bound.begin();
        self.host.begin();
    }

    fn relax(&mut self, on: &WaitSet) -> Result<(), WaitError> {
        match self.calls.checked_sub(1) {
            Some(calls) => self.calls = calls,
            None => self.ask(Bound::waits, on)?,
        }
        self.host.relax(on)
    }

    fn glance(&mut self, on: &WaitSet) -> Result<u32, WaitError> {
        self.ask(Bound::looks, on)?;
        let calls = self.host.glance(on)?;
        Ok(if self.bound.most().is_some() { calls.min(self.calls) } else { calls })
    }

    fn set_bound(&mut self, most: Option<Duration>) -> bool {
        self.bound.set(most);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_kernel::machine::poll::{Await, Slot, Source};
    use unisono_kernel::machine::wait::relax::Loop;

    const BOUND: Duration = Duration::from_millis(20);

    const NOP: Only<Loop> = Only::new();

    fn on() -> WaitSet {
        WaitSet::one(Await { source: Source::Message(Slot(0)), peer: Some(3), operation: 1, stage: 0 })
    }

    #[test]
    fn a_late_rank_is_named_and_each_wait_has_its_own_bound() {
        let mut host = Bounded::new(NOP, Some(BOUND));
        for _ in 0..2 {
            host.begin();
            assert_eq!(host.relax(&on()), Ok(()));
            std::thread::sleep(BOUND);
            let mut again = (0..100).map(|_| host.relax(&on()));
            assert_eq!(again.find(Result::is_err), Some(Err(WaitError::Late(3))));
        }
        host.set_bound(None);
        host.begin();
        assert_eq!(host.relax(&on()), Ok(()));
    }

    #[test]
    fn a_caller_that_polls_now_and_then_gets_the_error_too() {
        let mut host = Bounded::new(NOP, Some(BOUND));
        host.begin();
        let begin = Instant::now();
        let mut looks = (0..100).map(|_| {
            std::thread::sleep(BOUND / 4);
            host.glance(&on())
        });
        assert_eq!(looks.find(Result::is_err), Some(Err(WaitError::Late(3))));
        assert!(begin.elapsed() > BOUND);
        assert_eq!(Bounded::new(NOP, None).glance(&on()), { NOP }.glance(&on()));
    }
}
