//! Allgather by groups (ours): short blocks go to all ranks in two steps, so that a rank reads from the ranks of its own group and
//! of its own column, instead of from all.
//!
//! Neighbours are a group, and rank c of each group is in column c.
//!
//! | step | what every rank does | with whom |
//! |---|---|---|
//! | 0 | posts its block; takes those of the others | its group |
//! | 1 | posts the blocks of its group, side by side; takes those of the other groups | its column |
//!
//! Each block is copied twice as often as in an [exchange](super::exchange), so this is for short ones; but what fits the first 64
//! bytes of a line takes one transfer from each rank there. So each block comes into a group once for each of its ranks. Longer ones
//! come into it once: then columns are first, and groups second.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::Refusal;
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::columns::Groups;
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::engine::cut::{Medium, Span};
use crate::shm::engine::exchange::{Exchange, Plan};
use crate::shm::engine::loans::Origin;
use crate::shm::engine::pieces::{put, take};
use crate::shm::gather::exchange::check;

/// One process's part of an allgather.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grouped<'a> {
    me: Rank,
    /// What comes first: the groups, or the columns.
    groups: Groups,
    /// This rank's block; `None`: it is in place.
    send: Option<Data<'a>>,
    receive: Blocks<'a>,
    /// The memory of all blocks, if they lie one after the other.
    all: Option<Buf>,
    /// Bytes of a block.
    bytes: u64,
}

/// The longest blocks whose groups are first.
const ROWS: u64 = 256;

/// `groups`, or their columns if blocks of `bytes` are longer than `rows`.
const fn turned(groups: Groups, bytes: u64, rows: u64) -> Groups {
    if bytes <= rows { groups } else { groups.across() }
}

impl<'a> Grouped<'a> {
    /// Can so many ranks be cut into groups, and has a slot of `slot` bytes room for the blocks of `bytes` that are posted side by side?
    #[inline]
    pub fn fits(ranks: u32, slot: u64, bytes: u64) -> bool {
        Groups::of(ranks).is_some_and(|groups| turned(groups, bytes, ROWS).fit(slot, bytes))
    }

    /// Is it [possible](Self::fits) for these blocks, which have one length?
    #[inline]
    pub fn applies(me: &Member, receive: &Blocks<'_>) -> bool {
        let bytes = receive.most();
        receive.ranks() == me.size()
            && receive.check_all(bytes).is_ok()
            && Self::fits(me.size(), me.layout().params().queue_fragment, bytes)
    }

    /// Block r of the `receive` of all ranks becomes rank r's `send`; `None`: in place, the block is there already. All blocks have the
    /// same length.
    ///
    /// # Errors
    /// As [`allgather`](super::exchange::allgather); it does not [apply](Self::applies).
    pub fn new(me: &Member, send: Option<Data<'a>>, receive: Blocks<'a>) -> Result<Exchange<Self>, Refusal> {
        Self::with_rows(me, send, receive, ROWS)
    }

    /// The same; groups are first for blocks of up to `rows` bytes, else columns.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_rows(
        me: &Member,
        send: Option<Data<'a>>,
        receive: Blocks<'a>,
        rows: u64,
    ) -> Result<Exchange<Self>, Refusal> {
        let bytes = check(me, send.as_ref(), Some(&receive), true)?;
        receive.check_all(bytes)?;
        let groups = turned(Groups::of_all(me)?, bytes, rows).with_room(me, bytes)?;
        let plan = Self { me: me.rank(), groups, send, receive, all: receive.in_one_piece(), bytes };
        let all = u64::from(groups.columns) * bytes;
        Ok(Exchange::of(Medium::Queues, Span { advance: 2, bytes: all }, plan))
    }
}

impl Plan for Grouped<'_> {
    fn kind(&self) -> Kind {
        Kind::Allgather
    }

    fn steps(&self) -> u64 {
        2
    }

    fn announced(&self) -> u64 {
        self.bytes
    }

    /// What it posts in step 1 is complete when it has done step 0.
    fn posts(&self, step: u64) -> Option<u64> {
        Some(step)
    }

    fn takes_any(&self) -> bool {
        true
    }

    fn takes(&self, step: u64, peer: Rank) -> bool {
        self.groups.meets(self.me, step, peer)
    }

    fn reads(&self, step: u64, peer: Rank) -> bool {
        self.groups.reads(self.me, step, peer)
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        let own = self.receive.block(self.me);
        if step == 0 {
            // SAFETY: the caller's promise.
            return unsafe { put(region, place, self.send.as_ref().unwrap_or(&own), Part::first(self.bytes)) };
        }
        let group = self.groups.group(self.me);
        match self.groups.row(self.all, group, self.bytes) {
            // SAFETY: the caller's promise.
            Some(row) => unsafe { region.write(place, row) },
            None => {
                for column in 0..self.groups.columns {
                    let block = self.receive.block(self.groups.rank(group, column));
                    let to = place.part(u64::from(column) * self.bytes, self.bytes);
                    // SAFETY: the caller's promise.
                    unsafe { put(region, to, &block, Part::first(self.bytes)) };
                }
            }
        }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable> {
        let Self { me, groups, bytes, .. } = *self;
        if peer == me {
            if let Some(send) = &self.send {
                // SAFETY: the caller's promise: both are this process's data.
                unsafe { copy_private(region, send, &self.receive.block(me), Part::first(bytes)) };
            }
            return Ok(());
        }
        // Nobody lends anything here.
        let Origin::Segment(place) = origin else { return Err(Unreadable { changed: false }) };
        if step == 0 {
            // SAFETY: the caller's promise.
            return unsafe { take(region, origin, &self.receive.block(peer), Part::first(bytes)) };
        }
        // SAFETY: the caller's promise.
        unsafe { groups.take_row(region, place, (&self.receive, self.all), groups.group(peer), bytes) }
    }

    fn is_of_loan(&self, _: u64) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datatype::Datatype;
    use crate::region::{Layout, Params};

    #[test]
    fn it_fits_where_there_are_groups_and_a_slot_has_room_for_one() {
        let fits = |ranks, bytes| Grouped::fits(ranks, 32 << 10, bytes);
        // A column of 16 ranks has two of them, one of 128 sixteen.
        assert!([0, 8, 64, 512, 2048].iter().all(|bytes| fits(16, 8 * bytes) && fits(128, *bytes)));
        assert!(!fits(16, 16_385) && !fits(128, 2049) && !fits(5, 8) && !fits(1, 8) && !fits(4, u64::MAX));
    }

    #[test]
    fn blocks_of_several_lengths_are_not_for_groups() {
        let me = Member::new(Layout::new(Params::new(4)).unwrap(), 0).unwrap();
        let (mut memory, places) = ([0; 64], [0, 16, 32, 48]);
        for (counts, right) in [([8; 4], true), ([8, 8, 8, 7], false), ([0; 4], true)] {
            let blocks = Blocks::vary_mut(&mut memory, &counts, &places, Datatype::BYTE).unwrap();
            assert_eq!(Grouped::applies(&me, &blocks), right, "{counts:?}");
        }
        let three = Blocks::equal_mut(&mut memory, 3, 8, Datatype::BYTE).unwrap();
        assert!(!Grouped::applies(&me, &three));
    }
}
