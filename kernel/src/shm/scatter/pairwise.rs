//! Scatter and scatterv (ours): the root posts a block for each process, each takes its own.
//!
//! | who | per step |
//! |---|---|
//! | root | posts every block side by side in one fragment; longer ones in turns, a piece for one process, in its own queue and then in theirs |
//! | others | wait for the root's fragment, copy their piece out |

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::{Blocks, absent};
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, Refusal};
use crate::shm::engine::pairwise::{Pairwise, Receive};

/// A scatter of equal blocks from `root`: `send` counts at the root alone, `receive` is this process's block, `None` where the
/// root's stays in place.
///
/// # Errors
/// `root` is no rank; the root's blocks are not one per rank, or not of the length of its own.
#[inline(always)]
pub fn scatter<'a>(
    me: &Member,
    send: Option<Blocks<'a>>,
    receive: Option<Data<'a>>,
    root: Rank,
) -> Result<Pairwise<'a>, Refusal> {
    let (bytes, send) = check(me, send, &receive, root)?;
    Pairwise::equal(me, Kind::Scatter, bytes, send, Receive::From(root, receive))
}

/// A scatter of blocks whose lengths only the root knows all of.
///
/// # Errors
/// As [`scatter`].
#[inline(always)]
pub fn scatterv<'a>(
    me: &Member,
    send: Option<Blocks<'a>>,
    receive: Option<Data<'a>>,
    root: Rank,
) -> Result<Pairwise<'a>, Refusal> {
    let (bytes, send) = check(me, send, &receive, root)?;
    Pairwise::vary(me, Kind::Scatter, bytes, send, Receive::From(root, receive))
}

/// Checks what was given: bytes of this process's block, and everyone's at the root.
#[inline(always)]
fn check<'a>(
    me: &Member,
    send: Option<Blocks<'a>>,
    receive: &Option<Data<'a>>,
    root: Rank,
) -> Result<(u64, Option<Blocks<'a>>), Refusal> {
    me.check_root(root)?;
    if me.rank() != root {
        return Ok((receive.as_ref().map(Data::len).ok_or(absent())?, None));
    }
    let blocks = send.as_ref().ok_or(absent())?;
    Refusal::check(Argument::Ranks, blocks.ranks().into(), Bound::Equals(me.size().into()))?;
    let bytes = blocks.bytes(root);
    if let Some(data) = receive {
        Refusal::check(Argument::Bytes, data.len(), Bound::Equals(bytes))?;
    }
    Ok((bytes, send))
}
