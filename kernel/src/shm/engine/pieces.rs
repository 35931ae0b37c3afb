//! How messages become fragments: a message is cut into parts, and the parts for several readers lie side by side in
//! one fragment.

use super::copy::{Part, copy_in, copy_out};
use crate::Rank;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::layout::LINE_PAYLOAD;
use crate::region::{Extent, Region, Unreadable};
use crate::shm::engine::loans::{Lent, Origin};

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

/// How a place is divided into pieces, one for each reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pieces {
    /// Bytes from one piece to the next.
    stride: u64,
    /// Bytes at the start of a piece in which the writer says how long the whole message for that reader is; 0:
    /// lengths don't stand there.
    header: u64,
    readers: Readers,
    /// How each message is cut.
    pub(crate) cut: Cut,
}

/// The ranks for which a place has a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Readers {
    /// All ranks, also the writer.
    All,
    /// All ranks but the writer.
    Others,
    /// One rank, which has all of the place.
    One,
}

impl Readers {
    #[inline(always)]
    fn count(self, me: &Member) -> u64 {
        match self {
            Self::All => me.size().into(),
            Self::Others => (me.size() - 1).max(1).into(),
            Self::One => 1,
        }
    }

    /// Bytes of a slot for each of them.
    #[inline(always)]
    fn share(self, me: &Member) -> u64 {
        match self {
            Self::All => Medium::Queues.room(me) / u64::from(me.size()),
            Self::Others => me.layout().slot_share(),
            Self::One => Medium::Queues.room(me),
        }
    }
}

/// The rank that writes a piece, and the rank that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pair {
    pub(crate) writer: Rank,
    pub(crate) reader: Rank,
}

impl Pieces {
    /// Messages of up to `most` bytes between any two ranks, in whole elements of `element` bytes. All ranks know
    /// `most`.
    ///
    /// # Errors
    /// A slot has no room for a piece for each reader, or for one element.
    #[inline(always)]
    pub(crate) fn known(me: &Member, most: u64, element: u64, readers: Readers) -> Result<(Medium, Self), Refusal> {
        let stride = most.next_multiple_of(8);
        if stride.checked_mul(readers.count(me)).is_some_and(|all| all <= LINE_PAYLOAD) {
            return Ok((Medium::Lines, Self { stride, header: 0, readers, cut: Cut { fragment: stride.max(1) } }));
        }
        Ok((Medium::Queues, Self::queued(me, most, element, readers, MUTUAL)?))
    }

    /// The same, through the queues even if the messages fit into lines; long ones are cut into fragments of `least` bytes or more.
    ///
    /// # Errors
    /// As [`Self::known`].
    #[inline(always)]
    pub(crate) fn queued(me: &Member, most: u64, element: u64, readers: Readers, least: u64) -> Result<Self, Refusal> {
        let room = Self::stride(me, readers, 16)?;
        let cut = Cut::whole(most, room, element, least)?;
        Ok(Self { stride: cut.fragment.min(most).next_multiple_of(64).min(room), header: 0, readers, cut })
    }

    /// Messages in slots, whose lengths only writer and reader know.
    ///
    /// # Errors
    /// A slot has no room for a piece for each reader.
    #[inline(always)]
    pub(crate) fn unknown(me: &Member, readers: Readers) -> Result<Self, Refusal> {
        let stride = Self::stride(me, readers, 32)?;
        let header = if stride < 1024 { 16 } else { 64 };
        Ok(Self { stride, header, readers, cut: Cut { fragment: stride - header } })
    }

    /// The same in a line, if it has room for a piece for each reader.
    #[inline(always)]
    pub(crate) fn unknown_in_line(me: &Member) -> Option<Self> {
        let (stride, header) = (me.layout().line_share() / 8 * 8, 8);
        (stride >= 16).then(|| Self {
            stride,
            header,
            readers: Readers::Others,
            cut: Cut { fragment: stride - header },
        })
    }

    /// Messages in slots, each slot for one reader, which was told the length elsewhere.
    #[inline(always)]
    pub(crate) fn bare(me: &Member) -> Self {
        let stride = Medium::Queues.room(me);
        Self { stride, header: 0, readers: Readers::One, cut: Cut { fragment: stride } }
    }

    /// Bytes of a slot for each reader, rounded down to 16 or 64; an error if there are fewer than `least` for each.
    #[inline(always)]
    fn stride(me: &Member, readers: Readers, least: u64) -> Result<u64, Refusal> {
        let (room, count) = (Medium::Queues.room(me), readers.count(me));
        Refusal::check(Argument::Ranks, count, Bound::AtMost(room / least))?;
        let stride = readers.share(me);
        Ok(stride - stride % if stride < 64 { 16 } else { 64 })
    }

    /// Bytes of a place that the pieces for all readers take.
    #[inline(always)]
    pub(crate) fn bytes(&self, me: &Member) -> u64 {
        self.stride * self.readers.count(me)
    }

    /// The reader's piece of a place, with its header.
    #[inline]
    fn whole(&self, place: Extent, Pair { writer, reader }: Pair) -> Extent {
        let index = match self.readers {
            Readers::All => reader,
            Readers::Others => reader - u32::from(reader > writer),
            Readers::One => 0,
        };
        place.part(u64::from(index) * self.stride, self.stride)
    }

    /// The reader's piece of a place, after its header; lent memory is not divided.
    #[inline(always)]
    pub(crate) fn of_origin(&self, origin: Origin, pair: Pair) -> Origin {
        match origin {
            Origin::Segment(place) => Origin::Segment(self.of(place, pair)),
            lent @ Origin::Lent(_) => lent,
        }
    }

    /// The reader's piece of a place, after its header.
    #[inline]
    pub(crate) fn of(&self, place: Extent, pair: Pair) -> Extent {
        self.whole(place, pair).part(self.header, self.stride)
    }

    /// Does a message of `bytes` have anything for the piece of its `index`-th fragment? The first piece carries the
    /// length, even of an empty message.
    #[inline]
    pub(crate) fn any(&self, bytes: u64, index: u64) -> bool {
        self.header > 0 && index == 0 || self.cut.part(bytes, index).len > 0
    }

    /// Writes the `index`-th fragment of `data` to the pair's piece, with the length before the first one.
    ///
    /// # Safety
    /// As [`put`].
    #[inline(always)]
    pub(crate) unsafe fn put<R: Region>(&self, region: &R, place: Extent, pair: Pair, index: u64, data: &Data<'_>) {
        if index == 0 {
            // SAFETY: the caller's promise.
            unsafe { self.tell(region, place, pair, data.len(), 0) };
        }
        // SAFETY: the caller's promise.
        unsafe { put(region, self.of(place, pair), data, self.cut.part(data.len(), index)) }
    }

    /// Copies the pair's piece, which is the `index`-th fragment of `data`, to `data`.
    ///
    /// # Errors
    /// The writer's length for the message differs from `data`'s.
    ///
    /// # Safety
    /// As [`get`].
    #[inline]
    pub(crate) unsafe fn get<R: Region>(
        &self,
        region: &R,
        place: Extent,
        pair: Pair,
        index: u64,
        data: &Data<'_>,
    ) -> Result<(), PollError> {
        if index == 0 {
            // SAFETY: the caller's promise.
            unsafe { self.told(region, place, pair, data.len()) }.map(drop)?;
        }
        // SAFETY: the caller's promise.
        unsafe { get(region, self.of(place, pair), data, self.cut.part(data.len(), index)) };
        Ok(())
    }

    /// Writes the length of a message into its piece's header, if pieces have headers; and where it starts in what the
    /// writer lends, if the header has room for that.
    ///
    /// # Safety
    /// As [`put`].
    #[inline(always)]
    pub(crate) unsafe fn tell<R: Region>(&self, region: &R, place: Extent, pair: Pair, bytes: u64, offset: u64) {
        let words = [bytes.to_ne_bytes(), offset.to_ne_bytes()];
        let words = words.get(..(self.header / 8).min(2) as usize).unwrap_or_default();
        if self.header > 0 {
            let header = self.whole(place, pair).part(0, 8 * words.len() as u64);
            // SAFETY: the caller's promise for the place; the numbers are a local variable.
            unsafe { region.write(header, Buf::of(words.as_flattened())) };
        }
    }

    /// Compares the length that the writer [told](Self::tell) with `bytes`, if pieces have headers. Returns where the
    /// message starts in what the writer lends.
    ///
    /// # Errors
    /// They differ.
    ///
    /// # Safety
    /// As [`get`].
    #[inline]
    pub(crate) unsafe fn told<R: Region>(
        &self,
        region: &R,
        place: Extent,
        pair: Pair,
        bytes: u64,
    ) -> Result<u64, PollError> {
        if self.header == 0 {
            return Ok(0);
        }
        let mut found = [[0; 8]; 2];
        let header = self.whole(place, pair).part(0, self.header.min(16));
        // SAFETY: the caller's promise; the array is a local variable.
        unsafe { region.read(header, Buf::of_mut(found.as_flattened_mut())) };
        let [found, offset] = found.map(u64::from_ne_bytes);
        if found == bytes {
            return Ok(offset);
        }
        let refusal = Refusal::new(Argument::Bytes, bytes, Bound::Equals(found));
        Err(PollError::Mismatch { peer: pair.writer, refusal })
    }
}

/// Copies a part of `data` into the segment.
///
/// # Safety
/// As [`copy_in`].
#[inline]
pub(crate) unsafe fn put<R: Region>(region: &R, place: Extent, data: &Data<'_>, part: Part) {
    // SAFETY: the caller's promise.
    unsafe { copy_in(region, place.part(0, part.len), data, part.from) }
}

/// Copies the segment's bytes to a part of `data`.
///
/// # Safety
/// As [`copy_out`].
#[inline]
pub(crate) unsafe fn get<R: Region>(region: &R, place: Extent, data: &Data<'_>, part: Part) {
    // SAFETY: the caller's promise.
    unsafe { copy_out(region, place.part(0, part.len), data, part.from) }
}

/// Copies a part of a message to the same part of `data`, from a fragment or from where it was lent.
///
/// # Errors
/// Lent memory can't be read.
///
/// # Safety
/// As [`copy_out`].
#[inline(always)]
pub(crate) unsafe fn take<R: Region>(
    region: &R,
    origin: Origin,
    data: &Data<'_>,
    part: Part,
) -> Result<(), Unreadable> {
    match origin {
        Origin::Segment(place) => {
            // SAFETY: the caller's promise.
            unsafe { get(region, place, data, part) };
            Ok(())
        }
        // SAFETY: as above.
        Origin::Lent(lent) => unsafe { fetch(region, &lent, data, part) },
    }
}

/// [`take`] of what was lent, to data without holes: many short reads of a loan cost more than copies through the
/// segment.
///
/// # Errors
/// It can't be read, or `data` has holes.
///
/// # Safety
/// As [`take`].
#[inline(never)]
pub(crate) unsafe fn fetch<R: Region>(region: &R, lent: &Lent, data: &Data<'_>, part: Part) -> Result<(), Unreadable> {
    let run = data.stretch(part.from, part.len).ok_or(Unreadable { changed: false })?;
    // SAFETY: the caller's promise.
    unsafe { lent.fetch(region, part.from, run) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{Layout, Params};

    fn member(ranks: u32, queue_fragment: u64) -> Member {
        Member::new(Layout::new(Params { queue_fragment, ..Params::new(ranks) }).unwrap(), 0).unwrap()
    }

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
    fn a_place_is_divided_among_its_readers() {
        // With the bytes that all pieces take.
        let strides = |readers, most| {
            [(2, 4096), (5, 4096), (4, 64)].map(|(ranks, slot)| {
                let me = member(ranks, slot);
                let pieces = Pieces::queued(&me, most, 1, readers, MUTUAL).unwrap();
                assert_eq!(pieces.header, 0);
                (pieces.stride, pieces.bytes(&me))
            })
        };
        assert_eq!(strides(Readers::Others, 1 << 20), [(4096, 4096), (1024, 4096), (16, 48)]);
        assert_eq!(strides(Readers::All, 1 << 20), [(2048, 4096), (768, 3840), (16, 64)]);
        assert_eq!(strides(Readers::One, 1 << 20), [(4096, 4096), (4096, 4096), (64, 64)]);
        // Pieces of short messages lie closer together.
        assert_eq!(strides(Readers::Others, 100), [(128, 128), (128, 512), (16, 48)]);
        assert_eq!(strides(Readers::All, 0), [(0, 0), (0, 0), (0, 0)]);
        let full = Pieces::queued(&member(6, 64), 8, 1, Readers::Others, MUTUAL);
        assert_eq!(full, Err(Refusal::new(Argument::Ranks, 5, Bound::AtMost(4))));
        assert_eq!(Pieces::queued(&member(1, 64), 8, 1, Readers::Others, MUTUAL).map(|pieces| pieces.stride), Ok(64));
    }

    #[test]
    fn lengths_that_not_all_know_stand_before_the_pieces() {
        let pieces =
            |ranks, slot| Pieces::unknown(&member(ranks, slot), Readers::Others).map(|it| (it.stride, it.header));
        assert_eq!([pieces(5, 4096), pieces(6, 4096), pieces(3, 64)], [Ok((1024, 64)), Ok((768, 16)), Ok((32, 16))]);
        assert!(pieces(4, 64).is_err());
        assert_eq!(Pieces::unknown(&member(5, 4096), Readers::Others).unwrap().cut.fragment, 960);
        let in_line = [2, 3, 8]
            .map(|ranks| Pieces::unknown_in_line(&member(ranks, 64)).map(|it| (it.stride, it.header, it.cut.fragment)));
        assert_eq!(in_line, [Some((112, 8, 104)), Some((56, 8, 48)), Some((16, 8, 8))]);
        assert_eq!(Pieces::unknown_in_line(&member(9, 64)), None);
    }

    #[test]
    fn short_messages_travel_in_lines() {
        let known = |bytes| {
            let (medium, pieces) = Pieces::known(&member(3, 4096), bytes, 1, Readers::Others).unwrap();
            (medium == Medium::Lines, pieces.stride, pieces.cut.fragment)
        };
        assert_eq!([0, 9, 56].map(known), [(true, 0, 1), (true, 16, 16), (true, 56, 56)]);
        assert_eq!([57, 2000, 3000].map(known), [(false, 64, 2048), (false, 2048, 2048), (false, 2048, 2048)]);
    }

    #[test]
    fn each_reader_has_a_piece_of_its_own() {
        let place = Extent::new(1000, 4096);
        let pieces = Pieces::unknown(&member(5, 4096), Readers::Others).unwrap();
        let of = [0, 1, 3, 4].map(|reader| pieces.of(place, Pair { writer: 2, reader }));
        assert_eq!(of, [0, 1, 2, 3].map(|index| Extent::new(1064 + 1024 * index, 960)));
        assert_eq!(Pieces::bare(&member(5, 4096)).of(place, Pair { writer: 2, reader: 4 }), place);
        assert!(pieces.any(0, 0) && !pieces.any(0, 1) && pieces.any(961, 1) && !pieces.any(960, 1));
        assert!(!Pieces::bare(&member(5, 4096)).any(0, 0));
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
