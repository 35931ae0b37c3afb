//! Through which places the blocks of each pair of ranks travel (alltoall), or the blocks of a root (scatter), and
//! which ranks know their lengths.
//!
//! | packing | steps | place |
//! |---|---|---|
//! | line | 0 | side by side in the writer's line |
//! | slot | 0 | side by side in one slot |
//! | pairwise | 1 … | a slot holds a fragment for one reader; in each step, pairs of processes exchange |
//!
//! Pairwise, a fragment is as long as a slot, whatever the number of processes: short pieces, far from each other in
//! the users' memory, would be slow to copy. A round-robin tournament says which two ranks are partners in a round.
//! Within p − 1 rounds each rank has met each other; if p is odd there are p rounds, and one rank pauses in each.
//! Both partners post before they take, so an exchange in place needs no other memory.
//!
//! If all ranks know one length for all blocks, all choose the same packing. Else writer and reader of a block
//! choose, by its length, which both know: short blocks travel side by side, long ones pairwise. Side by side, each
//! piece has its block's length before it; the piece of a block that follows pairwise has only the length. So all
//! lengths are compared in step 0. The writer's line says whether its step 0 lies in the line. If a slot has no room
//! for a piece for each rank, all blocks travel pairwise.
//!
//! Blocks that would travel pairwise may be [lent](super::loans): then they are taken in step 0, and the length of a
//! block stands beside where it starts in the loan, if not all ranks know both.
//!
//! What is posted in step 0 must be taken in step 0: later it may be overwritten, since `acked` names a step for all
//! writers together.

use super::cut::{Medium, Span};
use super::pieces::{Pair, Pieces, Readers};
use crate::Rank;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::{Extent, Region};

/// Length in bytes of the longest block that lies side by side with others in a slot.
const SIDE_BY_SIDE: u64 = 4096;

/// Through which places blocks travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Packing {
    Line,
    Slot,
    Pairwise,
}

/// What a line announces whose pieces have their blocks' lengths before them.
pub(crate) const IN_LINE: u64 = Packing::Line as u64;

/// Which ranks know how long blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lengths {
    /// All ranks: every block has `bytes` bytes.
    Known { bytes: u64, packing: Packing, pieces: Pieces },
    /// Only writer and reader of a block: short blocks travel as `short` says, all others pairwise, in `rounds`.
    Unknown { short: Option<Short>, rounds: Pieces },
}

/// Step 0 of blocks of unknown lengths: the short blocks side by side, and the lengths of all blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Short {
    /// The pieces of a line, if it has room for them.
    line: Option<Pieces>,
    /// The pieces of a slot.
    slot: Pieces,
    /// Does this process's step 0 lie in its line?
    mine: bool,
    /// Does that of the peer whose line was received last? Before one was: do all blocks that this process receives fit?
    theirs: bool,
}

impl Short {
    /// Length in bytes of the longest short block.
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

/// How blocks travel between this process and the others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pairs {
    me: Rank,
    size: u32,
    lengths: Lengths,
    /// Number of steps of this process.
    steps: u64,
}

impl Pairs {
    /// All blocks have `bytes` bytes; fragments for one reader have `least` or more. Returns the medium, and what is taken of the queues, too.
    ///
    /// # Errors
    /// A slot has no room for a byte, which no layout allows.
    #[inline(always)]
    pub(crate) fn known(me: &Member, bytes: u64, least: u64) -> Result<(Medium, Span, Self), Refusal> {
        let (medium, packing, pieces) = match Pieces::known(me, bytes, 1, Readers::Others) {
            Ok((Medium::Lines, pieces)) => (Medium::Lines, Packing::Line, pieces),
            Ok((medium, pieces)) if bytes <= pieces.cut.fragment.min(SIDE_BY_SIDE) => (medium, Packing::Slot, pieces),
            // The bytes for all ranks together are cut into four, not each block: while one reader copies out, the
            // writer copies in for the next.
            _ => {
                let all = bytes.saturating_mul(rounds(me.size()));
                (Medium::Queues, Packing::Pairwise, Pieces::queued(me, all, 1, Readers::One, least)?)
            }
        };
        let long = packing == Packing::Pairwise && me.size() > 1;
        let steps = if long { 1 + pieces.cut.steps(bytes) * rounds(me.size()) } else { 1 };
        let pairs = Self { me: me.rank(), size: me.size(), lengths: Lengths::Known { bytes, packing, pieces }, steps };
        Ok((medium, Span { advance: steps, bytes: pieces.bytes(me) }, pairs))
    }

    /// Blocks whose lengths only writer and reader know: this process's longest block for a rank has `send` bytes, the
    /// longest from a rank `receive`.
    ///
    /// # Errors
    /// A block has more bytes than the steps of such an operation can carry.
    #[inline(always)]
    pub(crate) fn unknown(me: &Member, send: u64, receive: u64) -> Result<Self, Refusal> {
        let short = Pieces::unknown(me, Readers::Others).ok().map(|slot| {
            let line = Pieces::unknown_in_line(me);
            let fits = |bytes| line.is_some_and(|line| bytes <= line.cut.fragment.min(slot.cut.fragment));
            Short { line, slot, mine: fits(send), theirs: fits(receive) }
        });
        // Where step 0 has told the lengths, the pairwise fragments have no header.
        let pieces = if short.is_some() { Pieces::bare(me) } else { Pieces::unknown(me, Readers::One)? };
        let most = send.max(receive);
        let long = me.size() > 1 && short.is_none_or(|short| most > short.most());
        let steps = if long { 1 + pieces.cut.bounded_steps(most, rounds(me.size()))? } else { 1 };
        Ok(Self { me: me.rank(), size: me.size(), lengths: Lengths::Unknown { short, rounds: pieces }, steps })
    }

    /// Number of rounds until each rank has met each other: an odd number.
    #[inline]
    pub(crate) const fn rounds(&self) -> u64 {
        rounds(self.size)
    }

    /// Number of steps of this process.
    #[inline]
    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// The value that this process's line announces: the length of all blocks where all ranks know it, else the
    /// packing of step 0.
    #[inline]
    pub(crate) const fn announced(&self) -> u64 {
        match self.lengths {
            Lengths::Known { bytes, .. } => bytes,
            Lengths::Unknown { short: Some(Short { mine: true, .. }), .. } => IN_LINE,
            Lengths::Unknown { short: Some(_), .. } => Packing::Slot as u64,
            Lengths::Unknown { short: None, .. } => Packing::Pairwise as u64,
        }
    }

    /// Must this process receive the line of the rank from which it takes in `step`? Where all blocks travel pairwise
    /// it does so when the two meet for the first time.
    #[inline]
    pub(crate) const fn receives(&self, step: u64) -> bool {
        match self.lengths {
            Lengths::Unknown { short: Some(_), .. } => step == 0,
            _ => step <= rounds(self.size),
        }
    }

    /// Notes the value that `peer`'s line announces.
    ///
    /// # Errors
    /// It is another length than this process's, or a packing that can't be.
    #[inline]
    pub(crate) fn received(&mut self, peer: Rank, announced: u64) -> Result<(), PollError> {
        let mismatch =
            |bytes, bound| Err(PollError::Mismatch { peer, refusal: Refusal::new(Argument::Bytes, bytes, bound) });
        match &mut self.lengths {
            Lengths::Known { bytes, .. } if announced == *bytes => {}
            Lengths::Known { bytes, .. } => return mismatch(*bytes, Bound::Equals(announced)),
            Lengths::Unknown { short: Some(short), .. } if announced <= Packing::Slot as u64 => {
                short.theirs = announced == IN_LINE;
            }
            Lengths::Unknown { short: None, .. } if announced == Packing::Pairwise as u64 => {}
            Lengths::Unknown { .. } => return mismatch(announced, Bound::AtMost(Packing::Pairwise as u64)),
        }
        Ok(())
    }

    /// Does `writer`'s fragment of `step` lie in a slot? Else it lies in its line. `writer` is this process, or the
    /// peer whose line was received last.
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

    /// The rank with which this process exchanges in `step`: itself if it pauses. `None` in step 0, which is for all
    /// ranks.
    #[inline]
    pub(crate) fn partner(&self, step: u64) -> Option<Rank> {
        let round = step.checked_sub(1)? % rounds(self.size);
        Some(meet(self.me, self.size, round as u32))
    }

    /// The next step after `step` in which this process exchanges with `peer`.
    #[inline]
    pub(crate) const fn next_with(&self, step: u64, peer: Rank) -> u64 {
        if step == 0 { 1 + met(self.me, peer, self.size) as u64 } else { step + rounds(self.size) }
    }

    /// Does this process post a fragment in `step`? `send` returns the length of its block for a rank.
    #[inline(always)]
    pub(crate) fn posts(&self, step: u64, send: impl Fn(Rank) -> u64) -> bool {
        match self.partner(step) {
            None => self.size > 1,
            Some(reader) => reader != self.me && self.in_round(step, send(reader)),
        }
    }

    /// Does this process take `peer`'s fragment of `step`? `bytes` returns the length of `peer`'s block for it. It
    /// takes its own block as a whole in step 0.
    #[inline(always)]
    pub(crate) fn takes(&self, step: u64, peer: Rank, bytes: impl Fn() -> u64) -> bool {
        if step == 0 { peer == self.me || self.has_first() } else { peer != self.me && self.in_round(step, bytes()) }
    }

    /// Does step 0 carry blocks or lengths? Else its line only names the operation.
    #[inline(always)]
    const fn has_first(&self) -> bool {
        match self.lengths {
            Lengths::Known { packing, .. } => !matches!(packing, Packing::Pairwise),
            Lengths::Unknown { short, .. } => short.is_some(),
        }
    }

    /// Does a block of `bytes` have a fragment in `step`, which is a pairwise one?
    #[inline(always)]
    fn in_round(&self, step: u64, bytes: u64) -> bool {
        match &self.lengths {
            Lengths::Known { packing: Packing::Pairwise, pieces, .. } => pieces.any(bytes, self.index(step)),
            Lengths::Known { .. } => false,
            Lengths::Unknown { short: Some(short), .. } if bytes <= short.most() => false,
            Lengths::Unknown { rounds, .. } => rounds.any(bytes, self.index(step)),
        }
    }

    /// The index of the fragment of each block that travels in this step: all pairs meet for one before the next.
    #[inline]
    const fn index(&self, step: u64) -> u64 {
        if step < 2 { 0 } else { (step - 1) / rounds(self.size) }
    }

    /// The pieces of blocks whose lengths all ranks know, or of those that travel pairwise.
    #[inline]
    const fn pieces(&self) -> &Pieces {
        match &self.lengths {
            Lengths::Known { pieces, .. } => pieces,
            Lengths::Unknown { rounds, .. } => rounds,
        }
    }

    /// The memory of the blocks that travel pairwise, if it can be lent: their readers know where their blocks start in
    /// it, or are told.
    pub(crate) fn lendable(&self, send: &Blocks<'_>) -> Option<Buf> {
        match &self.lengths {
            Lengths::Known { packing: Packing::Pairwise, .. } => send.in_one_piece(),
            Lengths::Unknown { short: Some(short), .. } if !short.mine => send.span(short.most()),
            _ => None,
        }
    }

    /// Do blocks lie in `writer`'s line? Else the line has the words of loans and laps. `writer` is as for
    /// [`Self::in_slot`].
    #[inline(always)]
    pub(crate) fn in_line(&self, writer: Rank) -> bool {
        self.has_first() && !self.in_slot(0, writer)
    }

    /// Do all blocks of this process lie in lines, as far as it knows?
    #[inline(always)]
    pub(crate) fn all_in_lines(&self) -> bool {
        self.steps == 1
            && match self.lengths {
                Lengths::Known { packing, .. } => packing == Packing::Line,
                Lengths::Unknown { short, .. } => short.is_some_and(|short| short.mine && short.theirs),
            }
    }

    /// Are the words of a loan in `writer`'s line? `writer` is this process, or in step 0 the peer whose line was received
    /// last.
    #[inline(always)]
    pub(crate) fn may_lend(&self, step: u64, writer: Rank) -> bool {
        match self.lengths {
            Lengths::Known { packing, .. } => packing == Packing::Pairwise,
            Lengths::Unknown { short, .. } => short.is_some() && self.in_slot(step, writer),
        }
    }

    /// Where this process's block of `bytes` starts in what a peer lends, if all ranks know that; `None`: the peer says so
    /// in step 0.
    pub(crate) fn known_offset(&self) -> Option<u64> {
        match self.lengths {
            Lengths::Known { bytes, packing: Packing::Pairwise, .. } => Some(bytes.saturating_mul(self.me.into())),
            _ => None,
        }
    }

    /// Writes this process's fragment of `step` to `place`. `lent`: the start of what it lends.
    ///
    /// # Safety
    /// As [`super::pieces::put`].
    #[inline(always)]
    pub(crate) unsafe fn put<R: Region>(
        &self,
        region: &R,
        place: Extent,
        step: u64,
        send: &Blocks<'_>,
        lent: Option<*mut u8>,
    ) {
        if let Some(reader) = self.partner(step) {
            let (pair, block) = (Pair { writer: self.me, reader }, send.block(reader));
            // SAFETY: the caller's promise.
            return unsafe { self.pieces().put(region, place, pair, self.index(step), &block) };
        }
        for reader in (0..self.size).filter(|&reader| reader != self.me && self.has_first()) {
            let (pair, block) = (Pair { writer: self.me, reader }, send.block(reader));
            match &self.lengths {
                // SAFETY: the caller's promise.
                Lengths::Unknown { short: Some(short), .. } if block.len() > short.most() => unsafe {
                    let offset = lent.map_or(0, |lent| block.start().addr().wrapping_sub(lent.addr()));
                    short.pieces(short.mine).tell(region, place, pair, block.len(), offset as u64);
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

    /// Copies this process's piece of `peer`'s fragment of `step` to `data`. In step 0 `peer` is the rank whose line
    /// was received last. Returns, if this was only the block's length, where the block starts in what `peer` lends.
    ///
    /// # Errors
    /// The writer's length for the block differs from `data`'s.
    ///
    /// # Safety
    /// As [`super::pieces::get`].
    #[inline(always)]
    pub(crate) unsafe fn get<R: Region>(
        &self,
        region: &R,
        place: Extent,
        step: u64,
        peer: Rank,
        data: &Data<'_>,
    ) -> Result<Option<u64>, PollError> {
        let pair = Pair { writer: peer, reader: self.me };
        match &self.lengths {
            Lengths::Unknown { short: Some(short), .. } if step == 0 && data.len() > short.most() => {
                // SAFETY: the caller's promise.
                return unsafe { short.pieces(short.theirs).told(region, place, pair, data.len()) }.map(Some);
            }
            Lengths::Unknown { short: Some(short), .. } if step == 0 => {
                // SAFETY: the caller's promise.
                unsafe { short.pieces(short.theirs).get(region, place, pair, 0, data) }?;
            }
            // SAFETY: the caller's promise.
            _ => unsafe { self.pieces().get(region, place, pair, self.index(step), data) }?,
        }
        Ok(None)
    }

    /// The block of a pair in the fragment of step 0 at `place`, after its header.
    #[inline]
    pub(crate) fn piece(&self, place: Extent, pair: Pair) -> Extent {
        match &self.lengths {
            Lengths::Unknown { short: Some(short), .. } => short.pieces(short.theirs).of(place, pair),
            _ => self.pieces().of(place, pair),
        }
    }
}

/// Number of rounds until each of `size` processes has met each other.
#[inline(always)]
const fn rounds(size: u32) -> u64 {
    (size - 1) as u64 | 1
}

/// The rank that `me` meets in a round; `me` itself if it pauses. The round-robin tournament is among an odd number of
/// processes; if `size` is even, the last rank is not among these, and meets the rank that would pause.
#[inline(always)]
const fn meet(me: Rank, size: u32, round: u32) -> Rank {
    let odd = rounds(size) as u32;
    if me == odd {
        // The rank that would pause is half the round's number, modulo the odd number.
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
    // The last rank of an even number meets the rank that would pause.
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
    use crate::shm::engine::cut::MUTUAL;

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
        // With their span: a line's two pieces; two side by side in a slot, which begin on lines; a slot each.
        for (bytes, medium, steps, slot, span) in [
            (8, Medium::Lines, 1, false, 16),
            (200, Medium::Queues, 1, true, 512),
            (20_000, Medium::Queues, 16, false, 4096),
        ] {
            let (found, taken, mut pairs) = Pairs::known(&member(3, 4096), bytes, MUTUAL).unwrap();
            assert_eq!(
                (found, taken, pairs.steps(), pairs.in_slot(0, 0)),
                (medium, Span { advance: steps, bytes: span }, steps, slot),
                "{bytes} bytes"
            );
            assert_eq!((pairs.announced(), pairs.received(1, bytes)), (bytes, Ok(())));
            let refusal = Refusal::new(Argument::Bytes, bytes, Bound::Equals(bytes + 1));
            assert_eq!(pairs.received(1, bytes + 1), Err(PollError::Mismatch { peer: 1, refusal }));
            assert_eq!([0, 3, 4].map(|step| pairs.receives(step)), [true, true, false]);
        }
        // With one rank nothing travels.
        for bytes in [8, 200, 20_000] {
            let (_, span, pairs) = Pairs::known(&member(1, 4096), bytes, MUTUAL).unwrap();
            assert_eq!((span.advance, pairs.posts(0, |_| bytes)), (1, false));
        }
    }

    #[test]
    fn blocks_that_two_know_are_announced_by_their_packing() {
        let unknown = |ranks, most| Pairs::unknown(&member(ranks, 4096), most, 0).unwrap();
        let refusal = |announced| Refusal::new(Argument::Bytes, announced, Bound::AtMost(2));
        // The longest that fits a line's piece; one that needs a slot's piece; one that travels pairwise.
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
        // A slot has no room for a piece for each rank: all blocks travel pairwise, even short ones.
        let mut rounds = Pairs::unknown(&member(5, 64), 8, 8).unwrap();
        assert_eq!((rounds.announced(), rounds.in_slot(0, 0), rounds.steps()), (2, false, 6));
        assert_eq!([0, 5, 6].map(|step| rounds.receives(step)), [true, true, false]);
        assert_eq!(
            (rounds.received(1, 2), rounds.received(1, 1).is_err(), rounds.received(1, 3).is_err()),
            (Ok(()), true, true)
        );
    }
}
