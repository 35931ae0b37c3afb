//! A rank's buffers for one call: the places of blocks, the data before a round, and the right data when it is
//! complete.

use crate::fill::{BLANK, Source, arrives};
use crate::program::{Call as Called, Name, Op, Program, Shape, Side};
use core::ffi::c_void;
use std::cell::Cell;
use unisono_kernel::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm, ReduceAlgorithm,
    ReduceScatterAlgorithm, ScanAlgorithm,
};
use unisono_kernel::call::Call;
use unisono_kernel::data::blocks::{Block, Blocks as Kernels};
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype, Field};
use unisono_kernel::error::Refusal;
use unisono_kernel::op::{self, User};

/// Bytes after a buffer's last block, which must not be written.
const GUARD: u64 = 24;

/// A datatype's arrays.
#[derive(Clone, Debug)]
struct Kind {
    shape: Shape,
    element: u64,
    displacements: Vec<u64>,
    fields: [Field; 2],
}

impl Kind {
    fn new(shape: Shape, element: u64) -> Self {
        let blocks = if let Shape::Backwards { block, .. } = shape { element / block } else { 0 };
        let displacements = (0..blocks).map(|at| shape.place(element, at * (element / blocks))).collect();
        let first = if let Shape::Struct { block, .. } = shape { block } else { 0 };
        let field = |at, bytes| Field { displacement: shape.place(element, at), bytes };
        Self {
            shape,
            element,
            displacements,
            fields: [field(0, first), field(first.min(element - 1), element - first)],
        }
    }

    fn datatype(&self) -> Datatype<'_> {
        match self.shape {
            Shape::Dense => Datatype::Contiguous { bytes: self.element },
            Shape::Vector { block, gap } => {
                Datatype::Vector { blocks: self.element / block, block, stride: block + gap }
            }
            Shape::Backwards { block, .. } => Datatype::Indexed { block, displacements: &self.displacements },
            Shape::Struct { .. } => Datatype::Struct { fields: &self.fields, extent: self.extent() },
        }
    }

    const fn extent(&self) -> u64 {
        self.shape.extent(self.element)
    }
}

/// One side's memory: a block, or one for each rank.
#[derive(Debug)]
struct Buffer {
    cells: Vec<Cell<u8>>,
    counts: Vec<u64>,
    /// The blocks' displacements: in extents, for `alltoallw` in bytes.
    displacements: Vec<u64>,
    /// The shapes of blocks of even ranks, and of odd ones.
    kinds: [Kind; 2],
    in_bytes: bool,
}

impl Buffer {
    fn new(call: &Called, rank: u32, side: Side, counts: Vec<u64>) -> Self {
        let kinds = [0, 1].map(|peer| Kind::new(call.shape(rank, side, peer), call.element));
        let in_bytes = call.name == Name::Alltoallw;
        let reversed = call.name.varies() && !call.name.folds() && call.reversed(rank) && counts.len() > 1;
        let unit = |peer: usize| if in_bytes { kinds[peer % 2].extent() } else { 1 };
        let mut displacements = vec![0; counts.len()];
        let mut end = 0;
        let mut place = |peer: usize, gap: u64| {
            displacements[peer] = end;
            end += (counts[peer] + gap) * unit(peer);
        };
        if reversed {
            (0..counts.len()).rev().for_each(|peer| place(peer, 1));
        } else {
            (0..counts.len()).for_each(|peer| place(peer, 0));
        }
        let bytes = end * if in_bytes { 1 } else { kinds[0].extent() } + GUARD;
        Self { cells: vec![Cell::new(BLANK); bytes as usize], counts, displacements, kinds, in_bytes }
    }

    const fn kind(&self, peer: usize) -> &Kind {
        &self.kinds[if self.in_bytes { peer % 2 } else { 0 }]
    }

    /// The offset of a packed byte of a block.
    fn place(&self, peer: usize, at: u64) -> usize {
        let kind = self.kind(peer);
        let begin = self.displacements[peer] * if self.in_bytes { 1 } else { kind.extent() };
        (begin + at / kind.element * kind.extent() + kind.shape.place(kind.element, at % kind.element)) as usize
    }

    fn put(&self, peer: usize, bytes: &[u8]) {
        for (at, byte) in (0..).zip(bytes) {
            self.cells[self.place(peer, at)].set(*byte);
        }
    }

    fn memory(&self) -> Buf {
        Buf::new(self.cells.as_ptr().cast::<u8>().cast_mut(), self.cells.len())
    }

    /// The first block.
    fn data(&self, count: u64) -> Result<Data<'_>, Refusal> {
        // SAFETY: cells, which outlive the data; this thread alone uses them.
        unsafe { Data::from_raw(self.memory(), count, self.kinds[0].datatype()) }
    }

    fn blocks<'a>(&'a self, each: &'a [Block<'a>], vary: bool) -> Result<Kernels<'a>, Refusal> {
        let (memory, datatype) = (self.memory(), self.kinds[0].datatype());
        if self.in_bytes {
            // SAFETY: as above.
            unsafe { Kernels::each(memory, each) }
        } else if vary {
            // SAFETY: as above.
            unsafe { Kernels::vary(memory, &self.counts, &self.displacements, datatype) }
        } else {
            // SAFETY: as above.
            unsafe { Kernels::equal(memory, self.counts.len() as u32, self.counts[0], datatype) }
        }
    }

    fn each(&self) -> Vec<Block<'_>> {
        let block = |(peer, (&count, &displacement)): (usize, (&u64, &u64))| Block {
            displacement,
            count,
            datatype: self.kind(peer).datatype(),
        };
        self.counts.iter().zip(&self.displacements).enumerate().map(block).collect()
    }
}

/// A side's blocks as plain bytes: for runners without datatypes, where blocks have no holes.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// The side's memory.
    pub memory: Buf,
    /// The bytes of each block.
    pub bytes: Vec<u64>,
    /// The displacement of each block.
    pub begins: Vec<u64>,
}

/// A rank's data in a call, round after round.
#[derive(Debug)]
pub struct Memory<'p> {
    seed: u32,
    number: usize,
    call: &'p Called,
    size: u32,
    rank: u32,
    send: Option<Buffer>,
    receive: Option<Buffer>,
}

impl<'p> Memory<'p> {
    /// The buffers of a rank of the whole program, for each call on a communicator of which it is a member.
    pub fn all(program: &'p Program, groups: &[Vec<u32>], rank: u32) -> Vec<Option<Self>> {
        let one = |(number, call): (usize, &Called)| {
            let group = &groups[call.comm];
            let place = group.iter().position(|&member| member == rank)?;
            Some(Self::new(program, number, group.len() as u32, place as u32))
        };
        program.calls.iter().enumerate().map(one).collect()
    }

    /// All bytes of both sides.
    pub fn cells(&self) -> impl Iterator<Item = &Cell<u8>> {
        self.send.iter().chain(&self.receive).flat_map(|buffer| &buffer.cells)
    }

    /// The buffers of `rank` of `size`.
    pub fn new(program: &'p Program, number: usize, size: u32, rank: u32) -> Self {
        use Name::*;
        let call = &program.calls[number];
        let all = 0..size;
        let (to_each, from_each) = (|peer| call.count(size, rank, peer), |peer| call.count(size, peer, rank));
        let (at_root, own) = (rank == call.root, call.count(size, rank, rank));
        let send = match call.name {
            Barrier | Dup | Split | Free => None,
            Scatter | Scatterv => at_root.then(|| all.clone().map(to_each).collect()),
            Alltoall | Alltoallv | Alltoallw => Some(all.clone().map(to_each).collect()),
            ReduceScatter | ReduceScatterBlock => Some(all.clone().map(to_each).collect()),
            _ => Some(vec![own]),
        };
        let receive = match call.name {
            Barrier | Bcast | Dup | Split | Free => None,
            Gather | Gatherv => at_root.then(|| all.clone().map(from_each).collect()),
            Allgather | Allgatherv | Alltoall | Alltoallv | Alltoallw => Some(all.clone().map(from_each).collect()),
            Reduce => at_root.then(|| vec![own]),
            // In place all ranks' operands lie in the receive buffer.
            ReduceScatter | ReduceScatterBlock if call.in_place => send.clone(),
            _ => Some(vec![own]),
        };
        let in_place = call.in_place && (at_root || !call.name.rooted());
        let (send, receive) = match call.name {
            Scatter | Scatterv if in_place => (send, None),
            _ if in_place => (None, receive),
            _ => (send, receive),
        };
        let buffer = |side, counts: Option<Vec<u64>>| counts.map(|counts| Buffer::new(call, rank, side, counts));
        let (send, receive) = (buffer(Side::Send, send), buffer(Side::Receive, receive));
        Self { seed: program.seed, number, call, size, rank, send, receive }
    }

    /// A side, if there is one.
    pub fn side(&self, side: Side) -> Option<Blocks> {
        let buffer = if side == Side::Send { &self.send } else { &self.receive }.as_ref()?;
        let begin = |at: &u64| at * if buffer.in_bytes { 1 } else { self.call.element };
        Some(Blocks {
            memory: buffer.memory(),
            bytes: buffer.counts.iter().map(|count| count * self.call.element).collect(),
            begins: buffer.displacements.iter().map(begin).collect(),
        })
    }

    /// The call's reduction operation.
    pub fn op(&self) -> op::Op {
        operation(self.call)
    }

    /// Is this rank's send side in place, or at a scatter's root its receive side?
    pub const fn in_place(&self) -> bool {
        self.call.in_place && (self.rank == self.call.root || !self.call.name.rooted())
    }

    /// Blocks that this rank sends, with the block of the buffer where they lie.
    fn sent(&self) -> Vec<(u32, usize)> {
        use Name::*;
        let (own, all) = (vec![(self.rank, self.rank as usize)], (0..self.size).map(|peer| (peer, peer as usize)));
        match self.call.name {
            Bcast if self.rank != self.call.root => Vec::new(),
            Scatter | Scatterv if self.rank != self.call.root => Vec::new(),
            Scatter | Scatterv | Alltoall | Alltoallv | Alltoallw | ReduceScatter | ReduceScatterBlock => all.collect(),
            Gather | Gatherv | Allgather | Allgatherv if self.in_place() => own,
            _ => vec![(self.rank, 0)],
        }
    }

    fn source(&self, round: u32, to: u32) -> Vec<u8> {
        let count = self.call.count(self.size, self.rank, to);
        Source::new(self.seed, (self.number, self.call), round, (self.rank, to)).bytes(count * self.call.element)
    }

    /// Fills the buffers with the data that is sent in a round.
    pub fn fill(&self, round: u32) {
        for buffer in self.send.iter().chain(&self.receive) {
            buffer.cells.iter().for_each(|cell| cell.set(BLANK));
        }
        let from = if self.send.is_some() { &self.send } else { &self.receive };
        if let Some(buffer) = from {
            for (to, block) in self.sent() {
                buffer.put(block, &self.source(round, to));
            }
        }
    }

    /// What is wrong after a round.
    pub fn wrong(&self, round: u32) -> Option<String> {
        use Name::*;
        let folded = matches!(self.call.name, ReduceScatter | ReduceScatterBlock) && self.in_place();
        let (is_scatter, is_bcast) = (matches!(self.call.name, Scatter | Scatterv), self.call.name == Bcast);
        for (side, buffer) in [("send", &self.send), ("receive", &self.receive)] {
            let Some(buffer) = buffer else { continue };
            let mut wanted = vec![Some(BLANK); buffer.cells.len()];
            let mut put = |block: usize, bytes: &[u8]| {
                for (at, byte) in (0..).zip(bytes) {
                    wanted[buffer.place(block, at)] = Some(*byte);
                }
            };
            let holds_sent = side == "send" || self.in_place() && !is_scatter;
            if holds_sent {
                self.sent().into_iter().for_each(|(to, block)| put(block, &self.source(round, to)));
            }
            if side == "receive" || is_bcast {
                for block in 0..if folded { 1 } else { buffer.counts.len() } {
                    let arrived =
                        arrives(self.seed, (self.number, self.call), round, self.size, self.rank, block as u32);
                    if let Some(bytes) = arrived {
                        put(block, &bytes);
                        if folded {
                            // The bytes of operands after the result are undefined.
                            let result = buffer.place(0, 0)..bytes.len();
                            let all = wanted.len() - GUARD as usize;
                            wanted[result.end..all].fill(None);
                            break;
                        }
                    }
                }
            }
            let differs = |(cell, wanted): (&Cell<u8>, &Option<u8>)| wanted.is_some_and(|byte| byte != cell.get());
            if let Some(at) = buffer.cells.iter().zip(&wanted).position(differs) {
                let (is, must) = (buffer.cells[at].get(), wanted[at].unwrap_or(0));
                let name = self.call.name.name();
                return Some(format!(
                    "call {} ({name}), round {round}: byte {at} of {} to {side} is {is}, must be {must}",
                    self.number,
                    buffer.cells.len() - GUARD as usize
                ));
            }
        }
        None
    }
}

/// A memory with the arrays that its call needs.
#[derive(Debug)]
pub struct View<'m> {
    memory: &'m Memory<'m>,
    send: Vec<Block<'m>>,
    receive: Vec<Block<'m>>,
}

impl<'m> View<'m> {
    /// The arrays for this memory.
    pub fn new(memory: &'m Memory<'m>) -> Self {
        let each = |buffer: &'m Option<Buffer>| match buffer {
            Some(buffer) if buffer.in_bytes => buffer.each(),
            _ => Vec::new(),
        };
        Self { memory, send: each(&memory.send), receive: each(&memory.receive) }
    }

    /// The memory.
    pub const fn memory(&self) -> &'m Memory<'m> {
        self.memory
    }

    /// The kernel's call.
    ///
    /// # Errors
    /// The buffers are refused: the program is not legal.
    pub fn call(&self) -> Result<Call<'_>, Refusal> {
        use Name::*;
        let Memory { call, size, rank, send, receive, .. } = self.memory;
        let (name, algorithm, root) = (call.name, call.algorithm.as_str(), call.root);
        let (at_root, own) = (*rank == root, call.count(*size, *rank, *rank));
        let one = |buffer: &'m Option<Buffer>| buffer.as_ref().map(|buffer| buffer.data(own)).transpose();
        let all = |buffer: &'m Option<Buffer>, each| {
            buffer.as_ref().map(|buffer| buffer.blocks(each, name.varies())).transpose()
        };
        let nothing = || Data::cells(&[]);
        let no_blocks = || Kernels::each_mut(&mut [], &[]);
        let (op, moves) = (operation(call), MoveAlgorithm::from_name(algorithm).unwrap_or_default());
        // Folds in place have the same data twice.
        let fold = |receives: bool| -> Result<(Data<'_>, Option<Data<'_>>), Refusal> {
            let (from, to) = (one(send)?, one(receive)?);
            Ok((from.or(to).unwrap_or_else(nothing), if receives { to } else { None }))
        };
        Ok(match name {
            Barrier | Dup | Split | Free => {
                Call::Barrier { algorithm: BarrierAlgorithm::from_name(algorithm).unwrap_or_default() }
            }
            Bcast => Call::Bcast {
                data: one(send)?.unwrap_or_else(nothing),
                root,
                algorithm: BcastAlgorithm::from_name(algorithm).unwrap_or_default(),
            },
            Gather => Call::Gather { send: one(send)?, receive: all(receive, &self.receive)?, root, algorithm: moves },
            Gatherv => {
                Call::Gatherv { send: one(send)?, receive: all(receive, &self.receive)?, root, algorithm: moves }
            }
            Scatter => Call::Scatter { send: all(send, &self.send)?, receive: one(receive)?, root, algorithm: moves },
            Scatterv => Call::Scatterv { send: all(send, &self.send)?, receive: one(receive)?, root, algorithm: moves },
            Allgather | Allgatherv => Call::Allgather {
                send: one(send)?,
                receive: all(receive, &self.receive)?.map_or_else(no_blocks, Ok)?,
                algorithm: moves,
            },
            Alltoall => Call::Alltoall {
                send: all(send, &self.send)?,
                receive: all(receive, &self.receive)?.map_or_else(no_blocks, Ok)?,
                algorithm: AlltoallAlgorithm::from_name(algorithm).unwrap_or_default(),
            },
            Alltoallv | Alltoallw => Call::Alltoallv {
                send: all(send, &self.send)?,
                receive: all(receive, &self.receive)?.map_or_else(no_blocks, Ok)?,
            },
            Reduce => {
                let (send, receive) = fold(at_root)?;
                Call::Reduce {
                    send,
                    receive,
                    op,
                    root,
                    algorithm: ReduceAlgorithm::from_name(algorithm).unwrap_or_default(),
                }
            }
            Allreduce => {
                let (send, receive) = fold(true)?;
                let algorithm = AllreduceAlgorithm::from_name(algorithm).unwrap_or_default();
                Call::Allreduce { send, receive: receive.unwrap_or_else(nothing), op, algorithm }
            }
            ReduceScatter | ReduceScatterBlock => Call::ReduceScatter {
                send: all(if send.is_some() { send } else { receive }, &self.send)?.map_or_else(no_blocks, Ok)?,
                receive: one(receive)?.unwrap_or_else(nothing),
                op,
                algorithm: ReduceScatterAlgorithm::from_name(algorithm).unwrap_or_default(),
            },
            Scan | Exscan => {
                let (send, receive) = fold(true)?;
                let receive = receive.unwrap_or_else(nothing);
                let algorithm = ScanAlgorithm::from_name(algorithm).unwrap_or_default();
                match name {
                    Scan => Call::Scan { send, receive, op, algorithm },
                    _ => Call::Exscan { send, receive, op, algorithm },
                }
            }
        })
    }
}

/// The kernel's operation.
fn operation(call: &Called) -> op::Op {
    let user = |function, commutes| {
        let element = core::ptr::without_provenance_mut(call.element as usize);
        // SAFETY: the functions below read and write `count` elements of as many bytes as their context says.
        op::Op::User(unsafe { User::new(function, element, call.element, commutes) })
    };
    match call.op {
        Op::None | Op::Sum64 => op::Op::SUM_U64,
        Op::Sum8 => op::Op::new(op::Operation::Sum, op::Element::U8).unwrap_or(op::Op::SUM_U64),
        Op::Xor64 => op::Op::BXOR_U64,
        Op::Max64 => op::Op::MAX_U64,
        Op::Add => user(add, true),
        Op::Affine => user(affine, false),
    }
}

unsafe extern "C-unwind" fn add(left: *const c_void, right: *mut c_void, count: u64, element: *mut c_void) {
    // SAFETY: the kernel's contract.
    unsafe { fold(Op::Add, left, right, count, element.addr()) }
}

unsafe extern "C-unwind" fn affine(left: *const c_void, right: *mut c_void, count: u64, element: *mut c_void) {
    // SAFETY: the kernel's contract.
    unsafe { fold(Op::Affine, left, right, count, element.addr()) }
}

/// `right = left ∘ right`.
///
/// # Safety
/// `count` elements of `element` bytes at both.
unsafe fn fold(op: Op, left: *const c_void, right: *mut c_void, count: u64, element: usize) {
    let bytes = count as usize * element;
    // SAFETY: the caller's promise.
    let left = unsafe { core::slice::from_raw_parts(left.cast::<u8>(), bytes) };
    // SAFETY: as above, writable, and apart from `left`.
    let right = unsafe { core::slice::from_raw_parts_mut(right.cast::<u8>(), bytes) };
    for (left, right) in left.chunks(element).zip(right.chunks_mut(element)) {
        let mut folded = left.to_vec();
        op.fold(&mut folded, right);
        right.copy_from_slice(&folded);
    }
}
