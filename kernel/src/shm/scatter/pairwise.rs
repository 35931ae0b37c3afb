//! Scatter and scatterv (ours): the root posts a block for each rank, and each rank takes its own.
//!
//! | rank | what it does |
//! |---|---|
//! | root | posts short blocks side by side in one fragment; of long ones, a fragment for each rank in turn |
//! | others | wait for the root's fragment, copy their piece out |
//!
//! The root posts long blocks in its own queue until that is full, and then in the readers' queues.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::{Blocks, absent};
use crate::data::datatype::Data;
use crate::error::{Argument, Bound, Refusal};
use crate::shm::engine::pairwise::{Pairwise, Receive};

/// A scatter of equal blocks from `root`. `send` is significant only at the root. `receive` is this rank's block;
/// `None` at a root whose block stays in place.
///
/// # Errors
/// `root` is not a rank of the communicator; the root's `send` does not have one block per rank; the root's `receive`
/// and its block in `send` differ in length; an argument that this rank needs is missing.
#[inline(always)]
pub fn scatter<'a>(
    me: &Member,
    mut send: Option<Blocks<'a>>,
    receive: Option<Data<'a>>,
    root: Rank,
) -> Result<Pairwise<'a>, Refusal> {
    let bytes = check(me, send.as_ref(), receive.as_ref(), root)?;
    if me.rank() != root {
        send = None;
    }
    Pairwise::equal(me, Kind::Scatter, bytes, send, Receive::From(root, receive))
}

/// A scatter of blocks of any lengths; only the root knows all of them.
///
/// # Errors
/// As [`scatter`].
#[inline(always)]
pub fn scatterv<'a>(
    me: &Member,
    mut send: Option<Blocks<'a>>,
    receive: Option<Data<'a>>,
    root: Rank,
) -> Result<Pairwise<'a>, Refusal> {
    let bytes = check(me, send.as_ref(), receive.as_ref(), root)?;
    if me.rank() != root {
        send = None;
    }
    Pairwise::vary(me, Kind::Scatter, bytes, send, Receive::From(root, receive))
}

/// Checks the arguments. Returns the bytes of this rank's block.
#[inline(always)]
fn check(me: &Member, send: Option<&Blocks<'_>>, receive: Option<&Data<'_>>, root: Rank) -> Result<u64, Refusal> {
    me.check_root(root)?;
    if me.rank() != root {
        return receive.map(Data::len).ok_or(absent());
    }
    let blocks = send.ok_or(absent())?;
    Refusal::check(Argument::Ranks, blocks.ranks().into(), Bound::Equals(me.size().into()))?;
    let bytes = blocks.bytes(root);
    if let Some(data) = receive {
        Refusal::check(Argument::Bytes, data.len(), Bound::Equals(bytes))?;
    }
    Ok(bytes)
}
