//! Gather by one message per process, all posted by the root at once, a window at a time.

use crate::Rank;
use crate::error::{Argument, Bound, Refusal};
use crate::msg::parts::{Parts, check_bytes};
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::Seat;

/// One process's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Linear<'a> {
    seat: Seat,
    root: Rank,
    own: u64,
    parts: Parts<'a>,
    in_place: bool,
}

impl<'a> Linear<'a> {
    /// Everyone's `own` bytes go to their block of `parts` at `root`; others need not know the blocks. In place the
    /// root's is there.
    ///
    /// # Errors
    /// `root` is no rank; the root's own block has two lengths.
    pub fn new(seat: Seat, own: u64, parts: Parts<'a>, root: Rank, in_place: bool) -> Result<Self, Refusal> {
        seat.check_root(root)?;
        check_bytes(own)?;
        let in_place = in_place && seat.rank() == root;
        if seat.rank() == root {
            parts.check(seat)?;
        }
        if seat.rank() == root && !in_place {
            Refusal::check(Argument::Bytes, own, Bound::Equals(parts.len(root)))?;
        }
        Ok(Self { seat, root, own, parts, in_place })
    }
}

impl Schedule for Linear<'_> {
    fn rounds(&self) -> u64 {
        1
    }

    fn send(&self, _: u64, index: u32) -> Option<Message> {
        let sends = index == 0 && self.seat.rank() != self.root;
        sends.then(|| Message { peer: self.root, place: Place::new(Area::Send, 0, self.own) })
    }

    fn receive(&self, _: u64, index: u32) -> Option<Message> {
        let receives = self.seat.rank() == self.root && index + 1 < self.seat.size();
        receives.then(|| {
            let peer = self.seat.after(index + 1);
            Message { peer, place: self.parts.place(Area::Receive, peer) }
        })
    }

    fn work(&self, _: u64, moment: Moment, index: u32) -> Option<Work> {
        let copies = moment == Moment::Meanwhile && index == 0 && self.seat.rank() == self.root && !self.in_place;
        copies.then(|| Work::Copy {
            from: Place::new(Area::Send, 0, self.own),
            to: self.parts.place(Area::Receive, self.root),
        })
    }

    fn bytes(&self) -> Bytes {
        let receive = if self.seat.rank() == self.root { self.parts.reach() } else { 0 };
        Bytes { send: if self.in_place { 0 } else { self.own }, receive, scratch: 0 }
    }
}
