//! Scatter over levels: on each level the head of a group sends each member all blocks of the ranks below it, as one
//! message. All ranks must know the lengths of all blocks, as in a gather over levels.

use super::PlanError;
use super::circle::Circles;
use super::line::{Fan, Line, Row};
use crate::Rank;
use crate::msg::parts::Parts;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use core::ops::Range;

/// One process's part of a scatter over levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scatter<'s> {
    fan: Fan<'s>,
    row: Row<'s>,
    /// The area in which the row lies.
    area: Area,
    /// Is the row packed from the user's input first?
    packs: bool,
    /// The place for this rank's own block in the result; `None` in place.
    result: Option<Place>,
}

/// The part of `rank` in a scatter of `parts` from `root`.
///
/// # Errors
/// `rank` or `root` is not a rank of the communicator; there is not one block per rank.
pub fn plan<'s>(
    line: Line<'s>,
    rank: Rank,
    parts: Parts<'s>,
    root: Rank,
    in_place: bool,
) -> Result<Scatter<'s>, PlanError> {
    let circles = Circles::new(line.groups(), rank, root)?;
    let fan = Fan::new(line, rank, circles, 0..line.len());
    let row = super::row(line, parts)?;
    let direct = rank == root && row.is_as_it_lies();
    let area = if direct { Area::Send } else { Area::Scratch };
    let result = (rank != root || !in_place).then(|| Place::new(Area::Receive, 0, parts.len(rank)));
    Ok(Scatter { fan, row, area, packs: rank == root && !direct, result })
}

impl<'s> Scatter<'s> {
    /// A scatter from the head of `fan`'s circles, which has the blocks that it holds in a row at the start of
    /// `area`. `fan` is that of `rank`.
    pub(super) fn within(fan: Fan<'s>, rank: Rank, parts: Parts<'s>, area: Area) -> Result<Self, PlanError> {
        let result = Some(Place::new(Area::Receive, 0, parts.len(rank)));
        Ok(Self { fan, row: super::row(fan.line, parts)?, area, packs: false, result })
    }

    /// The blocks of these places of the line, in the row.
    fn place(&self, places: Range<u32>) -> Place {
        self.row.place(self.area, self.fan.holds.start, places)
    }
}

impl Schedule for Scatter<'_> {
    fn rounds(&self) -> u64 {
        2
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let (peer, places) = self.fan.child(index).filter(|_| round == 1)?;
        Some(Message { peer, place: self.place(places) })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let peer = self.fan.parent().filter(|_| (round, index) == (0, 0))?;
        let place = match self.result {
            Some(result) if self.fan.is_leaf() => result,
            _ => self.place(self.fan.holds()),
        };
        Some(Message { peer, place })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        match (round, moment) {
            (0, Moment::Before) if self.packs => {
                let (to, from) = self.row.block(self.area, Area::Send, index)?;
                Some(Work::Copy { from, to })
            }
            (1, Moment::Meanwhile) if index == 0 && !self.fan.is_leaf() => {
                Some(Work::Copy { from: self.place(self.fan.own..self.fan.own + 1), to: self.result? })
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let mut bytes = self.result.map_or(Bytes::default(), super::bytes);
        if !self.fan.is_leaf() {
            bytes = bytes.max(super::bytes(self.place(self.fan.holds())));
        }
        if self.packs {
            bytes.send = bytes.send.max(self.row.parts.reach());
        }
        bytes
    }
}
