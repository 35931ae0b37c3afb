//! The calls of a case: a flat broadcast, and every collective over the levels of its machine; a rank's memory before a
//! call, and the right results after it.

use std::collections::VecDeque;
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::error::PollError;
use unisono_kernel::machine::Machine;
use unisono_kernel::machine::poll::Poll;
use unisono_kernel::msg::bcast::binomial::Binomial;
use unisono_kernel::msg::levels::{self, Algorithm, Line};
use unisono_kernel::msg::{self, Parts, PlanError, Rounds, Schedule};
use unisono_kernel::op::{Element, Op, Operation};
use unisono_sim::Endpoint;
use unisono_verify::oracle::mix;

pub(crate) type Any<'a> = Box<dyn Machine<Endpoint> + 'a>;

/// Algorithms over levels: in one piece and in segments, trees and slices, with and without an allreduce at the top.
const NAMES: [&str; 8] = [
    "levels",
    "levels-64/chain",
    "levels-100/kary-2:flat",
    "levels/slices",
    "levels/flat:knomial-3+doubling",
    "levels-512/binomial:chain+ring",
    "levels/slices:flat+rabenseifner",
    "levels/halves",
];

/// A collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Binomial,
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    ReduceScatter,
    Scan,
    Exscan,
}

impl Kind {
    /// A broadcast as often as everything else.
    pub(crate) const fn of(number: u32) -> Self {
        match number % 24 {
            1 => Self::Barrier,
            2 | 12 => Self::Reduce,
            3 | 13 => Self::Allreduce,
            4 => Self::Gather,
            5 => Self::Scatter,
            6 => Self::Allgather,
            7 => Self::Alltoall,
            8 => Self::ReduceScatter,
            9 => Self::Scan,
            10 => Self::Exscan,
            number if number % 2 == 0 => Self::Binomial,
            _ => Self::Bcast,
        }
    }

    /// Most bytes among so many ranks, so that neither memory nor the check takes long.
    pub(crate) const fn most(self, ranks: u32) -> usize {
        match self {
            Self::Binomial | Self::Bcast => 3000,
            Self::Gather | Self::Scatter | Self::Allgather | Self::Alltoall | Self::ReduceScatter if ranks > 17 => 8,
            Self::Gather | Self::Scatter | Self::Allgather | Self::Alltoall | Self::ReduceScatter => 100,
            _ if ranks > 17 => 100,
            _ => 3000,
        }
    }
}

/// A call as all ranks make it, with its number: the messages' tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) algorithm: u32,
    pub(crate) root: u32,
    pub(crate) bytes: usize,
    pub(crate) operation: u64,
}

/// One rank's memory of one call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) send: Vec<u8>,
    pub(crate) receive: Vec<u8>,
    pub(crate) scratch: Vec<u8>,
}

impl Call {
    /// The block from one rank to another.
    fn block(&self, from: u32, to: u32) -> impl Iterator<Item = u8> {
        let seed = self.operation << 40 | u64::from(from) << 20 | u64::from(to);
        (0..self.bytes as u64).map(move |at| mix(seed ^ at << 50) as u8)
    }

    /// Blocks of some ranks to one, added up byte by byte.
    fn sum(&self, ranks: std::ops::Range<u32>, to: u32) -> Vec<u8> {
        let mut sum = vec![0u8; self.bytes];
        for rank in ranks {
            sum.iter_mut().zip(self.block(rank, to)).for_each(|(sum, byte)| *sum = sum.wrapping_add(byte));
        }
        sum
    }

    /// The send buffer of `rank` of `size`.
    pub(crate) fn send(&self, rank: u32, size: u32) -> Vec<u8> {
        let all = || (0..size).flat_map(|to| self.block(rank, to)).collect();
        match self.kind {
            Kind::Binomial | Kind::Bcast | Kind::Barrier => Vec::new(),
            Kind::Scatter if rank != self.root => Vec::new(),
            Kind::Scatter | Kind::Alltoall | Kind::ReduceScatter => all(),
            _ => self.block(rank, 0).collect(),
        }
    }

    /// The result area of `rank` of `size` before the call.
    pub(crate) fn before(&self, rank: u32, size: u32) -> Vec<u8> {
        let bytes = match self.kind {
            Kind::Binomial | Kind::Bcast if rank == self.root => return self.block(rank, 0).collect(),
            Kind::Barrier => 0,
            Kind::Gather | Kind::Reduce if rank != self.root => 0,
            Kind::Gather | Kind::Allgather | Kind::Alltoall => self.bytes * size as usize,
            _ => self.bytes,
        };
        vec![0x55; bytes]
    }

    /// The result area of `rank` of `size` after the call.
    pub(crate) fn after(&self, rank: u32, size: u32) -> Vec<u8> {
        let one = |from, to| self.block(from, to).collect();
        match self.kind {
            Kind::Barrier => Vec::new(),
            Kind::Gather | Kind::Reduce if rank != self.root => Vec::new(),
            Kind::Binomial | Kind::Bcast => one(self.root, 0),
            Kind::Scatter => one(self.root, rank),
            Kind::Gather | Kind::Allgather => (0..size).flat_map(|from| self.block(from, 0)).collect(),
            Kind::Alltoall => (0..size).flat_map(|from| self.block(from, rank)).collect(),
            Kind::Reduce | Kind::Allreduce => self.sum(0..size, 0),
            Kind::ReduceScatter => self.sum(0..size, rank),
            Kind::Scan => self.sum(0..rank + 1, 0),
            Kind::Exscan if rank == 0 => self.before(rank, size),
            Kind::Exscan => self.sum(0..rank, 0),
        }
    }

    /// The call's machine at `rank`, on memory that outlives it.
    pub(crate) fn machine<'a>(&self, line: Line<'a>, rank: u32, memory: &'a mut Memory) -> Result<Any<'a>, PlanError> {
        let (groups, bytes, root) = (line.groups(), self.bytes as u64, self.root);
        let algorithm = Algorithm::from_name(NAMES[self.algorithm as usize % NAMES.len()]).expect("a name");
        // Where it does not apply: without slices.
        let trees = if self.algorithm.is_multiple_of(2) {
            Algorithm::BINOMIAL
        } else {
            Algorithm::from_name("levels/flat").expect("a name")
        };
        let parts = Parts::equal(groups.ranks(), bytes)?;
        let op = Op::new(Operation::Sum, Element::U8)?;
        match self.kind {
            Kind::Binomial => {
                let (size, buffer) = (groups.ranks(), Buf::of_mut(&mut memory.receive));
                // SAFETY: the machine borrows the memory, so it is given up before that is; nobody else touches it.
                Ok(Box::new(unsafe { Binomial::new(rank, size, buffer, root, self.operation) }?))
            }
            Kind::Barrier => self.run(levels::barrier::plan(groups, rank, trees)?, memory),
            Kind::Bcast => self.run(levels::bcast::plan(groups, rank, bytes, root, algorithm)?, memory),
            Kind::Reduce => self.run(levels::reduce::plan(groups, rank, bytes, op, root, false, algorithm)?, memory),
            Kind::Allreduce => self.run(levels::allreduce::plan(groups, rank, bytes, op, false, algorithm)?, memory),
            Kind::Gather => self.run(levels::gather::plan(line, rank, parts, root, false)?, memory),
            Kind::Scatter => self.run(levels::scatter::plan(line, rank, parts, root, false)?, memory),
            Kind::Allgather => self.run(levels::allgather::plan(line, rank, parts, false, algorithm)?, memory),
            Kind::Alltoall => self.run(levels::alltoall::plan(line, rank, bytes, false)?, memory),
            Kind::ReduceScatter => {
                self.run(levels::reduce_scatter::plan(line, rank, parts, op, false, algorithm)?, memory)
            }
            Kind::Scan | Kind::Exscan => {
                let exclusive = self.kind == Kind::Exscan;
                match levels::scan::plan(groups, rank, bytes, op, false, exclusive, trees) {
                    Ok(plan) => self.run(plan, memory),
                    // Groups are not runs of ranks.
                    Err(_) => {
                        let seat = unisono_kernel::pattern::Seat::new(rank, groups.ranks())?;
                        let algorithm = msg::scan::Algorithm::Doubling;
                        self.run(msg::scan::plan(seat, bytes, op, false, exclusive, algorithm)?, memory)
                    }
                }
            }
        }
    }

    /// The machine of a schedule.
    pub(crate) fn run<'a>(&self, plan: impl Schedule + 'a, memory: &'a mut Memory) -> Result<Any<'a>, PlanError> {
        memory.scratch.resize(plan.bytes().scratch as usize, 0);
        let Memory { send, receive, scratch } = memory;
        let memory = msg::Memory { send: Buf::of(send), receive: Buf::of_mut(receive), scratch: Buf::of_mut(scratch) };
        // SAFETY: the machine borrows the memory, so it is given up before that is; nobody else touches it.
        Ok(Box::new(unsafe { Rounds::of(plan, memory, self.operation) }?))
    }
}

/// One call after the other, without a pause.
pub(crate) struct Series<'a>(pub(crate) VecDeque<Any<'a>>);

impl Machine<Endpoint> for Series<'_> {
    fn poll(&mut self, end: &mut Endpoint) -> Result<Poll, PollError> {
        while let Some(machine) = self.0.front_mut() {
            if let wait @ Poll::Wait(_) = machine.poll(end)? {
                return Ok(wait);
            }
            self.0.pop_front();
        }
        Ok(Poll::Done)
    }
}
