//! Laps (ours): how a writer passes through its queue before it comes back to the first slot.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `line(r, n)`: the payload's fifth word | r | ranks that take from r | r's [`Lap`] in operation n |
//!
//! Which lap is the fastest depends on where the lines of a slot lie when it is written again, and so on the machine and on
//! the program: each writer's [region](Region::lap) says which one it takes, for each operation anew. The word stands behind
//! those of the [loans], in each line that has no fragment. A lap has a power of two of slots, whatever
//! the word says. When a writer changes its lap, the fragments of all operations before must have been taken from the slots
//! that it writes: it can't tell any more which of them held the last ones.

use super::line::{self, Body, Heading};
use super::loans::{self, WORDS};
use crate::Rank;
use crate::comm::Member;
use crate::data::buffer::Buf;
use crate::region::{Lap, Region};

/// Posts this process's line of `operation` without a fragment: with the words of its loans, and its lap.
#[inline]
pub(crate) fn post<R: Region>(region: &R, me: &Member, operation: u64, heading: Heading, loans: [u64; WORDS]) {
    let [way, at, results_way, results_at] = loans;
    let words = [way, at, results_way, results_at, me.lap().word()];
    let mut body = Body::new();
    body.assign(&words);
    line::publish(region, me, operation, heading, &mut body, 8 * words.len() as u64);
}

/// The lap of `writer` in `operation`. Its line, which was received and has no fragment, says it, if `writer` is not this
/// process.
#[inline]
pub(crate) fn of<R: Region>(region: &R, me: &Member, operation: u64, writer: Rank) -> Lap {
    if writer == me.rank() {
        return me.lap();
    }
    let mut word = [0; 8];
    let at = me.layout().line_body(writer, operation, 8 * (2 + WORDS as u64)).part(8 * (1 + WORDS as u64), 8);
    // SAFETY: S3, `writer` published the line and reuses it only after our `done`. The array is ours.
    unsafe { region.read(at, Buf::of_mut(&mut word)) };
    me.layout().lap(Lap::of_word(u64::from_ne_bytes(word)))
}

/// [`of`] another rank's message that is whole in its slot; `None`: it is lent. By the same reads as in the long loop: a rank that has
/// waited for the line goes on there, and the explorer takes a rank's reads to be the same in both.
#[inline(always)]
pub(crate) fn unlent<R: Region>(region: &R, me: &Member, operation: u64, writer: Rank) -> Option<Lap> {
    let [way, ..] = loans::words(region, me, operation, writer);
    (way == 0).then(|| of(region, me, operation, writer))
}
