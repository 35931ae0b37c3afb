//! Alltoallw: blocks with a datatype each, which differs between a block's sender and its receiver.

use super::moves::{SIZES, unequal};
use super::side::{BLANK, Type, message};
use super::{Caller, Tally};
use crate::error::Failure;
use unisono_kernel::call::Call;
use unisono_kernel::data::blocks::{Block, Blocks};
use unisono_kernel::error::Error;

const TYPES: [Type; 4] = [Type::Bytes, Type::Second, Type::Third, Type::Struct];

pub(super) fn check(comm: &mut Caller<'_>, tally: &mut Tally) -> Result<(), Failure> {
    for most in SIZES {
        for in_place in [false, true] {
            let right = alltoallw(comm, tally.cases.len(), most, in_place)?;
            tally.case(format!("alltoallw {most} B{}", if in_place { " in place" } else { "" }), right);
        }
    }
    Ok(())
}

/// One side of a rank: the last block lies first, and between the blocks are bytes that belong to no block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Side {
    memory: Vec<u8>,
    blocks: Vec<(Type, Block<'static>)>,
}

impl Side {
    fn new(counts: &[u64], kind: impl Fn(usize) -> Type) -> Self {
        let mut end = 3;
        let mut block = |(rank, &count): (usize, &u64)| {
            let (kind, displacement) = (kind(rank), end);
            end += count * kind.stride() as u64 + 5;
            (kind, Block { displacement, count, datatype: kind.datatype() })
        };
        let mut blocks: Vec<_> = counts.iter().enumerate().rev().map(&mut block).collect();
        blocks.reverse();
        Self { memory: vec![BLANK; end as usize], blocks }
    }

    /// The same side, with the bytes that `bytes` returns in each block.
    fn with(mut self, bytes: impl Fn(usize, u64) -> Vec<u8>) -> Self {
        for (rank, (kind, block)) in self.blocks.iter().enumerate() {
            for (at, byte) in bytes(rank, block.count).into_iter().enumerate() {
                self.memory[block.displacement as usize + kind.at(at)] = byte;
            }
        }
        self
    }
}

/// Rank i's block for rank j has the length of number (i + j) mod p, so that the call may also be in place.
fn alltoallw(comm: &mut Caller<'_>, seed: usize, most: u64, in_place: bool) -> Result<bool, Error> {
    let (me, size) = (comm.rank() as usize, comm.size() as usize);
    let lengths = unequal(most, size);
    let counts: Vec<u64> = (0..size).map(|rank| lengths[(rank + me) % size]).collect();
    let outgoing = |rank, count| message(seed, me, rank, count);
    let sent = Side::new(&counts, |rank| TYPES[(rank + 2 * me) % 4]).with(outgoing);
    let blank = Side::new(&counts, |rank| TYPES[(3 * rank + me + 1) % 4]);
    let wanted = blank.clone().with(|rank, count| message(seed, rank, me, count));
    let mut receive = if in_place { blank.with(outgoing) } else { blank };
    let mut send = sent.clone();
    let (from, to) = (cut(&send), cut(&receive));
    let source = if in_place { None } else { Some(Blocks::each_mut(&mut send.memory, &from)?) };
    comm.run(Call::Alltoallv { send: source, receive: Blocks::each_mut(&mut receive.memory, &to)? })?;
    Ok(send == sent && receive == wanted)
}

/// A side's blocks, as an argument of a call.
fn cut(side: &Side) -> Vec<Block<'static>> {
    side.blocks.iter().map(|(_, block)| *block).collect()
}
