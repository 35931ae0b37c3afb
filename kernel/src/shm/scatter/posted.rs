//! Scatter and scatterv of short blocks on posted lines (ours): all blocks travel side by side in one line of the root.
//!
//! | rank | steps |
//! |---|---|
//! | root | *Publish*: wait until its line is free, write head and blocks, store the sequence; then copy its own block |
//! | others | *Receive*: wait for the root's sequence, copy their piece out |
//!
//! Where only the root knows all lengths, each piece has its block's length before it. A rank with a short block does not know
//! whether those of others are short, too: the head of the root's line says so, and if they are not, it goes on
//! [pairwise](super::pairwise), whose first fragment the line has published.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::poll::{Halt, Poll, WaitSet};
use crate::machine::{Operation, over};
use crate::region::Region;
use crate::shm::engine::copy::{Part, copy_private};
use crate::shm::engine::line::{self, Body, Heading};
use crate::shm::engine::pairs::IN_LINE;
use crate::shm::engine::pairwise::Pairwise;
use crate::shm::engine::pieces::Span;

/// Which ranks know how long the blocks are, and so how they lie in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lengths {
    /// All ranks: each block has so many bytes.
    Equal(u64),
    /// The root and a block's own rank. A piece has so many words, of which the first is the block's length.
    Vary(u64),
}

impl Lengths {
    /// Equal blocks of `bytes`, if a line has room for one for each rank but its writer.
    #[inline(always)]
    pub(super) fn equal(me: &Member, bytes: u64) -> Option<Self> {
        (bytes <= me.layout().line_share() / 8 * 8).then_some(Self::Equal(bytes))
    }

    /// Blocks of up to `most` bytes, as far as this process knows, if a line has room for them and their lengths.
    #[inline(always)]
    pub(super) fn vary(me: &Member, most: u64) -> Option<Self> {
        let words = me.layout().line_share() / 8;
        (words > 1 && most <= 8 * (words - 1)).then_some(Self::Vary(words))
    }

    /// The words that lie before a block in its piece.
    #[inline(always)]
    const fn before(self) -> u64 {
        matches!(self, Self::Vary(_)) as u64
    }

    /// The words from one piece to the next.
    #[inline(always)]
    const fn stride(self) -> u64 {
        match self {
            Self::Equal(bytes) => bytes.div_ceil(8),
            Self::Vary(words) => words,
        }
    }

    /// What the root's line announces.
    #[inline(always)]
    const fn announced(self) -> u64 {
        match self {
            Self::Equal(bytes) => bytes,
            Self::Vary(_) => IN_LINE,
        }
    }
}

/// One process's part of a scatter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Posted<'a> {
    operation: u64,
    /// The fragment clock at the operation's begin.
    base: u64,
    root: Rank,
    lengths: Lengths,
    /// At the root: a block for each rank.
    send: Option<Blocks<'a>>,
    /// This rank's block; `None`: at the root, in place.
    receive: Option<Data<'a>>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Publish,
    Receive,
    /// The root's line has come, and the blocks are not in it.
    Elsewhere,
    Done,
}

impl<'a> Posted<'a> {
    /// The part of a process whose arguments were checked.
    #[inline(always)]
    pub(super) const fn new(lengths: Lengths, send: Option<Blocks<'a>>, receive: Option<Data<'a>>, root: Rank) -> Self {
        Self { operation: 0, base: 0, root, lengths, send, receive, state: State::Done }
    }

    /// The root's part: posts the blocks of all others.
    #[inline(always)]
    fn publish<R: Region>(&self, region: &R, me: &mut Member, blocks: &Blocks<'_>) -> Result<(), WaitSet> {
        me.line_free(region, self.operation)?;
        me.uses_slot(0);
        let (mut body, mut at, mut end) = (Body::new(), 0, 0);
        for rank in (0..me.size()).filter(|&rank| rank != self.root) {
            body.clear(end, at);
            let bytes = blocks.bytes(rank);
            if let Lengths::Vary(_) = self.lengths {
                body.put(at, bytes);
            }
            let begin = at + self.lengths.before();
            match blocks.dense(rank) {
                // SAFETY: the block's memory, which the caller may read.
                Some(memory) => unsafe { body.gather_from(begin, memory) },
                None => body.gather_at(begin, &blocks.block(rank)),
            }
            (at, end) = (at + self.lengths.stride(), begin + bytes.div_ceil(8));
        }
        let heading = Heading { kind: Kind::Scatter, bytes: self.lengths.announced() };
        line::publish(region, me, self.operation, heading, &mut body, 8 * end);
        Ok(())
    }

    /// Another rank's part. Returns whether its block was in the line.
    #[inline(always)]
    fn receive<R: Region>(&self, region: &R, me: &Member, receive: &Data<'_>) -> Result<bool, Halt> {
        let announced = line::receive_head(region, me, self.root, self.operation, Kind::Scatter)?;
        match self.lengths {
            Lengths::Equal(bytes) if announced != bytes => return Err(self.differs(bytes, announced)),
            Lengths::Vary(_) if announced != IN_LINE => return Ok(false),
            _ => {}
        }
        let (before, mut body) = (self.lengths.before(), Body::new());
        let index = me.rank() - u32::from(me.rank() > self.root);
        let (at, bytes) = (u64::from(index) * self.lengths.stride(), 8 * before + receive.len());
        line::read(region, me, (self.root, self.operation), 8 * at, bytes, &mut body);
        if before > 0 {
            let told = body.words(8).first().copied().unwrap_or_default();
            if told != receive.len() {
                return Err(self.differs(receive.len(), told));
            }
        }
        body.scatter_at(before, receive);
        Ok(true)
    }

    #[cold]
    fn differs(&self, expected: u64, found: u64) -> Halt {
        let refusal = Refusal::new(Argument::Bytes, expected, Bound::Equals(found));
        PollError::Mismatch { peer: self.root, refusal }.into()
    }

    /// Does this process find its block [elsewhere](Self::elsewhere)?
    #[inline(always)]
    pub(super) fn is_elsewhere(&self) -> bool {
        self.state == State::Elsewhere
    }

    /// Where the root's blocks are not in its line: the machine that takes this process's from there, in the same
    /// operation.
    ///
    /// # Errors
    /// A block has more bytes than the steps of such an operation can carry.
    #[cold]
    #[inline(never)]
    pub(super) fn elsewhere(&self, me: &Member) -> Result<Pairwise<'a>, PollError> {
        super::pairwise::scatterv(me, None, self.receive, self.root)
            .map(|pairwise| pairwise.entered(self.operation, self.base))
            .map_err(|refusal| PollError::Mismatch { peer: self.root, refusal })
    }
}

impl Operation for Posted<'_> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        self.operation = me.begin(Kind::Scatter);
        if let Lengths::Vary(_) = self.lengths {
            self.base = me.take_clock(Span::UNKNOWN.advance, Span::UNKNOWN.bytes);
        }
        self.state = if me.rank() == self.root { State::Publish } else { State::Receive };
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        match (self.state, &self.send, &self.receive) {
            (State::Publish, Some(blocks), receive) => {
                if me.size() > 1
                    && let Err(wait) = self.publish(region, me, blocks)
                {
                    return Ok(Poll::Wait(wait));
                }
                if let Some(receive) = receive {
                    let own = blocks.block(self.root);
                    // SAFETY: both are this process's data, as the constructor was promised; in place they are the same.
                    unsafe { copy_private(region, &own, receive, Part::first(receive.len())) };
                }
            }
            (State::Receive, _, Some(receive)) => match self.receive(region, me, receive) {
                Ok(true) => {}
                Ok(false) => {
                    self.state = State::Elsewhere;
                    return Ok(Poll::Done);
                }
                Err(halt) => return halt.into(),
            },
            _ => return over(self.operation),
        }
        if let Lengths::Vary(_) = self.lengths {
            me.acknowledge(region, self.base + Span::UNKNOWN.advance);
        }
        me.finish(region, self.operation);
        self.state = State::Done;
        Ok(Poll::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::layout::LINE_PAYLOAD;
    use crate::region::{Layout, Params};

    fn member(ranks: u32) -> Member {
        Member::new(Layout::new(Params::new(ranks)).unwrap(), 0).unwrap()
    }

    #[test]
    fn all_pieces_lie_in_the_line() {
        for ranks in 1..40 {
            let (me, readers) = (member(ranks), u64::from(ranks - 1).max(1));
            for bytes in 0..=LINE_PAYLOAD + 1 {
                for (lengths, header) in [(Lengths::equal(&me, bytes), 0), (Lengths::vary(&me, bytes), 8)] {
                    let whole = bytes.next_multiple_of(8) + header;
                    // A piece with a length has room for a word beside it, or lengths don't stand there.
                    let fits = whole.max(2 * header) * readers <= LINE_PAYLOAD;
                    assert_eq!(lengths.is_some(), fits, "{bytes} bytes of {ranks}");
                    let Some(lengths) = lengths else { continue };
                    assert!(8 * lengths.stride() >= whole && 8 * lengths.stride() * readers <= LINE_PAYLOAD);
                    assert_eq!(8 * lengths.before(), header);
                }
            }
        }
    }
}
