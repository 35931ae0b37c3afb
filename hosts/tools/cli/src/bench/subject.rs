//! What is measured: a collective, an algorithm, a size.

use super::buffers::{fill, holds};
use super::collectives::Sides;
use super::shape::Shape;
use crate::args::{Blocks, Collective};
use crate::decide::{self, names};
use crate::error::Failure;
use crate::team::Team;
use std::fmt;
use unisono_kernel::Rank;
use unisono_kernel::algorithm::{
    AllreduceAlgorithm, AlltoallAlgorithm, BarrierAlgorithm, BcastAlgorithm, MoveAlgorithm, ReduceAlgorithm,
    ReduceScatterAlgorithm, ScanAlgorithm,
};
use unisono_kernel::call::Call;
use unisono_kernel::comm::Communicator;
use unisono_kernel::data::datatype::Data;
use unisono_kernel::error::{self, Argument, Error, Refusal};
use unisono_kernel::op::Op;
use unisono_kernel::region::layout::PARTIAL;
use unisono_kernel::shm::reduce;
use unisono_kernel::table::{Choice, Over};
use unisono_posix::{Joined, Posix};

/// One cell of a table.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    kind: Kind,
    name: String,
    pub(crate) bytes: u64,
    ranks: u32,
    blocks: Blocks,
    shape: Shape,
    /// Is it the algorithm that `auto` stands for?
    default: bool,
    /// Does an allreduce's result lie apart from its operand, and what a rank receives of a broadcast apart from what it sends as the
    /// root? Else it is in place.
    apart: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bcast(BcastAlgorithm),
    Barrier(BarrierAlgorithm),
    Allreduce(AllreduceAlgorithm),
    /// An allreduce without the kernel's machines, to compare with: does it give their guarantees?
    HandWritten {
        guarantees: bool,
    },
    /// A broadcast without them: through the queue of paper P1's rival.
    Rival,
    /// This collective, by this algorithm.
    Sides(Sides, MoveAlgorithm),
}

/// A loop that is written by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByHand {
    /// An allreduce: does it give the machines' guarantees?
    Allreduce {
        /// It does.
        guarantees: bool,
    },
    /// A broadcast through the queue of paper P1's rival.
    Rival,
}

impl Kind {
    /// Is this the algorithm of the choice?
    fn is(self, plan: Choice) -> bool {
        match (self, plan) {
            (Self::Bcast(one), Choice::Bcast(other)) => one == other,
            (Self::Barrier(one), Choice::Barrier(other)) => one == other,
            (Self::Allreduce(one), Choice::Allreduce(other)) => one == other,
            (Self::Sides(Sides::Alltoall(one), _), Choice::Alltoall(other)) => one == other,
            (Self::Sides(Sides::Reduce(one), _), Choice::Reduce(other)) => one == other,
            (
                Self::Sides(Sides::ReduceScatter(one) | Sides::ReduceScatterBlock(one), _),
                Choice::ReduceScatter(other),
            ) => one == other,
            (Self::Sides(Sides::Scan(one) | Sides::Exscan(one), _), Choice::Scan(other)) => one == other,
            (Self::Sides(_, one), Choice::Move(other)) => one == other,
            (Self::Sides(_, one), Choice::Exchange) => one == MoveAlgorithm::Exchange,
            _ => false,
        }
    }
}

/// Bytes for which a process has addresses: all blocks of a call together have at most so many.
const ADDRESSES: u64 = 1 << 47;
/// The collectives that may have unequal blocks.
const VARYING: &str = "gatherv, scatterv, allgatherv, alltoallv, alltoallw, reduce_scatter";
const RIVAL: &str = "rival";
const HAND_WRITTEN: [&str; 2] = ["hand-written", "sketch"];

/// The error for an unknown algorithm; it lists those that there are.
fn unknown(collective: Collective, name: &str) -> Failure {
    let further: &[&str] = match collective {
        Collective::Bcast => &["cico-kary-K", "cico-knomial-K", RIVAL],
        Collective::Barrier => &["combining-N"],
        Collective::Allreduce => &["hand-written and sketch (8 bytes)"],
        _ => &[],
    };
    let known = [&["auto", "all"], names(collective), further].concat().join(", ");
    Failure::Words(format!("no algorithm {name:?} for {}: {known}", decide::name(collective)))
}

impl Subject {
    /// The subjects that an algorithm's name stands for, with equal blocks; `all` stands for every algorithm that
    /// applies to `bytes`.
    pub(crate) fn by_name(collective: Collective, name: &str, bytes: u64, ranks: u32) -> Result<Vec<Self>, Failure> {
        Self::of(collective, Blocks::Equal, name, bytes, ranks, decide::crowded(ranks))
    }

    /// [`Self::by_name`] for any blocks, and for ranks that share cores or don't. The blocks are rank 0's; [`Self::on`] gives those of another rank.
    pub(crate) fn of(
        collective: Collective,
        blocks: Blocks,
        name: &str,
        bytes: u64,
        ranks: u32,
        crowded: bool,
    ) -> Result<Vec<Self>, Failure> {
        let most = ADDRESSES / u64::from(ranks.max(1));
        Refusal::check(Argument::Bytes, bytes, error::Bound::AtMost(most))?;
        let sides = Sides::of(collective);
        if blocks == Blocks::Unequal && !sides.is_some_and(Sides::varies) {
            return Err(Failure::Words(format!("{} has no unequal blocks: {VARYING} have", decide::name(collective))));
        }
        // All ranks of an allgather know the longest block, and the choice is made by its length.
        let asked = match sides {
            Some(sides @ Sides::Allgatherv) => sides.shape(blocks, bytes, 0, ranks).most as u64,
            _ => bytes,
        };
        let names: Vec<&str> = match name {
            "all" => {
                let hand_written = collective == Collective::Allreduce && bytes == 8;
                let applies = |name: &&str| decide::applies(Over::Segment, collective, name, asked, ranks);
                let own = names(collective).iter().copied().filter(applies);
                own.chain(HAND_WRITTEN.into_iter().filter(|_| hand_written)).collect()
            }
            _ => vec![name],
        };
        let default = decide::default(Over::Segment, collective, asked, ranks, crowded)?;
        let one = |name| Self::one(collective, name, default, blocks, bytes, ranks);
        names.into_iter().map(one).collect()
    }

    fn one(
        collective: Collective,
        name: &str,
        default: Option<Choice>,
        blocks: Blocks,
        bytes: u64,
        ranks: u32,
    ) -> Result<Self, Failure> {
        let unknown = || unknown(collective, name);
        let chosen = match (default, name) {
            (Some(default), "auto") => default.to_string(),
            _ => name.to_owned(),
        };
        let name = chosen.as_str();
        let kind = match Sides::of(collective) {
            Some(Sides::Reduce(_)) => {
                let algorithm = ReduceAlgorithm::from_name(name).ok_or_else(unknown)?;
                Kind::Sides(Sides::Reduce(algorithm), MoveAlgorithm::Exchange)
            }
            Some(Sides::Alltoall(_)) => {
                let algorithm = AlltoallAlgorithm::from_name(name).ok_or_else(unknown)?;
                Kind::Sides(Sides::Alltoall(algorithm), MoveAlgorithm::Exchange)
            }
            Some(Sides::ReduceScatter(_)) => {
                let algorithm = ReduceScatterAlgorithm::from_name(name).ok_or_else(unknown)?;
                Kind::Sides(Sides::ReduceScatter(algorithm), MoveAlgorithm::Exchange)
            }
            Some(Sides::ReduceScatterBlock(_)) => {
                let algorithm = ReduceScatterAlgorithm::from_name(name).ok_or_else(unknown)?;
                Kind::Sides(Sides::ReduceScatterBlock(algorithm), MoveAlgorithm::Exchange)
            }
            Some(Sides::Scan(_)) => {
                let algorithm = ScanAlgorithm::from_name(name).ok_or_else(unknown)?;
                Kind::Sides(Sides::Scan(algorithm), MoveAlgorithm::Exchange)
            }
            Some(Sides::Exscan(_)) => {
                let algorithm = ScanAlgorithm::from_name(name).ok_or_else(unknown)?;
                Kind::Sides(Sides::Exscan(algorithm), MoveAlgorithm::Exchange)
            }
            Some(sides) if names(collective).contains(&name) => {
                Kind::Sides(sides, MoveAlgorithm::from_name(name).ok_or_else(unknown)?)
            }
            Some(_) => return Err(unknown()),
            None if collective == Collective::Bcast && name == RIVAL => Kind::Rival,
            None if collective == Collective::Bcast => {
                Kind::Bcast(BcastAlgorithm::from_name(name).ok_or_else(unknown)?)
            }
            None if collective == Collective::Barrier => {
                Kind::Barrier(BarrierAlgorithm::from_name(name).ok_or_else(unknown)?)
            }
            None if HAND_WRITTEN.contains(&name) && bytes == 8 => {
                Kind::HandWritten { guarantees: name == "hand-written" }
            }
            None => Kind::Allreduce(AllreduceAlgorithm::from_name(name).ok_or_else(unknown)?),
        };
        let doubles = match kind {
            Kind::Allreduce(_) | Kind::HandWritten { .. } => true,
            Kind::Sides(sides, _) => !sides.moves(),
            Kind::Bcast(_) | Kind::Barrier(_) | Kind::Rival => false,
        };
        if doubles && !bytes.is_multiple_of(8) {
            return Err(Failure::Words(format!("bytes is {bytes}: a reduction of f64 takes multiples of 8")));
        }
        let most = match kind {
            Kind::Allreduce(AllreduceAlgorithm::Posted)
            | Kind::Sides(Sides::Reduce(ReduceAlgorithm::Tree), _)
            | Kind::Sides(Sides::Scan(ScanAlgorithm::Doubling) | Sides::Exscan(ScanAlgorithm::Doubling), _) => {
                reduce::tree::MOST
            }
            Kind::Allreduce(AllreduceAlgorithm::Doubling) => PARTIAL,
            _ => u64::MAX,
        };
        if bytes > most {
            return Err(Failure::Words(format!("bytes is {bytes}: lines take {most} at most")));
        }
        let default = default.is_some_and(|default| kind.is(default));
        let bytes = if collective == Collective::Barrier { 0 } else { bytes };
        let shape = match kind {
            Kind::Sides(sides, _) => sides.shape(blocks, bytes, 0, ranks),
            _ => Shape::equal(bytes, 0, ranks),
        };
        Ok(Self { kind, name: chosen, bytes, ranks, blocks, shape, default, apart: false })
    }

    /// The subject with the blocks of this rank.
    pub(crate) fn on(self, rank: Rank) -> Self {
        match self.kind {
            Kind::Sides(sides, _) => Self { shape: sides.shape(self.blocks, self.bytes, rank, self.ranks), ..self },
            _ => self,
        }
    }

    pub(crate) const fn blocks(&self) -> Blocks {
        self.blocks
    }

    pub(crate) const fn collective(&self) -> &'static str {
        match self.kind {
            Kind::Bcast(_) | Kind::Rival => "bcast",
            Kind::Barrier(_) => "barrier",
            Kind::Allreduce(_) | Kind::HandWritten { .. } => "allreduce",
            Kind::Sides(sides, _) => sides.name(),
        }
    }

    pub(crate) fn algorithm(&self) -> String {
        self.name.clone()
    }

    pub(crate) const fn is_default(&self) -> bool {
        self.default
    }

    /// Is there a root whose start opens the window?
    pub(crate) const fn rooted(&self) -> bool {
        match self.kind {
            Kind::Bcast(_) | Kind::Rival => true,
            Kind::Sides(sides, _) => sides.rooted(),
            _ => false,
        }
    }

    /// Is an operation applied?
    pub(crate) const fn reduces(&self) -> bool {
        match self.kind {
            Kind::Bcast(_) | Kind::Rival | Kind::Barrier(_) => false,
            Kind::Allreduce(_) | Kind::HandWritten { .. } => true,
            Kind::Sides(sides, _) => !sides.moves(),
        }
    }

    /// Which floor of docs/reference/measures.md bounds its time.
    pub(crate) const fn bound(&self) -> Bound {
        match self.kind {
            Kind::Bcast(_) | Kind::Rival => Bound::Message,
            Kind::Barrier(_) => Bound::Rounds,
            Kind::Allreduce(_) | Kind::HandWritten { .. } if self.bytes <= reduce::tree::MOST => Bound::Rounds,
            Kind::Sides(sides, _) if sides.moves() && matches!(self.blocks, Blocks::Equal) => Bound::Block,
            Kind::Allreduce(_) | Kind::HandWritten { .. } | Kind::Sides(..) => Bound::Unknown,
        }
    }

    /// Which loop, if it is written by hand.
    pub(crate) const fn by_hand(&self) -> Option<ByHand> {
        match self.kind {
            Kind::HandWritten { guarantees } => Some(ByHand::Allreduce { guarantees }),
            Kind::Rival => Some(ByHand::Rival),
            _ => None,
        }
    }

    /// The same, but an allreduce is not in place, and a broadcast sends nothing that the one before has received. Its data are not
    /// looked at then.
    pub(crate) fn apart(self) -> Self {
        Self { apart: true, ..self }
    }

    /// What is sent and what is received in a buffer.
    fn operands<'b>(&self, buffer: &'b mut [u8]) -> [Data<'b>; 2] {
        if self.apart {
            let (send, receive) = buffer.split_at_mut(self.bytes as usize);
            [send, receive].map(Data::bytes_mut)
        } else {
            let data = Data::bytes_mut(buffer);
            [data, data]
        }
    }

    /// Bytes of the buffer on which it is called.
    pub(crate) const fn room(&self) -> u64 {
        match self.kind {
            Kind::Allreduce(_) | Kind::Bcast(_) if self.apart => 2 * self.bytes,
            Kind::Sides(sides, _) => sides.room(&self.shape),
            _ => self.bytes,
        }
    }

    /// One operation on `buffer`, of [`Self::room`] bytes.
    #[inline]
    pub(crate) fn call(&self, comm: &mut Communicator<Posix>, buffer: &mut [u8], root: Rank) -> Result<(), Error> {
        // As a program that knows its collective when it is compiled.
        match self.kind {
            Kind::Bcast(algorithm) => {
                let [send, receive] = self.operands(buffer);
                let data = if comm.rank() == root { send } else { receive };
                comm.run_inlined(&Call::Bcast { data, root, algorithm }).map(drop)
            }
            Kind::Rival => comm.bcast(buffer, root),
            Kind::Barrier(algorithm) => comm.run_inlined(&Call::Barrier { algorithm }).map(drop),
            Kind::Allreduce(algorithm) => {
                let [send, receive] = self.operands(buffer);
                comm.run_inlined(&Call::Allreduce { send, receive, op: Op::SUM_F64, algorithm }).map(drop)
            }
            Kind::HandWritten { .. } => comm.allreduce_in_place(buffer, Op::SUM_F64),
            Kind::Sides(sides, algorithm) => sides.run(comm, algorithm, buffer, &self.shape, root),
        }
    }

    /// One operation as a `Call`; for a loop that is written by hand, the operation with which it is compared.
    #[inline]
    pub(crate) fn describe<'b>(&'b self, rank: Rank, buffer: &'b mut [u8], root: Rank) -> Result<Call<'b>, Refusal> {
        Ok(match self.kind {
            Kind::Bcast(algorithm) => {
                let [send, receive] = self.operands(buffer);
                Call::Bcast { data: if rank == root { send } else { receive }, root, algorithm }
            }
            Kind::Rival => Call::Bcast { data: Data::bytes_mut(buffer), root, algorithm: BcastAlgorithm::Auto },
            Kind::Barrier(algorithm) => Call::Barrier { algorithm },
            Kind::Allreduce(algorithm) => {
                let [send, receive] = self.operands(buffer);
                Call::Allreduce { send, receive, op: Op::SUM_F64, algorithm }
            }
            Kind::HandWritten { .. } => {
                let data = Data::bytes_mut(buffer);
                Call::Allreduce { send: data, receive: data, op: Op::SUM_F64, algorithm: AllreduceAlgorithm::Auto }
            }
            Kind::Sides(sides, algorithm) => sides.describe(algorithm, rank, buffer, &self.shape, root)?,
        })
    }

    /// Fills the buffer with this rank's data for a call from `root`.
    pub(crate) fn prepare(&self, buffer: &mut [u8], rank: Rank, root: Rank) {
        match self.kind {
            Kind::Bcast(_) | Kind::Rival => fill(buffer, if rank == root { 7 } else { 8 }),
            Kind::Barrier(_) => {}
            Kind::Allreduce(_) | Kind::HandWritten { .. } => {
                buffer.as_chunks_mut().0.iter_mut().for_each(|x| *x = f64::from(rank + root).to_ne_bytes());
            }
            Kind::Sides(sides, _) => sides.prepare(buffer, &self.shape, rank),
        }
    }

    /// Does the buffer hold the result of such a call?
    pub(crate) fn right(&self, buffer: &mut [u8], rank: Rank, size: u32, root: Rank) -> bool {
        match self.kind {
            Kind::Bcast(_) if self.apart => {
                let (sent, received) = buffer.split_at_mut(self.bytes as usize);
                holds(if rank == root { sent } else { received }, 7)
            }
            Kind::Bcast(_) | Kind::Rival => holds(buffer, 7),
            Kind::Barrier(_) => true,
            Kind::Allreduce(_) | Kind::HandWritten { .. } => {
                let sum: f64 = (0..size).map(|r| f64::from(r + root)).sum();
                let result = if self.apart { buffer.get(self.bytes as usize..).unwrap_or_default() } else { buffer };
                result.as_chunks().0.iter().all(|x| *x == sum.to_ne_bytes())
            }
            Kind::Sides(sides, _) => sides.right(buffer, &self.shape, rank, size, root),
        }
    }

    /// Runs the subject from every root, and checks the results.
    pub(crate) fn verify(
        &self,
        team: &mut Team,
        joined: &mut Joined,
        mut call: impl FnMut(&mut Communicator<Posix>, &mut [u8], Rank) -> Result<(), Error>,
    ) -> Result<(), Failure> {
        let (rank, size) = (team.rank(), team.size());
        let mut buffer = vec![0; self.room() as usize];
        for root in 0..size {
            self.prepare(&mut buffer, rank, root);
            call(&mut joined.communicator, &mut buffer, root)?;
            if !self.right(&mut buffer, rank, size, root) {
                return Err(Failure::Words(format!("{self}: wrong result from root {root}")));
            }
        }
        Ok(())
    }

    /// Does its result depend on the pattern in the root's buffers, and do all ranks have it in the same place?
    pub(crate) const fn carries_pattern(&self) -> bool {
        matches!(self.kind, Kind::Bcast(_)) && !self.apart
    }
}

/// What bounds a subject's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// A message from the root to all ranks.
    Message,
    /// Rounds of line transfers.
    Rounds,
    /// Between two ranks with a core each: a block that crosses to the other.
    Block,
    /// No formula is known.
    Unknown,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks = if self.blocks == Blocks::Unequal { " in unequal blocks" } else { "" };
        write!(f, "{} {} {} B{blocks}", self.collective(), self.name, self.bytes)
    }
}
