//! A block from each process to each other one, or from one to all others: where they travel, and who knows their
//! lengths. For alltoall and scatter.
//!
//! | packing | steps | place |
//! |---|---|---|
//! | line | 0 | side by side in the writer's line |
//! | slot | 0 | side by side in one slot |
//! | pairwise | 1 … | a slot holds a fragment for one reader; in each step, pairs of processes exchange |
//!
//! Pairwise a fragment is as long as a slot, however many processes there are: short pieces, far from each other in
//! the users' memory, are slow to copy. Who is whose partner is a round-robin tournament, in which all meet within
//! p − 1 rounds (p odd: p, and one pauses). Both post before they take, so an exchange in place needs no other memory.
//!
//! Where all know that all blocks have one length, all choose the packing alike. Else writer and reader of each block do, by
//! its length, which both know: short ones travel side by side, long ones pairwise. Side by side the length stands before each
//! block, and before nothing where a long one follows pairwise: so all lengths are compared in step 0. The writer's line says
//! whether its step 0 is in the line. Where a slot has not room for a piece for each process, all blocks travel pairwise.
//!
//! Whatever is posted in step 0 is taken in step 0: what is put off would be overwritten, since
//! `acked` tells of steps, not of writers.

use super::pieces::{Medium, Pieces, Readers};
use crate::Rank;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::{Extent, Region};

/// Longest blocks that lie side by side in a slot.
const SIDE_BY_SIDE: u64 = 4096;

/// Where blocks travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Packing {
    Line,
    Slot,
    Pairwise,
}

/// Who knows how long blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lengths {
    /// All: they have this length, and travel so.
    Known { bytes: u64, packing: Packing, pieces: Pieces },
    /// Writer and reader: short ones travel so, others pairwise.
    Unknown { short: Option<Short>, rounds: Pieces },
}

/// Blocks that travel side by side, and the lengths of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Short {
    /// How they lie in a line, if it has room; and in a slot.
    line: Option<Pieces>,
    slot: Pieces,
    /// Are this process's in its line? Are those of the peer whose line was received last?
    mine: bool,
    theirs: bool,
}

impl Short {
    /// Bytes of the longest.
    #[inline(always)]
    fn most(&self) -> u64 {
        self.slot.cut.fragment.min(SIDE_BY_SIDE)
    }

    #[inline(always)]
    const fn pieces(&self, in_line: bool) -> &Pieces {
        match &self.line {
            Some(line) if in_line => line,
            _ => &self.slot,
        }
    }
}

/// How blocks travel between one process and the others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pairs {
    me: Rank,
    size: u32,
    lengths: Lengths,
    /// Steps of this process.
    steps: u64,
}

impl Pairs {
    /// Blocks of `bytes` between any two.
    ///
    /// # Errors
    /// More processes than a slot has room for.
    #[inline(always)]
    pub(crate) fn known(me: &Member, bytes: u64) -> Result<(Medium, u64, Self), Refusal> {
        let (medium, packing, pieces) = match Pieces::known(me, bytes, 1, Readers::Others) {
            Ok((Medium::Lines, pieces)) => (Medium::Lines, Packing::Line, pieces),
            Ok((medium, pieces)) if bytes <= pieces.cut.fragment.min(SIDE_BY_SIDE) => (medium, Packing::Slot, pieces),
            // What goes to all others is cut, not each block: while one copies out, the next one's is copied in.
            _ => {
                let all = bytes.saturating_mul(rounds(me.size()));
                (Medium::Queues, Packing::Pairwise, Pieces::queued(me, all, 1, Readers::One)?)
            }
        };
        let long = packing == Packing::Pairwise && me.size() > 1;
        let steps = if long { 1 + pieces.cut.steps(bytes) * rounds(me.size()) } else { 1 };
        let pairs = Self { me: me.rank(), size: me.size(), lengths: Lengths::Known { bytes, packing, pieces }, steps };
        Ok((medium, steps, pairs))
    }

    /// Blocks whose lengths only writer and reader know: this process writes at most `send` bytes to one other, and
    /// takes at most `receive` from one.
    ///
    /// # Errors
    /// More bytes than the clock's steps for them.
    #[inline(always)]
    pub(crate) fn unknown(me: &Member, send: u64, receive: u64) -> Result<Self, Refusal> {
        let short = Pieces::unknown(me, Readers::Others).ok().map(|slot| {
            let line = Pieces::unknown_in_line(me);
            let mine = line.is_some_and(|line| send <= line.cut.fragment.min(slot.cut.fragment));
            Short { line, slot, mine, theirs: mine }
        });
        // Where step 0 has told the lengths, what follows pairwise need not.
        let pieces = if short.is_some() { Pieces::bare(me) } else { Pieces::unknown(me, Readers::One)? };
        let most = send.max(receive);
        let long = me.size() > 1 && short.is_none_or(|short| most > short.most());
        let steps = if long { 1 + pieces.cut.bounded_steps(most, rounds(me.size()))? } else { 1 };
        Ok(Self { me: me.rank(), size: me.size(), lengths: Lengths::Unknown { short, rounds: pieces }, steps })
    }

    /// Rounds until all have met: an odd number.
    #[inline]
    pub(crate) const fn rounds(&self) -> u64 {
        rounds(self.size)
    }

    /// Steps of this process.
    #[inline]
    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// What the line says: a length, or the packing of step 0.
    #[inline]
    pub(crate) const fn announced(&self) -> u64 {
        match self.lengths {
            Lengths::Known { bytes, .. } => bytes,
            Lengths::Unknown { short: Some(Short { mine: true, .. }), .. } => Packing::Line as u64,
            Lengths::Unknown { short: Some(_), .. } => Packing::Slot as u64,
            Lengths::Unknown { short: None, .. } => Packing::Pairwise as u64,
        }
    }

    /// Must the line of who is taken from be received in `step`? Where blocks travel pairwise from the beginning, when the two
    /// first meet.
    #[inline]
    pub(crate) const fn receives(&self, step: u64) -> bool {
        match self.lengths {
            Lengths::Unknown { short: Some(_), .. } => step == 0,
            _ => step <= rounds(self.size),
        }
    }

    /// What `peer`'s line says.
    ///
    /// # Errors
    /// Another length, or a packing that this segment has not.
    #[inline]
    pub(crate) fn received(&mut self, peer: Rank, announced: u64) -> Result<(), PollError> {
        let mismatch =
            |bytes, bound| Err(PollError::Mismatch { peer, refusal: Refusal::new(Argument::Bytes, bytes, bound) });
        match &mut self.lengths {
            Lengths::Known { bytes, .. } if announced == *bytes => {}
            Lengths::Known { bytes, .. } => return mismatch(*bytes, Bound::Equals(announced)),
            Lengths::Unknown { short: Some(short), .. } if announced <= Packing::Slot as u64 => {
                short.theirs = announced == Packing::Line as u64;
            }
            Lengths::Unknown { short: None, .. } if announced == Packing::Pairwise as u64 => {}
            Lengths::Unknown { .. } => return mismatch(announced, Bound::AtMost(Packing::Pairwise as u64)),
        }
        Ok(())
    }

    /// Has a slot what is taken of `writer` in `step`: of this process, or of the peer whose line was received last? Else its line has.
    #[inline(always)]
    pub(crate) fn in_slot(&self, step: u64, writer: Rank) -> bool {
        step > 0
            || match self.lengths {
                Lengths::Known { packing, .. } => packing == Packing::Slot,
                Lengths::Unknown { short: Some(short), .. } => {
                    !(if writer == self.me { short.mine } else { short.theirs })
                }
                Lengths::Unknown { short: None, .. } => false,
            }
    }

    /// With whom this process exchanges in `step`: itself where it pauses; `None`: with everyone.
    #[inline]
    pub(crate) fn partner(&self, step: u64) -> Option<Rank> {
        let round = step.checked_sub(1)? % rounds(self.size);
        Some(meet(self.me, self.size, round as u32))
    }

    /// The step behind `step` in which this process exchanges with `peer`.
    #[inline]
    pub(crate) const fn next_with(&self, step: u64, peer: Rank) -> u64 {
        if step == 0 { 1 + met(self.me, peer, self.size) as u64 } else { step + rounds(self.size) }
    }

    /// Has this process a fragment in `step`? `send` is how long its block for another one is.
    #[inline(always)]
    pub(crate) fn posts(&self, step: u64, send: impl Fn(Rank) -> u64) -> bool {
        match self.partner(step) {
            None => self.size > 1,
            Some(reader) => reader != self.me && self.in_round(step, send(reader)),
        }
    }

    /// Does it take that of `peer`, whose block for it has `bytes`? Its own block is all taken in step 0.
    #[inline(always)]
    pub(crate) fn takes(&self, step: u64, peer: Rank, bytes: impl Fn() -> u64) -> bool {
        if step == 0 { peer == self.me || self.is_first() } else { peer != self.me && self.in_round(step, bytes()) }
    }

    /// Has step 0 more than a line that names the operation?
    #[inline(always)]
    const fn is_first(&self) -> bool {
        match self.lengths {
            Lengths::Known { packing, .. } => !matches!(packing, Packing::Pairwise),
            Lengths::Unknown { short, .. } => short.is_some(),
        }
    }

    /// Has a block of `bytes` a fragment in the round that `step` is?
    #[inline(always)]
    fn in_round(&self, step: u64, bytes: u64) -> bool {
        match &self.lengths {
            Lengths::Known { packing: Packing::Pairwise, pieces, .. } => pieces.any(bytes, self.index(step)),
            Lengths::Known { .. } => false,
            Lengths::Unknown { short: Some(short), .. } if bytes <= short.most() => false,
            Lengths::Unknown { rounds, .. } => rounds.any(bytes, self.index(step)),
        }
    }

    /// Which fragment of each block is in this step: pairwise, all meet before the next one.
    #[inline]
    const fn index(&self, step: u64) -> u64 {
        if step < 2 { 0 } else { (step - 1) / rounds(self.size) }
    }

    /// How blocks lie that all know, or that travel pairwise.
    #[inline]
    const fn pieces(&self) -> &Pieces {
        match &self.lengths {
            Lengths::Known { pieces, .. } => pieces,
            Lengths::Unknown { rounds, .. } => rounds,
        }
    }

    /// Writes this process's fragment of `step`.
    ///
    /// # Safety
    /// As [`super::pieces::put`].
    #[inline(always)]
    pub(crate) unsafe fn put<R: Region>(&self, region: &R, place: Extent, step: u64, send: &Blocks<'_>) {
        if let Some(reader) = self.partner(step) {
            let (pair, block) = ((self.me, reader), send.block(reader));
            // SAFETY: the caller's promise.
            return unsafe { self.pieces().put(region, place, pair, self.index(step), &block) };
        }
        for reader in (0..self.size).filter(|&reader| reader != self.me && self.is_first()) {
            let (pair, block) = ((self.me, reader), send.block(reader));
            match &self.lengths {
                // SAFETY: the caller's promise.
                Lengths::Unknown { short: Some(short), .. } if block.len() > short.most() => unsafe {
                    short.pieces(short.mine).tell(region, place, pair, block.len());
                },
                // SAFETY: the caller's promise.
                Lengths::Unknown { short: Some(short), .. } => unsafe {
                    short.pieces(short.mine).put(region, place, pair, 0, &block);
                },
                // SAFETY: the caller's promise.
                _ => unsafe { self.pieces().put(region, place, pair, 0, &block) },
            }
        }
    }

    /// Copies what the fragment of `peer`, whose line was received last, has for this process to `data`.
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
        (step, peer): (u64, Rank),
        data: &Data<'_>,
    ) -> Result<(), PollError> {
        let pair = (peer, self.me);
        match &self.lengths {
            Lengths::Unknown { short: Some(short), .. } if step == 0 && data.len() > short.most() => {
                // SAFETY: the caller's promise.
                unsafe { short.pieces(short.theirs).told(region, place, pair, data.len()) }
            }
            Lengths::Unknown { short: Some(short), .. } if step == 0 => {
                // SAFETY: the caller's promise.
                unsafe { short.pieces(short.theirs).get(region, place, pair, 0, data) }
            }
            // SAFETY: the caller's promise.
            _ => unsafe { self.pieces().get(region, place, pair, self.index(step), data) },
        }
    }
}

/// Rounds until all of `size` processes have met.
#[inline(always)]
const fn rounds(size: u32) -> u64 {
    (size - 1) as u64 | 1
}

/// Whom `me` meets in a round: a round-robin tournament among an odd number of processes, `me` itself if it pauses. Of an even
/// number the last one stays out and meets who would pause.
#[inline(always)]
const fn meet(me: Rank, size: u32, round: u32) -> Rank {
    let odd = rounds(size) as u32;
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
    let odd = rounds(size);
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
    use crate::region::{Layout, Params};

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
                for round in 0..rounds(size) as u32 {
                    let partner = meet(me, size, round);
                    assert!(partner < size && meet(partner, size, round) == me, "{me} of {size}, round {round}");
                    met[partner as usize] += 1;
                }
                let pauses = u32::from(size % 2 == 1);
                assert!((0..size).all(|peer| met[peer as usize] == if peer == me { pauses } else { 1 }));
            }
        }
    }

    fn member(ranks: u32, queue_fragment: u64) -> Member {
        Member::new(Layout::new(Params { queue_fragment, ..Params::new(ranks) }).unwrap(), 0).unwrap()
    }

    #[test]
    fn blocks_that_all_know_have_one_length() {
        for (bytes, medium, steps, slot) in
            [(8, Medium::Lines, 1, false), (200, Medium::Queues, 1, true), (20_000, Medium::Queues, 16, false)]
        {
            let (found, advance, mut pairs) = Pairs::known(&member(3, 4096), bytes).unwrap();
            assert_eq!(
                (found, advance, pairs.steps(), pairs.in_slot(0, 0)),
                (medium, steps, steps, slot),
                "{bytes} bytes"
            );
            assert_eq!((pairs.announced(), pairs.received(1, bytes)), (bytes, Ok(())));
            let refusal = Refusal::new(Argument::Bytes, bytes, Bound::Equals(bytes + 1));
            assert_eq!(pairs.received(1, bytes + 1), Err(PollError::Mismatch { peer: 1, refusal }));
            assert_eq!([0, 3, 4].map(|step| pairs.receives(step)), [true, true, false]);
        }
        // Alone, nothing travels.
        for bytes in [8, 200, 20_000] {
            let (_, steps, pairs) = Pairs::known(&member(1, 4096), bytes).unwrap();
            assert_eq!((steps, pairs.posts(0, |_| bytes)), (1, false));
        }
    }

    #[test]
    fn blocks_that_two_know_are_announced_by_their_spot() {
        let unknown = |ranks, most| Pairs::unknown(&member(ranks, 4096), most, 0).unwrap();
        let refusal = |announced| Refusal::new(Argument::Bytes, announced, Bound::AtMost(2));
        // As long as a line has room for; as a piece has; longer.
        for (most, packing, slot, steps) in [(48, 0, false, 1), (49, 1, true, 1), (1985, 1, true, 4)] {
            let mut pairs = unknown(3, most);
            assert_eq!((pairs.announced(), pairs.in_slot(0, 0), pairs.steps()), (packing, slot, steps), "{most} bytes");
            assert_eq!([0, 1].map(|step| pairs.receives(step)), [true, false], "{most} bytes");
            for (announced, theirs) in [(0, false), (1, true)] {
                assert_eq!((pairs.received(1, announced), pairs.in_slot(0, 1)), (Ok(()), theirs));
            }
            for announced in [2, 3] {
                let mismatch = PollError::Mismatch { peer: 1, refusal: refusal(announced) };
                assert_eq!(pairs.received(1, announced), Err(mismatch));
            }
            assert!(pairs.in_slot(1, 0) && pairs.in_slot(1, 1));
        }
        assert_eq!([1, 2, 3, 4].map(|ranks| unknown(ranks, 1985).rounds()), [1, 1, 3, 3]);
        assert_eq!(unknown(1, 9000).steps(), 1);
        // No room for all side by side: pairwise from the beginning, whatever the lengths.
        let mut rounds = Pairs::unknown(&member(5, 64), 8, 8).unwrap();
        assert_eq!((rounds.announced(), rounds.in_slot(0, 0), rounds.steps()), (2, false, 6));
        assert_eq!([0, 5, 6].map(|step| rounds.receives(step)), [true, true, false]);
        assert_eq!(
            (rounds.received(1, 2), rounds.received(1, 1).is_err(), rounds.received(1, 3).is_err()),
            (Ok(()), true, true)
        );
    }
}
