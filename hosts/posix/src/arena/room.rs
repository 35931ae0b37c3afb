//! Which bytes of an arena are free: a first-fit allocator that only keeps offsets and lengths.

use std::collections::BTreeMap;

/// Free and taken bytes.
#[derive(Clone, Debug)]
pub struct Room {
    /// Free ranges, offset to length; two of them never adjoin.
    free: BTreeMap<u64, u64>,
    total: u64,
    used: u64,
    most_used: u64,
}

impl Room {
    /// The `total` bytes from `start` on, all of them free.
    pub fn new(start: u64, total: u64) -> Self {
        let free = (total > 0).then_some((start, total)).into_iter().collect();
        Self { free, total, used: 0, most_used: 0 }
    }

    /// Takes `len` bytes, at least one, from the first free range that has room; returns their offset.
    pub fn take(&mut self, len: u64) -> Option<u64> {
        let (&at, &room) = self.free.iter().find(|(_, room)| (1..=**room).contains(&len))?;
        self.free.remove(&at);
        if room > len {
            self.free.insert(at + len, room - len);
        }
        self.used += len;
        self.most_used = self.most_used.max(self.used);
        Some(at)
    }

    /// Frees bytes that were taken, all or a part of them.
    pub fn give(&mut self, at: u64, len: u64) {
        if len == 0 {
            return;
        }
        self.used = self.used.saturating_sub(len);
        let (mut at, mut len) = (at, len);
        if let Some((&before, &room)) = self.free.range(..at).next_back()
            && before + room == at
        {
            self.free.remove(&before);
            (at, len) = (before, room + len);
        }
        if let Some(room) = self.free.remove(&(at + len)) {
            len += room;
        }
        self.free.insert(at, len);
    }

    /// Bytes of the longest free range.
    pub fn longest(&self) -> u64 {
        self.free.values().copied().max().unwrap_or(0)
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
