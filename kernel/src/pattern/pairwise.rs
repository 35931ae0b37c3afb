//! Pairwise exchange: each process sends to every other one once. If p is a power of two, the process that it sends to
//! in a round is also the one that it receives from.

use super::{Hop, Pattern, Seat};

/// p − 1 rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pairwise(pub Seat);

impl Pattern for Pairwise {
    #[inline]
    fn rounds(self) -> u32 {
        self.0.size() - 1
    }

    #[inline]
    fn hop(self, round: u32) -> Option<Hop> {
        let Self(seat) = self;
        let distance = if round < self.rounds() { round + 1 } else { return None };
        if seat.size().is_power_of_two() {
            let partner = seat.rank() ^ distance;
            return Some(Hop { to: partner, from: partner });
        }
        Some(Hop { to: seat.after(distance), from: seat.before(distance) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::assert_meets;
    use std::vec::Vec;

    #[test]
    fn all_meet_once() {
        for size in 1..=33 {
            assert_meets(size, Pairwise);
            for rank in 0..size {
                let mine = Pairwise(Seat { rank, size });
                let partners = (0..mine.rounds()).filter_map(|round| Some(mine.hop(round)?.to));
                let mut met: Vec<_> = partners.chain([rank]).collect();
                met.sort_unstable();
                assert_eq!(met, (0..size).collect::<Vec<_>>());
            }
        }
    }
}
