//! Which bytes of an arena or a heap are free: a best-fit allocator that only keeps offsets and lengths.

use super::Range;
use std::collections::{BTreeMap, BTreeSet};

/// Free and taken bytes.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// Free ranges, offset to length; two of them never adjoin.
    free: BTreeMap<u64, u64>,
    /// The same, length and offset.
    lengths: BTreeSet<(u64, u64)>,
    total: u64,
    used: u64,
    most_used: u64,
}

impl Room {
    /// The `total` bytes from `start` on, all of them free.
    pub fn new(start: u64, total: u64) -> Self {
        let mut room = Self { total, ..Self::default() };
        room.insert(start, total);
        room
    }

    fn insert(&mut self, at: u64, len: u64) {
        if len > 0 {
            self.free.insert(at, len);
            self.lengths.insert((len, at));
        }
    }

    fn remove(&mut self, at: u64) -> Option<u64> {
        let len = self.free.remove(&at)?;
        self.lengths.remove(&(len, at));
        Some(len)
    }

    /// Takes `len` bytes, at least one, from the shortest free range that has room, of equal ones the first; returns their
    /// offset.
    pub fn take(&mut self, len: u64) -> Option<u64> {
        let &(_, at) = self.lengths.range((len.max(1), 0)..).next().filter(|_| len > 0)?;
        self.take_at(at, len).then_some(at)
    }

    /// Takes the `len` bytes at `at`, if they are free and `at` is the start of a free range.
    pub fn take_at(&mut self, at: u64, len: u64) -> bool {
        if self.free.get(&at).is_none_or(|free| *free < len) {
            return false;
        }
        let free = self.remove(at).unwrap_or(len);
        self.insert(at + len, free - len);
        self.used += len;
        self.most_used = self.most_used.max(self.used);
        true
    }

    /// Frees bytes that were taken, all or a part of them. Returns the free range that they are in now.
    pub fn give(&mut self, at: u64, len: u64) -> Range {
        if len == 0 {
            return Range { offset: at, len };
        }
        self.used = self.used.saturating_sub(len);
        let (mut at, mut len) = (at, len);
        if let Some((&before, &room)) = self.free.range(..at).next_back()
            && before + room == at
        {
            self.remove(before);
            (at, len) = (before, room + len);
        }
        if let Some(room) = self.remove(at + len) {
            len += room;
        }
        self.insert(at, len);
        Range { offset: at, len }
    }

    /// Bytes of the longest free range.
    pub fn longest(&self) -> u64 {
        self.lengths.last().map_or(0, |(len, _)| *len)
    }

    /// Bytes in all.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Bytes taken.
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// The largest number of bytes that were taken at one time.
    pub const fn most_used(&self) -> u64 {
        self.most_used
    }
}
