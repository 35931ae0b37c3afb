//! Alltoall, alltoallv and alltoallw (ours): each rank posts a block for each other, and takes the blocks for itself.
//!
//! In place it needs no other memory: a step overwrites only the pieces that it has just posted.

use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::error::{Argument, Bound, Refusal};
use crate::shm::engine::pairwise::{Pairwise, Receive};

/// Block r of `send` goes to block `me` of rank r's `receive`; `send` is `None` in place. All blocks of all ranks
/// have the same length.
///
/// # Errors
/// `send` or `receive` does not have one block per rank, or blocks differ in length.
#[inline(always)]
pub fn alltoall<'a>(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Pairwise<'a>, Refusal> {
    let bytes = receive.most();
    let send = check_equal(me, send, receive, bytes)?;
    Pairwise::equal(me, Kind::Alltoall, bytes, Some(send), Receive::Each(receive))
}

/// The same for blocks whose lengths only sender and receiver know.
///
/// # Errors
/// `send` or `receive` does not have one block per rank; blocks of `receive` overlap; this rank's blocks for itself
/// differ in length.
#[inline(always)]
pub fn alltoallv<'a>(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Pairwise<'a>, Refusal> {
    let send = check_own(me, send, receive)?;
    Pairwise::vary(me, Kind::Alltoall, receive.most(), Some(send), Receive::Each(receive))
}

/// Checks the number of blocks. Returns the blocks to send: in place, those of `receive`.
#[inline(always)]
pub(super) fn check<'a>(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Blocks<'a>, Refusal> {
    let send = send.unwrap_or(receive);
    Refusal::check(Argument::Ranks, send.ranks().into(), Bound::Equals(me.size().into()))?;
    Refusal::check(Argument::Ranks, receive.ranks().into(), Bound::Equals(me.size().into()))?;
    Ok(send)
}

/// The same where all blocks must have `bytes` bytes.
#[inline(always)]
pub(super) fn check_equal<'a>(
    me: &Member,
    send: Option<Blocks<'a>>,
    receive: Blocks<'a>,
    bytes: u64,
) -> Result<Blocks<'a>, Refusal> {
    let send = check(me, send, receive)?;
    send.check_all(bytes)?;
    receive.check_all(bytes)?;
    Ok(send)
}

/// The same where this rank knows both lengths of its block for itself, and no other pair.
#[inline(always)]
pub(super) fn check_own<'a>(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Blocks<'a>, Refusal> {
    receive.apart()?;
    let send = check(me, send, receive)?;
    let own = (send.bytes(me.rank()), receive.bytes(me.rank()));
    Refusal::check(Argument::Bytes, own.0, Bound::Equals(own.1))?;
    Ok(send)
}
