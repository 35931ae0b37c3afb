//! Alltoall by groups (ours): short blocks go to their group in two steps, so that a rank reads from the ranks of its own group
//! and of its own column, instead of from all.
//!
//! Rank c of group g is in column c. Its blocks for column d are those for the ranks d of all groups.
//!
//! | step | what every rank does | with whom |
//! |---|---|---|
//! | 0 | posts its blocks, those for one column side by side; takes those for its own column | its group |
//! | 1 | posts what it has taken, those for one group side by side; takes those for itself | its column |
//!
//! What is taken in step 0 lies where the blocks of step 1 will be received: a block from rank c of this group to group h in block c
//! of group h. So no other memory is needed, also in place: all of this rank's own blocks are posted before. Each block is copied
//! twice as often as [pairwise](super::pairwise), so this is for short ones.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::buffer::Buf;
use crate::error::{Argument, Bound, Refusal};
use crate::region::{Extent, Region, Unreadable};
use crate::shm::alltoall::pairwise::check;
use crate::shm::engine::columns::Groups;
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::engine::cut::{Medium, Span};
use crate::shm::engine::exchange::{Exchange, Plan};
use crate::shm::engine::loans::Origin;
use crate::shm::engine::pieces::{put, take};

/// Bytes at a multiple of which the blocks for one column, or one group, begin.
const ALIGNED: u64 = 64;

/// One process's part of an alltoall.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grouped<'a> {
    me: Rank,
    groups: Groups,
    send: Blocks<'a>,
    receive: Blocks<'a>,
    /// Bytes of a block.
    bytes: u64,
}

/// Most bytes of a block, so that a slot of so many bytes has room for those of all ranks.
fn most(groups: Groups, slot: u64) -> u64 {
    let side = u64::from(groups.columns.max(groups.count));
    slot / side / ALIGNED * ALIGNED / side
}

impl<'a> Grouped<'a> {
    /// Can so many ranks be cut into groups, and has a slot of `slot` bytes room for blocks of `bytes`?
    #[inline]
    pub fn fits(ranks: u32, slot: u64, bytes: u64) -> bool {
        Groups::of(ranks).is_some_and(|groups| bytes <= most(groups, slot))
    }

    /// [`Self::fits`] for a communicator.
    #[inline]
    pub fn applies(me: &Member, bytes: u64) -> bool {
        Self::fits(me.size(), me.layout().params().queue_fragment, bytes)
    }

    /// Block r of `send` goes to block `me` of rank r's `receive`; `send` is `None` in place. All blocks of all ranks have the same
    /// length.
    ///
    /// # Errors
    /// As [`alltoall`](super::pairwise::alltoall); it does not [apply](Self::applies).
    pub fn new(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Exchange<Self>, Refusal> {
        let send = check(me, send, receive)?;
        let bytes = receive.most();
        send.check_all(bytes)?;
        receive.check_all(bytes)?;
        let size = me.size();
        let groups = Groups::of(size).ok_or(Refusal::new(Argument::Ranks, size.into(), Bound::MultipleOf(2)))?;
        Refusal::check(Argument::Bytes, bytes, Bound::AtMost(most(groups, me.layout().params().queue_fragment)))?;
        let plan = Self { me: me.rank(), groups, send, receive, bytes };
        let fragment = |count: u32, of: u32| u64::from(count) * plan.stride(of);
        let bytes = fragment(groups.columns, groups.count).max(fragment(groups.count, groups.columns));
        Ok(Exchange::of(Medium::Queues, Span { advance: 2, bytes }, plan))
    }

    /// Bytes of a fragment that `blocks` blocks side by side take.
    fn stride(&self, blocks: u32) -> u64 {
        (u64::from(blocks) * self.bytes).next_multiple_of(ALIGNED)
    }

    /// The place of a column's blocks in a fragment of step 0, and of a group's in one of step 1.
    fn piece(&self, fragment: Extent, step: u64, index: u32) -> Extent {
        let stride = self.stride(if step == 0 { self.groups.count } else { self.groups.columns });
        fragment.part(u64::from(index) * stride, stride)
    }

    /// The block of this index in a piece.
    fn block(&self, piece: Extent, index: u32) -> Extent {
        piece.part(u64::from(index) * self.bytes, self.bytes)
    }

    /// The received blocks of a group's ranks, if they lie one after the other.
    fn row(&self, group: u32) -> Option<Buf> {
        self.groups.row(self.receive.in_one_piece(), group, self.bytes)
    }
}

impl Plan for Grouped<'_> {
    fn kind(&self) -> Kind {
        Kind::Alltoall
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

    /// Its own blocks for its group are in place after step 0.
    fn takes(&self, step: u64, peer: Rank) -> bool {
        self.groups.meets(self.me, step, peer)
    }

    fn reads(&self, step: u64, peer: Rank) -> bool {
        self.groups.reads(self.me, step, peer)
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        let Groups { columns, count, .. } = self.groups;
        let (mine, own) = (self.groups.column(self.me), self.groups.group(self.me));
        if step == 0 {
            for column in (0..columns).filter(|column| *column != mine) {
                let piece = self.piece(place, 0, column);
                for group in 0..count {
                    let block = self.send.block(self.groups.rank(group, column));
                    // SAFETY: the caller's promise.
                    unsafe { put(region, self.block(piece, group), &block, Part::first(self.bytes)) };
                }
            }
            return;
        }
        for group in (0..count).filter(|group| *group != own) {
            let piece = self.piece(place, 1, group);
            match self.row(group) {
                // SAFETY: the caller's promise.
                Some(row) => unsafe { region.write(piece, row) },
                None => {
                    for column in 0..columns {
                        let block = self.receive.block(self.groups.rank(group, column));
                        // SAFETY: the caller's promise.
                        unsafe { put(region, self.block(piece, column), &block, Part::first(self.bytes)) };
                    }
                }
            }
        }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable> {
        let Self { me, groups, bytes, .. } = *self;
        let count = groups.count;
        let (mine, own) = (groups.column(me), groups.group(me));
        if step == 0 && peer == me {
            for group in 0..count {
                let to = self.groups.rank(group, mine);
                // SAFETY: the caller's promise: both are this process's data; in place they are the same.
                unsafe { copy_private(region, &self.send.block(to), &self.receive.block(to), Part::first(bytes)) };
            }
            return Ok(());
        }
        // Nobody lends anything here.
        let Origin::Segment(place) = origin else { return Err(Unreadable { changed: false }) };
        if step == 0 {
            let piece = self.piece(place, 0, mine);
            for group in 0..count {
                let block = self.receive.block(self.groups.rank(group, groups.column(peer)));
                let from = Origin::Segment(self.block(piece, group));
                // SAFETY: the caller's promise.
                unsafe { take(region, from, &block, Part::first(bytes)) }?;
            }
            return Ok(());
        }
        let (piece, group) = (self.piece(place, 1, own), groups.group(peer));
        let receive = (&self.receive, self.receive.in_one_piece());
        // SAFETY: the caller's promise.
        unsafe { groups.take_row(region, piece, receive, group, bytes) }
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
    fn it_fits_where_there_are_groups_and_a_slot_has_room() {
        let fits = |ranks, bytes| Grouped::fits(ranks, 32 << 10, bytes);
        assert!([0, 8, 64, 2048].iter().all(|bytes| fits(4, *bytes)));
        assert!(!fits(5, 8) && !fits(1, 8) && !fits(4, u64::MAX));
        // Sixteen times a column's eight blocks, or eight times a group's sixteen, in whole lines of 64 bytes.
        assert!(fits(128, 128) && !fits(128, 129));
    }

    #[test]
    fn the_fragments_of_both_steps_are_as_long_as_the_span_says() {
        for ranks in [4, 6, 9, 24, 128] {
            let layout = Layout::new(Params::new(ranks)).unwrap();
            let me = Member::new(layout, ranks - 1).unwrap();
            for bytes in [0, 1, 24, 128] {
                let mut memory = std::vec![0; (bytes * u64::from(ranks)) as usize];
                let blocks = Blocks::equal_mut(&mut memory, ranks, bytes, Datatype::BYTE).unwrap();
                let plan =
                    Grouped { me: ranks - 1, groups: Groups::of(ranks).unwrap(), send: blocks, receive: blocks, bytes };
                let slot = layout.slot(0, 0);
                for (step, count) in [(0, plan.groups.columns), (1, plan.groups.count)] {
                    let last = plan.piece(slot, step, count - 1);
                    assert_eq!(last.len(), plan.stride(ranks / count));
                    assert!(last.offset() + last.len() <= slot.offset() + slot.len());
                }
                assert!(Grouped::applies(&me, bytes));
            }
        }
    }
}
