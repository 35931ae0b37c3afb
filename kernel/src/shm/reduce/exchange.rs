//! Reduce and allreduce by exchange (ours): ranks post their whole operands, and each rank that gets a result folds
//! all operands straight from the segment.
//!
//! | rank | per step |
//! |---|---|
//! | each rank whose operand another one folds | posts the next fragment of its operand |
//! | each rank that gets a result | from rank h down to 0: copies h's operand, folds the others into it from the left |
//!
//! The result is x₀ ∘ (x₁ ∘ (… ∘ xₕ)), the same on all ranks with the same h, for any
//! associative op, commutative or not. In a reduction h is the last rank, in a scan this
//! rank, in an exscan the rank before this one.
//!
//! Operands that fit a line go [on posted lines](super::posted); but through here inside the nodes of a communicator over several.
//!
//! Of two ranks the operands may change places if the op commutes. So each one takes the other's first, if that is long enough to be
//! lent, and folds it with its own on the way to the result. But a root that can't lend its own copies that first, while it waits: the
//! other one won't be lent either. What is copied first among more ranks, and was lent, is read in long pieces, straight to where the
//! result will lie. Of two ranks, what is read last of a loan that is not mapped is folded once the lender has been told that nobody reads
//! it any more.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::absent;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::Refusal;
use crate::op::Op;
use crate::region::layout::LINE_PAYLOAD;
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::engine::cut::{Cut, MUTUAL, Medium, ROOTED};
use crate::shm::engine::exchange::{Exchange, Order, Plan};
use crate::shm::engine::fold::{Operand, fold_lent_with, fold_private, fold_shared};
use crate::shm::engine::loans::{Borrowers, Origin};
use crate::shm::engine::pieces::{put, take};

/// Bytes of operands from which on it pays to copy the other rank's first. One's own is copied while one waits.
const SWAPPED: u64 = 8 << 10;

/// One process's part of a reduce, an allreduce, a scan or an exscan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduce<'a> {
    kind: Kind,
    me: Rank,
    size: u32,
    /// Is this rank's operand folded from its fragments: by another rank, or in place by itself?
    posts: bool,
    /// h: the highest rank whose operand is folded here; `None` if this rank gets no result.
    highest: Option<Rank>,
    /// The rank whose operand is copied, and into which the others' are folded.
    first: Option<Rank>,
    /// May the operands change places, those of this rank and of one other?
    changes: bool,
    /// Was the other one lent, and folded with this rank's own?
    joined: bool,
    /// Bytes at the end of this rank's operand that are not folded with it yet. They need nothing more of the other rank.
    left: u64,
    operand: Operand<'a>,
    /// The ranks that fold this one's operand.
    borrowers: Borrowers,
    cut: Cut,
}

impl<'a> Reduce<'a> {
    /// The fold of the `send` of all ranks into the root's `receive`, which is significant only there. In place:
    /// `receive` is `send`.
    ///
    /// # Errors
    /// `root` is not a rank of the communicator; the root's `receive` is missing; data with holes; a length that is
    /// not a whole number of elements; `send` and `receive` differ in length.
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
        if mine && receive.is_none() {
            return Err(absent());
        }
        let receive = if mine { receive } else { None };
        Operand::check(&send, receive.as_ref(), &op)?;
        let highest = mine.then(|| me.size() - 1);
        Self::plan(Kind::Reduce, me, Operand { send, receive, op }, !mine, highest, Borrowers::One(root))
    }

    /// The fold of the `send` of all ranks into the `receive` of all ranks.
    ///
    /// # Errors
    /// Data with holes; a length that is not a whole number of elements; `send` and `receive` differ in length.
    #[inline(always)]
    pub fn to_all(me: &Member, send: Data<'a>, receive: Data<'a>, op: Op) -> Result<Exchange<Self>, Refusal> {
        Operand::check(&send, Some(&receive), &op)?;
        let (posts, highest) = (me.size() > 1, Some(me.size() - 1));
        Self::plan(Kind::Allreduce, me, Operand { send, receive: Some(receive), op }, posts, highest, Borrowers::Others)
    }

    /// The plan of this rank: `posts` where another rank folds its operand; `highest` is h.
    #[inline(always)]
    pub(crate) fn plan(
        kind: Kind,
        me: &Member,
        operand: Operand<'a>,
        posts: bool,
        highest: Option<Rank>,
        borrowers: Borrowers,
    ) -> Result<Exchange<Self>, Refusal> {
        let bytes = operand.bytes();
        let medium = Medium::of(bytes);
        let least = if let Kind::Reduce = kind { ROOTED } else { MUTUAL };
        let cut = Cut::whole(bytes, medium.room(me), operand.op.element(), least)?;
        // In place, this rank's operand is overwritten before it is folded: so it is posted, and folded from the
        // fragment.
        let early = highest.is_some_and(|highest| highest > me.rank());
        let posts = posts || operand.is_in_place() && early;
        // An exscan of rank 2 has two operands, too, but none of its own.
        let two = highest == Some(1) && me.rank() <= 1;
        let changes = two && operand.op.commutative() && !operand.is_in_place();
        let first = if changes && me.rank() == 1 && bytes >= SWAPPED { Some(0) } else { highest };
        let (me, size, joined, left) = (me.rank(), me.size(), false, 0);
        let plan = Self { kind, me, size, posts, highest, first, changes, joined, left, operand, borrowers, cut };
        Ok(Exchange::of(medium, cut.span(bytes), plan))
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
        match self.first {
            Some(own) if self.changes && own == self.me => Order::OwnFirst,
            first if first == self.highest => Order::Falling,
            _ => Order::Rising,
        }
    }

    const EXPECTS: bool = true;

    #[inline(always)]
    fn restart(&mut self) {
        (self.joined, self.left) = (false, 0);
    }

    #[inline(always)]
    fn enter<R: Region>(&mut self, region: &R) {
        if self.changes && self.kind == Kind::Reduce {
            let bytes = self.operand.bytes();
            let lends = || self.lendable().is_some_and(|own| region.lend(own, self.kind).is_some());
            let other = if bytes >= SWAPPED { 1 - self.me } else { 1 };
            self.first = Some(if bytes > LINE_PAYLOAD && lends() { other } else { self.me });
        }
    }

    unsafe fn fill<R: Region>(&mut self, region: &R, place: Extent, step: u64) {
        // SAFETY: the caller's promise.
        unsafe { put(region, place, &self.operand.send, self.cut.part(self.operand.bytes(), step)) }
    }

    #[inline(always)]
    unsafe fn take<R: Region>(&mut self, region: &R, origin: Origin, step: u64, peer: Rank) -> Result<(), Unreadable> {
        let Operand { send, receive: Some(receive), op } = &self.operand else { return Ok(()) };
        let part = self.cut.part(send.len(), step);
        let (first, mine) = (Some(peer) == self.first, peer == self.me);
        match (first, mine) {
            // SAFETY: the caller's promise: both are this process's data; in place they are the same.
            (true, true) => unsafe { copy_private(region, send, receive, part) },
            (true, false)
                if self.changes
                    && let Origin::Lent(lent) = origin =>
            {
                let part = self.cut.part_from(origin, send.len(), step);
                let last = part.len > 0 && part.from + part.len == send.len();
                if last && !region.is_mapped(lent.lender, lent.loan, lent.from.wrapping_add(part.from), part.len) {
                    // SAFETY: the caller's promise.
                    let read = unsafe { take(region, origin, receive, part) };
                    (self.joined, self.left) = if read.is_ok() { (true, part.len) } else { (false, 0) };
                    return read;
                }
                // SAFETY: the caller's promise: the operand and the result are this process's data, apart from each other.
                let folded = unsafe { fold_lent_with(region, lent, (send, receive), part, op) };
                // What can't be read is posted in fragments.
                self.joined = folded.is_ok();
                return folded;
            }
            (true, false) => {
                // In place, this rank's operand of the steps that it has not posted still lies there.
                let whole = !self.operand.is_in_place();
                let part = if whole { self.cut.part_from(origin, send.len(), step) } else { part };
                // SAFETY: the caller's promise.
                return unsafe { take(region, origin, receive, part) };
            }
            (false, true) if self.joined => {}
            // SAFETY: the caller's promise: both are this process's data, apart from each other.
            (false, true) if !self.operand.is_in_place() => unsafe { fold_private(region, send, receive, part, op) },
            // SAFETY: the caller's promise; in place this process has posted its own operand.
            (false, _) => return unsafe { fold_shared(region, origin, receive, part, op) },
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn work<R: Region>(&mut self, region: &R, _all: bool) -> bool {
        let Operand { send, receive: Some(receive), op } = &self.operand else { return false };
        let part = Part { from: send.len() - self.left, len: core::mem::take(&mut self.left) };
        if part.len > 0 {
            // SAFETY: the caller's promise: both are this process's data, apart from each other.
            unsafe { fold_private(region, send, receive, part, op) };
        }
        part.len > 0
    }

    /// In place, the operand is overwritten while others fold it; not on rank 0 of a scan or exscan, which folds none into it.
    fn lendable(&self) -> Option<Buf> {
        let folds = self.highest.is_some_and(|highest| highest > 0 || self.me > 0);
        if self.operand.is_in_place() && folds { None } else { self.operand.send.as_contiguous() }
    }

    fn borrowers(&self) -> Borrowers {
        self.borrowers
    }
}
