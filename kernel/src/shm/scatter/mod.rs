//! Scatter over a region (MPI 4.1, 7.6).

pub mod pairwise;
pub mod posted;

use crate::Rank;
use crate::comm::Member;
use crate::data::blocks::{Blocks, longest};
use crate::data::datatype::Data;
use crate::error::Refusal;
use crate::shm::engine::line_blocks::{Lengths, LinesFirst};
use posted::Posted;

/// One process's part of a scatter or a scatterv.
pub type Scatter<'a> = LinesFirst<'a, Posted<'a>>;

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
        Some(lengths) => on_lines(me, send, receive, root, lengths),
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
        Some(lengths) => on_lines(me, send, receive, root, lengths),
        None => pairwise::scatterv(me, send, receive, root).map(Scatter::Pairwise),
    }
}

/// Either of both, of blocks that lie in the root's line, as far as this process knows.
///
/// # Errors
/// As [`scatter`].
#[inline(always)]
pub(crate) fn on_lines<'a>(
    me: &Member,
    send: Option<Blocks<'a>>,
    receive: Option<Data<'a>>,
    root: Rank,
    lengths: Lengths,
) -> Result<Scatter<'a>, Refusal> {
    pairwise::check(me, send.as_ref(), receive.as_ref(), root)?;
    Ok(Scatter::Posted(Posted::new(lengths, send, receive, root)))
}

/// How the blocks of a scatterv lie in the root's line, if they do as far as this process knows.
#[inline(always)]
pub(crate) fn lengths(
    me: &Member,
    send: Option<&Blocks<'_>>,
    receive: Option<&Data<'_>>,
    root: Rank,
) -> Option<Lengths> {
    let most = match (send, receive) {
        (Some(blocks), _) if me.rank() == root => blocks.most(),
        (_, receive) => receive.map_or(0, Data::len),
    };
    Lengths::vary(me, most)
}
