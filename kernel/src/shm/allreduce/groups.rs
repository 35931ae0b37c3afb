//! Allreduce by groups (ours): ranks that follow one another are a group, and most bytes move inside groups, whose cores share a
//! cache on many machines.
//!
//! The vector is cut into one column per rank of a group, and each column into pieces of one share per group. Rank c of group g
//! folds column c of its group; then, among the ranks c of all groups, the shares g. Pieces are processed in batches of up to
//! eight. A batch of k pieces takes 4k steps:
//!
//! | steps | what every rank does | with whom |
//! |---|---|---|
//! | the first k | posts the next piece of every column; folds the pieces of its own column | its group |
//! | the next k | posts the folded piece; folds its own share of it | the ranks c of all groups |
//! | the next k | posts its share of the result; copies the other shares of its column | the same |
//! | the last k | posts its column's piece of the result; copies those of the other columns | its group |
//!
//! By [slices](super::slices) each rank reads a slice of every other one, twice: p − 1 slices of 1/p of the vector, most of
//! them from far cores. Here it reads as many bytes within its group, and twice 1/G of the vector beyond, for groups of G.
//! Operands are folded in rank order: groups are ranks in a row. Only one rank folds a share, so all ranks get the same bits.
//! A rank may lend its operand: then its group folds the pieces of its columns where they lie. What is posted in later steps is
//! in the segment.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::Refusal;
use crate::op::Op;
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::columns::{Columns, Groups};
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::engine::cut::{Medium, Span};
use crate::shm::engine::exchange::{Exchange, Order, Plan};
use crate::shm::engine::fold::{Operand, fold_shared};
use crate::shm::engine::loans::{Borrowers, Origin};
use crate::shm::engine::pieces::{put, take};

/// Most pieces of a batch.
const BATCH: u64 = 8;

/// What happens in a step; with the index of the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// The pieces of the process's column are folded in its group.
    Fold(u64),
    /// The shares of the process are folded among groups.
    FoldShares(u64),
    /// The shares of other groups are copied.
    CopyShares(u64),
    /// The pieces of other columns are copied.
    Copy(u64),
}

/// One process's part of an allreduce.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grouped<'a> {
    me: Rank,
    groups: Groups,
    columns: Columns,
    send: Data<'a>,
    receive: Data<'a>,
    op: Op,
}

impl<'a> Grouped<'a> {
    /// Can so many ranks be cut into groups of one size?
    pub fn divides(ranks: u32) -> bool {
        Groups::of(ranks).is_some()
    }

    /// Can so many ranks be cut into groups, and is there room for the op's elements?
    #[inline]
    pub fn applies(me: &Member, op: &Op) -> bool {
        Groups::of(me.size()).is_some_and(|groups| groups.piece(me, op.element()) > 0)
    }

    /// The fold of the `send` of all ranks into the `receive` of all ranks. In place: `receive` is `send`.
    ///
    /// # Errors
    /// As of [`Slices::new`](super::slices::Slices::new); it does not [apply](Self::applies).
    pub fn new(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Self>, Refusal> {
        let plan = Self::plan(me, send, receive, op)?;
        let span = Span { advance: plan.steps(), bytes: plan.columns.bytes() };
        Ok(Exchange::of(Medium::Queues, span, plan))
    }

    fn plan(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Self, Refusal> {
        Operand::check(&send, Some(&receive), &op)?;
        let columns = Columns::new(me, send.len(), &op)?;
        Ok(Self { me: me.rank(), groups: columns.groups, columns, send, receive, op })
    }

    /// The part of the vector that is the piece of this index of a column.
    fn part(&self, column: u32, piece: u64) -> Part {
        self.columns.part(column, piece)
    }

    /// A group's share of a piece of this process's column; and how far from the piece's begin it is.
    fn share(&self, group: u32, piece: u64) -> (Part, u64) {
        self.columns.share(self.part(self.groups.column(self.me), piece), group, self.groups.count)
    }

    /// What happens in `step`, and the number of pieces of its batch.
    fn act(&self, step: u64) -> (Act, u64) {
        let (first, at) = (step / (4 * BATCH) * BATCH, step % (4 * BATCH));
        let batch = BATCH.min(self.columns.pieces - first);
        let piece = first + at % batch;
        let act = match at / batch {
            0 => Act::Fold(piece),
            1 => Act::FoldShares(piece),
            2 => Act::CopyShares(piece),
            _ => Act::Copy(piece),
        };
        (act, batch)
    }
}

impl Plan for Grouped<'_> {
    fn kind(&self) -> Kind {
        Kind::Allreduce
    }

    fn steps(&self) -> u64 {
        4 * self.columns.pieces
    }

    fn announced(&self) -> u64 {
        self.send.len()
    }

    /// What it posts beyond its operand is complete when it has done the step before with the same piece.
    fn posts(&self, step: u64) -> Option<u64> {
        match self.act(step) {
            (Act::Fold(_), _) => Some(0),
            (_, batch) => Some(step - batch + 1),
        }
    }

    fn takes_any(&self) -> bool {
        true
    }

    fn takes(&self, step: u64, peer: Rank) -> bool {
        let Self { me, groups, .. } = *self;
        let (own, beside) = (peer == me, groups.group(peer) == groups.group(me));
        let across = groups.column(peer) == groups.column(me);
        match self.act(step).0 {
            // It receives the lines of all ranks from which it takes later, too.
            Act::Fold(piece) => {
                step == 0 && (beside || across) || beside && self.part(groups.column(me), piece).len > 0
            }
            Act::FoldShares(piece) => across && self.share(groups.group(me), piece).0.len > 0,
            Act::CopyShares(piece) => across && !own && self.share(groups.group(peer), piece).0.len > 0,
            Act::Copy(piece) => beside && !own && self.part(groups.column(peer), piece).len > 0,
        }
    }

    fn reads(&self, step: u64, peer: Rank) -> bool {
        !matches!(self.act(step).0, Act::Fold(_)) || self.groups.group(peer) == self.groups.group(self.me)
    }

    fn order(&self) -> Order {
        Order::of(&self.op)
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        let mine = self.groups.column(self.me);
        let part = match self.act(step).0 {
            Act::Fold(piece) => {
                for column in (0..self.groups.columns).filter(|column| *column != mine || !self.op.commutative()) {
                    let part = self.part(column, piece);
                    let place = place.part(self.columns.offset(column), part.len);
                    // SAFETY: the caller's promise.
                    unsafe { put(region, place, &self.send, part) };
                }
                return;
            }
            Act::FoldShares(piece) | Act::Copy(piece) => self.part(mine, piece),
            Act::CopyShares(piece) => self.share(self.groups.group(self.me), piece).0,
        };
        // SAFETY: the caller's promise.
        unsafe { put(region, place, &self.receive, part) };
    }

    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable> {
        let Self { me, groups, op, .. } = *self;
        let own = peer == me;
        let (part, offset, last) = match self.act(step).0 {
            Act::Fold(piece) => {
                let column = groups.column(me);
                (self.part(column, piece), self.columns.offset(column), groups.column(peer) + 1 == groups.columns)
            }
            Act::FoldShares(piece) => {
                let (part, offset) = self.share(groups.group(me), piece);
                // The fold of this process's group lies there already.
                if own && (op.commutative() || groups.group(me) + 1 == groups.count) {
                    return Ok(());
                }
                (part, offset, groups.group(peer) + 1 == groups.count)
            }
            // SAFETY: the caller's promise.
            Act::CopyShares(piece) => unsafe {
                return take(region, origin, &self.receive, self.share(groups.group(peer), piece).0);
            },
            // SAFETY: the caller's promise.
            Act::Copy(piece) => unsafe {
                return take(region, origin, &self.receive, self.part(groups.column(peer), piece));
            },
        };
        if part.len == 0 {
            return Ok(());
        }
        let origin = match origin {
            Origin::Segment(place) => Origin::Segment(place.part(offset, part.len)),
            lent @ Origin::Lent(_) => lent,
        };
        // An op that does not commute folds from the last rank down, its own operand from what it has posted.
        match (op.commutative(), own, last) {
            // SAFETY: the caller's promise: both are this process's data; in place they are the same.
            (true, true, _) | (false, true, true) => unsafe { copy_private(region, &self.send, &self.receive, part) },
            // SAFETY: the caller's promise.
            (false, false, true) => return unsafe { take(region, origin, &self.receive, part) },
            // SAFETY: the caller's promise.
            _ => return unsafe { fold_shared(region, origin, &self.receive, part, &op) },
        }
        Ok(())
    }

    /// Not in place: there it would write again what others have read.
    fn lendable(&self) -> Option<Buf> {
        if self.op.commutative() && self.send != self.receive { self.send.as_contiguous() } else { None }
    }

    fn is_of_loan(&self, step: u64) -> bool {
        matches!(self.act(step).0, Act::Fold(_))
    }

    fn borrowers(&self) -> Borrowers {
        let Groups { columns, .. } = self.groups;
        Borrowers::Row { first: self.me - self.groups.column(self.me), ranks: columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::User;
    use crate::region::{Layout, Params};
    use core::ffi::c_void;
    use std::vec::Vec;

    unsafe extern "C-unwind" fn none(_: *const c_void, _: *mut c_void, _: u64, _: *mut c_void) {}

    /// An op on elements of `element` bytes.
    fn op(element: u64) -> Op {
        // SAFETY: never called.
        Op::User(unsafe { User::new(none, core::ptr::null_mut(), element, true) })
    }

    fn members(ranks: u32, slot: u64) -> Vec<Member> {
        let layout = Layout::new(Params { queue_fragment: slot, ..Params::new(ranks) }).unwrap();
        (0..ranks).map(|rank| Member::new(layout, rank).unwrap()).collect()
    }

    #[test]
    fn groups_are_of_one_size_near_eight() {
        let of = |size| Groups::of(size).map(|Groups { columns, count, .. }| (columns, count));
        let cut = [4, 6, 9, 12, 16, 18, 24, 34, 48, 64, 100, 128].map(|size| of(size).unwrap());
        let wanted =
            [(2, 2), (3, 2), (3, 3), (6, 2), (8, 2), (9, 2), (8, 3), (2, 17), (8, 6), (8, 8), (10, 10), (8, 16)];
        assert_eq!(cut, wanted);
        assert!([0, 1, 2, 3, 5, 7, 11, 13, 17, 31, 127, 17 * 17].into_iter().all(|size| of(size).is_none()));
    }

    #[test]
    fn elements_for_which_there_is_no_room_do_not_apply() {
        let applies = |ranks, slot, element| Grouped::applies(&members(ranks, slot)[0], &op(element));
        assert!(applies(4, 64, 16) && !applies(4, 64, 17));
        assert!(applies(128, 4096, 32) && !applies(128, 4096, 33));
        assert!(!applies(5, 4096, 8));
        assert!(![0, 1 << 60, 1 << 63, u64::MAX].into_iter().any(|element| applies(128, 4096, element)));
    }

    #[test]
    fn pieces_are_whole_lines_where_elements_allow_it() {
        let piece = |ranks, slot, element| Groups::of(ranks).unwrap().piece(&members(ranks, slot)[0], element);
        // Six shares of 8 bytes: four elements of each are 192 bytes. Of 12 bytes, there would be eight.
        assert_eq!([piece(48, 4096, 8), piece(48, 4096, 12), piece(48, 8192, 12)], [384, 504, 576]);
        assert_eq!([piece(4, 64, 8), piece(16, 4096, 8), piece(128, 32 << 10, 4)], [32, 512, 4096]);
    }

    /// The columns of a vector, the pieces of a column and the shares of a piece follow one another, each of whole elements; and
    /// the pieces of all columns lie side by side in a slot.
    #[test]
    fn columns_pieces_and_shares_tile_the_vector() {
        let mut plans = 0;
        for (ranks, slot) in
            [4, 6, 9, 12, 16, 24, 48].into_iter().flat_map(|ranks| [64, 256, 4096].map(|slot| (ranks, slot)))
        {
            let members = members(ranks, slot);
            for element in
                [1, 4, 8, 12, 16, 100].into_iter().filter(|&element| Grouped::applies(&members[0], &op(element)))
            {
                let p = u64::from(ranks);
                for count in
                    [0, 1, 2, p - 1, p, p + 1, 3 * p + 2, slot / element, 5 * slot / element + 1, 9 * slot / element]
                {
                    let mut memory = std::vec![0; (count * element) as usize];
                    let data = Data::bytes_mut(&mut memory);
                    let of = |me| Grouped::plan(me, data, data, op(element)).unwrap();
                    let (any, mut at) = (of(&members[0]), 0);
                    let Groups { columns, count: groups, .. } = any.groups;
                    for (column, piece) in
                        (0..columns).flat_map(|column| (0..any.columns.pieces).map(move |piece| (column, piece)))
                    {
                        let part = any.part(column, piece);
                        assert_eq!((part.from, part.len % element), (at, 0), "{any:?}, column {column}, piece {piece}");
                        let end = any.columns.offset(column) + part.len;
                        assert!(
                            end <= any.columns.offset(column + 1) && end <= slot,
                            "{any:?}, column {column}, piece {piece}"
                        );
                        for group in 0..groups {
                            // The rank of this column in any group says the same.
                            let plan = of(&members[((group + 1) % groups * columns + column) as usize]);
                            let (share, offset) = plan.share(group, piece);
                            assert_eq!(
                                (share.from, share.len % element),
                                (at, 0),
                                "{plan:?}, share {group} of {piece}"
                            );
                            assert_eq!(offset, share.from - part.from);
                            at += share.len;
                        }
                        assert_eq!(at, part.from + part.len);
                    }
                    assert_eq!(at, count * element, "{any:?}");
                    assert_eq!(any.part(columns - 1, any.columns.pieces).len, 0, "no piece after the last");
                    plans += 1;
                }
            }
        }
        assert_eq!(plans, 870);
    }

    /// Batches of up to eight pieces: each act on all pieces of a batch, then the next one; what is posted has been through the act
    /// before.
    #[test]
    fn a_batch_goes_through_one_act_after_the_other() {
        for pieces in [1, 7, 8, 9, 20] {
            let members = members(4, 64);
            let mut memory = std::vec![0; 64 * pieces as usize];
            let data = Data::bytes_mut(&mut memory);
            let plan = Grouped::plan(&members[0], data, data, op(8)).unwrap();
            let mut step = 0;
            for first in (0..pieces).step_by(8) {
                let batch = 8.min(pieces - first);
                for act in [Act::Fold, Act::FoldShares, Act::CopyShares, Act::Copy] {
                    for piece in first..first + batch {
                        assert_eq!(plan.act(step), (act(piece), batch), "step {step} of {pieces} pieces");
                        let after = plan.posts(step).unwrap();
                        let before = (0..after).filter(|&before| plan.act(before).0 != act(piece)).filter(|&before| {
                            let (Act::Fold(of) | Act::FoldShares(of) | Act::CopyShares(of) | Act::Copy(of)) =
                                plan.act(before).0;
                            of == piece
                        });
                        // Of this piece, all acts before this one are done; and nothing that comes later is waited for.
                        let acts = [Act::Fold, Act::FoldShares, Act::CopyShares, Act::Copy];
                        let done = acts.iter().position(|each| each(piece) == act(piece)).unwrap();
                        assert_eq!((before.count(), after <= step), (done, true), "step {step} of {pieces} pieces");
                        step += 1;
                    }
                }
            }
            assert_eq!((plan.steps(), plan.announced()), (step, 64 * pieces));
        }
    }
}
