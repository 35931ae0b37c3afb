//! How messages become fragments: where these lie, how long they are, and how many steps they take.

use super::copy::Part;
use super::loans::Origin;
use crate::comm::Member;
use crate::error::{Argument, Bound, Refusal};
use crate::region::layout::LINE_PAYLOAD;

/// Where fragments lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Medium {
    /// In posted lines: one step, at most [`LINE_PAYLOAD`] bytes.
    Lines,
    /// In the queues' slots.
    Queues,
    /// As each writer chooses: in its line if the message fits there, and into a slot, else in its queue. For lengths that
    /// not all ranks know.
    Either,
}

impl Medium {
    /// The medium of messages of up to `bytes`, which all ranks know: lines where they fit.
    #[inline(always)]
    pub(crate) const fn of(bytes: u64) -> Self {
        if bytes <= LINE_PAYLOAD { Self::Lines } else { Self::Queues }
    }

    /// Bytes that a place of this medium has room for.
    #[inline(always)]
    pub(crate) const fn room(self, me: &Member) -> u64 {
        match self {
            Self::Lines => LINE_PAYLOAD,
            Self::Queues | Self::Either => me.layout().params().queue_fragment,
        }
    }
}

/// Most steps of an operation in which no rank knows the lengths of all messages.
const MOST_STEPS: u64 = 1 << 24;

/// Slots by which such an operation starts after the one before, where a queue has 2^n slots: fragments of operations that follow each other
/// lie far apart, so that they pass through all of a long queue, as those of known lengths do. Odd, so that all slots have their
/// turn; of the odd numbers below 128, one whose multiples keep most distance in queues of 32 and of 128 slots.
const UNKNOWN_STRIDE: u64 = 23;

/// The clock values that such an operation takes.
const UNKNOWN_ADVANCE: u64 = MOST_STEPS + UNKNOWN_STRIDE;

/// What an operation takes of the queues, the same on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Span {
    /// Values of the fragment clock: at least the number of steps of every rank. 0: the operation uses no queue.
    pub(crate) advance: u64,
    /// Bytes of a slot that a fragment takes at most.
    pub(crate) bytes: u64,
}

impl Span {
    /// That of an operation in which ranks don't know each other's lengths: fragments may fill their slots.
    pub(crate) const UNKNOWN: Self = Self { advance: UNKNOWN_ADVANCE, bytes: u64::MAX };

    /// The same, where all fragments go through `medium`.
    #[inline(always)]
    pub(crate) const fn within(self, medium: Medium) -> Self {
        let advance = if matches!(medium, Medium::Lines) { 0 } else { self.advance };
        Self { advance, ..self }
    }
}

/// How one message is cut into fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cut {
    /// Bytes of a fragment; a message's last one may be shorter.
    pub(crate) fragment: u64,
}

/// Bytes of the shortest fragments of a message where only a root writes, or only a root takes: shorter ones cost more in notification
/// than they overlap (docs/explanation/parameters.md).
pub(crate) const ROOTED: u64 = 8 << 10;

/// The same where all ranks write and take: all copy in at the same time, and then out, so that little overlaps.
pub(crate) const MUTUAL: u64 = 24 << 10;

impl Cut {
    /// Fragments of at most `room` bytes for messages of up to `bytes`, in whole elements of `element` bytes. A long
    /// message is cut into at least four fragments, but not into shorter ones than `least` bytes, so that copying in and copying out
    /// overlap.
    #[inline(always)]
    pub(crate) fn new(bytes: u64, room: u64, element: u64, least: u64) -> Self {
        if bytes <= room.min(least) {
            // One fragment: where it ends is not asked, and nothing is divided.
            return Self { fragment: room.clamp(1, least) };
        }
        let fragment = (bytes / 4).next_multiple_of(64).clamp(room.min(least.max(element)), room);
        Self { fragment: (fragment - if element > 1 { fragment % element } else { 0 }).max(1) }
    }

    /// The same for elements that may be longer than `room`.
    ///
    /// # Errors
    /// An element is longer than `room`.
    #[inline(always)]
    pub(crate) fn whole(bytes: u64, room: u64, element: u64, least: u64) -> Result<Self, Refusal> {
        Refusal::check(Argument::Element, element.min(bytes), Bound::AtMost(room))?;
        Ok(Self::new(bytes, room, element, least))
    }

    /// Number of steps of a message of `bytes`: at least one.
    #[inline(always)]
    pub(crate) fn steps(self, bytes: u64) -> u64 {
        if bytes <= self.fragment { 1 } else { bytes.div_ceil(self.fragment) }
    }

    /// What a message of `bytes` takes of a queue.
    #[inline(always)]
    pub(crate) fn span(self, bytes: u64) -> Span {
        Span { advance: self.steps(bytes), bytes: self.fragment.min(bytes) }
    }

    /// Number of steps of a message of `bytes` where no rank knows the lengths of all messages, and where each
    /// fragment takes `each` steps.
    ///
    /// # Errors
    /// They are more than [`MOST_STEPS`].
    #[inline(always)]
    pub(crate) fn bounded_steps(self, bytes: u64, each: u64) -> Result<u64, Refusal> {
        let steps = self.steps(bytes);
        if steps > 1 {
            Refusal::check(Argument::Bytes, bytes, Bound::AtMost((MOST_STEPS / each).saturating_mul(self.fragment)))?;
        }
        Ok(steps * each)
    }

    /// The part of a message of `bytes` that travels in `step`; empty after the message's end.
    #[inline]
    pub(crate) const fn part(self, bytes: u64, step: u64) -> Part {
        let from = step.saturating_mul(self.fragment);
        if from >= bytes {
            return Part { from: bytes, len: 0 };
        }
        let rest = bytes - from;
        Part { from, len: if rest < self.fragment { rest } else { self.fragment } }
    }

    /// The part of a message of `bytes` that is taken in `step` from `origin`.
    #[inline(always)]
    pub(crate) const fn part_from(self, origin: Origin, bytes: u64, step: u64) -> Part {
        match origin {
            Origin::Segment(_) => self.part(bytes, step),
            Origin::Lent(_) => self.lent_part(bytes, step),
        }
    }

    /// The part that is taken in `step` where the message was lent: that of many steps at once, and nothing in those.
    const fn lent_part(self, bytes: u64, step: u64) -> Part {
        let steps = if self.fragment < READ { READ / self.fragment } else { 1 };
        let Part { from, .. } = self.part(bytes, step);
        let rest = bytes - from;
        let most = steps * self.fragment;
        let all = if rest < most { rest } else { most };
        Part { from, len: if step.is_multiple_of(steps) { all } else { 0 } }
    }
}

/// Bytes that are read at once of a message that was lent by its address: each read is a system call, which costs as much as
/// some thousand bytes.
const READ: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_into_whole_fragments_and_a_rest() {
        let cut = Cut { fragment: 64 };
        assert_eq!([0, 1, 64, 65, 128, 129].map(|bytes| cut.steps(bytes)), [1, 1, 1, 2, 2, 3]);
        let part = |bytes, step| {
            let Part { from, len } = cut.part(bytes, step);
            (from, len)
        };
        assert_eq!([0, 1, 2, 3].map(|step| part(130, step)), [(0, 64), (64, 64), (128, 2), (130, 0)]);
        assert_eq!([0, 1, 2].map(|step| part(128, step)), [(0, 64), (64, 64), (128, 0)]);
        assert_eq!(part(u64::MAX, u64::MAX), (u64::MAX, 0));
    }

    #[test]
    fn of_a_loan_many_fragments_are_read_at_once() {
        for (fragment, bytes) in
            [(64, 130), (64, READ), (100 << 10, 1 << 20), (READ, 3 * READ + 1), (2 * READ, 5 * READ)]
        {
            let cut = Cut { fragment };
            let mut end = 0;
            for Part { from, len } in
                (0..cut.steps(bytes)).map(|step| cut.lent_part(bytes, step)).filter(|part| part.len > 0)
            {
                assert!(from == end && len <= READ.max(fragment), "{fragment} {bytes}: {from} {len}");
                end = from + len;
            }
            assert_eq!(end, bytes, "{fragment}");
        }
        assert_eq!(Cut { fragment: 64 }.lent_part(READ, 0), Part::first(READ));
        assert_eq!([0, 1].map(|step| Cut { fragment: 64 }.lent_part(0, step).len), [0, 0]);
    }

    #[test]
    fn long_messages_are_cut_in_four_at_least() {
        let fragments =
            |least| [1000, 20_000, 40_000, 1 << 20].map(|bytes| Cut::new(bytes, 32 << 10, 1, least).fragment);
        assert_eq!(fragments(ROOTED), [8192, 8192, 10_048, 32 << 10]);
        assert_eq!(fragments(MUTUAL), [24 << 10, 24 << 10, 24 << 10, 32 << 10]);
        assert_eq!(Cut::new(40_000, 64, 1, ROOTED).fragment, 64, "no more than there is room for");
        let whole = |element| Cut::new(10_000, 32 << 10, element, ROOTED).fragment;
        assert_eq!([3, 48, 9000].map(whole), [8190, 8160, 9000]);
        assert_eq!(Cut::whole(100, 64, 64, ROOTED).map(|cut| cut.fragment), Ok(64));
        let short = [0, 48, 64].map(|bytes| Cut::new(bytes, 64, 48, ROOTED).part(bytes, 0));
        assert_eq!(short, [0, 48, 64].map(Part::first), "one fragment has all");
        assert_eq!(Cut::whole(32, 64, 65, ROOTED).map(|cut| cut.steps(32)), Ok(1), "there is no element so long");
        assert_eq!(Cut::whole(65, 64, 65, ROOTED), Err(Refusal::new(Argument::Element, 65, Bound::AtMost(64))));
    }

    #[test]
    fn steps_of_lengths_that_not_all_know_are_bounded() {
        let cut = Cut { fragment: 64 };
        assert_eq!([0, 64, 65].map(|bytes| cut.bounded_steps(bytes, 5)), [Ok(5), Ok(5), Ok(10)]);
        let most = MOST_STEPS / 4 * 64;
        assert_eq!(cut.bounded_steps(most, 4), Ok(MOST_STEPS));
        assert_eq!(cut.bounded_steps(most + 1, 4), Err(Refusal::new(Argument::Bytes, most + 1, Bound::AtMost(most))));
        assert_eq!(cut.bounded_steps(64, 2 * MOST_STEPS), Ok(2 * MOST_STEPS), "what is not cut is never too long");
    }

    #[test]
    fn operations_of_unknown_lengths_start_far_from_those_before() {
        assert_eq!(MOST_STEPS, 16_777_216);
        // Seven slots, 200,000 bytes: so many operations have slots that none of the others has.
        for (slots, operations) in [(128, 11), (32, 3)] {
            let starts = |n: u64| (0..n).map(move |i| i * UNKNOWN_ADVANCE % slots);
            let distance = |a: u64, b: u64| a.abs_diff(b).min(slots - a.abs_diff(b));
            let apart = starts(operations).all(|a| starts(operations).all(|b| a == b || distance(a, b) >= 7));
            assert!(apart, "{slots} slots");
            let all: u64 = starts(slots).sum();
            assert_eq!(all, slots * (slots - 1) / 2, "every slot has its turn");
        }
    }
}
