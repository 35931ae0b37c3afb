//! How messages become fragments: cut into parts, and side by side where a fragment is for several readers.

use super::copy::{copy_in, copy_out};
use crate::Rank;
use crate::buffer::Buf;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::layout::LINE_PAYLOAD;
use crate::region::{Extent, Region};

/// Where fragments lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// In posted lines: one tick, at most [`LINE_PAYLOAD`] bytes.
    Lines,
    /// In the queues' slots.
    Queues,
}

impl Way {
    /// Lines for what fits them.
    #[inline(always)]
    pub(crate) const fn of(bytes: u64) -> Self {
        if bytes <= LINE_PAYLOAD { Self::Lines } else { Self::Queues }
    }

    /// Bytes of a fragment's place.
    #[inline(always)]
    pub(crate) const fn room(self, me: &Member) -> u64 {
        match self {
            Self::Lines => LINE_PAYLOAD,
            Self::Queues => me.layout().params().queue_fragment,
        }
    }
}

/// Most ticks of a message where nobody knows everyone's lengths.
const MOST_TICKS: u64 = 1 << 24;

/// What the clock advances by then: one more, so that the next such message begins with the next slot.
pub(crate) const UNKNOWN: u64 = MOST_TICKS + 1;

/// How one message is cut into fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cut {
    /// Bytes of a fragment; a message's last one may be shorter.
    pub(crate) fragment: u64,
}

impl Cut {
    /// Fragments of at most `room` bytes for messages of up to `bytes`, whole elements of `element`. A long
    /// message is cut in four at least, so that copying in and out overlap.
    #[inline(always)]
    pub(crate) fn new(bytes: u64, room: u64, element: u64) -> Self {
        const LEAST: u64 = 4096;
        let fragment = (bytes / 4).next_multiple_of(64).clamp(room.min(LEAST.max(element)), room);
        Self { fragment: (fragment - if element > 1 { fragment % element } else { 0 }).max(1) }
    }

    /// The same for whole elements that may be long.
    ///
    /// # Errors
    /// An element is longer than `room`.
    #[inline(always)]
    pub(crate) fn whole(bytes: u64, room: u64, element: u64) -> Result<Self, Refusal> {
        Refusal::check(Argument::Element, element.min(bytes), Bound::AtMost(room))?;
        Ok(Self::new(bytes, room, element))
    }

    /// Ticks of a message: one at least.
    #[inline(always)]
    pub(crate) fn ticks(self, bytes: u64) -> u64 {
        if bytes <= self.fragment { 1 } else { bytes.div_ceil(self.fragment) }
    }

    /// Ticks of a message where nobody knows everyone's lengths.
    ///
    /// # Errors
    /// It has more than the clock advances by.
    #[inline(always)]
    pub(crate) fn bounded_ticks(self, bytes: u64) -> Result<u64, Refusal> {
        Refusal::check(Argument::Bytes, bytes, Bound::AtMost(MOST_TICKS.saturating_mul(self.fragment)))?;
        Ok(self.ticks(bytes))
    }

    /// The part of a message of `bytes` that is in `tick`: first byte and length.
    #[inline]
    pub(crate) const fn part(self, bytes: u64, tick: u64) -> (u64, u64) {
        let from = tick.saturating_mul(self.fragment);
        if from >= bytes {
            return (bytes, 0);
        }
        let rest = bytes - from;
        (from, if rest < self.fragment { rest } else { self.fragment })
    }
}

/// How a place is divided among those that take from it: a piece for each process but its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pieces {
    /// Bytes from one piece to the next one.
    stride: u64,
    /// Bytes before a piece in which its writer says how long the whole message for its reader is; or 0.
    header: u64,
    /// Has the writer a piece for itself?
    own: bool,
    /// How each message is cut.
    pub(crate) cut: Cut,
}

/// Who writes, and who reads.
type Pair = (Rank, Rank);

impl Pieces {
    /// Messages of up to `most` bytes between any two, known to all; whole elements of `element` bytes.
    ///
    /// # Errors
    /// More processes than a slot has room for, or longer elements.
    #[inline(always)]
    pub(crate) fn known(me: &Member, most: u64, element: u64, own: bool) -> Result<(Way, Self), Refusal> {
        let stride = most.next_multiple_of(8);
        if stride.checked_mul(Self::count(me, own)).is_some_and(|all| all <= LINE_PAYLOAD) {
            return Ok((Way::Lines, Self { stride, header: 0, own, cut: Cut { fragment: stride.max(1) } }));
        }
        Self::queued(me, most, element, own)
    }

    /// The same, through the queues whatever the length.
    ///
    /// # Errors
    /// As [`Self::known`].
    #[inline(always)]
    pub(crate) fn queued(me: &Member, most: u64, element: u64, own: bool) -> Result<(Way, Self), Refusal> {
        let stride = Self::stride(Way::Queues.room(me), me, own, 16)?;
        let cut = Cut::whole(most, stride, element)?;
        Ok((Way::Queues, Self { stride, header: 0, own, cut }))
    }

    /// Messages whose lengths only writer and reader know: in slots, and how they would lie in a line.
    ///
    /// # Errors
    /// More processes than a slot has room for.
    #[inline(always)]
    pub(crate) fn unknown(me: &Member) -> Result<(Self, Option<Self>), Refusal> {
        let of = |stride, header| Self { stride, header, own: false, cut: Cut { fragment: stride - header } };
        let stride = Self::stride(Way::Queues.room(me), me, false, 32)?;
        let line = LINE_PAYLOAD / Self::count(me, false) / 8 * 8;
        Ok((of(stride, if stride < 1024 { 16 } else { 64 }), (line >= 16).then(|| of(line, 8))))
    }

    #[inline(always)]
    fn count(me: &Member, own: bool) -> u64 {
        u64::from(if own { me.size() } else { (me.size() - 1).max(1) })
    }

    #[inline(always)]
    fn stride(room: u64, me: &Member, own: bool, least: u64) -> Result<u64, Refusal> {
        let count = Self::count(me, own);
        Refusal::check(Argument::Ranks, count, Bound::AtMost(room / least))?;
        let stride = room / count;
        Ok(stride - stride % if stride < 64 { 16 } else { 64 })
    }

    /// The piece of a reader, with its header.
    #[inline]
    fn whole(&self, place: Extent, (writer, reader): Pair) -> Extent {
        let index = reader - u32::from(!self.own && reader > writer);
        place.part(u64::from(index) * self.stride, self.stride)
    }

    /// The piece of a reader, behind its header.
    #[inline]
    pub(crate) fn of(&self, place: Extent, pair: Pair) -> Extent {
        self.whole(place, pair).part(self.header, self.stride)
    }

    /// Writes the piece of `tick`.
    ///
    /// # Safety
    /// As [`put`].
    #[inline]
    pub(crate) unsafe fn put<R: Region>(&self, region: &R, place: Extent, pair: Pair, tick: u64, data: &Data<'_>) {
        if self.header > 0 && tick == 0 {
            let len = data.len().to_ne_bytes();
            // SAFETY: the caller's promise for the place; the number is ours.
            unsafe { region.write(self.whole(place, pair).part(0, 8), Buf::of(&len)) };
        }
        // SAFETY: the caller's promise.
        unsafe { put(region, self.of(place, pair), data, self.cut.part(data.len(), tick)) }
    }

    /// Copies the piece of `tick` to `data`.
    ///
    /// # Errors
    /// The writer has another length for it.
    ///
    /// # Safety
    /// As [`get`].
    #[inline]
    pub(crate) unsafe fn get<R: Region>(
        &self,
        region: &R,
        place: Extent,
        pair: Pair,
        tick: u64,
        data: &Data<'_>,
    ) -> Result<(), PollError> {
        if self.header > 0 && tick == 0 {
            let mut found = [0; 8];
            // SAFETY: the caller's promise; the array is ours.
            unsafe { region.read(self.whole(place, pair).part(0, 8), Buf::of_mut(&mut found)) };
            let (found, bytes) = (u64::from_ne_bytes(found), data.len());
            if found != bytes {
                let refusal = Refusal::new(Argument::Bytes, bytes, Bound::Equals(found));
                return Err(PollError::Mismatch { peer: pair.0, refusal });
            }
        }
        // SAFETY: the caller's promise.
        unsafe { get(region, self.of(place, pair), data, self.cut.part(data.len(), tick)) };
        Ok(())
    }
}

/// Who knows how long messages are, and where their pieces lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lengths {
    /// All know that all have this length.
    Known { bytes: u64, pieces: Pieces },
    /// Writer and reader each know theirs: pieces are in the writer's line, if all of its own fit there.
    Unknown {
        slots: Pieces,
        line: Option<Pieces>,
        /// Are this process's pieces in its line; are those of the peer that was heard last?
        mine: bool,
        theirs: bool,
    },
}

impl Lengths {
    /// Messages of `bytes` between any two.
    ///
    /// # Errors
    /// More processes than a slot has room for.
    #[inline(always)]
    pub(crate) fn known(me: &Member, bytes: u64) -> Result<(Way, Self), Refusal> {
        let (way, pieces) = Pieces::known(me, bytes, 1, false)?;
        Ok((way, Self::Known { bytes, pieces }))
    }

    /// Messages of this process of at most `most` bytes.
    ///
    /// # Errors
    /// More processes than a slot has room for.
    #[inline(always)]
    pub(crate) fn unknown(me: &Member, most: u64) -> Result<Self, Refusal> {
        let (slots, line) = Pieces::unknown(me)?;
        let mine = line.is_some_and(|line| most <= line.cut.fragment);
        Ok(Self::Unknown { slots, line, mine, theirs: false })
    }

    /// How messages are cut that do not fit a line; those that do are one fragment either way.
    #[inline(always)]
    pub(crate) const fn cut(&self) -> Cut {
        match self {
            Self::Known { pieces, .. } => pieces.cut,
            Self::Unknown { slots, .. } => slots.cut,
        }
    }

    /// What the line says.
    pub(crate) fn announced(&self) -> u64 {
        match self {
            Self::Known { bytes, .. } => *bytes,
            Self::Unknown { mine, .. } => u64::from(*mine),
        }
    }

    /// What `peer`'s line says.
    ///
    /// # Errors
    /// Another length, or no place that this segment has.
    pub(crate) fn heard(&mut self, peer: Rank, announced: u64) -> Result<(), PollError> {
        let bound = match self {
            Self::Known { bytes, .. } if announced == *bytes => return Ok(()),
            Self::Known { bytes, .. } => {
                let refusal = Refusal::new(Argument::Bytes, *bytes, Bound::Equals(announced));
                return Err(PollError::Mismatch { peer, refusal });
            }
            Self::Unknown { line, theirs, .. } => {
                *theirs = announced == 1;
                u64::from(line.is_some())
            }
        };
        Refusal::check(Argument::Bytes, announced, Bound::AtMost(bound))
            .map(|_| ())
            .map_err(|refusal| PollError::Mismatch { peer, refusal })
    }

    /// Are this process's pieces, or those of the peer that was heard last, in the line?
    pub(crate) const fn in_line(&self, own: bool) -> bool {
        matches!((self, own), (Self::Unknown { mine: true, .. }, true) | (Self::Unknown { theirs: true, .. }, false))
    }

    /// Those pieces, in `tick`.
    pub(crate) fn pieces(&self, own: bool, tick: u64) -> Pieces {
        match *self {
            Self::Known { pieces, .. } => pieces,
            Self::Unknown { line: Some(line), .. } if tick == 0 && self.in_line(own) => line,
            Self::Unknown { slots, .. } => slots,
        }
    }
}

/// Copies a part of `data` into the segment.
///
/// # Safety
/// As [`copy_in`].
#[inline]
pub(crate) unsafe fn put<R: Region>(region: &R, place: Extent, data: &Data<'_>, (from, len): (u64, u64)) {
    // SAFETY: the caller's promise.
    unsafe { copy_in(region, place.part(0, len), data, from) }
}

/// Copies the segment's bytes to a part of `data`.
///
/// # Safety
/// As [`copy_out`].
#[inline]
pub(crate) unsafe fn get<R: Region>(region: &R, place: Extent, data: &Data<'_>, (from, len): (u64, u64)) {
    // SAFETY: the caller's promise.
    unsafe { copy_out(region, place.part(0, len), data, from) }
}
