//! The buffers of a program's calls: their contents before, and those that the oracle expects afterwards.

use super::arena::Guarded;
use super::program::{Call, Program};
use crate::explore::fold;
use crate::oracle::mix;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};

/// The value of bytes that no rank has written.
const FILL: u8 = 0x5C;

/// The layout of one rank's bytes of one call in its buffer.
struct Shape {
    bytes: usize,
    block: usize,
    displacements: Vec<u64>,
    kind: u8,
}

impl Shape {
    /// Contiguous, vector or indexed, by `choice`; blocks of a size that divides `bytes`.
    fn new(bytes: u64, choice: u8) -> Self {
        let bytes = bytes as usize;
        let kind = if bytes == 0 { 0 } else { choice % 3 };
        let block = if kind == 0 {
            bytes.max(1)
        } else {
            [7, 5, 4, 3, 2, 1].into_iter().find(|b| bytes.is_multiple_of(*b)).unwrap_or(1)
        };
        let gap = u64::from(choice / 3 % 3);
        let count = (bytes / block) as u64;
        let displacement = |i| match kind {
            // The last block first.
            2 => (count - 1 - i) * (block as u64 + gap),
            _ => i * (block as u64 + gap),
        };
        Self { bytes, block, displacements: (0..count).map(displacement).collect(), kind }
    }

    /// The offset of packed byte `i`, by the definition of the datatype.
    fn place(&self, i: usize) -> usize {
        self.displacements[i / self.block] as usize + i % self.block
    }

    fn extent(&self) -> usize {
        self.displacements.iter().max().map_or(0, |last| *last as usize + self.block)
    }

    fn datatype(&self) -> (u64, Datatype<'_>) {
        let blocks = self.displacements.len() as u64;
        let block = self.block as u64;
        match self.kind {
            0 => (self.bytes as u64, Datatype::BYTE),
            1 => {
                let stride = self.displacements.get(1).copied().unwrap_or(block);
                (1, Datatype::Vector { blocks, block, stride })
            }
            _ => (1, Datatype::Indexed { block, displacements: &self.displacements }),
        }
    }

    /// The user's data in `memory`.
    fn data<'s>(&'s self, memory: &'s Guarded) -> Data<'s> {
        let (count, datatype) = self.datatype();
        let buf = Buf::new(memory.base(), self.extent());
        // SAFETY: the memory is as long as the extent, lives for 's, and belongs to one rank's call.
        unsafe { Data::from_raw(buf, count, datatype) }.expect("a shape fits its extent")
    }

    /// `packed` at its places, `hole` elsewhere.
    fn spread<T: Copy>(&self, packed: &[T], hole: T) -> Vec<T> {
        let mut memory = vec![hole; self.extent()];
        for (i, one) in packed.iter().enumerate() {
            memory[self.place(i)] = *one;
        }
        memory
    }
}

/// One rank's buffers of one call.
struct Buffers {
    shape: Shape,
    /// A separate send buffer, and its bytes.
    send: Option<(Guarded, Vec<u8>)>,
    receive: Guarded,
    /// The contents of `receive` before and after.
    before: Vec<u8>,
    after: Vec<u8>,
    /// For each of its bytes: may the call write it?
    written: Vec<bool>,
}

impl Buffers {
    /// The buffer `receive` alone, of which the bytes `written` may change.
    fn new((before, after): (Vec<u8>, Vec<u8>), written: Vec<bool>, skew: usize) -> Self {
        let receive = filled(&before, skew);
        Self { shape: Shape::new(0, 0), send: None, receive, before, after, written }
    }

    /// Memory of units of so many bytes, of which those that differ are written.
    fn of_units(before: Vec<u8>, after: Vec<u8>, unit: usize, skew: usize) -> Self {
        let differ = |(before, after): (&[u8], &[u8])| vec![before != after; before.len()];
        let written = before.chunks(unit).zip(after.chunks(unit)).flat_map(differ).collect();
        Self::new((before, after), written, skew)
    }
}

/// All buffers of a program, with what they must hold at the end.
pub(super) struct Stage<'p> {
    program: &'p Program,
    /// By call, then by rank.
    buffers: Vec<Vec<Buffers>>,
}

/// The packed bytes of a rank in a call, which are finite as numbers of any type.
fn pattern(call: usize, rank: usize, bytes: u64) -> Vec<u8> {
    let byte = |i: usize| (i * 37 + i / 255 + call * 11 + rank * 101 + 1) as u8;
    // The topmost byte of each word stays small: no infinities, no NaNs.
    (0..bytes as usize).map(|i| if i % 8 == 7 { byte(i) & 0x3F } else { byte(i) }).collect()
}

impl<'p> Stage<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        let (ranks, slot) = (program.params.ranks, program.params.queue_fragment as usize);
        let of_call =
            |(index, call): (usize, &Call)| (0..ranks).map(|rank| buffers(index, *call, rank, ranks, slot)).collect();
        Self { program, buffers: program.calls.iter().enumerate().map(of_call).collect() }
    }

    pub(super) fn calls(&self) -> &'p [Call] {
        &self.program.calls
    }

    /// The data that `rank` passes to call `index`: to send, and to receive.
    pub(super) fn data(&self, index: usize, rank: u32) -> (Data<'_>, Data<'_>) {
        let Buffers { shape, send, receive, .. } = &self.buffers[index][rank as usize];
        let receive = shape.data(receive);
        (send.as_ref().map_or(receive, |(send, _)| shape.data(send)), receive)
    }

    /// The memory that `rank` passes to call `index`, where the call itself divides it into send and receive buffers.
    pub(super) fn memory(&self, index: usize, rank: u32) -> *mut u8 {
        self.buffers[index][rank as usize].receive.base()
    }

    fn each(&self) -> impl Iterator<Item = (&Buffers, String)> {
        self.program.calls.iter().zip(&self.buffers).enumerate().flat_map(move |(index, (call, ranks))| {
            let place = move |rank| format!("call {index} {call:?} at rank {rank}: {:#?}", self.program);
            ranks.iter().enumerate().map(move |(rank, buffers)| (buffers, place(rank)))
        })
    }

    /// Asserts that every buffer holds the oracle's bytes, and its old ones between blocks.
    pub(super) fn check_data(&self) {
        for (buffers, place) in self.each() {
            assert_eq!(buffers.receive.get(), buffers.after, "{place}");
        }
    }

    /// Asserts that guards, holes between blocks, and send buffers are unchanged.
    pub(super) fn check_frame(&self) {
        for (Buffers { send, receive, before, written, .. }, place) in self.each() {
            assert!(receive.intact(), "beyond a buffer: {place}");
            let kept =
                receive.get().iter().zip(before).zip(written).all(|((now, before), written)| *written || now == before);
            assert!(kept, "what is not received into: {place}");
            if let Some((send, bytes)) = send {
                assert!(send.intact(), "beyond what is sent: {place}");
                assert_eq!(send.get(), *bytes, "what is sent: {place}");
            }
        }
    }
}

fn filled(bytes: &[u8], skew: usize) -> Guarded {
    let guarded = Guarded::new(bytes.len(), skew, FILL);
    guarded.set(bytes);
    guarded
}

/// The buffers of `rank` in a call, and what the oracle expects in them.
fn buffers(index: usize, call: Call, rank: u32, ranks: u32, slot: usize) -> Buffers {
    let skew = (index * 3 + rank as usize * 5) % 16;
    let pattern = |rank: u32, bytes| pattern(index, rank as usize, bytes);
    match call {
        Call::Bcast { root, bytes, shape, .. } => {
            let shape = Shape::new(bytes, shape.rotate_left(rank * 3));
            let packed = pattern(root, bytes);
            let after = shape.spread(&packed, FILL);
            let before = if rank == root { after.clone() } else { vec![FILL; shape.extent()] };
            let written = shape.spread(&vec![rank != root; shape.bytes], false);
            Buffers { shape, ..Buffers::new((before, after), written, skew) }
        }
        Call::Barrier(_) => Buffers::new((Vec::new(), Vec::new()), Vec::new(), skew),
        Call::Allreduce { op, bytes, in_place } => {
            let own = pattern(rank, bytes);
            let after = (1..ranks).fold(pattern(0, bytes), |sum, rank| op.apply(&sum, &pattern(rank, bytes)));
            let written = vec![true; bytes as usize];
            let (send, before) = if in_place >> rank & 1 == 0 {
                (Some((filled(&own, skew), own)), vec![FILL; bytes as usize])
            } else {
                (None, own)
            };
            Buffers { shape: Shape::new(bytes, 0), send, ..Buffers::new((before, after), written, skew) }
        }
        Call::Spread(spread) => {
            // Every byte differs from its value before the call.
            let data = |rank, len: usize| pattern(rank, len as u64).iter().map(|byte| byte & 0x7F).collect();
            let [before, after] = [false, true].map(|done| spread.fill(ranks, rank, done, data));
            Buffers::of_units(before, after, 4, skew)
        }
        Call::Uneven(uneven) => {
            let block = |from: u32, to: u32, len| self::pattern(index + 16 * to as usize, from as usize, len);
            let all = |byte: u8| move |_, len: u64| vec![byte; len as usize];
            let sent = |to, len| block(rank, to, len);
            let before = uneven.fill(ranks, slot as u64, rank, all(FILL), sent);
            let after = uneven.fill(ranks, slot as u64, rank, |from, len| block(from, rank, len), sent);
            let written =
                uneven.fill(ranks, slot as u64, rank, all(1), all(0)).into_iter().map(|byte| byte == 1).collect();
            Buffers::new((before, after), written, skew)
        }
        Call::Exchange { exchange, ordered } => {
            let word = |rank: u32, k: usize| mix((index as u64) << 40 | u64::from(rank) << 32 | k as u64);
            let fold = if ordered { fold } else { u64::wrapping_add };
            let [before, after] = [false, true].map(|done| exchange.fill(ranks, slot, rank, done, word, fold));
            // The operation that does not commute takes whole words.
            Buffers::of_units(before, after, 8, skew / 8 * 8)
        }
    }
}
