//! What may go differently: delays, late and slow ranks, ranks that stop. All of it follows from one seed.

use crate::network::Unfit;
use crate::time::Time;
use rand::{RngExt, SeedableRng};
use rand_xorshift::XorShiftRng;
use std::collections::BTreeMap;
use unisono_kernel::Rank;

/// A rank that stops: it is polled so many times, and never again. What it has sent is still on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Which.
    pub rank: Rank,
    /// Polls before it stops; 0: it never runs.
    pub polls: u64,
}

/// What goes differently from the plain model. Spans are virtual nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// All chance follows from it.
    pub seed: u64,
    /// Each message is delayed by a random span of up to this on its way. So messages of different channels (ordered pairs of
    /// ranks) overtake each other; those of one channel never do.
    pub delay: f64,
    /// Each rank begins at a random moment of up to this.
    pub skew: f64,
    /// How many ranks, chosen by chance, are stragglers.
    pub stragglers: u32,
    /// A straggler's overheads o_s and o_r are this many times as long.
    pub slowdown: f64,
    /// Ranks that stop.
    pub dropped: Vec<Dropped>,
    /// Nothing happens after this moment: who still waits then is late.
    pub deadline: f64,
}

impl Default for Schedule {
    /// The plain model: nothing is left to chance, nobody stops, a day may pass.
    fn default() -> Self {
        Self { seed: 0, delay: 0.0, skew: 0.0, stragglers: 0, slowdown: 1.0, dropped: Vec::new(), deadline: DAY }
    }
}

/// Nanoseconds of a day.
const DAY: f64 = 86_400e9;

impl Schedule {
    pub(crate) fn check(&self, ranks: u32) -> Result<(), Unfit> {
        let ranks = f64::from(ranks);
        let all = [
            ("delay", self.delay, 0.0, DAY),
            ("skew", self.skew, 0.0, DAY),
            ("stragglers", self.stragglers.into(), 0.0, ranks),
            ("slowdown", self.slowdown, 1.0, 1e6),
            ("deadline", self.deadline, 0.0, DAY),
        ];
        let dropped = self.dropped.iter().map(|one| ("dropped rank", one.rank.into(), 0.0, ranks - 1.0));
        for (name, value, least, most) in all.into_iter().chain(dropped) {
            if !(least..=most).contains(&value) {
                return Err(Unfit { parameter: name.into(), value, least, most });
            }
        }
        Ok(())
    }
}

/// A schedule while it runs.
#[derive(Debug)]
pub(crate) struct Chance {
    random: XorShiftRng,
    delay: Time,
    slowdown: f64,
    /// By rank.
    slow: Vec<bool>,
    /// When the last message of each delayed channel came.
    channels: BTreeMap<(Rank, Rank), Time>,
}

impl Chance {
    /// With the moment at which each rank begins.
    pub(crate) fn new(schedule: &Schedule, ranks: u32) -> (Self, Vec<Time>) {
        let mut random = XorShiftRng::seed_from_u64(schedule.seed);
        let skew = Time::from_ns(schedule.skew).ps();
        let begin = (0..ranks).map(|_| Time::from_ps(random.random_range(0..=skew))).collect();
        let mut slow = vec![false; ranks as usize];
        let mut left = schedule.stragglers;
        // As many of those not yet looked at are left to choose: each set of ranks is equally likely.
        for (slow, unseen) in slow.iter_mut().zip((1..=ranks).rev()) {
            *slow = random.random_range(0..unseen) < left;
            left -= u32::from(*slow);
        }
        let delay = Time::from_ns(schedule.delay);
        (Self { random, delay, slowdown: schedule.slowdown, slow, channels: BTreeMap::new() }, begin)
    }

    /// An overhead of `ns` on `rank`.
    pub(crate) fn overhead(&self, rank: Rank, ns: f64) -> Time {
        let slow = self.slow.get(rank as usize).is_some_and(|slow| *slow);
        Time::from_ns(if slow { ns * self.slowdown } else { ns })
    }

    /// When a message that would come at `at` comes: never before one of its channel that left earlier.
    pub(crate) fn delayed(&mut self, channel: (Rank, Rank), at: Time) -> Time {
        if self.delay == Time::ZERO {
            return at;
        }
        let at = at + Time::from_ps(self.random.random_range(0..=self.delay.ps()));
        let last = self.channels.entry(channel).or_default();
        *last = at.max(*last);
        *last
    }
}
