//! Gather by groups (ours): short blocks come to the root in two steps, so that it reads from the ranks of its own group and of its
//! own column, instead of from all.
//!
//! Rank c of group g is in column c. The ranks of the root's column collect the blocks of their groups; the root does so for its own.
//!
//! | step | rank | what it does |
//! |---|---|---|
//! | 0 | each but the root | posts its block |
//! | 0 | of the root's column | copies the blocks of its group beside its own in its fragment; the root to where it receives them |
//! | 1 | of the root's column | posts that fragment again; the root takes those of the other groups |
//!
//! Each block is copied once more than in an [exchange](super::exchange), so this is for short ones; but what fits the first 64 bytes
//! of a line takes one transfer from each rank there.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::Refusal;
use crate::region::within::copy_within;
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::columns::Groups;
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::engine::cut::{Medium, Span};
use crate::shm::engine::exchange::{Exchange, Plan};
use crate::shm::engine::loans::Origin;
use crate::shm::engine::pieces::{put, take};
use crate::shm::gather::exchange::check;

/// One process's part of a gather.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grouped<'a> {
    me: Rank,
    root: Rank,
    groups: Groups,
    /// This rank's block; `None`: at the root, in place.
    send: Option<Data<'a>>,
    /// The blocks of all ranks, at the root; `None` elsewhere.
    receive: Option<Blocks<'a>>,
    /// The memory of all blocks, if they lie one after the other.
    all: Option<Buf>,
    /// Bytes of a block.
    bytes: u64,
    /// Where this process's fragment lies.
    own: Extent,
}

impl<'a> Grouped<'a> {
    /// Can the ranks be cut into groups, and has a slot room for a group's blocks of `bytes`?
    #[inline]
    pub fn applies(me: &Member, bytes: u64) -> bool {
        Groups::of(me.size()).is_some_and(|groups| groups.fit(me.layout().params().queue_fragment, bytes))
    }

    /// A gather of equal blocks to `root`. `send` is this rank's block; `None` at a root whose block is in place. `receive` is
    /// significant only at the root.
    ///
    /// # Errors
    /// As [`Gather::equal`](super::exchange::Gather::equal); the root's blocks differ in length; it does not
    /// [apply](Self::applies).
    pub fn new(
        me: &Member,
        send: Option<Data<'a>>,
        receive: Option<Blocks<'a>>,
        root: Rank,
    ) -> Result<Exchange<Self>, Refusal> {
        let plan = Self::plan(me, send, receive, root)?;
        let span = Span { advance: 2, bytes: u64::from(plan.groups.columns) * plan.bytes };
        Ok(Exchange::of(Medium::Queues, span, plan))
    }

    fn plan(me: &Member, send: Option<Data<'a>>, receive: Option<Blocks<'a>>, root: Rank) -> Result<Self, Refusal> {
        me.check_root(root)?;
        let receive = if me.rank() == root { receive } else { None };
        let bytes = check(me, send.as_ref(), receive.as_ref(), me.rank() == root)?;
        receive.map_or(Ok(()), |blocks| blocks.check_all(bytes))?;
        let groups = Groups::of_all(me)?.with_room(me, bytes)?;
        let all = receive.and_then(|blocks| blocks.in_one_piece());
        Ok(Self { me: me.rank(), root, groups, send, receive, all, bytes, own: Extent::new(0, 0) })
    }

    /// Does this rank collect the blocks of its group?
    const fn collects(&self) -> bool {
        self.is_across(self.root)
    }

    /// Is `peer` in this rank's column?
    const fn is_across(&self, peer: Rank) -> bool {
        self.groups.column(peer) == self.groups.column(self.me)
    }

    /// Is `peer` in this rank's group?
    const fn is_beside(&self, peer: Rank) -> bool {
        self.groups.group(peer) == self.groups.group(self.me)
    }

    /// Where the block of the rank in `column` lies in the fragment at `place`.
    const fn block(&self, place: Extent, column: u32) -> Extent {
        place.part(column as u64 * self.bytes, self.bytes)
    }
}

impl Plan for Grouped<'_> {
    fn kind(&self) -> Kind {
        Kind::Gather
    }

    fn steps(&self) -> u64 {
        2
    }

    fn announced(&self) -> u64 {
        self.bytes
    }

    /// What it posts in step 1 is complete when it has done step 0.
    fn posts(&self, step: u64) -> Option<u64> {
        (self.me != self.root && (step == 0 || self.collects())).then_some(step)
    }

    fn slot(&self, _: u64) -> u64 {
        0
    }

    fn takes_any(&self) -> bool {
        self.collects()
    }

    /// In step 0 the root receives the lines of its column, too.
    fn takes(&self, step: u64, peer: Rank) -> bool {
        match (step, peer == self.me) {
            (0, true) => self.me == self.root,
            (0, false) => self.collects() && (self.is_beside(peer) || self.me == self.root && self.is_across(peer)),
            (_, own) => !own && self.me == self.root && self.is_across(peer),
        }
    }

    fn reads(&self, step: u64, peer: Rank) -> bool {
        self.groups.reads(self.me, step, peer)
    }

    fn folds_into(&mut self, own: Extent) {
        self.own = own;
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, _: u64) {
        let Some(send) = &self.send else { return };
        let to = self.block(place, self.groups.column(self.me));
        // SAFETY: the caller's promise.
        unsafe { put(region, to, send, Part::first(self.bytes)) }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable> {
        let whole = Part::first(self.bytes);
        // Nobody lends anything here.
        let Origin::Segment(place) = origin else { return Err(Unreadable { changed: false }) };
        let (column, group) = (self.groups.column(peer), self.groups.group(peer));
        let Some(receive) = &self.receive else {
            // SAFETY: the caller's promise; no other process reads this of our fragment before it is published again.
            unsafe { copy_within(region, self.block(place, column), self.block(self.own, column)) };
            return Ok(());
        };
        match &self.send {
            // SAFETY: the caller's promise: both are this process's data.
            Some(send) if peer == self.me => unsafe { copy_private(region, send, &receive.block(peer), whole) },
            None if peer == self.me => {}
            // SAFETY: the caller's promise.
            _ if step == 0 => unsafe {
                take(region, Origin::Segment(self.block(place, column)), &receive.block(peer), whole)?;
            },
            // SAFETY: the caller's promise.
            _ => unsafe { self.groups.take_row(region, place, (receive, self.all), group, self.bytes)? },
        }
        Ok(())
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
    use std::vec::Vec;

    /// In step 0 the root's column takes the blocks of its groups, and in step 1 the root those of the other groups.
    #[test]
    fn each_block_comes_to_the_root_once() {
        for (ranks, root) in [(4, 0), (6, 5), (9, 4), (16, 9), (48, 17)] {
            let layout = Layout::new(Params::new(ranks)).unwrap();
            let members: Vec<_> = (0..ranks).map(|rank| Member::new(layout, rank).unwrap()).collect();
            let (mut memory, mut own) = (std::vec![0; 8 * ranks as usize], [0; 8]);
            let blocks = Blocks::equal_mut(&mut memory, ranks, 8, Datatype::BYTE).unwrap();
            let send = Some(Data::bytes_mut(&mut own));
            let plan = |me| Grouped::plan(me, send, Some(blocks), root).unwrap();
            let plans: Vec<_> = members.iter().map(plan).collect();
            let Groups { columns, count, .. } = plans[0].groups;
            for plan in &plans {
                let takes = |step| (0..ranks).filter(|peer| plan.takes(step, *peer)).count() as u32;
                let (is_root, collects) = (plan.me == root, plan.groups.column(plan.me) == plan.groups.column(root));
                let wanted = match (is_root, collects) {
                    // Its own block, those beside it, and the lines of its column.
                    (true, _) => [columns + count - 1, count - 1],
                    (_, true) => [columns - 1, 0],
                    _ => [0, 0],
                };
                assert_eq!([0, 1].map(takes), wanted, "rank {} of {ranks}", plan.me);
                let posts = [(!is_root).then_some(0), (!is_root && collects).then_some(1)];
                assert_eq!([0, 1].map(|step| plan.posts(step)), posts, "rank {} of {ranks}", plan.me);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let me = Member::new(Layout::new(Params::new(4)).unwrap(), 0).unwrap();
        let (mut memory, mut own) = ([0; 64], [0; 8]);
        let send = Some(Data::bytes_mut(&mut own));
        let places = [0, 16, 32, 48];
        let blocks = Blocks::vary_mut(&mut memory, &[8, 8, 8, 7], &places, Datatype::BYTE).unwrap();
        assert!(Grouped::new(&me, send, Some(blocks), 0).is_err(), "blocks of several lengths");
        assert!(Grouped::new(&me, send, None, 0).is_err(), "nowhere to receive");
        assert!(Grouped::new(&me, send, None, 4).is_err(), "no such root");
        assert!(Grouped::new(&me, None, None, 1).is_err(), "nothing to send");
        assert!(Grouped::new(&me, send, None, 1).is_ok());
    }
}
