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
//!
//! The head says what the line is, and what came before it:
//!
//! | bits | |
//! |---|---|
//! | 63..60 | the [`Kind`] of collective |
//! | 59..48 | a digest of the kinds of all operations before this one; 0: not known |
//! | 47..0 | bytes of the message |
//!
//! So who hears a line compares all that the two processes have called with the same look: ranks that make different
//! collectives where nobody waits for anybody are told at the next line that is heard.
//!
//! Head and payload go through a private [`Body`], word by word: a few bytes moved in wide
//! registers would wait for the narrow stores before them.

use crate::Rank;
use crate::buffer::Buf;
use crate::comm::Member;
use crate::datatype::Data;
use crate::error::{Argument, Bound, PollError, Refusal};
use crate::region::layout::{LINE_PAYLOAD, LINE_ROOM};
use crate::region::{Flag, Region};
use crate::step::{Awaits, Until};
use core::cmp::Ordering::{Equal, Greater, Less};
use core::mem::MaybeUninit;

/// Which collective posted the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// MPI_Bcast.
    Bcast = 1,
    /// MPI_Allreduce.
    Allreduce = 2,
    /// MPI_Gather, MPI_Gatherv.
    Gather = 3,
    /// MPI_Scatter, MPI_Scatterv.
    Scatter = 4,
    /// MPI_Allgather, MPI_Allgatherv.
    Allgather = 5,
    /// MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw.
    Alltoall = 6,
    /// MPI_Reduce.
    Reduce = 7,
    /// MPI_Reduce_scatter, MPI_Reduce_scatter_block.
    ReduceScatter = 8,
    /// MPI_Scan.
    Scan = 9,
    /// MPI_Exscan.
    Exscan = 10,
    /// MPI_Barrier.
    Barrier = 11,
}

impl Kind {
    /// The collective of this number, as MPI calls it.
    pub(crate) const fn name(number: u64) -> &'static str {
        const NAMES: [&str; 12] = [
            "?",
            "bcast",
            "allreduce",
            "gather",
            "scatter",
            "allgather",
            "alltoall",
            "reduce",
            "reduce_scatter",
            "scan",
            "exscan",
            "barrier",
        ];
        if number < NAMES.len() as u64 { NAMES[number as usize] } else { "unknown" }
    }
}

/// Bits of a head that say the length.
const LENGTH: u32 = 48;

const fn length(head: u64) -> u64 {
    head & ((1 << LENGTH) - 1)
}

/// A head without its length: a kind, and the digest of all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mark(u16);

impl Mark {
    const DIGEST: u16 = (1 << 12) - 1;

    /// Before all operations. The digest is odd ever after.
    pub(crate) const START: Self = Self(1);

    /// Of an operation of this kind, what came before being unknown.
    pub(crate) const fn alone(kind: Kind) -> Self {
        Self((kind as u16) << 12)
    }

    /// Of the operation behind this one. A single operation of another kind changes the digest for good: the factor
    /// is odd, and twice the difference of two kinds no multiple of 2¹². So do two operations that change places, unless they
    /// are a multiple of 64 apart.
    #[inline(always)]
    pub(crate) const fn next(self, kind: Kind) -> Self {
        let digest = self.0.wrapping_mul(5).wrapping_add(self.0 >> 12 << 1);
        Self((kind as u16) << 12 | digest & Self::DIGEST)
    }

    /// That of a head.
    pub(crate) const fn of(head: u64) -> Self {
        Self((head >> LENGTH) as u16)
    }

    /// The head with this length.
    #[inline(always)]
    const fn head(self, bytes: u64) -> u64 {
        (self.0 as u64) << LENGTH | bytes
    }

    /// The kind's number; 0: no operation.
    pub(crate) const fn kind(self) -> u64 {
        (self.0 >> 12) as u64
    }

    /// Were the operations before the same, as far as both know?
    pub(crate) const fn same_before(self, other: Self) -> bool {
        let (mine, theirs) = (self.0 & Self::DIGEST, other.0 & Self::DIGEST);
        mine == theirs || mine == 0 || theirs == 0
    }
}

/// Words of a body: the head, then the payload.
const WORDS: usize = LINE_ROOM as usize / 8;

/// Head and payload, as they lie in the line behind its sequence word.
/// Only the words that are used are ever initialised; it is filled in place and never moved.
pub(crate) struct Body([MaybeUninit<u64>; WORDS]);

impl Body {
    /// Nothing yet.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self([MaybeUninit::uninit(); WORDS])
    }

    /// The first bytes of head and payload, in whole words.
    #[inline(always)]
    fn buf(&mut self, payload: u64) -> Buf {
        Buf::new(self.0.as_mut_ptr().cast(), 8 + payload.next_multiple_of(8) as usize)
    }

    /// Takes `data`, at most [`LINE_PAYLOAD`] bytes, into the payload; the last word's rest is zero.
    #[inline(always)]
    pub(crate) fn gather(&mut self, data: &Data<'_>) {
        let len = data.len().min(LINE_PAYLOAD);
        if len & 7 != 0 {
            self.0[1 + len as usize / 8].write(0);
        }
        match data.as_contiguous() {
            // SAFETY: `len` bytes of the data, which are the caller's to read, into the payload, which holds them.
            Some(memory) => unsafe { copy_private(memory.ptr(), self.payload(), len as usize) },
            None => self.gather_blocks(data, len),
        }
    }

    #[cold]
    fn gather_blocks(&mut self, data: &Data<'_>, len: u64) {
        for (at, run) in data.runs(0, len) {
            // SAFETY: `runs` ends at `len`, inside the payload; the run is the caller's to read.
            unsafe { copy_private(run.ptr(), self.payload().wrapping_add(at as usize), run.len()) };
        }
    }

    /// Puts the payload into `data`, whose length it has.
    #[inline(always)]
    pub(crate) fn scatter(&mut self, data: &Data<'_>) {
        let len = data.len().min(LINE_PAYLOAD);
        match data.as_contiguous() {
            // SAFETY: `len` bytes of the payload, into the data, which is the caller's to write.
            Some(memory) => unsafe { copy_private(self.payload(), memory.ptr(), len as usize) },
            None => self.scatter_blocks(data, len),
        }
    }

    #[cold]
    fn scatter_blocks(&mut self, data: &Data<'_>, len: u64) {
        for (at, run) in data.runs(0, len) {
            // SAFETY: `runs` ends at `len`, inside the payload; the run is the caller's to write.
            unsafe { copy_private(self.payload().wrapping_add(at as usize), run.ptr(), run.len()) };
        }
    }

    #[inline(always)]
    fn payload(&mut self) -> *mut u8 {
        self.0[1..].as_mut_ptr().cast()
    }

    /// The payload's words, `bytes` of which were [gathered](Self::gather) or [heard](hear).
    #[inline(always)]
    pub(crate) fn words(&self, bytes: u64) -> &[u64] {
        let words = &self.0[1..1 + bytes.div_ceil(8) as usize];
        // SAFETY: `gather` and `hear` have written every word of the message.
        unsafe { words.assume_init_ref() }
    }

    /// A payload of these words, to be scattered.
    #[inline(always)]
    pub(crate) fn assign(&mut self, words: &[u64]) {
        self.0[1..].iter_mut().zip(words).for_each(|(to, from)| {
            to.write(*from);
        });
    }
}

/// Copies between private buffers, whole words first.
///
/// # Safety
/// `len` readable bytes at `from`, `len` writable ones at `to`, apart from each other.
#[inline(always)]
unsafe fn copy_private(from: *const u8, to: *mut u8, len: usize) {
    if len == 8 {
        // SAFETY: eight readable bytes.
        let word = unsafe { from.cast::<MaybeUninit<u64>>().read_unaligned() };
        // SAFETY: eight writable bytes.
        unsafe { to.cast::<MaybeUninit<u64>>().write_unaligned(word) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { copy_words(from, to, len) };
    }
}

/// [`copy_private`] of any length; a call, so that the commonest one stays small.
///
/// # Safety
/// As [`copy_private`].
#[inline(never)]
unsafe fn copy_words(from: *const u8, to: *mut u8, len: usize) {
    let words = len / 8;
    for i in 0..words {
        let (from, to) =
            (from.cast::<MaybeUninit<u64>>().wrapping_add(i), to.cast::<MaybeUninit<u64>>().wrapping_add(i));
        // SAFETY: word `i` lies inside `len` bytes.
        let word = unsafe { from.read_unaligned() };
        // SAFETY: as above.
        unsafe { to.write_unaligned(word) };
    }
    for i in 8 * words..len {
        // SAFETY: byte `i` lies inside `len` bytes.
        let byte = unsafe { from.cast::<MaybeUninit<u8>>().wrapping_add(i).read() };
        // SAFETY: as above.
        unsafe { to.cast::<MaybeUninit<u8>>().wrapping_add(i).write(byte) };
    }
}

/// Posts this process's line of `operation`, which must be [free](Member::line_free): `bytes` is the
/// message's length; `inline` of them travel in the line, gathered in `body`.
#[inline(always)]
pub(crate) fn post<R: Region>(
    region: &R,
    me: &Member,
    operation: u64,
    (kind, bytes): (Kind, u64),
    body: &mut Body,
    inline: u64,
) {
    body.0[0].write(me.mark(operation, kind).head(bytes));
    let src = body.buf(inline);
    let at = me.layout().line_body(me.rank(), operation, src.len() as u64);
    // SAFETY: R10 (S2), the line is free: every reader's `done` has passed its last use. The body's first
    // words are initialised as far as `inline`, and ours.
    unsafe { region.write(at, src) };
    // publishes: head and payload, read after `hear`
    region.publish(me.layout().line(me.rank(), operation), operation);
}

/// Has `peer` posted its line of `operation`? If not, what to wait for. A line that is ahead is an overrun.
#[inline(always)]
fn arrived<R: Region>(region: &R, me: &Member, peer: Rank, operation: u64) -> Result<Option<Awaits>, PollError> {
    let line = me.layout().line(peer, operation);
    // pairs with: post
    let sequence = region.flag(line).load_acquire();
    match sequence.against(operation) {
        Less => Ok(Some(Awaits::flag(line, Until::AtLeast(operation), peer, operation))),
        Equal => Ok(None),
        Greater => Err(PollError::Overrun { peer, expected: operation, found: sequence.unchecked() }),
    }
}

/// Listens for `peer`'s line of `operation`: where it has been posted, `inline` bytes of its payload
/// are in `body`; else what to wait for.
///
/// Errors: a line that is ahead (overrun), of another collective or behind other ones, or for a message of another length.
#[inline(always)]
pub(crate) fn hear<R: Region>(
    region: &R,
    me: &Member,
    peer: Rank,
    operation: u64,
    (kind, bytes): (Kind, u64),
    body: &mut Body,
    inline: u64,
) -> Result<Option<Awaits>, PollError> {
    if let Some(wait) = arrived(region, me, peer, operation)? {
        return Ok(Some(wait));
    }
    // No member's head: a region that leaves the body alone is found below.
    body.0[0].write(0);
    let dst = body.buf(inline);
    // SAFETY: S3, `peer` published the line and reuses it only after our `done`. `body` is ours.
    unsafe { region.read(me.layout().line_body(peer, operation, dst.len() as u64), dst) };
    // SAFETY: written above. If it is the head that is wanted, `read` has filled the whole buffer.
    let head = unsafe { body.0[0].assume_init() };
    let mark = me.mark(operation, kind);
    if head != mark.head(bytes) {
        agree(region, me, (peer, operation), mark, Some(bytes), head)
            .map_err(|refusal| PollError::Mismatch { peer, refusal })?;
    }
    Ok(None)
}

/// Listens for `peer`'s line of `operation`, of whatever length it says: the length, or what to wait for.
///
/// Errors: a line that is ahead (overrun), or of another collective or behind other ones.
#[inline]
pub(crate) fn hear_head<R: Region>(
    region: &R,
    me: &Member,
    peer: Rank,
    operation: u64,
    kind: Kind,
) -> Result<Result<u64, Awaits>, PollError> {
    if let Some(wait) = arrived(region, me, peer, operation)? {
        return Ok(Err(wait));
    }
    let head = read_head(region, me, peer, operation);
    let mark = me.mark(operation, kind);
    if Mark::of(head) != mark {
        agree(region, me, (peer, operation), mark, None, head)
            .map_err(|refusal| PollError::Mismatch { peer, refusal })?;
    }
    Ok(Ok(length(head)))
}

/// The head of the line that `peer` posted in `operation`, if it has and the line is not another operation's by now.
///
/// Of an operation that this process has finished, it may be that of a later one all the same: the line is being reused.
#[cold]
pub(crate) fn head_of<R: Region>(region: &R, me: &Member, peer: Rank, operation: u64) -> Option<u64> {
    // pairs with: post
    let posted = region.flag(me.layout().line(peer, operation)).load_acquire().is(operation);
    posted.then(|| read_head(region, me, peer, operation))
}

#[inline(always)]
fn read_head<R: Region>(region: &R, me: &Member, peer: Rank, operation: u64) -> u64 {
    let mut head = [0; 8];
    // SAFETY: `peer` published the line and reuses it only after our `done`. After that (`head_of`) we ask only because
    // the processes have fallen out of step: a race there is one word's, which is copied as an atomic (the boundary of
    // docs/memory-model.md), and whoever asks checks the value. The array is ours.
    unsafe { region.read(me.layout().line_body(peer, operation, 8), Buf::of_mut(&mut head)) };
    u64::from_ne_bytes(head)
}

/// Does a `head` of `peer`'s in `operation` say what this process's mark and length do, as far as both know?
///
/// Errors: the collectives differ, here or before, or the lengths do. In this order: who has made other
/// collectives before means another message.
#[cold]
pub(crate) fn agree<R: Region>(
    region: &R,
    me: &Member,
    (peer, operation): (Rank, u64),
    mine: Mark,
    bytes: Option<u64>,
    head: u64,
) -> Result<(), Refusal> {
    let theirs = Mark::of(head);
    if theirs.kind() != mine.kind() {
        return Err(Refusal::new(Argument::Collective, mine.kind(), Bound::Equals(theirs.kind())));
    }
    if !theirs.same_before(mine) {
        return Err(me.differ_before(region, peer, operation));
    }
    match bytes {
        Some(bytes) if bytes != length(head) => Err(Refusal::new(Argument::Bytes, bytes, Bound::Equals(length(head)))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 11] = [
        Kind::Bcast,
        Kind::Allreduce,
        Kind::Gather,
        Kind::Scatter,
        Kind::Allgather,
        Kind::Alltoall,
        Kind::Reduce,
        Kind::ReduceScatter,
        Kind::Scan,
        Kind::Exscan,
        Kind::Barrier,
    ];

    #[test]
    fn kinds_have_their_names() {
        let names = KINDS.map(|kind| Kind::name(kind as u64));
        assert_eq!((names[0], names[7], names[10]), ("bcast", "reduce_scatter", "barrier"));
        assert_eq!([0, 12, u64::MAX].map(Kind::name), ["?", "unknown", "unknown"]);
    }

    #[test]
    fn a_head_is_a_kind_a_digest_and_a_length() {
        for kind in KINDS {
            assert_eq!(Mark::alone(kind).kind(), kind as u64);
            let mark = Mark::START.next(kind);
            assert_eq!(mark.head(77), (kind as u64) << 60 | 5 << 48 | 77);
            assert_eq!((Mark::of(mark.head(77)), length(mark.head(77))), (mark, 77));
            assert_eq!(mark.next(Kind::Scan).head(0), 9 << 60 | (25 + 2 * kind as u64) << 48);
        }
        assert_eq!(Mark::START.kind(), 0);
    }

    #[test]
    fn one_operation_of_another_kind_changes_the_digest_for_good() {
        let after = |kind: Kind| {
            (0..100).scan(Mark::START.next(kind), |mark, at| {
                *mark = mark.next(KINDS[at % 11]);
                Some(*mark)
            })
        };
        for (one, other) in KINDS.into_iter().flat_map(|one| KINDS.map(|other| (one, other))) {
            let same = after(one).zip(after(other)).filter(|(mine, theirs)| mine.same_before(*theirs)).count();
            assert_eq!(same, if one == other { 100 } else { 0 }, "{one:?} and {other:?}");
        }
        let known = Mark::START.next(Kind::Scan).next(Kind::Scan);
        assert!(Mark::alone(Kind::Scan).same_before(known) && known.same_before(Mark::alone(Kind::Scan)));
    }

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
    fn a_body_is_fifteen_words_and_a_digest_has_twelve_bits() {
        assert_eq!((WORDS, Mark::DIGEST), (15, 0xfff));
    }
}
