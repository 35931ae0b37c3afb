//! Recursive doubling: partners exchange all that they have, neighbours first, so that what a process has comes from
//! consecutive ranks.

use super::{Hop, Pattern, Seat};

/// log2 p rounds. p must be a power of two; see [`super::power`] for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Doubling(pub Seat);

impl Pattern for Doubling {
    #[inline]
    fn rounds(self) -> u32 {
        self.0.size().trailing_zeros()
    }

    #[inline]
    fn hop(self, round: u32) -> Option<Hop> {
        (round < self.rounds()).then(|| {
            let partner = self.0.rank() ^ 1 << round;
            Hop { to: partner, from: partner }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{assert_meets, assert_spreads};

    #[test]
    fn data_reaches_all() {
        for size in [1, 2, 4, 8, 16, 64] {
            assert_meets(size, Doubling);
            assert_spreads(size, Doubling);
        }
    }
}
