//! Brooks' butterfly (Brooks 1986): in round k a process communicates with the one whose number differs in bit k. If p
//! is not a power of two, ranks 0, 1, … also take the numbers p … 2ᴸ − 1.

use super::{Seat, log2_ceil};
use crate::Rank;

/// ⌈log2 p⌉ rounds; a process has one or two partners in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Butterfly(pub Seat);

impl Butterfly {
    /// Number of rounds.
    #[inline]
    pub const fn rounds(self) -> u32 {
        log2_ceil(self.0.size())
    }

    /// The partners of this process in `round`, one for each of its numbers, without itself.
    #[inline]
    pub fn partners(self, round: u32) -> impl Iterator<Item = Rank> {
        let (size, all) = (u64::from(self.0.size()), 1u64 << self.rounds());
        let rank = u64::from(self.0.rank());
        let numbers = [rank, rank + size].into_iter().filter(move |number| *number < all);
        numbers
            .map(move |number| number ^ 1 << round)
            .map(move |p| if p < size { p } else { p - size })
            .filter_map(move |partner| (partner != rank && round < self.rounds()).then_some(partner as Rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn partners_agree_and_data_reaches_all() {
        for size in (1..=33).chain([100]) {
            let of = |rank| Butterfly(Seat { rank, size });
            let mut heard: Vec<Vec<bool>> = (0..size).map(|r| (0..size).map(|peer| peer == r).collect()).collect();
            for round in 0..of(0).rounds() {
                let before = heard.clone();
                for rank in 0..size {
                    for partner in of(rank).partners(round) {
                        let meets = |a, b| of(a).partners(round).filter(|&p| p == b).count();
                        assert_eq!(meets(rank, partner), meets(partner, rank), "p={size} round {round}");
                        for (mine, peers) in heard[rank as usize].iter_mut().zip(&before[partner as usize]) {
                            *mine |= peers;
                        }
                    }
                }
            }
            assert!(heard.iter().flatten().all(|&heard| heard), "p={size}");
        }
    }
}
