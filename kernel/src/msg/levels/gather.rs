//! Gather over levels: on each level the members of a group send all blocks of the ranks below them to the group's
//! head, as one message. All ranks must know the lengths of all blocks. (In MPI_Gatherv only the root does: then the
//! caller first makes an allgather of the lengths.)

use super::PlanError;
use super::circle::Circles;
use super::line::{Fan, Line, Row};
use crate::Rank;
use crate::msg::parts::Parts;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use core::ops::Range;

/// One process's part of a gather over levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gather<'s> {
    fan: Fan<'s>,
    row: Row<'s>,
    /// The place of this rank's own block.
    own: Place,
    /// The area in which the row lies.
    area: Area,
    /// The place in the line of the row's first block.
    from: u32,
    /// Is the row unpacked into the user's result at the end?
    unpacks: bool,
}

/// The part of `rank` in a gather of `parts` to `root`.
///
/// # Errors
/// `rank` or `root` is not a rank of the communicator; there is not one block per rank.
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
    Ok(Gather { fan, row, own, area, from: fan.holds.start, unpacks: rank == root && !direct })
}

impl<'s> Gather<'s> {
    /// A gather to the head of `fan`'s circles, which keeps the blocks in a row in `area`. The row starts with the
    /// block at place `from` of the line; `None`: with the first block that the process holds. `own` is this rank's
    /// block.
    pub(super) fn within(
        fan: Fan<'s>,
        parts: Parts<'s>,
        own: Place,
        area: Area,
        from: Option<u32>,
    ) -> Result<Self, PlanError> {
        let row = super::row(fan.line, parts)?;
        Ok(Self { fan, row, own, area, from: from.unwrap_or(fan.holds.start), unpacks: false })
    }

    /// The blocks of these places of the line, in the row.
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
