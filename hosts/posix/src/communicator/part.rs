//! A split: each rank's message, and the communicators that all ranks compute from the messages alike.

use crate::arena::{Plan, Queues, Range, Reserved};
use unisono_kernel::Rank;
use unisono_kernel::region::{Base, Term};

/// The words of the message. It fits a posted line.
pub(super) type Words = [u64; 12];
/// Bytes of the message.
pub(super) const BYTES: usize = 8 * 12;

/// One rank's message: its color and key, and the memory that it offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// Ranks with the same color get the same communicator; `None`: this rank gets none.
    pub(super) color: Option<u32>,
    /// Orders the ranks of the new communicator.
    pub(super) key: i64,
    /// Zeroed memory that is offered; the new communicator takes its first bytes.
    pub(super) room: Range,
    /// Bytes that are free in the arena, including those that are offered.
    pub(super) free: u64,
    /// A warm slice that is offered too.
    pub(super) warm: Option<Warm>,
}

/// A warm slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Warm {
    /// The number of ranks that it is for.
    pub(super) ranks: u32,
    /// Where its pages lie: the [digest](crate::placement::digest) of its last members' nodes.
    pub(super) nodes: u32,
    pub(super) reserved: Reserved,
}

impl Part {
    /// The message.
    pub(super) fn encode(&self) -> Words {
        let Self { color, key, room: Range { offset, len }, free, warm } = *self;
        let color = color.map_or(0, |color| 1 << 32 | u64::from(color));
        let [what, place, epoch, operation, clock, sets, centrals] =
            warm.map_or([0; 7], |Warm { ranks, nodes, reserved }| {
                let Reserved { offset, queues, term: Term { epoch, base }, .. } = reserved;
                let Base { operation, clock, sets, centrals } = base;
                let what = u64::from(nodes) << 32 | u64::from(ranks);
                [what, offset, queues.code() << 32 | u64::from(epoch), operation, clock, sets, centrals]
            });
        [color, key as u64, offset, len, free, what, place, epoch, operation, clock, sets, centrals]
    }

    /// Reads a message; `None` if no rank can have sent it.
    pub(super) fn decode(words: &Words) -> Option<Self> {
        let &[color, key, offset, len, free, what, place, epoch, operation, clock, sets, centrals] = words;
        let color = match color >> 32 {
            0 => None,
            1 => Some(color as u32),
            _ => return None,
        };
        let (nodes, queues) = ((what >> 32) as u32, Queues::from_code(epoch >> 32)?);
        let term = Term { epoch: epoch as u32, base: Base { operation, clock, sets, centrals } };
        let reserved = Reserved { offset: place, queues, free, term };
        let warm = (what as u32 != 0).then_some(Warm { ranks: what as u32, nodes, reserved });
        Some(Self { color, key: key as i64, room: Range { offset, len }, free, warm })
    }
}

/// Which memory the communicator of one color takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// The warm slice that this rank offers.
    Warm(Rank),
    /// The first bytes of the zeroed memory that this rank offers.
    Room {
        /// The rank.
        rank: Rank,
        /// The slice's queues.
        queues: Queues,
    },
    /// No rank offers enough.
    Full {
        /// Bytes of the smallest slice that would do.
        needed: u64,
        /// The most bytes that are free in one arena.
        free: u64,
    },
}

/// The ranks of `color`, in the order of their keys, then of their ranks (MPI 4.1, 7.4.2).
pub(super) fn members(parts: &[Part], color: u32) -> Vec<Rank> {
    let mut members: Vec<(i64, Rank)> =
        (0..).zip(parts).filter(|(_, part)| part.color == Some(color)).map(|(rank, part)| (part.key, rank)).collect();
    members.sort_unstable();
    members.into_iter().map(|(_, rank)| rank).collect()
}

/// Which memory `members` take: a warm slice for their number of ranks, whose pages lie on their `nodes`, else zeroed
/// memory. If several ranks offer such
/// memory, the first one counted from the member `round` modulo their number, so that successive splits use all arenas.
pub(super) fn choose(parts: &[Part], members: &[Rank], nodes: u32, round: u64, queues: Queues) -> Memory {
    let size = members.len() as u32;
    let first = round.checked_rem(size.into()).unwrap_or(0) as usize;
    let rotated = || members.iter().cycle().skip(first).take(members.len()).copied();
    let part = |rank: Rank| parts.get(rank as usize).copied().unwrap_or_default();
    let is_warm = |rank: &Rank| part(*rank).warm.is_some_and(|warm| (warm.ranks, warm.nodes) == (size, nodes));
    if let Some(rank) = rotated().find(is_warm) {
        return Memory::Warm(rank);
    }
    let bytes = |queues| Plan::new(size, queues).map_or(u64::MAX, |plan| plan.bytes());
    for queues in [queues, Queues::Small] {
        if let Some(rank) = rotated().find(|&rank| part(rank).room.len >= bytes(queues)) {
            return Memory::Room { rank, queues };
        }
    }
    Memory::Full { needed: bytes(Queues::Small), free: members.iter().map(|&rank| part(rank).free).max().unwrap_or(0) }
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
        let reserved = Reserved { offset: 4096, queues: Queues::Papers, free: 9, term: Term { epoch: 3, base } };
        for part in [
            part(None, 0),
            part(Some(u32::MAX), i64::MIN),
            Part {
                room: Range { offset: 8192, len: 1 },
                free: 9,
                warm: Some(Warm { ranks: 4, nodes: u32::MAX >> 1, reserved }),
                ..part(Some(0), -1)
            },
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
    fn warm_memory_is_taken_before_room_and_all_ranks_by_rotation() {
        let [large, small] = [Queues::Large, Queues::Small].map(|queues| Plan::new(2, queues).unwrap().bytes());
        let reserved = Reserved { offset: 0, queues: Queues::Large, free: 0, term: Term::FIRST };
        let with = |len, warm| Part { room: Range { offset: 0, len }, free: len, warm, ..part(Some(0), 0) };
        let warm = |ranks| Some(Warm { ranks, nodes: 5, reserved });
        let room = |rank, queues| Memory::Room { rank, queues };
        let both = [with(large, None), with(large, None)];
        assert_eq!(
            [0, 1, 2].map(|round| choose(&both, &[0, 1], 5, round, Queues::Large)),
            [0, 1, 0].map(|rank| room(rank, Queues::Large))
        );
        assert_eq!(choose(&[with(large, None), with(0, warm(2))], &[0, 1], 5, 0, Queues::Large), Memory::Warm(1));
        assert_eq!(
            choose(&[with(large, None), with(0, warm(2))], &[0, 1], 6, 0, Queues::Large),
            room(0, Queues::Large),
            "on other nodes"
        );
        assert_eq!(
            choose(&[with(large, None), with(0, warm(3))], &[0, 1], 5, 0, Queues::Large),
            room(0, Queues::Large)
        );
        assert_eq!(
            choose(&[with(small, None), with(large, None)], &[0, 1], 5, 0, Queues::Large),
            room(1, Queues::Large)
        );
        assert_eq!(choose(&[with(7, None), with(small, None)], &[0, 1], 5, 0, Queues::Large), room(1, Queues::Small));
        let full = Memory::Full { needed: small, free: small - 1 };
        assert_eq!(choose(&[with(7, None), with(small - 1, None)], &[0, 1], 5, 0, Queues::Large), full);
    }
}
