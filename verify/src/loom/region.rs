//! [`Region`] over loom's words and cells: every access to shared memory is an event that loom orders.

use super::word::{Mutant, Role, Word};
use ::loom::cell::UnsafeCell;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::sync::Arc;
use unisono_kernel::Rank;
use unisono_kernel::collective::Kind;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::op::Op;
use unisono_kernel::region::LINE;
use unisono_kernel::region::layout::LINE_ROOM;
use unisono_kernel::region::{CounterId, Extent, FlagId, Lap, Layout, Loan, MailId, Region, Unreadable};

/// The offset of an announcement's words: outside the layout, as a process's announcements are outside its
/// communicators' segments.
const NOTICE: u64 = 1 << 62;
/// The announcement's words: its number, and its contents.
const NOTICE_WORDS: u64 = 3;

/// Payload may be padding of a private buffer (R15): copied, not looked at.
type Bytes = Box<[MaybeUninit<u8>]>;

/// One segment of one execution, as one rank sees it (shared by a plain `Arc`: counting is not modelled).
#[derive(Debug)]
pub struct Segment {
    words: BTreeMap<u64, Word>,
    shared: Arc<Shared>,
    rank: Rank,
    lending: Cell<Lending>,
    laps: Cell<bool>,
}

/// Does a rank lend its messages, and can it read what others lend? What is lent is a cell, which is written when the
/// message is lent: so a reader that is late races with the next message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lending {
    /// It lends.
    pub lends: bool,
    /// It can read.
    pub reads: bool,
}

#[derive(Debug)]
struct Shared {
    /// By first byte. A line's body, a slot or a fragment is one cell: one writer, no part of it
    /// is written while another is read.
    payload: BTreeMap<u64, UnsafeCell<Bytes>>,
    /// One plain word per rank, outside the layout, whose accesses barriers must order (R13).
    notes: Vec<UnsafeCell<u64>>,
    /// What each rank has lent last.
    lent: Vec<UnsafeCell<Vec<MaybeUninit<u8>>>>,
}

// SAFETY: loom's cells are shared on purpose: loom itself fails an execution in which two accesses race.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Segment {
    /// All words and extents of `layout`, zero, for each rank. To be made inside a model, before its threads start.
    pub fn new(layout: &Layout, mutant: Option<Mutant>) -> Vec<Self> {
        let mut shared = Shared { payload: BTreeMap::new(), notes: Vec::new(), lent: Vec::new() };
        let mut words = Vec::new();
        words.resize_with(layout.ranks() as usize, BTreeMap::new);
        let mut word = |role, at| {
            for (words, word) in words.iter_mut().zip(Word::new(role, mutant, layout.ranks())) {
                words.insert(at, word);
            }
        };
        let mut extent = |at: Extent| {
            shared.payload.insert(at.offset(), UnsafeCell::new(vec![MaybeUninit::new(0); at.len() as usize].into()));
        };
        let params = layout.params();
        for index in 0..NOTICE_WORDS {
            word(Role::Announcement, NOTICE + 8 * index);
        }
        word(Role::State, layout.state().offset());
        word(Role::Central, layout.central_count().offset());
        for rank in 0..layout.ranks() {
            let done = layout.done(rank).offset();
            word(Role::Done, done);
            word(Role::Acked, layout.acked(rank).offset());
            word(Role::Left, layout.left(rank).offset());
            word(Role::Answer, layout.answer(rank).offset());
            word(Role::Ready, layout.ready(rank).offset());
            word(Role::Arrive, layout.arrive(rank).offset());
            word(Role::Release, layout.release(rank).offset());
            // The record is private to the kernel: four words in the line after `release`.
            for index in 0..4 {
                word(Role::Record, layout.release(rank).offset() + LINE + 8 * index);
            }
            for round in 0..layout.rounds() {
                word(Role::Round, layout.round(rank, round).offset());
                for turn in [false, true] {
                    word(Role::Partial, layout.partial(rank, turn, round).offset());
                    extent(layout.partial_body(rank, turn, round));
                }
            }
            for line in 0..params.lines.into() {
                word(Role::Line, layout.line(rank, line).offset());
                extent(layout.line_body(rank, line, LINE_ROOM));
            }
            for slot in 0..params.queue_slots.into() {
                extent(layout.slot(rank, slot));
            }
            for slot in 0..params.cico.map_or(0, |c| c.slots) {
                word(Role::Control, layout.control(rank, slot).offset());
                for receiver in 0..layout.ranks() {
                    word(Role::ControlAll, layout.control_all(rank, slot, receiver).offset());
                }
                extent(layout.fragment(rank, slot));
            }
            for mailbox in (0..layout.ranks()).filter_map(|to| layout.mailbox(rank, to)) {
                for message in 0..mailbox.shape().messages.into() {
                    word(Role::MailAcked, mailbox.acked(message).offset());
                    extent(mailbox.head(message));
                    for slot in 0..mailbox.shape().slots.into() {
                        word(Role::MailSequence, mailbox.sequence(message, slot).offset());
                        extent(mailbox.payload(message, slot));
                    }
                }
            }
            shared.notes.push(UnsafeCell::new(0));
            shared.lent.push(UnsafeCell::new(Vec::new()));
        }
        for set in 0..params.cico.map_or(0, |c| c.sets) {
            word(Role::SetOp, layout.set_op(set).offset());
            word(Role::SetBytes, layout.set_bytes(set).offset());
            word(Role::SetReaders, layout.set_readers(set).offset());
            word(Role::Typesize, layout.set_typesize(set).offset());
            for rank in 0..layout.ranks() {
                word(Role::Count, layout.set_count(set, rank).offset());
                word(Role::RootReady, layout.set_rootready(set, rank).offset());
            }
        }
        let shared = Arc::new(shared);
        let seat = |(rank, words)| Self {
            words,
            shared: Arc::clone(&shared),
            rank,
            lending: Cell::default(),
            laps: Cell::default(),
        };
        (0..).zip(words).map(seat).collect()
    }

    /// Sets whether this rank lends, and whether it can read.
    pub fn set_lending(&self, lending: Lending) {
        self.lending.set(lending);
    }

    /// From now on the lap of this rank's queue has one slot in every second operation.
    pub fn change_laps(&self) {
        self.laps.set(true);
    }

    fn word(&self, offset: u64) -> &Word {
        self.words.get(&offset).unwrap_or_else(|| panic!("model assertion: no word at {offset}"))
    }

    /// The words of an announcement, by index.
    pub fn announcement(&self, index: usize) -> Option<&Word> {
        self.words.get(&(NOTICE + 8 * index as u64))
    }

    fn cell(&self, at: Extent) -> (&UnsafeCell<Bytes>, usize) {
        let (first, cell) = self.shared.payload.range(..=at.offset()).next_back().expect("model assertion: no extent");
        (cell, (at.offset() - first) as usize)
    }

    /// Writes the note of `rank`.
    pub fn write_note(&self, rank: u32, value: u64) {
        // SAFETY: loom fails the execution if another access is concurrent with this one.
        self.shared.notes[rank as usize].with_mut(|note| unsafe { *note = value });
    }

    /// Reads the note of `rank`.
    pub fn read_note(&self, rank: u32) -> u64 {
        // SAFETY: loom fails the execution if a write is concurrent with this read.
        self.shared.notes[rank as usize].with(|note| unsafe { *note })
    }
}

// SAFETY: ranks share one table of words and cells; words are loom's atomics with the
// kernel's orderings (but for a mutant's); copies are slices of one cell, cut to the shorter length.
unsafe impl Region for Segment {
    type Flag = Word;
    type Mailword = Word;
    type Counter = Word;

    fn flag(&self, id: FlagId) -> &Word {
        self.word(id.offset())
    }
    fn mail(&self, id: MailId) -> &Word {
        self.word(id.offset())
    }
    fn counter(&self, id: CounterId) -> &Word {
        self.word(id.offset())
    }

    unsafe fn write(&self, at: Extent, src: Buf) {
        let len = src.len().min(at.len() as usize);
        // SAFETY: the caller's promise: readable, and private to this thread.
        let src = unsafe { std::slice::from_raw_parts(src.ptr().cast::<MaybeUninit<u8>>(), len) };
        let (cell, from) = self.cell(at);
        cell.with_mut(|bytes| {
            // SAFETY: loom fails the execution if another access is concurrent with this one.
            let bytes = unsafe { &mut *bytes };
            bytes[from..from + len].copy_from_slice(src);
        });
    }

    unsafe fn read(&self, at: Extent, dst: Buf) {
        let len = dst.len().min(at.len() as usize);
        // SAFETY: the caller's promise: writable and exclusive.
        let dst = unsafe { std::slice::from_raw_parts_mut(dst.ptr().cast::<MaybeUninit<u8>>(), len) };
        let (cell, from) = self.cell(at);
        cell.with(|bytes| {
            // SAFETY: loom fails the execution if a write is concurrent with this read.
            let bytes = unsafe { &*bytes };
            dst.copy_from_slice(&bytes[from..from + len]);
        });
    }

    unsafe fn fold(&self, at: Extent, acc: Buf, op: &Op) {
        let len = acc.len().min(at.len() as usize);
        let (cell, from) = self.cell(at);
        cell.with(|bytes| {
            // SAFETY: loom fails the execution if a write is concurrent with this read.
            let bytes = unsafe { &*bytes };
            let left = bytes[from..from + len].as_ptr().cast();
            // SAFETY: `len` bytes of the cell; `acc` by the caller's promise.
            unsafe { op.fold_raw(left, acc.ptr(), op.whole(len as u64)) };
        });
    }

    fn lap(&self, operation: u64) -> Lap {
        if self.laps.get() { Lap::wide(1 << (operation % 2)) } else { Lap::ALL }
    }

    fn lend(&self, memory: Buf, _: Kind) -> Option<Loan> {
        if !self.lending.get().lends || memory.is_empty() {
            return None;
        }
        // SAFETY: readable, and this rank's, by the caller's promise.
        let memory = unsafe { std::slice::from_raw_parts(memory.ptr().cast::<MaybeUninit<u8>>(), memory.len()) };
        // SAFETY: loom fails the execution if another access is concurrent with this one.
        self.shared.lent[self.rank as usize].with_mut(|lent| unsafe { *lent = memory.to_vec() });
        Some(Loan { way: NonZeroU64::MIN, at: 0 })
    }

    fn borrows(&self) -> bool {
        self.lending.get().reads
    }

    unsafe fn fetch(&self, lender: Rank, _: Loan, from: u64, dst: Buf) -> Result<(), Unreadable> {
        // SAFETY: the caller's promise: writable and exclusive.
        let dst = unsafe { std::slice::from_raw_parts_mut(dst.ptr().cast::<MaybeUninit<u8>>(), dst.len()) };
        self.lent(lender, from, dst.len(), |lent| dst.copy_from_slice(lent))
    }

    unsafe fn fold_loan(&self, lender: Rank, _: Loan, from: u64, acc: Buf, op: &Op) -> Result<(), Unreadable> {
        // SAFETY: the elements of `lent`, which is as long as `acc`; `acc` by the caller's promise.
        let fold = |lent: &[MaybeUninit<u8>]| unsafe {
            op.fold_raw(lent.as_ptr().cast(), acc.ptr(), op.whole(lent.len() as u64))
        };
        self.lent(lender, from, acc.len(), fold)
    }
}

impl Segment {
    /// Writes what this rank has lent: as its caller may do when the operation has ended.
    pub fn take_back(&self) {
        // SAFETY: loom fails the execution if another access is concurrent with this one.
        self.shared.lent[self.rank as usize].with_mut(|lent| unsafe { (*lent).fill(MaybeUninit::new(0)) });
    }

    /// Calls `act` with bytes that `lender` lends, if this rank can read them.
    fn lent(
        &self,
        lender: Rank,
        from: u64,
        len: usize,
        act: impl FnOnce(&[MaybeUninit<u8>]),
    ) -> Result<(), Unreadable> {
        if !self.lending.get().reads {
            return Err(Unreadable { changed: false });
        }
        self.shared.lent[lender as usize].with(|lent| {
            // SAFETY: loom fails the execution if a write is concurrent with this read.
            let lent = unsafe { &*lent };
            act(&lent[from as usize..from as usize + len]);
        });
        Ok(())
    }
}
