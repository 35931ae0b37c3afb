//! How a writer passes through its queue.

/// Which slots of its queue a writer uses in turn before it comes back to the first one, and how much of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lap {
    /// The number of slots.
    pub slots: u64,
    /// Does each fragment lie at its slot's start, so that the lap takes few lines? Else those that are not short lie elsewhere
    /// in it each time round the queue ([`in_slot`](super::Layout::in_slot)).
    pub narrow: bool,
}

impl Lap {
    /// All slots, and all of each.
    pub const ALL: Self = Self::wide(u64::MAX);

    /// The bit of a word that says that a lap is narrow.
    const NARROW: u64 = 1 << 63;

    /// So many slots, and all of each.
    pub const fn wide(slots: u64) -> Self {
        Self { slots, narrow: false }
    }

    /// So many slots, and the start of each.
    pub const fn narrow(slots: u64) -> Self {
        Self { slots, narrow: true }
    }

    /// One word that says it, for a lap of fewer than 2⁶³ slots.
    #[inline]
    pub(crate) const fn word(self) -> u64 {
        if self.narrow { self.slots | Self::NARROW } else { self.slots }
    }

    /// What a word says, whatever it holds.
    #[inline]
    pub(crate) const fn of_word(word: u64) -> Self {
        Self { slots: word & !Self::NARROW, narrow: word & Self::NARROW != 0 }
    }
}
