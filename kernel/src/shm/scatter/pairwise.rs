//! Scatter and scatterv through queues (ours): the root posts a block for each rank, and each rank takes its own.
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

/// A [scatter](super::scatter) of blocks of any one length.
///
/// # Errors
/// As [`super::scatter`].
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

/// A [scatterv](super::scatterv).
///
/// # Errors
/// As [`super::scatter`]; a block has more bytes than the steps of such an operation can carry.
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
pub(super) fn check(
    me: &Member,
    send: Option<&Blocks<'_>>,
    receive: Option<&Data<'_>>,
    root: Rank,
) -> Result<u64, Refusal> {
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
