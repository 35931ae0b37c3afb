//! Allgather and allgatherv by exchange (ours): a [gather](crate::shm::gather::exchange) to everyone.
//!
//! Everyone posts its block once and takes all others, from the next rank on. Flags: three words per
//! process, where the paper's allgatherv has one per pair.

use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::Refusal;
use crate::shm::engine::exchange::Exchange;
use crate::shm::engine::pieces::{Cut, Medium};
use crate::shm::gather::exchange::{Gather, check};

/// Block r of everyone's `receive` becomes rank r's `send`; `None`: it is there already. All know all lengths,
/// equal or not.
///
/// # Errors
/// Not one block per rank, blocks that overlap, or this process's block has not the length of its `send`.
#[inline(always)]
pub fn allgather<'a>(
    me: &Member,
    send: Option<Data<'a>>,
    receive: Blocks<'a>,
) -> Result<Exchange<Gather<'a>>, Refusal> {
    check(me, send.as_ref(), Some(&receive), true)?;
    let most = receive.most();
    let medium = Medium::of(most);
    let cut = Cut::new(most, medium.room(me), 1);
    let plan = Gather::plan(Kind::Allgather, me, send, Some(receive), me.size() > 1, cut);
    Ok(Exchange::of(medium, cut.steps(most), plan))
}
