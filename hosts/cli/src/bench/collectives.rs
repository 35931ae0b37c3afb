//! How each collective is called on one buffer of a rank: what it sends lies first, then what it receives.
//!
//! Bytes are those of docs/benchmark.md: one block of gather, scatter, allgather and alltoall; else the
//! whole vector of one rank, which a reduce_scatter cuts into equal blocks of one element at least.

use super::buffers::{fill, holds};
use crate::args::Collective;
use unisono_kernel::Rank;
use unisono_kernel::algorithm::MoveAlgorithm;
use unisono_kernel::blocks::Blocks;
use unisono_kernel::call::Call;
use unisono_kernel::datatype::{Data, Datatype};
use unisono_kernel::driver::Communicator;
use unisono_kernel::error::{Argument, Bound, Error, Refusal};
use unisono_kernel::op::Op;
use unisono_posix::Posix;

/// A collective with two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sides {
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    ReduceScatter,
    Scan,
    Exscan,
}

/// Seed of what is there before.
const JUNK: u64 = 1_000_003;

impl Sides {
    /// Of what is measured: if it has two sides.
    pub(crate) const fn of(collective: Collective) -> Option<Self> {
        Some(match collective {
            Collective::Bcast
            | Collective::Barrier
            | Collective::Allreduce
            | Collective::Overlap
            | Collective::Comm => return None,
            Collective::Gather => Self::Gather,
            Collective::Scatter => Self::Scatter,
            Collective::Allgather => Self::Allgather,
            Collective::Alltoall => Self::Alltoall,
            Collective::Reduce => Self::Reduce,
            Collective::ReduceScatter => Self::ReduceScatter,
            Collective::Scan => Self::Scan,
            Collective::Exscan => Self::Exscan,
        })
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Allgather => "allgather",
            Self::Alltoall => "alltoall",
            Self::Reduce => "reduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::Scan => "scan",
            Self::Exscan => "exscan",
        }
    }

    /// Is there a root?
    pub(crate) const fn rooted(self) -> bool {
        matches!(self, Self::Gather | Self::Scatter | Self::Reduce)
    }

    /// Does it only move bytes?
    pub(crate) const fn moves(self) -> bool {
        matches!(self, Self::Gather | Self::Scatter | Self::Allgather | Self::Alltoall)
    }

    /// Bytes that a rank sends and receives.
    const fn lengths(self, bytes: u64, ranks: u32) -> (usize, usize) {
        let (one, all) = (bytes as usize, bytes as usize * ranks as usize);
        match self {
            Self::Gather | Self::Allgather => (one, all),
            Self::Scatter => (all, one),
            Self::Alltoall => (all, all),
            Self::Reduce | Self::Scan | Self::Exscan => (one, one),
            Self::ReduceScatter => {
                let elements = one / 8 / ranks as usize;
                let block = 8 * if one > 0 && elements == 0 { 1 } else { elements };
                (block * ranks as usize, block)
            }
        }
    }

    /// Bytes of a buffer for both sides.
    pub(crate) const fn room(self, bytes: u64, ranks: u32) -> u64 {
        let (send, receive) = self.lengths(bytes, ranks);
        (send.next_multiple_of(64) + receive) as u64
    }

    /// Both sides of a buffer.
    #[inline]
    fn split(self, buffer: &mut [u8], bytes: u64, ranks: u32) -> Option<(&mut [u8], &mut [u8])> {
        let (send, receive) = self.lengths(bytes, ranks);
        let (from, to) = buffer.split_at_mut_checked(send.next_multiple_of(64))?;
        Some((from.get_mut(..send)?, to.get_mut(..receive)?))
    }

    /// One operation on a buffer of [`Self::room`] bytes; a shorter one is left alone.
    #[inline]
    pub(crate) fn call(
        self,
        algorithm: MoveAlgorithm,
        comm: &mut Communicator<Posix>,
        buffer: &mut [u8],
        bytes: u64,
        root: Rank,
    ) -> Result<(), Error> {
        let (ranks, at_root) = (comm.size(), comm.rank() == root);
        let Some((send, receive)) = self.split(buffer, bytes, ranks) else { return Ok(()) };
        let op = Op::SUM_F64;
        match self {
            Self::Gather => {
                let receive = if at_root { Some(equal(receive, ranks)?) } else { None };
                comm.run(&Call::Gather { send: Some(Data::bytes_mut(send)), receive, root, algorithm }).map(drop)
            }
            Self::Scatter => {
                let send = if at_root { Some(equal(send, ranks)?) } else { None };
                comm.run(&Call::Scatter { send, receive: Some(Data::bytes_mut(receive)), root, algorithm }).map(drop)
            }
            Self::Allgather => comm
                .run(&Call::Allgather { send: Some(Data::bytes_mut(send)), receive: equal(receive, ranks)?, algorithm })
                .map(drop),
            Self::Alltoall => comm.alltoall(Some(equal(send, ranks)?), equal(receive, ranks)?),
            Self::Reduce => comm.reduce(Data::bytes_mut(send), at_root.then_some(Data::bytes_mut(receive)), op, root),
            Self::ReduceScatter => comm.reduce_scatter(equal(send, ranks)?, Data::bytes_mut(receive), op),
            Self::Scan => comm.scan(Data::bytes_mut(send), Data::bytes_mut(receive), op),
            Self::Exscan => comm.exscan(Data::bytes_mut(send), Data::bytes_mut(receive), op),
        }
    }

    /// The same operation as data.
    ///
    /// # Errors
    /// The buffer is shorter than [`Self::room`].
    pub(crate) fn describe(
        self,
        algorithm: MoveAlgorithm,
        (rank, ranks): (Rank, u32),
        buffer: &mut [u8],
        bytes: u64,
        root: Rank,
    ) -> Result<Call<'_>, Refusal> {
        let (length, room) = (buffer.len() as u64, self.room(bytes, ranks));
        let short = Refusal::new(Argument::Bytes, length, Bound::AtLeast(room));
        let (send, receive) = self.split(buffer, bytes, ranks).ok_or(short)?;
        let (at_root, op) = (rank == root, Op::SUM_F64);
        Ok(match self {
            Self::Gather => {
                let receive = if at_root { Some(equal(receive, ranks)?) } else { None };
                Call::Gather { send: Some(Data::bytes_mut(send)), receive, root, algorithm }
            }
            Self::Scatter => {
                let send = if at_root { Some(equal(send, ranks)?) } else { None };
                Call::Scatter { send, receive: Some(Data::bytes_mut(receive)), root, algorithm }
            }
            Self::Allgather => {
                Call::Allgather { send: Some(Data::bytes_mut(send)), receive: equal(receive, ranks)?, algorithm }
            }
            Self::Alltoall => Call::Alltoall { send: Some(equal(send, ranks)?), receive: equal(receive, ranks)? },
            Self::Reduce => {
                let receive = at_root.then_some(Data::bytes_mut(receive));
                Call::Reduce { send: Data::bytes_mut(send), receive, op, root }
            }
            Self::ReduceScatter => {
                Call::ReduceScatter { send: equal(send, ranks)?, receive: Data::bytes_mut(receive), op }
            }
            Self::Scan => Call::Scan { send: Data::bytes_mut(send), receive: Data::bytes_mut(receive), op },
            Self::Exscan => Call::Exscan { send: Data::bytes_mut(send), receive: Data::bytes_mut(receive), op },
        })
    }

    /// Fills a buffer's sides with what this rank sends, and with junk.
    pub(crate) fn prepare(self, buffer: &mut [u8], bytes: u64, (rank, ranks): (Rank, u32)) {
        let Some((send, receive)) = self.split(buffer, bytes, ranks) else { return };
        fill(receive, JUNK);
        if self.moves() {
            let block = (bytes as usize).max(1);
            send.chunks_mut(block).zip(0..).for_each(|(block, to)| fill(block, seed(rank, to)));
        } else {
            double(send, |at| operand(rank, at));
        }
    }

    /// Has the operation left in a prepared buffer what it should?
    pub(crate) fn right(self, buffer: &mut [u8], bytes: u64, (rank, ranks): (Rank, u32), root: Rank) -> bool {
        let Some((_, receive)) = self.split(buffer, bytes, ranks) else { return false };
        let elements = receive.len() / 8;
        let sums = |receive: &mut [u8], folded: u32, first: usize| {
            let mut wanted = vec![0; receive.len()];
            double(&mut wanted, |at| (0..folded).map(|rank| operand(rank, first + at)).sum());
            receive == wanted
        };
        match self {
            Self::Gather | Self::Reduce if rank != root => holds(receive, JUNK),
            Self::Exscan if rank == 0 => holds(receive, JUNK),
            Self::Scatter => holds(receive, seed(root, rank)),
            Self::Gather | Self::Allgather | Self::Alltoall => {
                let to = if self == Self::Alltoall { rank } else { 0 };
                let mut blocks = receive.chunks((bytes as usize).max(1)).zip(0..);
                blocks.all(|(block, from)| holds(block, seed(from, to)))
            }
            Self::Reduce => sums(receive, ranks, 0),
            Self::ReduceScatter => sums(receive, ranks, rank as usize * elements),
            Self::Scan => sums(receive, rank + 1, 0),
            Self::Exscan => sums(receive, rank, 0),
        }
    }
}

/// A block of bytes for each rank.
#[inline]
fn equal(memory: &mut [u8], ranks: u32) -> Result<Blocks<'_>, Refusal> {
    let block = memory.len() as u64 / u64::from(ranks);
    Blocks::equal_mut(memory, ranks, block, Datatype::BYTE)
}

/// Names what goes from one rank to another.
const fn seed(from: Rank, to: Rank) -> u64 {
    from as u64 * 65_537 + to as u64
}

/// Whole numbers: sums are exact.
fn operand(rank: Rank, at: usize) -> f64 {
    f64::from(rank + 1) * (at % 1009 + 1) as f64
}

/// Fills bytes with doubles.
fn double(bytes: &mut [u8], value: impl Fn(usize) -> f64) {
    bytes.as_chunks_mut().0.iter_mut().enumerate().for_each(|(at, to)| *to = value(at).to_ne_bytes());
}
