//! Alltoall, alltoallv and alltoallw (ours): everyone posts a block for each process, and takes its own from each.
//!
//! In place needs no other memory: the pieces that a step receives are those that it has just posted.

use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::error::{Argument, Bound, Refusal};
use crate::shm::engine::pairwise::{Pairwise, Receive};

/// Block r of `send` goes to block `me` of rank r's `receive`; `None`: in place. All blocks of all processes have one length.
///
/// # Errors
/// Not one block per rank, or blocks of two lengths.
#[inline(always)]
pub fn alltoall<'a>(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Pairwise<'a>, Refusal> {
    let send = check(me, send, receive)?;
    let bytes = receive.most();
    send.check_all(bytes)?;
    receive.check_all(bytes)?;
    Pairwise::equal(me, Kind::Alltoall, bytes, Some(send), Receive::Each(receive))
}

/// The same for blocks whose lengths only sender and receiver know.
///
/// # Errors
/// Not one block per rank, blocks of `receive` that overlap, or this process's own have two lengths.
#[inline(always)]
pub fn alltoallv<'a>(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Pairwise<'a>, Refusal> {
    receive.apart()?;
    let send = check(me, send, receive)?;
    let own = (send.bytes(me.rank()), receive.bytes(me.rank()));
    Refusal::check(Argument::Bytes, own.0, Bound::Equals(own.1))?;
    Pairwise::vary(me, Kind::Alltoall, receive.most(), Some(send), Receive::Each(receive))
}

#[inline(always)]
fn check<'a>(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Blocks<'a>, Refusal> {
    let send = send.unwrap_or(receive);
    Refusal::check(Argument::Ranks, send.ranks().into(), Bound::Equals(me.size().into()))?;
    Refusal::check(Argument::Ranks, receive.ranks().into(), Bound::Equals(me.size().into()))?;
    Ok(send)
}
