//! Posted lines: sequence, head and payload in one line of its writer.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `line(r, n)` | r | who operation n says | n, stored last; published data: head and payload |
//! | `done(r)` | r | who reuses a line | the last operation that r finished |
//!
//! The line of operation n is that of operation n − K: it may be written when every rank's `done`
//! is at least n − K ([`Member::line_free`]). Two alternating lines without acknowledgement are
//! wrong as soon as collectives mix (DESIGN §5). Readers require the sequence to be *equal*.

use crate::Rank;
use crate::buffer::Buf;
use crate::comm::Member;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::op::{Operand, WORDS};
use crate::region::{Flag, Region};
use crate::step::{Awaits, Until};
use core::cmp::Ordering::{Equal, Greater, Less};

/// Which collective posted the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Bcast = 1,
    Allreduce = 2,
}

const KIND: u32 = 56;

/// Head (kind and message bytes) and payload, as they lie in the line behind its sequence word.
#[repr(C)]
struct Body {
    head: u64,
    payload: [u64; WORDS],
}

/// Bytes of a body with a payload of `len` bytes, in whole words.
#[inline]
const fn body_bytes(len: u64) -> u64 {
    8 + len.next_multiple_of(8)
}

/// Posts this process's line of `operation`, which must be [free](Member::line_free): `bytes` is the
/// message's length, `inline` of them travel in the line.
#[inline]
pub(crate) fn post<R: Region>(
    region: &R,
    me: &Member,
    operation: u64,
    kind: Kind,
    bytes: u64,
    payload: &Operand,
    inline: u64,
) {
    let mut body = Body { head: (kind as u64) << KIND | bytes, payload: payload.0 };
    let len = body_bytes(inline);
    let at = me.layout().line_body(me.rank(), operation, len);
    let src = Buf::new((&raw mut body).cast(), len as usize);
    // SAFETY: R10, the line is free: every reader's `done` has passed its last use. `body` is ours.
    unsafe { region.write(at, src) };
    // publishes: head and payload, read after `hear`
    region.publish(me.layout().line(me.rank(), operation), operation);
}

/// Listens for `peer`'s line of `operation`; answers its payload (`inline` bytes of it).
///
/// Errors: a line that is ahead (overrun), of another collective, or for a message of other length.
#[inline]
pub(crate) fn hear<R: Region>(
    region: &R,
    me: &Member,
    peer: Rank,
    operation: u64,
    kind: Kind,
    bytes: u64,
    inline: u64,
) -> Result<Result<Operand, Awaits>, PollError> {
    let line = me.layout().line(peer, operation);
    // pairs with: post
    let sequence = region.flag(line).load_acquire();
    match sequence.against(operation) {
        Less => return Ok(Err(Awaits::flag(line, Until::AtLeast(operation), peer, operation))),
        Equal => {}
        Greater => return Err(PollError::Overrun { peer, expected: operation, found: sequence.unchecked() }),
    }
    let mut body = Body { head: 0, payload: [0; WORDS] };
    let len = body_bytes(inline);
    let dst = Buf::new((&raw mut body).cast(), len as usize);
    // SAFETY: `peer` published the line and reuses it only after our `done`. `body` is ours.
    unsafe { region.read(me.layout().line_body(peer, operation, len), dst) };
    let head = (kind as u64) << KIND | bytes;
    if body.head == head { Ok(Ok(Operand(body.payload))) } else { Err(mismatch(peer, kind, bytes, body.head)) }
}

#[cold]
fn mismatch(peer: Rank, kind: Kind, bytes: u64, head: u64) -> PollError {
    let (theirs, their_bytes) = (head >> KIND, head & ((1 << KIND) - 1));
    let refusal = if theirs == kind as u64 {
        Refusal::new(Argument::Bytes, bytes, Bound::Equals(their_bytes))
    } else {
        Refusal::new(Argument::Collective, kind as u64, Bound::Equals(theirs))
    };
    PollError::Mismatch { peer, refusal }
}
