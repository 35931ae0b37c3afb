//! The segment's layout: pure arithmetic, every offset comes from here.
//!
//! ```text
//! header page | lease page | [leaders pages | q set pages | q pages of counts and rootready] | rank 0's area | ...
//!                            '------- papers P1 and P2, if their queues are wanted ------'
//! rank's area, page-aligned, on the rank's own NUMA node:
//!   control lines | ring of K posted lines | queue: slots × fragment | [P1: s control pages | s fragments | P2: ctrlall] |
//!   [p mailboxes to others | p rows of words of mailboxes from others]
//! ```
//! Sizes in bytes, with `w` the page: `w + w + [⌈4p/w⌉·w + w·q + q·(⌈8 + 8p⌉ + ⌈128·p⌉)] + p·(⌈control⌉ + ⌈128·K⌉ + ⌈slots·fragment⌉ + [s·(w + ⌈f⌉) + ⌈p·⟨8s⟩⌉] + [mailboxes])`,
//! where ⌈x⌉ rounds up to pages and ⟨x⟩ to lines. One line of 128 bytes has one writer.
//! [`super::mailboxes`] has the part of the mailboxes.
//! Pages above 4 KiB (huge ones, so that each rank's area is on its own): `w` is 4 KiB in the formula, and only what
//! comes before rank 0's area, and each rank's area, are rounded up to the page, not the parts of an area.

use super::params::{Cico, Params, pages, told};
use super::{CounterId, Extent, FlagId, LINE, Lap, MailId, Mailboxes, Pair};
use crate::Rank;
use crate::error::{Argument, Bound, Refusal};

/// Bytes of head and payload in a posted line, after its sequence word.
pub const LINE_ROOM: u64 = LINE - 8;
/// Payload bytes of a posted line, after its sequence and its head.
pub const LINE_PAYLOAD: u64 = LINE - 16;
/// Most processes of one segment.
pub const MAX_RANKS: u32 = 1 << 20;
/// Version of this layout, in the header.
pub const VERSION: u64 = 11;

/// Payload bytes of the line of a partial result, at most: a slot of a queue may have fewer. Longer operands are shared by groups.
pub const PARTIAL: u64 = 2048;

/// Largest alignment of the parts of an area: the page of most machines.
const PART: u64 = 4096;

/// Control lines of a rank before its dissemination rounds, and its partial results of two operations by doubling.
const PROGRESS: u64 = 0;
const READY: u64 = 1;
const ARRIVE: u64 = 2;
const RELEASE: u64 = 3;
const RECORD: u64 = 4;
const ROUNDS: u64 = 5;

/// The offsets of every word and extent of one segment. Plain numbers; private to each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    params: Params,
    /// Alignment of the parts of an area.
    part: u64,
    leaders: u64,
    sets: u64,
    told: u64,
    ranks: u64,
    stride: u64,
    /// Bytes from one partial result's line to the next.
    partial: u64,
    lines: u64,
    queue: u64,
    controls: u64,
    fragments: u64,
    fragment_stride: u64,
    pairs: u64,
    /// Mailboxes, and the rows of words.
    mail: u64,
    rows: u64,
    rounds: u32,
    /// Bytes of a slot, and of a line's payload, for each rank but the writer: kept, since a division takes as long as copying a
    /// short message.
    slot_share: u64,
    line_share: u64,
    total: u64,
}

impl Layout {
    /// Plans a segment.
    ///
    /// # Errors
    /// The first parameter that does not fit, with its bound.
    pub fn new(params: Params) -> Result<Self, Refusal> {
        let Params { ranks, page, lines, queue_slots, queue_fragment, cico, mailboxes, .. } = params;
        Refusal::check(Argument::Ranks, ranks.into(), Bound::AtLeast(1))?;
        Refusal::check(Argument::Ranks, ranks.into(), Bound::AtMost(MAX_RANKS.into()))?;
        Refusal::check(Argument::Page, page, Bound::AtLeast(2 * LINE))?;
        Refusal::check(Argument::Page, page, Bound::AtMost(1 << 30))?;
        Refusal::check(Argument::Page, page, Bound::MultipleOf(page.next_power_of_two()))?;
        // In 64 bits: the next power of two of any 32-bit number exists.
        let lines = u64::from(lines);
        Refusal::check(Argument::Lines, lines, Bound::AtLeast(2))?;
        Refusal::check(Argument::Lines, lines, Bound::MultipleOf(lines.next_power_of_two()))?;
        Refusal::check(Argument::QueueSlots, queue_slots.into(), Bound::AtLeast(1))?;
        let slots = u64::from(queue_slots);
        Refusal::check(Argument::QueueSlots, slots, Bound::MultipleOf(slots.next_power_of_two()))?;
        Refusal::check(Argument::QueueFragment, queue_fragment, Bound::AtLeast(64))?;
        Refusal::check(Argument::QueueFragment, queue_fragment, Bound::MultipleOf(64))?;
        if let Some(Cico { slots, fragment, sets }) = cico {
            Refusal::check(Argument::Slots, slots.into(), Bound::AtLeast(1))?;
            Refusal::check(Argument::Sets, sets.into(), Bound::AtLeast(1))?;
            Refusal::check(Argument::Sets, sets.into(), Bound::AtMost(slots.into()))?;
            Refusal::check(Argument::Sets, sets.into(), Bound::Divides(slots.into()))?;
            Refusal::check(Argument::Fragment, fragment, Bound::AtLeast(1))?;
            Refusal::check(Argument::Fragment, fragment, Bound::Below(1 << 32))?;
        }
        mailboxes.map_or(Ok(()), Mailboxes::check)?;
        Self::place(params).ok_or(Refusal::new(Argument::SegmentBytes, u64::MAX, Bound::AtMost(i64::MAX as u64)))
    }

    /// The arithmetic; `None` if a size does not fit 63 bits.
    fn place(params: Params) -> Option<Self> {
        let Params { ranks, page, lines, queue_slots, queue_fragment, cico, mailboxes, .. } = params;
        let (p, area) = (u64::from(ranks), page);
        let page = page.min(PART);
        let rounds = ranks.next_power_of_two().trailing_zeros();
        let leaders = page.checked_add(page)?;
        let sets = match cico {
            Some(_) => leaders.checked_add(pages(4 * p, page)?)?,
            None => leaders,
        };
        let q = cico.map_or(0, |c| c.sets.into());
        let told_at = sets.checked_add(page.checked_mul(q)?)?;
        let shared = told_at.checked_add(told(ranks, page)?.checked_mul(q)?)?;
        let first_rank = pages(shared, area)?;

        let partial = (16 + queue_fragment.clamp(LINE_PAYLOAD, PARTIAL)).next_multiple_of(LINE);
        let partials = 2 * u64::from(rounds) * partial;
        let lines_at = pages((ROUNDS + u64::from(rounds)) * LINE + partials, page)?;
        let queue = lines_at.checked_add(pages(u64::from(lines) * LINE, page)?)?;
        let queue_bytes = u64::from(queue_slots).checked_mul(queue_fragment)?;
        let controls = queue.checked_add(pages(queue_bytes, page)?)?;
        let s = cico.map_or(0, |c| u64::from(c.slots));
        let fragments = controls.checked_add(s.checked_mul(page)?)?;
        let fragment_stride = pages(cico.map_or(0, |c| c.fragment), page)?;
        let pairs = fragments.checked_add(s.checked_mul(fragment_stride)?)?;
        let mail = match cico {
            Some(c) => pairs.checked_add(c.pairs(ranks, page)?)?,
            None => pairs,
        };
        let (rows, own) = match mailboxes {
            Some(m) => {
                let rows = mail.checked_add(pages(m.lanes()?.checked_mul(p)?, page)?)?;
                (rows, rows.checked_add(pages(m.row() * p, page)?)?)
            }
            None => (mail, mail),
        };
        let stride = pages(own, area)?;
        let total = stride.checked_mul(p)?.checked_add(first_rank)?;
        let others = u64::from(ranks - 1).max(1);
        (total <= i64::MAX as u64).then_some(Self {
            params,
            part: page,
            leaders,
            sets,
            told: told_at,
            ranks: first_rank,
            stride,
            partial,
            lines: lines_at,
            queue,
            controls,
            fragments,
            fragment_stride,
            pairs,
            mail,
            rows,
            rounds,
            slot_share: queue_fragment / others,
            line_share: LINE_PAYLOAD / others,
            total,
        })
    }

    /// The parameters of the segment.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Number of processes.
    #[inline]
    pub const fn ranks(&self) -> u32 {
        self.params.ranks
    }

    /// Bytes of the segment.
    pub const fn bytes(&self) -> u64 {
        self.total
    }

    /// ⌈log2 p⌉: rounds of a dissemination.
    #[inline]
    pub const fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Bytes of a slot for each rank but its writer.
    #[inline]
    pub(crate) const fn slot_share(&self) -> u64 {
        self.slot_share
    }

    /// Bytes of a line's payload for each rank but its writer.
    #[inline]
    pub(crate) const fn line_share(&self) -> u64 {
        self.line_share
    }

    /// A hash of the parameters, the version and the size (FNV-1a), which all members compare.
    pub fn hash(&self) -> u64 {
        let c = self.params.cico.unwrap_or(Cico { slots: 0, fragment: 0, sets: 0 });
        let Mailboxes { messages, slots, fragment } = self.params.mailboxes.unwrap_or(Mailboxes::NONE);
        let Params { ranks, page, lines, queue_slots, queue_fragment, crowded, .. } = self.params;
        let words = [
            VERSION,
            ranks.into(),
            page,
            lines.into(),
            queue_slots.into(),
            queue_fragment,
            c.slots.into(),
            c.fragment,
            c.sets.into(),
            messages.into(),
            slots.into(),
            fragment,
            crowded.into(),
            self.total,
        ];
        words
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }

    /// The header and lease pages, and the papers' shared pages: rank 0 touches them first.
    pub const fn shared_pages(&self) -> Extent {
        Extent::new(0, self.ranks)
    }

    /// A rank's own area, which should lie on the rank's NUMA node: its [first](Self::first_pages) pages, then those of
    /// [pairs](Self::pair_pages).
    pub const fn own_pages(&self, rank: Rank) -> Extent {
        Extent::new(self.own(rank), self.stride)
    }

    /// The pages of a rank's area that do not grow with the number of ranks: the rank touches them first.
    pub const fn first_pages(&self, rank: Rank) -> Extent {
        Extent::new(self.own(rank), self.first())
    }

    /// The other pages of its area: P2's `ctrlall`, mailboxes and their words. They have bytes for each pair of ranks, p² in
    /// all, so their pages exist only once a pair uses them.
    pub const fn pair_pages(&self, rank: Rank) -> Extent {
        Extent::new(self.own(rank) + self.first(), self.stride - self.first())
    }

    /// Bytes of the [shared](Self::shared_pages) and of all ranks' [first](Self::first_pages) pages: what exists from the start.
    pub const fn first_bytes(&self) -> u64 {
        self.ranks + self.first() * self.params.ranks as u64
    }

    /// Huge pages that also hold words of the other kind are of the first kind. Below the stride, since that is a multiple of the page.
    const fn first(&self) -> u64 {
        self.pairs.next_multiple_of(self.params.page)
    }

    #[inline]
    const fn own(&self, rank: Rank) -> u64 {
        self.ranks + self.stride * rank as u64
    }

    #[inline]
    const fn control_line(&self, rank: Rank, line: u64) -> u64 {
        self.own(rank) + line * LINE
    }

    /// The lease's state word (see [`super::state`]).
    #[inline]
    pub const fn state(&self) -> CounterId {
        CounterId(self.part)
    }

    /// The operation in which `rank` has waited long, and the kinds of its last collectives: see
    /// [`crate::comm::Member`].
    pub(crate) const fn calling(&self, rank: Rank) -> [CounterId; 2] {
        [CounterId(self.record(rank, 4).offset()), CounterId(self.record(rank, 5).offset())]
    }

    /// The word of this index in `rank`'s refusal record, which has 4 words.
    pub(crate) const fn record(&self, rank: Rank, word: u64) -> FlagId {
        FlagId(self.control_line(rank, RECORD) + 8 * word)
    }

    /// Arrivals in all central counter barriers so far. It is not in the line of the state word, which every call
    /// reads.
    #[inline]
    pub const fn central_count(&self) -> CounterId {
        CounterId(self.part + LINE)
    }

    /// The last operation that `rank` finished.
    #[inline]
    pub const fn done(&self, rank: Rank) -> FlagId {
        FlagId(self.control_line(rank, PROGRESS))
    }

    /// The fragment clock up to which `rank` is done with queue fragments.
    #[inline]
    pub const fn acked(&self, rank: Rank) -> FlagId {
        FlagId(self.control_line(rank, PROGRESS) + 8)
    }

    /// Whether `rank` reads the memory that others lend it in operation n: 2n if it does, 2n + 1 if it wants fragments.
    #[inline]
    pub const fn answer(&self, rank: Rank) -> FlagId {
        FlagId(self.control_line(rank, PROGRESS) + 24)
    }

    /// Whether `rank` has left, and with which counts (see [`super::lease`]).
    #[inline]
    pub const fn left(&self, rank: Rank) -> FlagId {
        FlagId(self.control_line(rank, PROGRESS) + 16)
    }

    /// The fragment clock up to which `rank` has published queue fragments: in its own queue, and in a scatter also in
    /// its readers' queues.
    #[inline]
    pub const fn ready(&self, rank: Rank) -> FlagId {
        FlagId(self.control_line(rank, READY))
    }

    /// The last barrier in which `rank`'s subtree has arrived.
    #[inline]
    pub const fn arrive(&self, rank: Rank) -> FlagId {
        FlagId(self.control_line(rank, ARRIVE))
    }

    /// The last barrier from which `rank` has released its children (the central counter's root: all ranks).
    #[inline]
    pub const fn release(&self, rank: Rank) -> FlagId {
        FlagId(self.control_line(rank, RELEASE))
    }

    /// The last barrier by dissemination or doubling in which `rank` has signalled round `round` (below [`Self::rounds`]).
    #[inline]
    pub const fn round(&self, rank: Rank, round: u32) -> FlagId {
        FlagId(self.control_line(rank, ROUNDS + round as u64))
    }

    /// The sequence word of `rank`'s line for its partial result of `round` (below [`Self::rounds`]) in an allreduce or a scan by
    /// doubling; such operations use two such lines in turn.
    #[inline]
    pub const fn partial(&self, rank: Rank, turn: bool, round: u32) -> FlagId {
        let index = (turn as u32 * self.rounds + round) as u64;
        FlagId(self.control_line(rank, ROUNDS + self.rounds as u64) + index * self.partial)
    }

    /// What lies behind the sequence word of a [partial](Self::partial) result: the head, then up to [`PARTIAL`] bytes of payload,
    /// or as many as a queue's slot has, if that is fewer.
    #[inline]
    pub const fn partial_body(&self, rank: Rank, turn: bool, round: u32) -> Extent {
        Extent::new(self.partial(rank, turn, round).0 + 8, self.partial - 8)
    }

    /// The longest operand of an allreduce by doubling, in bytes.
    #[inline]
    pub const fn partial_room(&self) -> u64 {
        let room = self.partial - 16;
        if room > PARTIAL { PARTIAL } else { room }
    }

    /// Bytes from one line of a [partial](Self::partial) result to the next.
    #[inline]
    pub const fn partial_stride(&self) -> u64 {
        self.partial
    }

    /// The sequence word of `rank`'s posted line for `operation`.
    #[inline]
    pub const fn line(&self, rank: Rank, operation: u64) -> FlagId {
        let index = operation & (self.params.lines as u64 - 1);
        FlagId(self.own(rank) + self.lines + index * LINE)
    }

    /// The first `len` bytes after the sequence word of a posted line: head and payload.
    #[inline]
    pub const fn line_body(&self, rank: Rank, operation: u64, len: u64) -> Extent {
        Self::body(self.line(rank, operation), len)
    }

    /// The first `len` bytes after the sequence word of a [posted line](Self::line) or of a [partial](Self::partial) result's.
    #[inline]
    pub const fn body(line: FlagId, len: u64) -> Extent {
        Extent::new(line.0 + 8, LINE_ROOM).part(0, len)
    }

    /// The slot of `rank`'s queue for fragment `clock`.
    #[inline]
    pub const fn slot(&self, rank: Rank, clock: u64) -> Extent {
        let index = clock & (self.params.queue_slots as u64 - 1);
        let fragment = self.params.queue_fragment;
        Extent::new(self.own(rank) + self.queue + index * fragment, fragment)
    }

    /// The lap of these queues that is most like `wanted`: its slots are a power of two, from 1 to the number of slots.
    #[inline]
    #[must_use]
    pub const fn lap(&self, wanted: Lap) -> Lap {
        let all = self.params.queue_slots as u64;
        let Lap { slots, narrow } = wanted;
        Lap { slots: if slots >= all { all } else { 1 << (slots | 1).ilog2() }, narrow }
    }

    /// Where fragment `clock` lies in `rank`'s queue, which it passes through in [laps](Self::lap) like `lap`, if no
    /// fragment of its operation has more than `bytes` bytes: from some byte of its slot to the slot's end. That is the
    /// slot's start in narrow laps, and for fragments of up to 2 KiB, which do best in few lines; for longer
    /// ones another byte each time round the queue, so that they pass over all of it (docs/explanation/parameters.md).
    #[inline]
    pub const fn in_slot(&self, rank: Rank, clock: u64, bytes: u64, lap: Lap) -> Extent {
        const SHORT: u64 = 2048;
        let slot = self.slot(rank, clock & (lap.slots - 1));
        if lap.narrow || bytes <= SHORT || bytes >= slot.len() {
            return slot;
        }
        let room: u64 = 1 << slot.len().ilog2();
        let round = clock >> lap.slots.trailing_zeros();
        slot.part(round.wrapping_mul(bytes.next_power_of_two()) & (room - 1), slot.len())
    }

    /// P1: the leader of `rank`'s NUMA node, an `i32` of the `leaders` array. Empty without P1's queues.
    pub const fn leader(&self, rank: Rank) -> Extent {
        let len = if self.params.cico.is_some() { 4 } else { 0 };
        Extent::new(self.leaders + 4 * rank as u64, len)
    }

    #[inline]
    const fn set(&self, set: u32) -> u64 {
        self.sets + self.part * set as u64
    }

    #[inline]
    const fn told(&self, set: u32) -> u64 {
        let counts = (8 + 8 * self.params.ranks as u64).next_multiple_of(self.part);
        let ready = (LINE * self.params.ranks as u64).next_multiple_of(self.part);
        self.told + (counts + ready) * set as u64
    }

    /// P1: `shm_op` of a set. Written by the root of the operation that opens the set.
    #[inline]
    pub const fn set_op(&self, set: u32) -> FlagId {
        FlagId(self.set(set))
    }

    /// The collective that opened the set, and the bytes of a broadcast's message: written before `set_op`, so that
    /// all ranks can compare. Neither paper has it.
    #[inline]
    pub const fn set_bytes(&self, set: u32) -> CounterId {
        CounterId(self.set(set) + 8)
    }

    /// P1: `shm_nreaders` of a set; P2: its `nproc`. It is not in the line of `set_op`, which waiting ranks read.
    #[inline]
    pub const fn set_readers(&self, set: u32) -> CounterId {
        CounterId(self.set(set) + LINE)
    }

    /// P2: `typesize` of a set, the bytes of one element.
    #[inline]
    pub const fn set_typesize(&self, set: u32) -> CounterId {
        CounterId(self.told(set))
    }

    /// P2: the elements of `rank`'s block, `counts[rank]` of a set.
    #[inline]
    pub const fn set_count(&self, set: u32, rank: Rank) -> CounterId {
        CounterId(self.told(set) + 8 + 8 * rank as u64)
    }

    /// P2: `rootready[rank]` of a set: the root has written the counts.
    #[inline]
    pub const fn set_rootready(&self, set: u32, rank: Rank) -> MailId {
        let counts = (8 + 8 * self.params.ranks as u64).next_multiple_of(self.part);
        MailId(self.told(set) + counts + LINE * rank as u64)
    }

    /// P1: `shm_controls[rank][slot]`, P2: `ctrl`; one page each.
    #[inline]
    pub const fn control(&self, rank: Rank, slot: u32) -> MailId {
        MailId(self.own(rank) + self.controls + self.part * slot as u64)
    }

    /// P1: `shm_fragments[rank][slot]`.
    #[inline]
    pub const fn fragment(&self, rank: Rank, slot: u32) -> Extent {
        let at = self.own(rank) + self.fragments + self.fragment_stride * slot as u64;
        Extent::new(
            at,
            match self.params.cico {
                Some(c) => c.fragment,
                None => 0,
            },
        )
    }

    /// P2: `ctrlall[slot][receiver]` of the sender `rank`.
    #[inline]
    pub const fn control_all(&self, rank: Rank, slot: u32, receiver: Rank) -> MailId {
        let pair = match self.params.cico {
            Some(c) => c.pair(),
            None => 0,
        };
        MailId(self.own(rank) + self.pairs + pair * receiver as u64 + 8 * slot as u64)
    }

    /// The mailbox for messages from one rank to another, if there are mailboxes and such ranks.
    #[inline]
    pub fn mailbox(&self, from: Rank, to: Rank) -> Option<Pair> {
        let shape = self.params.mailboxes.filter(|_| from.max(to) < self.params.ranks)?;
        let lanes = self.own(from) + self.mail + shape.lanes()? * u64::from(to);
        Some(Pair::new(shape, lanes, self.own(to) + self.rows + shape.row() * u64::from(from)))
    }
}

#[cfg(test)]
mod tests;
