//! Each collective on memory that a rank keeps, and the right results.

use std::cell::Cell;
use unisono_kernel::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm, ReduceAlgorithm,
    ReduceScatterAlgorithm, ScanAlgorithm,
};
use unisono_kernel::call::Call;
use unisono_kernel::data::blocks::Blocks;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::data::datatype::{Data, Datatype};
use unisono_kernel::op::Op;
use unisono_kernel::pattern::tree::Tree;

/// A collective, by an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Barrier(BarrierAlgorithm),
    Bcast(BcastAlgorithm),
    Gather(MoveAlgorithm),
    Gatherv(MoveAlgorithm),
    Scatter(MoveAlgorithm),
    Scatterv(MoveAlgorithm),
    Allgather(MoveAlgorithm),
    Allgatherv(MoveAlgorithm),
    Alltoall(AlltoallAlgorithm),
    Alltoallv,
    Reduce(ReduceAlgorithm),
    Allreduce(AllreduceAlgorithm),
    ReduceScatter(ReduceScatterAlgorithm),
    Scan(ScanAlgorithm),
    Exscan(ScanAlgorithm),
}

use Family::*;
use MoveAlgorithm::{Cico, Exchange};

impl Family {
    pub(crate) const ALL: [Self; 37] = [
        Barrier(BarrierAlgorithm::Posted),
        Barrier(BarrierAlgorithm::Dissemination),
        Barrier(BarrierAlgorithm::Doubling),
        Barrier(BarrierAlgorithm::Central),
        Barrier(BarrierAlgorithm::Combining(2)),
        Bcast(BcastAlgorithm::Auto),
        Bcast(BcastAlgorithm::Queue),
        Bcast(BcastAlgorithm::Cico(Tree::BINOMIAL)),
        Gather(Exchange),
        Gather(Cico),
        Gather(MoveAlgorithm::Groups),
        Gatherv(Exchange),
        Gatherv(Cico),
        Scatter(Exchange),
        Scatter(Cico),
        Scatterv(Exchange),
        Scatterv(Cico),
        Allgather(Exchange),
        Allgather(Cico),
        Allgather(MoveAlgorithm::Groups),
        Allgatherv(Exchange),
        Allgatherv(Cico),
        Allgatherv(MoveAlgorithm::Groups),
        Alltoall(AlltoallAlgorithm::Exchange),
        Alltoall(AlltoallAlgorithm::Groups),
        Alltoallv,
        Reduce(ReduceAlgorithm::Auto),
        Reduce(ReduceAlgorithm::Slices),
        Reduce(ReduceAlgorithm::Groups),
        Allreduce(AllreduceAlgorithm::Auto),
        Allreduce(AllreduceAlgorithm::Slices),
        ReduceScatter(ReduceScatterAlgorithm::Exchange),
        ReduceScatter(ReduceScatterAlgorithm::Groups),
        Scan(ScanAlgorithm::Exchange),
        Scan(ScanAlgorithm::Groups),
        Exscan(ScanAlgorithm::Exchange),
        Exscan(ScanAlgorithm::Groups),
    ];

    /// Does a rank send, does it receive, a block for each rank?
    const fn many(self) -> (bool, bool) {
        match self {
            Scatter(_) | Scatterv(_) | ReduceScatter(_) => (true, false),
            Gather(_) | Gatherv(_) | Allgather(_) | Allgatherv(_) => (false, true),
            Alltoall(_) | Alltoallv => (true, true),
            _ => (false, false),
        }
    }

    const fn vary(self) -> bool {
        matches!(self, Gatherv(_) | Scatterv(_) | Allgatherv(_) | Alltoallv)
    }
}

/// One rank's send and receive buffers.
#[derive(Debug)]
pub(crate) struct Memory {
    family: Family,
    me: usize,
    size: usize,
    words: usize,
    send: Vec<Cell<u8>>,
    receive: Vec<Cell<u8>>,
    counts: Vec<u64>,
    /// Block r lies at the place of rank size − 1 − r.
    places: Vec<u64>,
}

const BLANK: i64 = -7;

fn word(round: usize, from: usize, to: usize, at: usize) -> i64 {
    (round * 1_000_003 + from * 10_007 + to * 101 + at) as i64
}

fn cells(words: usize) -> Vec<Cell<u8>> {
    vec![Cell::new(0); 8 * words]
}

fn put(cells: &[Cell<u8>], value: impl Fn(usize) -> i64) {
    for (at, word) in cells.chunks(8).enumerate() {
        word.iter().zip(value(at).to_ne_bytes()).for_each(|(cell, byte)| cell.set(byte));
    }
}

fn holds(cells: &[Cell<u8>], value: impl Fn(usize) -> i64) -> bool {
    let mut words = cells.chunks(8).enumerate();
    words.all(|(at, word)| word.iter().zip(value(at).to_ne_bytes()).all(|(cell, byte)| cell.get() == byte))
}

impl Memory {
    pub(crate) fn new(family: Family, (me, size): (usize, usize), words: usize) -> Self {
        let (sends, receives) = family.many();
        // A slice of an operand that has fewer words than there are ranks may be empty.
        let length = |many| if many { words * size } else { words };
        let places = (0..size).rev().map(|rank| (rank * words) as u64).collect();
        let (send, receive) = (cells(length(sends)), cells(length(receives)));
        Self { family, me, size, words, send, receive, counts: vec![words as u64; size], places }
    }

    const fn root(&self) -> usize {
        self.words % self.size
    }

    /// The rank in whose block a word of all blocks lies, and its place there.
    const fn block(&self, at: usize) -> (usize, usize) {
        let (block, within) = (at / self.words, at % self.words);
        (if self.family.vary() { self.size - 1 - block } else { block }, within)
    }

    /// Fills this rank's send buffer for a round, and clears its receive buffer.
    pub(crate) fn fill(&self, round: usize) {
        let Self { me, .. } = *self;
        put(&self.receive, |_| BLANK);
        let many = self.family.many().0;
        put(&self.send, |at| {
            let (to, at) = if many { self.block(at) } else { (0, at) };
            word(round, me, to, at)
        });
        if let Bcast(_) = self.family {
            put(&self.receive, |at| if me == self.root() { word(round, me, 0, at) } else { BLANK });
        }
    }

    /// Are the results of the round right?
    pub(crate) fn right(&self, round: usize) -> bool {
        let Self { me, size, .. } = *self;
        let root = self.root();
        let sum = |ranks: usize, to: usize, at: usize| (0..ranks).map(|from| word(round, from, to, at)).sum::<i64>();
        let from_each = |at, to| {
            let (from, at) = self.block(at);
            word(round, from, to, at)
        };
        holds(&self.receive, |at| match self.family {
            Barrier(_) => BLANK,
            Gather(_) | Gatherv(_) | Reduce(_) if me != root => BLANK,
            Exscan(_) if me == 0 => BLANK,
            Bcast(_) => word(round, root, 0, at),
            Gather(_) | Gatherv(_) | Allgather(_) | Allgatherv(_) => from_each(at, 0),
            Alltoall(_) | Alltoallv => from_each(at, me),
            Scatter(_) | Scatterv(_) => word(round, root, me, at),
            Reduce(_) | Allreduce(_) => sum(size, 0, at),
            ReduceScatter(_) => sum(size, me, at),
            Scan(_) => sum(me + 1, 0, at),
            Exscan(_) => sum(me, 0, at),
        })
    }

    fn blocks<'a>(&'a self, memory: &'a [Cell<u8>]) -> Blocks<'a> {
        let (memory, word) = (Data::cells(memory), Datatype::Contiguous { bytes: 8 });
        let memory = memory.as_contiguous().unwrap_or(Buf::new(std::ptr::null_mut(), 0));
        let ranks = self.size as u32;
        let blocks = if self.family.vary() {
            // SAFETY: cells, which outlive the blocks; this thread alone uses them.
            unsafe { Blocks::vary(memory, &self.counts, &self.places, word) }
        } else {
            // SAFETY: as above.
            unsafe { Blocks::equal(memory, ranks, self.words as u64, word) }
        };
        blocks.expect("blocks that fit")
    }

    pub(crate) fn call(&self) -> Call<'_> {
        let (from, to) = (Data::cells(&self.send), Data::cells(&self.receive));
        let at_root = self.me == self.root();
        let (root, op) = (self.root() as u32, Op::SUM_I64);
        match self.family {
            Barrier(algorithm) => Call::Barrier { algorithm },
            Bcast(algorithm) => Call::Bcast { data: to, root, algorithm },
            Gather(algorithm) => {
                let receive = at_root.then(|| self.blocks(&self.receive));
                Call::Gather { send: Some(from), receive, root, algorithm }
            }
            Gatherv(algorithm) => {
                let receive = at_root.then(|| self.blocks(&self.receive));
                Call::Gatherv { send: Some(from), receive, root, algorithm }
            }
            Scatter(algorithm) => {
                let send = at_root.then(|| self.blocks(&self.send));
                Call::Scatter { send, receive: Some(to), root, algorithm }
            }
            Scatterv(algorithm) => {
                let send = at_root.then(|| self.blocks(&self.send));
                Call::Scatterv { send, receive: Some(to), root, algorithm }
            }
            Allgather(algorithm) | Allgatherv(algorithm) => {
                Call::Allgather { send: Some(from), receive: self.blocks(&self.receive), algorithm }
            }
            Alltoall(algorithm) => {
                Call::Alltoall { send: Some(self.blocks(&self.send)), receive: self.blocks(&self.receive), algorithm }
            }
            Alltoallv => Call::Alltoallv { send: Some(self.blocks(&self.send)), receive: self.blocks(&self.receive) },
            Reduce(algorithm) => Call::Reduce { send: from, receive: at_root.then_some(to), op, root, algorithm },
            Allreduce(algorithm) => Call::Allreduce { send: from, receive: to, op, algorithm },
            ReduceScatter(algorithm) => {
                Call::ReduceScatter { send: self.blocks(&self.send), receive: to, op, algorithm }
            }
            Scan(algorithm) => Call::Scan { send: from, receive: to, op, algorithm },
            Exscan(algorithm) => Call::Exscan { send: from, receive: to, op, algorithm },
        }
    }
}
