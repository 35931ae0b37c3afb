//! Dissemination (Hensgen, Finkel, Manber 1988; paper P4): in round k a process sends to the one 2ᵏ ranks after it.

use super::{Hop, Pattern, Seat, log2_ceil};

/// ⌈log2 p⌉ rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dissemination(pub Seat);

impl Pattern for Dissemination {
    #[inline]
    fn rounds(self) -> u32 {
        log2_ceil(self.0.size())
    }

    #[inline]
    fn hop(self, round: u32) -> Option<Hop> {
        (round < self.rounds()).then(|| Hop { to: self.0.after(1 << round), from: self.0.before(1 << round) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{assert_meets, assert_spreads};

    #[test]
    fn data_reaches_all() {
        for size in (1..=33).chain([100]) {
            assert_meets(size, Dissemination);
            assert_spreads(size, Dissemination);
        }
    }
}
