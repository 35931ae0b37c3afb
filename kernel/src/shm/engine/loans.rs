//! Loans (ours): a process lends its memory where it lies, and others copy from there. So long messages are copied once.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `line(r, n)`: four words of payload | r | ranks that take from r | two [`Loan`]s of r in operation n: its message, and where its results will lie; 0: r lends nothing |
//! | `answer(r)` | r | lenders | 2n: r can read what it was lent in n; 2n + 1: r wants fragments |
//! | `acked(r)` | r | lenders | at the operation's end on the fragment clock: r reads no loan any more |
//!
//! A lender posts its line at once, and no fragments. The first bytes that a reader takes of each loan show whether it can
//! read it. After its first step it answers: for all its loans together, so it has one word. An answer needs nothing but
//! the lines of others, and no process needs an answer to post its line: so answers come whatever else ranks wait for.
//! If one reader wants fragments, each lender posts them, as if it had not lent anything: what each rank does depends on
//! words of that operation only, and any rank may lend, or read, or not. A lender ends its operation when all its readers
//! have acknowledged it: then its memory is its own again.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::PollError;
use crate::machine::poll::{Until, WaitSet};
use crate::op::Op;
use crate::region::{Extent, Flag, Loan, Region, Unreadable, Untrusted};
use core::num::NonZeroU64;

/// Words of a line's payload that describe a process's loans.
pub(crate) const WORDS: usize = 4;

/// Those of no loan.
pub(crate) const NO_LOAN: [u64; WORDS] = [0; WORDS];

/// Bytes of lent memory that are copied to where the result will lie, before a process folds its own into them: they are in a cache
/// then, for no host copies so few past its caches.
const PIECE: u64 = 4 << 10;

/// Where a fragment is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The segment: a line, a slot, or a piece of it.
    Segment(Extent),
    /// The whole message, where it lies in another process's memory.
    Lent(Lent),
}

/// A loan, as its reader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lent {
    pub(crate) lender: Rank,
    pub(crate) loan: Loan,
    /// Where the message starts in the loan.
    pub(crate) from: u64,
}

impl Lent {
    /// Copies the bytes from `at` on to `dst`.
    ///
    /// # Errors
    /// They can't be read.
    ///
    /// # Safety
    /// As [`Region::fetch`].
    #[inline]
    pub(crate) unsafe fn fetch<R: Region>(&self, region: &R, at: u64, dst: Buf) -> Result<(), Unreadable> {
        // SAFETY: the caller's promise.
        unsafe { region.fetch(self.lender, self.loan, self.from.wrapping_add(at), dst) }
    }

    /// Folds the bytes from `at` on into `acc`.
    ///
    /// # Errors
    /// They can't be read.
    ///
    /// # Safety
    /// As [`Region::fold_loan`].
    #[inline]
    pub(crate) unsafe fn fold<R: Region>(&self, region: &R, at: u64, acc: Buf, op: &Op) -> Result<(), Unreadable> {
        // SAFETY: the caller's promise.
        unsafe { region.fold_loan(self.lender, self.loan, self.from.wrapping_add(at), acc, op) }
    }

    /// Folds the bytes from `at` on with this process's `own` ones into `acc`, which is as long. `op` commutes.
    ///
    /// # Errors
    /// They can't be read; then `acc` has nothing of value.
    ///
    /// # Safety
    /// As [`Region::fold_loan`]; `own` is readable, and apart from `acc`.
    #[inline]
    pub(crate) unsafe fn fold_with<R: Region>(
        &self,
        region: &R,
        at: u64,
        own: Buf,
        acc: Buf,
        op: &Op,
    ) -> Result<(), Unreadable> {
        let bytes = acc.len().min(own.len()) as u64;
        // A call for each piece would cost more than the pieces save.
        let step = match region.is_mapped(self.lender, self.loan, self.from.wrapping_add(at), bytes) {
            true => op.whole(PIECE) * op.element(),
            false => 0,
        };
        let step = if step > 0 { step } else { bytes.max(1) };
        for done in (0..bytes).step_by(step as usize) {
            let piece = |of: Buf| Buf::new(of.ptr().wrapping_add(done as usize), step.min(bytes - done) as usize);
            // SAFETY: a part of the memory that the caller promises.
            unsafe { self.fetch(region, at.wrapping_add(done), piece(acc)) }?;
            // SAFETY: as above.
            unsafe { region.fold_private(piece(own), piece(acc), op) };
        }
        Ok(())
    }
}

/// Which ranks read the loans of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Borrowers {
    /// All but the lender.
    Others,
    /// Those above the lender.
    Above,
    /// So many ranks in a row, from this one on, without the lender.
    Row {
        /// The first of them.
        first: Rank,
        /// Their number, with the lender.
        ranks: u32,
    },
    /// This one.
    One(Rank),
}

impl Borrowers {
    /// The `index`-th of them, for a lender.
    #[inline]
    fn get(self, me: &Member, index: u32) -> Option<Rank> {
        match self {
            Self::Others => Self::Row { first: 0, ranks: me.size() }.get(me, index),
            Self::Row { first, ranks } => {
                let rank = first + index;
                let rank = if rank < me.rank() { rank } else { rank + 1 };
                (rank < first + ranks).then_some(rank)
            }
            Self::Above => me.rank().checked_add(1 + index).filter(|&rank| rank < me.size()),
            Self::One(rank) => (index == 0).then_some(rank),
        }
    }
}

/// What a process has lent in an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Lending {
    /// Nothing has been offered.
    #[default]
    Unoffered,
    /// Nothing, although it was offered: all fragments are posted.
    Nothing,
    /// Its memory. The readers with an index below `answered` can read it.
    Memory { answered: u32 },
    /// Its memory, and all readers can read it.
    Accepted,
    /// Its memory, but a reader wants fragments.
    Refused,
}

/// What a process has answered to its lenders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Answer {
    /// Nothing yet.
    #[default]
    None,
    Reads,
    Wants,
}

/// The answer of a reader.
///
/// # Errors
/// There is none yet: what to wait for.
#[inline]
fn answer<R: Region>(region: &R, me: &Member, operation: u64, reader: Rank) -> Result<Untrusted<u64>, WaitSet> {
    let (flag, least) = (me.layout().answer(reader), 2 * operation);
    // pairs with: tell
    let answer = region.flag(flag).load_acquire();
    if answer.at_least(least) { Ok(answer) } else { Err(WaitSet::flag(flag, Until::AtLeast(least), reader, operation)) }
}

/// One process's loans in an operation: what it lends, and what it is lent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Loans {
    lending: Lending,
    /// Does it lend its results, too?
    results: bool,
    /// Has a rank lent this one something?
    borrows: bool,
    answer: Answer,
}

/// The words of a line, which was received.
#[inline]
pub(super) fn words<R: Region>(region: &R, me: &Member, operation: u64, peer: Rank) -> [u64; WORDS] {
    let (mut words, bytes) = ([0; WORDS], 8 * WORDS as u64);
    let at = me.layout().line_body(peer, operation, 8 + bytes).part(8, bytes);
    // SAFETY: S3, `peer` published the line and reuses it only after our `done`. The array is ours.
    unsafe { region.read(at, Buf::new(words.as_mut_ptr().cast(), bytes as usize)) };
    words
}

/// The loan that two words describe.
fn loan(words: &[u64]) -> Option<Loan> {
    let &[way, at] = words else { return None };
    Some(Loan { way: NonZeroU64::new(way)?, at })
}

impl Loans {
    /// No loans.
    pub(crate) const NONE: Self =
        Self { lending: Lending::Unoffered, results: false, borrows: false, answer: Answer::None };

    /// Lends `memory`, if the region can, and then `results`, too; `None`: there is nothing to lend. Returns the words for
    /// this process's line, or `None` if nothing is lent.
    #[inline]
    pub(crate) fn offer<R: Region>(
        &mut self,
        region: &R,
        kind: Kind,
        memory: Option<Buf>,
        results: Option<Buf>,
    ) -> Option<[u64; WORDS]> {
        // A process that waits for its slot comes here again, and its region is asked once.
        if self.lending == Lending::Nothing {
            return None;
        }
        self.lending = Lending::Nothing;
        let Loan { way, at } = region.lend(memory?, kind)?;
        // By the same way: a reader that can read the message can read the results.
        let results = results.and_then(|results| region.lend(results, kind)).filter(|results| results.way == way);
        let results = results.map(|results| [way.get(), results.at]);
        (self.lending, self.results) = (Lending::Memory { answered: 0 }, results.is_some());
        let [results_way, results_at] = results.unwrap_or_default();
        Some([way.get(), at, results_way, results_at])
    }

    /// Has this process lent memory in this operation?
    #[inline]
    pub(crate) const fn lends(&self) -> bool {
        !matches!(self.lending, Lending::Unoffered | Lending::Nothing)
    }

    /// Has this process lent memory, and not heard from all readers?
    #[inline]
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.lending, Lending::Memory { .. })
    }

    /// Can all readers read what this process has lent?
    #[inline]
    pub(crate) const fn is_accepted(&self) -> bool {
        matches!(self.lending, Lending::Accepted)
    }

    /// Do all readers take the results of this process where they lie?
    #[inline]
    pub(crate) const fn lends_results(&self) -> bool {
        self.is_accepted() && self.results
    }

    /// Has this process answered its lenders?
    #[inline]
    pub(crate) const fn has_answered(&self) -> bool {
        !matches!(self.answer, Answer::None)
    }

    /// May this process wait for its readers' answers? Not before it has answered itself, if it `takes` anything: its
    /// lenders may be the ranks that it waits for.
    #[inline]
    pub(crate) const fn may_ask(&self, takes: bool) -> bool {
        self.is_open() && (!takes || self.has_answered())
    }

    /// Looks at the readers' answers. Returns whether fragments are wanted.
    ///
    /// # Errors
    /// A reader has not answered yet: what to wait for.
    #[cold]
    pub(crate) fn ask<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        operation: u64,
        borrowers: Borrowers,
    ) -> Result<bool, WaitSet> {
        let Lending::Memory { mut answered } = self.lending else {
            return Ok(self.lending == Lending::Refused);
        };
        while let Some(reader) = borrowers.get(me, answered) {
            self.lending = Lending::Memory { answered };
            if answer(region, me, operation, reader)?.is(2 * operation + 1) {
                self.lending = Lending::Refused;
                region.answered(false);
                return Ok(true);
            }
            answered += 1;
        }
        self.lending = Lending::Accepted;
        region.answered(true);
        Ok(false)
    }

    /// Must a fragment for `reader` be posted? Not if this process has lent the message, and `reader` takes it from there: it
    /// may have ended the operation, and use its queue for the next.
    ///
    /// # Errors
    /// It has not answered yet: what to wait for.
    pub(crate) fn is_wanted<R: Region>(
        &self,
        region: &R,
        me: &Member,
        operation: u64,
        reader: Rank,
    ) -> Result<bool, WaitSet> {
        if !self.lends() {
            return Ok(true);
        }
        Ok(answer(region, me, operation, reader)?.is(2 * operation + 1))
    }

    /// Have all readers acknowledged the clock value `end`, so that the memory is this process's own again?
    ///
    /// # Errors
    /// Not yet: what to wait for.
    pub(crate) fn returned<R: Region>(
        &self,
        region: &R,
        me: &mut Member,
        operation: u64,
        borrowers: Borrowers,
        end: u64,
    ) -> Result<(), WaitSet> {
        if borrowers == Borrowers::Others {
            return me.all_acked(region, operation, end, end);
        }
        for reader in (0..).map_while(|index| borrowers.get(me, index)) {
            let flag = me.layout().acked(reader);
            // pairs with: acknowledge
            if !region.flag(flag).load_acquire().at_least(end) {
                return Err(WaitSet::flag(flag, Until::AtLeast(end), reader, operation));
            }
        }
        Ok(())
    }

    /// What `peer`, whose line was received, lends.
    #[inline]
    pub(crate) fn of<R: Region>(&mut self, region: &R, me: &Member, operation: u64, peer: Rank) -> Option<Loan> {
        let [message @ .., _, _] = words(region, me, operation, peer);
        let message = loan(&message)?;
        self.borrows = true;
        Some(message)
    }

    /// Where the results of `peer`, whose line was received, lie for this process to read.
    #[inline]
    pub(crate) fn results_of<R: Region>(&self, region: &R, me: &Member, operation: u64, peer: Rank) -> Option<Loan> {
        let [_, _, results @ ..] = words(region, me, operation, peer);
        loan(&results).filter(|_| !self.wants())
    }

    /// Does this process want fragments?
    #[inline]
    pub(crate) const fn wants(&self) -> bool {
        matches!(self.answer, Answer::Wants)
    }

    /// Takes note of a loan that can't be read: this process wants fragments, and says so at once.
    ///
    /// # Errors
    /// It has said that it reads its loans, or what it has folded can't be taken back.
    #[cold]
    pub(crate) fn refuse<R: Region>(
        &mut self,
        region: &R,
        me: &Member,
        operation: u64,
        lender: Rank,
        unreadable: Unreadable,
    ) -> Result<(), PollError> {
        if self.answer == Answer::Reads || unreadable.changed {
            return Err(PollError::Unreadable { peer: lender });
        }
        self.tell(region, me, operation, Answer::Wants);
        Ok(())
    }

    /// Answers its lenders, after its first step, that this process can read its loans; if it has not answered yet, and if
    /// there are lenders. `unseen`: it does not know whether there are any.
    #[inline]
    pub(crate) fn accept<R: Region>(&mut self, region: &R, me: &Member, operation: u64, unseen: bool) {
        if self.has_answered() {
            return;
        }
        if self.borrows || unseen {
            self.tell(region, me, operation, Answer::Reads);
        }
        self.answer = Answer::Reads;
    }

    /// Answers that this process wants fragments, before it has seen a loan.
    pub(crate) fn decline<R: Region>(&mut self, region: &R, me: &Member, operation: u64) {
        self.tell(region, me, operation, Answer::Wants);
    }

    #[cold]
    fn tell<R: Region>(&mut self, region: &R, me: &Member, operation: u64, answer: Answer) {
        self.answer = answer;
        // publishes: whether this process wants fragments, to its lenders
        region.publish(me.layout().answer(me.rank()), 2 * operation + u64::from(answer == Answer::Wants));
    }
}
