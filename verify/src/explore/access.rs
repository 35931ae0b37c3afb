//! Shared accesses: what one transition does.

use super::payload::Token;
use unisono_kernel::region::Extent;

/// What a word is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// One writer, only grows.
    Flag,
    /// One puts, the other clears.
    Mail,
    /// Several writers.
    Counter,
}

/// A word of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// What it is for.
    pub class: Class,
    /// Byte offset.
    pub offset: u64,
}

/// One shared access of one process. A copy is two: its begin and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// Loads a word.
    Load(Word),
    /// Stores a value: publish a flag, put or clear a mailword, set a counter.
    Store(Word, u64),
    /// Adds, wrapping; a subtraction adds the negative.
    Add(Word, u64),
    /// Stores the second value if the word is the first.
    Claim(Word, u64, u64),
    /// Begins to copy into the segment.
    BeginWrite(Extent),
    /// The bytes are there.
    EndWrite(Extent, Token),
    /// Begins to copy out of the segment.
    BeginRead(Extent),
    /// The bytes are out.
    EndRead(Extent),
}

impl Access {
    /// The copy that is under way before this access: its extent, and whether it writes.
    pub(crate) const fn under_way(&self) -> Option<(Extent, bool)> {
        match *self {
            Self::EndWrite(at, _) => Some((at, true)),
            Self::EndRead(at) => Some((at, false)),
            _ => None,
        }
    }

    /// The copy that this access begins: its extent, and whether it writes.
    pub(crate) const fn begins(&self) -> Option<(Extent, bool)> {
        match *self {
            Self::BeginWrite(at) => Some((at, true)),
            Self::BeginRead(at) => Some((at, false)),
            _ => None,
        }
    }
}

/// Do two extents share a byte?
pub(crate) const fn overlap(a: Extent, b: Extent) -> bool {
    a.offset() < b.offset() + b.len() && b.offset() < a.offset() + a.len()
}
