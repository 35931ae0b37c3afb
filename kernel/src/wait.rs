//! How to wait: spin, then let the host do something useful, and again. How to look: now and then, what a wait asks.

mod bound;

pub use bound::Bound;

use crate::error::WaitError;
use crate::step::Awaits;
use crate::transport::{Observe, Wait};
use core::time::Duration;

/// What a host does between two bursts of spinning: yield the core, move its own messages, look
/// whether the awaited peers live.
pub trait Relax {
    /// A wait begins that was not over after the first burst, or looks in vain for something new: a bound of time
    /// counts from here.
    #[inline]
    fn begin(&mut self) {}

    /// Called again and again while `on` has not happened.
    ///
    /// # Errors
    /// The wait must end: a peer is gone or late.
    fn relax(&mut self, on: &Awaits) -> Result<(), WaitError>;

    /// The same for who looks for `on` again and again and computes in between: it must not cost more than a
    /// microsecond. Answers how many looks may go by until it is asked again.
    ///
    /// # Errors
    /// As [`Self::relax`].
    #[inline]
    fn glance(&mut self, on: &Awaits) -> Result<u32, WaitError> {
        let _ = on;
        Ok(LOOKS)
    }

    /// From now on each wait may take so long at most; `None`: for ever. False: this host has no clock.
    fn set_bound(&mut self, most: Option<Duration>) -> bool {
        most.is_none()
    }
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
///
/// A wait that returns although nothing has come, because a peer sets a word and takes it back, comes again: it goes on
/// where it stood, with the same bound of time.
#[derive(Clone, Copy, Debug)]
pub struct SpinThen<H> {
    /// Looks without a pause, once per wait.
    pub eager: u32,
    /// Looks with a pause, between two calls of the host.
    pub patient: u32,
    /// The host.
    pub host: H,
    /// What the host was asked about last, and how often.
    state: State,
    asked: u32,
    /// Returns that were not looked into, and looks until the host is asked.
    returns: u32,
    looks: u32,
}

/// What a process does that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Nothing,
    Waits(Awaits),
    Looks(Awaits),
}

impl<H> SpinThen<H> {
    /// For a core per process.
    pub const fn spinning(host: H) -> Self {
        Self::new(2000, 64, host)
    }

    /// For more processes than cores: whoever waits is in the way of whom it waits for.
    pub const fn crowded(host: H) -> Self {
        Self::new(0, 0, host)
    }

    /// So many looks without a pause, and with one.
    pub const fn new(eager: u32, patient: u32, host: H) -> Self {
        Self { eager, patient, host, state: State::Nothing, asked: 0, returns: 0, looks: 0 }
    }

    /// The same looks with another host.
    pub fn map<I>(self, host: impl FnOnce(H) -> I) -> SpinThen<I> {
        SpinThen::new(self.eager, self.patient, host(self.host))
    }
}

/// Calls of the host, a microsecond each at least, after which a wait is long enough to ask whether it can end.
const LONG: u32 = 1024;

/// Questions of who looks, after which it looks for long.
const SOME: u32 = 16;

/// Returns of which one is looked into: was it in vain?
const RETURNS: u32 = 1024;

/// Looks of which one asks a host that has no reason to choose another number.
const LOOKS: u32 = 32;

impl<H: Relax> SpinThen<H> {
    /// The host is to be asked about this.
    fn enter(&mut self, state: State) {
        if self.state != state {
            self.host.begin();
            (self.state, self.asked) = (state, 0);
        }
    }

    /// Can what is awaited still come?
    fn check<X: Observe + ?Sized>(&mut self, x: &mut X) -> Result<(), WaitError> {
        if let Some(poison) = x.poison() {
            return Err(WaitError::Poisoned(poison));
        }
        self.asked = self.asked.wrapping_add(1);
        if self.asked.is_multiple_of(LONG) { x.compare() } else { Ok(()) }
    }

    /// A wait is over. Was it, and so many before, for what is awaited still?
    #[inline]
    fn over<X: Observe + ?Sized>(&mut self, x: &mut X, on: &Awaits) -> Result<(), WaitError> {
        self.returns = self.returns.wrapping_add(1);
        if self.returns.is_multiple_of(RETURNS) { self.suspect(x, on) } else { Ok(()) }
    }

    #[cold]
    fn suspect<X: Observe + ?Sized>(&mut self, x: &mut X, on: &Awaits) -> Result<(), WaitError> {
        let state = State::Waits(*on);
        if self.state != state {
            self.enter(state);
            return Ok(());
        }
        let result = self.check(x).and_then(|()| self.host.relax(on));
        self.end(x, on, result)
    }

    /// A wait that is not over after the first burst.
    fn long<X: Observe + ?Sized>(&mut self, x: &mut X, on: &Awaits) -> Result<(), WaitError> {
        self.enter(State::Waits(*on));
        loop {
            for _ in 0..self.patient {
                if x.ready(on) {
                    return self.over(x, on);
                }
                core::hint::spin_loop();
            }
            self.check(x)?;
            self.host.relax(on)?;
            if x.ready(on) {
                return Ok(());
            }
        }
    }

    #[cold]
    fn glance<X: Observe + ?Sized>(&mut self, x: &mut X, on: &Awaits) -> Result<(), WaitError> {
        self.enter(State::Looks(*on));
        self.check(x)?;
        // Looks may be far apart: whoever waits for this process shall hear soon that it waits itself.
        if self.asked >= SOME && self.asked.is_power_of_two() {
            x.compare()?;
        }
        self.looks = self.host.glance(on)?;
        Ok(())
    }

    /// Whoever waits again after an error begins anew.
    fn end<X: Observe + ?Sized>(&mut self, x: &X, on: &Awaits, result: Result<(), WaitError>) -> Result<(), WaitError> {
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

impl<X: Observe + ?Sized, H: Relax> Wait<X> for SpinThen<H> {
    #[inline]
    fn wait(&mut self, x: &mut X, on: &Awaits) -> Result<(), WaitError> {
        for _ in 0..self.eager {
            if x.ready(on) {
                return self.over(x, on);
            }
        }
        let result = self.long(x, on);
        self.end(x, on, result)
    }

    #[inline]
    fn look(&mut self, x: &mut X, on: &Awaits) -> Result<(), WaitError> {
        if self.looks > 0 {
            self.looks -= 1;
            return Ok(());
        }
        let result = self.glance(x, on);
        self.end(x, on, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Cause, Poison};
    use crate::p2p::Tag;
    use crate::step::{Await, Slot, Source};

    const POISON: Poison = Poison { rank: 1, operation: 1, cause: Cause::Died };

    /// A context whose word is there, or not, and that is poisoned, or not.
    struct World {
        ready: bool,
        poison: Option<Poison>,
        compared: u32,
    }

    const TOGGLED: World = World { ready: true, poison: None, compared: 0 };

    impl Observe for World {
        fn ready(&mut self, _: &Awaits) -> bool {
            self.ready
        }
        fn poison(&self) -> Option<Poison> {
            self.poison
        }
        fn compare(&mut self) -> Result<(), WaitError> {
            self.compared += 1;
            Ok(())
        }
    }

    /// Has a bound: of calls since a wait began.
    #[derive(Default)]
    struct Calls {
        begun: u32,
        since: u32,
        looks: u32,
    }

    const BOUND: u32 = 2000;

    impl Relax for Calls {
        fn begin(&mut self) {
            self.begun += 1;
            self.since = 0;
        }
        fn relax(&mut self, on: &Awaits) -> Result<(), WaitError> {
            self.glance(on).map(drop)
        }
        fn glance(&mut self, on: &Awaits) -> Result<u32, WaitError> {
            self.since += 1;
            if self.since > BOUND { Err(on.late()) } else { Ok(self.looks) }
        }
    }

    fn on(turn: u64) -> Awaits {
        Awaits::one(Await { source: Source::Message(Slot(0)), peer: Some(1), operation: Tag(1).0, turn })
    }

    fn policies() -> [SpinThen<Calls>; 3] {
        let host = Calls::default;
        [SpinThen::spinning(host()), SpinThen::crowded(host()), SpinThen::new(0, 64, host())]
    }

    /// Waits or looks `times` for what `on` says.
    fn again(
        times: u32,
        on: impl Fn(u32) -> Awaits,
        mut once: impl FnMut(&Awaits) -> Result<(), WaitError>,
    ) -> Result<(), WaitError> {
        (0..times).try_for_each(|round| once(&on(round)))
    }

    const MANY: u32 = RETURNS * (BOUND + 3);

    #[test]
    fn a_word_that_is_toggled_hides_neither_poison_nor_the_bound() {
        for mut policy in policies() {
            let mut x = TOGGLED;
            assert_eq!(again(MANY, |_| on(1), |on| policy.wait(&mut x, on)), Err(WaitError::Late(1)));
            assert!(x.compared > 0);
        }
        for mut policy in policies() {
            let mut x = World { poison: Some(POISON), ..TOGGLED };
            assert_eq!(again(3 * RETURNS, |_| on(1), |on| policy.wait(&mut x, on)), Err(WaitError::Poisoned(POISON)));
        }
    }

    #[test]
    fn each_event_has_a_bound_of_its_own() {
        for mut policy in policies() {
            let mut x = TOGGLED;
            assert_eq!(again(MANY, |round| on((round / 10).into()), |on| policy.wait(&mut x, on)), Ok(()));
            assert_eq!(again(MANY, |round| on((round / 10).into()), |on| policy.look(&mut x, on)), Ok(()));
        }
    }

    #[test]
    fn who_looks_again_and_again_hears_what_a_wait_hears() {
        for mut policy in policies() {
            let mut x = World { ready: false, ..TOGGLED };
            assert_eq!(again(MANY, |_| on(1), |on| policy.look(&mut x, on)), Err(WaitError::Late(1)));
            assert!(x.compared > 0);
            // A bound that is over begins anew for who goes on.
            assert_eq!(again(BOUND, |_| on(1), |on| policy.look(&mut x, on)), Ok(()));
            let mut x = World { poison: Some(POISON), ..x };
            assert_eq!(policy.look(&mut x, &on(1)), Err(WaitError::Poisoned(POISON)));
        }
    }

    #[test]
    fn a_host_says_how_often_it_is_asked_by_who_looks() {
        let host = Calls { looks: 9, ..Calls::default() };
        let (mut policy, mut x) = (SpinThen::spinning(host), World { ready: false, ..TOGGLED });
        assert_eq!(again(100, |_| on(1), |on| policy.look(&mut x, on)), Ok(()));
        assert_eq!((policy.host.begun, policy.host.since), (1, 10));
        // A wait for what was looked for begins.
        x.ready = true;
        let mut policy = SpinThen { eager: 0, ..policy };
        assert_eq!(policy.wait(&mut x, &on(1)), Ok(()));
        assert_eq!(policy.host.begun, 2);
    }

    #[test]
    fn a_host_without_a_clock_has_no_bound_and_is_asked_now_and_then() {
        assert_eq!([None, Some(Duration::ZERO)].map(|most| Nop.set_bound(most)), [true, false]);
        assert_eq!(Nop.glance(&on(1)), Ok(32));
    }

    #[test]
    fn who_has_looked_for_some_while_compares_now_and_then() {
        let (mut policy, mut x) = (SpinThen::crowded(Calls::default()), World { ready: false, ..TOGGLED });
        let compared = [15, 1, 15, 1, 31, 1].map(|looks| {
            assert_eq!(again(looks, |_| on(1), |on| policy.look(&mut x, on)), Ok(()));
            x.compared
        });
        assert_eq!(compared, [0, 1, 1, 2, 2, 3], "after 16, 32 and 64 looks");
    }

    #[test]
    fn who_is_late_is_said_by_the_context() {
        struct Late;
        impl Observe for Late {
            fn ready(&mut self, _: &Awaits) -> bool {
                false
            }
            fn poison(&self) -> Option<Poison> {
                None
            }
            fn late(&self, peer: Option<crate::Rank>) -> crate::Rank {
                peer.map_or(7, |peer| peer + 10)
            }
        }
        let nobody = Awaits::one(Await { source: Source::Message(Slot(0)), peer: None, operation: 1, turn: 1 });
        for (on, late) in [(on(1), 11), (nobody, 7)] {
            let mut policy = SpinThen::crowded(Calls { since: BOUND, ..Calls::default() });
            policy.host.begun = 0;
            let waited = (0..=BOUND).find_map(|_| policy.wait(&mut Late, &on).err());
            assert_eq!(waited, Some(WaitError::Late(late)));
        }
    }
}
