//! A block from each process to each other one, or from one to all others: where they travel, and who knows their
//! lengths. For alltoall and scatter.
//!
//! | spot | ticks | place |
//! |---|---|---|
//! | line | 0 | side by side in the writer's line |
//! | slot | 0 | side by side in one slot |
//! | turns | 1 … | a slot holds a fragment for one reader; in each tick, pairs of processes exchange |
//!
//! In turns a fragment is as long as a slot, however many processes there are: short pieces, far from each other in
//! the users' memory, are slow to copy. Who is whose partner is a round-robin tournament, in which all meet within
//! p − 1 turns (p odd: p, and one pauses). Both post before they take, so an exchange in place needs no other memory.
//!
//! Where all know that all blocks have one length, all choose the spot alike. Else each writer chooses, by its longest
//! block, and its line says which; the length of a message stands before it.

use super::pieces::{Pieces, Readers, Way};
use crate::Rank;
use crate::blocks::Blocks;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::{Extent, Region};

/// Longest blocks that lie side by side in a slot.
const SIDE_BY_SIDE: u64 = 4096;

/// Where a process's blocks travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Spot {
    Line,
    Slot,
    Turns,
}

/// Who knows how long blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lengths {
    /// All: they have this length, and travel so.
    Known { bytes: u64, spot: Spot, pieces: Pieces },
    /// Writer and reader.
    Unknown {
        line: Option<Pieces>,
        slot: Option<Pieces>,
        turns: Pieces,
        /// Where this process's blocks travel; and those of the peer that was heard last.
        mine: Spot,
        theirs: Spot,
    },
}

/// How blocks travel between one process and the others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pairs {
    me: Rank,
    size: u32,
    lengths: Lengths,
    /// Ticks, if any process exchanges in turns that this one has to do with; and does one, as far as it knows?
    most: u64,
    long: bool,
}

impl Pairs {
    /// Blocks of `bytes` between any two; ticks for the clock.
    ///
    /// # Errors
    /// More processes than a slot has room for.
    #[inline(always)]
    pub(crate) fn known(me: &Member, bytes: u64) -> Result<(Way, u64, Self), Refusal> {
        let (way, spot, pieces) = match Pieces::known(me, bytes, 1, Readers::Others) {
            Ok((Way::Lines, pieces)) => (Way::Lines, Spot::Line, pieces),
            Ok((way, pieces)) if bytes <= pieces.cut.fragment.min(SIDE_BY_SIDE) => (way, Spot::Slot, pieces),
            // What goes to all others is cut, not each block: while one copies out, the next one's is copied in.
            _ => {
                let all = bytes.saturating_mul(turns(me.size()));
                (Way::Queues, Spot::Turns, Pieces::queued(me, all, 1, Readers::One)?)
            }
        };
        let long = spot == Spot::Turns && me.size() > 1;
        let most = if long { 1 + pieces.cut.ticks(bytes) * turns(me.size()) } else { 1 };
        let pairs =
            Self { me: me.rank(), size: me.size(), lengths: Lengths::Known { bytes, spot, pieces }, most, long };
        Ok((way, most, pairs))
    }

    /// Blocks whose lengths only writer and reader know: this process writes at most `send` bytes to one other, and
    /// takes at most `receive` from one.
    ///
    /// # Errors
    /// More bytes than the clock's ticks for them.
    #[inline(always)]
    pub(crate) fn unknown(me: &Member, send: u64, receive: u64) -> Result<Self, Refusal> {
        let (line, slot) = (Pieces::unknown_in_line(me), Pieces::unknown(me, Readers::Others).ok());
        let turns_pieces = Pieces::unknown(me, Readers::One)?;
        // Who takes in turns looks once for what does not travel so: it is one fragment there, too.
        let most = turns_pieces.cut.fragment.min(SIDE_BY_SIDE);
        let fits = |pieces: &Option<Pieces>| pieces.is_some_and(|pieces| send <= pieces.cut.fragment.min(most));
        let mine = match () {
            () if fits(&line) => Spot::Line,
            () if fits(&slot) => Spot::Slot,
            () => Spot::Turns,
        };
        let most = 1 + turns_pieces.cut.bounded_ticks(send.max(receive), turns(me.size()))?;
        let lengths = Lengths::Unknown { line, slot, turns: turns_pieces, mine, theirs: mine };
        Ok(Self { me: me.rank(), size: me.size(), lengths, most, long: mine == Spot::Turns && me.size() > 1 })
    }

    /// Forgets what peers' lines said.
    pub(crate) fn forget(&mut self) {
        if let Lengths::Unknown { mine, theirs, .. } = &mut self.lengths {
            *theirs = *mine;
            self.long = *mine == Spot::Turns && self.size > 1;
        }
    }

    /// This process.
    #[inline]
    pub(crate) const fn me(&self) -> Rank {
        self.me
    }

    /// Turns until all have met: an odd number.
    #[inline]
    pub(crate) const fn turns(&self) -> u64 {
        turns(self.size)
    }

    /// Ticks of this process, as far as it knows.
    #[inline]
    pub(crate) const fn ticks(&self) -> u64 {
        if self.long { self.most } else { 1 }
    }

    /// What the line says.
    #[inline]
    pub(crate) const fn announced(&self) -> u64 {
        match self.lengths {
            Lengths::Known { bytes, .. } => bytes,
            Lengths::Unknown { mine, .. } => mine as u64,
        }
    }

    /// Must the line of who is taken from be heard in `tick`? At its first turn even if it was before: which spot it
    /// chose is not kept for each process.
    #[inline]
    pub(crate) fn hears(&self, tick: u64) -> bool {
        tick <= turns(self.size)
    }

    /// What `peer`'s line says.
    ///
    /// # Errors
    /// Another length, or a spot that this segment has not.
    #[inline]
    pub(crate) fn heard(&mut self, peer: Rank, announced: u64) -> Result<(), PollError> {
        let mismatch =
            |bytes, bound| Err(PollError::Mismatch { peer, refusal: Refusal::new(Argument::Bytes, bytes, bound) });
        match &mut self.lengths {
            Lengths::Known { bytes, .. } if announced == *bytes => {}
            Lengths::Known { bytes, .. } => return mismatch(*bytes, Bound::Equals(announced)),
            Lengths::Unknown { line, slot, theirs, .. } => {
                *theirs = match announced {
                    0 if line.is_some() => Spot::Line,
                    1 if slot.is_some() => Spot::Slot,
                    2 => Spot::Turns,
                    _ => return mismatch(announced, Bound::AtMost(2)),
                };
                self.long |= *theirs == Spot::Turns;
            }
        }
        Ok(())
    }

    /// Where `writer`'s blocks travel: this process's, or those of the peer that was heard last.
    #[inline]
    const fn spot(&self, writer: Rank) -> Spot {
        match self.lengths {
            Lengths::Known { spot, .. } => spot,
            Lengths::Unknown { mine, theirs, .. } => {
                if writer == self.me {
                    mine
                } else {
                    theirs
                }
            }
        }
    }

    /// The tick whose slot has what is taken of `writer` in `tick`; `None`: its line has.
    #[inline(always)]
    pub(crate) fn slot(&self, tick: u64, writer: Rank) -> Option<u64> {
        match self.spot(writer) {
            Spot::Line if self.hears(tick) => None,
            Spot::Slot if self.hears(tick) => Some(0),
            Spot::Turns if tick == 0 => None,
            _ => Some(tick),
        }
    }

    /// With whom this process exchanges in `tick`: itself where it pauses; `None`: with everyone.
    #[inline]
    pub(crate) fn partner(&self, tick: u64) -> Option<Rank> {
        let round = tick.checked_sub(1)? % turns(self.size);
        Some(meet(self.me, self.size, round as u32))
    }

    /// The tick behind `tick` in which this process exchanges with `peer`.
    #[inline]
    pub(crate) const fn next_with(&self, tick: u64, peer: Rank) -> u64 {
        if tick == 0 { 1 + met(self.me, peer, self.size) as u64 } else { tick + turns(self.size) }
    }

    /// Has this process a fragment in `tick`? `send` is how long its block for another one is.
    #[inline(always)]
    pub(crate) fn posts(&self, tick: u64, send: impl Fn(Rank) -> u64) -> bool {
        match self.partner(tick) {
            None => self.size > 1,
            Some(reader) => {
                self.spot(self.me) == Spot::Turns
                    && reader != self.me
                    && self.pieces(Spot::Turns).any(send(reader), self.index(tick))
            }
        }
    }

    /// Does it take that of `peer`, whose block for it has `bytes`? Who posts in turns takes in turns, from everyone: in place,
    /// what it posts is where it takes. Its own block is all taken in tick 0.
    #[inline(always)]
    pub(crate) fn takes(&self, tick: u64, peer: Rank, bytes: impl Fn() -> u64) -> bool {
        if tick == 0 {
            peer == self.me || self.spot(self.me) != Spot::Turns
        } else {
            peer != self.me && self.pieces(Spot::Turns).any(bytes(), self.index(tick))
        }
    }

    /// Which fragment of each message is in this tick: in turns, all meet before the next one.
    #[inline]
    fn index(&self, tick: u64) -> u64 {
        if tick < 2 { 0 } else { (tick - 1) / turns(self.size) }
    }

    #[inline]
    const fn pieces(&self, spot: Spot) -> &Pieces {
        match &self.lengths {
            Lengths::Known { pieces, .. } => pieces,
            Lengths::Unknown { line: Some(line), .. } if matches!(spot, Spot::Line) => line,
            Lengths::Unknown { slot: Some(slot), .. } if matches!(spot, Spot::Slot) => slot,
            Lengths::Unknown { turns, .. } => turns,
        }
    }

    /// Writes this process's fragment of `tick`.
    ///
    /// # Safety
    /// As [`super::pieces::put`].
    #[inline(always)]
    pub(crate) unsafe fn put<R: Region>(&self, region: &R, place: Extent, tick: u64, send: &Blocks<'_>) {
        let spot = self.spot(self.me);
        let pieces = self.pieces(spot);
        let readers = match self.partner(tick) {
            Some(reader) => reader..reader + 1,
            None if spot == Spot::Turns => 0..0,
            None => 0..self.size,
        };
        for reader in readers.filter(|&reader| reader != self.me) {
            // SAFETY: the caller's promise.
            unsafe { pieces.put(region, place, (self.me, reader), self.index(tick), &send.block(reader)) };
        }
    }

    /// Copies what the fragment of `peer`, heard last, has for this process to `data`.
    ///
    /// # Errors
    /// The writer has another length for it.
    ///
    /// # Safety
    /// As [`super::pieces::get`].
    #[inline(always)]
    pub(crate) unsafe fn get<R: Region>(
        &self,
        region: &R,
        place: Extent,
        (tick, peer): (u64, Rank),
        data: &Data<'_>,
    ) -> Result<(), PollError> {
        let spot = if self.hears(tick) { self.spot(peer) } else { Spot::Turns };
        let now = spot == Spot::Turns || self.spot(self.me) == Spot::Turns;
        if now != (tick > 0) {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.pieces(spot).get(region, place, (peer, self.me), self.index(tick), data) }
    }
}

/// What a plan answers whose blocks travel as its field `$pairs` says.
macro_rules! through_pairs {
    ($pairs:ident) => {
        fn ticks(&self) -> u64 {
            self.$pairs.ticks()
        }

        fn announced(&self) -> u64 {
            self.$pairs.announced()
        }

        fn hears(&self, tick: u64) -> bool {
            self.$pairs.hears(tick)
        }

        fn heard(&mut self, peer: $crate::Rank, announced: u64) -> Result<(), $crate::error::PollError> {
            self.$pairs.heard(peer, announced)
        }

        fn forget(&mut self) {
            self.$pairs.forget();
        }

        fn slot(&self, tick: u64, writer: $crate::Rank) -> Option<u64> {
            self.$pairs.slot(tick, writer)
        }

        fn partner(&self, tick: u64) -> Option<$crate::Rank> {
            self.$pairs.partner(tick)
        }
    };
}
pub(crate) use through_pairs;

/// Turns until all of `size` processes have met.
#[inline(always)]
const fn turns(size: u32) -> u64 {
    (size - 1) as u64 | 1
}

/// Whom `me` meets in a round: a round-robin tournament among an odd number of processes, `me` itself if it pauses. Of an even
/// number the last one stays out and meets who would pause.
#[inline(always)]
const fn meet(me: Rank, size: u32, round: u32) -> Rank {
    let odd = turns(size) as u32;
    if me == odd {
        // Twice who pauses is the round.
        return if round.is_multiple_of(2) { round / 2 } else { (round + odd) / 2 };
    }
    let partner = if me <= round { round - me } else { round + odd - me };
    if partner == me && odd < size { odd } else { partner }
}

/// The round in which two processes meet.
#[inline(always)]
const fn met(one: Rank, other: Rank, size: u32) -> u32 {
    let odd = turns(size);
    let (one, other) = (one as u64, other as u64);
    // Who stays out meets who would pause.
    let sum = if one == odd {
        2 * other
    } else if other == odd {
        2 * one
    } else {
        one + other
    };
    (sum % odd) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_meet_in_their_round() {
        for size in 2..40 {
            for (one, other) in (0..size).flat_map(|one| (0..size).map(move |other| (one, other))) {
                let round = met(one, other, size);
                assert!(one == other || meet(one, size, round) == other, "{one} and {other} of {size}");
            }
        }
    }

    #[test]
    fn all_meet_once_and_in_pairs() {
        for size in 1..40 {
            for me in 0..size {
                let mut met = [0; 40];
                for round in 0..turns(size) as u32 {
                    let partner = meet(me, size, round);
                    assert!(partner < size && meet(partner, size, round) == me, "{me} of {size}, round {round}");
                    met[partner as usize] += 1;
                }
                let pauses = u32::from(size % 2 == 1);
                assert!((0..size).all(|peer| met[peer as usize] == if peer == me { pauses } else { 1 }));
            }
        }
    }
}
