//! Readings of how far cores are from each other, in groups (ours).
//!
//! The host of a virtual machine moves its cores: on to the threads of one physical core, to cores that share a cache, to cores that do
//! not. A cache line's round trip, and all that is made of such, then takes several times as long. Readings that are near each other
//! in time are a group. What is measured while the cores are in one group can be compared.

use serde::{Deserialize, Serialize};

/// Readings of a group, sorted: each is less than this times the one before.
const APART: f64 = 1.4;
/// Groups are near below this multiple of the fastest one. A line's round trip between threads of a core, and between cores that share
/// a cache: 50 and 125 ns; between cores that share none: 490 ns.
const NEAR: f64 = 3.0;
/// Smaller groups are disturbances.
const LEAST_SHARE: f64 = 0.03;
/// Readings of a group: from and to these multiples of its median.
const WITHIN: (f64, f64) = (0.75, 1.35);

/// A group of readings.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Group {
    /// The median, in nanoseconds.
    pub ns: f64,
    /// Of all readings.
    pub share: f64,
}

impl Group {
    /// The groups of readings, ascending. Those of few readings are left out.
    pub fn of(mut readings: Vec<f64>) -> Vec<Self> {
        readings.sort_by(f64::total_cmp);
        let count = readings.len() as f64;
        let groups = readings.chunk_by(|a, b| *b < a * APART).filter_map(|group| {
            let (low, high) = (group.get((group.len() - 1) / 2)?, group.get(group.len() / 2)?);
            Some(Self { ns: f64::midpoint(*low, *high), share: group.len() as f64 / count })
        });
        groups.filter(|group| group.share >= LEAST_SHARE).collect()
    }

    /// Of the groups below three times the fastest one the one with most readings: on most machines, cores that share a cache.
    pub fn near(groups: &[Self]) -> Option<Self> {
        let fastest = groups.first()?.ns;
        let near = groups.iter().filter(|group| group.ns < NEAR * fastest);
        near.max_by(|a, b| a.share.total_cmp(&b.share)).copied()
    }

    /// The least and the most nanoseconds of what counts as one of the group.
    pub fn range(self) -> (u64, u64) {
        let at = |multiple: f64| (self.ns * multiple).round() as u64;
        (at(WITHIN.0), at(WITHIN.1))
    }

    /// Does a reading count as one of the group?
    pub fn has(self, ns: f64) -> bool {
        let (least, most) = self.range();
        (least as f64..=most as f64).contains(&ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 47, 110 and 490 ns, and what was interrupted.
    fn readings() -> Vec<f64> {
        let of = |count: usize, ns: f64| (0..count).map(move |i| ns + (i % 10) as f64);
        of(8, 47.0).chain(of(45, 105.0)).chain(of(40, 488.0)).chain([1000.0, 2000.0, 4000.0]).collect()
    }

    fn near(readings: Vec<f64>) -> Group {
        Group::near(&Group::of(readings)).unwrap()
    }

    #[test]
    fn near_is_the_fullest_of_those_below_three_times_the_fastest() {
        let groups = Group::of(readings());
        assert_eq!(groups.iter().map(|group| group.ns).collect::<Vec<_>>(), [50.5, 109.0, 492.5]);
        let near = near(readings());
        assert_eq!(near.ns, 109.0);
        assert!(near.has(113.0) && !near.has(47.0) && !near.has(490.0));
        assert!(Group::of(Vec::new()).is_empty() && Group::near(&[]).is_none());
    }

    #[test]
    fn threads_of_a_core_are_near_if_they_are_so_most_of_the_time() {
        let of = |threads: usize, cores: usize| near([vec![50.0; threads], vec![125.0; cores]].concat()).ns;
        assert_eq!((of(15, 85), of(85, 15)), (125.0, 50.0));
        // Cores that share no cache are not near, however often the cores are there.
        assert_eq!(near([vec![121.0; 8], vec![492.0; 92]].concat()).ns, 121.0);
    }
}
