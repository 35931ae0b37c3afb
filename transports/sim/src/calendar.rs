//! The queue of events, ordered by virtual time.

use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use unisono_kernel::Rank;

/// What happens at a moment of virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The rank's machine is polled.
    Poll(Rank),
    /// The message arrives at port number `stage` of its path.
    Enter { message: usize, stage: usize },
    /// The message's last byte has left the sender.
    Sent { message: usize },
    /// The message's last byte has arrived at the receiver.
    Arrived { message: usize },
}

/// Events ordered by time; those of the same time in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Calendar {
    /// Time, number in the order of adding, event.
    queue: BinaryHeap<Reverse<(Time, u64, Event)>>,
    /// Number of events added so far.
    added: u64,
}

impl Calendar {
    /// Adds an event that happens at `at`.
    pub(crate) fn add(&mut self, at: Time, event: Event) {
        self.queue.push(Reverse((at, self.added, event)));
        self.added += 1;
    }

    /// Removes the next event.
    pub(crate) fn next(&mut self) -> Option<(Time, Event)> {
        self.queue.pop().map(|Reverse((at, _, event))| (at, event))
    }
}
