//! Accesses to shared memory; one access is one transition.

use super::payload::Token;
use unisono_kernel::region::Extent;

/// The class of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// One writer, only grows.
    Flag,
    /// A mailword: one process sets it, the other clears it.
    Mail,
    /// Several writers.
    Counter,
}

/// A word: of one segment, or of all segments of a model, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// The word's class.
    pub class: Class,
    /// Byte offset.
    pub offset: u64,
}

/// An extent of a model's segments, which lie one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Span {
    /// An extent of the segment that begins at `begin`.
    pub(crate) const fn of(begin: u64, at: Extent) -> Self {
        Self { offset: begin + at.offset(), len: at.len() }
    }

    /// The offset after its last byte.
    pub(crate) const fn end(self) -> u64 {
        self.offset + self.len
    }
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
    BeginWrite(Span),
    /// Ends a copy into the segment: the bytes are there.
    EndWrite(Span, Token),
    /// Begins to copy out of the segment.
    BeginRead(Span),
    /// Ends a copy out of the segment: the bytes are read.
    EndRead(Span),
}

impl Access {
    /// The copy that this access ends: its extent, and whether it writes.
    pub(crate) const fn under_way(&self) -> Option<(Span, bool)> {
        match *self {
            Self::EndWrite(at, _) => Some((at, true)),
            Self::EndRead(at) => Some((at, false)),
            _ => None,
        }
    }

    /// The copy that this access begins: its extent, and whether it writes.
    pub(crate) const fn begins(&self) -> Option<(Span, bool)> {
        match *self {
            Self::BeginWrite(at) => Some((at, true)),
            Self::BeginRead(at) => Some((at, false)),
            _ => None,
        }
    }
}

/// Do the two extents share a byte?
pub(crate) const fn overlap(a: Span, b: Span) -> bool {
    a.offset < b.end() && b.offset < a.end()
}
