//! A bound of time on each wait, for hosts that have a clock.

use core::time::Duration;

/// How long one wait may take, and how often to read the clock. Times may come from any clock that does not go back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bound {
    most: Option<Duration>,
    /// How long the present wait has taken, since the first call about it.
    waited: Option<Duration>,
    /// The time of the last call.
    asked: Duration,
    /// See [`Self::pace`].
    pace: u32,
}

/// Most calls that may pass between two readings of the clock; and the time within which they must pass.
const CALLS: u32 = 31;
const SOON: Duration = Duration::from_micros(500);

impl Bound {
    /// A wait may take `most`; `None`: for ever.
    pub const fn new(most: Option<Duration>) -> Self {
        Self { most, waited: None, asked: Duration::ZERO, pace: 0 }
    }

    /// How long a wait may take.
    pub const fn most(&self) -> Option<Duration> {
        self.most
    }

    /// From now on a wait may take `most`.
    pub const fn set(&mut self, most: Option<Duration>) {
        (self.most, self.waited) = (most, None);
    }

    /// Another wait starts: its time counts from the next call on.
    pub const fn begin(&mut self) {
        self.waited = None;
    }

    /// Calls that may pass until the clock is read again: 0 if calls are far apart, as when the process yields or
    /// computes in between.
    pub const fn pace(&self) -> u32 {
        self.pace
    }

    /// Has a process that only waits waited too long?
    pub fn waits(&mut self, now: Duration) -> bool {
        self.count(now, Duration::MAX)
    }

    /// Has a process that looks now and then waited too long? The time between two looks, in which it may have
    /// computed, counts for half the bound at most.
    pub fn looks(&mut self, now: Duration) -> bool {
        self.count(now, self.most.map_or(Duration::MAX, |most| most / 2))
    }

    /// Adds the time since the last call, `longest` at most; the first call of a wait adds nothing.
    fn count(&mut self, now: Duration, longest: Duration) -> bool {
        let since = now.saturating_sub(self.asked);
        self.pace = if since < SOON { (2 * self.pace + 1).min(CALLS) } else { 0 };
        self.asked = now;
        let waited = self.waited.map_or(Duration::ZERO, |waited| waited.saturating_add(since.min(longest)));
        self.waited = Some(waited);
        self.most.is_some_and(|most| waited > most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_wait_is_too_long_behind_its_bound() {
        let mut bound = Bound::new(Some(ms(10)));
        assert_eq!([5, 15, 16, 100].map(|now| bound.waits(ms(now))), [false, false, true, true]);
        bound.begin();
        assert_eq!([101, 111, 112].map(|now| bound.waits(ms(now))), [false, false, true]);
        bound.begin();
        assert_eq!([200, 211].map(|now| bound.waits(ms(now))), [false, true]);
        bound.set(None);
        assert_eq!([112, 1_000_000].map(|now| bound.waits(ms(now)) || bound.looks(ms(now))), [false, false]);
    }

    #[test]
    fn what_is_computed_between_two_looks_counts_for_half_a_bound() {
        let mut bound = Bound::new(Some(ms(10)));
        assert_eq!([0, 5, 500, 501].map(|now| bound.looks(ms(now))), [false, false, false, true]);
        bound.begin();
        assert_eq!([900, 1000, 1100, 1200].map(|now| bound.looks(ms(now))), [false, false, false, true]);
    }

    #[test]
    fn the_clock_is_read_rarely_while_calls_are_short() {
        let mut bound = Bound::new(None);
        let pace = |now: u64, bound: &mut Bound| {
            assert!(!bound.waits(Duration::from_micros(now)));
            bound.pace()
        };
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(|now| pace(now, &mut bound)), [1, 3, 7, 15, 31, 31, 31]);
        assert_eq!([507, 600, 601].map(|now| pace(now, &mut bound)), [0, 1, 3], "soon is before half a millisecond");
        assert_eq!([1200, 1201].map(|now| pace(now, &mut bound)), [0, 1]);
        assert_eq!([None, Some(ms(3))].map(|most| Bound::new(most).most()), [None, Some(ms(3))]);
    }
}
