//! Posted lines: sequence, head and payload in one line of its writer.
//!
//! | word | writer | readers | value |
//! |---|---|---|---|
//! | `line(r, n)` | r | ranks that receive from r in operation n | n, stored last; published data: head and payload |
//! | `done(r)` | r | ranks that reuse a line | the last operation that r finished |
//!
//! Each rank has K lines. Operation n uses the same one as operation n − K: it may be written when every rank's `done`
//! is at least n − K ([`Member::line_free`]). Two alternating lines without acknowledgement would be
//! wrong as soon as collectives mix (`verify/tests/explore/main.rs`). Readers require the sequence to be *equal* to n.
//!
//! The [head](crate::comm::history) says which collective the line is of, the message's length, and which collectives
//! came before.
//!
//! Head and payload go through a private [`Body`], word by word: a load in a wide register would stall
//! on the narrow stores just before it.

use crate::Rank;
use crate::collective::Kind;
use crate::comm::divergence::agree;
use crate::comm::heads::read_head;
use crate::comm::history::{Digest, length};
use crate::comm::member::Member;
use crate::data::buffer::Buf;
use crate::data::datatype::Data;
use crate::error::PollError;
use crate::machine::poll::{Halt, Until, WaitSet};
use crate::region::layout::{LINE_PAYLOAD, LINE_ROOM};
use crate::region::{Flag, FlagId, Layout, Region};
use core::cmp::Ordering::{Equal, Greater, Less};
use core::mem::MaybeUninit;

/// Words of a body: the head, then the payload.
const WORDS: usize = LINE_ROOM as usize / 8;

/// What a line's head says beside the [`Digest`]: which collective the line is of, and the message's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Heading {
    pub(crate) kind: Kind,
    /// Bytes of the message.
    pub(crate) bytes: u64,
}

/// Head and payload, as they lie in the line after its sequence word.
/// Only the words that are used are initialised. It is filled in place and never moved.
pub(crate) struct Body([MaybeUninit<u64>; WORDS]);

impl Body {
    /// A body with no word initialised.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self([MaybeUninit::uninit(); WORDS])
    }

    /// The head and the first `payload` bytes of the payload, in whole words.
    #[inline(always)]
    fn buf(&mut self, payload: u64) -> Buf {
        Buf::new(self.0.as_mut_ptr().cast(), 8 + payload.next_multiple_of(8) as usize)
    }

    /// Copies `data`, at most [`LINE_PAYLOAD`] bytes, into the payload. The unused bytes of the last word become zero.
    #[inline(always)]
    pub(crate) fn gather(&mut self, data: &Data<'_>) {
        self.gather_at(0, data);
    }

    /// The same from the payload's word `at` on: as many bytes as there is room for.
    #[inline(always)]
    pub(crate) fn gather_at(&mut self, at: u64, data: &Data<'_>) {
        match data.as_contiguous() {
            // SAFETY: the data's memory, which the caller may read.
            Some(memory) => unsafe { self.gather_from(at, memory) },
            None => self.gather_blocks(at, data),
        }
    }

    /// The same from readable memory.
    ///
    /// # Safety
    /// `memory` is readable.
    #[inline(always)]
    pub(crate) unsafe fn gather_from(&mut self, at: u64, memory: Buf) {
        let (words, room) = self.payload_from(at);
        let len = (memory.len() as u64).min(room) as usize;
        if len & 7 != 0 {
            // SAFETY: the word in which the last of fewer bytes than `room`, which is whole words, lies.
            unsafe { words.wrapping_add(len / 8).write(MaybeUninit::new(0)) };
        }
        // SAFETY: `len` bytes of the memory, into the payload, which has room for them.
        unsafe { into_words(memory.ptr(), words, len) };
    }

    #[cold]
    fn gather_blocks(&mut self, word: u64, data: &Data<'_>) {
        let (words, room) = self.payload_from(word);
        let (payload, len) = (words.cast::<u8>(), data.len().min(room));
        if len & 7 != 0 {
            self.put(word + len / 8, 0);
        }
        for (at, run) in data.runs(0, len) {
            // SAFETY: `runs` ends at `len`, inside the payload; the caller may read the run.
            unsafe { copy_bytes(run.ptr(), payload.wrapping_add(at as usize), run.len()) };
        }
    }

    /// Copies the payload to `data`, which is as long.
    #[inline(always)]
    pub(crate) fn scatter(&mut self, data: &Data<'_>) {
        self.scatter_at(0, data);
    }

    /// The same from the payload's word `at` on.
    #[inline(always)]
    pub(crate) fn scatter_at(&mut self, at: u64, data: &Data<'_>) {
        match data.as_contiguous() {
            // SAFETY: the data's memory, which the caller may write.
            Some(memory) => unsafe { self.scatter_into(at, memory) },
            None => self.scatter_blocks(at, data),
        }
    }

    /// The same to writable memory.
    ///
    /// # Safety
    /// `memory` is writable.
    #[inline(always)]
    pub(crate) unsafe fn scatter_into(&mut self, at: u64, memory: Buf) {
        let (words, room) = self.payload_from(at);
        let len = (memory.len() as u64).min(room) as usize;
        // SAFETY: `len` bytes of the payload, into the memory, which is as long.
        unsafe { out_of_words(words, memory.ptr(), len) };
    }

    #[cold]
    fn scatter_blocks(&mut self, word: u64, data: &Data<'_>) {
        let (words, room) = self.payload_from(word);
        let (payload, len) = (words.cast::<u8>(), data.len().min(room));
        for (at, run) in data.runs(0, len) {
            // SAFETY: `runs` ends at `len`, inside the payload; the caller may write the run.
            unsafe { copy_bytes(payload.wrapping_add(at as usize), run.ptr(), run.len()) };
        }
    }

    /// The payload from its word `at` on, and the bytes up to its end.
    #[inline(always)]
    fn payload_from(&mut self, at: u64) -> (*mut MaybeUninit<u64>, u64) {
        let at = at.min(WORDS as u64 - 1);
        (self.0[1..].as_mut_ptr().wrapping_add(at as usize), LINE_PAYLOAD - 8 * at)
    }

    /// Sets the payload's words from `from` to before `to` to zero.
    #[inline(always)]
    pub(crate) fn clear(&mut self, from: u64, to: u64) {
        (from..to).for_each(|at| self.put(at, 0));
    }

    /// Sets the payload's word `at`, if there is one.
    #[inline(always)]
    pub(crate) fn put(&mut self, at: u64, word: u64) {
        if let Some(to) = self.0[1..].get_mut(at as usize) {
            to.write(word);
        }
    }

    /// The payload's words, `bytes` of which were [gathered](Self::gather), [received](receive) or [read].
    #[inline(always)]
    pub(crate) fn words(&self, bytes: u64) -> &[u64] {
        let words = &self.0[1..1 + bytes.div_ceil(8) as usize];
        // SAFETY: `gather`, `receive` and `read` have written every word of the message.
        unsafe { words.assume_init_ref() }
    }

    /// The same, to be changed.
    #[inline(always)]
    pub(crate) fn words_mut(&mut self, bytes: u64) -> &mut [u64] {
        let words = &mut self.0[1..1 + bytes.div_ceil(8) as usize];
        // SAFETY: as in `words`; or `assign` has written them.
        unsafe { words.assume_init_mut() }
    }

    /// Sets the payload's first words, which [`Self::scatter`] then copies out.
    #[inline(always)]
    pub(crate) fn assign(&mut self, words: &[u64]) {
        self.0[1..].iter_mut().zip(words).for_each(|(to, from)| {
            to.write(*from);
        });
    }
}

/// Copies `len` bytes from `from` to the words at `to`.
///
/// # Safety
/// `len` readable bytes at `from`; at `to`, whole words that may be written, as many as they take.
#[inline(always)]
unsafe fn into_words(from: *const u8, to: *mut MaybeUninit<u64>, len: usize) {
    let from = from.cast::<MaybeUninit<u64>>();
    for i in 0..len / 8 {
        // SAFETY: word `i` lies inside `len` readable bytes.
        let word = unsafe { from.wrapping_add(i).read_unaligned() };
        // SAFETY: one of the words. Volatile: so that words stay words, and no wide store is made of them.
        unsafe { to.wrapping_add(i).write_volatile(word) };
    }
    let whole = len & !7;
    // SAFETY: fewer bytes than a word, inside both.
    unsafe { copy_bytes(from.cast::<u8>().wrapping_add(whole), to.cast::<u8>().wrapping_add(whole), len & 7) };
}

/// Copies `len` bytes from the words at `from` to `to`.
///
/// # Safety
/// At `from`, whole words that may be read; `len` writable bytes at `to`.
#[inline(always)]
unsafe fn out_of_words(from: *const MaybeUninit<u64>, to: *mut u8, len: usize) {
    let to = to.cast::<MaybeUninit<u64>>();
    for i in 0..len / 8 {
        // SAFETY: one of the words. Volatile: a wide load would stall on the narrow stores just before it.
        let word = unsafe { from.wrapping_add(i).read_volatile() };
        // SAFETY: word `i` lies inside `len` writable bytes.
        unsafe { to.wrapping_add(i).write_unaligned(word) };
    }
    let whole = len & !7;
    // SAFETY: fewer bytes than a word, inside both.
    unsafe { copy_bytes(from.cast::<u8>().wrapping_add(whole), to.cast::<u8>().wrapping_add(whole), len & 7) };
}

/// Copies bytes, if there are any.
///
/// # Safety
/// `len` readable bytes at `from` and `len` writable bytes at `to`, which don't overlap.
#[inline(always)]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, len: usize) {
    if len > 0 {
        // SAFETY: the caller's promise.
        unsafe { from.copy_to_nonoverlapping(to, len) };
    }
}

/// Lines that a process which reads those of all others expects ahead of the one that it reads. They come side by side then:
/// the checks of one line are too many for a processor to look beyond them by itself.
const AHEAD: u32 = 4;

/// A process that reads lines of many in turn has received the one at `index`, as the first of them or not: it expects those
/// after it. Not before the first one has come: a line that is read before it is written must be taken from its reader again.
#[inline(always)]
pub(crate) fn expect<R: Region>(
    region: &R,
    me: &Member,
    operation: u64,
    index: u32,
    first: bool,
    peer: impl Fn(u32) -> Rank,
) {
    let from = if first { index + 1 } else { index + AHEAD };
    for next in from..=(index + AHEAD).min(me.size() - 1) {
        region.expect(me.layout().line_body(peer(next), operation, 8));
    }
}

/// Fragments that are expected while one is taken, and the most bytes of each.
const FRAGMENTS: usize = 2;
pub(crate) const EXPECTED: u64 = 2048;

/// The ranks after the one at `index`, in the order of `peer`, whose fragments are expected; not this process.
#[inline(always)]
pub(crate) fn after(me: &Member, index: u32, peer: impl Fn(u32) -> Rank) -> impl Iterator<Item = Rank> {
    let (own, size) = (me.rank(), me.size());
    (index + 1..size).take(FRAGMENTS).map(peer).filter(move |rank| *rank != own)
}

/// Has `peer` posted its line of `operation`? What depends on it are hints alone.
#[inline(always)]
pub(crate) fn is_there<R: Region>(region: &R, me: &Member, peer: Rank, operation: u64) -> bool {
    // pairs with: post
    region.flag(me.layout().line(peer, operation)).load_acquire().is(operation)
}

/// Posts this process's line of `operation`, which must be [free](Member::line_free). The first `inline` bytes of the
/// message travel in the line; the caller has gathered them in `body`.
#[inline(always)]
pub(crate) fn publish<R: Region>(
    region: &R,
    me: &Member,
    operation: u64,
    heading: Heading,
    body: &mut Body,
    inline: u64,
) {
    publish_at(region, me, me.layout().line(me.rank(), operation), operation, heading, body, inline);
}

/// [`publish`] in a line with this sequence word, which is free.
#[inline(always)]
pub(crate) fn publish_at<R: Region>(
    region: &R,
    me: &Member,
    line: FlagId,
    operation: u64,
    heading: Heading,
    body: &mut Body,
    inline: u64,
) {
    body.0[0].write(me.digest(operation, heading.kind).head(heading.bytes));
    let src = body.buf(inline);
    // SAFETY: R10 (S2), the line is free: every reader has read what it last held. The body is private, and its
    // words are initialised as far as `inline`.
    unsafe { region.write(Layout::body(line, src.len() as u64), src) };
    // publishes: head and payload, read after `receive`
    region.publish(line, operation);
}

/// Has `peer` posted `operation` in the line with this sequence word? A sequence that is larger is an overrun.
#[inline(always)]
fn arrived<R: Region>(region: &R, peer: Rank, line: FlagId, operation: u64) -> Result<(), Halt> {
    // pairs with: post
    let sequence = region.flag(line).load_acquire();
    match sequence.against(operation) {
        Less => Err(Halt::Wait(WaitSet::flag(line, Until::AtLeast(operation), peer, operation))),
        Equal => Ok(()),
        Greater => Err(PollError::Overrun { peer, expected: operation, found: sequence.unchecked() }.into()),
    }
}

/// Receives `peer`'s line of `operation`: copies `inline` bytes of its payload to `body`.
///
/// Errors: the line was not posted yet; its sequence is larger (overrun); its head has another collective or length than `heading`; `peer`
/// made other collectives before it.
#[inline(always)]
pub(crate) fn receive<R: Region>(
    region: &R,
    me: &Member,
    peer: Rank,
    operation: u64,
    heading: Heading,
    body: &mut Body,
    inline: u64,
) -> Result<(), Halt> {
    receive_at(region, me, (peer, me.layout().line(peer, operation)), operation, heading, body, inline)
}

/// [`receive`] from a line of `peer` with this sequence word.
#[inline(always)]
pub(crate) fn receive_at<R: Region>(
    region: &R,
    me: &Member,
    (peer, line): (Rank, FlagId),
    operation: u64,
    heading: Heading,
    body: &mut Body,
    inline: u64,
) -> Result<(), Halt> {
    arrived(region, peer, line, operation)?;
    // 0 can't be a head: if the region copies nothing into the body, the comparison below fails.
    body.0[0].write(0);
    let dst = body.buf(inline);
    // SAFETY: S3, `peer` published the line and reuses it only after it has heard of our read. `body` is private.
    unsafe { region.read(Layout::body(line, dst.len() as u64), dst) };
    // SAFETY: written above. If it is the expected head, `read` has filled the whole buffer.
    let head = unsafe { body.0[0].assume_init() };
    let digest = me.digest(operation, heading.kind);
    if head != digest.head(heading.bytes) {
        agree(region, me, (peer, operation), digest, Some(heading.bytes), head)
            .map_err(|refusal| PollError::Mismatch { peer, refusal })?;
    }
    Ok(())
}

/// Copies `bytes` bytes from byte `at` on of the payload of a line, which was received from that rank in that operation, to the
/// begin of `body`'s payload: whole words.
#[inline(always)]
pub(crate) fn read<R: Region>(
    region: &R,
    me: &Member,
    (peer, operation): (Rank, u64),
    at: u64,
    bytes: u64,
    body: &mut Body,
) {
    // What a line has no room for reads as zero.
    let place = me.layout().line_body(peer, operation, 8 + LINE_PAYLOAD).part(8 + at, bytes.next_multiple_of(8));
    body.clear(place.len() / 8, bytes.div_ceil(8));
    let dst = Buf::new(body.0[1..].as_mut_ptr().cast(), place.len() as usize);
    // SAFETY: S3, `peer` published the line and reuses it only after it has heard of our read. `body` is private, and as long as
    // a line.
    unsafe { region.read(place, dst) };
}

/// Receives the head of `peer`'s line of `operation`, for a message of any length, which it returns.
///
/// Errors: the line was not posted yet; its sequence is larger (overrun); its head has another collective; `peer` made other collectives
/// before it.
#[inline]
pub(crate) fn receive_head<R: Region>(
    region: &R,
    me: &Member,
    peer: Rank,
    operation: u64,
    kind: Kind,
) -> Result<u64, Halt> {
    arrived(region, peer, me.layout().line(peer, operation), operation)?;
    let head = read_head(region, me, peer, operation);
    let digest = me.digest(operation, kind);
    if Digest::of(head) != digest {
        agree(region, me, (peer, operation), digest, None, head)
            .map_err(|refusal| PollError::Mismatch { peer, refusal })?;
    }
    Ok(length(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_last_word_is_zero() {
        for len in 0..=24 {
            let mut body = Body::new();
            body.assign(&[u64::MAX; WORDS - 1]);
            body.gather(&Data::bytes(&[0x55; 24][..len]));
            let words = body.words(len as u64);
            let bytes = words.iter().flat_map(|word| word.to_ne_bytes()).enumerate();
            assert_eq!(words.len(), len.div_ceil(8));
            assert!(bytes.into_iter().all(|(at, byte)| byte == if at < len { 0x55 } else { 0 }), "{len} bytes");
        }
    }

    #[test]
    fn a_body_is_fifteen_words() {
        assert_eq!(WORDS, 15);
    }
}
