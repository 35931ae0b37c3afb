//! The lease's state word: live, or poisoned by a rank at an operation. The first writer wins.
//!
//! ```text
//! bits 63..62  kind: 0 live, 1 died, 2 refused or fault (the rank's record says which), 3 late
//! bits 61..50  0: a poisoned communicator's memory is made zero before another one starts there
//! bits 49..30  rank; a rank that is not below the number of ranks is one of another node ([`crate::hier`])
//! bits 29..0   operation modulo 2^30
//! ```
//! The argument of a refusal lies in the record of the rank that wrote the poison: four words (the argument's code,
//! value, kind of bound, bound), written before the state word is claimed.

use super::{Counter, Flag, Layout, Region};
use crate::Rank;
use crate::error::{Argument, Bound, Cause, Condition, Error, Poison, Refusal};

const KIND: u32 = 62;
const RANK: u32 = 30;
const OPERATION: u64 = (1 << RANK) - 1;
const RANKS: u64 = (1 << 20) - 1;

const DIED: u64 = 1;
const REFUSED: u64 = 2;
const LATE: u64 = 3;

/// In place of an argument's code: a message failed, and the value is the layer's error number.
const MESSAGES: u64 = u64::MAX;

fn encode_bound(bound: Bound) -> (u64, u64) {
    match bound {
        Bound::Below(b) => (1, b),
        Bound::AtMost(b) => (2, b),
        Bound::AtLeast(b) => (3, b),
        Bound::Equals(b) => (4, b),
        Bound::MultipleOf(b) => (5, b),
        Bound::Divides(b) => (6, b),
        Bound::Is(condition) => (7, condition as u64),
        Bound::Apart(b) => (8, b),
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
        7 => Bound::Is(*Condition::ALL.get(usize::try_from(b).ok()?)?),
        8 => Bound::Apart(b),
        _ => return None,
    })
}

/// A poison as words: the state word, then the record of a refusal. Ranks of other nodes get these words in messages.
pub fn words(poison: Poison) -> [u64; 5] {
    let (kind, record) = match poison.cause {
        Cause::Died => (DIED, [0; 4]),
        Cause::Late => (LATE, [0; 4]),
        Cause::Refused(refusal) => {
            let (kind, bound) = encode_bound(refusal.bound);
            (REFUSED, [refusal.argument.code() + 1, refusal.value, kind, bound])
        }
        Cause::Fault => (REFUSED, [0; 4]),
        Cause::Messages(code) => (REFUSED, [MESSAGES, u64::from(code.cast_unsigned()), 0, 0]),
    };
    let rank = u64::from(poison.rank).min(RANKS);
    let [argument, value, bound, of] = record;
    [kind << KIND | rank << RANK | (poison.operation & OPERATION), argument, value, bound, of]
}

/// The poison of these [`words`]. Words that no poison has read as a fault.
pub fn of_words([word, argument, value, kind, bound]: [u64; 5]) -> Poison {
    let refusal = || {
        if argument == MESSAGES {
            return Some(Cause::Messages((value as u32).cast_signed()));
        }
        let argument = argument.checked_sub(1).and_then(Argument::from_code)?;
        Some(Cause::Refused(Refusal::new(argument, value, decode_bound(kind, bound)?)))
    };
    let cause = match word >> KIND {
        DIED => Cause::Died,
        LATE => Cause::Late,
        REFUSED => refusal().unwrap_or(Cause::Fault),
        _ => Cause::Fault,
    };
    Poison { rank: (word >> RANK & RANKS) as Rank, operation: word & OPERATION, cause }
}

/// Poisons the lease, unless it is poisoned already. Returns the poison that counts, the first one.
///
/// `writer` is the calling rank. A refusal or a fault must be its own or that of a rank of another node; it may report
/// any rank's death.
pub fn poison<R: Region>(region: &R, layout: &Layout, writer: Rank, poison: Poison) -> Poison {
    let [word, record @ ..] = words(poison);
    if let Cause::Refused(_) | Cause::Messages(_) = poison.cause {
        for (at, value) in (0..).zip(record) {
            region.flag(layout.record(writer, at)).store_release(value);
        }
    }
    let before = region.counter(layout.state()).claim(0, word);
    if before.is(0) { poison } else { look(region, layout).unwrap_or(poison) }
}

/// The lease's poison, if it has any. Every operation makes this one load.
#[inline]
pub fn look<R: Region>(region: &R, layout: &Layout) -> Option<Poison> {
    let word = region.counter(layout.state()).load_acquire();
    if word.is(0) { None } else { Some(decode(region, layout, word.unchecked())) }
}

/// The poison of the lease, if all its ranks may go on together on another one. All ranks get the same result, whenever
/// they call, since only the first poison counts: so they need not agree on it.
///
/// # Errors
/// The lease is not poisoned; or a rank died: the other ranks must go on without it.
pub fn renewable<R: Region>(region: &R, layout: &Layout) -> Result<Poison, Error> {
    match look(region, layout) {
        None => Err(Error::Refused(Refusal::not(Argument::Failures, Condition::Failed))),
        Some(poison) if poison.is_renewable() => Ok(poison),
        Some(poison) => Err(Error::Poisoned(poison)),
    }
}

#[cold]
fn decode<R: Region>(region: &R, layout: &Layout, word: u64) -> Poison {
    // Each field has only its own bits; an unknown kind reads as a fault.
    let rank = of_words([word, 0, 0, 0, 0]).rank;
    let record = |rank, word| region.flag(layout.record(rank, word)).load_acquire().unchecked();
    let inside = (rank < layout.ranks()).then_some(rank);
    match inside.or_else(|| (0..layout.ranks()).find(|&teller| record(teller, 0) > 0)) {
        Some(teller) => of_words([word, record(teller, 0), record(teller, 1), record(teller, 2), record(teller, 3)]),
        None => of_words([word, 0, 0, 0, 0]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Params;
    use crate::region::words::Words;

    const BOUNDS: [fn(u64) -> Bound; 7] =
        [Bound::Below, Bound::AtMost, Bound::AtLeast, Bound::Equals, Bound::MultipleOf, Bound::Divides, Bound::Apart];

    fn poison_of(rank: Rank, cause: Cause) -> Poison {
        Poison { rank, operation: 0x2aaa_aaab, cause }
    }

    fn refused(bound: Bound) -> Cause {
        Cause::Refused(Refusal::new(Argument::Bytes, 77, bound))
    }

    #[test]
    fn what_is_told_in_words_is_read_from_them() {
        let causes = [Cause::Died, Cause::Late, Cause::Fault, Cause::Messages(-5), Cause::Messages(7)];
        let conditions = Condition::ALL.map(|condition| refused(Bound::Is(condition)));
        for cause in causes.into_iter().chain(BOUNDS.map(|bound| refused(bound(99)))).chain(conditions) {
            for rank in [0, 5, (1 << 20) - 1] {
                assert_eq!(of_words(words(poison_of(rank, cause))), poison_of(rank, cause));
            }
        }
        let [word, record @ ..] = words(poison_of(5, Cause::Died));
        assert_eq!((word, record), (1 << 62 | 5 << 30 | 0x2aaa_aaab, [0; 4]));
        assert_eq!(words(poison_of(5, Cause::Late))[0] >> 62, 3);
        // A value that does not fit is cut, and changes no other field.
        let long = Poison { operation: 1 << 30 | 9, ..poison_of(1 << 20, Cause::Died) };
        assert_eq!(words(long)[0], 1 << 62 | 0xf_ffff << 30 | 9);
    }

    #[test]
    fn words_that_no_poison_has_read_as_a_fault() {
        let [word, argument, value, kind, bound] = words(poison_of(1, refused(Bound::Below(5))));
        let fault = poison_of(1, Cause::Fault);
        for wrong in [
            [word, 0, value, kind, bound],
            [word, u64::MAX - 1, value, kind, bound],
            [word, argument, value, 0, bound],
            [word, argument, value, 7, Condition::ALL.len() as u64],
            [word, argument, value, 7, u64::MAX],
            [word, argument, value, 9, 0],
            [word & !(3 << 62), argument, value, kind, bound],
        ] {
            assert_eq!(of_words(wrong), fault, "{wrong:?}");
        }
    }

    #[test]
    fn the_first_poison_counts_and_all_read_it_alike() {
        let layout = Layout::new(Params { page: 256, ..Params::new(3) }).unwrap();
        for cause in [Cause::Died, Cause::Late, Cause::Fault, Cause::Messages(7), refused(Bound::Divides(4))] {
            let region = Words::new(&layout);
            assert_eq!(look(&region, &layout), None);
            let first = poison_of(2, cause);
            assert_eq!(poison(&region, &layout, 2, first), first);
            assert_eq!(poison(&region, &layout, 1, poison_of(1, Cause::Late)), first);
            assert_eq!(poison(&region, &layout, 0, poison_of(0, refused(Bound::Equals(1)))), first);
            assert_eq!(look(&region, &layout), Some(first));
            let renewable = renewable(&region, &layout);
            assert_eq!(renewable.is_ok(), first.is_renewable());
            assert!(renewable == Ok(first) || renewable == Err(Error::Poisoned(first)));
        }
        let nothing = Refusal::not(Argument::Failures, Condition::Failed);
        assert_eq!(renewable(&Words::new(&layout), &layout), Err(Error::Refused(nothing)));
    }

    #[test]
    fn a_refusal_of_another_nodes_rank_is_in_the_record_of_the_rank_that_told_it() {
        let layout = Layout::new(Params { page: 256, ..Params::new(3) }).unwrap();
        for outside in [3, 40] {
            let region = Words::new(&layout);
            let told = poison_of(outside, refused(Bound::AtMost(4)));
            assert_eq!(poison(&region, &layout, 1, told), told);
            assert_eq!(look(&region, &layout), Some(told));
        }
    }

    #[test]
    fn fields_are_as_wide_as_the_format_says() {
        assert_eq!([OPERATION.trailing_ones(), OPERATION.count_ones()], [30; 2]);
        assert_eq!([RANKS.trailing_ones(), RANKS.count_ones()], [20; 2]);
    }
}
