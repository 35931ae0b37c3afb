//! What the members of a new communicator are told of its memory: eight words, from the process whose arena it is in.
//!
//! ```text
//! word 0  what the words are (48 bits), small slots (8), full (8)
//!      1  offset of the slice in the arena; full: bytes that are needed
//!      2  epoch of the term; full: bytes that are free
//!      3  operations   4  fragment clock   5  the papers' sets   6  central barriers: where the term begins
//!      7  parent: what all members must say alike
//! ```
//! They come from another process: the slice is checked against the arena's map ([`crate::arena::Slice::new`]); a base that
//! is not the slice's yields errors or wrong data, as corrupt segments do.

use crate::arena::Reserved;
use unisono_kernel::region::{Base, Term};

/// As it travels.
pub(super) type Words = [u64; 8];

/// "birth" in its upper bits: no program's broadcast is taken for one.
const MAGIC: u64 = 0x6269_7274_6801 << 16;

/// Where a new communicator begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Birth {
    /// On this slice.
    At {
        /// Its offset in the arena.
        offset: u64,
        /// With small slots.
        small: bool,
        /// Where it begins.
        term: Term,
    },
    /// The arena is full.
    Full {
        /// Bytes of the smallest slice that would do.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
}

impl From<Reserved> for Birth {
    fn from(Reserved { offset, small, term, .. }: Reserved) -> Self {
        Self::At { offset, small, term }
    }
}

impl Birth {
    /// As it travels among the members of `parent`.
    pub(super) fn encode(&self, parent: u64) -> Words {
        match *self {
            Self::At { offset, small, term: Term { epoch, base } } => {
                let Base { operation, clock, sets, centrals } = base;
                [MAGIC | u64::from(small) << 8, offset, epoch.into(), operation, clock, sets, centrals, parent]
            }
            Self::Full { needed, free } => [MAGIC | 1, needed, free, 0, 0, 0, 0, parent],
        }
    }

    /// Reads it; `None`: it is none, or another communicator's.
    pub(super) fn decode(words: &Words, parent: u64) -> Option<Self> {
        let &[what, place, epoch, operation, clock, sets, centrals, of] = words;
        if of != parent {
            return None;
        }
        if what == MAGIC | 1 {
            return Some(Self::Full { needed: place, free: epoch });
        }
        let small = match what ^ MAGIC {
            0 => false,
            0x100 => true,
            _ => return None,
        };
        let (epoch, base) = (epoch.try_into().ok()?, Base { operation, clock, sets, centrals });
        Some(Self::At { offset: place, small, term: Term { epoch, base } })
    }
}

/// Words as bytes.
pub(super) fn to_bytes<const N: usize, const B: usize>(words: &[u64; N]) -> [u8; B] {
    const { assert!(B == 8 * N) };
    let mut bytes = [0; B];
    bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(to, from)| *to = from.to_ne_bytes());
    bytes
}

/// Bytes as words; missing ones are 0.
pub(super) fn to_words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    words.iter_mut().zip(bytes.as_chunks().0).for_each(|(to, from)| *to = u64::from_ne_bytes(*from));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let base = Base { operation: 1, clock: 2, sets: 3, centrals: 4 };
        for birth in [
            Birth::At { offset: 8192, small: true, term: Term { epoch: 7, base } },
            Birth::At { offset: 0, small: false, term: Term::FIRST },
            Birth::Full { needed: 10, free: 9 },
        ] {
            let words = birth.encode(5);
            assert_eq!(Birth::decode(&words, 5), Some(birth));
            assert_eq!(Birth::decode(&words, 6), None);
            let bytes: [u8; 64] = to_bytes(&words);
            assert_eq!(to_words(&bytes), words);
            for bit in 2..64 {
                let mut other = words;
                other[0] ^= 1 << bit;
                let read = Birth::decode(&other, 5);
                assert!(read.is_none() || bit == 8, "{bit}: {read:?}");
            }
        }
        assert_eq!(Birth::decode(&[0; 8], 0), None);
    }
}
