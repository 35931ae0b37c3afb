//! Algorithms for a power of two of processes, with any number p of them: 2ᴸ processes, the most that are a power of
//! two, form the core. In each of the first p − 2ᴸ pairs of neighbours one process is outside the core, and the other
//! does its part. Numbers inside the core rise with ranks, so that operands keep their order.

use super::Seat;
use crate::Rank;

/// The core of `size` processes, as one of them sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Core {
    seat: Seat,
    /// A rank that must be inside, such as the root.
    favourite: Rank,
}

/// Whether a process is in the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Outside the core; its partner inside does its part.
    Outside {
        /// Its partner inside.
        partner: Rank,
    },
    /// Inside the core.
    Inside {
        /// Its number inside, below [`Core::size`].
        number: u32,
        /// The partner outside whose part it does, if any.
        partner: Option<Rank>,
    },
}

impl Core {
    /// The core, with `favourite` inside.
    #[inline]
    pub const fn new(seat: Seat, favourite: Rank) -> Self {
        Self { seat, favourite }
    }

    /// Log2 of the number of processes inside.
    #[inline]
    pub const fn log2(self) -> u32 {
        self.seat.size().ilog2()
    }

    /// Number of processes inside.
    #[inline]
    pub const fn size(self) -> u32 {
        1 << self.log2()
    }

    /// Number of processes outside.
    const fn outside(self) -> u32 {
        self.seat.size() - self.size()
    }

    /// The rank of the process that has this number inside.
    #[inline]
    pub const fn rank_of(self, number: u32) -> Rank {
        if number >= self.outside() {
            number + self.outside()
        } else if self.favourite == 2 * number + 1 {
            2 * number + 1
        } else {
            2 * number
        }
    }

    /// The favourite's number inside.
    #[inline]
    pub const fn favourite(self) -> u32 {
        self.number(self.favourite)
    }

    /// The number inside of `rank`, or of its partner if `rank` is outside.
    const fn number(self, rank: Rank) -> u32 {
        if rank < 2 * self.outside() { rank / 2 } else { rank - self.outside() }
    }

    /// Has this process a partner: is one of the two outside?
    #[inline]
    pub const fn is_paired(self) -> bool {
        self.seat.rank() < 2 * self.outside()
    }

    /// Whether this process is inside, and its partner.
    #[inline]
    pub const fn role(self) -> Role {
        let (rank, number) = (self.seat.rank(), self.number(self.seat.rank()));
        let inside = self.rank_of(number);
        if rank != inside {
            Role::Outside { partner: inside }
        } else if number < self.outside() {
            Role::Inside { number, partner: Some(rank ^ 1) }
        } else {
            Role::Inside { number, partner: None }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn each_rank_is_inside_or_a_neighbours_partner_and_numbers_rise() {
        for size in 1..=33 {
            for favourite in 0..size {
                let core = |rank| Core::new(Seat { rank, size }, favourite);
                let mut numbers = Vec::new();
                for rank in 0..size {
                    match core(rank).role() {
                        Role::Outside { partner } => {
                            assert_eq!(partner, rank ^ 1);
                            let Role::Inside { partner, .. } = core(partner).role() else { panic!("both outside") };
                            assert_eq!(partner, Some(rank));
                            assert_ne!(rank, favourite);
                        }
                        Role::Inside { number, .. } => {
                            assert_eq!(core(0).rank_of(number), rank);
                            assert!(rank != favourite || core(0).favourite() == number);
                            numbers.push(number);
                        }
                    }
                }
                assert_eq!(numbers, (0..core(0).size()).collect::<Vec<_>>(), "p={size}");
            }
        }
    }
}
