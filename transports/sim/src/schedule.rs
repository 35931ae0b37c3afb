//! Deviations from the plain model: delays, late and slow ranks, ranks that stop. All that is random follows from one
//! seed.

use crate::fabric::Channel;
use crate::network::Unfit;
use crate::time::Time;
use rand::{RngExt, SeedableRng};
use rand_xorshift::XorShiftRng;
use std::collections::BTreeMap;
use unisono_kernel::Rank;

/// A rank that stops: it is polled this many times, and never again. Messages that it has sent still arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The rank.
    pub rank: Rank,
    /// Number of polls before it stops; 0: it never runs.
    pub polls: u64,
}

/// Deviations from the plain model. Times are virtual nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The seed of all random numbers.
    pub seed: u64,
    /// Each message is delayed by a random time of up to this. So messages of different channels (ordered pairs of
    /// ranks) may overtake each other; those of one channel never do.
    pub delay: f64,
    /// Each rank starts at a random moment from 0 to this.
    pub skew: f64,
    /// Number of randomly chosen ranks that are slow (stragglers).
    pub stragglers: u32,
    /// A straggler's overheads o_s and o_r are this many times as long.
    pub slowdown: f64,
    /// The ranks that stop.
    pub dropped: Vec<Dropped>,
    /// The run ends at this moment. A rank that could still continue then is late.
    pub deadline: f64,
}

impl Default for Schedule {
    /// The plain model: nothing is random, no rank stops, and the deadline is a day.
    fn default() -> Self {
        Self { seed: 0, delay: 0.0, skew: 0.0, stragglers: 0, slowdown: 1.0, dropped: Vec::new(), deadline: DAY }
    }
}

/// Nanoseconds of a day.
const DAY: f64 = 86_400e9;

impl Schedule {
    /// Checks that all parameters are in their ranges, for this number of ranks.
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

/// The random part of a schedule, while it runs.
#[derive(Debug)]
pub(crate) struct Chance {
    random: XorShiftRng,
    delay: Time,
    slowdown: f64,
    /// By rank: is it a straggler?
    slow: Vec<bool>,
    /// When the last message of each channel arrives at its last port, if there are delays.
    channels: BTreeMap<Channel, Time>,
}

impl Chance {
    /// The state at the start of a run, and the moments at which the ranks start.
    pub(crate) fn new(schedule: &Schedule, ranks: u32) -> (Self, Vec<Time>) {
        let mut random = XorShiftRng::seed_from_u64(schedule.seed);
        let skew = Time::from_ns(schedule.skew).ps();
        let begin = (0..ranks).map(|_| Time::from_ps(random.random_range(0..=skew))).collect();
        let mut slow = vec![false; ranks as usize];
        let mut left = schedule.stragglers;
        // `left` stragglers are to be chosen among `unseen` ranks. So each set of ranks is equally likely.
        for (slow, unseen) in slow.iter_mut().zip((1..=ranks).rev()) {
            *slow = random.random_range(0..unseen) < left;
            left -= u32::from(*slow);
        }
        let delay = Time::from_ns(schedule.delay);
        (Self { random, delay, slowdown: schedule.slowdown, slow, channels: BTreeMap::new() }, begin)
    }

    /// The time of an overhead of `ns` nanoseconds on `rank`.
    pub(crate) fn overhead(&self, rank: Rank, ns: f64) -> Time {
        let slow = self.slow.get(rank as usize).is_some_and(|slow| *slow);
        Time::from_ns(if slow { ns * self.slowdown } else { ns })
    }

    /// The moment at which a message arrives that would arrive at `at` without delay: never before an earlier one of
    /// its channel.
    pub(crate) fn delayed(&mut self, channel: Channel, at: Time) -> Time {
        if self.delay == Time::ZERO {
            return at;
        }
        let at = at + Time::from_ps(self.random.random_range(0..=self.delay.ps()));
        let last = self.channels.entry(channel).or_default();
        *last = at.max(*last);
        *last
    }
}
