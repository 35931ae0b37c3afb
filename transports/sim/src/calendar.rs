//! What happens when: the queue of events.

use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use unisono_kernel::Rank;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The rank's machine is polled.
    Poll(Rank),
    /// A message comes to the port of this stage of its path.
    Enter { message: usize, stage: usize },
    /// A message's last byte has left the sender.
    Sent { message: usize },
    /// A message's last byte is there.
    Arrived { message: usize },
}

/// Events by time; those of one time in the order in which they were entered.
#[derive(Debug, Default)]
pub(crate) struct Calendar {
    queue: BinaryHeap<Reverse<(Time, u64, Event)>>,
    entered: u64,
}

impl Calendar {
    pub(crate) fn enter(&mut self, at: Time, event: Event) {
        self.queue.push(Reverse((at, self.entered, event)));
        self.entered += 1;
    }

    pub(crate) fn next(&mut self) -> Option<(Time, Event)> {
        self.queue.pop().map(|Reverse((at, _, event))| (at, event))
    }
}
