//! The lease's state word: live, or poisoned by a rank at an operation. The first writer wins.
//!
//! ```text
//! bits 63..62  kind: 0 live, 1 died, 2 refused or fault (the rank's record says which), 3 late
//! bits 61..50  0: a poisoned communicator's memory is made zero before another one begins there
//! bits 49..30  rank
//! bits 29..0   operation modulo 2^30
//! ```
//! A refusal leaves its argument in the refusing rank's record (code, value, bound kind, bound),
//! written before the state word is claimed.

use super::{Counter, Flag, Layout, Region};
use crate::Rank;
use crate::error::{Argument, Bound, Cause, Error, Poison, Refusal};

const KIND: u32 = 62;
const RANK: u32 = 30;
const OPERATION: u64 = (1 << RANK) - 1;
const RANKS: u64 = (1 << 20) - 1;

const DIED: u64 = 1;
const REFUSED: u64 = 2;
const LATE: u64 = 3;

fn encode_bound(bound: Bound) -> (u64, u64) {
    match bound {
        Bound::Below(b) => (1, b),
        Bound::AtMost(b) => (2, b),
        Bound::AtLeast(b) => (3, b),
        Bound::Equals(b) => (4, b),
        Bound::MultipleOf(b) => (5, b),
        Bound::Divides(b) => (6, b),
    }
}

fn decode_bound(kind: u64, b: u64) -> Option<Bound> {
    Some(match kind {
        1 => Bound::Below(b),
        2 => Bound::AtMost(b),
        3 => Bound::AtLeast(b),
        4 => Bound::Equals(b),
        5 => Bound::MultipleOf(b),
        6 => Bound::Divides(b),
        _ => return None,
    })
}

/// Poisons the lease. A second poison is dropped: the answer is the one that counts.
///
/// `writer` is the caller: a refusal or a fault is always its own; it may report any rank's death.
pub fn poison<R: Region>(region: &R, layout: &Layout, writer: Rank, poison: Poison) -> Poison {
    let kind = match poison.cause {
        Cause::Died => DIED,
        Cause::Late => LATE,
        Cause::Refused(refusal) => {
            let (kind, bound) = encode_bound(refusal.bound);
            for (word, value) in (0..).zip([refusal.argument.code() + 1, refusal.value, kind, bound]) {
                region.flag(layout.record(writer, word)).store_release(value);
            }
            REFUSED
        }
        Cause::Fault => REFUSED,
    };
    let word = kind << KIND | u64::from(poison.rank) << RANK | (poison.operation & OPERATION);
    let before = region.counter(layout.state()).claim(0, word);
    if before.is(0) { poison } else { look(region, layout).unwrap_or(poison) }
}

/// The lease's poison, if it has any. One load on the way of every operation.
#[inline]
pub fn look<R: Region>(region: &R, layout: &Layout) -> Option<Poison> {
    let word = region.counter(layout.state()).load_acquire();
    if word.is(0) { None } else { Some(decode(region, layout, word.unchecked())) }
}

/// What ended the lease, if all its ranks may go on together on another one. All are told alike, whenever they ask: the
/// first poison is the only one. So no agreement is needed beside it.
///
/// # Errors
/// Nothing did; or a rank died: the others go on without it.
pub fn renewable<R: Region>(region: &R, layout: &Layout) -> Result<Poison, Error> {
    match look(region, layout) {
        None => Err(Error::Refused(Refusal::new(Argument::Failures, 0, Bound::AtLeast(1)))),
        Some(poison) if poison.is_renewable() => Ok(poison),
        Some(poison) => Err(Error::Poisoned(poison)),
    }
}

#[cold]
fn decode<R: Region>(region: &R, layout: &Layout, word: u64) -> Poison {
    // Each field is cut to its bound; an unknown kind reads as a fault.
    let rank = (word >> RANK & RANKS).min(u64::from(layout.ranks()) - 1) as Rank;
    let record = |word| region.flag(layout.record(rank, word)).load_acquire().unchecked();
    let cause = match word >> KIND {
        DIED => Cause::Died,
        LATE => Cause::Late,
        REFUSED => {
            let argument = record(0).checked_sub(1).and_then(Argument::from_code);
            let bound = decode_bound(record(2), record(3));
            match (argument, bound) {
                (Some(argument), Some(bound)) => Cause::Refused(Refusal::new(argument, record(1), bound)),
                _ => Cause::Fault,
            }
        }
        _ => Cause::Fault,
    };
    Poison { rank, operation: word & OPERATION, cause }
}
