//! A split: what each rank says, and what follows, the same on every rank.

use crate::arena::{Plan, Reserved};
use unisono_kernel::Rank;
use unisono_kernel::region::{Base, Term};

/// As it travels: it fits a posted line.
pub(super) type Words = [u64; 12];
/// Its bytes.
pub(super) const BYTES: usize = 8 * 12;

/// What one rank says: its wishes, and the memory that it offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// Who has the same one gets the same communicator; `None`: who gets none.
    pub(super) color: Option<u32>,
    /// The order there.
    pub(super) key: i64,
    /// Zeroed memory, to be cut: offset and length.
    pub(super) room: (u64, u64),
    /// Bytes that are free in the arena, what is offered included.
    pub(super) free: u64,
    /// A warm slice for so many ranks.
    pub(super) warm: Option<(u32, Reserved)>,
}

impl Part {
    /// As it travels.
    pub(super) fn encode(&self) -> Words {
        let Self { color, key, room: (offset, len), free, warm } = *self;
        let color = color.map_or(0, |color| 1 << 32 | u64::from(color));
        let [what, place, epoch, operation, clock, sets, centrals] = warm.map_or([0; 7], |(ranks, reserved)| {
            let Reserved { offset, small, term: Term { epoch, base }, .. } = reserved;
            let Base { operation, clock, sets, centrals } = base;
            [u64::from(small) << 32 | u64::from(ranks), offset, epoch.into(), operation, clock, sets, centrals]
        });
        [color, key as u64, offset, len, free, what, place, epoch, operation, clock, sets, centrals]
    }

    /// Reads it; `None`: no rank says that.
    pub(super) fn decode(words: &Words) -> Option<Self> {
        let &[color, key, offset, len, free, what, place, epoch, operation, clock, sets, centrals] = words;
        let color = match color >> 32 {
            0 => None,
            1 => Some(color as u32),
            _ => return None,
        };
        let small = match what >> 32 {
            0 => false,
            1 => true,
            _ => return None,
        };
        let term = Term { epoch: epoch.try_into().ok()?, base: Base { operation, clock, sets, centrals } };
        let reserved = Reserved { offset: place, small, free, term };
        let warm = (what as u32 != 0).then_some((what as u32, reserved));
        Some(Self { color, key: key as i64, room: (offset, len), free, warm })
    }
}

/// Whose memory a part of the communicator takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// The warm slice of this rank.
    Warm(Rank),
    /// The beginning of this rank's room; with small slots.
    Room(Rank, bool),
    /// Nobody's suffices: bytes of the smallest slice, and the most that are free in one arena.
    Full(u64, u64),
}

/// The ranks of `color`, in the order of their keys, then of their ranks (MPI 4.1, 7.4.2).
pub(super) fn members(parts: &[Part], color: u32) -> Vec<Rank> {
    let mut members: Vec<(i64, Rank)> =
        (0..).zip(parts).filter(|(_, part)| part.color == Some(color)).map(|(rank, part)| (part.key, rank)).collect();
    members.sort_unstable();
    members.into_iter().map(|(_, rank)| rank).collect()
}

/// Whose memory `members` take: a warm slice of their number before room, and of several the one whose turn it is.
pub(super) fn choose(parts: &[Part], members: &[Rank], turn: u64) -> Memory {
    let size = members.len() as u32;
    let first = turn.checked_rem(size.into()).unwrap_or(0) as usize;
    let in_turn = || members.iter().cycle().skip(first).take(members.len()).copied();
    let part = |rank: Rank| parts.get(rank as usize).copied().unwrap_or_default();
    let is_warm = |rank: &Rank| part(*rank).warm.is_some_and(|(ranks, _)| ranks == size);
    if let Some(rank) = in_turn().find(is_warm) {
        return Memory::Warm(rank);
    }
    let bytes = |small| Plan::new(size, small).map_or(u64::MAX, |plan| plan.bytes());
    for small in [false, true] {
        if let Some(rank) = in_turn().find(|&rank| part(rank).room.1 >= bytes(small)) {
            return Memory::Room(rank, small);
        }
    }
    Memory::Full(bytes(true), members.iter().map(|&rank| part(rank).free).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(color: Option<u32>, key: i64) -> Part {
        Part { color, key, ..Part::default() }
    }

    #[test]
    fn what_is_written_is_read() {
        let base = Base { operation: 5, clock: 6, sets: 7, centrals: 8 };
        let reserved = Reserved { offset: 4096, small: true, free: 9, term: Term { epoch: 3, base } };
        for part in [
            part(None, 0),
            part(Some(u32::MAX), i64::MIN),
            Part { room: (8192, 1), free: 9, warm: Some((4, reserved)), ..part(Some(0), -1) },
        ] {
            assert_eq!(Part::decode(&part.encode()), Some(part));
        }
        assert_eq!(Part::decode(&[2 << 32; 12]), None);
    }

    #[test]
    fn keys_then_ranks_order_and_undefined_is_nowhere() {
        let parts = [part(Some(1), 5), part(None, 0), part(Some(1), -2), part(Some(0), 0), part(Some(1), 5)];
        assert_eq!(members(&parts, 1), [2, 0, 4]);
        assert_eq!(members(&parts, 0), [3]);
        assert_eq!(members(&parts, 2), []);
    }

    #[test]
    fn warm_memory_is_taken_before_room_and_each_in_its_turn() {
        let [large, small] = [false, true].map(|small| Plan::new(2, small).unwrap().bytes());
        let reserved = Reserved { offset: 0, small: false, free: 0, term: Term::FIRST };
        let with = |len, warm| Part { room: (0, len), free: len, warm, ..part(Some(0), 0) };
        let warm = |ranks| Some((ranks, reserved));
        let both = [with(large, None), with(large, None)];
        assert_eq!([0, 1, 2].map(|turn| choose(&both, &[0, 1], turn)), [0, 1, 0].map(|rank| Memory::Room(rank, false)));
        assert_eq!(choose(&[with(large, None), with(0, warm(2))], &[0, 1], 0), Memory::Warm(1));
        assert_eq!(choose(&[with(large, None), with(0, warm(3))], &[0, 1], 0), Memory::Room(0, false));
        assert_eq!(choose(&[with(small, None), with(large, None)], &[0, 1], 0), Memory::Room(1, false));
        assert_eq!(choose(&[with(7, None), with(small, None)], &[0, 1], 0), Memory::Room(1, true));
        assert_eq!(choose(&[with(7, None), with(small - 1, None)], &[0, 1], 0), Memory::Full(small, small - 1));
    }
}
