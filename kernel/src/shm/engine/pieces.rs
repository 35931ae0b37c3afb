//! The parts of fragments for several readers, which lie side by side in one place.

use super::copy::{Part, copy_in, copy_out};
use super::cut::{Cut, MUTUAL, Medium};
use super::loans::{Lent, Origin};
use crate::Rank;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::layout::LINE_PAYLOAD;
use crate::region::{Extent, Region, Unreadable};

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
}
