//! Alltoall over levels, for equal blocks: each member of the last level's group gets the vectors of all ranks below it,
//! sends each other member the blocks for the ranks there as one message, and hands out what arrived.
//!
//! Few long messages between nodes instead of many short ones; each block is copied six times, and a member of the last
//! level keeps three vectors per rank below it.

use super::PlanError;
use super::circle::{Circle, Circles};
use super::gather::Gather;
use super::line::{Line, below};
use super::scatter::Scatter;
use crate::Rank;
use crate::msg::parts::Parts;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Sequence, Work};

/// One process's part.
pub type Alltoall<'s> = Sequence<Gather<'s>, Sequence<Exchange<'s>, Scatter<'s>>>;

/// The part of `rank` in an alltoall of blocks of `block` bytes; in place the result area holds what is sent.
///
/// # Errors
/// `rank` is no rank; the blocks are too long.
pub fn plan<'s>(line: Line<'s>, rank: Rank, block: u64, in_place: bool) -> Result<Alltoall<'s>, PlanError> {
    let groups = line.groups();
    let (circles, top) = Circles::new(groups, rank, 0)?.split(groups.levels().len().saturating_sub(1));
    let vector = Parts::equal(line.len(), block)?.total();
    let vectors = Parts::equal(line.len(), vector)?;
    let held = top.map_or(0..line.len(), |circle| below(&line, &circle, circle.own()));
    let own = Place::new(if in_place { Area::Receive } else { Area::Send }, 0, vector);
    let me = (line, rank, circles);
    let up = Gather::within(me, held.clone(), vectors, own, (Area::Scratch, None))?;
    let is_top = circles.is_head();
    let exchange = Exchange { line, top, held: (held.start, held.end), block, is_top };
    Ok(Sequence::new(up, Sequence::new(exchange, Scatter::within(me, held, vectors, Area::Scratch)?)))
}

/// What the members of the last level's group do: vectors of the ranks below become vectors for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exchange<'s> {
    line: Line<'s>,
    top: Option<Circle<'s>>,
    /// Places of the ranks below.
    held: (u32, u32),
    block: u64,
    is_top: bool,
}

/// Where working memory holds the vectors.
#[derive(Clone, Copy)]
enum Room {
    /// As they were gathered, and as they are scattered.
    Vectors,
    /// By member, rank below, rank there.
    Leaves,
    /// By member, rank there, rank below.
    Arrives,
}

impl Exchange<'_> {
    const fn held(&self) -> u64 {
        (self.held.1 - self.held.0) as u64
    }

    /// Blocks of a room, from the `first` on.
    fn place(&self, room: Room, first: u64, count: u64) -> Place {
        let all = self.held() * u64::from(self.line.len());
        Place::new(Area::Scratch, (room as u64 * all + first) * self.block, count * self.block)
    }

    /// The message to or from the `index`-th other member.
    fn message(&self, room: Room, index: u32) -> Option<Message> {
        let circle = self.top.filter(|circle| index + 1 < circle.size())?;
        let position = (circle.own() + 1 + index) % circle.size();
        let places = below(&self.line, &circle, position);
        let (first, count) = (u64::from(places.start), u64::from(places.end - places.start));
        Some(Message { peer: circle.rank(position), place: self.place(room, first * self.held(), count * self.held()) })
    }

    /// The places of the member that the rank at a place is below.
    fn around(&self, place: u32) -> (u64, u64) {
        let places = self.top.map_or(0..self.line.len(), |_| {
            let index = self.line.groups().levels().len().saturating_sub(1);
            self.line.below(self.line.groups().above(self.line.rank(place), index), index)
        });
        (places.start.into(), u64::from(places.end - places.start))
    }

    /// The `index`-th pair of a rank below and any rank, by places.
    fn pair(&self, index: u32) -> Option<(u64, u32)> {
        let ranks = u64::from(self.line.len());
        let (below, any) = (u64::from(index) / ranks, (u64::from(index) % ranks) as u32);
        (self.is_top && below < self.held()).then_some((below, any))
    }
}

impl Schedule for Exchange<'_> {
    fn rounds(&self) -> u64 {
        1
    }

    fn send(&self, _: u64, index: u32) -> Option<Message> {
        self.message(Room::Leaves, index)
    }

    fn receive(&self, _: u64, index: u32) -> Option<Message> {
        // The other way round: who is sent to first is heard last.
        let others = self.top?.size() - 1;
        self.message(Room::Arrives, others.checked_sub(index + 1)?)
    }

    fn work(&self, _: u64, moment: Moment, index: u32) -> Option<Work> {
        let ranks = u64::from(self.line.len());
        let (mine, other) = self.pair(index)?;
        let vector = self.place(Room::Vectors, mine * ranks + u64::from(self.line.rank(other)), 1);
        if u64::from(self.held.0) + mine == other.into() {
            // What a rank has for itself stays where it is.
            return Some(Work::Copy { from: Place::NOTHING, to: Place::NOTHING });
        }
        let (start, there) = self.around(other);
        let (first, place) = (start * self.held(), u64::from(other) - start);
        match moment {
            Moment::Before => {
                Some(Work::Copy { from: vector, to: self.place(Room::Leaves, first + mine * there + place, 1) })
            }
            Moment::Meanwhile => None,
            // Those of the ranks below did not leave: by rank below and rank there, as they were sent.
            Moment::After => {
                let from = match start == u64::from(self.held.0) {
                    true => self.place(Room::Leaves, first + place * there + mine, 1),
                    false => self.place(Room::Arrives, first + place * self.held() + mine, 1),
                };
                Some(Work::Copy { from, to: vector })
            }
        }
    }

    fn bytes(&self) -> Bytes {
        let all = self.held() * u64::from(self.line.len());
        let scratch = if self.is_top { 3 * all * self.block } else { 0 };
        Bytes { scratch, ..Bytes::default() }
    }
}
