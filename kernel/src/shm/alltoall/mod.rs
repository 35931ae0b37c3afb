//! Alltoall over a region (MPI 4.1, 7.8).

pub mod groups;
pub mod pairwise;
pub mod posted;

use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::error::Refusal;
use crate::shm::engine::line_blocks::{Lengths, LinesFirst};
use crate::shm::engine::pieces::{Pieces, Readers};
use posted::Posted;

/// One process's part of an alltoall, alltoallv or alltoallw.
pub type Alltoall<'a> = LinesFirst<'a, Posted<'a>>;

/// How the blocks of an alltoallv lie in lines, if they do as far as this process knows; the longest that it receives has `receive`
/// bytes. As [pairwise], whose ranks read these lines, it asks for room in a slot, too.
#[inline(always)]
pub(crate) fn lengths(me: &Member, send: Option<&Blocks<'_>>, receive: u64) -> Option<Lengths> {
    let most = receive.max(send.map_or(0, Blocks::most));
    let slot = Pieces::unknown(me, Readers::Others).ok()?;
    Lengths::vary(me, most).filter(|_| most <= slot.cut.fragment)
}

/// [`pairwise::alltoall`], on lines where the blocks fit.
///
/// # Errors
/// As that.
#[inline(always)]
pub fn alltoall<'a>(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Alltoall<'a>, Refusal> {
    match Lengths::equal(me, receive.most()) {
        Some(lengths) => on_lines(me, send, receive, lengths),
        None => pairwise::alltoall(me, send, receive).map(Alltoall::Pairwise),
    }
}

/// [`pairwise::alltoallv`], on lines where the blocks fit, as far as this process knows.
///
/// # Errors
/// As that.
#[inline(always)]
pub fn alltoallv<'a>(me: &Member, send: Option<Blocks<'a>>, receive: Blocks<'a>) -> Result<Alltoall<'a>, Refusal> {
    match lengths(me, send.as_ref(), receive.most()) {
        Some(lengths) => on_lines(me, send, receive, lengths),
        None => pairwise::alltoallv(me, send, receive).map(Alltoall::Pairwise),
    }
}

/// Either of both, of blocks that lie in lines, as far as this process knows.
///
/// # Errors
/// As that.
#[inline(always)]
pub(crate) fn on_lines<'a>(
    me: &Member,
    send: Option<Blocks<'a>>,
    receive: Blocks<'a>,
    lengths: Lengths,
) -> Result<Alltoall<'a>, Refusal> {
    let send = match lengths {
        Lengths::Equal(bytes) => pairwise::check_equal(me, send, receive, bytes)?,
        Lengths::Vary(_) => pairwise::check_own(me, send, receive)?,
    };
    Ok(Alltoall::Posted(Posted::new(lengths, send, receive)))
}
