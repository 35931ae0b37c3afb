//! Where the memory of a new communicator is: eight words that the process whose arena it is in sends to the members.
//!
//! ```text
//! word 0  magic number (48 bits), the slice's queues (8), the arena is full (8)
//!      1  offset of the slice in the arena; if full: bytes that are needed
//!      2  epoch of the term; if full: bytes that are free
//!      3  operations   4  fragment clock   5  the papers' sets   6  central barriers: the term's counts at its start
//!      7  the name of the parent communicator, which must be the receiver's
//! ```
//! The words come from another process, so the slice is checked against the arena's map ([`crate::arena::Slice::new`]).
//! Wrong counts cause errors or wrong data, as any corrupt segment does.

use crate::arena::{Queues, Reserved};
use unisono_kernel::region::{Base, Term};

/// The words of the message.
pub(super) type Words = [u64; 8];

/// The letters "birth" and a version in the upper bits, so that no other broadcast is taken for such a message.
const MAGIC: u64 = 0x6269_7274_6801 << 16;

/// Where the memory of a new communicator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Birth {
    /// In this slice of the sender's arena.
    At {
        /// Its offset in the arena.
        offset: u64,
        /// Its queues.
        queues: Queues,
        /// The term that starts on it.
        term: Term,
    },
    /// The sender's arena is full.
    Full {
        /// Bytes of the smallest slice that would do.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
}

impl From<Reserved> for Birth {
    fn from(Reserved { offset, queues, term, .. }: Reserved) -> Self {
        Self::At { offset, queues, term }
    }
}

impl Birth {
    /// The message to the members of `parent`.
    pub(super) fn encode(&self, parent: u64) -> Words {
        match *self {
            Self::At { offset, queues, term: Term { epoch, base } } => {
                let Base { operation, clock, sets, centrals } = base;
                [MAGIC | queues.code() << 8, offset, epoch.into(), operation, clock, sets, centrals, parent]
            }
            Self::Full { needed, free } => [MAGIC | 1, needed, free, 0, 0, 0, 0, parent],
        }
    }

    /// Reads such a message; `None`: the words are something else, or of another communicator.
    pub(super) fn decode(words: &Words, parent: u64) -> Option<Self> {
        let &[what, place, epoch, operation, clock, sets, centrals, of] = words;
        if of != parent {
            return None;
        }
        if what == MAGIC | 1 {
            return Some(Self::Full { needed: place, free: epoch });
        }
        let code = what ^ MAGIC;
        let queues = Queues::from_code(code >> 8).filter(|_| code & 0xff == 0)?;
        let (epoch, base) = (epoch.try_into().ok()?, Base { operation, clock, sets, centrals });
        Some(Self::At { offset: place, queues, term: Term { epoch, base } })
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
            Birth::At { offset: 8192, queues: Queues::Small, term: Term { epoch: 7, base } },
            Birth::At { offset: 0, queues: Queues::Large, term: Term::FIRST },
            Birth::At { offset: 4096, queues: Queues::Papers, term: Term::FIRST },
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
                assert!(read.is_none() || [8, 9].contains(&bit), "{bit}: {read:?}");
            }
        }
        assert_eq!(Birth::decode(&[0; 8], 0), None);
    }
}
