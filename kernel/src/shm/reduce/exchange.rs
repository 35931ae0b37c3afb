//! Reduce and allreduce by exchange (ours): operands are posted whole, and folded straight
//! from the segment by everyone who wants the result.
//!
//! | who | per step |
//! |---|---|
//! | all whose operand others want | post its next fragment |
//! | all who want a result | from the highest rank down to 0: copy the first operand, fold the others from the left |
//!
//! The result of elements 0 … h is x₀ ∘ (x₁ ∘ (… ∘ xₕ)), the same on every process, for any
//! associative operation, commutative or not. `h` is the last rank in a reduction, the own one in
//! a scan, the one before in an exscan.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::absent;
use crate::data::datatype::Data;
use crate::error::{PollError, Refusal};
use crate::op::Op;
use crate::region::{Extent, Region};
use crate::shm::engine::copy::copy_private;
use crate::shm::engine::exchange::{Exchange, Order, Plan};
use crate::shm::engine::fold::{Operand, fold_private, fold_shared};
use crate::shm::engine::pieces::{Cut, Medium, get, put};

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduce<'a> {
    kind: Kind,
    me: Rank,
    size: u32,
    /// Does anyone else, or this process in place, fold from this one's fragments?
    posts: bool,
    /// The highest rank whose operand is folded here; none where no result is wanted.
    highest: Option<Rank>,
    operand: Operand<'a>,
    cut: Cut,
}

impl<'a> Reduce<'a> {
    /// The fold of everyone's `send` into the root's `receive`, which other ranks may leave out. In place: the
    /// same data twice.
    ///
    /// # Errors
    /// `root` is no rank; data with holes, or no whole number of elements.
    #[inline(always)]
    pub fn to_root(
        me: &Member,
        send: Data<'a>,
        receive: Option<Data<'a>>,
        op: Op,
        root: Rank,
    ) -> Result<Exchange<Self>, Refusal> {
        me.check_root(root)?;
        let mine = me.rank() == root;
        if mine {
            receive.ok_or(absent())?;
        }
        let receive = receive.filter(|_| mine);
        let highest = mine.then(|| me.size() - 1);
        Self::plan(Kind::Reduce, me, Operand::new(send, receive, op)?, !mine, highest)
    }

    /// The fold of everyone's `send` into everyone's `receive`.
    ///
    /// # Errors
    /// Data with holes, no whole number of elements, or two lengths.
    #[inline(always)]
    pub fn to_all(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Self>, Refusal> {
        let (posts, highest) = (me.size() > 1, Some(me.size() - 1));
        Self::plan(Kind::Allreduce, me, Operand::new(send, Some(receive), op)?, posts, highest)
    }

    #[inline(always)]
    pub(crate) fn plan(
        kind: Kind,
        me: &Member,
        operand: Operand<'a>,
        posts: bool,
        highest: Option<Rank>,
    ) -> Result<Exchange<Self>, Refusal> {
        let bytes = operand.bytes();
        let medium = Medium::of(bytes);
        let cut = Cut::whole(bytes, medium.room(me), operand.op.element())?;
        // In place the own operand is overwritten before its turn: it is folded from the own fragment.
        let early = highest.is_some_and(|highest| highest > me.rank());
        let posts = posts || operand.is_in_place() && early;
        let plan = Self { kind, me: me.rank(), size: me.size(), posts, highest, operand, cut };
        Ok(Exchange::of(medium, cut.steps(bytes), plan))
    }
}

impl Plan for Reduce<'_> {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn steps(&self) -> u64 {
        self.cut.steps(self.operand.bytes())
    }

    fn announced(&self) -> u64 {
        self.operand.bytes()
    }

    fn posts(&self, _: u64) -> Option<u64> {
        self.posts.then_some(0)
    }

    fn takes_any(&self) -> bool {
        self.highest.is_some()
    }

    fn takes(&self, _: u64, peer: Rank) -> bool {
        self.highest.is_some_and(|highest| peer <= highest)
    }

    fn order(&self) -> Order {
        Order::Falling
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        // SAFETY: the caller's promise.
        unsafe { put(region, place, &self.operand.send, self.cut.part(self.operand.bytes(), step)) }
    }

    unsafe fn take<R: Region>(&mut self, region: &R, place: Extent, step: u64, peer: Rank) -> Result<(), PollError> {
        let Operand { send, receive: Some(receive), op } = &self.operand else { return Ok(()) };
        let part = self.cut.part(send.len(), step);
        let (first, mine) = (Some(peer) == self.highest, peer == self.me);
        match (first, mine) {
            // SAFETY: the caller's promise: both are this process's data; in place they are the same.
            (true, true) => unsafe { copy_private(send, receive, part) },
            // SAFETY: the caller's promise.
            (true, false) => unsafe { get(region, place, receive, part) },
            // SAFETY: the caller's promise: both are this process's data, apart from each other.
            (false, true) if !self.operand.is_in_place() => unsafe { fold_private(region, send, receive, part, op) },
            // SAFETY: the caller's promise; in place this process has posted its own operand.
            (false, _) => unsafe { fold_shared(region, place, receive, part, op) },
        }
        Ok(())
    }
}
