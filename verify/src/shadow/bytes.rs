//! The last accesses to all bytes of a segment, for rule S1.

use crate::explore::Span;
use std::collections::BTreeMap;
use std::fmt;
use unisono_kernel::Rank;

/// A vector clock: for each process, the number of its accesses that happen before this point.
pub(crate) type Clock = [u32];

/// Joins `other` into `clock`: what happens before `other` happens before `clock`, too.
pub(crate) fn join(clock: &mut Clock, other: &Clock) {
    clock.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
}

/// An access: a process, and the access's number in it, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) rank: Rank,
    pub(crate) number: u32,
}

impl Event {
    /// Does it happen before an event with this clock?
    pub(crate) fn is_before(self, clock: &Clock) -> bool {
        clock[self.rank as usize] >= self.number
    }
}

/// Another process's access to the same bytes, without an order between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Race {
    rank: Rank,
    writes: bool,
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "overlap: rank {} may {} there now", self.rank, if self.writes { "write" } else { "read" })
    }
}

/// A stretch of bytes that had the same accesses.
#[derive(Clone, Debug, Default)]
struct Stretch {
    end: u64,
    written: Option<Event>,
    /// The last reads since the write, by rank; empty if there is none yet.
    read: Vec<u32>,
}

/// All bytes of a segment that were accessed, by the first byte of each stretch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes(BTreeMap<u64, Stretch>);

impl Bytes {
    /// `event`, which has this clock, reads or writes an extent. It must happen after the last write of each byte and,
    /// if it writes, after all reads.
    pub(crate) fn touch(&mut self, event: Event, clock: &Clock, at: Span, writes: bool) -> Result<(), Race> {
        let (from, to) = (at.offset, at.end());
        self.cut(from);
        self.cut(to);
        for stretch in self.0.range(from..to).map(|(_, stretch)| stretch) {
            if let Some(Event { rank, .. }) = stretch.written.filter(|written| !written.is_before(clock)) {
                return Err(Race { rank, writes: true });
            }
            let reader = stretch.read.iter().zip(clock).position(|(read, known)| read > known);
            if let Some(rank) = reader.filter(|_| writes) {
                return Err(Race { rank: rank as Rank, writes: false });
            }
        }
        if writes {
            let old: Vec<u64> = self.0.range(from..to).map(|(&from, _)| from).collect();
            old.iter().for_each(|from| drop(self.0.remove(from)));
            self.0.insert(from, Stretch { end: to, written: Some(event), read: Vec::new() });
        } else {
            self.fill(from, to);
            for (_, stretch) in self.0.range_mut(from..to) {
                stretch.read.resize(clock.len(), 0);
                stretch.read[event.rank as usize] = event.number;
            }
        }
        Ok(())
    }

    /// Splits the stretch around `offset`, if there is one.
    fn cut(&mut self, offset: u64) {
        if let Some((_, stretch)) = self.0.range_mut(..offset).next_back().filter(|(_, stretch)| stretch.end > offset) {
            let behind = stretch.clone();
            stretch.end = offset;
            self.0.insert(offset, behind);
        }
    }

    /// Makes stretches of bytes that were not accessed yet.
    fn fill(&mut self, from: u64, to: u64) {
        let mut at = from;
        let known: Vec<_> = self.0.range(from..to).map(|(&from, stretch)| (from, stretch.end)).collect();
        for (from, end) in known.into_iter().chain([(to, to)]) {
            if at < from {
                self.0.insert(at, Stretch { end: from, ..Stretch::default() });
            }
            at = end;
        }
    }
}

impl From<Race> for String {
    fn from(race: Race) -> Self {
        race.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_kernel::region::{Layout, Params};

    fn touch(bytes: &mut Bytes, rank: Rank, clock: [u32; 2], (at, len): (u64, u64), writes: bool) -> Result<(), Race> {
        let slot = Layout::new(Params::new(2)).unwrap().slot(0, 0).part(at, len);
        bytes.touch(Event { rank, number: clock[rank as usize] }, &clock, Span::of(0, slot), writes)
    }

    #[test]
    fn what_no_word_orders_is_a_race() {
        let mut bytes = Bytes::default();
        assert_eq!(touch(&mut bytes, 0, [1, 0], (0, 64), true), Ok(()));
        // Before the writer's publication was acquired, and after.
        assert_eq!(touch(&mut bytes, 1, [0, 1], (10, 5), false), Err(Race { rank: 0, writes: true }));
        assert_eq!(touch(&mut bytes, 1, [1, 1], (10, 5), false), Ok(()));
        assert_eq!(touch(&mut bytes, 0, [2, 0], (10, 5), false), Ok(()));
        // The five bytes are read, the others free.
        assert_eq!(touch(&mut bytes, 0, [2, 0], (0, 10), true), Ok(()));
        assert_eq!(touch(&mut bytes, 0, [2, 0], (15, 49), true), Ok(()));
        assert_eq!(touch(&mut bytes, 0, [2, 0], (14, 1), true), Err(Race { rank: 1, writes: false }));
        assert_eq!(touch(&mut bytes, 0, [2, 1], (14, 1), true), Ok(()));
    }

    #[test]
    fn a_read_of_bytes_that_nobody_wrote_counts() {
        let mut bytes = Bytes::default();
        assert_eq!(touch(&mut bytes, 1, [0, 1], (20, 4), true), Ok(()));
        assert_eq!(touch(&mut bytes, 1, [0, 2], (16, 16), false), Ok(()));
        assert_eq!(touch(&mut bytes, 0, [1, 1], (28, 100), true), Err(Race { rank: 1, writes: false }));
        assert_eq!(touch(&mut bytes, 0, [1, 1], (32, 100), true), Ok(()));
        assert_eq!(touch(&mut bytes, 0, [1, 2], (16, 4), true), Ok(()));
    }
}
