//! The layout of a segment's mailboxes: one for each ordered pair of ranks, for messages from one to the other.
//!
//! ```text
//! in the sender's area:    [ sequence | tag | length | f bytes ]  × s slots  × m messages  × p receivers
//! in the receiver's area:  [ m words taken ]                                               × p senders
//! ```
//! Message n of a pair goes through lane n modulo m, its fragment k through slot k modulo s of that lane. So m
//! messages of a pair may be in flight at once, in whatever order they are received, and message n can start
//! when message n − m has been received. A word says how far a lane has come as a [`count`]: the message's number, and
//! the number of its fragments so far, in one word that only grows.
//!
//! Bytes per pair: `m·s·⟨24 + f⟩ + ⟨8·m⟩`, ⟨x⟩ rounding up to lines; each rank's p mailboxes, and its p rows of words,
//! round up to pages.
//!
//! | word | writer | value | publishes |
//! |---|---|---|---|
//! | sequence | sender | the count after this fragment | tag, length and bytes of the fragment |
//! | taken | receiver | the count after the last fragment that was copied out; after a message's last fragment, the count at which the lane's next message starts | those copies, to the sender that writes the slot again |

use super::{Extent, FlagId, LINE};
use crate::error::{Argument, Bound, Refusal};

/// Most messages of a pair that may be in flight.
pub const MOST_MESSAGES: u32 = 64;
/// Most bytes of a fragment.
pub const MOST_FRAGMENT: u64 = 1 << 24;

/// Bytes of a slot's head: the message's tag and length.
const HEAD: u64 = 16;
/// Bits of a count that number fragments; the others number messages.
const FRAGMENT_BITS: u32 = 24;

/// The shape of a segment's mailboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mailboxes {
    /// `m`: messages of a pair that may be in flight, a power of two.
    pub messages: u32,
    /// `s`: slots of a lane, a power of two: the sender fills one while the receiver empties another.
    pub slots: u32,
    /// `f`: bytes in one slot, a multiple of 8. Nothing is wasted if `f + 24` is a multiple of a line: three words come
    /// before.
    pub fragment: u64,
}

impl Mailboxes {
    /// As many messages as a schedule has in flight, in slots of a page.
    pub const DEFAULT: Self = Self { messages: 8, slots: 2, fragment: 4096 - 24 };

    /// What a header has if there are no mailboxes.
    pub(super) const NONE: Self = Self { messages: 0, slots: 0, fragment: 0 };

    /// Checks the parameters.
    pub(super) fn check(self) -> Result<(), Refusal> {
        let Self { messages, slots, fragment } = self;
        let (messages, slots) = (u64::from(messages), u64::from(slots));
        Refusal::check(Argument::Messages, messages, Bound::AtLeast(1))?;
        Refusal::check(Argument::Messages, messages, Bound::AtMost(MOST_MESSAGES.into()))?;
        Refusal::check(Argument::Messages, messages, Bound::MultipleOf(messages.next_power_of_two()))?;
        Refusal::check(Argument::MailboxSlots, slots, Bound::AtLeast(1))?;
        Refusal::check(Argument::MailboxSlots, slots, Bound::MultipleOf(slots.next_power_of_two()))?;
        Refusal::check(Argument::MailboxFragment, fragment, Bound::AtLeast(8))?;
        Refusal::check(Argument::MailboxFragment, fragment, Bound::AtMost(MOST_FRAGMENT))?;
        Refusal::check(Argument::MailboxFragment, fragment, Bound::MultipleOf(8))?;
        Ok(())
    }

    /// Bytes of one pair, in both areas. `None` if that is beyond 2⁶⁴.
    pub fn pair(self) -> Option<u64> {
        self.lanes()?.checked_add(self.row())
    }

    /// Bytes of one pair's lanes.
    pub(super) fn lanes(self) -> Option<u64> {
        let slots = u64::from(self.messages).checked_mul(self.slots.into())?;
        self.slot().checked_mul(slots)
    }

    /// Bytes of one pair's row of words.
    pub(super) const fn row(self) -> u64 {
        (8 * self.messages as u64).next_multiple_of(LINE)
    }

    const fn slot(self) -> u64 {
        (8 + HEAD + self.fragment).next_multiple_of(LINE)
    }

    /// Fragments of a message of so many bytes: one at least, also for no bytes, since its sequence announces the
    /// message. `None`: more than a count can number.
    #[inline]
    pub const fn fragments(self, bytes: u64) -> Option<u64> {
        let fragments = if bytes == 0 { 1 } else { bytes.div_ceil(self.fragment) };
        if fragments < 1 << FRAGMENT_BITS { Some(fragments) } else { None }
    }
}

/// Messages of a pair that a count can number.
pub const MOST_NUMBER: u64 = 1 << (64 - FRAGMENT_BITS);

/// The count of all messages of a pair before `message`, and so many `fragments` of it.
#[inline]
pub const fn count(message: u64, fragments: u64) -> u64 {
    message << FRAGMENT_BITS | fragments
}

/// One pair's mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    shape: Mailboxes,
    lanes: u64,
    row: u64,
}

impl Pair {
    pub(super) const fn new(shape: Mailboxes, lanes: u64, row: u64) -> Self {
        Self { shape, lanes, row }
    }

    /// Its shape.
    #[inline]
    pub const fn shape(&self) -> &Mailboxes {
        &self.shape
    }

    const fn lane(&self, message: u64) -> u64 {
        message & (self.shape.messages as u64 - 1)
    }

    const fn slot(&self, message: u64, fragment: u64) -> u64 {
        let slots = self.shape.slots as u64;
        self.lanes + (self.lane(message) * slots + (fragment & (slots - 1))) * self.shape.slot()
    }

    /// The sequence word of a fragment's slot: [`count`]`(message, fragment + 1)` when the fragment is there.
    #[inline]
    pub const fn sequence(&self, message: u64, fragment: u64) -> FlagId {
        FlagId(self.slot(message, fragment))
    }

    /// The message's tag and length, two words before its first fragment.
    #[inline]
    pub const fn head(&self, message: u64) -> Extent {
        Extent::new(self.slot(message, 0) + 8, HEAD)
    }

    /// The fragment's bytes.
    #[inline]
    pub const fn payload(&self, message: u64, fragment: u64) -> Extent {
        Extent::new(self.slot(message, fragment) + 8 + HEAD, self.shape.fragment)
    }

    /// How far the receiver has come in the lane of a message.
    #[inline]
    pub const fn acked(&self, message: u64) -> FlagId {
        FlagId(self.row + 8 * self.lane(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{Layout, Params};
    use std::vec::Vec;

    fn with(ranks: u32, page: u64, mailboxes: Mailboxes) -> Layout {
        Layout::new(Params { page, mailboxes: Some(mailboxes), ..Params::new(ranks) }).unwrap()
    }

    /// 8 messages in 2 slots of a page each, and a line of words.
    #[test]
    fn bytes_of_a_pair_follow_the_formula() {
        assert_eq!(Mailboxes::DEFAULT.pair(), Some(8 * 2 * 4096 + 128));
        for (messages, slots, fragment) in [(1, 1, 8), (2, 4, 104), (16, 2, 112), (64, 1, 1000)] {
            let mailboxes = Mailboxes { messages, slots, fragment };
            let up = |bytes: u64, to: u64| bytes.next_multiple_of(to);
            let (lanes, row) = (u64::from(messages * slots) * up(24 + fragment, 128), up(8 * u64::from(messages), 128));
            assert_eq!(mailboxes.pair(), Some(lanes + row));
            for (ranks, page) in [(1, 256), (5, 4096)] {
                let p = u64::from(ranks);
                let without = Layout::new(Params { page, ..Params::new(ranks) }).unwrap().bytes();
                let more = with(ranks, page, mailboxes).bytes() - without;
                assert_eq!(more, p * (up(p * lanes, page) + up(p * row, page)));
            }
        }
        assert_eq!(
            Mailboxes { messages: 64, slots: 1 << 31, fragment: MOST_FRAGMENT }.pair(),
            Some((1 << 61) + (1 << 44) + 512)
        );
    }

    /// Words and bytes of all pairs don't overlap, and each lies in its writer's area.
    #[test]
    fn mailboxes_lie_apart_and_in_their_writers_areas() {
        for (ranks, page, messages, slots, fragment) in
            [(1, 256, 2, 2, 8), (3, 256, 4, 1, 112), (3, 1 << 21, 1, 4, 40), (1, 256, 2, 2, 104)]
        {
            let layout = with(ranks, page, Mailboxes { messages, slots, fragment });
            let mut places = Vec::new();
            let mut place = |rank, at: u64, len: u64| {
                let own = layout.own_pages(rank);
                assert!(own.offset() <= at && at + len <= own.offset() + own.len());
                assert!(at >= layout.slot(rank, 0).offset() && at.is_multiple_of(8));
                places.push((at, at + len));
            };
            for (from, to) in (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to))) {
                let mailbox = layout.mailbox(from, to).unwrap();
                for message in 0..u64::from(messages) {
                    place(to, mailbox.acked(message).offset(), 8);
                    place(from, mailbox.head(message).offset(), mailbox.head(message).len());
                    for k in 0..u64::from(slots) {
                        place(from, mailbox.sequence(message, k).offset(), 8);
                        place(from, mailbox.payload(message, k).offset(), mailbox.payload(message, k).len());
                        assert!(mailbox.sequence(message, k).offset().is_multiple_of(128));
                        let later = (message + u64::from(messages), k + u64::from(slots));
                        assert_eq!(mailbox.sequence(message, k), mailbox.sequence(later.0, later.1));
                    }
                }
            }
            places.sort_unstable();
            assert!(places.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            let queue = layout.slot(ranks - 1, u64::from(layout.params().queue_slots) - 1);
            assert!(
                places.iter().all(|(at, _)| *at >= layout.slot(0, 0).offset())
                    && queue.offset() + queue.len() <= layout.bytes()
            );
        }
        assert_eq!(Layout::new(Params::new(2)).unwrap().mailbox(0, 1), None);
        assert_eq!(with(2, 256, Mailboxes::DEFAULT).mailbox(0, 2), None);
    }

    #[test]
    fn counts_grow_message_by_message() {
        let shape = Mailboxes { messages: 2, slots: 1, fragment: 8 };
        assert_eq!([0, 1, 8, 9].map(|bytes| shape.fragments(bytes)), [1, 1, 1, 2].map(Some));
        let longest = 8 * ((1 << 24) - 1);
        assert_eq!((shape.fragments(longest), shape.fragments(longest + 1)), (Some((1 << 24) - 1), None));
        assert!(
            count(0, 1) < count(0, 2)
                && count(0, (1 << 24) - 1) < count(1, 0)
                && count(MOST_NUMBER - 1, 1) > count(1, 0)
        );
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let good = Mailboxes::DEFAULT;
        for (mailboxes, argument, value) in [
            (Mailboxes { messages: 0, ..good }, Argument::Messages, 0),
            (Mailboxes { messages: 12, ..good }, Argument::Messages, 12),
            (Mailboxes { messages: 128, ..good }, Argument::Messages, 128),
            (Mailboxes { slots: 0, ..good }, Argument::MailboxSlots, 0),
            (Mailboxes { slots: 3, ..good }, Argument::MailboxSlots, 3),
            (Mailboxes { fragment: 0, ..good }, Argument::MailboxFragment, 0),
            (Mailboxes { fragment: 12, ..good }, Argument::MailboxFragment, 12),
            (Mailboxes { fragment: 1 << 25, ..good }, Argument::MailboxFragment, 1 << 25),
        ] {
            let refusal = Layout::new(Params { mailboxes: Some(mailboxes), ..Params::new(2) }).unwrap_err();
            assert_eq!((refusal.argument, refusal.value), (argument, value), "{refusal}");
        }
    }

    #[test]
    fn bounds_are_those_of_the_format() {
        assert_eq!((MOST_FRAGMENT, MOST_NUMBER.ilog2() + FRAGMENT_BITS), (16_777_216, 64));
        assert_eq!((MOST_NUMBER.count_ones(), Mailboxes::DEFAULT.fragment), (1, 4072));
    }
}
