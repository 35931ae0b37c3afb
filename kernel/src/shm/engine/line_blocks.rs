//! Blocks for all other ranks side by side in one line of their writer (ours): the root of a scatter, or each rank of an alltoall.
//!
//! | word of the payload | value |
//! |---|---|
//! | k · stride … | the piece of the k-th rank but the writer: the block; where only two ranks know its length, that, and then the block |

use super::line::{self, Body, Heading};
use super::pairs::IN_LINE;
use super::pairwise::Pairwise;
use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::machine::Operation;
use crate::machine::poll::{Halt, Poll, WaitSet};
use crate::region::Region;

/// Which ranks know how long the blocks are, and so how they lie in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lengths {
    /// All ranks: each block has so many bytes.
    Equal(u64),
    /// The writer and a block's reader. A piece has so many words, of which the first is the block's length.
    Vary(u64),
}

impl Lengths {
    /// Equal blocks of `bytes`, if a line has room for one for each rank but its writer.
    #[inline(always)]
    pub(crate) fn equal(me: &Member, bytes: u64) -> Option<Self> {
        (bytes <= me.layout().line_share() / 8 * 8).then_some(Self::Equal(bytes))
    }

    /// Blocks of up to `most` bytes, as far as this process knows, if a line has room for them and their lengths.
    #[inline(always)]
    pub(crate) fn vary(me: &Member, most: u64) -> Option<Self> {
        let words = me.layout().line_share() / 8;
        (words > 1 && most <= 8 * (words - 1)).then_some(Self::Vary(words))
    }

    /// Do only the writer and a block's reader know its length?
    #[inline(always)]
    pub(crate) const fn do_vary(self) -> bool {
        matches!(self, Self::Vary(_))
    }

    /// The words that lie before a block in its piece.
    #[inline(always)]
    const fn before(self) -> u64 {
        self.do_vary() as u64
    }

    /// The words from one piece to the next.
    #[inline(always)]
    const fn stride(self) -> u64 {
        match self {
            Self::Equal(bytes) => bytes.div_ceil(8),
            Self::Vary(words) => words,
        }
    }

    /// What the writer's line announces.
    #[inline(always)]
    const fn announced(self) -> u64 {
        match self {
            Self::Equal(bytes) => bytes,
            Self::Vary(_) => IN_LINE,
        }
    }

    /// Posts this process's line of `operation`, with its blocks for all others.
    ///
    /// # Errors
    /// The line is not free yet: what to wait for.
    #[inline(always)]
    pub(crate) fn post<R: Region>(
        self,
        region: &R,
        me: &mut Member,
        operation: u64,
        kind: Kind,
        blocks: &Blocks<'_>,
    ) -> Result<(), WaitSet> {
        me.line_free(region, operation)?;
        me.uses_slot(0);
        let (mut body, mut at, mut end) = (Body::new(), 0, 0);
        for rank in (0..me.size()).filter(|&rank| rank != me.rank()) {
            body.clear(end, at);
            let bytes = blocks.bytes(rank);
            if self.do_vary() {
                body.put(at, bytes);
            }
            let begin = at + self.before();
            match blocks.dense(rank) {
                // SAFETY: the block's memory, which the caller may read.
                Some(memory) => unsafe { body.gather_from(begin, memory) },
                None => body.gather_at(begin, &blocks.block(rank)),
            }
            (at, end) = (at + self.stride(), begin + bytes.div_ceil(8));
        }
        line::publish(region, me, operation, Heading { kind, bytes: self.announced() }, &mut body, 8 * end);
        Ok(())
    }

    /// Takes this process's block from the line of `writer`. Returns whether it was there: else the line, which has come, says that
    /// the blocks lie elsewhere.
    ///
    /// # Errors
    /// The line has not come; it is of another collective, or the block has another length.
    #[inline(always)]
    pub(crate) fn take<R: Region>(
        self,
        region: &R,
        me: &Member,
        operation: u64,
        kind: Kind,
        writer: Rank,
        receive: &Data<'_>,
    ) -> Result<bool, Halt> {
        let announced = line::receive_head(region, me, writer, operation, kind)?;
        match self {
            Self::Equal(bytes) if announced != bytes => return Err(differs(writer, bytes, announced)),
            Self::Vary(_) if announced != IN_LINE => return Ok(false),
            _ => {}
        }
        let (before, mut body) = (self.before(), Body::new());
        let index = me.rank() - u32::from(me.rank() > writer);
        let (at, bytes) = (u64::from(index) * self.stride(), 8 * before + receive.len());
        line::read(region, me, (writer, operation), 8 * at, bytes, &mut body);
        if before > 0 {
            let told = body.words(8).first().copied().unwrap_or_default();
            if told != receive.len() {
                return Err(differs(writer, receive.len(), told));
            }
        }
        body.scatter_at(before, receive);
        Ok(true)
    }
}

/// A machine on lines that finds out, on its way, that blocks are elsewhere.
pub trait OnLines<'a>: Operation {
    /// Has it found that out? Its poll has returned [`Poll::Done`] then.
    fn is_elsewhere(&self) -> bool;

    /// The machine that goes on, in the same operation.
    ///
    /// # Errors
    /// A block has more bytes than the steps of such an operation can carry.
    fn elsewhere(&self, me: &Member) -> Result<Pairwise<'a>, PollError>;
}

/// One process's part of an operation whose blocks lie in lines, as far as it knows, or do not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "the kernel has no heap for the longer one")]
pub enum LinesFirst<'a, P> {
    /// On lines.
    Posted(P),
    /// Through queues; or, of ranks whose blocks are in their lines, from there.
    Pairwise(Pairwise<'a>),
}

impl<'a, P: OnLines<'a>> Operation for LinesFirst<'a, P> {
    #[inline(always)]
    fn start(&mut self, me: &mut Member) {
        match self {
            Self::Posted(posted) => posted.start(me),
            Self::Pairwise(pairwise) => pairwise.start(me),
        }
    }

    #[inline(always)]
    fn proceed<R: Region>(&mut self, region: &R, me: &mut Member) -> Result<Poll, PollError> {
        match self {
            Self::Posted(posted) => {
                let poll = posted.proceed(region, me);
                if !posted.is_elsewhere() {
                    return poll;
                }
                let mut pairwise = posted.elsewhere(me)?;
                let poll = pairwise.proceed(region, me);
                *self = Self::Pairwise(pairwise);
                poll
            }
            Self::Pairwise(pairwise) => pairwise.proceed(region, me),
        }
    }
}

#[cold]
fn differs(peer: Rank, expected: u64, found: u64) -> Halt {
    let refusal = Refusal::new(Argument::Bytes, expected, Bound::Equals(found));
    PollError::Mismatch { peer, refusal }.into()
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
