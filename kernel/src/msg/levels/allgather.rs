//! Allgather over levels, in four steps:
//!
//! 1. Each member of the last level's group gathers the blocks of the ranks below it, level by level ([`Gather`]).
//! 2. These blocks go round a ring of these members, until each has the blocks of all ranks ([`Round`]).
//! 3. Each member broadcasts all blocks down the tree of the levels below it, in segments.
//! 4. Every rank unpacks the blocks into its result area, unless they are in rank order there ([`Unpack`]).

use super::circle::{Circle, Circles};
use super::gather::Gather;
use super::line::{Fan, Line, Row, below};
use super::stages::{Areas, Base, Stage};
use super::{Algorithm, PlanError, bcast};
use crate::Rank;
use crate::msg::parts::Parts;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Schedule, Sequence, Work};

/// One process's part of an allgather over levels.
pub type Allgather<'s> = Sequence<Sequence<Gather<'s>, Round<'s>>, Sequence<Stage<'s, bcast::Within<'s>>, Unpack<'s>>>;

/// The part of `rank` in an allgather of `parts`. In place, this rank's block is in the result area already.
/// `algorithm` is that of the broadcast in step 3.
///
/// # Errors
/// `rank` is not a rank of the communicator; there is not one block per rank; the errors of [`bcast::plan`].
pub fn plan<'s>(
    line: Line<'s>,
    rank: Rank,
    parts: Parts<'s>,
    in_place: bool,
    algorithm: Algorithm,
) -> Result<Allgather<'s>, PlanError> {
    let groups = line.groups();
    let (circles, top) = Circles::new(groups, rank, 0)?.split(groups.levels().len().saturating_sub(1));
    let row = super::row(line, parts)?;
    let area = if row.is_as_it_lies() { Area::Receive } else { Area::Scratch };
    let held = top.map_or(0..line.len(), |circle| below(&line, &circle, circle.own()));
    let own = super::own(&parts, rank, in_place);
    let up = Gather::within(Fan::new(line, rank, circles, held), parts, own, area, Some(0))?;
    let down = bcast::within(&circles, parts.total(), algorithm)?;
    let areas = Areas { send: Base::start(Area::Send), receive: Base::start(area), scratch: Base::scratch(0) };
    let down = Stage { circle: None, areas, plan: down };
    let unpack = Unpack { row, area };
    Ok(Sequence::new(Sequence::new(up, Round { row, top, area }), Sequence::new(down, unpack)))
}

/// Step 2: the blocks of the ranks below each member of the last level's group go round a ring of these members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Round<'s> {
    row: Row<'s>,
    top: Option<Circle<'s>>,
    area: Area,
}

impl Round<'_> {
    /// The message to or from the member `ahead` positions after this one: the blocks below the member `back`
    /// positions before this one.
    fn message(&self, ahead: u32, back: u64) -> Option<Message> {
        let circle = self.top?;
        let size = u64::from(circle.size());
        let at = |distance: u64| ((u64::from(circle.own()) + distance) % size) as u32;
        let places = below(&self.row.line, &circle, at(size - back % size));
        Some(Message { peer: circle.rank(at(ahead.into())), place: self.row.place(self.area, 0, places) })
    }
}

impl Schedule for Round<'_> {
    fn rounds(&self) -> u64 {
        self.top.map_or(0, |circle| u64::from(circle.size()) - 1)
    }

    fn send(&self, round: u64, index: u32) -> Option<Message> {
        self.message(1, round).filter(|_| index == 0)
    }

    fn receive(&self, round: u64, index: u32) -> Option<Message> {
        let size = self.top?.size();
        self.message(size - 1, round + 1).filter(|_| index == 0)
    }

    fn work(&self, _: u64, _: Moment, _: u32) -> Option<Work> {
        None
    }

    fn bytes(&self) -> Bytes {
        match self.top {
            Some(_) => super::bytes(self.row.place(self.area, 0, 0..self.row.line.len())),
            None => Bytes::default(),
        }
    }
}

/// Step 4: copies the blocks from the line's order to their places in the user's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unpack<'s> {
    row: Row<'s>,
    area: Area,
}

impl Schedule for Unpack<'_> {
    fn rounds(&self) -> u64 {
        u64::from(self.area == Area::Scratch)
    }

    fn send(&self, _: u64, _: u32) -> Option<Message> {
        None
    }

    fn receive(&self, _: u64, _: u32) -> Option<Message> {
        None
    }

    fn work(&self, _: u64, moment: Moment, index: u32) -> Option<Work> {
        let (from, to) = self.row.block(self.area, Area::Receive, index).filter(|_| moment == Moment::After)?;
        Some(Work::Copy { from, to })
    }

    fn bytes(&self) -> Bytes {
        Bytes { receive: self.row.parts.reach(), ..Bytes::default() }
    }
}
