//! Allgather and allgatherv by exchange (ours): a [gather](crate::shm::gather::exchange) to all ranks.
//!
//! Each rank posts its block once and takes all others, from the next rank on. It takes three words per
//! process, where paper P2's allgatherv takes one per pair of processes and slot.

use crate::collective::Kind;
use crate::comm::Member;
use crate::data::blocks::Blocks;
use crate::data::datatype::Data;
use crate::error::Refusal;
use crate::shm::engine::cut::{Cut, MUTUAL, Medium};
use crate::shm::engine::exchange::Exchange;
use crate::shm::engine::loans::Borrowers;
use crate::shm::gather::exchange::{Gather, check};

/// Block r of the `receive` of all ranks becomes rank r's `send`; `None`: in place, the block is there already. All
/// ranks know all lengths, equal or not.
///
/// # Errors
/// `receive` does not have one block per rank; blocks overlap; this rank's block and `send` differ in length.
#[inline(always)]
pub fn allgather<'a>(
    me: &Member,
    send: Option<Data<'a>>,
    receive: Blocks<'a>,
) -> Result<Exchange<Gather<'a>>, Refusal> {
    check(me, send.as_ref(), Some(&receive), true)?;
    let most = receive.most();
    let medium = Medium::of(most);
    let cut = Cut::new(most, medium.room(me), 1, MUTUAL);
    let plan = Gather::plan(Kind::Allgather, me, send, Some(receive), me.size() > 1, Borrowers::Others, cut);
    Ok(Exchange::of(medium, cut.span(most), plan))
}
