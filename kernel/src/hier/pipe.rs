//! Segments pipelined over two levels: while leaders exchange one by messages, their nodes move another in shared memory.
//!
//! ```text
//! bcast        messages         0   1   2   3
//!              shared memory        0   1   2   3          a leader passes a segment on once it is there
//! reduce       shared memory    0   1   2   3
//!              messages             0   1   2   3          and sends its node's fold of one once it is whole
//! allreduce    shared memory    0   1   0'  2   1'  2'     k': the broadcast of segment k
//!              messages             0   1   2
//! ```
//! Each segment is an operation of the node's communicator, and one among the leaders. Either kind runs one at a time, in an
//! order that all ranks of the node, and all leaders, know alike; a process with a part in both polls both. A message of one
//! segment is the composition without a pipeline.

use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::error::{Argument, Condition, PollError, Refusal};
use crate::machine::p2p::P2p;
use crate::machine::poll::{Poll, WaitSet};
use crate::machine::transport::{Messages, Shared};
use crate::machine::{Machine, Operation};
use crate::msg::{PlanError, Rounds};

/// Bytes of a segment, where nothing else is said.
pub const SEGMENT: u64 = 1 << 18;

/// How a message is cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cut {
    bytes: u64,
    segment: u64,
    count: u64,
}

impl Cut {
    /// `bytes` bytes in segments of about `segment`: whole elements of `element` bytes, one at least.
    pub(super) fn new(bytes: u64, segment: u64, element: u64) -> Self {
        let element = element.max(1);
        // Usually it is one, and a division takes as long as the rest of this.
        if bytes.saturating_add(element) <= segment {
            return Self { bytes, segment, count: 1 };
        }
        let segment = (segment / element).max(1).saturating_mul(element);
        Self { bytes, segment, count: bytes.div_ceil(segment).max(1) }
    }

    /// Bytes of all.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many segments: one of no bytes, too.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of a segment.
    pub(super) fn len(&self, index: u64) -> u64 {
        self.bytes.saturating_sub(index.saturating_mul(self.segment)).min(self.segment)
    }

    /// A segment of a buffer that has all bytes; of another one what is there.
    pub(super) fn of(&self, buffer: Buf, index: u64) -> Buf {
        let at = index.saturating_mul(self.segment).min(buffer.len() as u64) as usize;
        Buf::new(buffer.ptr().wrapping_add(at), (self.len(index) as usize).min(buffer.len() - at))
    }

    /// The lengths that segments have: the first's, and the last's if that is shorter.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u64> + use<> {
        let (first, last) = (self.len(0), self.len(self.count() - 1));
        core::iter::once(first).chain((last != first).then_some(last))
    }
}

/// One process's part: what its operations are, in the node and among leaders, and which wait for which.
pub trait Segments {
    /// An operation of the node's communicator.
    type Inside;
    /// A schedule among leaders.
    type Schedule;
    /// Operations in the node: the same number on all its ranks.
    fn inside_count(&self) -> u64;
    /// Operations among leaders; none where this process is no leader.
    fn between_count(&self) -> u64;
    /// How many of the leaders' operations are complete before operation `index` of the node begins.
    fn inside_needs(&self, index: u64) -> u64;
    /// How many of the node's operations are complete before operation `index` of the leaders begins.
    fn between_needs(&self, index: u64) -> u64;
    /// The node's operation of this index, not started.
    ///
    /// # Errors
    /// As the plan's, which has asked for the first and the last before.
    fn inside(&self, me: &Member, index: u64) -> Result<Self::Inside, Refusal>;
    /// The leaders' operation of this index.
    ///
    /// # Errors
    /// As [`Segments::inside`].
    fn between(&self, index: u64) -> Result<Rounds<Self::Schedule>, Refusal>;
}

/// Operations one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Row<M> {
    /// The first that is not complete, if it was made.
    next: Option<M>,
    is_started: bool,
    complete: u64,
}

impl<M> Row<M> {
    const fn new(first: Option<M>) -> Self {
        Self { next: first, is_started: false, complete: 0 }
    }

    /// Moves them as far as they go: what the first that is not complete waits for; nothing where it may not begin, or all
    /// `count` are complete. One is started as soon as it is the next: so the node's ranks take its number alike.
    fn poll<X>(
        &mut self,
        x: &mut X,
        count: u64,
        begins: impl Fn(u64) -> bool,
        make: impl Fn(&mut X, u64) -> Result<M, Refusal>,
        start: impl Fn(&mut M, &mut X),
    ) -> Result<Option<WaitSet>, PollError>
    where
        X: Shared + ?Sized,
        M: Machine<X>,
    {
        while self.complete < count {
            let machine = match &mut self.next {
                Some(machine) => machine,
                none => none.insert(make(x, self.complete).map_err(|refusal| {
                    let peer = x.shared().1.rank();
                    PollError::Mismatch { peer, refusal }
                })?),
            };
            if !self.is_started {
                start(machine, x);
                self.is_started = true;
            }
            if !begins(self.complete) {
                break;
            }
            match machine.poll(x)? {
                Poll::Wait(on) => return Ok(Some(on)),
                Poll::Done => (self.next, self.is_started, self.complete) = (None, false, self.complete + 1),
            }
        }
        Ok(None)
    }
}

/// The machine that runs them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pipe<S, I, B> {
    segments: S,
    inside: Row<I>,
    between: Row<B>,
}

/// [`Pipe`] of `S`.
pub type Pipelined<S> = Pipe<S, <S as Segments>::Inside, Rounds<<S as Segments>::Schedule>>;

impl<S: Segments> Pipelined<S> {
    /// The machine of `me`, with its first operations. If these and those of the last segment can be made, all can.
    ///
    /// # Errors
    /// As [`Segments::inside`] and [`Segments::between`].
    pub(super) fn new(segments: S, me: &Member) -> Result<Self, Refusal> {
        let (inside, between) = (segments.inside_count(), segments.between_count());
        // Those of one segment are as long as its first.
        if let Some(last) = inside.checked_sub(1).filter(|_| between > 1) {
            segments.inside(me, last)?;
            segments.between(between - 1)?;
        }
        let first = if between > 0 { Some(segments.between(0)?) } else { None };
        let inside = Row::new(Some(segments.inside(me, 0)?));
        Ok(Self { segments, inside, between: Row::new(first) })
    }
}

impl<X, S> Machine<X> for Pipelined<S>
where
    X: Shared + Messages + ?Sized,
    X::P2p: P2p,
    S: Segments<Inside: Operation>,
    Rounds<S::Schedule>: Machine<X>,
{
    fn poll(&mut self, x: &mut X) -> Result<Poll, PollError> {
        let Self { segments, inside, between } = self;
        loop {
            let complete = inside.complete;
            let begins = |index| segments.between_needs(index) <= complete;
            let outer =
                between.poll(x, segments.between_count(), begins, |_, index| segments.between(index), |_, _| {})?;
            let there = between.complete;
            let begins = |index| segments.inside_needs(index) <= there;
            let make = |x: &mut X, index| segments.inside(x.shared().1, index);
            let start = |machine: &mut S::Inside, x: &mut X| machine.start(x.shared().1);
            let inner = inside.poll(x, segments.inside_count(), begins, make, start)?;
            if inside.complete > complete {
                continue; // the leaders' next may begin now
            }
            return Ok(match (inner, outer) {
                (None, None) => Poll::Done,
                (Some(on), None) | (None, Some(on)) => Poll::Wait(on),
                // Of a round that has a receive and a send the receive: its messages are all posted (`WINDOW`), so the send's
                // end lets nothing begin before.
                (Some(inner), Some(outer)) => Poll::Wait(WaitSet::either(*inner.first(), *outer.first())),
            });
        }
    }
}

/// What a plan that was made before would refuse again.
pub(super) fn refusal(error: PlanError) -> Refusal {
    match error {
        PlanError::Refused(refusal) => refusal,
        PlanError::Inapplicable { .. } | PlanError::OverLevels(_) => {
            Refusal::not(Argument::Operation, Condition::Applicable)
        }
    }
}
