//! Scatter over a region (MPI 4.1, 7.6).

pub mod pairwise;
pub mod posted;

use crate::Rank;
use crate::comm::Member;
use crate::data::blocks::{Blocks, longest};
use crate::data::datatype::Data;
use crate::error::{PollError, Refusal};
use crate::machine::Operation;
use crate::machine::poll::Poll;
use crate::region::Region;
use crate::shm::engine::pairwise::Pairwise;
use posted::{Lengths, Posted};

/// One process's part of a scatter or a scatterv.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "the kernel has no heap for the longer one")]
pub enum Scatter<'a> {
    /// On the root's posted line.
    Posted(Posted<'a>),
    /// Through queues; or in a line of a root that takes this one.
    Pairwise(Pairwise<'a>),
}

/// A scatter of equal blocks from `root`. `send` is significant only at the root. `receive` is this rank's block;
/// `None` at a root whose block stays in place.
///
/// # Errors
/// `root` is not a rank of the communicator; the root's `send` does not have one block per rank; the root's `receive`
/// and its block in `send` differ in length; an argument that this rank needs is missing.
#[inline(always)]
pub fn scatter<'a>(
    me: &Member,
    send: Option<Blocks<'a>>,
    receive: Option<Data<'a>>,
    root: Rank,
) -> Result<Scatter<'a>, Refusal> {
    match Lengths::equal(me, longest(receive.as_ref(), send.as_ref())) {
        Some(lengths) => {
            pairwise::check(me, send.as_ref(), receive.as_ref(), root)?;
            Ok(Scatter::Posted(Posted::new(lengths, send, receive, root)))
        }
        None => pairwise::scatter(me, send, receive, root).map(Scatter::Pairwise),
    }
}

/// A scatter of blocks of any lengths; only the root knows all of them.
///
/// # Errors
/// As [`scatter`].
#[inline(always)]
pub fn scatterv<'a>(
    me: &Member,
    send: Option<Blocks<'a>>,
    receive: Option<Data<'a>>,
    root: Rank,
) -> Result<Scatter<'a>, Refusal> {
    match lengths(me, send.as_ref(), receive.as_ref(), root) {
        Some(lengths) => {
            pairwise::check(me, send.as_ref(), receive.as_ref(), root)?;
            Ok(Scatter::Posted(Posted::new(lengths, send, receive, root)))
        }
        None => pairwise::scatterv(me, send, receive, root).map(Scatter::Pairwise),
    }
}

/// Do equal blocks of `bytes` fit the root's line? Then [`scatter`] takes that; else what it makes is
/// [`pairwise`](pairwise::scatter)'s, only longer.
#[inline(always)]
pub fn is_posted(me: &Member, bytes: u64) -> bool {
    Lengths::equal(me, bytes).is_some()
}

/// The same of a [`scatterv`], as far as this process knows.
#[inline(always)]
pub fn may_be_posted(me: &Member, send: Option<&Blocks<'_>>, receive: Option<&Data<'_>>, root: Rank) -> bool {
    lengths(me, send, receive, root).is_some()
}

/// How the blocks of a scatterv lie in the root's line, if they do as far as this process knows.
#[inline(always)]
fn lengths(me: &Member, send: Option<&Blocks<'_>>, receive: Option<&Data<'_>>, root: Rank) -> Option<Lengths> {
    let most = match (send, receive) {
        (Some(blocks), _) if me.rank() == root => blocks.most(),
        (_, receive) => receive.map_or(0, Data::len),
    };
    Lengths::vary(me, most)
}

impl Operation for Scatter<'_> {
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
