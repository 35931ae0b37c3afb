//! Alltoall over levels, for equal blocks, in three steps. A vector is the p blocks that one rank sends or receives.
//!
//! 1. Each member of the last level's group gathers the vectors of the ranks below it.
//! 2. It sends each other member the blocks for the ranks below that one, as one message ([`Exchange`]).
//! 3. It scatters the vectors that arose to the ranks below it.
//!
//! So there are few long messages between nodes instead of many short ones. The price: each block is copied six
//! times, and a member of the last level's group needs working memory for three vectors per rank below it.

use super::PlanError;
use super::circle::{Circle, Circles};
use super::gather::Gather;
use super::line::{Fan, Line, Places, below};
use super::scatter::Scatter;
use super::stages::{Areas, Base, Stage};
use crate::Rank;
use crate::msg::parts::Parts;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Sequence, Work};

/// One process's part of an alltoall over levels.
pub type Alltoall<'s> = Sequence<Gather<'s>, Sequence<Exchange<'s>, Scatter<'s>>>;

/// The part of `rank` in an alltoall of blocks of `block` bytes. In place, the result area holds the blocks to send.
///
/// # Errors
/// `rank` is not a rank of the communicator; the blocks are too long.
pub fn plan<'s>(line: Line<'s>, rank: Rank, block: u64, in_place: bool) -> Result<Alltoall<'s>, PlanError> {
    let groups = line.groups();
    let (circles, top) = Circles::new(groups, rank, 0)?.split(groups.levels().len().saturating_sub(1));
    let vector = Parts::equal(line.len(), block)?.total();
    let vectors = Parts::equal(line.len(), vector)?;
    let held = top.map_or(0..line.len(), |circle| below(&line, &circle, circle.own()));
    let own = Place::new(if in_place { Area::Receive } else { Area::Send }, 0, vector);
    let fan = Fan::new(line, rank, circles, held.clone());
    let up = Gather::within(fan, vectors, own, Area::Scratch, None)?;
    let is_top = circles.is_head();
    let exchange = Exchange { line, top, held: held.into(), block, is_top };
    Ok(Sequence::new(up, Sequence::new(exchange, Scatter::within(fan, rank, vectors, Area::Scratch)?)))
}

/// The same, where the first `kept` bytes of working memory are the caller's.
///
/// # Errors
/// As [`plan`].
pub(crate) fn plan_behind<'s>(
    line: Line<'s>,
    rank: Rank,
    block: u64,
    kept: u64,
) -> Result<Stage<'s, Alltoall<'s>>, PlanError> {
    let areas =
        Areas { send: Base::start(Area::Send), receive: Base::start(Area::Receive), scratch: Base::scratch(kept) };
    Ok(Stage { circle: None, areas, plan: plan(line, rank, block, false)? })
}

/// Step 2: the members of the last level's group exchange blocks. The vectors that the ranks below sent become the
/// vectors that they receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exchange<'s> {
    line: Line<'s>,
    top: Option<Circle<'s>>,
    /// The places of the ranks below this member.
    held: Places,
    block: u64,
    /// Is this process a member of the last level's group?
    is_top: bool,
}

/// The three rooms of working memory, each for the vectors of all ranks below this member.
#[derive(Clone, Copy)]
enum Room {
    /// The vectors, one after the other, as they were gathered and as they are scattered.
    Vectors,
    /// The blocks to send, ordered by member, rank below this member, rank below that member.
    Leaves,
    /// The received blocks, ordered by member, rank below that member, rank below this member.
    Arrives,
}

impl Exchange<'_> {
    /// Number of ranks below this member.
    const fn held(&self) -> u64 {
        (self.held.end - self.held.start) as u64
    }

    /// `count` blocks of a room, from the `first`-th on.
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

    /// The places of the ranks below the same member as the rank at `place`: the first, and their number.
    fn around(&self, place: u32) -> (u64, u64) {
        let places = self.top.map_or(0..self.line.len(), |_| {
            let index = self.line.groups().levels().len().saturating_sub(1);
            self.line.below(self.line.groups().above(self.line.rank(place), index), index)
        });
        (places.start.into(), u64::from(places.end - places.start))
    }

    /// The `index`-th pair of a rank below this member, counted from the first of them, and the place of any rank.
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
        // In the other direction: this process receives last from the member to which it sends first.
        let others = self.top?.size() - 1;
        self.message(Room::Arrives, others.checked_sub(index + 1)?)
    }

    fn work(&self, _: u64, moment: Moment, index: u32) -> Option<Work> {
        let ranks = u64::from(self.line.len());
        let (mine, other) = self.pair(index)?;
        let vector = self.place(Room::Vectors, mine * ranks + u64::from(self.line.rank(other)), 1);
        if u64::from(self.held.start) + mine == other.into() {
            // A rank's block for itself stays where it is: an empty copy keeps the indices.
            return Some(Work::Copy { from: Place::NOTHING, to: Place::NOTHING });
        }
        let (start, there) = self.around(other);
        let (first, place) = (start * self.held(), u64::from(other) - start);
        match moment {
            Moment::Before => {
                Some(Work::Copy { from: vector, to: self.place(Room::Leaves, first + mine * there + place, 1) })
            }
            Moment::Meanwhile => None,
            // Blocks between two ranks below this member were not sent: they are still among those to send.
            Moment::After => {
                let from = match start == u64::from(self.held.start) {
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
