//! The groups of a rank's place, and the areas of a long reduction.

use std::ops::Range;
use unisono_kernel::Rank;

/// Fewest bytes that a member folds (`uniform_chunks_min`), and most.
const LEAST: usize = 4096;
const MOST: usize = super::CHUNK;

/// Parts of members begin at lines.
const LINE: usize = 64;

/// A group. A group of a smaller level is a member, named by its lowest rank, whichever rank leads it.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// All ranks of its place.
    place: Range<Rank>,
    pub(super) members: Vec<Rank>,
    /// The member that this rank is, or is part of.
    pub(super) mine: Rank,
}

impl Level {
    /// The groups of `rank`, if ranks are cut into parts of so many, from the smallest level on. A level whose groups are all of
    /// one member is left out.
    pub(super) fn all(rank: Rank, size: u32, parts: &[u32]) -> Vec<Self> {
        let (mut levels, mut below) = (Vec::new(), 1);
        for part in parts.iter().copied().map(|part| part.min(size)).chain([size]) {
            if part <= below {
                continue;
            }
            let first = rank / part * part;
            let place = first..size.min(first + part);
            let members = place.clone().step_by(below as usize).collect();
            levels.push(Self { place, members, mine: rank / below * below });
            below = part;
        }
        levels
    }

    /// The lowest rank, which has the group's words.
    pub(super) const fn first(&self) -> Rank {
        self.place.start
    }

    /// Who leads it, if this rank is the root.
    pub(super) fn leader(&self, root: Rank) -> Rank {
        if self.place.contains(&root) { root } else { self.first() }
    }

    /// How many levels `rank` leads, from the smallest on.
    pub(super) fn led(levels: &[Self], rank: Rank, root: Rank) -> usize {
        levels.iter().take_while(|level| level.leader(root) == rank).count()
    }

    /// The members but this one.
    pub(super) fn others(&self) -> impl Iterator<Item = Rank> {
        self.members.iter().copied().filter(|&member| member != self.mine)
    }
}

/// A part of the vector, which some members fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    start: usize,
    pub(super) end: usize,
    /// Bytes of each, but for the last one.
    each: usize,
    /// The first member that folds.
    from: usize,
}

impl Area {
    /// What the member at this place folds.
    pub(super) fn part(&self, place: usize) -> Range<usize> {
        let Some(place) = place.checked_sub(self.from) else { return 0..0 };
        let start = self.end.min(self.start + place * self.each);
        start..self.end.min(start + self.each)
    }
}

/// The areas of a vector: the leader folds in the first one, and at the top in all.
pub(super) fn areas(all: usize, members: usize, top: bool) -> Vec<Area> {
    let (mut areas, mut start) = (Vec::new(), 0);
    while start < all {
        let from = usize::from(!areas.is_empty() && !top && members > 1);
        let workers = members - from;
        let len = (workers * MOST).min(all - start);
        let workers = (len / LEAST).clamp(1, workers);
        let each = len.div_ceil(workers).next_multiple_of(LINE);
        areas.push(Area { start, end: start + len, each, from });
        start += len;
    }
    areas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_one_member_are_left_out_and_the_root_leads_its_own() {
        let members = |rank, size, parts: &[u32]| -> Vec<Vec<Rank>> {
            Level::all(rank, size, parts).into_iter().map(|level| level.members).collect()
        };
        assert_eq!(members(5, 11, &[2, 4]), [vec![4, 5], vec![4, 6], vec![0, 4, 8]]);
        assert_eq!(members(10, 11, &[2, 4]), [vec![10], vec![8, 10], vec![0, 4, 8]]);
        assert_eq!(members(2, 3, &[8, 64]), [[0, 1, 2]]);
        assert!(members(0, 1, &[8, 64]).is_empty());
        let levels = Level::all(5, 11, &[2, 4]);
        assert_eq!([0, 5, 4].map(|root| Level::led(&levels, 5, root)), [0, 3, 0]);
        let levels = Level::all(4, 11, &[2, 4]);
        assert_eq!([0, 5, 4].map(|root| Level::led(&levels, 4, root)), [2, 0, 3]);
        assert_eq!(Level::led(&Level::all(0, 11, &[2, 4]), 0, 9), 2);
    }

    #[test]
    fn parts_cover_each_area_once() {
        for all in [1, 4096, 5000, 100_000, 4 << 20] {
            for members in [1, 2, 3, 8, 64] {
                for top in [false, true] {
                    let mut at = 0;
                    for (index, area) in areas(all, members, top).into_iter().enumerate() {
                        for place in 0..members {
                            let part = area.part(place);
                            if !part.is_empty() {
                                assert_eq!(part.start, at);
                                assert!(
                                    place > 0 || members == 1 || index == 0 || top,
                                    "the leader folds in area {index}"
                                );
                                at = part.end;
                            }
                        }
                        assert_eq!(at, area.end);
                    }
                    assert_eq!(at, all);
                }
            }
        }
    }
}
