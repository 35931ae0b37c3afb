//! What many cores share, and what only so many lines pass in a time: a link between packages, the way out of a group, memory.

use crate::Time;
use std::collections::HashMap;

/// The shortest time, in nanoseconds, in which lines are counted.
const SPAN: f64 = 100.0;

/// One of them. Cores that copy are ahead of others, so it can't just be busy until a moment: in each span it takes so many lines.
#[derive(Clone, Debug)]
pub(super) struct Way {
    span: f64,
    most: u32,
    taken: HashMap<u64, u32>,
}

impl Way {
    /// One that is busy with each line for so many nanoseconds; 0: any number may pass.
    pub(super) fn new(each: f64) -> Self {
        // A cast of a float saturates.
        let most = (SPAN / each).ceil() as u32;
        Self { span: f64::from(most) * each, most, taken: HashMap::new() }
    }

    /// When a line has passed that may do so at `at`.
    pub(super) fn pass(&mut self, at: Time) -> Time {
        if self.most == u32::MAX {
            return at;
        }
        let mut span = (at.ns() / self.span) as u64;
        loop {
            let taken = self.taken.entry(span).or_default();
            if *taken < self.most {
                *taken += 1;
                return at.max(Time::from_ns(span as f64 * self.span));
            }
            span += 1;
        }
    }
}
