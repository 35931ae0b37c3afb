//! What the processes run: a layout and a few calls, decoded from bytes; the buffers of all calls; the oracle.

use super::Bytes;
use super::arena::Guarded;
use std::ffi::c_void;
use unisono_kernel::buffer::Buf;
use unisono_kernel::datatype::{Data, Datatype};
use unisono_kernel::op::{Op, User};
use unisono_kernel::pattern::tree::Tree;
use unisono_kernel::region::Layout;
use unisono_kernel::region::layout::{Cico, Params};
use unisono_kernel::select::{BarrierAlgorithm, BcastAlgorithm};
use unisono_kernel::shm::bcast::posted;

/// What buffers hold where nobody has written.
const FILL: u8 = 0x5C;

/// A collective call, the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    /// `shape` chooses each rank's datatype.
    Bcast { algorithm: BcastAlgorithm, root: u32, bytes: u64, shape: u8 },
    /// A barrier.
    Barrier(BarrierAlgorithm),
    /// `in_place`: a bit per rank.
    Allreduce { op: Fold, bytes: u64, in_place: u8 },
}

/// Which operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fold {
    SumF64,
    SumI64,
    /// `right = 3 · left + right` on `u32`: neither commutative nor associative.
    Affine,
}

unsafe extern "C" fn affine(left: *const c_void, right: *mut c_void, count: u64, _: *mut c_void) {
    for i in 0..count as usize {
        let (left, right) = (left.cast::<u32>().wrapping_add(i), right.cast::<u32>().wrapping_add(i));
        // SAFETY: `left` holds `count` elements, aligned, by the contract of a user's operation.
        let l = unsafe { left.read() };
        // SAFETY: so does `right`.
        let r = unsafe { right.read() };
        // SAFETY: and it is writable.
        unsafe { right.write(l.wrapping_mul(3).wrapping_add(r)) };
    }
}

impl Fold {
    pub(super) fn op(self) -> Op {
        match self {
            Self::SumF64 => Op::SUM_F64,
            Self::SumI64 => Op::SUM_I64,
            // SAFETY: `affine` reads and writes `count` elements of 4 bytes, and returns.
            Self::Affine => Op::User(unsafe { User::new(affine, std::ptr::null_mut(), 4, false) }),
        }
    }

    /// The oracle's `left ∘ right`.
    fn apply(self, left: &[u8], right: &[u8]) -> Vec<u8> {
        fn each<const N: usize>(l: &[u8], r: &[u8], f: impl Fn([u8; N], [u8; N]) -> [u8; N]) -> Vec<u8> {
            let array = |s: &[u8]| <[u8; N]>::try_from(s).expect("a whole element");
            l.chunks(N).zip(r.chunks(N)).flat_map(|(l, r)| f(array(l), array(r))).collect()
        }
        match self {
            Self::SumF64 => each(left, right, |l, r| (f64::from_le_bytes(l) + f64::from_le_bytes(r)).to_le_bytes()),
            Self::SumI64 => {
                each(left, right, |l, r| i64::from_le_bytes(l).wrapping_add(i64::from_le_bytes(r)).to_le_bytes())
            }
            Self::Affine => each(left, right, |l, r| {
                u32::from_le_bytes(l).wrapping_mul(3).wrapping_add(u32::from_le_bytes(r)).to_le_bytes()
            }),
        }
    }
}

/// A layout and the calls on it.
#[derive(Clone, Debug)]
pub(super) struct Program {
    params: Params,
    calls: Vec<Call>,
}

impl Program {
    pub(super) fn decode(bytes: &mut Bytes<'_>) -> Self {
        let ranks = 2 + bytes.below(4) as u32;
        let slots = [1, 2, 4, 6][bytes.below(4) as usize];
        let divisors: Vec<u32> = (1..=slots).filter(|q| slots % q == 0).collect();
        let sets = divisors[bytes.below(divisors.len() as u64) as usize];
        let params = Params {
            ranks,
            page: 128,
            lines: 2 << bytes.below(2),
            queue_slots: 1 << bytes.below(3),
            queue_fragment: 64 * (1 + bytes.below(3)),
            cico: Some(Cico { slots, fragment: 1 + bytes.below(97), sets }),
        };
        let calls = (0..1 + bytes.below(12)).map(|_| Self::call(bytes, &params)).collect();
        Self { params, calls }
    }

    fn call(bytes: &mut Bytes<'_>, params: &Params) -> Call {
        let kind = bytes.byte();
        match kind % 4 {
            0 | 1 => {
                let len = Self::len(bytes, params);
                let algorithm = match bytes.below(8) {
                    0 => BcastAlgorithm::Auto,
                    1 if len <= posted::MOST => BcastAlgorithm::Posted,
                    1..=3 => BcastAlgorithm::Queue,
                    4 => BcastAlgorithm::Cico(Tree::Flat),
                    5 => BcastAlgorithm::Cico(Tree::Chain),
                    6 => BcastAlgorithm::Cico(Tree::Kary(1 + u32::from(kind >> 2) % 3)),
                    _ => BcastAlgorithm::Cico(Tree::Knomial(2 + u32::from(kind >> 2) % 3)),
                };
                let root = bytes.below(params.ranks.into()) as u32;
                Call::Bcast { algorithm, root, bytes: len, shape: bytes.byte() }
            }
            2 => Call::Barrier(match kind >> 2 & 3 {
                0 => BarrierAlgorithm::Central,
                1 => BarrierAlgorithm::Combining(1 + u32::from(kind >> 4) % 3),
                _ => BarrierAlgorithm::Dissemination,
            }),
            _ => {
                let in_place = bytes.byte();
                match kind >> 2 & 3 {
                    0 => Call::Allreduce { op: Fold::Affine, bytes: 4 * bytes.below(13), in_place },
                    1 => Call::Allreduce { op: Fold::SumF64, bytes: 8 * bytes.below(7), in_place },
                    _ => Call::Allreduce { op: Fold::SumI64, bytes: 8 * bytes.below(7), in_place },
                }
            }
        }
    }

    /// Lengths at and around the edges of lines, fragments and sets.
    fn len(bytes: &mut Bytes<'_>, params: &Params) -> u64 {
        let f = params.cico.map_or(1, |c| c.fragment);
        let (choice, detail) = (bytes.byte(), bytes.below(3));
        match choice % 8 {
            0 => detail,
            1 => 8,
            2 => params.queue_fragment - 1 + detail,
            3 => f - 1 + detail,
            4 => posted::MOST - 1 + detail,
            5 => params.queue_fragment * (1 + u64::from(choice >> 3) % 9) + detail,
            6 => f * (u64::from(choice >> 3) % 13) + detail,
            _ => u64::from(choice) * 2 + detail,
        }
    }

    pub(super) fn layout(&self) -> Layout {
        Layout::new(self.params).expect("the decoder knows the bounds")
    }
}

/// How one rank's bytes of one call lie in its buffer.
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

    /// Where packed byte `i` lies, by the definition of the datatype.
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

    /// `packed` at its places, [`FILL`] elsewhere.
    fn spread(&self, packed: &[u8]) -> Vec<u8> {
        let mut memory = vec![FILL; self.extent()];
        for (i, byte) in packed.iter().enumerate() {
            memory[self.place(i)] = *byte;
        }
        memory
    }
}

/// One rank's buffers of one call.
struct Buffers {
    shape: Shape,
    send: Option<Guarded>,
    receive: Guarded,
    /// What `receive` holds at the end.
    expected: Vec<u8>,
}

/// All buffers of a program, with what they must hold at the end.
pub(super) struct Stage<'p> {
    program: &'p Program,
    /// By call, then by rank.
    buffers: Vec<Vec<Buffers>>,
}

/// Packed bytes of a rank in a call; finite as numbers of any kind.
fn pattern(call: usize, rank: usize, bytes: u64) -> Vec<u8> {
    let byte = |i: usize| (i * 37 + i / 255 + call * 11 + rank * 101 + 1) as u8;
    // The topmost byte of each word stays small: no infinities, no NaNs.
    (0..bytes as usize).map(|i| if i % 8 == 7 { byte(i) & 0x3F } else { byte(i) }).collect()
}

impl<'p> Stage<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        let ranks = program.params.ranks as usize;
        let of_call =
            |(index, call): (usize, &Call)| (0..ranks).map(|rank| buffers(index, *call, rank, ranks)).collect();
        Self { program, buffers: program.calls.iter().enumerate().map(of_call).collect() }
    }

    pub(super) fn calls(&self) -> &'p [Call] {
        &self.program.calls
    }

    /// The data that `rank` passes to call `index`: what it sends, and what it receives.
    pub(super) fn data(&self, index: usize, rank: u32) -> (Data<'_>, Data<'_>) {
        let Buffers { shape, send, receive, .. } = &self.buffers[index][rank as usize];
        let receive = shape.data(receive);
        (send.as_ref().map_or(receive, |send| shape.data(send)), receive)
    }

    /// Every buffer holds the oracle's bytes, between blocks what it held before.
    pub(super) fn check_data(&self) {
        for (index, (call, ranks)) in self.program.calls.iter().zip(&self.buffers).enumerate() {
            for (rank, buffers) in ranks.iter().enumerate() {
                assert_eq!(
                    buffers.receive.get(),
                    buffers.expected,
                    "call {index} {call:?} at rank {rank}: {:#?}",
                    self.program
                );
            }
        }
    }

    /// Guards, holes between blocks, and what is only read are as they were.
    pub(super) fn check_frame(&self) {
        for (index, (call, ranks)) in self.program.calls.iter().zip(&self.buffers).enumerate() {
            for (rank, Buffers { shape, send, receive, expected }) in ranks.iter().enumerate() {
                let place = || format!("call {index} {call:?} at rank {rank}: {:#?}", self.program);
                assert!(receive.intact(), "beyond a buffer: {}", place());
                let found = receive.get();
                if matches!(call, Call::Bcast { root, .. } if *root as usize == rank) {
                    assert_eq!(found, *expected, "the root's buffer was written: {}", place());
                }
                let hole = shape.spread(&vec![1; shape.bytes]);
                assert!(found.iter().zip(&hole).all(|(byte, hole)| *hole == 1 || *byte == FILL), "a hole: {}", place());
                if let Some(send) = send {
                    assert!(send.intact(), "beyond what is sent: {}", place());
                    assert_eq!(send.get(), pattern(index, rank, shape.bytes as u64), "what is sent: {}", place());
                }
            }
        }
    }
}

/// The buffers of `rank` in a call, and what the oracle expects in them.
fn buffers(index: usize, call: Call, rank: usize, ranks: usize) -> Buffers {
    let filled = |memory: &[u8]| {
        let guarded = Guarded::new(memory.len(), (index * 3 + rank * 5) % 16, FILL);
        guarded.set(memory);
        guarded
    };
    match call {
        Call::Bcast { root, bytes, shape, .. } => {
            let shape = Shape::new(bytes, shape.rotate_left(rank as u32 * 3));
            let packed = pattern(index, root as usize, bytes);
            let before = if rank == root as usize { shape.spread(&packed) } else { vec![FILL; shape.extent()] };
            Buffers { expected: shape.spread(&packed), send: None, receive: filled(&before), shape }
        }
        Call::Barrier(_) => Buffers { shape: Shape::new(0, 0), send: None, receive: filled(&[]), expected: Vec::new() },
        Call::Allreduce { op, bytes, in_place } => {
            let shape = Shape::new(bytes, 0);
            let of = |rank| pattern(index, rank, bytes);
            let expected = (1..ranks).fold(of(0), |sum, rank| op.apply(&sum, &of(rank)));
            let (send, receive) = if in_place >> rank & 1 == 0 {
                (Some(filled(&of(rank))), filled(&vec![FILL; bytes as usize]))
            } else {
                (None, filled(&of(rank)))
            };
            Buffers { shape, send, receive, expected }
        }
    }
}
