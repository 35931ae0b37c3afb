//! The engine for a block of each pair of ranks (ours): alltoall, and scatter, in which only the root has blocks. Its
//! loop is in [`steps`](super::steps).
//!
//! `pairs` says through which places blocks travel, and which ranks know their lengths. In step 0 the blocks for all
//! ranks lie side by side in one place. In each later step a process exchanges fragments with one other.
//!
//! A root that alone posts continues in its readers' queues when its own queue is full, so that it can post more before
//! it must wait for readers.

use super::copy::{Apart, Part, copy_private};
use super::cut::{MUTUAL, ROOTED, Span};
use super::exchange::Order;
use super::laps;
use super::line::{self, Heading};
use super::loans::{Borrowers, Lent, Loans, NO_LOAN, WORDS};
use super::pairs::Pairs;
use super::pieces::{Pair, fetch};
use super::steps::{Clock, Engine, Steps, Taking};
use crate::Rank;
use crate::algorithm::PAIR;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::{PollError, Refusal};
use crate::machine::poll::{Halt, WaitSet};
use crate::region::{Extent, Lap, Region};

/// One process's part of such an operation.
pub type Pairwise<'a> = Steps<Blockwise<'a>>;

/// Which blocks this process receives, and where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Receive<'a> {
    /// One block from each process.
    Each(Blocks<'a>),
    /// One block from this root, which alone has blocks; `None` at a root whose own block stays in place.
    From(Rank, Option<Data<'a>>),
}

/// The engine for a block of each pair of ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Blockwise<'a> {
    kind: Kind,
    pub(super) pairs: Pairs,
    /// A block for each rank, if this process has blocks to send.
    send: Option<Blocks<'a>>,
    receive: Receive<'a>,
    /// Ranks whose lent blocks were taken in step 0.
    borrowed: u32,
    /// A root's own block, where it is copied apart.
    apart: Apart,
}

impl<'a> Pairwise<'a> {
    /// All blocks have `bytes` bytes, and all ranks know it.
    ///
    /// # Errors
    /// A slot has no room for a byte, which no layout allows.
    #[inline(always)]
    pub(crate) fn equal(
        me: &Member,
        kind: Kind,
        bytes: u64,
        send: Option<Blocks<'a>>,
        receive: Receive<'a>,
    ) -> Result<Self, Refusal> {
        let (medium, span, pairs) =
            Pairs::known(me, bytes, if let Receive::From(..) = receive { ROOTED } else { MUTUAL })?;
        Ok(Self::new(span.within(medium), Blockwise { kind, pairs, send, receive, borrowed: 0, apart: Apart::NONE }))
    }

    /// Blocks whose lengths only writer and reader know. The longest block that this process receives has `most` bytes.
    ///
    /// # Errors
    /// A block has more bytes than the steps of such an operation can carry.
    #[inline(always)]
    pub(crate) fn vary(
        me: &Member,
        kind: Kind,
        most: u64,
        send: Option<Blocks<'a>>,
        receive: Receive<'a>,
    ) -> Result<Self, Refusal> {
        let sent = match &send {
            Some(blocks) => blocks.most(),
            None => 0,
        };
        let pairs = Pairs::unknown(me, sent, most)?;
        Ok(Self::new(Span::UNKNOWN, Blockwise { kind, pairs, send, receive, borrowed: 0, apart: Apart::NONE }))
    }
}

impl<'a> Blockwise<'a> {
    /// Has only one rank, the root, blocks to send?
    #[inline(always)]
    pub(super) const fn is_rooted(&self) -> bool {
        matches!(self.receive, Receive::From(..))
    }

    /// Memory for the block that this process receives from `writer`: by reference, since a copy of it costs as much as
    /// a short block.
    #[inline(always)]
    fn incoming<A>(&self, writer: Rank, take: impl FnOnce(&Data<'a>) -> A) -> A {
        match &self.receive {
            Receive::Each(blocks) => take(&blocks.block(writer)),
            Receive::From(_, Some(data)) => take(data),
            Receive::From(_, None) => take(&Data::EMPTY),
        }
    }

    /// Does this process take a fragment of its block from `peer` in `step`?
    #[inline]
    fn takes(&self, step: u64, peer: Rank) -> bool {
        match &self.receive {
            Receive::Each(blocks) => self.pairs.takes(step, peer, || blocks.bytes(peer)),
            Receive::From(root, Some(data)) => peer == *root && self.pairs.takes(step, peer, || data.len()),
            Receive::From(_, None) => false,
        }
    }

    /// Lends this process's blocks, if it can, and says so in `words`. Returns the start of what is lent.
    #[inline(never)]
    fn offer<R: Region>(&self, region: &R, loans: &mut Loans, words: &mut [u64; WORDS]) -> Option<*mut u8> {
        let memory = self.lendable()?;
        *words = loans.offer(region, self.kind, Some(memory), None)?;
        Some(memory.ptr())
    }

    /// The memory that this process can lend: not in place, where it receives into the same memory.
    fn lendable(&self) -> Option<Buf> {
        let send = self.send.as_ref()?;
        match &self.receive {
            Receive::Each(receive) if receive == send => None,
            _ => self.pairs.lendable(send),
        }
    }

    /// Takes the block that `peer` has lent, from byte `from` of the loan on, if it can be read.
    ///
    /// # Errors
    /// Another loan could be read, and this one can't.
    #[inline(never)]
    fn take_lent<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        clock: &Clock,
        (peer, from): (Rank, u64),
        loans: &mut Loans,
    ) -> Result<(), PollError> {
        let Some(loan) = loans.of(region, me, clock.operation(), peer) else { return Ok(()) };
        let lent = Lent { lender: peer, loan, from };
        if self.is_rooted() {
            // All take their blocks from the root at once, the ranks after it in turn.
            let turn = if me.rank() > peer { me.rank() - peer } else { me.rank() + me.size() - peer } - 1;
            region.await_turn(loan, turn, self.incoming(peer, |data| data.len()));
        }
        // SAFETY: S3, received; the lender writes its memory only after our `acked`; the data is as the constructor was
        // promised.
        match self.incoming(peer, |data| unsafe { fetch(region, &lent, data, Part::first(data.len())) }) {
            Ok(()) => self.borrowed += 1,
            Err(unreadable) => loans.refuse(region, me, clock.operation(), peer, unreadable)?,
        }
        Ok(())
    }

    /// This process is about to take the block that lies in the slot of the rank at `index`, beside those for others: it expects
    /// the blocks of the ranks after it that have posted theirs.
    #[inline(never)]
    fn expect<R: Region>(&self, region: &R, me: &Member, clock: &Clock, index: u32) {
        for peer in line::after(me, index, |next| Order::OwnFirst.peer(me.rank(), me.size(), next)) {
            if self.takes(0, peer) && line::is_there(region, me, peer, clock.operation()) {
                let (pair, lap) =
                    (Pair { writer: peer, reader: me.rank() }, laps::of(region, me, clock.operation(), peer));
                let piece = self.pairs.piece(self.place(me, clock, 0, pair, || lap), pair);
                region.expect(piece.part(0, line::EXPECTED.min(self.incoming(peer, |data| data.len()))));
            }
        }
    }

    /// Does this process look in step 0 at what `peer` lends?
    fn may_borrow(&self, peer: Rank) -> bool {
        self.pairs.known_offset().is_some()
            && match &self.receive {
                Receive::Each(_) => true,
                Receive::From(root, data) => peer == *root && data.is_some(),
            }
    }

    /// The place of the fragment of `step` that `pair.writer` writes for `pair.reader`.
    #[inline]
    pub(super) fn place(&self, me: &Member, clock: &Clock, step: u64, pair: Pair, lap: impl FnOnce() -> Lap) -> Extent {
        if !self.pairs.in_slot(step, pair.writer) {
            return clock.line(me, pair.writer);
        }
        let lap = lap();
        let queue = if self.in_readers_queue(step, lap.slots).is_some() { pair.reader } else { pair.writer };
        clock.fragment(me, queue, step, lap)
    }

    /// Does the fragment of `step` lie in its reader's queue, since only the root posts and its own queue is full? If
    /// so: the number of steps after which the root comes to the same slot of the same queue again. The number of
    /// slots in a lap is a power of two and the number of rounds is odd, so that is their product.
    #[inline]
    pub(super) fn in_readers_queue(&self, step: u64, slots: u64) -> Option<u64> {
        (step >= slots && self.is_rooted()).then(|| slots * self.pairs.rounds())
    }
}

impl Engine for Blockwise<'_> {
    #[inline]
    fn kind(&self) -> Kind {
        self.kind
    }

    #[inline]
    fn steps(&self) -> u64 {
        self.pairs.steps()
    }

    /// In a rooted operation the root takes from no other rank.
    #[inline]
    fn takes_any(&self) -> bool {
        !self.is_rooted() || self.send.is_none()
    }

    /// In a rooted operation the other ranks skip all steps in which they don't meet the root.
    #[inline]
    fn next(&self, step: u64) -> u64 {
        match self.receive {
            // All that others have for this process was lent.
            Receive::Each(blocks) if self.borrowed > 0 && self.borrowed + 1 == blocks.ranks() => self.steps(),
            Receive::From(..) if self.borrowed > 0 => self.steps(),
            Receive::From(root, _) if self.send.is_none() => self.pairs.next_with(step, root),
            _ => step + 1,
        }
    }

    #[inline]
    fn posts(&self, step: u64) -> Option<u64> {
        let blocks = self.send.as_ref()?;
        self.pairs.posts(step, |reader| blocks.bytes(reader)).then_some(0)
    }

    #[inline]
    fn restart(&mut self) {
        (self.borrowed, self.apart) = (0, Apart::NONE);
    }

    #[inline(always)]
    fn all_in_lines(&self, _: &Member) -> bool {
        self.pairs.all_in_lines()
    }

    #[inline(always)]
    fn post_line<R: Region>(&mut self, region: &R, me: &mut Member, clock: &Clock) -> Result<(), WaitSet> {
        let Some(blocks) = &self.send else { return Ok(()) };
        if me.size() == 1 {
            return Ok(());
        }
        me.line_free(region, clock.operation())?;
        me.uses_slot(0);
        // SAFETY: R10 (checked as S2), the line is free. The data is as the constructor was promised.
        unsafe { self.pairs.put(region, clock.line(me, me.rank()), 0, blocks, None) };
        clock.post_line(region, me, Heading { kind: self.kind, bytes: self.pairs.announced() }, None);
        Ok(())
    }

    #[inline(always)]
    fn has_one_step(&self) -> bool {
        self.pairs.steps() == 1
    }

    #[inline(always)]
    fn take_whole<const LINES: bool, R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        clock: &Clock,
        index: &mut u32,
        _loans: &mut Loans,
    ) -> Result<Option<bool>, Halt> {
        let (rank, size) = (me.rank(), me.size());
        while *index < size {
            let peer = match self.receive {
                Receive::Each(_) => Order::OwnFirst.peer(rank, size, *index),
                Receive::From(root, Some(_)) => root,
                Receive::From(_, None) => break,
            };
            if peer != rank {
                let announced = line::receive_head(region, me, peer, clock.operation(), self.kind)?;
                self.pairs.received(peer, announced)?;
                let mut place = clock.line(me, peer);
                if self.pairs.in_slot(0, peer) {
                    if LINES {
                        return Ok(None);
                    }
                    let Some(lap) = laps::unlent(region, me, clock.operation(), peer) else { return Ok(None) };
                    if size > PAIR && region.expects() {
                        self.expect(region, me, clock, *index);
                    }
                    place = clock.fragment(me, peer, 0, lap);
                }
                // SAFETY: S3, received, and reused only after our `acked` or `done`; the data is as the constructor was promised.
                self.incoming(peer, |data| unsafe { self.pairs.get(region, place, 0, peer, data) })?;
            } else if let Some(blocks) = &self.send
                && (LINES || !(self.is_rooted() && Apart::has(blocks.bytes(peer))))
            {
                let own = blocks.block(peer);
                // SAFETY: both are this process's data, as the constructor was promised; in place they are the same.
                self.incoming(peer, |data| unsafe { copy_private(region, &own, data, Part::first(data.len())) });
            }
            *index = if self.is_rooted() { size } else { *index + 1 };
        }
        Ok(Some(true))
    }

    #[inline]
    fn borrowers(&self) -> Borrowers {
        Borrowers::Others
    }

    #[inline]
    fn is_of_loan(&self, step: u64) -> bool {
        step > 0
    }

    #[inline]
    fn post<R: Region>(
        &mut self,
        region: &R,
        me: &mut Member,
        clock: &Clock,
        step: u64,
        loans: &mut Loans,
    ) -> Result<(), WaitSet> {
        let Some(blocks) = &self.send else { return Ok(()) };
        if step == 0 {
            me.line_free(region, clock.operation())?;
            me.uses_slot((!self.pairs.in_line(me.rank())).into());
        }
        let reader = self.pairs.partner(step).unwrap_or(me.rank());
        if step > 0 && !loans.is_wanted(region, me, clock.operation(), reader)? {
            return Ok(());
        }
        if self.pairs.in_slot(step, me.rank()) {
            match self.in_readers_queue(step, me.lap().slots) {
                // This process does not know which fragments of earlier operations a reader's queue held: it waits
                // until all ranks have finished those. Their acknowledgements are not enough: a reader that has lent
                // its memory may post a fragment after it has taken its last.
                Some(period) => {
                    me.all_finished(region, clock.operation())?;
                    let needed = (clock.at(step) + 1).saturating_sub(period);
                    me.all_acked(region, clock.operation(), clock.at(step), needed)?;
                }
                None => me.take_slot(region, clock.operation(), clock.at(step))?,
            }
        }
        let mut words = NO_LOAN;
        let may_lend = step == 0 && self.pairs.may_lend(0, me.rank());
        let lent = if may_lend { self.offer(region, loans, &mut words) } else { None };
        let place = self.place(me, clock, step, Pair { writer: me.rank(), reader }, || me.lap());
        // SAFETY: R10 (checked as S2), the line is free, and all ranks have taken the slot's last fragment, this
        // process too: it takes nothing, or posts less than a lap ahead of what it takes. The data is as the
        // constructor was promised.
        unsafe { self.pairs.put(region, place, step, blocks, lent) };
        if step == 0 {
            let heading = Heading { kind: self.kind, bytes: self.pairs.announced() };
            clock.post_line(region, me, heading, if self.pairs.in_line(me.rank()) { None } else { Some(words) });
        } else {
            clock.publish(region, me, step);
        }
        Ok(())
    }

    #[inline]
    fn take<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        clock: &Clock,
        step: u64,
        taking: &mut Taking,
        loans: &mut Loans,
    ) -> Result<(), Halt> {
        if step == 0
            && self.takes_any()
            && self.pairs.known_offset().is_some()
            && !loans.has_answered()
            && !region.borrows()
        {
            // So this process need not receive the lines of all others in step 0.
            loans.decline(region, me, clock.operation());
        }
        taking.any = true;
        let partner = self.pairs.partner(step);
        for index in taking.index..if partner.is_some() { 1 } else { me.size() } {
            let peer = partner.unwrap_or_else(|| Order::OwnFirst.peer(me.rank(), me.size(), index));
            let borrows = step == 0 && peer != me.rank() && self.may_borrow(peer) && !loans.wants();
            if !borrows && !self.takes(step, peer) {
                continue;
            }
            if peer == me.rank() {
                if let Some(blocks) = &self.send
                    && !(self.is_rooted() && Apart::has(blocks.bytes(peer)))
                {
                    let own = blocks.block(peer);
                    // SAFETY: both are this process's data, as the constructor was promised; in place they are the same.
                    self.incoming(peer, |data| unsafe { copy_private(region, &own, data, Part::first(data.len())) });
                }
                continue;
            }
            if (borrows || self.pairs.receives(step)) && !taking.received {
                taking.index = index;
                let announced = line::receive_head(region, me, peer, clock.operation(), self.kind)?;
                self.pairs.received(peer, announced)?;
            }
            *taking = Taking { index, received: true, ..*taking };
            if !taking.looked {
                taking.looked = true;
                taking.lent = self.pairs.may_lend(step, peer)
                    && !loans.wants()
                    && loans.of(region, me, clock.operation(), peer).is_some();
            }
            let lent = taking.lent;
            if step > 0 && lent {
                // Taken in step 0.
                *taking = Taking::taken(index);
                continue;
            }
            if partner.is_none() && me.size() > PAIR && self.pairs.in_slot(step, peer) && region.expects() {
                self.expect(region, me, clock, index);
            }
            let mut offset = self.pairs.known_offset();
            if offset.is_none() || step > 0 {
                clock.published(region, me, peer, step, false)?;
                let lap = || laps::of(region, me, clock.operation(), peer);
                let place = self.place(me, clock, step, Pair { writer: peer, reader: me.rank() }, lap);
                // SAFETY: S3, received, and reused only after our `acked` or `done`, which come later; the data is as the
                // constructor was promised.
                offset = self.incoming(peer, |data| unsafe { self.pairs.get(region, place, step, peer, data) })?;
            }
            *taking = Taking::taken(index);
            if lent && let Some(from) = offset {
                self.take_lent(region, me, clock, (peer, from), loans)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn work<R: Region>(&mut self, region: &R, me: &Member, all: bool) -> bool {
        let (Some(blocks), Receive::From(_, Some(data))) = (&self.send, &self.receive) else { return false };
        // SAFETY: both are this process's data, as the constructor was promised.
        unsafe { self.apart.copy(region, &blocks.block(me.rank()), data, all) }
    }
}

#[cfg(test)]
impl Blockwise<'_> {
    /// Does this process take `peer`'s fragment of `step`?
    pub(super) fn takes_of(&self, step: u64, peer: Rank) -> bool {
        self.takes(step, peer)
    }
}
