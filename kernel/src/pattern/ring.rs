//! Ring: a process always sends to the next rank and receives from the previous one. In round k it sends what it
//! received in round k − 1.

use super::{Hop, Pattern, Seat};
use crate::Rank;

/// p − 1 rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ring(pub Seat);

impl Ring {
    /// The rank whose block this process sends in `round`: itself in round 0.
    #[inline]
    pub const fn sent(self, round: u32) -> Rank {
        self.0.before(round)
    }

    /// The rank whose block it receives in `round`.
    #[inline]
    pub const fn received(self, round: u32) -> Rank {
        self.0.before(round + 1)
    }
}

impl Pattern for Ring {
    #[inline]
    fn rounds(self) -> u32 {
        self.0.size() - 1
    }

    #[inline]
    fn hop(self, round: u32) -> Option<Hop> {
        (round < self.rounds()).then(|| Hop { to: self.0.after(1), from: self.0.before(1) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{assert_meets, assert_spreads};
    use std::vec::Vec;

    #[test]
    fn every_block_passes_every_process_once() {
        for size in 1..=33 {
            assert_meets(size, Ring);
            assert_spreads(size, Ring);
            for rank in 0..size {
                let ring = Ring(Seat { rank, size });
                let rounds = ring.rounds();
                let mut blocks: Vec<_> = (0..rounds).map(|round| ring.received(round)).chain([rank]).collect();
                blocks.sort_unstable();
                assert_eq!(blocks, (0..size).collect::<Vec<_>>());
                let before = Ring(Seat { rank: ring.0.before(1), size });
                assert!((0..rounds).all(|round| ring.received(round) == before.sent(round)));
            }
        }
    }
}
