//! A process's rank and the number of processes; ranks modulo that number.

use crate::Rank;
use crate::error::{Argument, Bound, Refusal};

/// Rank `rank` of `size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seat {
    pub(super) rank: Rank,
    pub(super) size: u32,
}

impl Seat {
    /// Rank `rank` of `size`.
    ///
    /// # Errors
    /// `rank` is not below `size`.
    pub fn new(rank: Rank, size: u32) -> Result<Self, Refusal> {
        Refusal::check(Argument::Rank, rank.into(), Bound::Below(size.into()))?;
        Ok(Self { rank, size })
    }

    /// This process.
    #[inline]
    pub const fn rank(self) -> Rank {
        self.rank
    }

    /// Number of processes; 1 at least.
    #[inline]
    pub const fn size(self) -> u32 {
        self.size
    }

    /// The rank `distance` after this one, modulo the size; `distance` is the size at most.
    #[inline]
    pub const fn after(self, distance: u32) -> Rank {
        rotated(self.rank, distance, self.size)
    }

    /// The rank `distance` before this one, modulo the size; `distance` is the size at most.
    #[inline]
    pub const fn before(self, distance: u32) -> Rank {
        rotated(self.rank, self.size - distance, self.size)
    }

    /// This process's number if `root` has number 0.
    #[inline]
    pub const fn vertex(self, root: Rank) -> u32 {
        self.before(root)
    }

    /// This seat with ranks counted from `root` on, which has number 0.
    #[inline]
    #[must_use]
    pub const fn seen_from(self, root: Rank) -> Self {
        Self { rank: self.vertex(root), size: self.size }
    }

    /// Checks a root.
    ///
    /// # Errors
    /// `root` is not a rank.
    pub fn check_root(self, root: Rank) -> Result<(), Refusal> {
        Refusal::check(Argument::Root, root.into(), Bound::Below(self.size.into())).map(|_| ())
    }
}

/// `(rank + by) mod size`; `rank` is below `size`, `by` is `size` at most.
#[inline]
pub const fn rotated(rank: Rank, by: u32, size: u32) -> Rank {
    let sum = rank as u64 + by as u64;
    (if sum >= size as u64 { sum - size as u64 } else { sum }) as Rank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_round_the_ring_come_back() {
        for size in [1, 2, 3, 17, u32::MAX] {
            for rank in [0, size / 2, size - 1] {
                let seat = Seat::new(rank, size).unwrap();
                for distance in [0, size / 3, size - 1, size] {
                    let away = Seat::new(seat.after(distance), size).unwrap();
                    assert_eq!(away.before(distance), rank, "{seat:?} {distance}");
                }
                for root in [0, size - 1] {
                    assert_eq!(rotated(seat.vertex(root), root, size), rank);
                    assert_eq!(Seat::new(root, size).unwrap().vertex(root), 0);
                }
            }
        }
        assert!(Seat::new(3, 3).is_err());
    }
}
