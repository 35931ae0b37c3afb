//! Gather over levels: on each level the members of a group send their head all blocks below them, as one message. All
//! ranks know all blocks: where they vary, lengths go round first (MPI_Gatherv tells them to the root alone).

use super::PlanError;
use super::circle::Circles;
use super::line::{Fan, Line, Row};
use crate::Rank;
use crate::msg::parts::Parts;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use core::ops::Range;

/// One process's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gather<'s> {
    fan: Fan<'s>,
    row: Row<'s>,
    /// The own block.
    own: Place,
    /// Where the row lies, and the place of the block with which it begins.
    area: Area,
    from: u32,
    /// Does the row end in the user's result?
    unpacks: bool,
}

/// The part of `rank` in a gather of `parts` to `root`.
///
/// # Errors
/// `rank` or `root` is no rank; not as many blocks as ranks.
pub fn plan<'s>(
    line: Line<'s>,
    rank: Rank,
    parts: Parts<'s>,
    root: Rank,
    in_place: bool,
) -> Result<Gather<'s>, PlanError> {
    let circles = Circles::new(line.groups(), rank, root)?;
    let in_place = in_place && rank == root;
    let own = super::own(&parts, rank, in_place);
    let fan = Fan::new(line, rank, circles, 0..line.len());
    let row = super::row(line, parts)?;
    let direct = rank == root && row.is_as_it_lies();
    let area = if direct { Area::Receive } else { Area::Scratch };
    Ok(Gather { fan, row, own, area, from: fan.holds.0, unpacks: rank == root && !direct })
}

impl<'s> Gather<'s> {
    /// To the head of these circles, which holds the blocks of `all`; there they stay, in a row in `area` that begins with
    /// the block at place `from`.
    pub(super) fn within(
        (line, rank, circles): (Line<'s>, Rank, Circles<'s>),
        all: Range<u32>,
        parts: Parts<'s>,
        own: Place,
        (area, from): (Area, Option<u32>),
    ) -> Result<Self, PlanError> {
        let fan = Fan::new(line, rank, circles, all);
        let row = super::row(line, parts)?;
        Ok(Self { fan, row, own, area, from: from.unwrap_or(fan.holds.0), unpacks: false })
    }

    fn place(&self, places: Range<u32>) -> Place {
        self.row.place(self.area, self.from, places)
    }
}

impl Schedule for Gather<'_> {
    fn rounds(&self) -> u64 {
        2
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        let peer = self.fan.parent().filter(|_| (round, index) == (1, 0))?;
        Some(Message { peer, place: if self.fan.is_leaf() { self.own } else { self.place(self.fan.holds()) } })
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let (peer, places) = self.fan.child(index).filter(|_| round == 0)?;
        Some(Message { peer, place: self.place(places) })
    }

    fn work(&self, round: u64, moment: Moment, index: u32) -> Option<Work> {
        match (round, moment) {
            (0, Moment::Meanwhile) if index == 0 && !self.fan.is_leaf() => {
                let to = self.place(self.fan.own..self.fan.own + 1);
                Some(Work::Copy { from: self.own, to }).filter(|_| self.own != to)
            }
            (0, Moment::After) if self.unpacks => {
                let (from, to) = self.row.block(self.area, Area::Receive, index)?;
                Some(Work::Copy { from, to })
            }
            _ => None,
        }
    }

    fn bytes(&self) -> Bytes {
        let mut bytes = super::bytes(self.own);
        if !self.fan.is_leaf() {
            let row = self.place(self.fan.holds());
            bytes = bytes.max(super::bytes(row));
        }
        if self.unpacks {
            bytes.receive = bytes.receive.max(self.row.parts.reach());
        }
        bytes
    }
}
