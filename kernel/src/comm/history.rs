//! The collectives that one process has called on a communicator, as far as others can compare them: how many, and
//! their kinds.
//!
//! The head of a posted line says what the line is, and what came before it:
//!
//! | bits | |
//! |---|---|
//! | 63..60 | the [`Kind`] of collective |
//! | 59..48 | a digest of the kinds of all operations before this one; 0: unknown |
//! | 47..0 | bytes of the message |
//!
//! So a process that reads a line also compares all that the two ranks have called before. Ranks that called different
//! collectives, and did not wait for each other in them, learn it at the next line that one of them reads.

use crate::collective::Kind;

/// A process keeps the digests of so many last operations: more than a scope has in flight.
pub(super) const KNOWN: usize = 16;

/// A process tells others the kinds of so many last operations: four bits each, in one word.
pub(super) const TOLD: u64 = 16;
const _: () = assert!(TOLD as usize <= KNOWN);

/// Bits of a head that hold the length.
const LENGTH: u32 = 48;

pub(crate) const fn length(head: u64) -> u64 {
    head & ((1 << LENGTH) - 1)
}

/// A head without its length: a kind, and the digest of all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Digest(u16);

impl Digest {
    const BITS: u16 = (1 << 12) - 1;

    /// Before all operations. The digest is odd ever after.
    pub(crate) const START: Self = Self(1);

    /// The digest of an operation of this kind after unknown ones.
    pub(crate) const fn alone(kind: Kind) -> Self {
        Self((kind as u16) << 12)
    }

    /// The digest of the next operation, which is of this kind. If one operation is of another kind, all later digests
    /// differ: the factor is odd, and twice the difference of two kinds is not a multiple of 2¹². They differ also if
    /// two operations change places, unless these are a multiple of 64 apart.
    #[inline(always)]
    pub(crate) const fn next(self, kind: Kind) -> Self {
        let digest = self.0.wrapping_mul(5).wrapping_add(self.0 >> 12 << 1);
        Self((kind as u16) << 12 | digest & Self::BITS)
    }

    /// The digest in a head.
    pub(crate) const fn of(head: u64) -> Self {
        Self((head >> LENGTH) as u16)
    }

    /// The head with this length.
    #[inline(always)]
    pub(crate) const fn head(self, bytes: u64) -> u64 {
        (self.0 as u64) << LENGTH | bytes
    }

    /// The kind's number; 0: no operation.
    pub(crate) const fn kind(self) -> u64 {
        (self.0 >> 12) as u64
    }

    /// Were the operations before this one the same? True where one side does not know.
    pub(crate) const fn same_before(self, other: Self) -> bool {
        let (mine, theirs) = (self.0 & Self::BITS, other.0 & Self::BITS);
        mine == theirs || mine == 0 || theirs == 0
    }
}

/// The operations of one process: their number, and the digests of the last ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct History {
    /// The last operation; the first is 1.
    operation: u64,
    /// The digests of the last operations, each at its number modulo their count.
    digests: [Digest; KNOWN],
}

impl History {
    /// The history after `operation`, where all ranks have called the same before.
    pub(super) const fn after(operation: u64) -> Self {
        Self { operation, digests: [Digest::START; KNOWN] }
    }

    /// The last operation; the first is 1.
    #[inline]
    pub(super) const fn operation(&self) -> u64 {
        self.operation
    }

    /// Takes the next operation's number, for a collective of this kind.
    #[inline]
    pub(super) fn begin(&mut self, kind: Kind) -> u64 {
        let digest = self.latest().next(kind);
        self.operation += 1;
        self.digests[Self::place(self.operation)] = digest;
        self.operation
    }

    const fn place(operation: u64) -> usize {
        operation as usize % KNOWN
    }

    /// The digest of the last operation.
    pub(super) const fn latest(&self) -> Digest {
        self.digests[Self::place(self.operation)]
    }

    /// The digest that the lines of `operation`, of this kind, must have.
    #[inline(always)]
    pub(super) const fn digest(&self, operation: u64, kind: Kind) -> Digest {
        if self.knows(operation) { self.digests[Self::place(operation)] } else { Digest::alone(kind) }
    }

    /// The digest of `operation`, if it is one of the last.
    pub(super) fn known(&self, operation: u64) -> Option<Digest> {
        self.knows(operation).then(|| self.digests[Self::place(operation)])
    }

    #[inline(always)]
    const fn knows(&self, operation: u64) -> bool {
        self.operation.wrapping_sub(operation) < KNOWN as u64
    }

    /// The kinds of the last operations, the latest in the lowest bits.
    pub(super) fn kinds(&self) -> u64 {
        let kind = |back| self.digests[Self::place(self.operation.wrapping_sub(back))].kind();
        (0..TOLD).fold(0, |kinds, back| kinds | kind(back) << (4 * back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_a_kind_a_digest_and_a_length() {
        for kind in Kind::ALL {
            assert_eq!(Digest::alone(kind).kind(), kind as u64);
            let digest = Digest::START.next(kind);
            assert_eq!(digest.head(77), (kind as u64) << 60 | 5 << 48 | 77);
            assert_eq!((Digest::of(digest.head(77)), length(digest.head(77))), (digest, 77));
            assert_eq!(digest.next(Kind::Scan).head(0), 9 << 60 | (25 + 2 * kind as u64) << 48);
        }
        assert_eq!(Digest::START.kind(), 0);
    }

    #[test]
    fn one_operation_of_another_kind_changes_the_digest_for_good() {
        let after = |kind: Kind| {
            (0..100).scan(Digest::START.next(kind), |digest, at| {
                *digest = digest.next(Kind::ALL[at % 11]);
                Some(*digest)
            })
        };
        for (one, other) in Kind::ALL.into_iter().flat_map(|one| Kind::ALL.map(|other| (one, other))) {
            let same = after(one).zip(after(other)).filter(|(mine, theirs)| mine.same_before(*theirs)).count();
            assert_eq!(same, if one == other { 100 } else { 0 }, "{one:?} and {other:?}");
        }
        let known = Digest::START.next(Kind::Scan).next(Kind::Scan);
        assert!(Digest::alone(Kind::Scan).same_before(known) && known.same_before(Digest::alone(Kind::Scan)));
    }

    #[test]
    fn a_digest_has_twelve_bits() {
        assert_eq!(Digest::BITS, 0xfff);
    }

    #[test]
    fn the_last_marks_are_known_and_no_others() {
        let kinds = [Kind::Bcast, Kind::Barrier, Kind::Reduce, Kind::Scan];
        let mut history = History::after(0);
        (0..40).for_each(|at| _ = history.begin(kinds[at % 4]));
        assert!((25..=40).all(|operation| history.knows(operation) && history.known(operation).is_some()));
        assert!(![24, 41, 8].iter().any(|&operation| history.knows(operation) || history.known(operation).is_some()));
        assert_eq!(history.digest(40, kinds[3]), history.digests[8]);
        assert_eq!(history.digest(24, Kind::Gather), Digest::alone(Kind::Gather));
    }
}
