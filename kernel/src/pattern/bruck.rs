//! Bruck's concatenation (Bruck et al. 1997): in round k a process receives from the one 2ᵏ ranks after it, which has
//! 2ᵏ blocks in a row.

use super::{Hop, Pattern, Seat, log2_ceil};

/// ⌈log2 p⌉ rounds for any p: as few as any schedule can have in which a process receives one message in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bruck(pub Seat);

impl Bruck {
    /// Blocks that are sent in `round`: those that the sender has, but not more than the receiver lacks.
    #[inline]
    pub fn blocks(self, round: u32) -> u32 {
        (1 << round).min(self.0.size() - (1 << round))
    }
}

impl Pattern for Bruck {
    #[inline]
    fn rounds(self) -> u32 {
        log2_ceil(self.0.size())
    }

    #[inline]
    fn hop(self, round: u32) -> Option<Hop> {
        (round < self.rounds()).then(|| Hop { to: self.0.before(1 << round), from: self.0.after(1 << round) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{assert_meets, assert_spreads};

    #[test]
    fn every_block_arrives_once() {
        for size in (1..=33).chain([100]) {
            assert_meets(size, Bruck);
            assert_spreads(size, Bruck);
            let bruck = Bruck(Seat { rank: size / 2, size });
            let rounds = bruck.rounds();
            assert_eq!(1 + (0..rounds).map(|round| bruck.blocks(round)).sum::<u32>(), size);
        }
    }
}
