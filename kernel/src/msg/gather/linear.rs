//! Gather by one message from each rank. The root posts all receives in one round, a window at a time.

use crate::Rank;
use crate::error::Refusal;
use crate::msg::parts::Parts;
use crate::msg::rooted::Rooted;
use crate::msg::schedule::{Area, Bytes, Message, Moment, Place, Schedule, Work};
use crate::pattern::Seat;

/// One process's part of a gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Linear<'a>(Rooted<'a>);

impl<'a> Linear<'a> {
    /// This rank's `own` bytes go to its block of `parts` at `root`. `parts` are significant only at the root. In
    /// place, the root's own block is there already.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; at the root there is not one block per rank, or `own` differs from
    /// its block's length.
    pub fn new(seat: Seat, own: u64, parts: Parts<'a>, root: Rank, in_place: bool) -> Result<Self, Refusal> {
        Rooted::new(seat, own, parts, root, in_place).map(Self)
    }

    const fn own(&self) -> Place {
        Place::new(Area::Send, 0, self.0.own)
    }
}

impl Schedule for Linear<'_> {
    fn rounds(&self) -> u64 {
        1
    }

    fn send(&self, _: u64, index: u32) -> Option<Message> {
        let sends = index == 0 && !self.0.is_root();
        sends.then(|| Message { peer: self.0.root, place: self.own() })
    }

    fn receive(&self, _: u64, index: u32) -> Option<Message> {
        let receives = self.0.is_root() && index + 1 < self.0.seat.size();
        receives.then(|| {
            let peer = self.0.seat.after(index + 1);
            Message { peer, place: self.0.parts.place(Area::Receive, peer) }
        })
    }

    fn work(&self, _: u64, moment: Moment, index: u32) -> Option<Work> {
        let copies = moment == Moment::Meanwhile && index == 0 && self.0.is_root() && !self.0.in_place;
        copies.then(|| Work::Copy { from: self.own(), to: self.0.parts.place(Area::Receive, self.0.root) })
    }

    fn bytes(&self) -> Bytes {
        let receive = if self.0.is_root() { self.0.parts.reach() } else { 0 };
        Bytes { send: if self.0.in_place { 0 } else { self.0.own }, receive, scratch: 0 }
    }
}
