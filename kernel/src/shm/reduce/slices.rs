//! Reduce by slices (ours): each rank but the root folds one slice of the vector, and the root collects the folds.
//!
//! The vector is cut into one slice per rank that is not the root, and each slice into pieces. In each step:
//!
//! | rank | what |
//! |---|---|
//! | each | posts the next piece of every slice, side by side in one fragment |
//! | each but the root | folds the pieces of its own slice in all other ranks' fragments into the one in its own |
//! | root | copies each folded piece from the fragment of the rank that has folded it |
//!
//! A rank that is not the root has no memory for a result: what it folds lies in its own fragment, which nobody else reads there
//! before it has acknowledged the step, and which it keeps until the root has acknowledged it, too. So each rank writes and reads
//! about as many bytes as the vector has, where [by exchange](super::exchange) the root reads p − 1 vectors.
//!
//! Only one rank folds a slice, so it may fold in any order if the op commutes. An op that does not commute is folded from the
//! last rank down to 0.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::absent;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, Refusal};
use crate::op::Op;
use crate::region::within::copy_within;
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::copy::Part;
use crate::shm::engine::cut::{MUTUAL, Medium, Span};
use crate::shm::engine::exchange::{Exchange, Order, Plan};
use crate::shm::engine::fold::{Operand, fold_own};
use crate::shm::engine::loans::Origin;
use crate::shm::engine::pieces::{Pair, Pieces, Readers, put, take};

/// One process's part of a reduce.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slices<'a> {
    me: Rank,
    size: u32,
    root: Rank,
    send: Data<'a>,
    /// Where the root receives; `None` elsewhere.
    receive: Option<Data<'a>>,
    op: Op,
    /// Bytes of a slice; the last slices may be shorter, or empty.
    slice: u64,
    pieces: Pieces,
    /// Where this process's fragment of the present step lies.
    own: Extent,
}

impl<'a> Slices<'a> {
    /// Is there another rank than the root, and has a slot room for an element of each slice?
    #[inline]
    pub fn applies(me: &Member, op: &Op) -> bool {
        me.size() > 1 && Pieces::queued(me, op.element(), op.element(), Readers::Others, MUTUAL).is_ok()
    }

    /// The fold of the `send` of all ranks into the root's `receive`, which is significant only there. In place: `receive` is
    /// `send`.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; the root's `receive` is missing; data with holes; a length that is not a whole
    /// number of elements; `send` and `receive` differ in length; it does not [apply](Self::applies).
    pub fn new(
        me: &Member,
        send: Data<'a>,
        receive: Option<Data<'a>>,
        op: Op,
        root: Rank,
    ) -> Result<Exchange<Self>, Refusal> {
        let plan = Self::plan(me, send, receive, op, root)?;
        let span = Span { advance: plan.steps(), bytes: plan.pieces.bytes(me) };
        Ok(Exchange::of(Medium::Queues, span, plan))
    }

    fn plan(me: &Member, send: Data<'a>, receive: Option<Data<'a>>, op: Op, root: Rank) -> Result<Self, Refusal> {
        me.check_root(root)?;
        Refusal::check(Argument::Ranks, me.size().into(), Bound::AtLeast(2))?;
        let receive = if me.rank() == root { Some(receive.ok_or_else(absent)?) } else { None };
        Operand::check(&send, receive.as_ref(), &op)?;
        let slice = op.count(send.len())?.div_ceil(u64::from(me.size()) - 1) * op.element();
        let pieces = Pieces::queued(me, slice, op.element(), Readers::Others, MUTUAL)?;
        let own = Extent::new(0, 0);
        Ok(Self { me: me.rank(), size: me.size(), root, send, receive, op, slice, pieces, own })
    }

    /// The part of the vector that is the piece of a step of the slice that `rank` folds.
    fn part(&self, rank: Rank, step: u64) -> Part {
        let (all, index) = (self.send.len(), rank - u32::from(rank > self.root));
        let begin = (u64::from(index) * self.slice).min(all);
        let Part { from, len } = self.pieces.cut.part(self.slice.min(all - begin), step);
        Part { from: begin + from, len }
    }

    /// Where the piece that `rank` folds lies in a fragment.
    fn piece(&self, fragment: Extent, rank: Rank) -> Extent {
        // The root is the rank that no piece is for.
        self.pieces.of(fragment, Pair { writer: self.root, reader: rank })
    }
}

impl Plan for Slices<'_> {
    fn kind(&self) -> Kind {
        Kind::Reduce
    }

    fn steps(&self) -> u64 {
        self.pieces.cut.steps(self.slice)
    }

    fn announced(&self) -> u64 {
        self.send.len()
    }

    fn posts(&self, _: u64) -> Option<u64> {
        Some(0)
    }

    fn takes_any(&self) -> bool {
        true
    }

    fn takes(&self, step: u64, peer: Rank) -> bool {
        // It receives the lines of all ranks, also where a slice is empty.
        if self.me == self.root {
            return peer != self.root && (step == 0 || self.part(peer, step).len > 0);
        }
        // Its own operand lies in its fragment; in rank order it has its turn, too.
        (peer != self.me || !self.op.commutative()) && (step == 0 || self.part(self.me, step).len > 0)
    }

    fn takes_folded(&self, _: u64) -> bool {
        self.me == self.root
    }

    fn order(&self) -> Order {
        if self.me == self.root { Order::OwnFirst } else { Order::of(&self.op) }
    }

    fn folds_into(&mut self, own: Extent) {
        self.own = own;
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        for rank in (0..self.size).filter(|rank| *rank != self.root) {
            // SAFETY: the caller's promise.
            unsafe { put(region, self.piece(place, rank), &self.send, self.part(rank, step)) };
        }
    }

    #[inline(always)]
    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable> {
        // Nobody lends anything here.
        let Origin::Segment(place) = origin else { return Err(Unreadable { changed: false }) };
        if let Some(receive) = &self.receive {
            // SAFETY: the caller's promise.
            return unsafe { take(region, Origin::Segment(self.piece(place, peer)), receive, self.part(peer, step)) };
        }
        let part = self.part(self.me, step);
        let from = self.piece(place, self.me).part(0, part.len);
        let acc = self.piece(self.own, self.me).part(0, part.len);
        match (self.op.commutative(), peer == self.me, peer == self.size - 1) {
            // It was posted there.
            (false, true, true) => {}
            // SAFETY: the caller's promise; nobody reads this piece of our fragment before our acknowledgement of the step.
            (false, false, true) => unsafe { copy_within(region, from, acc) },
            // SAFETY: as above.
            (false, true, false) => unsafe { fold_own(region, &self.send, part, acc, &self.op) },
            // SAFETY: as above.
            _ => unsafe { region.fold_within(from, acc, &self.op) },
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
    use crate::region::{Layout, Params};

    /// The slices of all ranks but the root follow one another, each in pieces of whole elements, which lie side by side in a slot.
    #[test]
    fn slices_and_their_pieces_tile_the_vector() {
        for (ranks, slot) in [(2, 64), (3, 64), (4, 256), (9, 256), (17, 4096)] {
            let layout = Layout::new(Params { queue_fragment: slot, ..Params::new(ranks) }).unwrap();
            let members: std::vec::Vec<_> = (0..ranks).map(|rank| Member::new(layout, rank).unwrap()).collect();
            for count in [0, 1, u64::from(ranks) - 1, u64::from(ranks), 100, 1001] {
                for root in [0, 1, ranks - 1] {
                    let mut memory = std::vec![0; 8 * count as usize];
                    let data = Data::bytes_mut(&mut memory);
                    let plan = |me| Slices::plan(me, data, Some(data), Op::SUM_I64, root).unwrap();
                    let (mut at, mut end) = (0, 0);
                    for rank in (0..ranks).filter(|rank| *rank != root) {
                        let any = plan(&members[rank as usize]);
                        let piece = any.piece(layout.slot(0, 0), rank);
                        assert!(piece.offset() >= end, "{any:?}");
                        end = piece.offset() + piece.len();
                        for step in 0..any.steps() {
                            let part = any.part(rank, step);
                            assert_eq!((part.from, part.len % 8), (at, 0), "{any:?}, rank {rank}, step {step}");
                            assert!(part.len <= piece.len(), "{any:?}, rank {rank}, step {step}");
                            at += part.len;
                        }
                    }
                    assert_eq!(at, 8 * count);
                    assert!(end <= layout.slot(0, 0).offset() + slot);
                }
            }
        }
    }

    #[test]
    fn it_applies_where_there_is_another_rank_and_room() {
        let applies = |ranks, slot| {
            let layout = Layout::new(Params { queue_fragment: slot, ..Params::new(ranks) }).unwrap();
            Slices::applies(&Member::new(layout, 0).unwrap(), &Op::SUM_F64)
        };
        assert_eq!(
            [(1, 64), (2, 64), (5, 64), (6, 64), (128, 32 << 10)].map(|(ranks, slot)| applies(ranks, slot)),
            [false, true, true, false, true]
        );
    }
}
