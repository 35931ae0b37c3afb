//! The bytes that a rank lends, for rule S1: in them, its own writes and what others read are ordered by words.

use super::bytes::{Bytes, Clock, Event, Race};
use crate::explore::Span;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::region::Loan;

/// Memory by its addresses.
fn span(memory: Buf) -> Span {
    Span { offset: memory.ptr().addr() as u64, len: memory.len() as u64 }
}

/// What a rank lends in an operation: each loan with its memory, and the last accesses there.
#[derive(Clone, Debug, Default)]
pub(super) struct Loans {
    loans: Vec<(Loan, Span)>,
    bytes: Bytes,
}

impl Loans {
    /// The lender lends `memory`, whose contents it has written before.
    pub(super) fn add(&mut self, event: Event, clock: &Clock, loan: Loan, memory: Buf) -> Result<(), Race> {
        self.loans.push((loan, span(memory)));
        self.bytes.touch(event, clock, span(memory), true)
    }

    /// Another process reads bytes of a loan; `None`: they are not lent.
    pub(super) fn read(
        &mut self,
        event: Event,
        clock: &Clock,
        loan: Loan,
        (from, len): (u64, u64),
    ) -> Option<Result<(), Race>> {
        let &(_, memory) = self.loans.iter().find(|(lent, _)| *lent == loan)?;
        let at = Span { offset: memory.offset.checked_add(from)?, len };
        let inside = at.offset.checked_add(len)? <= memory.end();
        inside.then(|| self.bytes.touch(event, clock, at, false))
    }

    /// Is nothing lent?
    pub(super) const fn is_empty(&self) -> bool {
        self.loans.is_empty()
    }

    /// Is some of this memory lent?
    pub(super) fn lends(&self, memory: Buf) -> bool {
        self.shared(memory).next().is_some()
    }

    /// The lender writes to its memory, of which some may be lent.
    pub(super) fn write(&mut self, event: Event, clock: &Clock, memory: Buf) -> Result<(), Race> {
        let shared: Vec<_> = self.shared(memory).collect();
        shared.into_iter().try_for_each(|at| self.bytes.touch(event, clock, at, true))
    }

    /// The lender's operation ends: from now on it may write all of its memory.
    pub(super) fn end(self, event: Event, clock: &Clock) -> Result<(), Race> {
        let Self { loans, mut bytes } = self;
        loans.into_iter().try_for_each(|(_, at)| bytes.touch(event, clock, at, true))
    }

    /// The parts of this memory that are lent.
    fn shared(&self, memory: Buf) -> impl Iterator<Item = Span> + '_ {
        let memory = span(memory);
        self.loans.iter().filter_map(move |(_, lent)| {
            let (from, to) = (memory.offset.max(lent.offset), memory.end().min(lent.end()));
            (from < to).then(|| Span { offset: from, len: to - from })
        })
    }
}
